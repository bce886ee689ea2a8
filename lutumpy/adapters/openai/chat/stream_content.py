"""The content of a streamed chat message: text, or (Mistral) a list of parts that itself arrives in pieces."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.openai.merged_object import MergedObject, join
from lutumpy.adapters.openai.reply_fields import mapping, model_text
from lutumpy.core.streaming import Delta, ReasoningDelta, RefusalDelta, TextDelta

__all__ = ["StreamedContent"]

_TEXT = frozenset({"text"})
_REFUSAL = frozenset({"refusal"})


class _Thinking:
    """A `thinking` part: a list of text parts, whose texts follow each other."""

    __slots__ = ("fields", "inner")

    def __init__(self) -> None:
        self.fields = MergedObject(frozenset())
        self.inner: list[Any] = []

    def add(self, part: dict[str, Any]) -> None:
        for name, value in part.items():
            if name != "thinking":
                self.fields.put(name, value)
                continue
            # Keeps the place that the field has among the others.
            self.fields.put(name, None)
            for piece in value if isinstance(value, list) else [value]:
                piece = {"type": "text", "text": piece} if isinstance(piece, str) else piece
                last = self.inner[-1] if self.inner else None
                if isinstance(last, MergedObject) and _plain(piece):
                    last.add(piece)
                else:
                    self.inner.append(MergedObject(_TEXT, piece) if _plain(piece) else piece)

    def whole(self) -> dict[str, Any]:
        inner = [
            piece.whole() if isinstance(piece, MergedObject) else piece for piece in self.inner
        ]
        return {**self.fields.whole(), "thinking": inner}


class StreamedContent:
    """The `content` of one message."""

    __slots__ = ("_parts", "_pieces", "seen")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._parts: list[Any] | None = None
        self.seen: bool = False

    @property
    def filled(self) -> bool:
        """Whether there is any."""
        return bool(self._parts) or any(self._pieces)

    def add(self, value: Any, out: list[Delta]) -> None:
        """Take a delta's `content`."""
        self.seen = True
        if value is None:
            return
        if isinstance(value, list):
            if self._parts is None:
                self._parts = []
                if text := join(self._pieces):
                    self._parts.append(MergedObject(_TEXT, {"type": "text", "text": text}))
            for part in value:
                _part(self._parts, part, out)
            return
        piece = model_text(value)
        if self._parts is None:
            self._pieces.append(piece)
            if piece:
                out.append(TextDelta(piece))
        elif piece:
            _part(self._parts, piece, out)

    def whole(self) -> Any:
        """As it would stand in a whole message."""
        if self._parts is None:
            return join(self._pieces) if self._pieces else None
        return [
            part.whole() if isinstance(part, (MergedObject, _Thinking)) else part
            for part in self._parts
        ]


def _part(parts: list[Any], part: Any, out: list[Delta]) -> None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    last = parts[-1] if parts else None
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "thinking":
        _tell_thinking(part.get("thinking"), out)
        if not isinstance(last, _Thinking) or last.fields.get("closed") is True:
            last = _Thinking()
            parts.append(last)
        last.add(part)
    elif kind in ("text", "refusal") and isinstance(part.get(kind), str):
        if part[kind]:
            out.append(TextDelta(part[kind]) if kind == "text" else RefusalDelta(part[kind]))
        if (
            isinstance(last, MergedObject)
            and last.get("type") == kind
            and part.keys() <= {"type", kind}
        ):
            last.add(part)
        else:
            parts.append(MergedObject(_TEXT if kind == "text" else _REFUSAL, part))
    else:
        parts.append(part)


def _plain(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and len(part) == 2
    )


def _tell_thinking(value: Any, out: list[Delta]) -> None:
    pieces = [
        piece if isinstance(piece, str) else mapping(piece).get("text") for piece in _as_list(value)
    ]
    if text := "".join([piece for piece in pieces if isinstance(piece, str)]):
        out.append(ReasoningDelta(text))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
