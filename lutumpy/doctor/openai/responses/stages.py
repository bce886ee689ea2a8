"""Repairs of Responses input: what stands inside one item."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.contents import mend_content, mend_part
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.entries import mend_entry, mend_role_name
from lutumpy.doctor.foreign import mend_foreign_part
from lutumpy.doctor.media import mend_responses_part
from lutumpy.doctor.mending import (
    Stage,
    drop_entry,
    drop_key,
    each,
    replace_characters,
    write_nested,
)
from lutumpy.doctor.openai.chat.stages import mend_names, wrap_long, wrap_unreadable
from lutumpy.doctor.openai.responses.calls import drop_truncated, mend_interleaved
from lutumpy.doctor.openai.responses.pairing import (
    mend_ids,
    mend_items,
    mend_outputs,
    mend_reasoning,
    mend_repeats,
)
from lutumpy.doctor.wording import as_arguments, as_text, shortened
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.items import ITEM_KEYS, ITEM_TYPES, ROLES, item_type
from lutumpy.rules.openai.responses.limits import ID_PREFIXES, MAX_HISTORY_NAME, MAX_OUTPUT

_TEXT_KEYS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_SHOWN = ("input_image", "input_file")
_NEEDS_ID = ("item_reference", "mcp_approval_request")


def _is_item(entry: dict[str, Any]) -> bool:
    return entry.get("role") in ROLES or entry.get("type") in ITEM_TYPES


def _item(editor: Editor, problem: Problem) -> None:
    """An item that doesn't say its type, where its keys do; a reference to nothing."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict):
        mend_entry(editor, problem, _is_item)
        return
    if item_type(item) == "item_reference":
        drop_entry(
            editor,
            path,
            problem,
            "drop_reference",
            "The item refers to another one and doesn't say to which.",
        )
        return
    if item.get("type") is not None:
        return
    named = isinstance(item.get("call_id"), str)
    if "output" in item and (named or item.keys() <= ITEM_KEYS["function_call_output"]):
        kind = "function_call_output"
    elif {"name", "arguments"} <= item.keys() and (
        named or item.keys() <= ITEM_KEYS["function_call"]
    ):
        kind = "function_call"
    else:
        return
    editor.expect_keys(path, "call_id")
    editor.put((*path, "type"), kind)
    editor.done(
        "set_field", problem, f"The item doesn't say its type; one with these keys is a {kind}."
    )


def _role(editor: Editor, problem: Problem) -> None:
    """Messages whose parts tell the role."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict) or mend_role_name(editor, problem, ROLES):
        return
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    kinds = {str(part.get("type")) for part in parts if isinstance(part, dict)}
    if kinds and kinds <= {"output_text", "refusal"}:
        role = "assistant"
    elif kinds and kinds <= {"input_text", "input_image", "input_file"}:
        role = "user"
    else:
        return
    editor.put((*path, "role"), role)
    editor.done(
        "set_role",
        problem,
        f"The role is missing or unknown; parts of these types are of the role {role!r}.",
    )


def _keys(editor: Editor, problem: Problem) -> None:
    item = editor.get(problem.path[:1])
    known = ITEM_KEYS.get(item_type(item)) if isinstance(item, dict) else None
    if known is not None:
        drop_key(editor, problem, known, problem.path[:1])


def _content(editor: Editor, problem: Problem) -> None:
    mend_content(editor, problem, problem.path[:1], needed=False)


def _output(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    item = editor.get(path)
    output = item.get("output") if isinstance(item, dict) else None
    if isinstance(output, str) and len(output) > MAX_OUTPUT:
        note = f"... [cut: {len(output)} characters]"
        editor.put((*path, "output"), shortened(output, MAX_OUTPUT, lambda text: text + note))
        reason = f"The output's {len(output)} characters are more than the {MAX_OUTPUT} that the API takes; the rest is cut."
        editor.done("set_content", problem, reason)
        return
    mend_content(editor, problem, path, key="output", needed=True)


def _parts(editor: Editor, problem: Problem) -> None:
    path = problem.path[:3]
    if len(path) < 3:
        return
    part = editor.get(path)
    assistant = editor.get((path[0], "role")) == "assistant" and path[1] == "content"
    if mend_foreign_part("openai_responses", editor, problem, path, assistant=assistant):
        return
    if assistant and isinstance(part, dict) and part.get("type") in _SHOWN:
        _move_part(editor, problem, part)
        return
    mend_part(editor, problem, path, "output_text" if assistant else "input_text", _TEXT_KEYS)


def _move_part(editor: Editor, problem: Problem, part: dict[str, Any]) -> None:
    """What an assistant's message was to show goes into a user message behind the items of that turn."""
    path = problem.path[:3]
    behind = int(path[0]) + 1
    while isinstance(after := editor.get((behind,)), dict) and item_type(after) not in (
        "message",
        "reasoning",
    ):
        behind += 1
    note = f"[{part['type']} of the assistant's message]"
    editor.expect(path)
    editor.set_entry(
        path, {"type": "output_text", "text": f"{note[:-1]}: see the user message behind]"}
    )
    editor.insert(
        (behind,), {"role": "user", "content": [{"type": "input_text", "text": note}, part]}
    )
    reason = "An assistant's message shows nothing; the part goes into a user message behind it."
    editor.done("move_content", problem, reason)


def _summary(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    item = editor.get(path)
    summary = item.get("summary") if isinstance(item, dict) else None
    editor.expect_keys(path, "type", "id")
    editor.put(
        (*path, "summary"),
        [{"type": "summary_text", "text": summary}] if isinstance(summary, str) else [],
    )
    editor.done(
        "set_field", problem, "A reasoning item has a list of summaries, also an empty one."
    )


def _arguments(editor: Editor, problem: Problem) -> None:
    value = editor.get(problem.path)
    if problem.path[-1] == "input":
        editor.put(problem.path, "" if value is None else as_text(value))
    else:
        editor.put(problem.path, as_arguments(value))
    editor.done(
        "wrap_arguments",
        problem,
        "The arguments have to be a text with this API; they are written as JSON.",
    )


def _status(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    editor.expect_keys(path, "type", "call_id")
    editor.remove_key((*path, "status"))
    editor.done(
        "drop_key",
        problem,
        "The API doesn't take this status here, and an item needs none; it is left out.",
    )


def _item_id(editor: Editor, problem: Problem) -> None:
    """An id that isn't one of its type: items need none."""
    path = problem.path[:1]
    item = editor.get(path)
    if not isinstance(item, dict) or "id" not in item or item_type(item) in _NEEDS_ID:
        return
    value = item["id"]
    prefix = ID_PREFIXES.get(item_type(item), "")
    if item_type(item) == "reasoning" and not item.get("encrypted_content"):
        reason = f"Without its own id ({prefix}_...) or encrypted content, a reasoning item can't be sent back."
        drop_entry(editor, path, problem, "drop_reasoning", reason)
        return
    editor.expect_keys(path, "type", "call_id")
    editor.remove_key((*path, "id"))
    reason = "The item's id is none that the API gave to an item of this type; items need no id, so it is left out."
    editor.done(
        "drop_id",
        problem,
        reason if isinstance(value, str) else "The item's id is no text; it is left out.",
    )


def _names(editor: Editor, problems: list[Problem]) -> None:
    names = [item.get("name") for item in editor.document if isinstance(item, dict)]
    mend_names(editor, problems, names, MAX_HISTORY_NAME)


def _stage(**menders: Any) -> tuple[frozenset[str], Stage]:
    named = {f"responses.{name}": mender for name, mender in menders.items()}
    return frozenset(named), each(named)


STAGES: tuple[tuple[frozenset[str], Stage], ...] = (
    _stage(nesting=write_nested),
    _stage(encoding=replace_characters),
    _stage(input=_item, role=_role),
    _stage(item_keys=_keys),
    (frozenset({"responses.truncated_call"}), drop_truncated),
    _stage(
        arguments=_arguments,
        arguments_json=wrap_unreadable,
        arguments_length=wrap_long,
        reasoning_summary=_summary,
        output=_output,
    ),
    (frozenset({"responses.call_name"}), _names),
    _stage(content=_content, parts=_parts),
    _stage(image_type=mend_responses_part, file_data=mend_responses_part, status=_status),
    (frozenset({"responses.call_id"}), mend_ids),
    _stage(item_id=_item_id),
    (frozenset({"responses.duplicate_item"}), mend_items),
    (frozenset({"responses.duplicate_call_id"}), mend_repeats),
    (
        frozenset(
            {"responses.output_for_call", "responses.call_for_output", "responses.duplicate_output"}
        ),
        mend_outputs,
    ),
    (frozenset({"responses.interleaved_calls"}), mend_interleaved),
    (frozenset({"responses.dangling_reasoning"}), mend_reasoning),
)
"""What is mended first, and so on: each pass mends one stage, and the next one sees the items as they are then."""
