"""A content block of a streamed answer, as far as it has arrived."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.bedrock.decode import CLIENT_TYPES, REASONING
from lutumpy.adapters.object_arguments import parse_streamed
from lutumpy.adapters.replies import clean_field
from lutumpy.plain import json_values
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS
from lutumpy.rules.bedrock.limits import SERVER_TOOL

__all__ = ["StreamedBlock", "kind_of_delta"]


def kind_of_delta(delta: Mapping[str, Any]) -> str:
    """Which kind of block a delta belongs to: its own key, but citations are beside text."""
    key = next((str(name) for name, value in delta.items() if value is not None), "")
    return "text" if key == "citation" else key


class StreamedBlock:
    """A content block as far as it has arrived.

    Args:
        kind: The key of the block, as `toolUse`.
        start: What was under it in its first event; empty for one that begins with a delta.

    Attributes:
        kind: The key of the block.
        id: The id of a call.
        name: The name of the tool, of a call.
        call: Which call for the client it is; -1 for none.
        closed: Nothing more is taken.
        json: The pieces of a call's input.
        half: The first half of a character that was cut in two.
    """

    __slots__ = (
        "_citations",
        "_listed",
        "_pieces",
        "_redacted",
        "_signature",
        "_start",
        "_texts",
        "call",
        "closed",
        "half",
        "id",
        "json",
        "kind",
        "name",
    )

    def __init__(self, kind: str, start: Mapping[str, Any]) -> None:
        self.kind: str = kind
        self._start = start
        self.id: str = clean_field(start.get("toolUseId"))
        self.name: str = clean_field(start.get("name"))
        self.call: int = -1
        self.closed: bool = False
        self.json: list[str] = []
        self.half: str = ""
        self._texts: list[str] = []
        self._signature: list[str] = []
        self._redacted: list[Any] = []
        self._citations: list[Any] = []
        # What deltas of other kinds hold: the parts of a result, pieces of an image.
        self._listed: list[Any] = []
        self._pieces: dict[str, list[str]] = {}

    @property
    def is_client_call(self) -> bool:
        """Whether it is a call that a program answers."""
        return self.kind == "toolUse" and self._start.get("type") in CLIENT_TYPES

    @property
    def is_known(self) -> bool:
        """Whether it is of a kind of which is known whether it is a call for the client."""
        if self.kind == "toolUse":
            return self._start.get("type") in (*CLIENT_TYPES, SERVER_TOOL)
        return self.kind in BLOCK_KEYS

    def add(self, delta: Mapping[str, Any]) -> str:
        """Add a delta; returns the text in it that may be reported, or an empty one."""
        if (citation := delta.get("citation")) is not None:
            self._citations.append(json_values.copied(citation))
        value = delta.get(self.kind)
        if self.kind == "text":
            return self._keep(self._texts, value)
        if self.kind == "toolUse":
            piece = value.get("input") if isinstance(value, Mapping) else _unknown_input(delta)
            kept = self._keep(self.json, piece)
            return kept if self.call >= 0 else ""
        if self.kind == REASONING:
            return self._add_reasoning(value) if isinstance(value, Mapping) else ""
        if self.kind not in BLOCK_KEYS:
            # Its deltas may be under another key.
            for field_value in delta.values():
                if isinstance(field_value, Mapping):
                    self._add_fields(field_value)
        elif isinstance(value, list):
            self._listed += json_values.copied(value)
        elif value is not None:
            self._listed.append(json_values.copied(value))
        return ""

    def _add_fields(self, value: Mapping[str, Any]) -> None:
        """Take a delta of a block of no known kind: texts go on, as those of a call's input do."""
        for key, field_value in value.items():
            if isinstance(field_value, str):
                self._pieces.setdefault(key, []).append(field_value)
            elif field_value is not None:
                self._listed.append({key: json_values.copied(field_value)})

    @staticmethod
    def _keep(pieces: list[str], piece: Any) -> str:
        if not isinstance(piece, str) or not piece:
            return ""
        pieces.append(piece)
        return piece

    def _add_reasoning(self, value: Mapping[str, Any]) -> str:
        self._keep(self._signature, value.get("signature"))
        if value.get("redactedContent"):
            self._redacted.append(value["redactedContent"])
        return self._keep(self._texts, value.get("text"))

    def readable(self, piece: str) -> str:
        """`piece` as text that can be encoded: half a character at its end waits for the other
        half.
        """
        piece, self.half = json_values.hold_half(self.half + piece)
        return json_values.clean_text(piece)

    def value(self) -> dict[str, Any]:
        """The block as a whole answer would hold it."""
        text = "".join(self._texts)
        if self.kind == "text":
            if self._citations:
                # A source may be named without a text; a blank one would be refused.
                cited = {"content": [{"text": text}]} if text else {}
                return {"citationsContent": {**cited, "citations": self._citations}}
            return {"text": text}
        if self.kind == REASONING:
            return {REASONING: self._reasoning(text)}
        if self.kind == "toolUse":
            return {"toolUse": {**self._start, "input": self._input()}}
        if self.kind == "toolResult":
            field_value = self._start.get("content")
            parts: list[Any] = [
                *(field_value if isinstance(field_value, list) else ()),
                *self._listed,
            ]
            return {"toolResult": {**self._start, "content": parts}}
        value = dict(self._start)
        for piece in self._listed:
            if isinstance(piece, Mapping):
                value.update(piece)
        for key, pieces in self._pieces.items():
            field_value = value.get(key)
            text = "".join([field_value if isinstance(field_value, str) else "", *pieces])
            value[key] = parse_streamed(text) if key == "input" else text
        return {self.kind: value}

    def _reasoning(self, text: str) -> dict[str, Any]:
        if self._redacted and not text:
            return {"redactedContent": _joined_blob(self._redacted)}
        reasoning_text: dict[str, Any] = {"text": text}
        if self._signature:
            reasoning_text["signature"] = "".join(self._signature)
        return {"reasoningText": reasoning_text}

    def _input(self) -> Any:
        text = "".join(self.json)
        if not text.strip():
            field_value = self._start.get("input")
            return {} if field_value is None else field_value
        return parse_streamed(text)


def _unknown_input(delta: Mapping[str, Any]) -> str:
    """What a delta of a call says under a key that nobody knows.

    Arguments without it would be others than the model's: they are broken where it isn't the text
    of an input.
    """
    for key, value in delta.items():
        if isinstance(value, Mapping) and isinstance(piece := value.get("input"), str):
            return piece
        if value is not None:
            return f" [{key}, which is not understood]"
    return ""


def _joined_blob(pieces: list[Any]) -> str:
    """Pieces of bytes as one base64 text: each is bytes from the SDK, or base64 of its own."""
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    joined = b""
    for piece in pieces:
        try:
            joined += base64.b64decode(piece) if isinstance(piece, str) else bytes(piece)
        except (binascii.Error, ValueError, TypeError):
            continue
    return base64.b64encode(joined).decode("ascii")
