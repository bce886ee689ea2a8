"""Repairs of Messages: the order inside a turn of the model, and of the results after it."""

from __future__ import annotations

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import expect_entry
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.sequence import SHOWN, THINKING

__all__ = ["mend_order", "mend_thinking_first", "mend_uses_last", "move_shown"]


def mend_uses_last(editor: Editor, problems: list[Problem]) -> None:
    """Text behind the calls of a turn goes before the first of them, in its order.

    A turn with anything else there stays as it is: signed reasoning and calls of the provider's own
    tools keep their places.
    """
    conversation = Conversation(editor)
    for problem in problems:
        turn = conversation.with_problem(problem)
        uses = turn.of("tool_use") if turn is not None else []
        if turn is None or not uses:
            continue
        first_use = uses[0][0]
        behind: list[tuple[Path, dict[str, object]]] = []
        for path, block in turn.blocks[_number_of(turn, first_use) :]:
            if block.get("type") != "tool_use":
                behind.append((path, block))
        # Moving signed reasoning would break its signature.
        if not behind or any(block.get("type") != "text" for _, block in behind):
            continue
        _move_before(editor, first_use, behind)
        reason = "Text stands behind the calls of its message; it is moved before them."
        editor.done("move_content", problem, reason)


def _move_before(
    editor: Editor, first_use: Path, texts: list[tuple[Path, dict[str, object]]]
) -> None:
    """Move texts before a call, and drop the messages that are empty then."""
    emptied: list[int] = []
    expect_entry(editor, first_use)
    for path, block in texts:
        index = int(path[0])
        if len(path) == 2:  # the content of a message is the text itself
            editor.expect(path)
            editor.insert(first_use, dict(block))
            emptied.append(index)
            continue
        expect_entry(editor, path)
        editor.move(path, first_use)
        if editor.get((index, "content")) == []:
            emptied.append(index)
    for index in emptied:
        editor.remove((index,))


def _number_of(turn: Turn, path: Path) -> int:
    return [other for other, _ in turn.blocks].index(path)


def move_shown(editor: Editor, problems: list[Problem]) -> None:
    """What the model was to show goes into a user message after its turn and its calls' results."""
    conversation = Conversation(editor)
    problem_of = {problem.path[:3]: problem for problem in problems}
    done: set[int] = set()
    for problem in problems:
        turn = conversation.with_problem(problem)
        if turn is None or turn.first in done:
            continue
        done.add(turn.first)
        shown: list[Path] = [path for path, _ in turn.of(*SHOWN) if len(path) == 3]
        if turn.role != "assistant" or not shown:
            continue
        after = conversation.after(turn)
        behind = (after if after is not None else turn).last + 1
        _move_to_user(editor, shown, behind)
        reason = "Only a user message shows something; this goes into one after the turn."
        editor.done("move_content", problem_of[shown[0]], reason)


def _move_to_user(editor: Editor, shown: list[Path], behind: int) -> None:
    """Move blocks into a new user message, and drop the messages that are empty then."""
    # Copied and removed, and not moved: the message that they go into is made by the same repair.
    for path in shown:
        expect_entry(editor, path)
    content = [{"type": "text", "text": "[shown by the assistant's message]"}]
    content += [copied(editor.get(path)) for path in shown]
    editor.insert((behind,), {"role": "user", "content": content})
    for path in shown:
        editor.remove(path)
    for index in dict.fromkeys([int(path[0]) for path in shown]):
        if editor.get((index, "content")) == []:
            editor.remove((index,))


def mend_thinking_first(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning behind a text and before the calls goes to the start of its turn."""
    conversation = Conversation(editor)
    for problem in problems:
        turn = conversation.with_problem(problem)
        if turn is None or not turn.blocks or len(turn.blocks[0][0]) != 3:
            continue
        start = turn.blocks[0][0]
        thinking = _find_thinking_after_text(turn, start)
        if not thinking:
            continue
        expect_entry(editor, start)
        for path in thinking:
            expect_entry(editor, path)
            editor.move(path, start)
        reason = (
            "With a thinking budget a turn must start with its reasoning, which stands behind a "
            "text; it is moved to the start."
        )
        editor.done("move_content", problem, reason)


def _find_thinking_after_text(turn: Turn, start: Path) -> list[Path]:
    """The first run of reasoning in the turn's first message, if only text stands before it."""
    found: list[Path] = []
    for path, block in turn.blocks:
        if block.get("type") in THINKING and path[0] == start[0]:
            found.append(path)
        elif found or block.get("type") != "text":
            break
    return found


def mend_order(editor: Editor, problems: list[Problem]) -> None:
    """Results in another order than their calls, which the API takes and models don't expect."""
    conversation = Conversation(editor)
    for problem in problems:
        before = conversation.with_problem(problem)
        after = conversation.after(before) if before is not None else None
        if after is None or before is None:
            continue
        order = {block.get("id"): number for number, (_, block) in enumerate(before.of("tool_use"))}
        places: list[tuple[Path, int]] = []
        for path, block in after.blocks:
            if block.get("type") != "tool_result":
                break
            places.append((path, order.get(block.get("tool_use_id"), len(order))))
        in_order = sorted(places, key=lambda place: place[1])
        # Results in several messages are moved into one by pairing, and then come back here.
        is_one_message = len({path[:2] for path, _ in places}) == 1
        if not is_one_message or in_order == places:
            continue
        end = places[-1][0]
        for path, _ in in_order:
            expect_entry(editor, path)
            editor.move(path, (*end[:2], int(end[2]) + 1))
        reason = "The results stand in another order than their calls; they get the calls' order."
        editor.done("move_result", problem, reason)
