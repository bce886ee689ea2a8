"""Repairs of Converse: single messages, their roles and contents, and neighbours of one role."""

from __future__ import annotations

from typing import Any

from lutumpy.core.parts import marked_system
from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.editor import Editor, copied
from lutumpy.doctor.entries import has_role, mend_entry, mend_role_as_shown
from lutumpy.doctor.mending import drop_entry, drop_key, message_index
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS
from lutumpy.rules.bedrock.limits import ROLES
from lutumpy.rules.bedrock.wire import WIRE

__all__ = [
    "drop_empty_message",
    "join_neighbours",
    "mend_content",
    "mend_message",
    "mend_role",
    "write_system_as_user",
]

_MESSAGE_KEYS = frozenset({"role", "content"})


def mend_message(editor: Editor, problem: Problem) -> None:
    """An entry of the list that is not a message, or a message with keys that the API refuses."""
    if isinstance(editor.get(problem.path[:1]), dict):
        drop_key(editor, problem, _MESSAGE_KEYS, problem.path[:1])
    else:
        mend_entry(editor, problem, lambda entry: has_role(entry, ROLES, _find_shown_role))


def mend_role(editor: Editor, problem: Problem) -> None:
    """The role that the blocks of a message show."""
    mend_role_as_shown(editor, problem, ROLES, _find_shown_role)


def _find_shown_role(message: dict[str, Any]) -> tuple[str, str] | None:
    """The role that a message must have by its blocks, and what shows it."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    keys = {key for block in blocks if isinstance(block, dict) for key in block}
    if "toolUse" in keys:
        return "assistant", "calls"
    if "toolResult" in keys:
        return "user", "results"
    return ("assistant", "the model's reasoning") if "reasoningContent" in keys else None


def mend_content(editor: Editor, problem: Problem) -> None:
    """Content that is missing, or not a list."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict) or isinstance(message.get("content"), list):
        return
    content = message.get("content")
    if content is None or content == {} or (isinstance(content, str) and not content.strip()):
        reason = "The message has no content; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
        return
    is_block = isinstance(content, dict) and ("type" in content or set(content) & set(BLOCK_KEYS))
    if is_block:
        written, what = content, "one block without a list around it; the list is added"
    elif isinstance(content, str):
        written, what = {"text": content}, "a text; it becomes a text block"
    else:
        written, what = {"text": as_text(content)}, "no list of blocks; it becomes JSON text"
    editor.put((*path, "content"), [written])
    editor.done("set_content", problem, f"The content is {what}.")


def drop_empty_message(editor: Editor, problem: Problem) -> None:
    """A message without blocks."""
    path = problem.path[:1]
    reason = "The message is empty, which the API refuses; it is left out."
    drop_entry(editor, path, problem, "drop_empty", reason)


def write_system_as_user(editor: Editor, problem: Problem) -> None:
    """Instructions where a model may take none: a marked user message."""
    path = problem.path[:1]
    content = editor.get((*path, "content"))
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            editor.put((*path, "content", number, "text"), marked_system(block["text"]))
    editor.put((*path, "role"), "user")
    reason = "Few models take a system message here; it becomes a marked user message."
    editor.done("set_role", problem, reason)


def join_neighbours(editor: Editor, problems: list[Problem]) -> None:
    """Messages of one role in a row: the later one's blocks go to the end of the earlier one."""
    turns = Conversation(editor, WIRE).turns
    roles = {turn.first: turn.role for turn in turns}
    for problem in problems:
        index = message_index(problem)
        before = index - 1 if index is not None else -1
        # What isn't a message, or a system message, is in nobody's turn.
        while before >= 0 and roles.get(before) not in ("user", "assistant"):
            before -= 1
        # A pass joins pairs; the next pass finds what is still in a row.
        if index is None or before < 0 or editor.gone((index,)) or editor.gone((before,)):
            continue
        if roles.get(before) != roles.get(index):
            continue
        blocks, earlier = editor.get((index, "content")), editor.get((before, "content"))
        if not isinstance(blocks, list) or not isinstance(earlier, list):
            continue
        editor.expect((index, "role"))
        editor.expect((index, "content"))
        for block in copied(blocks):
            editor.insert(editor.end((before, "content")), block)
        editor.remove((index,))
        reason = "The user and the assistant speak in turns; two messages of one become one."
        editor.done("move_content", problem, reason)
