"""Entries of the list that are no messages, and roles that are spelled as other programs do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.errors import Problem

_OTHER_NAMES: Mapping[str, str] = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
}
"""What other programs and providers call a role, and mean just that by it."""


def mend_entry(
    editor: Editor, problem: Problem, is_message: Callable[[dict[str, Any]], bool]
) -> None:
    """An entry that is no object: nothing at all goes, and messages in a list of their own come out of it."""
    path = problem.path[:1]
    entry = editor.get(path)
    if entry is None or entry in ("", []):
        drop_entry(
            editor,
            path,
            problem,
            "drop_empty",
            "The entry is no message and says nothing; it is left out.",
        )
    elif isinstance(entry, list) and _holds_messages(entry, is_message):
        editor.expect(path)
        for inner in entry:
            editor.insert(path, inner)
        editor.remove(path)
        reason = "The messages stand in a list inside the list, which the API refuses; they are taken out of it."
        editor.done("move_message", problem, reason)


def _holds_messages(entry: list[Any], is_message: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a list holds messages and nothing else; empty places in it go once they are out of it."""
    return all(inner is None or isinstance(inner, dict) for inner in entry) and any(
        isinstance(inner, dict) and is_message(inner) for inner in entry
    )


def mend_role_name(editor: Editor, problem: Problem, roles: tuple[str, ...]) -> bool:
    """A role in other letters, or under the name that others have for it; whether it was one."""
    message = editor.get(problem.path[:1])
    old = message.get("role") if isinstance(message, dict) else None
    if not isinstance(old, str):
        return False
    name = old.strip().lower()
    role = name if name in roles else _OTHER_NAMES.get(name)
    if role not in roles:
        return False
    editor.put((*problem.path[:1], "role"), role)
    editor.done("set_role", problem, f"The API has no role {old!r}; its name for that is {role!r}.")
    return True
