"""Digests of a conversation: one for each committed item, of this item and all before it."""

from __future__ import annotations

from typing import Any

from lutumpy.core.head import Head
from lutumpy.core.items import (
    AssistantTurn,
    FoundTool,
    Item,
    Message,
    Part,
    RawPart,
    TextPart,
)
from lutumpy.plain import json_values

__all__ = ["Digests"]


class Digests:
    """An `ItemEncoder` that keeps one digest for each committed item.

    A copy shares the digests of what it was copied from, so it costs the same however long the
    conversation is.
    """

    __slots__ = ("_base", "_base_length", "_chain")

    def __init__(self) -> None:
        # The digests of the one that this was copied from, as many as it had then.
        self._base: list[bytes] = []
        self._base_length = 0
        self._chain = [_sha256(b"lutumpy conversation")]

    def add(self, item: Item) -> None:
        if not (isinstance(item, Message) and item.ephemeral):
            self._chain.append(_sha256(self._last() + _content(item)))

    def copy(self) -> Digests:
        twin = Digests()
        if self._base_length:
            twin._base, twin._base_length = self._base, self._base_length
            twin._chain = self._chain.copy()
        else:
            twin._base, twin._base_length, twin._chain = self._chain, len(self._chain), []
        return twin

    def at(self, count: int) -> bytes:
        """The digest of the first `count` committed items."""
        if count < self._base_length:
            return self._base[count]
        return self._chain[count - self._base_length]

    def head(self) -> Head:
        """The digest of all of them."""
        return Head(self._base_length + len(self._chain) - 1, self._last().hex())

    def _last(self) -> bytes:
        return self._chain[-1] if self._chain else self._base[self._base_length - 1]


def _content(item: Item) -> bytes:
    """What an item says, without what differs from one request to the next."""
    if isinstance(item, AssistantTurn):
        return b"turn " + json_values.encode(item.api) + item.native
    if isinstance(item, Message):
        if item.late is not None:
            late = item.late
            fields = [late.result.call_id, late.result.status, late.reason]
            parts = [_part_content(part) for part in item.parts]
            return b"late " + json_values.encode([*fields, parts])
        return b"message " + json_values.encode(
            [item.role, [_part_content(part) for part in item.parts]]
        )
    results: list[list[Any]] = []
    for result in item.results:
        content: Any = result.content
        if not isinstance(content, str):
            content = [_part_content(part) for part in content]
        results.append([result.call_id, result.name, result.status, content])
    return b"results " + json_values.encode(results)


def _part_content(part: Part) -> list[str | None]:
    if isinstance(part, TextPart):
        return ["text", part.text]
    if isinstance(part, FoundTool):
        return ["found_tool", part.name, part.description, part.data.decode()]
    if isinstance(part, RawPart):
        return ["raw", part.api, part.data.decode(), part.text]
    data = None if part.data is None else _sha256(part.data).hex()
    return [type(part).__name__, part.media_type, part.url, data]


def _sha256(data: bytes) -> bytes:
    import hashlib  # rare, and slow to import

    return hashlib.sha256(data).digest()
