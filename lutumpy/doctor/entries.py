"""Entries of the list that are not messages, and roles under the names that other programs use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.errors import Problem

FindRole: TypeAlias = "Callable[[dict[str, Any]], tuple[str, str] | None]"
"""The role that a message must have by what it holds, and what shows it; `None` for none."""

_OTHER_NAMES: Mapping[str, str] = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
}
"""Names of roles that other programs and providers use with exactly that meaning."""


def mend_entry(
    editor: Editor, problem: Problem, is_message: Callable[[dict[str, Any]], bool]
) -> None:
    """Drop an entry that is empty, and take messages out of a list inside the list.

    Args:
        editor: The messages.
        problem: The problem with an entry that is not an object.
        is_message: Whether an object is a message or an item of the API.
    """
    path = problem.path[:1]
    entry = editor.get(path)
    if entry is None or entry in ("", []):
        reason = "The entry is empty and not a message; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif isinstance(entry, list) and _holds_messages(entry, is_message):
        # The whole list is tested at once: its messages are then put where it was, one by one.
        editor.expect(path)
        for inner in entry:
            editor.insert(path, inner)
        editor.remove(path)
        reason = "The API refuses messages in a list inside the list; they are taken out of it."
        editor.done("move_message", problem, reason)


def _holds_messages(entry: list[Any], is_message: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a list holds only messages; `None` among them is dropped in a later pass."""
    return all(inner is None or isinstance(inner, dict) for inner in entry) and any(
        isinstance(inner, dict) and is_message(inner) for inner in entry
    )


def mend_role_name(
    editor: Editor,
    problem: Problem,
    roles: tuple[str, ...],
    other_names: Mapping[str, str] = _OTHER_NAMES,
) -> bool:
    """Replace a role in other letters, or under another name for it.

    Args:
        editor: The messages.
        problem: The problem with the role of a message.
        roles: The roles that the API knows.
        other_names: What other programs and providers call them.

    Returns:
        Whether it was one, and is mended.
    """
    message = editor.get(problem.path[:1])
    old = message.get("role") if isinstance(message, dict) else None
    if not isinstance(old, str):
        return False
    name = old.strip().lower()
    role = name if name in roles else other_names.get(name)
    if role not in roles:
        return False
    editor.put((*problem.path[:1], "role"), role)
    editor.done(
        "set_role", problem, f"The API has no role {old!r}; its name for this role is {role!r}."
    )
    return True


def has_role(entry: dict[str, Any], roles: tuple[str, ...], find_role: FindRole) -> bool:
    """Whether an object is a message: its role says so, or what it holds."""
    return entry.get("role") in roles or find_role(entry) is not None


def mend_role_as_shown(
    editor: Editor,
    problem: Problem,
    roles: tuple[str, ...],
    find_role: FindRole,
    other_names: Mapping[str, str] = _OTHER_NAMES,
) -> None:
    """Replace a role under another name, or set the one that the message shows.

    Args:
        editor: The messages.
        problem: The problem with the role of a message.
        roles: The roles that the API knows.
        find_role: The role that a message must have.
        other_names: What other programs and providers call the roles.
    """
    if mend_role_name(editor, problem, roles, other_names):
        return
    message = editor.get(problem.path[:1])
    shown = find_role(message) if isinstance(message, dict) else None
    if shown is None:
        return
    role, sign = shown
    editor.put((problem.path[0], "role"), role)
    reason = f"The role is missing or unknown; a message with {sign} has the role {role!r}."
    editor.done("set_role", problem, reason)
