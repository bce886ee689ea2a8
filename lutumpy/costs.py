"""What requests cost: the known tokens, and the requests whose cost is unknown (rule U1).

A request has one of four ends, and each has its place here:

- It was answered, and the answer was read: its tokens are counted with the answer.
- It failed or was left early, after the provider's last word on its usage: that usage is counted.
- It failed or was left early before that: the usage so far is counted, and the request is listed as
  `Unsettled`.
- It cost nothing: it was never sent, or the provider refused it before it generated anything
  (`costs_nothing`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from lutumpy.core.items import (
    AssistantTurn,
    FoundTool,
    ImagePart,
    Message,
    Part,
    RawPart,
    TextPart,
    ToolResults,
    Usage,
)
from lutumpy.core.raw_part import texts_and_data
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError
from lutumpy.plain.values import dataclass

__all__ = ["Ledger", "Unsettled", "costs_nothing", "estimate_of", "is_settled"]

NOTHING = Usage()

# Statuses of servers that refuse before they begin: not implemented, overloaded or shut down (RFC
# 9110, section 15.6), an unsupported version, and Anthropic's own 529 (`overloaded_error`).
_REFUSING_SERVER_STATUSES = frozenset({501, 503, 505, 529})

# Statuses below 500 that can come from the middle of the work: a time limit (Azure OpenAI says that
# a 408 may be charged), and the status of proxies for a client that went away.
_STATUSES_AFTER_WORK = frozenset({408, 499})

# Codes of refusals that come after work, whatever their status: Azure OpenAI charges for a prompt
# that its filter stops, and Groq refuses what the model has generated.
_CODES_AFTER_WORK = frozenset({"content_filter", "json_validate_failed", "tool_use_failed"})

# Codes of refusals that come without a status of their own: in a body or a stream that began with
# status 200.
_CODES_OF_REFUSALS = frozenset(
    {
        "authentication_error",
        "billing_error",
        "context_length_exceeded",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
        "overloaded_error",
        "permission_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "request_too_large",
        "server_overloaded",
    }
)

# Words of Responses for an answer that isn't there yet, so that its counts aren't the last word.
_UNDER_WAY = frozenset({"in_progress", "queued"})

# Rough, and the same for every model: an estimate says of what size a cost is, not how much it is.
_BYTES_PER_TOKEN = 4
_TOKENS_PER_FILE = 1000


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A request whose cost is not, or not wholly, known: it failed or was left after it was sent.

    Attributes:
        api: The wire that it went over, as `openai_chat`; `None` where that is not known.
        model: The model's name, as it was asked for or answered.
        response_id: The provider's id of the answer, where one had begun. Responses can be asked
            for its usage.
        request_id: The provider's id of the request, where one was given.
        estimate: Roughly what is not counted in `Session.usage`, at four bytes of text for a token,
            and 1000 tokens for an image or file. Its output is what had arrived; what the model
            wrote after that is not in it.
    """

    api: str | None
    model: str | None
    response_id: str | None = None
    request_id: str | None = None
    estimate: Usage | None = None


class Costs(NamedTuple):
    """A session's conversation and its costs at one moment.

    It is one value, so that it is replaced in one step (rule K3a).

    Attributes:
        transcript: The conversation; the usages of the answers that were read are part of it.
        counted: Tokens that are added up already.
        answers: How many of the transcript's answers are in that.
        unsettled: Requests whose cost is unknown.
    """

    transcript: Transcript
    counted: Usage
    answers: int
    unsettled: tuple[Unsettled, ...]


class Ledger:
    """A conversation, and what it has cost so far."""

    __slots__ = ("_costs",)

    def __init__(self, transcript: Transcript) -> None:
        self._costs = Costs(transcript, NOTHING, len(transcript.usages()), ())

    if TYPE_CHECKING:

        @property
        def transcript(self) -> Transcript: ...
        @transcript.setter
        def transcript(self, transcript: Transcript) -> None: ...

    else:

        def _replace_transcript(self, transcript: Transcript) -> None:
            self._costs = Costs(
                transcript, self.usage, len(transcript.usages()), self._costs.unsettled
            )

        # Each round asks for it a few times. This getter is written in C, so it enters no function.
        transcript = property(
            attrgetter("_costs.transcript"),
            _replace_transcript,
            doc=(
                "The conversation. Another one may be put in its place, such as a window of it; "
                "the costs go on."
            ),
        )

    @property
    def usage(self) -> Usage:
        """Tokens of every answer that was read, and the known tokens of unfinished requests.

        Requests that failed or were left early, and whose cost isn't wholly known, are listed in
        `unsettled`.
        """
        costs = self._costs
        answers = costs.transcript.usages(costs.answers)
        if answers:
            # Added up when somebody asks: most rounds are over before that.
            counted = sum(answers, costs.counted)
            costs = self._costs = costs._replace(
                counted=counted, answers=costs.answers + len(answers)
            )
        return costs.counted

    @usage.setter
    def usage(self, usage: Usage) -> None:
        self._set_costs(usage, self._costs.unsettled)

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        """The requests whose cost is not, or not wholly, known, oldest first.

        Repetitions that an SDK makes by itself are not seen from here.
        """
        return self._costs.unsettled

    def add_usage(self, usage: Usage) -> None:
        """Count what a request cost. Requests of the session's own turns are counted already."""
        self._costs = self._costs._replace(counted=self._costs.counted + usage)

    def add_unsettled(self, request: Unsettled, usage: Usage = NOTHING) -> None:
        """List a request whose cost is not known. Those of the session's turns are listed already.

        Args:
            request: The request.
            usage: What is known of its cost: counted, in the same step.
        """
        costs = self._costs
        self._costs = costs._replace(
            counted=costs.counted + usage, unsettled=(*costs.unsettled, request)
        )

    def settle(self, request: Unsettled, usage: Usage) -> None:
        """Count what a request of `unsettled` has cost, and take it off that list.

        Args:
            request: The request.
            usage: Its cost, without what is counted already.

        Raises:
            ValueError: it is not on the list; nothing was counted.
        """
        costs = self._costs
        rest = [*costs.unsettled]
        if request not in rest:
            raise ValueError(
                f"{request!r} is not among the unsettled requests; nothing was counted"
            )
        rest.remove(request)
        self._costs = costs._replace(counted=costs.counted + usage, unsettled=tuple(rest))

    def _set_costs(self, usage: Usage, unsettled: tuple[Unsettled, ...]) -> None:
        """Set what was counted so far, and what is unknown."""
        transcript = self._costs.transcript
        self._costs = Costs(transcript, usage, len(transcript.usages()), unsettled)


def costs_nothing(error: AdapterError) -> bool:
    """Whether a request that ended in this error is known to cost nothing.

    It was never sent, or it was refused by its status or code before anything was generated. A
    server that broke down (500), a gateway that lost its answer (502, 504, 520 to 524), a time
    limit and a broken connection say nothing about how far the model got, so those are not known to
    cost nothing.
    """
    if not error.sent:
        return True
    if error.partial is not None or error.code in _CODES_AFTER_WORK:
        return False
    if error.status is None:
        return error.code in _CODES_OF_REFUSALS
    if error.status >= 500:
        return error.status in _REFUSING_SERVER_STATUSES
    return error.status not in _STATUSES_AFTER_WORK


def is_settled(partial: AssistantTurn) -> bool:
    """Whether the usage of an answer that broke off is the provider's last word.

    Every API counts in the event that says why the model stopped, or after it. Counts before that
    are those of the beginning: Anthropic's has all of the input and next to nothing of the output.
    """
    reason = partial.provider_finish_reason
    return reason is not None and reason not in _UNDER_WAY and partial.usage != NOTHING


def estimate_of(
    transcript: Transcript, offering: ToolOffering | None, partial: AssistantTurn | None
) -> Usage:
    """Roughly the tokens of a request that no usage has; see `Unsettled.estimate`.

    Args:
        transcript: What was sent.
        offering: The tools that went with it.
        partial: What had arrived, with the usage that the provider had given until then.
    """
    input_tokens = 0
    if partial is None or not partial.usage.all_input_tokens:
        input_tokens = _estimate_request(transcript, offering)
    output_tokens = 0
    if partial is not None:
        output_tokens = max(0, _estimate_turn(partial) - partial.usage.output_tokens)
    total = input_tokens + output_tokens
    return Usage(input_tokens, output_tokens, total, cached_beside_tokens=0)


def _estimate_request(transcript: Transcript, offering: ToolOffering | None) -> int:
    tokens = 0
    for item in transcript:
        if isinstance(item, AssistantTurn):
            tokens += _estimate_turn(item)
        elif isinstance(item, Message):
            tokens += _estimate_content(item.parts)
        elif isinstance(item, ToolResults):
            for result in item.results:
                tokens += _estimate_content(result.content)
    if offering is not None:
        for spec in offering.stable_specs or offering.specs:
            # `str` of a schema is about as long as its JSON, which only the adapter's request has.
            tokens += _estimate_text(spec.name + spec.description + str(spec.schema))
    return tokens


def _estimate_turn(turn: AssistantTurn) -> int:
    return _estimate_bytes(len(turn.native))


def _estimate_content(content: str | tuple[Part, ...]) -> int:
    if isinstance(content, str):
        return _estimate_text(content)
    tokens = 0
    for part in content:
        if isinstance(part, TextPart):
            tokens += _estimate_text(part.text)
        elif isinstance(part, FoundTool):
            # Where it is loaded, its definition is in the prompt.
            tokens += _estimate_text(part.text) + _estimate_bytes(len(part.data))
        elif isinstance(part, RawPart):
            for piece in texts_and_data(part):
                tokens += _estimate_text(piece) if isinstance(piece, str) else _TOKENS_PER_FILE
        elif isinstance(part, ImagePart) or part.data is None:
            tokens += _TOKENS_PER_FILE
        elif str(part.media_type).startswith("text/"):
            tokens += _estimate_bytes(len(part.data))
        else:
            tokens += _TOKENS_PER_FILE
    return tokens


def _estimate_text(text: str) -> int:
    return _estimate_bytes(len(text.encode("utf-8", "replace")))


def _estimate_bytes(count: int) -> int:
    # Rounded up.
    return -(-count // _BYTES_PER_TOKEN)
