"""The content of a streamed chat message: deltas of a text, or (Mistral) of a list of parts."""

#   state  | content so far          | a text arrives           | a list arrives
#   -------+-------------------------+--------------------------+-----------------------------
#   text   | the deltas of one text  | one more delta           | the text becomes the first part
#   parts  | a list of parts         | as a part of type `text` | its parts are merged one by one
#
# A part continues the last one when both are a text, a refusal, a `thinking` part (Mistral) or a
# `reasoning` part (Databricks); every other part comes whole. The last two have lists of texts of
# their own. A signature comes behind its text, and ends the part.

from __future__ import annotations

from typing import Any

from lutumpy.adapters.openai.merged_object import MergedObject, join_text
from lutumpy.adapters.openai.reply_fields import (
    NESTED_TEXTS,
    model_text,
    nested_texts,
    text,
)
from lutumpy.core.streaming import Delta, ReasoningDelta, RefusalDelta, TextDelta
from lutumpy.plain.json_values import copied

__all__ = ["StreamedContent"]

_GROWING_TEXT = frozenset({"text"})
_GROWING_REFUSAL = frozenset({"refusal"})
_NOTHING_GROWS: frozenset[str] = frozenset()


class _Nested:
    """A part with a list of texts of its own, merged where they follow each other.

    Args:
        key: The field of the list.
    """

    __slots__ = ("fields", "inner", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.fields = MergedObject(_NOTHING_GROWS)
        self.inner: list[Any] = []

    @property
    def is_complete(self) -> bool:
        """Whether what follows is a part of its own."""
        last = self.inner[-1] if self.inner else None
        is_signed = isinstance(last, MergedObject) and bool(last.get("signature"))
        return is_signed or self.fields.get("closed") is True

    def add(self, part: dict[str, Any]) -> None:
        """Merge the next delta of the part."""
        for name, value in part.items():
            if name != self.key:
                self.fields.add_field(name, value)
                continue
            # So that the field keeps its place among the others.
            self.fields.add_field(name, None)
            for inner in _as_list(value):
                self._add_inner(_as_part(inner))

    def _add_inner(self, inner: Any) -> None:
        if not _is_text(inner):
            self.inner.append(copied(inner))
            return
        last = self.inner[-1] if self.inner else None
        # A signature seals the text before it.
        if (
            isinstance(last, MergedObject)
            and last.get("type") == inner["type"]
            and not last.get("signature")
        ):
            last.add(inner)
        else:
            self.inner.append(MergedObject(_GROWING_TEXT, inner))

    def whole(self) -> dict[str, Any]:
        """The part that the deltas so far make up."""
        inner = [part.whole() if isinstance(part, MergedObject) else part for part in self.inner]
        return {**self.fields.whole(), self.key: inner}


class StreamedContent:
    """The `content` of one message."""

    __slots__ = ("_parts", "_texts", "seen")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._parts: list[Any] | None = None
        self.seen: bool = False
        """Whether any delta had the field `content`, `null` included."""

    @property
    def filled(self) -> bool:
        """Whether there is any content."""
        return bool(self._parts) or any(self._texts)

    @property
    def has_other_parts(self) -> bool:
        """Whether there is a part that is neither text, nor a refusal, nor thinking."""
        return any(isinstance(part, dict) for part in self._parts or ())

    def add(self, value: Any, out: list[Delta]) -> None:
        """Take a delta's `content`."""
        self.seen = True
        if value is None:
            return
        if isinstance(value, list):
            if self._parts is None:
                self._parts = []
                if before := join_text(self._texts):
                    self._parts.append(MergedObject(_GROWING_TEXT, _as_part(before)))
            for part in value:
                _merge_part(self._parts, part, out)
            return
        delta = model_text(value)
        if self._parts is None:
            self._texts.append(delta)
            if delta:
                out.append(TextDelta(delta))
        elif delta:
            _merge_part(self._parts, delta, out)

    def whole(self) -> Any:
        """The `content` of a whole message."""
        if self._parts is None:
            return join_text(self._texts) if self._texts else None
        return [
            part.whole() if isinstance(part, (MergedObject, _Nested)) else part
            for part in self._parts
        ]


def _merge_part(parts: list[Any], part: Any, out: list[Delta]) -> None:
    part = _as_part(part)
    last = parts[-1] if parts else None
    kind = text(part.get("type")) if isinstance(part, dict) else None
    if kind is not None and (texts := nested_texts(part)) is not None:
        if reasoning := "".join(texts):
            out.append(ReasoningDelta(reasoning))
        key = NESTED_TEXTS[kind]
        if not isinstance(last, _Nested) or last.key != key or last.is_complete:
            last = _Nested(key)
            parts.append(last)
        last.add(part)
    elif kind in ("text", "refusal") and isinstance(part.get(kind), str):
        if part[kind]:
            out.append(TextDelta(part[kind]) if kind == "text" else RefusalDelta(part[kind]))
        # A part with further fields (annotations) is one of its own.
        has_only_text = part.keys() <= {"type", kind}
        if isinstance(last, MergedObject) and last.get("type") == kind and has_only_text:
            last.add(part)
        else:
            growing = _GROWING_TEXT if kind == "text" else _GROWING_REFUSAL
            parts.append(MergedObject(growing, part))
    else:
        parts.append(copied(part))


def _as_part(value: Any) -> Any:
    """A text as the part that it stands for; anything else as it is."""
    return {"type": "text", "text": value} if isinstance(value, str) else value


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("type"), str)
        and isinstance(part.get("text"), str)
        and part.keys() <= {"type", "text", "signature"}
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
