"""Repairs of Messages: what a message of the model was to show."""

from __future__ import annotations

from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import expect_entry
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.sequence import SHOWN
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["move_shown"]


def move_shown(editor: Editor, problems: list[Problem]) -> None:
    """What the model was to show goes into a user message after its turn and its calls' results."""
    conversation = Conversation(editor, WIRE)
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
