"""The tools of a server against what was locked of them, and what has changed, in words.

A server may change a description after it was reviewed, and a description is an instruction to the
model. A lock (`lutumpy tools lock ADDRESS`) holds what was reviewed, so any difference is an error
before anything is offered (rule MCP2).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lutumpy import Toolset
from lutumpy.errors import LockError
from lutumpy.mcp.errors import SchemaChanged
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.tool_doctor import Difference, Drift, Lock, LockedToolset, drift

__all__ = ["check_lock", "describe_drift", "find_locked"]

_WORDS = re.compile(r"\s+|\S+")
_MOST_SHOWN = 300  # characters of one change
_AROUND = 3  # unchanged words shown on each side of a change


def find_locked(lock: Lock | str | Path, names: Sequence[str]) -> LockedToolset:
    """What is locked of a server, under the first of these names that the lock knows.

    Raises:
        LockError: The lock can't be read, or knows none of the names.
    """
    if isinstance(lock, Lock):
        found: Lock | None = lock
        where = "the lock"
    else:
        where = str(lock)
        found = Lock.read(lock)
    if found is None:
        raise LockError(f"there is no {where}; `lutumpy tools lock ADDRESS` writes one")
    for name in names:
        locked = found.toolsets.get(name)
        if locked is not None:
            return locked
    raise LockError(
        f"{where} knows nothing of {' or '.join(names)}; `lutumpy tools lock ADDRESS` adds it"
    )


def check_lock(server: str, locked: LockedToolset, toolset: type[Toolset[Any]]) -> None:
    """Raise `SchemaChanged` where a toolset differs from what was locked."""
    found = drift(locked, toolset)
    if found:
        tools = [*found.added, *found.removed, *found.changed]
        raise SchemaChanged(server, tools, list(describe_drift(found)))


def describe_drift(found: Drift) -> Iterator[str]:
    """Each change in a line: the tool, the place, and the words that differ."""
    for name in found.added:
        yield f"{name} is new"
    for name in found.removed:
        yield f"{name} is gone"
    for name, places in found.changed.items():
        for place in places:
            yield f"{name} at {place.path}: {_describe_difference(place)}"


def _describe_difference(place: Difference) -> str:
    if place.kind == "added":
        return f"{_show(place.after)} was added"
    if place.kind == "removed":
        return f"{_show(place.before)} was removed"
    if isinstance(place.before, str) and isinstance(place.after, str):
        return shorten(mark_words(place.before, place.after), _MOST_SHOWN)
    return f"{_show(place.before)} became {_show(place.after)}"


def _show(value: Any) -> str:
    return shorten(json_values.encode_text(value), _MOST_SHOWN)


def mark_words(before: str, after: str) -> str:
    """`after` with what was taken out as `[-...-]` and what was put in as `{+...+}`.

    Unchanged words far from a change are left out.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    pieces: list[str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    codes = matcher.get_opcodes()
    for index, (kind, start, end, new_start, new_end) in enumerate(codes):
        if kind == "equal":
            is_first, is_last = index == 0, index == len(codes) - 1
            pieces.append(_shorten_equal(old[start:end], is_first=is_first, is_last=is_last))
            continue
        if end > start:
            pieces.append(f"[-{''.join(old[start:end])}-]")
        if new_end > new_start:
            pieces.append(f"{{+{''.join(new[new_start:new_end])}+}}")
    return "".join(pieces)


def _shorten_equal(words: list[str], *, is_first: bool, is_last: bool) -> str:
    around = 2 * _AROUND  # a space beside each word
    before = [] if is_first else words[:around]
    after = [] if is_last else words[-around:]
    if len(before) + len(after) >= len(words):
        return "".join(words)
    return "".join([*before, "…", *after])
