"""Which result answers which call: by id where both have one, else by name and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lutumpy.doctor import block_turns
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.rules.block_wire import Placed
from lutumpy.rules.gemini.wire import WIRE
from lutumpy.rules.problem import text

__all__ = ["Conversation", "assign", "in_order_of_calls", "move_parts"]


class Conversation(block_turns.Conversation):
    """The turns of a pass, and which result answers which call.

    Attributes:
        partner: The path of the result of each call, and of the call of each result.
        in_place: The same, by their places alone.
    """

    def __init__(self, editor: Editor) -> None:
        super().__init__(editor, WIRE)
        self.partner: dict[Path, Path] = {}
        self.in_place: dict[Path, Path] = {}
        for turn in self.turns:
            after = self.after(turn)
            if after is None or not turn.calls:
                continue
            calls, results = turn.calls, after.results
            for call, result in zip(calls, results, strict=False):
                _join(self.in_place, call[0], result[0])
            for call, found in zip(calls, assign(calls, results), strict=True):
                if found is not None:
                    _join(self.partner, call[0], found)


def _join(pairs: dict[Path, Path], left: Path, right: Path) -> None:
    pairs[left], pairs[right] = right, left


def assign(calls: Sequence[Placed], results: Sequence[Placed]) -> list[Path | None]:
    """The path of each call's result, or `None`. No result answers two calls.

    Ids come first. What they don't tell goes by name, in the order of the calls, unless two ids
    contradict each other.
    """
    found: list[Path | None] = [None] * len(calls)
    by_id: dict[str, list[int]] = {}
    for number, (_, result) in enumerate(results):
        result_id = text(result.get("id"))
        if result_id:
            by_id.setdefault(result_id, []).append(number)
    left = dict.fromkeys(range(len(results)))
    for number, (_, call) in enumerate(calls):
        same = by_id.get(text(call.get("id")) or "")
        if same:
            found[number] = results[same[0]][0]
            left.pop(same.pop(0))
    for number, (_, call) in enumerate(calls):
        if found[number] is not None:
            continue
        for other in left:
            if _may_answer(call, results[other][1]):
                found[number] = results[other][0]
                left.pop(other)
                break
    return found


def in_order_of_calls(calls: Sequence[Placed], results: Sequence[Placed]) -> list[Path]:
    """The paths of results in the order in which the rules want them: by ids where those tell all
    of them apart, else by names alone.
    """
    ids = [text(call.get("id")) or "" for _, call in calls]
    result_ids = [text(result.get("id")) or "" for _, result in results]
    key = "id"
    if len(set(ids)) != len(ids) or "" in ids or sorted(ids) != sorted(result_ids):
        key = "name"
    waiting: dict[str, list[Path]] = {}
    for path, result in results:
        waiting.setdefault(text(result.get(key)) or "", []).append(path)
    order: list[Path] = []
    for _, call in calls:
        same = waiting.get(text(call.get(key)) or "")
        if same:
            order.append(same.pop(0))
    return [*order, *[path for paths in waiting.values() for path in paths]]


def _may_answer(call: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    if text(call.get("id")) and text(result.get("id")):
        return False
    name = text(result.get("name"))
    return not name or name == text(call.get("name"))


def move_parts(editor: Editor, index: int, numbers: Iterable[int], role: str) -> None:
    """Move parts of a content to the start of the one after it.

    Args:
        editor: The contents.
        index: The content.
        numbers: The parts, in their order.
        role: Whose the one after it must be; one is put there where it isn't.
    """
    after = editor.get((index + 1,))
    parts = after.get("parts") if isinstance(after, dict) else None
    if isinstance(parts, list) and after.get("role") == role:
        for number in numbers:
            editor.expect((index, "parts", number))
            editor.move((index, "parts", number), (index + 1, "parts", 0))
        return
    moved = [copied(editor.get((index, "parts", number))) for number in numbers]
    editor.insert((index + 1,), {"role": role, "parts": moved})
    for number in numbers:
        editor.expect((index, "parts", number))
        editor.remove((index, "parts", number))
