"""From a position as a provider writes it, or the path of an edit, to what the page shows there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.page.model import Noted
from lutumpy.page.timeline import Timeline

__all__ = ["Origins", "find", "of_pointer", "of_position", "of_problem"]

_TOKEN = re.compile(r"[^.\[\]]+")
_ROOTS = ("messages", "input", "items")
_BESIDE = ("system", "instructions")
_LONGEST_INDEX = 9


def of_position(position: str) -> list[str]:
    """The steps from the list of messages to a position: `messages[2].tool_calls[0].id`,
    `messages.2.content.1`, `system`.
    """
    steps: list[str] = _TOKEN.findall(position)
    return steps[1:] if steps and steps[0] in _ROOTS else steps


def of_pointer(pointer: str) -> list[str]:
    """The steps of a JSON Pointer into the list of messages: `/2/tool_calls/0`."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def of_problem(problem: Problem) -> list[str]:
    """The steps to what a problem is about: its path if it has one, else its position."""
    return [str(step) for step in problem.path] or of_position(problem.position)


def find(timeline: Timeline, steps: Sequence[str]) -> Noted | None:
    """What is shown for some steps, or for the message that they lead into; `None` where the page
    shows nothing of it.
    """
    if not steps:
        return None
    if steps[0] in _BESIDE:
        return timeline.places.get((steps[0],))
    index = _index(steps[0])
    if index is None:
        return None
    number = _index(steps[2]) if len(steps) > 2 else None
    part = None if number is None else timeline.places.get((index, steps[1], number))
    return part or timeline.places.get((index,)) or timeline.places.get(("input",))


def _index(step: str) -> int | None:
    return int(step) if step.isascii() and step.isdigit() and len(step) <= _LONGEST_INDEX else None


@dataclass(slots=True, eq=False)
class _Entry:
    """A message as edits leave it: which one it was (of a new one: the one before it), and what was
    done to its lists.

    An edit of a list is the index of an entry that was put in (`+`) or taken out (`-`); `None` is a
    list that is a new one.
    """

    origin: int
    new: bool = False
    lists: dict[str, list[tuple[str, int]] | None] = field(default_factory=dict)


class Origins:
    """Where things stood in the transcript as it is shown, while repairs move them about.

    A repair's position and its edit are about the transcript after the repairs before it.
    """

    def __init__(self, size: int) -> None:
        self._entries = [_Entry(index) for index in range(size)]

    def steps(self, steps: Sequence[str]) -> list[str]:
        """The same place in the transcript as shown; for a new message, the one before it."""
        index = _index(steps[0]) if steps else None
        if index is None:
            return list(steps)
        if index >= len(self._entries):
            # Something is missing at the end: what is shown of it is the last message.
            return [str(self._entries[-1].origin)] if self._entries else []
        entry = self._entries[index]
        number = _index(steps[2]) if len(steps) > 2 else None
        if number is None:
            return [str(entry.origin), *([] if entry.new else steps[1:])]
        edits = entry.lists.get(steps[1], [])
        if entry.new or edits is None:
            return [str(entry.origin)]
        for sign, at in reversed(edits):
            if sign == "-":
                number += number >= at
            elif number == at:
                return [str(entry.origin)]
            else:
                number -= number > at
        return [str(entry.origin), steps[1], str(number), *steps[3:]]

    def apply(self, patch: Iterable[Mapping[str, Any]]) -> None:
        """Follow an edit."""
        for operation in patch:
            name, path = operation.get("op"), of_pointer(str(operation.get("path", "")))
            taken: _Entry | None = None
            if name == "move":
                taken = self._take(of_pointer(str(operation.get("from", ""))))
            if name in ("add", "copy", "move"):
                self._put(path, taken)
            elif name == "remove":
                self._take(path)
            elif name == "replace" and len(path) == 2 and (entry := self._entry(path)) is not None:
                entry.lists[path[1]] = None

    def _entry(self, path: Sequence[str]) -> _Entry | None:
        index = _index(path[0]) if path else None
        return self._entries[index] if index is not None and index < len(self._entries) else None

    def _take(self, path: Sequence[str]) -> _Entry | None:
        entry = self._entry(path)
        if entry is None:
            return None
        if len(path) == 1:
            return self._entries.pop(int(path[0]))
        self._edit(entry, path, "-")
        return _Entry(entry.origin, new=True)

    def _put(self, path: Sequence[str], taken: _Entry | None) -> None:
        if len(path) == 1:
            index = _index(path[0])
            index = len(self._entries) if index is None else min(index, len(self._entries))
            before = self._entries[index - 1].origin if index else 0
            self._entries.insert(index, taken or _Entry(before, new=True))
        elif (entry := self._entry(path)) is not None:
            self._edit(entry, path, "+")

    def _edit(self, entry: _Entry, path: Sequence[str], sign: str) -> None:
        number = _index(path[2]) if len(path) == 3 else None
        if number is not None:
            edits = entry.lists.setdefault(path[1], [])
            if edits is not None:
                edits.append((sign, number))
        elif len(path) == 2:
            entry.lists[path[1]] = None
