"""What reasoning is bound to in a message of Messages, and what of an item a carrier says."""

from __future__ import annotations

import re
from typing import Any

from lutumpy.adapters.anthropic.decode import REASONING
from lutumpy.adapters.anthropic.original import kind_of
from lutumpy.core.items import Message, TextPart
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode

__all__ = ["bound_form", "is_reminder", "refused_message", "texts_of"]

_PLACE = re.compile(r"messages\.(\d+)\.content\.\d+")


def bound_form(message: bytes) -> bytes:
    """A message without reasoning and marks of the prompt cache, which no reasoning is bound to
    [documentation: "Prefix checks"]; empty if nothing is left.
    """
    if not any(word in message for word in (b"thinking", b'"cache_control"')):
        return message
    fields = json_values.decode(message)
    content = fields.get("content")
    if isinstance(content, list):
        kept = [block for block in content if kind_of(block) not in REASONING]
        if content and not kept:
            return b""
        fields["content"] = [_without_mark(block) for block in kept]
    return encode(fields)


def _without_mark(block: Any) -> Any:
    if isinstance(block, dict) and "cache_control" in block:
        return {name: value for name, value in block.items() if name != "cache_control"}
    return block


def refused_message(error: AdapterError) -> int | None:
    """Which message has the reasoning that an error refuses for what comes before it; `None` for
    other errors. The text is the vendor's [documentation: "Prefix checks"].
    """
    text = str(error)
    if error.status != 400 or "bound to a different conversation" not in text:
        return None
    found = _PLACE.search(text)
    return int(found[1]) if found is not None else None


def is_reminder(message: Message) -> bool:
    """Whether a message for one turn can be said as a system text for one turn."""
    return message.role in ("system", "developer") and message.verbatim is None


def texts_of(message: Message) -> list[str]:
    """Its texts, but for blank ones, which the API refuses."""
    return [p.text for p in message.parts if isinstance(p, TextPart) and p.text.strip()]
