"""From a position as a provider writes it, or the path of an edit, to what the page shows there."""

# What is hard: repairs are a chain. The position and the edit of the second repair are about the
# transcript after the first one, but the page shows the transcript before all of them. So each path
# has to be taken back through every edit that came before it.
#
# `Origins` keeps one entry for each message of the edited transcript, in its order, and edits that
# list like the transcript itself. An entry remembers:
#
#   origin   the index of the message in the shown transcript; for a new one, of the message before
#   new      whether a repair put it there
#   lists    for each list inside the message (content, tool_calls), the edits made to it
#
# An edit of a list is the index of an element that was put in ("+") or taken out ("-"). To find the
# origin of an element, they are undone from the last to the first:
#
#   edit      element at index n now          was before the edit at
#   -----------------------------------------------------------------------
#   ("-", k)  n >= k                          n + 1
#   ("-", k)  n < k                           n
#   ("+", k)  n > k                           n - 1
#   ("+", k)  n < k                           n
#   ("+", k)  n == k                          nowhere: it is new, and its message stands for it
#
# A list that was replaced as a whole has `None` for its edits: its elements have no origin.
#
# Applying the patches to a copy and searching it for the same objects was tried and dropped: edits
# carry copies, and equal messages are common.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.page.model import Noted
from lutumpy.page.timeline import Timeline
from lutumpy.plain.pointer import tokens

__all__ = ["Origins", "find", "of_position", "of_problem"]

_TOKEN = re.compile(r"[^.\[\]]+")
_ROOTS = ("messages", "input", "contents", "items")
_BESIDE = ("system", "instructions", "systemInstruction", "system_instruction")
# Python refuses to read numbers of thousands of digits, and no history is that long.
_LONGEST_INDEX = 9


def of_position(position: str) -> list[str]:
    """The steps from the list of messages to a position: `messages[2].tool_calls[0].id`,
    `messages.2.content.1`, `system`.
    """
    steps: list[str] = _TOKEN.findall(position)
    return steps[1:] if steps and steps[0] in _ROOTS else steps


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
        # A problem says `system` whatever the API calls it.
        found = [timeline.places.get((word,)) for word in (steps[0], *_BESIDE)]
        return next((place for place in found if place is not None), None)
    index = _read_index(steps[0])
    if index is None:
        return None
    number = _read_index(steps[2]) if len(steps) > 2 else None
    part = None if number is None else timeline.places.get((index, steps[1], number))
    # What has no view of its own is in its message; input that is one text has a place of its own.
    return part or timeline.places.get((index,)) or timeline.places.get(("input",))


def _read_index(step: str) -> int | None:
    return int(step) if step.isascii() and step.isdigit() and len(step) <= _LONGEST_INDEX else None


@dataclass(slots=True, eq=False)
class _Entry:
    """A message of the edited transcript: where it came from, and what was done to its lists."""

    origin: int
    new: bool = False
    lists: dict[str, list[tuple[str, int]] | None] = field(default_factory=dict)


class Origins:
    """Leads places of the edited transcript back to the transcript that the page shows.

    Call `steps` for a repair's places, then `apply` with its patch, repair by repair.

    Args:
        size: How many messages the shown transcript has.
    """

    def __init__(self, size: int) -> None:
        self._entries = [_Entry(index) for index in range(size)]

    def steps(self, steps: Sequence[str]) -> list[str]:
        """The same place in the transcript as shown; for a new message, the one before it."""
        index = _read_index(steps[0]) if steps else None
        if index is None:
            return list(steps)
        if index >= len(self._entries):
            # Something is missing after the last message, so that message stands for it.
            return [str(self._entries[-1].origin)] if self._entries else []
        entry = self._entries[index]
        number = _read_index(steps[2]) if len(steps) > 2 else None
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
        """Make the edit of one repair; what can't be followed is passed over.

        The page only shows repairs, so a patch that doesn't fit must not raise here.
        """
        for operation in patch:
            name, path = operation.get("op"), tokens(str(operation.get("path", "")))
            taken: _Entry | None = None
            if name == "move":
                taken = self._take_entry(tokens(str(operation.get("from", ""))))
            if name in ("add", "copy", "move"):
                self._put_entry(path, taken)
            elif name == "remove":
                self._take_entry(path)
            elif (
                name == "replace"
                and len(path) == 2
                and (entry := self._find_entry(path)) is not None
            ):
                entry.lists[path[1]] = None

    def _find_entry(self, path: Sequence[str]) -> _Entry | None:
        index = _read_index(path[0]) if path else None
        return self._entries[index] if index is not None and index < len(self._entries) else None

    def _take_entry(self, path: Sequence[str]) -> _Entry | None:
        entry = self._find_entry(path)
        if entry is None:
            return None
        if len(path) == 1:
            return self._entries.pop(int(path[0]))
        self._record_edit(entry, path, "-")
        # What was inside a message may be moved to a place of its own: it then is a new message.
        return _Entry(entry.origin, new=True)

    def _put_entry(self, path: Sequence[str], taken: _Entry | None) -> None:
        if len(path) == 1:
            index = _read_index(path[0])
            # "-" is the end of the list; it has no index.
            index = len(self._entries) if index is None else min(index, len(self._entries))
            before = self._entries[index - 1].origin if index else 0
            self._entries.insert(index, taken or _Entry(before, new=True))
        elif (entry := self._find_entry(path)) is not None:
            self._record_edit(entry, path, "+")

    def _record_edit(self, entry: _Entry, path: Sequence[str], sign: str) -> None:
        number = _read_index(path[2]) if len(path) == 3 else None
        if number is not None:
            edits = entry.lists.setdefault(path[1], [])
            if edits is not None:
                edits.append((sign, number))
        elif len(path) == 2:
            entry.lists[path[1]] = None
