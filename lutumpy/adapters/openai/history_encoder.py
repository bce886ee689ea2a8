"""What the encoders of both OpenAI wires share: fragments, names and ids of other providers, and what can be sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic_core import from_json

from lutumpy.core import json_values
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
)
from lutumpy.core.json_values import encode_text
from lutumpy.core.parts import cut_arguments, cut_text
from lutumpy.errors import TranscriptError
from lutumpy.rules.call_ids import CallIdRule
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_NAME, NAME

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "UNNAMED",
    "HistoryEncoder",
    "arguments_object",
    "cut_call",
    "fits_name",
    "long_calls",
    "text_and_calls",
]

UNNAMED = "unknown_tool"
"""What stands in a history for the name that a call came without: OpenAI refuses an empty one."""


@lru_cache(maxsize=1024)
def fits_name(name: str) -> bool:
    """Whether OpenAI takes a call of this name in a history."""
    return len(name) <= MAX_NAME and NAME.fullmatch(name) is not None


class HistoryEncoder(ABC):
    """Encodes items, once each, into ready JSON fragments; the subclasses know the wire."""

    __slots__ = ("_ends", "_ids", "_names", "_own", "_own_limit", "fragments", "instructions")

    api = ""

    def __init__(self, ids: CallIdRule, own_limit: int) -> None:
        self.fragments: list[bytes] = []
        # A system message that the wire takes in a field of its own, as JSON; only a history that was read has one.
        self.instructions: bytes = b""
        # Ids of the wire's own answers go back as they came up to this many characters; longer ones as other wires' do.
        self._own_limit = own_limit
        self._ids = Renamer(ids.pattern, ids.limit, ids.prefix)
        self._names = Renamer(NAME, MAX_NAME, "tool_")
        # The last turn came from this very wire, so the ids of its results are sent as they are.
        self._own = False
        # What the fragments end with: nothing to answer yet, something to answer, or an answer.
        self._ends = "nothing"

    def add(self, item: Item) -> None:
        """Encode the next item."""
        verbatim = item.verbatim
        if verbatim is not None and verbatim.api != self.api:
            verbatim = None
        if type(item) is ToolResults:
            if verbatim is None:
                self._results(item.results)
            else:
                self._as_read(verbatim.entries)
            self._ends = "open"
            return
        before = len(self.fragments)
        if isinstance(item, Message):
            if verbatim is None:
                self._message(item)
            elif verbatim.system:
                self.instructions = verbatim.entries[0]
            else:
                self._as_read(verbatim.entries)
            if len(self.fragments) > before and (
                self._ends == "turn" or item.role in ("user", "assistant")
            ):
                self._ends = "open"
        elif isinstance(item, AssistantTurn):
            self._own = item.api == self.api
            if verbatim is not None:
                self._as_read(
                    self._without_reasoning(verbatim.entries)
                    if item.reasoning_dropped
                    else verbatim.entries
                )
            elif self._own:
                if item.native:
                    self._replay(item)
            else:
                self._project(item)
            if len(self.fragments) > before:
                self._ends = "turn"

    def copy(self) -> Self:
        """An independent copy, for items that are not there to stay."""
        twin = type(self).__new__(type(self))
        twin.fragments = self.fragments.copy()
        twin.instructions = self.instructions
        twin._own_limit = self._own_limit
        twin._ids = self._ids.copy()
        twin._names = self._names.copy()
        twin._own = self._own
        twin._ends = self._ends
        return twin

    def entries(self) -> list[bytes]:
        """Everything encoded so far, for a request: what goes into one JSON array.

        Raises:
            TranscriptError: there is nothing that the model could answer.
        """
        if self._ends == "turn":
            raise TranscriptError(
                "the transcript ends with an answer of the model, so there is nothing to answer; push a message first"
            )
        if self._ends == "nothing":
            what = "holds instructions only" if self.fragments or self.instructions else "is empty"
            raise TranscriptError(
                f"the transcript {what}, so there is nothing to answer; push a user message first"
            )
        return self.fragments.copy()

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        return b"[%b]" % b",".join(self.fragments)

    def _as_read(self, entries: tuple[bytes, ...]) -> None:
        """Entries of this very wire go back as they came."""
        self.fragments.extend(entries)

    @abstractmethod
    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Entries of this very wire without the reasoning among them."""

    @abstractmethod
    def _message(self, message: Message) -> None:
        """Encode a message."""

    @abstractmethod
    def _replay(self, turn: AssistantTurn) -> None:
        """Encode a turn of this very wire, as it came."""

    @abstractmethod
    def _project(self, turn: AssistantTurn) -> None:
        """Encode a turn of another wire, as far as this one can say it."""

    @abstractmethod
    def _results(self, results: Sequence[ResultBlock]) -> None:
        """Encode the results of a turn."""

    def _id(self, call_id: str) -> str:
        return call_id if self._own and len(call_id) <= self._own_limit else self._ids(call_id)

    def _name(self, name: str) -> str:
        return self._names(name) if name else UNNAMED

    def _unfit(self, turn: AssistantTurn) -> list[CallBlock]:
        """The calls of a turn of this wire whose names it refuses in a history, though it let the model write them."""
        return [c for c in turn.calls if not fits_name(c.name) and c.name and c.position >= 0]


def long_calls(turn: AssistantTurn) -> list[CallBlock]:
    """The calls of a turn of this wire whose arguments are longer than OpenAI takes back."""
    return [
        c
        for c in turn.calls
        if len(c.arguments) > MAX_ARGUMENTS and c.position >= 0 and c.kind in ("function", "custom")
    ]


def cut_call(call: CallBlock) -> str:
    """The arguments of such a call as they can be sent back: their beginning, in an object where they are one."""
    return (
        cut_text(call.arguments, MAX_ARGUMENTS)
        if call.kind == "custom"
        else cut_arguments(call.arguments, MAX_ARGUMENTS)
    )


def text_and_calls(turn: AssistantTurn) -> list[str | CallBlock]:
    """What another wire is told of a turn (rule R2): its text, pieces that belong together joined, and its calls."""
    found: list[str | CallBlock] = []
    joins = False
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            if joins:
                found[-1] = f"{found[-1]}{block.text}"
            else:
                found.append(block.text)
            joins = True
            continue
        joins = False
        if isinstance(block, CallBlock) and block.answerable:
            found.append(block)
    return [piece for piece in found if not isinstance(piece, str) or piece.strip()]


def arguments_object(call: CallBlock) -> str:
    """The arguments of another wire's call as the text of a JSON object, whatever the model wrote (rule R3)."""
    text = call.arguments
    if call.kind not in ("function", "function_call"):
        wrapped = encode_text({"input": text})
        return wrapped if len(wrapped) <= MAX_ARGUMENTS else cut_arguments(text, MAX_ARGUMENTS)
    if not text or text.isspace():
        return "{}"
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # a lone surrogate makes it no string for the parser
        value = text
    if isinstance(value, dict):
        text = json_values.clean_text(text)
    else:
        text = "{}" if value is None else encode_text({"INVALID_JSON": text})
    return text if len(text) <= MAX_ARGUMENTS else cut_arguments(call.arguments, MAX_ARGUMENTS)
