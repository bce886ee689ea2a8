"""Repairs of Ollama's API: the calls in a message, and what results name."""

from __future__ import annotations

from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.wording import as_object, as_text
from lutumpy.errors import Problem

__all__ = ["mend_arguments", "mend_call", "mend_id", "mend_name"]


def mend_call(editor: Editor, problem: Problem) -> None:
    """`tool_calls` that is not a list of calls, or an entry of it that has no function."""
    path = problem.path
    if len(path) < 3:
        _mend_call_list(editor, problem)
        return
    call = editor.get(path[:3])
    if not isinstance(call, dict):
        reason = "This entry of `tool_calls` is not a call; it is left out."
        drop_entry(editor, path[:3], problem, "drop_call", reason)
        return
    if isinstance(call.get("name"), str):
        arguments = call.get("arguments", call.get("args"))
        body = {"name": call["name"], "arguments": as_object(arguments)}
        for key in ("name", "arguments", "args"):
            if key in call:
                editor.remove_key((*path[:3], key))
        editor.put((*path[:3], "function"), body)
        reason = "Name and arguments belong under `function` in this API; they are moved there."
        editor.done("set_field", problem, reason)
        return
    reason = (
        "The call has neither a tool's name nor arguments, so nothing can run it; it is left out."
    )
    drop_entry(editor, path[:3], problem, "drop_call", reason)


def _mend_call_list(editor: Editor, problem: Problem) -> None:
    calls = editor.get(problem.path)
    if isinstance(calls, dict) and calls:
        editor.put(problem.path, [calls])
        reason = "`tool_calls` is one call without a list around it; the list is added."
        editor.done("set_field", problem, reason)
    elif not isinstance(calls, list):
        editor.remove_key(problem.path)
        reason = "`tool_calls` holds no calls, which the API refuses; the key is left out."
        editor.done("drop_key", problem, reason)


def mend_id(editor: Editor, problem: Problem) -> None:
    """An id or a name that isn't a text: its text, in calls and results alike."""
    value: Any = editor.get(problem.path)
    editor.put(problem.path, value if isinstance(value, str) else as_text(value))
    reason = "The API takes ids and names as texts only; it is written as one."
    editor.done("replace_id", problem, reason)


def mend_name(editor: Editor, problem: Problem) -> None:
    """A call that names no tool."""
    editor.put(problem.path, UNNAMED)
    reason = f"The call names no tool; the name becomes {UNNAMED!r}."
    editor.done("rename_tool", problem, reason)


def mend_arguments(editor: Editor, problem: Problem) -> None:
    """Arguments that aren't an object: the one in their text, or one that holds it."""
    editor.put(problem.path, as_object(editor.get(problem.path)))
    reason = (
        "The API takes arguments only as an object; a text of one is read, and what can't be read "
        "is kept inside one."
    )
    editor.done("wrap_arguments", problem, reason)
