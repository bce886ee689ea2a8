"""Repairs of the order inside a turn of the model's: its reasoning first, its calls last."""

from __future__ import annotations

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import expect_entry, message_index
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.sequence import SHOWN, THINKING


def mend_uses_last(editor: Editor, problems: list[Problem]) -> None:
    """Text behind the calls of a turn goes before the first of them, in its order.

    A turn with anything else there stays as it is: signed reasoning and the provider's own calls keep their places.
    """
    conversation = Conversation(editor)
    for problem in problems:
        turn = _turn(conversation, problem)
        uses = turn.of("tool_use") if turn is not None else []
        if turn is None or not uses:
            continue
        first = uses[0][0]
        behind = [
            (path, block)
            for path, block in turn.blocks[_number(turn, first) :]
            if block.get("type") != "tool_use"
        ]
        if not behind or any(block.get("type") != "text" for _, block in behind):
            continue
        emptied: list[int] = []
        expect_entry(editor, first)
        for path, block in behind:
            if len(path) == 2:  # the content of a message is the text itself
                editor.expect(path)
                editor.insert(first, dict(block))
                emptied.append(int(path[0]))
                continue
            expect_entry(editor, path)
            editor.move(path, first)
            if editor.get((path[0], "content")) == []:
                emptied.append(int(path[0]))
        for index in emptied:
            editor.remove((index,))
        reason = "Text stands behind the calls of its message, and calls come last; it is moved before them."
        editor.done("move_content", problem, reason)


def mend_shown(editor: Editor, problems: list[Problem]) -> None:
    """Images and documents of the model's go into a user message behind its turn, and behind the results of its calls."""
    conversation = Conversation(editor)
    blamed = {problem.path[:3]: problem for problem in problems}
    for turn in {
        id(turn): turn for problem in problems if (turn := _turn(conversation, problem)) is not None
    }.values():
        shown = [path for path, block in turn.of(*SHOWN) if len(path) == 3]
        if turn.role != "assistant" or not shown:
            continue
        after = conversation.after(turn)
        behind = (after if after is not None else turn).last + 1
        note: dict[str, object] = {"type": "text", "text": "[shown by the assistant's message]"}
        problem = blamed[shown[0]]
        for path in shown:
            expect_entry(editor, path)
        editor.insert(
            (behind,),
            {"role": "user", "content": [note, *[copied(editor.get(path)) for path in shown]]},
        )
        for path in shown:
            editor.remove(path)
        for index in dict.fromkeys([int(path[0]) for path in shown]):
            if editor.get((index, "content")) == []:
                editor.remove((index,))
        reason = "Only a user's message shows something; what the assistant's was to show goes into one behind it."
        editor.done("move_content", problem, reason)


def mend_thinking_first(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning that stands behind a text and before the calls goes to the start of its turn; none is made up."""
    conversation = Conversation(editor)
    for problem in problems:
        turn = _turn(conversation, problem)
        if turn is None or not turn.blocks or len(turn.blocks[0][0]) != 3:
            continue
        start = turn.blocks[0][0]
        found: list[Path] = []
        for path, block in turn.blocks:
            if block.get("type") in THINKING and path[0] == start[0]:
                found.append(path)
            elif found or block.get("type") != "text":
                break
        if not found:
            continue
        expect_entry(editor, start)
        for path in found:
            expect_entry(editor, path)
            editor.move(path, start)
        reason = "With a thinking budget the turn starts with its reasoning, which stands behind a text; it is moved there."
        editor.done("move_content", problem, reason)


def _turn(conversation: Conversation, problem: Problem) -> Turn | None:
    index = message_index(problem)
    return conversation.at(index) if index is not None else None


def _number(turn: Turn, path: Path) -> int:
    return next(number for number, (other, _) in enumerate(turn.blocks) if other == path)
