"""What a session asks of a model: a request with a transcript and an offer, a decoded answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from lutumpy.core.items import AssistantTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.prefix import OnPrefixChange, checked_policy
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy.core.streaming import ChunkStream, ChunkStreamSync

StructuredMode = Literal["native", "tool"]
"""How a model is asked for a typed value: by JSON schema output, or by a tool that takes the value.
"""


def checked_structured(mode: Any) -> StructuredMode:
    """The option `structured` of a model, checked. Raises `ValueError` if it isn't one."""
    if mode not in get_args(StructuredMode):
        raise ValueError(f'structured={mode!r} is neither "native" nor "tool"')
    checked: StructuredMode = mode
    return checked


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Options of one request.

    Attributes:
        temperature: Sampling temperature; `None` leaves it to the provider.
        max_output_tokens: Limit of the answer in tokens; `None` leaves it to the provider, if the
            API allows that.
        extra: Provider parameters, passed through unchanged. They win over everything that the
            library sets; only `tools` (the provider's own, such as web search) are added to those
            of the offer. `UNSET` takes a parameter away.
        output: The text of the answer must be a value of this schema.
        effort: How much the model should think, in the provider's word, as `low`; `None` leaves it
            to the adapter and the provider.
        on_prefix_change: What happens when settings have changed since the turn before, see
            `OnPrefixChange`; `None` leaves it to the adapter.
    """

    temperature: float | None = None
    max_output_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    output: OutputSpec | None = None
    effort: str | None = None
    on_prefix_change: OnPrefixChange | None = None

    def __post_init__(self) -> None:
        check_options(self.temperature, self.max_output_tokens, self.extra)
        check_effort(self.effort)
        if self.on_prefix_change is not None:
            checked_policy(self.on_prefix_change)


def check_options(temperature: Any, max_output_tokens: Any, extra: Any, strict: Any = None) -> None:
    """Refuse options that no request can have.

    Whether a provider accepts the others, it says itself.

    Raises:
        TypeError: One is of another type.
        ValueError: `max_output_tokens` is below 1.
    """
    if temperature is not None and not _is_number(temperature):
        raise TypeError(f"temperature takes a number, not {temperature!r:.100}; nothing was sent")
    if max_output_tokens is not None:
        if not _is_number(max_output_tokens) or int(max_output_tokens) != max_output_tokens:
            raise TypeError(
                f"max_output_tokens takes a whole number, not {max_output_tokens!r:.100}; "
                "nothing was sent"
            )
        if max_output_tokens < 1:
            raise ValueError(
                f"max_output_tokens is 1 or more, not {max_output_tokens}; nothing was sent"
            )
    if extra is not None and (
        not isinstance(extra, Mapping) or not all(isinstance(name, str) for name in extra)
    ):
        raise TypeError(
            f"extra takes a mapping of provider parameters by name, not {extra!r:.100}; "
            "nothing was sent"
        )
    if strict is not None and not isinstance(strict, bool):
        raise TypeError(f"strict takes True, False or None, not {strict!r:.100}; nothing was sent")


def check_effort(effort: Any) -> None:
    """Refuse an effort that isn't a word. Which words there are, the provider says.

    Raises:
        TypeError: It is of another type.
        ValueError: It is blank.
    """
    if effort is None:
        return
    if not isinstance(effort, str):
        raise TypeError(
            f"effort takes the provider's word, as 'low', not {effort!r:.100}; nothing was sent"
        )
    if not effort.strip():
        raise ValueError("effort is blank; nothing was sent")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Model(Protocol):
    """Something that answers a transcript: an adapter, the scripted model, or a wrapper of one.

    Three members are optional. `structured` says how it is asked for typed values (`native` if it
    is missing). `takes_forced_choice(extra)` says whether it can be forced to call a tool (yes if
    it is missing). `defers_tools` says whether its API keeps tools out of the prompt until a search
    has found them (no if it is missing).
    """

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """Make one request; the transcript is not changed.

        A session lists a request that ended in an error as `unsettled`, unless the error says that
        it cost nothing: an `AdapterError` by its status or by `sent=False`, this library's other
        errors because they are raised before anything is sent.

        Raises:
            AdapterError: the request failed, or the answer can't be read.
            InvalidToolConstraints: the API refuses the offer.
            TranscriptError: there is nothing to send.
        """
        ...

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        ...


class StreamingModel(Model, Protocol):
    """A model that can also answer piece by piece."""

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStream:
        """One streamed request, sent when the stream is entered. Raises what `respond` raises."""
        ...

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        ...


# A model for one way of calling may lack the others: any one of these is enough.
_OTHER_ANSWERS = ("respond_sync", "open_stream", "open_stream_sync")


def check_model(llm: Any) -> None:
    """Raise `TypeError` for what can't be a model. The usual mistake is to pass only its name."""
    if isinstance(llm, type):
        raise TypeError(
            f"a model is needed, not the class: make one, as {llm.__name__}('gpt'); "
            "nothing was sent"
        )
    if not hasattr(llm, "respond") and not any(hasattr(llm, name) for name in _OTHER_ANSWERS):
        raise TypeError(
            f"a model is needed, as OpenAIChat({safe_repr(llm)}), not {type(llm).__name__}; "
            "nothing was sent"
        )
