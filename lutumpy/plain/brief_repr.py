"""What the values of this library look like in a console, a log and a failing test: one short line.

A value says what it is and its state in at most `MOST` characters. Long texts and inputs are cut,
containers are counted, and what a provider sent isn't shown at all. Whoever wants all of a value
reads its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import MISSING, Field
from typing import Any

from lutumpy.plain.preview import MARK, shorten
from lutumpy.plain.safe_text import safe_repr

__all__ = ["MOST", "brief", "brief_line", "brief_list", "brief_value"]

MOST = 120
"""The most characters of a `repr`."""

_MOST_OF_A_FIELD = 60
_LEAST_OF_A_FIELD = 16


def brief(value: object, most: int = _MOST_OF_A_FIELD) -> str:
    """`repr(value)` in at most `most` characters; containers that are longer are counted."""
    if isinstance(value, str):
        # A long text is cut before it is quoted: it may have millions of characters.
        text = repr(value[: most + 1])
        return text if len(text) <= most and len(value) <= most else _cut_quoted(value, most)
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, (Mapping, Set, list, tuple)) and len(value) > 8:
        return _count(value)
    text = safe_repr(value)
    if len(text) <= most:
        return text
    if isinstance(value, (Mapping, Set, list, tuple)):
        return _count(value)
    return shorten(text, most)


def brief_list(names: Iterable[str], most: int) -> str:
    """Names with commas between them; of many the first, and how many there are besides."""
    every = list(names)
    text = ", ".join(every)
    shown = len(every)
    while len(text) > most and shown > 0:
        shown -= 1
        text = ", ".join([*every[:shown], f"{len(every) - shown} more"])
    return text


def brief_line(kind: str, *parts: str) -> str:
    """`<kind part part>`, without the empty parts."""
    text = shorten(" ".join([kind, *filter(None, parts)]), MOST - 2)
    return f"<{text}>"


def brief_value(value: Any, fields: Mapping[str, Field[Any]]) -> str:
    """The `repr` of a value: all its fields, or the first of those that aren't as usual."""
    name = type(value).__qualname__
    whole = ", ".join(
        [f"{key}={brief(getattr(value, key))}" for key, field in fields.items() if field.repr]
    )
    if len(name) + len(whole) + len("()") <= MOST:
        return f"{name}({whole})"
    text, room = "", MOST - len(name) - len(f"(, {MARK})")
    for key, field in fields.items():
        held = getattr(value, key)
        if not field.repr or _is_usual(held, field):
            continue
        comma = ", " if text else ""
        left = room - len(f"{text}{comma}{key}=")
        shown = f"{key}={brief(held, max(min(left, _MOST_OF_A_FIELD), _LEAST_OF_A_FIELD))}"
        if len(text) + len(comma) + len(shown) > room:
            return f"{name}({text}{comma}{MARK})"
        text += comma + shown
    return f"{name}({text})"


def _count(value: Any) -> str:
    return f"<{len(value)} {'entry' if len(value) == 1 else 'entries'}>"


def _is_usual(held: Any, field: Field[Any]) -> bool:
    """Whether a field has its default, so that showing it says nothing."""
    if held is field.default:
        return True
    usual = field.default if field.default_factory is MISSING else field.default_factory()
    return type(held) is type(usual) and type(held) in _COMPARED and bool(held == usual)


_COMPARED = frozenset({bool, int, float, str, tuple, list, dict, frozenset})


def _cut_quoted(text: str, most: int) -> str:
    # What is quoted may be longer than the text: `\n` takes two characters, and some take ten.
    kept = most - 2 - len(MARK)
    while kept > 0:
        quoted = repr(text[:kept] + MARK)
        if len(quoted) <= most:
            return quoted
        kept -= max(1, len(quoted) - most)
    return repr(MARK)
