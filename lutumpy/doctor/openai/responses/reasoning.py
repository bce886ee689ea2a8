"""Repairs of Responses: reasoning without the item that it led to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import expect_entry, placed
from lutumpy.doctor.openai.responses.items import NEEDS_ID
from lutumpy.doctor.openai.responses.kinds import is_by_model, kind_of
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.kinds import is_led_to
from lutumpy.rules.paths import moved_position

__all__ = ["ReasoningTies", "mend_reasoning"]

ALSO = "The reasoning that led to it is left out as well: the API refuses one without the other."
"""What a repair says besides when it takes reasoning along."""


def mend_reasoning(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning without what it led to goes, with the ids of what the model wrote after it."""
    reason = (
        "The item that this reasoning led to is gone or has lost its id, and the API refuses one "
        "without the other; the reasoning is left out, and the ids that would ask for it."
    )
    for problem, index in placed(problems):
        # Reasoning that led to this reasoning has lost its item as well. It goes from the front, so
        # that each repair leaves the rest followed by something.
        start = index
        while start > 0 and kind_of(editor.get((start - 1,))) == "reasoning":
            start -= 1
        for at in range(start, index + 1):
            if editor.gone((at,)) or len(editor.document) == 1:
                continue
            if at == start:
                _drop_ids_behind(editor, index)
            _take_out(editor, at)
            place = (at, *problem.path[1:])
            position = moved_position(problem.position, problem.path, place)
            editor.done("drop_reasoning", replace(problem, path=place, position=position), reason)


def _take_out(editor: Editor, index: int) -> None:
    expect_entry(editor, (index,))
    editor.remove((index,))


def _drop_ids_behind(editor: Editor, index: int) -> None:
    """The ids of what the model wrote after reasoning, up to the next: each asks for it."""
    behind = index + 1
    while editor.gone((behind,)) or is_by_model(editor.get((behind,))):
        item = editor.get((behind,))
        if kind_of(item) == "reasoning":
            break
        if item is not None and "id" in item and kind_of(item) not in NEEDS_ID:
            editor.remove_key((behind, "id"))
        behind += 1


class ReasoningTies:
    """Reasoning goes with the item that it led to.

    Whatever a repair is for, it may take that item away, or the id of it, or move it: then the
    reasoning goes in the same repair, so that no repair leaves reasoning alone that wasn't before.
    """

    def __init__(self) -> None:
        # By the index of an item that of the reasoning that led to it, at the start of the pass.
        self._led_by: dict[int, int] = {}
        self._tied: dict[int, int] = {}  # how many reasoning items are in a row before it
        self._reasoning: set[int] = set()

    def find(self, entries: Sequence[Any]) -> None:
        self._led_by, self._tied, self._reasoning = {}, {}, set()
        before: int | None = None
        for index, item in enumerate(entries):
            if not isinstance(item, dict):
                continue  # the API looks at the next item
            if before is not None and is_led_to(item):
                self._tie(index, before)
            before = index if kind_of(item) == "reasoning" else None
            if before is not None:
                self._reasoning.add(index)

    def take_out(self, editor: Editor, index: int) -> None:
        """Take reasoning out, with the ids of what the model wrote after it."""
        if not editor.gone((index,)) and len(editor.document) > 1:
            _drop_ids_behind(editor, index)
            _take_out(editor, index)

    def tied_to(self, index: int) -> int:
        return self._tied.get(index, 0)

    def settle(self, editor: Editor, touched: Iterable[int]) -> str:
        words = ""
        for index in sorted(touched):
            reasoning = self._led_by.get(index)
            if reasoning is None or editor.gone((reasoning,)) or len(editor.document) == 1:
                continue
            if not _is_followed(editor, reasoning):
                if index not in self._reasoning:  # which has dropped them already
                    _drop_ids_behind(editor, reasoning)
                _take_out(editor, reasoning)
                words = ALSO
                continue
            # The item behind has taken the place of what is gone, and may go in this pass as well.
            while editor.gone((index,)):
                index += 1
            self._tie(index, reasoning)
        return words

    def _tie(self, index: int, reasoning: int) -> None:
        self._led_by[index] = reasoning
        self._tied[index] = 1 + self._tied.get(reasoning, 0)


def _is_followed(editor: Editor, reasoning: int) -> bool:
    """Whether the item behind reasoning is now one that it may have led to."""
    behind = editor.index_now(reasoning) + 1
    entries = editor.document
    while behind < len(entries) and not isinstance(entries[behind], dict):
        behind += 1
    return behind < len(entries) and is_led_to(entries[behind])
