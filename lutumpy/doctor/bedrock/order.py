"""Repairs of Converse: the order inside a message of the model, and of the results after it."""

from __future__ import annotations

from lutumpy.doctor.bedrock.talk import Talk, expect_block
from lutumpy.doctor.editor import Editor, Path
from lutumpy.errors import Problem

__all__ = ["mend_calls_last", "mend_order", "mend_reasoning_first"]


def mend_calls_last(editor: Editor, problems: list[Problem]) -> None:
    """Text behind the calls of a message goes before the first of them, in its order.

    A message with anything else there stays as it is: reasoning and calls of the provider's own
    tools keep their places.
    """
    talk = Talk(editor)
    for problem in problems:
        index = talk.with_problem(problem)
        calls = talk.calls(index) if index is not None else []
        if index is None or not calls:
            continue
        first = calls[0][0]
        behind = [
            (path, block)
            for path, block in talk.blocks(index)
            if int(path[2]) > int(first[2]) and "toolUse" not in block
        ]
        if not behind or any("text" not in block for _, block in behind):
            continue
        expect_block(editor, first)
        for path, _ in behind:
            expect_block(editor, path)
            editor.move(path, first)
        reason = "Text stands behind the calls of its message; it is moved before them."
        editor.done("move_content", problem, reason)


def mend_reasoning_first(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning behind a text and before the calls goes to the start of its message."""
    talk = Talk(editor)
    for problem in problems:
        index = talk.with_problem(problem)
        found: list[Path] = []
        for path, block in talk.blocks(index) if index is not None else ():
            if "reasoningContent" in block:
                found.append(path)
            elif found or "text" not in block:
                break
        if not found:
            continue
        start = (*found[0][:2], 0)
        expect_block(editor, start)
        for path in found:
            expect_block(editor, path)
            editor.move(path, start)
        reason = (
            "With a thinking budget a turn must start with its reasoning, which stands behind a "
            "text; it is moved to the start."
        )
        editor.done("move_content", problem, reason)


def mend_order(editor: Editor, problems: list[Problem]) -> None:
    """Results in another order than their calls, which the API takes and models don't expect."""
    talk = Talk(editor)
    for problem in problems:
        index = talk.with_problem(problem)
        if index is None:
            continue
        ids = [use.get("toolUseId") for _, use in talk.calls(index - 1)]
        order = {call_id: number for number, call_id in enumerate(ids)}
        places = [
            (path, order.get(result.get("toolUseId"), len(order)))
            for path, result in talk.of(index, "toolResult")
        ]
        in_order = sorted(places, key=lambda place: place[1])
        if in_order == places or not places:
            continue
        end = places[-1][0]
        for path, _ in in_order:
            expect_block(editor, path)
            editor.move(path, (*end[:2], int(end[2]) + 1))
        reason = "The results stand in another order than their calls; they get the calls' order."
        editor.done("move_result", problem, reason)
