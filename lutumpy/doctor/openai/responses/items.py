"""Repairs of Responses: single items, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.doctor.conversion import mend_foreign_part
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.entries import mend_entry, mend_role_name
from lutumpy.doctor.mending import drop_entry, drop_key
from lutumpy.doctor.openai.arguments import rename_tools
from lutumpy.doctor.openai.contents import mend_content, mend_text_part
from lutumpy.doctor.openai.responses.spelling import SPELLING
from lutumpy.doctor.wording import shorten_to_fit
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.items import ITEM_KEYS, ITEM_TYPES, ROLES, item_type
from lutumpy.rules.openai.responses.limits import ID_PREFIXES, MAX_HISTORY_NAME, MAX_OUTPUT

__all__ = [
    "NEEDS_ID",
    "drop_status",
    "drop_unknown_keys",
    "mend_item",
    "mend_item_content",
    "mend_item_id",
    "mend_names",
    "mend_output",
    "mend_part",
    "mend_role",
    "mend_summary",
]

NEEDS_ID = ("item_reference", "mcp_approval_request")
"""Types of items that mean nothing without their id."""

_TEXT_KEYS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_MEDIA_PARTS = ("input_image", "input_file")


def _is_item(entry: dict[str, Any]) -> bool:
    return entry.get("role") in ROLES or entry.get("type") in ITEM_TYPES


def mend_item(editor: Editor, problem: Problem) -> None:
    """An item without a type gets the one that its keys show; a reference to nothing is dropped."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict):
        mend_entry(editor, problem, _is_item)
        return
    if item_type(item) == "item_reference":
        reason = "The item refers to another one without naming it; it is left out."
        drop_entry(editor, path, problem, "drop_reference", reason)
        return
    kind = _find_shown_type(item) if item.get("type") is None else None
    if kind is None:
        return
    editor.expect_keys(path, "call_id")
    editor.put((*path, "type"), kind)
    reason = f"The item has no type; its keys are those of a {kind}, so it becomes one."
    editor.done("set_field", problem, reason)


def _find_shown_type(item: dict[str, Any]) -> str | None:
    """The type that the keys of an item show. Without a call's id all of them must fit."""
    # An output may have a name as well, so it is asked for first.
    kind = None
    if "output" in item:
        kind = "function_call_output"
    elif {"name", "arguments"} <= item.keys():
        kind = "function_call"
    if kind is None or isinstance(item.get("call_id"), str):
        return kind
    return kind if item.keys() <= ITEM_KEYS[kind] else None


def mend_role(editor: Editor, problem: Problem) -> None:
    """The role that the parts of a message show."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict) or mend_role_name(editor, problem, ROLES):
        return
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    types = {str(part.get("type")) for part in parts if isinstance(part, dict)}
    if types and types <= {"output_text", "refusal"}:
        role = "assistant"
    elif types and types <= {"input_text", *_MEDIA_PARTS}:
        role = "user"
    else:
        return
    editor.put((*path, "role"), role)
    reason = f"The role is missing or unknown; parts of these types have the role {role!r}."
    editor.done("set_role", problem, reason)


def drop_unknown_keys(editor: Editor, problem: Problem) -> None:
    """Keys that an item of this type doesn't have."""
    item = editor.get(problem.path[:1])
    known = ITEM_KEYS.get(item_type(item)) if isinstance(item, dict) else None
    if known is not None:
        drop_key(editor, problem, known, problem.path[:1])


def mend_item_content(editor: Editor, problem: Problem) -> None:
    """Content that is missing, empty, or neither a text nor a list."""
    mend_content(editor, problem, problem.path[:1], needed=False)


def mend_output(editor: Editor, problem: Problem) -> None:
    """An output that is too long is cut; one of a wrong type becomes text."""
    path = problem.path[:1]
    item = editor.get(path)
    output = item.get("output") if isinstance(item, dict) else None
    if not isinstance(output, str) or len(output) <= MAX_OUTPUT:
        mend_content(editor, problem, path, key="output", needed=True)
        return
    editor.put((*path, "output"), shorten_to_fit(output, MAX_OUTPUT, _add_note(len(output))))
    reason = (
        f"The output has {len(output)} characters, and the API accepts {MAX_OUTPUT}; "
        "the rest is cut off."
    )
    editor.done("set_content", problem, reason)


def _add_note(length: int) -> Callable[[str], str]:
    """Adds to the beginning of an output how long it was."""

    def add_note(beginning: str) -> str:
        return f"{beginning}... [cut: {length} characters]"

    return add_note


def mend_part(editor: Editor, problem: Problem) -> None:
    """A part of another API, of another role, or without a proper type."""
    path = problem.path[:3]
    if len(path) < 3:
        return
    part = editor.get(path)
    by_model = editor.get((path[0], "role")) == "assistant" and path[1] == "content"
    if mend_foreign_part(SPELLING, editor, problem, path, by_model=by_model):
        return
    if by_model and isinstance(part, dict) and part.get("type") in _MEDIA_PARTS:
        _move_part_to_user(editor, problem, part)
        return
    text_type = "output_text" if by_model else "input_text"
    mend_text_part(editor, problem, path, text_type, _TEXT_KEYS)


def _move_part_to_user(editor: Editor, problem: Problem, part: dict[str, Any]) -> None:
    """Only users show something: the part goes into a user message after the items of that turn."""
    path = problem.path[:3]
    behind = int(path[0]) + 1
    while True:
        item = editor.get((behind,))
        if not isinstance(item, dict) or item_type(item) in ("message", "reasoning"):
            break
        behind += 1
    note = f"{part['type']} of the assistant's message"
    editor.expect(path)
    pointer = {"type": "output_text", "text": f"[{note}: see the user message behind]"}
    editor.set_entry(path, pointer)
    content = [{"type": "input_text", "text": f"[{note}]"}, part]
    editor.insert((behind,), {"role": "user", "content": content})
    reason = "An assistant message shows nothing; the part goes into a user message after it."
    editor.done("move_content", problem, reason)


def mend_summary(editor: Editor, problem: Problem) -> None:
    """The summary of reasoning, which must be a list of texts."""
    path = problem.path[:1]
    item = editor.get(path)
    summary = item.get("summary") if isinstance(item, dict) else None
    parts = summary if isinstance(summary, list) else [summary]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    new = [{"type": "summary_text", "text": text} for text in texts if isinstance(text, str)]
    editor.expect_keys(path, "type", "id")
    editor.put((*path, "summary"), new)
    reason = "A reasoning item must have a list of summaries, which may be empty; it gets one."
    editor.done("set_field", problem, reason)


def drop_status(editor: Editor, problem: Problem) -> None:
    """A status that the API doesn't take for this item."""
    path = problem.path[:1]
    editor.expect_keys(path, "type", "call_id")
    editor.remove_key((*path, "status"))
    reason = "The API doesn't take this status here, and items need none; it is left out."
    editor.done("drop_key", problem, reason)


def mend_item_id(editor: Editor, problem: Problem) -> None:
    """An id that isn't one of its type: items need none."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict) or "id" not in item:
        return
    if item_type(item) == "item_reference":
        reason = "The item refers to another one by an id that no item has; it is left out."
        drop_entry(editor, path, problem, "drop_reference", reason)
        return
    if item_type(item) in NEEDS_ID:
        return
    # The server looks reasoning up by its id, unless the content itself comes along.
    if item_type(item) == "reasoning" and not item.get("encrypted_content"):
        prefix = ID_PREFIXES["reasoning"]
        reason = (
            f"Without its own id ({prefix}_...) or encrypted content "
            "a reasoning item can't be sent back; it is left out."
        )
        drop_entry(editor, path, problem, "drop_reasoning", reason)
        return
    is_text = isinstance(item["id"], str)
    editor.expect_keys(path, "type", "call_id")
    editor.remove_key((*path, "id"))
    reason = "The item's id is not a text; it is left out."
    if is_text:
        reason = "The API gives no such ids to items of this type, which need none; it is left out."
    editor.done("drop_id", problem, reason)


def mend_names(editor: Editor, problems: list[Problem]) -> None:
    """Names of tools that the API refuses."""
    names = [item.get("name") for item in editor.document if isinstance(item, dict)]
    rename_tools(editor, problems, names, MAX_HISTORY_NAME)
