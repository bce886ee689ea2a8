"""A content block of a streamed message, as far as it has arrived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.object_arguments import parse_streamed
from lutumpy.adapters.replies import clean_field
from lutumpy.plain import json_values
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES

__all__ = ["BEGINNINGS", "StreamedBlock", "known_delta"]

# Which kind of block each kind of delta belongs to. A delta of another kind is ignored by a block
# that is listed here.
_BELONGS = {
    "citations_delta": "text",
    "signature_delta": "thinking",
    "text_delta": "text",
    "thinking_delta": "thinking",
}
# Blocks whose deltas are all known. Other kinds, present and future, take whatever a delta of
# theirs holds.
_SEALED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})

# What a block begins with whose first event is missing.
BEGINNINGS: Mapping[str, dict[str, Any]] = {
    "text_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "input_json_delta": {"type": "tool_use", "id": "", "name": "", "input": {}},
}

# The field that tells what a delta of no known kind is.
_TELLING = {
    "partial_json": "input_json_delta",
    "text": "text_delta",
    "thinking": "thinking_delta",
    "signature": "signature_delta",
}


def known_delta(kind: str, delta: Mapping[str, Any]) -> str:
    """The kind of a delta: its own, or what its fields say where nobody knows that."""
    if kind in _BELONGS or kind == "input_json_delta":
        return kind
    return next((_TELLING[field] for field in _TELLING if isinstance(delta.get(field), str)), kind)


class StreamedBlock:
    """A content block as far as it has arrived.

    Attributes:
        start: The block as its first event gave it.
        kind: Its type.
        id: Its id, where it has one.
        name: The name of the tool, of a call.
        index: Its index on the wire, where it has one.
        call: Which call for the client it is; -1 for none.
        closed: Nothing more is taken.
        json: The pieces of its input.
        half: The first half of a character that was cut in two.
    """

    __slots__ = (
        "_citations",
        "_pieces",
        "_values",
        "call",
        "closed",
        "half",
        "id",
        "index",
        "json",
        "kind",
        "name",
        "start",
    )

    def __init__(self, start: Mapping[str, Any], index: int | None) -> None:
        self.start: Mapping[str, Any] = start
        self.kind: str = clean_field(start.get("type"))
        self.id: str = clean_field(start.get("id"))
        self.name: str = clean_field(start.get("name"))
        self.index: int | None = index
        self.call: int = -1
        self.closed: bool = False
        self.half: str = ""
        self._pieces: dict[str, list[str]] = {}
        self.json: list[str] = []
        self._citations: list[Any] = []
        self._values: dict[str, Any] = {}

    @property
    def is_known(self) -> bool:
        """Whether it is of a kind of which is known whether it is a call for the client."""
        return self.kind in BLOCK_TYPES

    @property
    def is_words(self) -> bool:
        """Whether it is what the model says or thinks, which never has arguments."""
        return self.kind in ("text", "thinking", "redacted_thinking")

    @property
    def takes_input(self) -> bool:
        """Whether it began as a block with arguments."""
        return "input" in self.start

    def add(self, kind: str, delta: Mapping[str, Any]) -> str:
        """Add a delta; returns the text in it that may be reported, or an empty one."""
        if kind == "input_json_delta":
            return self._add_input(delta.get("partial_json"))
        if self.kind not in _SEALED:
            self._add_fields(delta)
            return ""
        if _BELONGS.get(kind) != self.kind:
            if self.kind == "tool_use" and kind not in _BELONGS:
                # Arguments without it would be others than the model's: they are broken instead.
                self.json.append(f" [{kind}, which is not understood]")
            return ""
        if kind == "citations_delta":
            self._citations.append(json_values.copied(delta.get("citation")))
            return ""
        key = "signature" if kind == "signature_delta" else self.kind
        piece = delta.get(key)
        if not isinstance(piece, str):
            return ""
        self._add_piece(key, piece)
        return piece if key == self.kind else ""

    def _add_input(self, piece: Any) -> str:
        if not isinstance(piece, str) or not piece or self.is_words:
            return ""
        self.json.append(piece)
        return piece if self.call >= 0 else ""

    def _add_fields(self, delta: Mapping[str, Any]) -> None:
        """Take what an unknown delta holds, as `compaction_delta` does: texts go on, other values
        are as last given.
        """
        for key, value in delta.items():
            if key == "type":
                continue
            if isinstance(value, str):
                self._add_piece(key, value)
            elif value is not None or key not in self.start:
                self._values[key] = json_values.copied(value)

    def _add_piece(self, key: str, piece: str) -> None:
        pieces = self._pieces.get(key)
        if pieces is None:
            initial = self.start.get(key)
            pieces = self._pieces[key] = [initial] if isinstance(initial, str) else []
        pieces.append(piece)

    def readable(self, piece: str) -> str:
        """`piece` as text that can be encoded: half a character at its end waits for the other
        half.
        """
        piece, self.half = json_values.hold_half(self.half + piece)
        return json_values.clean_text(piece)

    def value(self) -> dict[str, Any]:
        """The block as an unstreamed message would hold it."""
        value = {**self.start, **self._values}
        for key, pieces in self._pieces.items():
            value[key] = "".join(pieces)
        if self.json:
            text = "".join(self.json)
            if not text.isspace():
                value["input"] = parse_streamed(text)
        if self._citations:
            initial = value.get("citations")
            value["citations"] = [*(initial if isinstance(initial, list) else ()), *self._citations]
        return value
