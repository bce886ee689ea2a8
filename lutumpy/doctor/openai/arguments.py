"""Arguments and tools' names in calls, which both of OpenAI's APIs write the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.wording import Fresh, as_arguments, as_text, shorten_to_fit
from lutumpy.errors import Problem
from lutumpy.rules.openai.limits import MAX_ARGUMENTS

__all__ = ["cut_long_arguments", "rename_tools", "wrap_unreadable", "write_as_text"]


def write_as_text(editor: Editor, problem: Problem) -> None:
    """Arguments that are not a text, as the JSON of an object; free text as its JSON."""
    value = editor.get(problem.path)
    if problem.path[-1] != "input":
        editor.put(problem.path, as_arguments(value))
    elif value is None:
        editor.put(problem.path, "")
    else:
        editor.put(problem.path, as_text(value))
    reason = "The API takes arguments only as a text; they are written as JSON."
    editor.done("wrap_arguments", problem, reason)


def wrap_unreadable(editor: Editor, problem: Problem) -> None:
    """Arguments that are not a JSON object, inside one; the model's text is kept there."""
    editor.put(problem.path, as_arguments(editor.get(problem.path)))
    reason = (
        "The arguments are not a JSON object, which other hosts and APIs require; "
        "the model's text is kept inside one."
    )
    editor.done("wrap_arguments", problem, reason)


def cut_long_arguments(editor: Editor, problem: Problem) -> None:
    """Arguments longer than the API accepts in a history, cut; what is left is still JSON."""
    value = editor.get(problem.path)
    if not isinstance(value, str) or len(value) <= MAX_ARGUMENTS:
        return
    # Half of a JSON text isn't JSON, so what is left of it becomes a text inside an object.
    is_free_text = problem.path[-1] == "input"
    wrap = as_text if is_free_text else _wrap_cut_text
    editor.put(problem.path, shorten_to_fit(value, MAX_ARGUMENTS, wrap))
    reason = (
        f"The arguments have {len(value)} characters, and the API accepts {MAX_ARGUMENTS}; "
        "the rest is cut off."
    )
    editor.done("wrap_arguments", problem, reason)


def _wrap_cut_text(text: str) -> str:
    return as_text({"TRUNCATED": text})


def rename_tools(editor: Editor, problems: list[Problem], names: Iterable[Any], limit: int) -> None:
    """Replace names of tools that the API refuses, the same one the same way at each call.

    Args:
        editor: The messages.
        problems: The problems with names; each path leads to a name.
        names: All names in the history.
        limit: How many characters a name may have.
    """
    fresh = Fresh([name for name in names if isinstance(name, str)], limit)
    new_names: dict[str, str] = {}
    for problem in problems:
        old = editor.get(problem.path)
        old_name = old if isinstance(old, str) else ""
        if old_name not in new_names:
            new_names[old_name] = fresh.name(old_name)
        new = new_names[old_name]
        editor.put(problem.path, new)
        what = "The API refuses this tool name" if old_name else "The call names no tool"
        reason = f"{what}; the name becomes {new!r}, the same one at each such call."
        editor.done("rename_tool", problem, reason)
