"""Messages that were read from a history of this API, in the forms that a request may need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lutumpy.adapters.anthropic.decode import REASONING
from lutumpy.adapters.anthropic.parts import text_blocks
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode

# Entries are kept as the bytes that were read, and parsed only for a request that needs another
# form of them: that is rare, so nothing parsed is kept.
__all__ = [
    "as_blocks",
    "content_of",
    "entries_for_any_host",
    "entries_without_reasoning",
    "kind_of",
    "system_blocks",
    "takes_system_breakpoint",
]


def content_of(entry: bytes) -> Any:
    """The content of a message."""
    return json_values.decode(entry).get("content")


def kind_of(block: Any) -> str:
    """The type of a content block; empty when it has none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def as_blocks(entry: bytes) -> bytes:
    """The message with a list as its content, and that at its end, so that a breakpoint can be put
    into its last block.
    """
    message = json_values.decode(entry)
    if "content" not in message:
        return entry
    content = message.pop("content")
    return encode(
        {**message, "content": text_blocks([content]) if isinstance(content, str) else content}
    )


def entries_for_any_host(entries: Iterable[bytes]) -> list[bytes]:
    """A turn's messages without what only their host can read: reasoning, what it has run itself,
    and what its texts cite of that.
    """
    return _write_again(entries, _for_any_host)


def _for_any_host(content: list[Any]) -> list[Any]:
    kept = [block for block in content if kind_of(block) in ("text", "tool_use")]
    return [{key: block[key] for key in block if key != "citations"} for block in kept]


def entries_without_reasoning(entries: Iterable[bytes]) -> list[bytes]:
    """The messages without thinking; one that was nothing else is left out."""
    return _write_again(entries, _without_reasoning)


def _without_reasoning(content: list[Any]) -> list[Any]:
    return [block for block in content if kind_of(block) not in REASONING]


def _write_again(entries: Iterable[bytes], change: Callable[[list[Any]], list[Any]]) -> list[bytes]:
    kept: list[bytes] = []
    for entry in entries:
        message = json_values.decode(entry)
        content = message.get("content")
        if isinstance(content, list):
            message["content"] = change(content)
        if message.get("content") or not content:
            kept.append(encode(message))
    return kept


def system_blocks(system: bytes) -> list[Any]:
    """The blocks of a request's `system`."""
    value = json_values.decode(system) if system else ""
    if isinstance(value, str):
        return list(text_blocks([value])) if value else []
    return list(value)


def takes_system_breakpoint(block: Any) -> bool:
    """Whether the last block of a `system` takes a breakpoint: it is a text, and has none."""
    if kind_of(block) != "text" or "cache_control" in block:
        return False
    text = block.get("text")
    return isinstance(text, str) and bool(text.strip())
