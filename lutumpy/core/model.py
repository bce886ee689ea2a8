"""What a session asks of a model: one request with a transcript and an offer, one decoded answer back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from lutumpy.core.items import AssistantTurn
from lutumpy.core.safe_text import safe_repr
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.values import dataclass

if TYPE_CHECKING:
    from lutumpy.core.streaming import ChunkStream, ChunkStreamSync

StructuredMode = Literal["native", "tool"]
"""How a model is asked for a typed value: by JSON schema output, or by a tool that takes the value."""


def checked_structured(mode: Any) -> StructuredMode:
    """The option `structured` of a model; raises `ValueError` for what is none."""
    if mode not in get_args(StructuredMode):
        raise ValueError(f'structured={mode!r} is neither "native" nor "tool"')
    checked: StructuredMode = mode
    return checked


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The value that a structured turn asks for.

    Attributes:
        name: A name for it, as the wires want one.
        schema: Its JSON Schema, an object at the root.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Options of one request.

    Attributes:
        temperature: Sampling temperature, left to the provider when `None`.
        max_output_tokens: Limit of the answer in tokens, left to the provider when `None` and the wire allows that.
        extra: Provider parameters, passed through as they are; they win over everything the library sets, but `tools`
            (the provider's own, as web search) stand beside those of the offer.
        output: The text of the answer has to be a value of this schema.
    """

    temperature: float | None = None
    max_output_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    output: OutputSpec | None = None

    def __post_init__(self) -> None:
        check_options(self.temperature, self.max_output_tokens, self.extra)


def check_options(temperature: Any, max_output_tokens: Any, extra: Any, strict: Any = None) -> None:
    """Refuse options that no request can have; what a provider takes of the others, it says itself.

    Raises:
        TypeError: One is of another type.
        ValueError: `max_output_tokens` is below 1.
    """
    if temperature is not None and not _is_number(temperature):
        raise TypeError(f"temperature takes a number, not {temperature!r:.100}; nothing was sent")
    if max_output_tokens is not None:
        if not _is_number(max_output_tokens) or int(max_output_tokens) != max_output_tokens:
            raise TypeError(
                f"max_output_tokens takes a whole number, not {max_output_tokens!r:.100}; nothing was sent"
            )
        if max_output_tokens < 1:
            raise ValueError(
                f"max_output_tokens is 1 or more, not {max_output_tokens}; nothing was sent"
            )
    if extra is not None and (
        not isinstance(extra, Mapping) or not all(isinstance(name, str) for name in extra)
    ):
        raise TypeError(
            f"extra takes a mapping of provider parameters by name, not {extra!r:.100}; nothing was sent"
        )
    if strict is not None and not isinstance(strict, bool):
        raise TypeError(f"strict takes True, False or None, not {strict!r:.100}; nothing was sent")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Model(Protocol):
    """Something that answers a transcript: the adapters, the scripted model, and wrappers of either.

    Two members are optional. `structured` says how it is asked for typed values, `native` when it is missing;
    `takes_forced_choice(extra)` says whether it can be made to call a tool, which holds when it is missing.
    """

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request. Raises `AdapterError`, `InvalidToolConstraints` or `TranscriptError`; changes nothing.

        A session lists a request that ended in an error as `unsettled`, unless the error says that it cost nothing: an
        `AdapterError` by its status or `sent=False`; this library's other errors, which are raised before sending.
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
        """One streamed request, sent when the stream is entered. Raises as `respond` does; changes nothing."""
        ...

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        ...


# A model has `respond`, or one of these at least.
_OTHER_ANSWERS = ("respond_sync", "open_stream", "open_stream_sync")


def check_model(llm: Any) -> None:
    """Raises `TypeError` for what can't be a model: its name alone is what is given most often by mistake."""
    if isinstance(llm, type):
        raise TypeError(
            f"a model is needed, not the class: make one, as {llm.__name__}('gpt'); nothing was sent"
        )
    if not hasattr(llm, "respond") and not any(hasattr(llm, name) for name in _OTHER_ANSWERS):
        raise TypeError(
            f"a model is needed, as OpenAIChat({safe_repr(llm)}), not {type(llm).__name__}; nothing was sent"
        )
