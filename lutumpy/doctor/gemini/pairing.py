"""Repairs of generateContent: as many results as calls, first in the turn right after them."""

# What is hard: the results of a turn must all be at the start of the next turn of the user, in
# the order of their calls, and they may be anywhere: behind a text there (late), in another turn
# (loose), or nowhere. Places are those of the start of the pass, so a result that goes to a place
# that isn't there yet ends the work on its turn; the next pass goes on.
#
#     next user turn        a result that is nowhere      a late or loose result
#     starts with results   put in among them             moved in among them
#     starts otherwise      a new content before it       a new content before it

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.gemini.matching import Conversation, assign, move_parts
from lutumpy.doctor.mending import drop_entry, placed
from lutumpy.doctor.result_slots import Names, ResultForm, ResultSlots
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import Placed, Turn
from lutumpy.rules.gemini.fields import field
from lutumpy.rules.gemini.wire import WIRE
from lutumpy.rules.gemini.wording import spelled
from lutumpy.rules.problem import text

__all__ = ["mend_pairing", "mend_sides", "mend_start"]


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Give each open call its result, and leave out the results that no call has taken."""
    conversation = Conversation(editor)
    open_turns: dict[int, tuple[Turn, Problem]] = {}
    loose_turns: dict[int, tuple[Turn, Problem]] = {}
    for problem, index in placed(problems):
        turn = conversation.at(index)
        before = conversation.at(turn.first - 1) if turn is not None and turn.first else None
        if turn is not None and turn.calls:
            open_turns[turn.first] = turn, problem
        elif turn is not None and turn.role == "user" and before is not None and before.calls:
            open_turns[before.first] = before, problem
        elif turn is not None and turn.results:
            loose_turns[turn.first] = turn, problem
    loose = _by_id([result for turn, _ in loose_turns.values() for result in turn.results])
    robbed: set[int] = set()
    for turn, problem in open_turns.values():
        _OpenTurn(editor, conversation, turn, problem, robbed).answer(loose)
    for turn, problem in loose_turns.values():
        for path, result in turn.results:
            reason = "No call stands before this result; it is left out."
            _drop_result(editor, path, result, problem, reason, robbed)
    _drop_emptied(editor, robbed)


def _by_id(results: Sequence[Placed]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path, result in results:
        found.setdefault(text(result.get("id")) or "", []).append(path)
    found.pop("", None)
    return found


def _drop_result(
    editor: Editor,
    path: Path,
    result: Mapping[str, Any],
    problem: Problem,
    reason: str,
    robbed: set[int],
) -> None:
    if editor.gone(path[:3]):
        return
    _expect(editor, path)
    editor.remove(path[:3])
    robbed.add(int(path[0]))
    call_id = text(result.get("id"))
    here = replace(problem, position=spelled(path[:3]), path=path[:3])
    editor.done("drop_result", here, reason, call_ids=(call_id,) if call_id else ())


def _expect(editor: Editor, path: Path) -> None:
    editor.expect_keys(path, "id", "name")


def _drop_emptied(editor: Editor, robbed: set[int]) -> None:
    """Contents that have lost all that they said."""
    for index in sorted(robbed):
        if editor.gone((index,)) or editor.get((index, "parts")) != []:
            continue
        problem = Problem("gemini.empty_parts", f"contents[{index}]", "", "refused", path=(index,))
        reason = "Nothing is left in the content; it is left out."
        drop_entry(editor, (index,), problem, "drop_empty", reason)


class _OpenTurn:
    """A turn with calls whose results aren't at the start of the next one."""

    def __init__(
        self,
        editor: Editor,
        conversation: Conversation,
        turn: Turn,
        problem: Problem,
        robbed: set[int],
    ) -> None:
        self.editor = editor
        self.problem = problem
        self.robbed = robbed
        self.calls: list[Placed] = turn.calls
        self.slots = ResultSlots(editor, _FORM, problem, robbed, turn.last + 1)
        after = conversation.after(turn)
        self.results: list[Placed] = after.results if after is not None else []
        self.leading: set[Path] = set()
        for path, part in after.blocks if after is not None else ():
            if field(part, "functionResponse") is None:
                break
            self.leading |= {found for found, _ in self.results if found[:3] == path}
            self.slots.end = (*path[:2], int(path[2]) + 1)

    def answer(self, loose: dict[str, list[Path]]) -> None:
        """Give each call its result.

        Args:
            loose: Results elsewhere by their ids. Those that are used are taken out.
        """
        answers = assign(self.calls, self.results)
        kept = {path for path in answers if path is not None}
        for path, result in self.results:
            if path not in kept:
                reason = "No call of the turn before is left for this result; it is left out."
                _drop_result(self.editor, path, result, self.problem, reason, self.robbed)
        self.slots.leading = [
            (path[:3], number)
            for number, path in enumerate(answers)
            if path is not None and path in self.leading
        ]
        for number, (path, call) in enumerate(self.calls):
            source = answers[number]
            if source in self.leading:
                continue
            if source is None:
                others = loose.get(text(call.get("id")) or "")
                source = others.pop(0) if others else None
            _expect(self.editor, path)
            if not self.slots.put(number, call, None if source is None else source[:3]):
                return


def _write_interrupted(call: Mapping[str, Any]) -> dict[str, Any]:
    call_id = text(call.get("id"))
    body = {"name": call.get("name"), "response": {"error": INTERRUPTED}}
    return {"functionResponse": {"id": call_id, **body} if call_id else body}


def _expect_result(editor: Editor, path: Path) -> None:
    found = WIRE.inside(path, editor.get(path), WIRE.result.kind)
    if found is not None:
        _expect(editor, found[0])


def _names_of(call: Mapping[str, Any]) -> Names:
    call_id, name = text(call.get("id")), text(call.get("name"))
    return (call_id,) if call_id else (), (name,) if name else ()


_FORM = ResultForm(WIRE, "turn", _write_interrupted, _expect_result, _names_of)


# ----------------------------------------------------------- the wrong speaker


def mend_sides(editor: Editor, problems: list[Problem]) -> None:
    """Calls in a content of the user, and results in one of the model."""
    by_content: dict[int, Problem] = {}
    for problem, index in placed(problems):
        by_content.setdefault(index, problem)
    # Found before anything moves: what one content gives away goes into the next one.
    misplaced = {index: _misplaced_parts(editor.get((index,))) for index in by_content}
    has_gained: set[int] = set()
    for index, problem in by_content.items():
        moved, is_all = misplaced[index]
        if not moved:
            continue
        is_model = editor.get((index, "role")) == "model"
        role = "user" if is_model else "model"
        if is_all and index not in has_gained:
            editor.put((index, "role"), role)
            reason = f"Only contents of the role {role!r} hold this; the content gets that role."
            editor.done("set_role", problem, reason)
            continue
        move_parts(editor, index, moved, role)
        has_gained.add(index + 1)
        reason = f"Only contents of the role {role!r} hold this; it goes into one after this one."
        editor.done("move_result" if is_model else "move_call", problem, reason)


def _misplaced_parts(content: Any) -> tuple[list[int], bool]:
    """Which parts of a content only the other speaker may have, and whether it has no others."""
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        return [], False
    name = "functionResponse" if content.get("role") == "model" else "functionCall"
    moved = [n for n, part in enumerate(parts) if field(part, name) is not None]
    return moved, len(moved) == len(parts)


def mend_start(editor: Editor, problem: Problem) -> None:
    """A conversation that begins with calls: a note of the user comes before them."""
    note = {"role": "user", "parts": [{"text": "[The conversation's beginning was left out.]"}]}
    editor.insert((0,), note)
    reason = "The API wants the user to speak first; a note stands for what was left out."
    editor.done("set_content", problem, reason)
