"""Where a request differs from the recorded one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lutumpy.plain.pointer import pointer, tokens
from lutumpy.plain.preview import shorten
from lutumpy.testing.cassettes.secrets import MASK

__all__ = ["ABSENT", "Difference", "first_difference"]

_LONGEST_SHOWN = 120
_CONTEXT = 30
"""Characters of equal text that are shown before the first one that differs."""


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()
"""Stands for a value that isn't there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place at which two JSON values differ.

    Attributes:
        pointer: The place, as a JSON Pointer; empty for the whole value.
        recorded: What one of them has there, or `ABSENT`.
        sent: What the other one has there, or `ABSENT`.
    """

    pointer: str
    recorded: Any
    sent: Any

    def __str__(self) -> str:
        recorded, sent = self.recorded, self.sent
        if isinstance(recorded, str) and isinstance(sent, str):
            recorded, sent = _from_first_difference(recorded, sent)
        place = self.pointer or "the whole body"
        return f"{place}: {_show(recorded)} was recorded, {_show(sent)} is sent"


def first_difference(recorded: Any, sent: Any, ignored: Iterable[str] = ()) -> Difference | None:
    """Where two JSON values differ first, in the order of sorted keys; `None` if they are equal.

    A mask in a recorded text stands for anything: which keys there are goes by the machine.

    Args:
        recorded: One value.
        sent: The other value.
        ignored: JSON Pointers to what isn't compared; a step `*` stands for any key or index.
    """
    patterns = [tokens(text) for text in ignored]
    # A stack in place of recursion: a body may be nested deeper than Python's own.
    waiting: list[tuple[tuple[str | int, ...], Any, Any]] = [((), recorded, sent)]
    while waiting:
        path, one, other = waiting.pop()
        if any(_fits(path, pattern) for pattern in patterns):
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            keys = sorted({*one, *other}, reverse=True)
            waiting += [((*path, k), one.get(k, ABSENT), other.get(k, ABSENT)) for k in keys]
        elif isinstance(one, list) and isinstance(other, list):
            indices = range(max(len(one), len(other)) - 1, -1, -1)
            waiting += [((*path, i), _at(one, i), _at(other, i)) for i in indices]
        elif not _equal_scalars(one, other):
            return Difference(pointer(path), one, other)
    return None


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else ABSENT


def _fits(path: tuple[str | int, ...], pattern: list[str]) -> bool:
    if len(path) != len(pattern):
        return False
    return all(wanted in ("*", str(step)) for step, wanted in zip(path, pattern, strict=True))


def _equal_scalars(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):  # to Python, True is 1
        return one is other
    if isinstance(one, str) and isinstance(other, str) and MASK in one and one != other:
        return _fits_masked(one.split(MASK), other)
    return bool(one == other)


def _fits_masked(pieces: list[str], text: str) -> bool:
    """Whether a text has these pieces in order, the first at its start and the last at its end.

    Each piece is taken where it comes first, which leaves the most for those behind it: a pattern
    that tries every place takes for ever on long texts with many masks.
    """
    first, *between, last = pieces
    if not text.startswith(first):
        return False
    start, end = len(first), len(text) - len(last)
    for piece in between:
        found = text.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return start <= end and text.endswith(last)


def _from_first_difference(one: str, other: str) -> tuple[str, str]:
    """Two texts without most of what they begin with in common."""
    same = next(
        (i for i, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )
    start = same - _CONTEXT
    return (one, other) if start <= 3 else ("..." + one[start:], "..." + other[start:])


def _show(value: Any) -> str:
    from lutumpy.plain.json_values import as_written

    return repr(value) if value is ABSENT else shorten(as_written(value), _LONGEST_SHOWN)
