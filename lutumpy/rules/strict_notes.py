"""Keywords of a schema in words, for the descriptions of strict forms that can't hold them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["describe_keywords", "keyword_note"]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _count(value: Any, noun: str) -> str:
    return f"{value} {noun}" if value == 1 else f"{value} {noun}s"


_NOTES: dict[str, Callable[[Any], str]] = {
    "default": lambda v: "" if v is None else f"Default: {_json(v)}.",
    "examples": lambda v: (
        f"Examples: {', '.join(map(_json, v))}." if isinstance(v, list) else f"Example: {_json(v)}."
    ),
    "deprecated": lambda v: "Deprecated." if v else "",
    "minimum": lambda v: f"At least {v}.",
    "maximum": lambda v: f"At most {v}.",
    "exclusiveMinimum": lambda v: f"More than {v}.",
    "exclusiveMaximum": lambda v: f"Less than {v}.",
    "multipleOf": lambda v: f"A multiple of {v}.",
    "minLength": lambda v: f"At least {_count(v, 'character')}.",
    "maxLength": lambda v: f"At most {_count(v, 'character')}.",
    "minItems": lambda v: f"At least {_count(v, 'item')}.",
    "maxItems": lambda v: f"At most {_count(v, 'item')}.",
    "uniqueItems": lambda v: "No item twice." if v else "",
    "pattern": lambda v: f"Matches the regular expression {v}",
    "format": lambda v: f"Format: {v}.",
}


def keyword_note(key: str, value: Any) -> str:
    """A keyword in words; empty for one that needs none, such as `default: null`."""
    if key in _NOTES:
        return _NOTES[key](value)
    return f"{key}: {_json(value)}."


def describe_keywords(description: str | None, notes: Mapping[str, str]) -> str:
    """`description` and the notes after it, defaults first and lower limits before upper ones."""
    order = {key: position for position, key in enumerate(_NOTES)}
    text = " ".join(notes[key] for key in sorted(notes, key=lambda key: order.get(key, len(order))))
    if not description:
        return text
    end = "" if description.rstrip().endswith((".", "!", "?", ":", ";")) else "."
    return f"{description.rstrip()}{end} {text}"
