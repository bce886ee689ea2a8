"""What `TextTools` needs of a parser: the calls in a text, and the text without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from lutumpy import ToolDef
from lutumpy.plain.values import dataclass

__all__ = [
    "CallSpeller",
    "CallStreamFormatter",
    "OfferParser",
    "ParsedCall",
    "ParsedText",
    "ReasoningFormatter",
    "StreamFormatter",
    "ToolCallParser",
    "spell_call",
]


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One call that is in a text.

    Attributes:
        name: The tool's name as the model wrote it; empty when it can't be read.
        arguments: The JSON text of the arguments as the model wrote it, `{}` when it wrote none.
            For a call with a `problem`: as much of it as was written.
        problem: `truncated` when the text ends inside the call, `malformed` when the call can't be
            read. Such a call is never run.
        detail: What is wrong with it, in words for the model.
        open_ended: Nothing ends the call but the end of the text, so in an answer that was cut it
            is cut.
        by_schema: Paths of arguments that the model wrote without a type, and that the tool's
            schema made what they are; they become `call.repairs` (rule C5).
    """

    name: str
    arguments: str
    problem: Literal["truncated", "malformed"] | None = None
    detail: str | None = None
    open_ended: bool = False
    by_schema: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What a model's text holds.

    Attributes:
        text: The text without calls and thinking: what the user sees.
        calls: The calls in order, those that can't be read included.
        format_errors: What was wrong, in words for the model. A text that isn't the `detail` of a
            call becomes an issue of its own.
        reasoning: What the model thought, without the tags around it; it becomes the `reasoning`
            of the answer.
        empty_blocks: How many blocks of calls held no call, as an empty array between the tags.
            That is an issue where a call was required.
    """

    text: str
    calls: Sequence[ParsedCall] = ()
    format_errors: Sequence[str] = ()
    reasoning: str = ""
    empty_blocks: int = 0


class StreamFormatter(Protocol):
    """Turns one answer that arrives in pieces into what the user sees."""

    def feed(self, chunk: str) -> str:
        """Take the next piece; returns the text that can be shown now."""
        ...

    def flush(self) -> str:
        """The answer has ended; returns held-back text that isn't part of a call."""
        ...


@runtime_checkable
class CallStreamFormatter(Protocol):
    """A stream formatter that also knows the calls, as soon as they are complete."""

    @property
    def calls(self) -> Sequence[ParsedCall]:
        """The calls that are complete so far; later pieces only add calls behind them."""
        ...

    def feed(self, chunk: str) -> str:
        """As for every stream formatter."""
        ...

    def flush(self) -> str:
        """As for every stream formatter."""
        ...


@runtime_checkable
class ReasoningFormatter(Protocol):
    """A stream formatter that takes thinking out of the text."""

    def feed(self, chunk: str) -> str:
        """As for every stream formatter."""
        ...

    def flush(self) -> str:
        """As for every stream formatter."""
        ...

    def take_reasoning(self) -> str:
        """The thinking since the last time; all of it, joined, is `ParsedText.reasoning`."""
        ...


class ToolCallParser(Protocol):
    """How a model that only writes text calls tools: its instruction, and how calls are read.

    `tags` are the texts around a call. A parser may also have
    `format_call(name, arguments) -> str`, which spells calls that a model with native tool calling
    made earlier in the conversation; without it, they are written as
    `{"name": ..., "args": ...}` between the tags. If a stream formatter has `calls`, there are
    events for calls while the answer still arrives; otherwise at its end.

    A parser that takes thinking out of the text has `thinking`, the pairs of texts around it, and
    its formatters have `take_reasoning()`. If a parser has no `thinking`, text between
    `<think>` and `</think>` at the beginning of an answer is taken out before the parser sees it.

    A parser may have `results`, a `ResultForm`: how results are written for its models.

    `parse` and `stream_formatter` may have a further parameter `definitions`: the tools of the
    offer, `None` where none is known. A parser that has it reads values without types by the
    schemas, and calls without tags by the names.
    """

    @property
    def tags(self) -> tuple[str, str]:
        """The texts before and after a call."""
        ...

    def format_instruction(self, definitions: Sequence[ToolDef]) -> str:
        """The instruction: the tools, and how to call them. Called once per offer (rule T5)."""
        ...

    def parse(self, text: str) -> ParsedText:
        """The calls in a whole answer. Never raises, and never finds a call that isn't there."""
        ...

    def stream_formatter(self) -> StreamFormatter:
        """A new formatter for one answer; all it returns, joined, is `ParsedText.text`."""
        ...


class OfferParser(Protocol):
    """The optional part of a parser that reads by the offer."""

    def parse(self, text: str, *, definitions: Sequence[ToolDef] | None = None) -> ParsedText:
        """As `ToolCallParser.parse`, with the tools of the offer."""
        ...

    def stream_formatter(self, *, definitions: Sequence[ToolDef] | None = None) -> StreamFormatter:
        """As `ToolCallParser.stream_formatter`, with the tools of the offer."""
        ...


@runtime_checkable
class CallSpeller(Protocol):
    """An optional part of a parser."""

    def format_call(self, name: str, arguments: str) -> str:
        """A call as the instruction says to write it; `arguments` is JSON text."""
        ...


def spell_call(parser: ToolCallParser, name: str, arguments: str) -> str:
    """A call as a model of this parser would have written it."""
    if isinstance(parser, CallSpeller):
        return parser.format_call(name, arguments)
    start, end = parser.tags
    return f'{start}{{"name": "{name}", "args": {arguments}}}{end}'
