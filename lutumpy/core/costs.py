"""What requests cost: the tokens that are known, and the requests of which that is not known (rule
U1).

A request has one of four ends, and each has its place here:

- It was answered, and the answer was read: its tokens are counted with the answer.
- It failed or was left early, and the provider had said all that it cost: those tokens are counted.
- It failed or was left early before that: what was said is counted, and the request is listed as `Unsettled`.
- It cost nothing: it was never sent, or the provider refused it before it generated anything (`costs_nothing`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from lutumpy.core.items import AssistantTurn, ImagePart, Message, Part, TextPart, ToolResults, Usage
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.values import dataclass
from lutumpy.errors import AdapterError

__all__ = ["Ledger", "Unsettled", "costs_nothing", "estimate_of", "is_settled"]

NOTHING = Usage()

# Statuses of servers that say no before they begin: not implemented, overloaded or shut down (RFC
# 9110, section 15.6), a version that isn't spoken, and Anthropic's own 529 (`overloaded_error`).
_REFUSING_SERVER_STATUSES = frozenset({501, 503, 505, 529})

# Statuses below 500 that can come from the middle of the work: a time limit (Azure OpenAI says that
# a 408 may be charged), and that of proxies for a client that went away.
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

# Words of Responses for an answer that isn't there yet, so that its counts are no last word.
_UNDER_WAY = frozenset({"in_progress", "queued"})

_BYTES_PER_TOKEN = 4
_TOKENS_PER_FILE = 1000


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A request whose cost is not, or not wholly, known: it failed or was left after it was sent.

    Attributes:
        api: The wire that it went over, as `openai_chat`; `None` where that is not known.
        model: The model's name, as it was asked for or answered.
        response_id: The provider's id of the answer, where one had begun: Responses can be asked
            for its usage.
        request_id: The provider's id of the request, where one was given.
        estimate: Roughly what is not counted in `Session.usage`: four bytes of text a token, 1000
            tokens for an image or file. Its output is what had arrived; what the model wrote after
            that is not in it.
    """

    api: str | None
    model: str | None
    response_id: str | None = None
    request_id: str | None = None
    estimate: Usage | None = None


class Costs(NamedTuple):
    """What a session's conversation is and has cost at one moment: one value, replaced in one step
    (rule K3a).

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

        def _take(self, transcript: Transcript) -> None:
            self._costs = Costs(
                transcript, self.usage, len(transcript.usages()), self._costs.unsettled
            )

        # Each round asks for it a few times; this getter is C, and so no call.
        transcript = property(
            attrgetter("_costs.transcript"),
            _take,
            doc="The conversation. Another one may be put in its place, such as a window of it; the costs go on.",
        )

    @property
    def usage(self) -> Usage:
        """Tokens of every answer that was read, and what is known of requests that failed or were
        left early.

        What is not known of those stands in `unsettled`.
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
        self._count(usage, self._costs.unsettled)

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        """The requests whose cost is not, or not wholly, known, oldest first.

        Repetitions that an SDK makes by itself are not seen from here.
        """
        return self._costs.unsettled

    def add_usage(self, usage: Usage) -> None:
        """Count what a request cost; what is sent through the session's turns is counted by itself."""
        self._costs = self._costs._replace(counted=self._costs.counted + usage)

    def add_unsettled(self, request: Unsettled, usage: Usage = NOTHING) -> None:
        """List a request whose cost is not known; what is sent through the session's turns is
        listed by itself.

        Args:
            request: The request.
            usage: What is known of its cost: counted, in the same step.
        """
        costs = self._costs
        self._costs = costs._replace(
            counted=costs.counted + usage, unsettled=(*costs.unsettled, request)
        )

    def settle(self, request: Unsettled, usage: Usage) -> None:
        """Count what a request of `unsettled` turned out to cost beyond what is counted, and take
        it off that list.

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

    def _count(self, usage: Usage, unsettled: tuple[Unsettled, ...]) -> None:
        """Set what was counted so far, and what is unknown."""
        transcript = self._costs.transcript
        self._costs = Costs(transcript, usage, len(transcript.usages()), unsettled)


def costs_nothing(error: AdapterError) -> bool:
    """Whether a request that ended in this error is known to cost nothing.

    It was never sent, or it was refused by its status or code before anything was generated. A
    server that broke down (500), a gateway that lost its answer (502, 504, 520 to 524), a time
    limit and a connection that broke say nothing about how far the model got, so those are not
    known to cost nothing.
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
    """Roughly the tokens of a request that are not in the usage of what had arrived; see
    `Unsettled.estimate`.
    """
    given = 0
    if partial is None or not partial.usage.all_input_tokens:
        given = _tokens_of_request(transcript, offering)
    made = 0
    if partial is not None:
        made = max(0, _tokens_of_turn(partial) - partial.usage.output_tokens)
    return Usage(given, made, given + made, cached_beside_tokens=0)


def _tokens_of_request(transcript: Transcript, offering: ToolOffering | None) -> int:
    tokens = 0
    for item in transcript:
        if isinstance(item, AssistantTurn):
            tokens += _tokens_of_turn(item)
        elif isinstance(item, Message):
            tokens += _tokens_of_parts(item.parts)
        elif isinstance(item, ToolResults):
            for result in item.results:
                content = result.content
                tokens += (
                    _tokens(content) if isinstance(content, str) else _tokens_of_parts(content)
                )
    if offering is not None:
        # `str` of a schema is about as long as its JSON, which only the adapter's own request has.
        tokens += sum(
            _tokens(spec.name + spec.description + str(spec.schema)) for spec in offering.specs
        )
    return tokens


def _tokens_of_turn(turn: AssistantTurn) -> int:
    return -(-len(turn.native) // _BYTES_PER_TOKEN)


def _tokens_of_parts(parts: tuple[Part, ...]) -> int:
    tokens = 0
    for part in parts:
        if isinstance(part, TextPart):
            tokens += _tokens(part.text)
        elif (
            isinstance(part, ImagePart)
            or part.data is None
            or not str(part.media_type).startswith("text/")
        ):
            tokens += _TOKENS_PER_FILE
        else:
            tokens += -(-len(part.data) // _BYTES_PER_TOKEN)
    return tokens


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)
