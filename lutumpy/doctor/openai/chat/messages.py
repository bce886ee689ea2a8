"""Repairs of Chat Completions: roles and contents of single messages."""

from __future__ import annotations

from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.conversion import mend_foreign_part
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.entries import has_role, mend_entry, mend_role_as_shown
from lutumpy.doctor.openai.chat.results import end_of_results
from lutumpy.doctor.openai.chat.spelling import SPELLING
from lutumpy.doctor.openai.contents import mend_content, mend_text_part
from lutumpy.doctor.pieces import type_of
from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.messages import PARTS, ROLES
from lutumpy.rules.openai.limits import NOT_IN_SPEAKER

__all__ = [
    "mend_list_entry",
    "mend_message_content",
    "mend_part",
    "mend_role",
    "mend_speaker",
    "set_user_role",
]

_USER_PARTS = frozenset(PARTS["user"]) - {"text"}
_TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def mend_list_entry(editor: Editor, problem: Problem) -> None:
    """An entry of the list that is not a message."""
    mend_entry(editor, problem, lambda entry: has_role(entry, ROLES, _find_shown_role))


def mend_role(editor: Editor, problem: Problem) -> None:
    """The role that the rest of the message shows."""
    mend_role_as_shown(editor, problem, ROLES, _find_shown_role)


def _find_shown_role(message: dict[str, Any]) -> tuple[str, str] | None:
    """The role that a message without a known one must have, and what shows it."""
    if message.get("tool_call_id") is not None and not message.get("tool_calls"):
        return "tool", "a `tool_call_id`"
    if isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
        return "assistant", "calls"
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    # Plain text may be anybody's; only parts that one role has tell.
    types = {type_of(part) for part in parts} - {""}
    if types & _USER_PARTS and types <= {"text", *_USER_PARTS}:
        return "user", "images, audio or files"
    if "refusal" in types and types <= {"text", "refusal"}:
        return "assistant", "a refusal"
    return None


def set_user_role(editor: Editor, problem: Problem) -> None:
    """Instructions for a model that takes no system messages."""
    editor.put((problem.path[0], "role"), "user")
    reason = "This model takes instructions only in user messages; the message becomes one."
    editor.done("set_role", problem, reason)


def mend_speaker(editor: Editor, problem: Problem) -> None:
    """The name of who speaks, with characters that the API doesn't take there; the name of the
    function that a result is of, where it lacks.
    """
    path = (problem.path[0], "name")
    name = editor.get(path)
    kept = NOT_IN_SPEAKER.sub("_", name.strip()).strip("_") if isinstance(name, str) else ""
    if kept:
        editor.put(path, kept)
        reason = (
            "The API takes no white space and no `<|\\/>` in a name; `_` stands in their place."
        )
        editor.done("set_field", problem, reason)
    elif editor.get((problem.path[0], "role")) == "function":
        found = _find_called_function(editor, int(path[0])) or UNNAMED
        editor.expect((path[0], "role"))
        editor.put(path, found)
        reason = f"The API requires the name of a function with its result; it gets {found!r}."
        editor.done("set_field", problem, reason)
    else:
        editor.expect(path)
        editor.remove_key(path)
        editor.done("drop_key", problem, "The name is none that the API takes; it is left out.")


def _find_called_function(editor: Editor, result: int) -> str | None:
    """The name of the old function that the message before its result calls."""
    name = editor.get((result - 1, "function_call", "name")) if result > 0 else None
    return name if isinstance(name, str) and NOT_IN_SPEAKER.search(name) is None and name else None


def mend_message_content(editor: Editor, problem: Problem) -> None:
    """Content that is missing, empty, or neither a text nor a list."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    has_calls = message.get("role") == "assistant" and bool(message.get("tool_calls"))
    if message.get("content") == [] and has_calls:
        editor.put((*path, "content"), None)
        reason = "The list of parts is empty, which the API refuses; with calls it may be null."
        editor.done("set_content", problem, reason)
        return
    mend_content(editor, problem, path, needed=message.get("role") in ("tool", "function"))


def mend_part(editor: Editor, problem: Problem) -> None:
    """A part of another API, of another role, or without a proper type."""
    message = editor.get(problem.path[:1])
    role = message.get("role") if isinstance(message, dict) else None
    path = problem.path[:3]
    if len(path) < 3 or not isinstance(role, str):
        return
    part = editor.get(path)
    if mend_foreign_part(SPELLING, editor, problem, path, by_model=role == "assistant"):
        return
    if role in ("tool", "assistant") and isinstance(part, dict) and type_of(part) in _USER_PARTS:
        _move_part_to_user(editor, problem, part, role)
        return
    mend_text_part(editor, problem, path, "text", _TEXT_KEYS)


def _move_part_to_user(editor: Editor, problem: Problem, part: dict[str, Any], role: str) -> None:
    """Only users show something: the part goes into a user message after the results."""
    index = int(problem.path[0])
    behind = end_of_results(editor, index + 1)
    if role == "tool":
        whose = f"result of call {editor.get((index, 'tool_call_id'))}"
        where = "after the results"
        reason = (
            "A tool message takes text only; the part goes into a user message after the results."
        )
    else:
        whose, where = "assistant's message", "behind"
        reason = "An assistant message shows nothing; the part goes into a user message after it."
    # The model reads both notes: they tell it that the two places belong together.
    note = f"{part['type']} of the {whose}"
    editor.expect(problem.path[:3])
    pointer = {"type": "text", "text": f"[{note}: see the user message {where}]"}
    editor.set_entry(problem.path[:3], pointer)
    content = [{"type": "text", "text": f"[{note}]"}, part]
    editor.insert((behind,), {"role": "user", "content": content})
    editor.done("move_content", problem, reason)
