"""Edits of a transcript that are carried out and written down at once, addressed by where things stood at first.

A pass looks at the messages once and finds places by index. Each edit moves what stands behind it, so an editor keeps, for
each list that was changed, how far every original index has moved. Edits of a pass may therefore come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from lutumpy.core import json_values
from lutumpy.doctor.json_patch import apply_operations, pointer, tokens
from lutumpy.doctor.repair import Operation, Repair, RepairKind
from lutumpy.errors import Problem
from lutumpy.rules.encoding import encodable
from lutumpy.rules.nesting import MAX_NESTING, may_be_deep
from lutumpy.rules.paths import moved_position

__all__ = ["IDENTITY", "Editor", "Path", "copied"]

Path: TypeAlias = "tuple[str | int, ...]"

IDENTITY = ("role", "type", "id", "call_id", "tool_call_id", "tool_use_id")
"""Keys by which a message, an item or a block is recognized."""


def copied(value: Any) -> Any:
    """A copy of JSON containers, tuples as lists; what is nested deeper than messages are looked into is shared."""
    return json_values.copied(value, MAX_NESTING + 1)


def _testable(value: Any) -> bool:
    """Whether a patch can hold a value, for a `test`: it is JSON, and nested as `json` can follow."""
    return encodable(value, half_characters=True) and not may_be_deep(value)


class _Shifts:
    """Where each original index of a list is now: a Fenwick tree of the moves, so that each costs O(log n)."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._tree: list[int] = [0] * (length + 2)
        self.gone: set[int] = set()

    def now(self, index: int) -> int:
        total, at = index, index + 1
        while at > 0:
            total += self._tree[at]
            at -= at & -at
        return total

    def shift(self, index: int, by: int) -> None:
        """Everything from an original index on moves."""
        at = index + 1
        while at < len(self._tree):
            self._tree[at] += by
            at += at & -at


class Editor:
    """A working copy of the messages, and the repairs made so far. All paths are those of the start of the pass."""

    def __init__(self, messages: list[Any], outside: Iterable[Any] = ()) -> None:
        self.document: list[Any] = messages
        self.outside: tuple[Any, ...] = tuple(
            outside
        )  # what counts with the messages: tools, and Anthropic's system
        self.repairs: list[Repair] = []
        self._shifts: dict[Path, _Shifts] = {}
        self._operations: list[Operation] = []
        self._recent: list[tuple[_Shifts, int, int]] = []  # moves of the repair that is being made
        self._leaving: list[tuple[_Shifts, int]] = []  # what it removes or moves away

    def next_pass(self) -> None:
        """From now on paths are those of the messages as they are."""
        self._shifts = {}

    # ------------------------------------------------------------- reading

    def get(self, path: Path) -> Any:
        """The value that stood at a path, as it is now; `None` when it is gone."""
        if self.gone(path):
            return None
        node: Any = self.document
        for step in self._now(path):
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def end(self, path: Path) -> Path:
        """The place behind the last entry of a list, for `insert` and `move`."""
        shifts = self._shifts.get(path)
        return (*path, shifts.length if shifts is not None else len(self.get(path)))

    def gone(self, path: Path) -> bool:
        """Whether a value, or what held it, was removed or moved in this pass."""
        for length in range(len(path)):
            shifts = self._shifts.get(path[:length])
            if shifts is not None and path[length] in shifts.gone:
                return True
        return False

    def _now(self, path: Path) -> Path:
        if not self._shifts:
            return path
        found: list[str | int] = []
        for length, step in enumerate(path):
            shifts = self._shifts.get(path[:length])
            found.append(shifts.now(step) if shifts is not None and isinstance(step, int) else step)
        return tuple(found)

    # ------------------------------------------------------------- editing

    def expect(self, path: Path) -> None:
        """The edit is for this very value; what is no JSON can't be tested."""
        value = self.get(path)
        if not _testable(value):
            return
        self._do({"op": "test", "path": pointer(self._now(path)), "value": copied(value)})

    def expect_keys(self, path: Path, *keys: str) -> None:
        """The edit is for the object that has these values; keys that it lacks say nothing."""
        value = self.get(path)
        for key in keys:
            if isinstance(value, dict) and key in value:
                self.expect((*path, key))

    def put(self, path: Path, value: Any) -> None:
        """Set a key of an object; what was there is tested."""
        before = self.get(path[:-1])
        there = isinstance(before, dict) and path[-1] in before
        if there:
            self.expect(path)
        self._do(
            {"op": "replace" if there else "add", "path": pointer(self._now(path)), "value": value}
        )

    def set_entry(self, path: Path, value: Any) -> None:
        """Replace an entry of a list, or a value of an object; what was there isn't tested."""
        self._do({"op": "replace", "path": pointer(self._now(path)), "value": value})

    def remove_key(self, path: Path) -> None:
        """Take a key out of an object; what was there is tested."""
        self.expect(path)
        self._do({"op": "remove", "path": pointer(self._now(path))})

    def remove(self, path: Path) -> None:
        """Take an entry out of a list."""
        self._list(path)
        self._do({"op": "remove", "path": pointer(self._now(path))})
        self._left(path)

    def insert(self, path: Path, value: Any) -> None:
        """Put a new entry before the one that stood at a path (its index may be the list's length)."""
        shifts = self._list(path)
        self._do({"op": "add", "path": pointer(self._now(path)), "value": value})
        self._shift(shifts, int(path[-1]), 1)

    def move(self, source: Path, path: Path) -> None:
        """Move an entry of a list before the one that stood at a path, in the same list or another."""
        self._list(source)
        shifts = self._list(path)
        start, target = self._now(source), self._now(path)
        if source[:-1] == path[:-1] and int(start[-1]) < int(target[-1]):
            target = (*target[:-1], int(target[-1]) - 1)
        self._do({"op": "move", "from": pointer(start), "path": pointer(target)})
        self._left(source)
        self._shift(shifts, int(path[-1]), 1)

    def _left(self, path: Path) -> None:
        shifts = self._list(path)
        shifts.gone.add(int(path[-1]))
        self._leaving.append((shifts, int(path[-1])))
        self._shift(shifts, int(path[-1]) + 1, -1)

    def _shift(self, shifts: _Shifts, index: int, by: int) -> None:
        shifts.shift(index, by)
        self._recent.append((shifts, index, by))

    def _list(self, path: Path) -> _Shifts:
        """The shifts of the list that a path leads into: made before its first change."""
        key = path[:-1]
        if key not in self._shifts:
            self._shifts[key] = _Shifts(len(self.get(key) if key else self.document))
        return self._shifts[key]

    def _introduce(self, index: int) -> None:
        """A repair begins by saying which message it is for."""
        entry: Any = self.document[index] if index < len(self.document) else None
        known = [
            key for key in IDENTITY if isinstance(entry, dict) and isinstance(entry.get(key), str)
        ]
        if known:
            for key in known:
                self._do({"op": "test", "path": pointer((index, key)), "value": entry[key]})
        elif entry is not None and _testable(entry):
            self._do({"op": "test", "path": pointer((index,)), "value": copied(entry)})

    def _do(self, operation: Operation) -> None:
        if not self._operations and operation["op"] != "test":
            self._introduce(int(tokens(operation["path"])[0]))
        apply_operations(self.document, [operation])
        self._operations.append(operation)

    # ------------------------------------------------------------ receipts

    def done(
        self,
        kind: RepairKind,
        problem: Problem,
        reason: str,
        call_ids: Sequence[str] | None = None,
        tools: Iterable[str] | None = None,
    ) -> None:
        """The edits since the last repair are one repair."""
        position = self._position(problem)
        operations, self._operations = self._operations, []
        self._recent, self._leaving = [], []
        self.repairs.append(
            Repair(
                kind,
                problem.rule,
                reason,
                position,
                problem.call_ids if call_ids is None else tuple(call_ids),
                problem.tools if tools is None else tuple(tools),
                operations,
            )
        )

    def _position(self, problem: Problem) -> str:
        """Where the problem is in the messages as they were before this repair, as the provider writes it."""
        if not problem.path or not isinstance(problem.path[0], int):
            return problem.position
        before = self._before(problem.path)
        if before is not None:
            return moved_position(problem.position, problem.path, before)
        # Its place went with a repair of this pass before: this one is about what stood beside it.
        edit = next(
            (operation for operation in self._operations if operation["op"] != "test"), None
        )
        steps = tokens(str(edit.get("from", edit["path"])) if edit is not None else "")
        return moved_position(
            problem.position, problem.path, tuple([int(s) if s.isdecimal() else s for s in steps])
        )

    def _before(self, path: Path) -> Path | None:
        """A path of the pass's start in the messages as this repair found them; `None` where nothing is left of it."""
        found: list[str | int] = []
        for length, step in enumerate(path):
            shifts = self._shifts.get(path[:length])
            if shifts is None or not isinstance(step, int):
                found.append(step)
                continue
            if step in shifts.gone and (shifts, step) not in self._leaving:
                return None
            since = sum(
                by for other, index, by in self._recent if other is shifts and index <= step
            )
            found.append(shifts.now(step) - since)
        return tuple(found)
