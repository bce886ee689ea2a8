"""Repairs of Messages: single messages, their roles and their contents."""

from __future__ import annotations

from typing import Any

from lutumpy.core.parts import marked_system
from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.entries import has_role, mend_entry, mend_role_as_shown
from lutumpy.doctor.mending import drop_entry, drop_key, message_index, placed
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.changes import CHANGES
from lutumpy.rules.anthropic.messages import ROLES
from lutumpy.rules.anthropic.prefix import THINKING
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY
from lutumpy.rules.anthropic.wire import WIRE

__all__ = [
    "cut_white_space",
    "drop_blank_message",
    "drop_empty_user",
    "drop_last_thinking",
    "drop_thinking",
    "mend_content",
    "mend_message",
    "mend_role",
    "move_system",
    "write_system_as_user",
]

_MESSAGE_KEYS = frozenset({"role", "content"})


def mend_role(editor: Editor, problem: Problem) -> None:
    """The role that the blocks of a message show."""
    mend_role_as_shown(editor, problem, ROLES, _find_shown_role)


def _find_shown_role(message: dict[str, Any]) -> tuple[str, str] | None:
    """The role that a message must have by its blocks, and what shows it."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    types = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
    if "tool_use" in types:  # also where results are beside them: those are moved
        return "assistant", "calls"
    if "tool_result" in types:
        return "user", "results"
    if types & set(ASSISTANT_ONLY):
        return "assistant", "the model's reasoning or calls"
    return None


def mend_message(editor: Editor, problem: Problem) -> None:
    """An entry of the list that is not a message, or a message with keys that the API refuses."""
    if isinstance(editor.get(problem.path[:1]), dict):
        drop_key(editor, problem, _MESSAGE_KEYS, problem.path[:1])
    else:
        mend_entry(editor, problem, lambda entry: has_role(entry, ROLES, _find_shown_role))


def mend_content(editor: Editor, problem: Problem) -> None:
    """Content that is missing, or neither a text nor a list."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    content = message.get("content")
    if isinstance(content, (str, list)):
        return
    if content is None or content == {}:
        reason = "The message has no content; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif isinstance(content, dict) and isinstance(content.get("type"), str):
        editor.put((*path, "content"), [content])
        reason = "The content is one block without a list around it; the list is added."
        editor.done("set_content", problem, reason)
    else:
        editor.put((*path, "content"), as_text(content))
        reason = "The content is neither a text nor a list of blocks; it is written as JSON text."
        editor.done("set_content", problem, reason)


# ---------------------------------------------------------- system messages


def write_system_as_user(editor: Editor, problem: Problem) -> None:
    """Instructions where the API takes none: a marked user message, as requests have them."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if any(isinstance(block, dict) and block.get("type") in CHANGES for block in blocks):
        return  # nobody but the system may change tools
    if isinstance(content, str):
        editor.put((*path, "content"), marked_system(content))
    for number, block in enumerate(blocks):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            editor.put((*path, "content", number, "text"), marked_system(block["text"]))
    editor.put((*path, "role"), "user")
    reason = "The API takes no system message here; it becomes a marked user message."
    editor.done("set_role", problem, reason)


def move_system(editor: Editor, problems: list[Problem]) -> None:
    """Instructions between two user messages go behind the second."""
    roles = [editor.get((index, "role")) for index in range(len(editor.document))]
    for problem, index in placed(problems):
        end = index
        while end < len(roles) and roles[end] != "assistant":
            end += 1
        # Several in a row go together, each behind the one before it.
        at = index
        while at < len(roles) and roles[at] == "system":
            editor.expect((at, "role"))
            editor.move((at,), (end,))
            at += 1
        reason = (
            "A system message must stand before an assistant message or at the end; "
            "it is moved behind the user messages."
        )
        editor.done("move_message", problem, reason)


# --------------------------------------------------- ends, and empty messages


def drop_last_thinking(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning at the end of a turn, which has lost what it led to."""
    conversation = Conversation(editor, WIRE)
    reason = (
        "Reasoning has lost what it led to, and can't be the last of a message; it is left out."
    )
    for problem in problems:
        turn = conversation.with_problem(problem)
        for path, block in reversed(turn.blocks if turn is not None else []):
            if block.get("type") not in THINKING:
                break
            drop_entry(editor, path, problem, "drop_reasoning", reason)


def drop_thinking(editor: Editor, problem: Problem) -> None:
    """Reasoning in the last message of a request without `thinking`."""
    reason = (
        "Without `thinking` in the request the last message can't hold reasoning; it is left out."
    )
    drop_entry(editor, problem.path[:3], problem, "drop_reasoning", reason)


def drop_blank_message(editor: Editor, problem: Problem) -> None:
    """A message of nothing but white space."""
    reason = "The message is white space alone, which the API refuses; it is left out."
    drop_entry(editor, problem.path[:1], problem, "drop_empty", reason)


def drop_empty_user(editor: Editor, problem: Problem) -> None:
    """All messages of a user's turn that is empty."""
    index = message_index(problem)
    reason = "The message is empty, which the API refuses; it is left out."
    while index is not None and editor.get((index, "role")) == "user":
        drop_entry(editor, (index,), problem, "drop_empty", reason)
        index += 1


def cut_white_space(editor: Editor, problem: Problem) -> None:
    """White space at the end of a message that the model shall continue."""
    path: Path = (*problem.path[:1], "content")
    content = editor.get(path)
    if isinstance(content, list) and content:
        path = (*path, len(content) - 1, "text")
        content = editor.get(path)
    if isinstance(content, str) and content != content.rstrip():
        editor.put(path, content.rstrip())
        reason = "The last message can't end in white space; the white space is cut off."
        editor.done("set_content", problem, reason)
