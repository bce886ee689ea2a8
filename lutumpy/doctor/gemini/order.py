"""Repairs of generateContent: what works and is unwise, and ids that tell nothing apart."""

from __future__ import annotations

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.gemini.matching import Conversation, in_order_of_calls, move_parts
from lutumpy.doctor.mending import placed
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem
from lutumpy.rules.problem import text

__all__ = ["mend_order", "mend_repeated_ids", "move_beside_results"]

_LIMIT = 64


def mend_repeated_ids(editor: Editor, problems: list[Problem]) -> None:
    """Calls of one turn that share an id: the later one gets another, and so does its result."""
    conversation = Conversation(editor)
    used = [text(value.get("id")) for turn in conversation.turns for _, value in turn.calls]
    fresh = Fresh([value for value in used if value], _LIMIT)
    for problem in problems:
        path = problem.path[:4]
        old = text(editor.get((*path, "id")))
        if not old:
            continue
        new = fresh.another(old)
        editor.expect((*path, "name"))
        editor.put((*path, "id"), new)
        result = conversation.in_place.get(path)
        if result is not None and editor.get((*result, "id")) == old:
            editor.put((*result, "id"), new)
        reason = (
            "Another call of the turn has this id, so the results can't be told apart; this call "
            "and its result get a new one."
        )
        editor.done("rename_id", problem, reason, call_ids=(old,))


def mend_order(editor: Editor, problems: list[Problem]) -> None:
    """Results in another order than their calls."""
    conversation = Conversation(editor)
    for problem, index in placed(problems):
        after = conversation.at(index)
        before = conversation.at(after.first - 1) if after is not None else None
        if after is None or before is None:
            continue
        found = [path for path, _ in after.results]
        order = in_order_of_calls(before.calls, after.results)
        # Results in several contents keep their places: what is between them may matter.
        if len({path[0] for path in found}) != 1 or order == found:
            continue
        end: Path = (*found[-1][:2], int(found[-1][2]) + 1)
        for path in order:
            editor.expect_keys(path, "id", "name")
            editor.move(path[:3], end)
        reason = "The results stand in another order than their calls; they get the calls' order."
        editor.done("move_result", problem, reason)


def move_beside_results(editor: Editor, problem: Problem) -> None:
    """What comes after results in their content goes into one of its own."""
    index, first = int(problem.path[0]), int(problem.path[2])
    parts = editor.get((index, "parts"))
    if not isinstance(parts, list) or first >= len(parts):
        return
    move_parts(editor, index, range(first, len(parts)), "user")
    reason = "Results stand best alone in their content; what was beside them follows in its own."
    editor.done("move_content", problem, reason)
