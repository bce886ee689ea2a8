"""Edits of a history that are carried out and recorded at once, addressed by where things were."""

# What is hard: the rules look at the messages once, at the start of a pass, and name places by
# index. Each edit moves whatever comes after it, so the second repair of a pass would miss its
# place. The editor therefore takes paths of the start of the pass and works out where each place
# is now:
#
#     start of the pass        remove (1,)             insert before (2,)        get((3,)) finds d
#     0  1  2  3               0     1  2              0     1  2  3             at index 3:
#     a  b  c  d               a     c  d              a     x  c  d             3 - 1 + 1
#
# For each list that was edited it keeps how far every original index has moved (`_Shifts`).
# Summing the moves one by one would make a pass quadratic in its edits. A Fenwick tree adds a
# move and finds the sum before an index in O(log n) each:
#
#     tree[8] holds the moves of 1..8          the sum up to 7 = tree[7] + tree[6] + tree[4]
#     tree[4]  1..4      tree[6]  5..6         a move at 5 is added to tree[5], tree[6], tree[8]
#     tree[2]  1..2      tree[7]  7            the next node: add or remove the lowest set bit
#
# A repair is a JSON Patch against the messages as the repair before left them, so operations are
# written with the places of now, and each repair begins with `test` operations that tell its
# message.
#
#     expect*, put, remove, insert, move    edit the document, add operations to the open repair
#     done                                  closes the open repair: all operations since the last
#     next_pass                             forgets all shifts: paths are those of the messages now

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lutumpy.doctor.json_patch import apply_operations
from lutumpy.doctor.repair import Operation, Repair, RepairKind
from lutumpy.errors import Problem
from lutumpy.plain import json_values
from lutumpy.plain.pointer import Path, pointer, tokens
from lutumpy.rules.encoding import encodable
from lutumpy.rules.nesting import MAX_NESTING, may_be_deep
from lutumpy.rules.paths import moved_position

if TYPE_CHECKING:
    from lutumpy.doctor.bound_reasoning import BoundReasoning
    from lutumpy.rules.host_facts import HostFacts

__all__ = ["IDENTITY", "Editor", "Path", "Ties", "copied"]

DROPS_REASONING = (
    "The signed reasoning behind it was made with what stood there before, so it is left out too."
)
"""What a repair says besides when it takes such reasoning along."""

LEFT_OVER = "This signed reasoning was moved with its message, and was made with another beginning."

IDENTITY = ("role", "type", "id", "call_id", "tool_call_id", "tool_use_id")
"""Keys by which a message, an item or a block is recognized."""


def copied(value: Any) -> Any:
    """A copy of JSON containers, tuples as lists.

    Values nested deeper than the rules look are shared with the original.
    """
    return json_values.copied(value, MAX_NESTING + 1)


def _is_testable(value: Any) -> bool:
    """Whether a patch can hold a value for a `test`: it is JSON that `json` can read back."""
    return encodable(value, half_characters=True) and not may_be_deep(value)


class _Shifts:
    """Where each original index of a list is now: a Fenwick tree of the moves."""

    def __init__(self, length: int) -> None:
        self.length = length
        # Nodes count from 1, and one more than the list has is needed for its end.
        self._tree: list[int] = [0] * (length + 2)
        self.gone: set[int] = set()

    def now(self, index: int) -> int:
        """The index now of what was at an original index."""
        total, node = index, index + 1
        while node > 0:
            total += self._tree[node]
            node -= node & -node
        return total

    def shift(self, index: int, by: int) -> None:
        """Everything from an original index on moves."""
        node = index + 1
        while node < len(self._tree):
            self._tree[node] += by
            node += node & -node


class Ties(Protocol):
    """Entries that an API refuses without the entry after them, for the repairs that take it away.

    All indices are those of the start of the pass.
    """

    def find(self, entries: Sequence[Any]) -> None:
        """Look at the messages at the start of a pass."""
        ...

    def tied_to(self, index: int) -> int:
        """How many entries can't do without the one at an index."""
        ...

    def settle(self, editor: Editor, touched: Iterable[int]) -> str:
        """Take out what the open repair has left without the entry that it needs; says so, if it
        did.

        Args:
            editor: The messages as the repair leaves them so far.
            touched: The entries that were changed, removed or moved, or have a new one before them.
        """
        ...


class Editor:
    """A working copy of the messages, and the repairs made so far.

    All paths that its methods take are those of the start of the pass.

    Attributes:
        document: The messages as they are now.
        outside: Entries beside the messages that are counted with them: tools, a system prompt.
        facts: What is known of the host that gets the messages; `None` where none was named.
        repairs: The repairs that are done.
    """

    def __init__(
        self,
        messages: list[Any],
        outside: Iterable[Any] = (),
        ties: Ties | None = None,
        *,
        facts: HostFacts | None = None,
        bound: BoundReasoning | None = None,
    ) -> None:
        self.document: list[Any] = messages
        self._ties = ties
        self._bound = bound
        self.outside: tuple[Any, ...] = tuple(outside)
        self.facts: HostFacts | None = facts
        self.repairs: list[Repair] = []
        # By the path of each list that this pass has changed.
        self._shifts: dict[Path, _Shifts] = {}
        # Of the open repair: its operations, the moves that they made, and what they took away.
        self._operations: list[Operation] = []
        self._recent_moves: list[tuple[_Shifts, int, int]] = []
        self._taken_away: list[tuple[_Shifts, int]] = []
        # The messages that it has touched, by their index at the start of the pass.
        self._touched: set[int] = set()
        # The places that it has edited, for reasoning that is bound to what comes before it.
        self._edited: list[tuple[Path, bool]] = []

    def next_pass(self) -> None:
        """From now on paths are those of the messages as they are."""
        self._shifts = {}
        if self._ties is not None:
            self._ties.find(self.document)
        if self._bound is not None:
            self._bound.find(self.document)

    # ------------------------------------------------------------- reading

    def get(self, path: Path) -> Any:
        """What was at a path, as it is now; `None` when it is gone or was never there."""
        if self.gone(path):
            return None
        node: Any = self.document
        for step in self._path_now(path):
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

    def index_now(self, index: int) -> int:
        """Where the message now is that was at an index."""
        shifts = self._shifts.get(())
        return shifts.now(index) if shifts is not None else index

    def leaves_some(self, *paths: Path) -> bool:
        """Whether something of the history is left when these go, with what is tied to them."""
        indices = [int(path[0]) for path in paths if len(path) == 1 and not self.gone(path)]
        tied = 0 if self._ties is None else sum([self._ties.tied_to(index) for index in indices])
        return len(self.document) > len(indices) + tied

    def _path_now(self, path: Path) -> Path:
        if not self._shifts:
            return path
        found: list[str | int] = []
        for length, step in enumerate(path):
            shifts = self._shifts.get(path[:length])
            found.append(shifts.now(step) if shifts is not None and isinstance(step, int) else step)
        return tuple(found)

    # ------------------------------------------------------------- editing

    def expect(self, path: Path) -> None:
        """The repair fits only if this value is there; a value that isn't JSON can't be tested."""
        value = self.get(path)
        if not _is_testable(value):
            return
        self._carry_out(
            {"op": "test", "path": pointer(self._path_now(path)), "value": copied(value)}
        )

    def expect_keys(self, path: Path, *keys: str) -> None:
        """The repair fits only an object with these values; keys that it lacks are not tested."""
        value = self.get(path)
        for key in keys:
            if isinstance(value, dict) and key in value:
                self.expect((*path, key))

    def put(self, path: Path, value: Any) -> None:
        """Set a key of an object; what was there is tested."""
        self._note_edit(path)
        before = self.get(path[:-1])
        operation = "add"
        if isinstance(before, dict) and path[-1] in before:
            self.expect(path)
            operation = "replace"
        place = pointer(self._path_now(path))
        self._carry_out({"op": operation, "path": place, "value": value})

    def set_entry(self, path: Path, value: Any) -> None:
        """Replace an entry of a list, or a value of an object; what was there isn't tested."""
        self._note_edit(path)
        self._carry_out({"op": "replace", "path": pointer(self._path_now(path)), "value": value})

    def remove_key(self, path: Path) -> None:
        """Take a key out of an object; what was there is tested."""
        self._note_edit(path)
        self.expect(path)
        self._carry_out({"op": "remove", "path": pointer(self._path_now(path))})

    def remove(self, path: Path) -> None:
        """Take an entry out of a list."""
        self._note_edit(path)
        self._shifts_of(path)
        self._carry_out({"op": "remove", "path": pointer(self._path_now(path))})
        self._take_away(path)

    def insert(self, path: Path, value: Any) -> None:
        """Put a new entry before the one that was at a path, or at the list's end.

        Where equal ones are, it goes behind them, which leaves the same list: a patch that adds
        an entry before an equal one is taken for one that was applied already.
        """
        self._note_edit(path)
        shifts = self._shifts_of(path)
        place = self._path_now(path)
        holder = path[:-1]
        entries: Any = self.get(holder) if holder else self.document
        at = int(place[-1])
        while at < len(entries) and json_values.equal(entries[at], value):
            at += 1
        place = (*place[:-1], at)
        self._carry_out({"op": "add", "path": pointer(place), "value": value})
        self._record_shift(shifts, int(path[-1]), 1)

    def move(self, source: Path, path: Path) -> None:
        """Move an entry before the one that was at a path, in the same list or another."""
        self._note_edit(source, is_moved=True)
        self._note_edit(path)
        self._shifts_of(source)
        shifts = self._shifts_of(path)
        start, target = self._path_now(source), self._path_now(path)
        # A move takes the entry out first, so places behind it in the same list are one less.
        if source[:-1] == path[:-1] and int(start[-1]) < int(target[-1]):
            target = (*target[:-1], int(target[-1]) - 1)
        self._carry_out({"op": "move", "from": pointer(start), "path": pointer(target)})
        self._take_away(source)
        self._record_shift(shifts, int(path[-1]), 1)

    def _note_edit(self, path: Path, *, is_moved: bool = False) -> None:
        self._touched.add(int(path[0]))
        if self._bound is not None:
            self._edited.append((path, is_moved))

    def _take_away(self, path: Path) -> None:
        shifts = self._shifts_of(path)
        shifts.gone.add(int(path[-1]))
        self._taken_away.append((shifts, int(path[-1])))
        self._record_shift(shifts, int(path[-1]) + 1, -1)

    def _record_shift(self, shifts: _Shifts, index: int, by: int) -> None:
        shifts.shift(index, by)
        self._recent_moves.append((shifts, index, by))

    def _shifts_of(self, path: Path) -> _Shifts:
        """The shifts of the list that a path leads into, made before its first change."""
        key = path[:-1]
        if key not in self._shifts:
            self._shifts[key] = _Shifts(len(self.get(key) if key else self.document))
        return self._shifts[key]

    def _test_identity(self, index: int) -> None:
        """The first operations of a repair: they tell which message it is for."""
        entry: Any = self.document[index] if index < len(self.document) else None
        known: list[str] = []
        if isinstance(entry, dict):
            known = [key for key in IDENTITY if isinstance(entry.get(key), str)]
        for key in known:
            self._carry_out({"op": "test", "path": pointer((index, key)), "value": entry[key]})
        if not known and entry is not None and _is_testable(entry):
            self._carry_out({"op": "test", "path": pointer((index,)), "value": copied(entry)})

    def _carry_out(self, operation: Operation) -> None:
        if not self._operations and operation["op"] != "test":
            self._test_identity(int(tokens(operation["path"])[0]))
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
        """Close the open repair: all edits since the last one.

        Args:
            kind: What it does.
            problem: What it mends.
            reason: What was wrong and what the edits do, for users.
            call_ids: The calls that it is about; the problem's when left out.
            tools: Their tools; the problem's when left out.
        """
        dropped: list[str] = []
        while self._touched:
            dropped += self._drop_bound()
            touched, self._touched = self._touched, set()
            settled = self._ties.settle(self, touched) if self._ties is not None else ""
            if settled not in reason:
                reason = f"{reason} {settled}"
        if dropped:
            reason = f"{reason} {DROPS_REASONING}"
        position = self._position_before(problem)
        operations, self._operations = self._operations, []
        self._recent_moves, self._taken_away = [], []
        self.repairs.append(
            Repair(
                kind,
                problem.rule,
                reason,
                position,
                problem.call_ids if call_ids is None else tuple(call_ids),
                problem.tools if tools is None else tuple(tools),
                operations,
                tuple(dropped),
            )
        )

    def _drop_bound(self) -> list[str]:
        """Take out the signed reasoning that the open repair has spoiled; its positions before."""
        edited, self._edited = self._edited, []
        if self._bound is None or not edited:
            return []
        dropped: list[str] = []
        for path, position in self._bound.behind(edited):
            dropped.append(self._position_now(path, position))
            if not self.gone(path):
                self.take_out_reasoning(path)
        return dropped

    def _position_now(self, path: Path, position: str) -> str:
        before = self._path_before(path)
        return position if before is None else moved_position(position, path, before)

    def take_out_reasoning(self, path: Path) -> None:
        """Take reasoning out of its list, with what an API refuses without it."""
        take_out = getattr(self._ties, "take_out", None)
        if take_out is not None:
            take_out(self, int(path[0]))
        elif len(path) > 1 or len(self.document) > 1:
            self.remove(path)

    def drop_left_over(self, rule: str) -> bool:
        """Take out reasoning that was spoiled in the pass before, and moved with its message;
        whether there was some.
        """
        left = [] if self._bound is None else self._bound.left_over()
        if not left:
            return False
        path, position = left[0]
        problem = Problem(rule, position, "", "refused", path=path)
        self.take_out_reasoning(path)
        self.done("drop_reasoning", problem, LEFT_OVER)
        return True

    def _position_before(self, problem: Problem) -> str:
        """The position of a problem in the messages as the open repair found them."""
        if not problem.path or not isinstance(problem.path[0], int):
            return problem.position
        before = self._path_before(problem.path)
        if before is not None:
            return moved_position(problem.position, problem.path, before)
        # Its place went with an earlier repair of this pass: this one is about what was beside.
        steps: list[str] = []
        for operation in self._operations:
            if operation["op"] != "test":
                steps = tokens(str(operation.get("from", operation["path"])))
                break
        place = tuple([int(step) if step.isdecimal() else step for step in steps])
        return moved_position(problem.position, problem.path, place)

    def _path_before(self, path: Path) -> Path | None:
        """A path in the messages as the open repair found them; `None` when its end was gone."""
        found: list[str | int] = []
        for length, step in enumerate(path):
            shifts = self._shifts.get(path[:length])
            if shifts is None or not isinstance(step, int):
                found.append(step)
                continue
            if step in shifts.gone and (shifts, step) not in self._taken_away:
                return None
            place = shifts.now(step)
            for other, index, by in self._recent_moves:
                if other is shifts and index <= step:
                    place -= by
            found.append(place)
        return tuple(found)
