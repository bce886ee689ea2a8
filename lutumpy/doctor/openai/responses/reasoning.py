"""Repairs of Responses: reasoning without the item that it led to."""

from __future__ import annotations

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import expect_entry, placed
from lutumpy.doctor.openai.responses.items import NEEDS_ID
from lutumpy.doctor.openai.responses.kinds import is_by_model, kind_of
from lutumpy.errors import Problem

__all__ = ["mend_reasoning"]


def mend_reasoning(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning without what it led to goes, with the ids of what the model wrote after it."""
    for problem, index in placed(problems):
        _drop_reasoning(editor, problem, index)
        # Reasoning that led to this reasoning has lost its item as well.
        while index > 0 and _is_reasoning_with_id(editor.get((index - 1,))):
            index -= 1
            _drop_reasoning(editor, problem, index)


def _is_reasoning_with_id(item: object) -> bool:
    return (
        isinstance(item, dict) and kind_of(item) == "reasoning" and isinstance(item.get("id"), str)
    )


def _drop_reasoning(editor: Editor, problem: Problem, index: int) -> None:
    if editor.gone((index,)) or len(editor.document) == 1:
        return
    expect_entry(editor, (index,))
    # The ids go too: an item sent with its id asks for the reasoning that led to it.
    behind = index + 1
    while is_by_model(editor.get((behind,))):
        item = editor.get((behind,))
        if "id" in item and kind_of(item) not in (*NEEDS_ID, "reasoning"):
            editor.remove_key((behind, "id"))
        behind += 1
    editor.remove((index,))
    reason = (
        "The item that this reasoning led to is gone or has lost its id, and the API refuses one "
        "without the other; the reasoning is left out, and the ids that would ask for it."
    )
    editor.done("drop_reasoning", problem, reason)
