"""Repairs of Chat Completions: the calls in a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.openai.arguments import rename_tools
from lutumpy.doctor.openai.chat.results import end_of_results
from lutumpy.doctor.pieces import non_empty_text, type_of
from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.limits import MAX_CALLS
from lutumpy.rules.openai.chat.messages import CALL_TYPES
from lutumpy.rules.openai.limits import MAX_NAME

__all__ = ["mend_call", "mend_names", "split_calls"]


def split_calls(editor: Editor, problem: Problem) -> None:
    """More calls than a message takes: the rest goes into messages of its own.

    The results stay where they are; a later pass finds them in the wrong place and moves them.
    """
    path = problem.path
    calls = editor.get(path) if len(path) == 2 else None
    if not isinstance(calls, list) or len(calls) <= MAX_CALLS:
        return
    if not all(isinstance(call, dict) and non_empty_text(call.get("id")) for call in calls):
        return  # only the places tell the results of calls without ids: these come first
    behind = end_of_results(editor, int(path[0]) + 1)
    # Each group keeps its order, so results that were in order still are.
    groups = [calls[start : start + MAX_CALLS] for start in range(0, len(calls), MAX_CALLS)]
    editor.put(path, groups[0])
    for group in groups[1:]:
        editor.insert((behind,), {"role": "assistant", "content": None, "tool_calls": group})
    reason = (
        f"A message takes {MAX_CALLS} calls; "
        "the others go into an assistant message after the results."
    )
    editor.done("move_call", problem, reason)


def mend_call(editor: Editor, problem: Problem) -> None:
    """`tool_calls` that is not a list of calls, or an entry of it that is not a proper call."""
    path = problem.path
    if len(path) < 3:
        _mend_call_list(editor, problem)
        return
    call = editor.get(path[:3])
    if isinstance(call, dict):
        _mend_call_body(editor, problem, call)
    else:
        reason = "This entry of `tool_calls` is not a call; it is left out."
        drop_entry(editor, path[:3], problem, "drop_call", reason)


def _mend_call_list(editor: Editor, problem: Problem) -> None:
    calls = editor.get(problem.path)
    if isinstance(calls, dict):
        editor.put(problem.path, [calls])
        reason = "`tool_calls` is one call without a list around it; the list is added."
        editor.done("set_field", problem, reason)
    elif not isinstance(calls, list) or not calls:
        editor.remove_key(problem.path)
        reason = "`tool_calls` holds no calls, which the API refuses; the key is left out."
        editor.done("drop_key", problem, reason)


def _mend_call_body(editor: Editor, problem: Problem, call: dict[str, Any]) -> None:
    path = problem.path[:3]
    kind = call.get("type")
    # A proper call whose name or arguments are wrong: other rules mend these.
    if kind in CALL_TYPES and isinstance(call.get(kind), dict):
        return
    for known in CALL_TYPES:
        if isinstance(call.get(known), dict):
            editor.expect_keys(path, "id")
            editor.put((*path, "type"), known)
            reason = f"The call has the key {known!r}, so that is its type; it is set."
            editor.done("set_field", problem, reason)
            return
    if isinstance(call.get("name"), str) and isinstance(call.get("arguments"), (str, dict)):
        body = {"name": call["name"], "arguments": call["arguments"]}
        editor.remove_key((*path, "name"))
        editor.remove_key((*path, "arguments"))
        editor.put((*path, "type"), "function")
        editor.put((*path, "function"), body)
        reason = "Name and arguments belong under `function` in this API; they are moved there."
        editor.done("set_field", problem, reason)
        return
    reason = (
        "The call has neither a tool's name nor arguments, so it can't be read; it is left out."
    )
    drop_entry(editor, path, problem, "drop_call", reason)


def mend_names(editor: Editor, problems: list[Problem]) -> None:
    """Names of tools that the API refuses."""
    rename_tools(editor, problems, _find_names(editor), MAX_NAME)


def _find_names(editor: Editor) -> Iterator[Any]:
    """The name in each call of the history."""
    for message in editor.document:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            kind = type_of(call) or "function"
            body = call.get(kind)
            if isinstance(body, dict):
                yield body.get("name")
