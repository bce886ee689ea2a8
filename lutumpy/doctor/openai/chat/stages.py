"""Repairs of Chat Completions messages: what stands inside one message."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.contents import mend_content, mend_part
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.entries import mend_entry, mend_role_name
from lutumpy.doctor.foreign import mend_foreign_part
from lutumpy.doctor.media import mend_chat_part
from lutumpy.doctor.mending import Stage, drop_entry, each, replace_characters, write_nested
from lutumpy.doctor.openai.chat.pairing import (
    mend_ids,
    mend_pairing,
    mend_repeats,
    mend_result_ids,
    mend_reused,
)
from lutumpy.doctor.spellings import type_of
from lutumpy.doctor.wording import Fresh, as_arguments, as_text, shortened
from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.limits import MAX_CALLS
from lutumpy.rules.openai.chat.messages import PARTS, ROLES
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_NAME

_USER_PARTS = frozenset(PARTS["user"]) - {"text"}
_TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def _role(editor: Editor, problem: Problem) -> None:
    message = editor.get(problem.path[:1])
    if not isinstance(message, dict) or mend_role_name(editor, problem, ROLES):
        return
    if isinstance(message.get("tool_call_id"), str) and not message.get("tool_calls"):
        role, sign = "tool", "a tool_call_id"
    elif isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
        role, sign = "assistant", "tool_calls"
    else:
        kinds = _part_kinds(message.get("content"))
        if kinds & _USER_PARTS and kinds <= {"text", *_USER_PARTS}:
            role, sign = "user", "images, sounds or files"
        elif "refusal" in kinds and kinds <= {"text", "refusal"}:
            role, sign = "assistant", "a refusal"
        else:
            return
    editor.put((problem.path[0], "role"), role)
    editor.done(
        "set_role",
        problem,
        f"The role is missing or unknown; a message with {sign} is of the role {role!r}.",
    )


def _part_kinds(content: Any) -> set[str]:
    parts = content if isinstance(content, list) else []
    return {
        part["type"]
        for part in parts
        if isinstance(part, dict) and isinstance(part.get("type"), str)
    }


def _entry(editor: Editor, problem: Problem) -> None:
    mend_entry(editor, problem, lambda entry: entry.get("role") in ROLES)


def _role_for_model(editor: Editor, problem: Problem) -> None:
    editor.put((problem.path[0], "role"), "user")
    editor.done(
        "set_role", problem, "This model knows instructions only as a message of the user's."
    )


def _content(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    if (
        message.get("content") == []
        and message.get("role") == "assistant"
        and message.get("tool_calls")
    ):
        editor.put((*path, "content"), None)
        editor.done(
            "set_content",
            problem,
            "The list of parts is empty, which the API refuses; a turn with calls needs none.",
        )
        return
    mend_content(editor, problem, path, needed=message.get("role") in ("tool", "function"))


def _parts(editor: Editor, problem: Problem) -> None:
    message = editor.get(problem.path[:1])
    role = message.get("role") if isinstance(message, dict) else None
    if len(problem.path) < 3 or not isinstance(role, str):
        return
    part = editor.get(problem.path[:3])
    if mend_foreign_part(
        "openai_chat", editor, problem, problem.path[:3], assistant=role == "assistant"
    ):
        return
    if role in ("tool", "assistant") and isinstance(part, dict) and type_of(part) in _USER_PARTS:
        _move_part(editor, problem, part, role)
        return
    mend_part(editor, problem, problem.path[:3], "text", _TEXT_KEYS)


def _move_part(editor: Editor, problem: Problem, part: dict[str, Any], role: str) -> None:
    """Only a user shows something, so what another message was to show goes into a user message behind the results."""
    index = int(problem.path[0])
    behind = index + 1
    while isinstance(after := editor.get((behind,)), dict) and after.get("role") == "tool":
        behind += 1
    whose = (
        f"result of call {editor.get((index, 'tool_call_id'))}"
        if role == "tool"
        else "assistant's message"
    )
    note = f"[{part['type']} of the {whose}]"
    editor.expect(problem.path[:3])
    where = "after the results" if role == "tool" else "behind"
    editor.set_entry(
        problem.path[:3], {"type": "text", "text": f"{note[:-1]}: see the user message {where}]"}
    )
    editor.insert((behind,), {"role": "user", "content": [{"type": "text", "text": note}, part]})
    reason = (
        "A tool message takes text only; the part goes into a user message after the results."
        if role == "tool"
        else "An assistant's message shows nothing; the part goes into a user message behind it."
    )
    editor.done("move_content", problem, reason)


# ------------------------------------------------------------------- calls


def _calls(editor: Editor, problem: Problem) -> None:
    path = problem.path
    if len(path) < 3:
        calls = editor.get(path)
        if isinstance(calls, dict):
            editor.put(path, [calls])
            editor.done(
                "set_field", problem, "One call without a list around it; the list is added."
            )
        elif not isinstance(calls, list) or not calls:
            editor.remove_key(path)
            editor.done(
                "drop_key",
                problem,
                "`tool_calls` holds no call, which the API refuses; the key is left out.",
            )
        return
    call = editor.get(path[:3])
    if not isinstance(call, dict):
        drop_entry(
            editor,
            path[:3],
            problem,
            "drop_call",
            "What stands among the calls is none; it is left out.",
        )
        return
    _call(editor, problem, call)


def _split(editor: Editor, problem: Problem) -> None:
    """More calls than a message takes: the rest goes into messages of its own, and the results follow them in a later pass."""
    path = problem.path
    calls = editor.get(path) if len(path) == 2 else None
    if not isinstance(calls, list) or len(calls) <= MAX_CALLS:
        return
    behind = int(path[0]) + 1
    while isinstance(after := editor.get((behind,)), dict) and after.get("role") == "tool":
        behind += 1
    parts = [calls[start : start + MAX_CALLS] for start in range(0, len(calls), MAX_CALLS)]
    editor.put(path, parts[0])
    for part in parts[1:]:
        editor.insert((behind,), {"role": "assistant", "content": None, "tool_calls": part})
    reason = f"A message takes {MAX_CALLS} calls; those beyond go into an assistant message behind the results."
    editor.done("move_call", problem, reason)


def _call(editor: Editor, problem: Problem, call: dict[str, Any]) -> None:
    path = problem.path[:3]
    kind = call.get("type")
    if kind in ("function", "custom") and isinstance(call.get(kind), dict):
        return
    for known in ("function", "custom"):
        if isinstance(call.get(known), dict):
            editor.expect_keys(path, "id")
            editor.put((*path, "type"), known)
            editor.done("set_field", problem, f"The call has a {known}, so its type is {known!r}.")
            return
    if isinstance(call.get("name"), str) and isinstance(call.get("arguments"), (str, dict)):
        body = {"name": call["name"], "arguments": call["arguments"]}
        editor.remove_key((*path, "name"))
        editor.remove_key((*path, "arguments"))
        editor.put((*path, "type"), "function")
        editor.put((*path, "function"), body)
        editor.done(
            "set_field", problem, "Name and arguments belong under `function`, with this API."
        )
        return
    reason = "The call names no tool and has no arguments, so nobody can tell what it was; it is left out."
    drop_entry(editor, path, problem, "drop_call", reason)


def _arguments(editor: Editor, problem: Problem) -> None:
    path = problem.path
    value = editor.get(path)
    if path[-1] == "input":
        editor.put(path, "" if value is None else as_text(value))
    else:
        editor.put(path, as_arguments(value))
    editor.done(
        "wrap_arguments",
        problem,
        "The arguments have to be a text with this API; they are written as JSON.",
    )


def wrap_unreadable(editor: Editor, problem: Problem) -> None:
    """Arguments that are no JSON, in a form that every API takes; the model's text is kept."""
    editor.put(problem.path, as_arguments(editor.get(problem.path)))
    editor.done(
        "wrap_arguments",
        problem,
        "The arguments can't be read as a JSON object, which other hosts and APIs want; the model's text is kept inside one.",
    )


def wrap_long(editor: Editor, problem: Problem) -> None:
    """Arguments longer than the API takes back, cut."""
    value = editor.get(problem.path)
    if not isinstance(value, str) or len(value) <= MAX_ARGUMENTS:
        return
    wrap = as_text if problem.path[-1] == "input" else lambda text: as_text({"TRUNCATED": text})
    editor.put(problem.path, shortened(value, MAX_ARGUMENTS, wrap))
    reason = f"The {len(value)} characters are more than the {MAX_ARGUMENTS} that the API takes back; what is beyond is cut."
    editor.done("wrap_arguments", problem, reason)


def mend_names(editor: Editor, problems: list[Problem], names: list[Any], limit: int) -> None:
    """Names of tools that the API refuses, replaced the same way everywhere."""
    fresh = Fresh([name for name in names if isinstance(name, str)], limit)
    given: dict[str, str] = {}
    for problem in problems:
        old = editor.get(problem.path)
        key = old if isinstance(old, str) else ""
        new = given.get(key) or fresh.name(key)
        given[key] = new
        editor.put(problem.path, new)
        reason = (
            "The call names no tool"
            if not key
            else "The API refuses this name of a tool in a history"
        )
        editor.done(
            "rename_tool",
            problem,
            f"{reason}; it is called {new!r} instead, the same way at each call.",
        )


def _names(editor: Editor, problems: list[Problem]) -> None:
    names: list[Any] = []
    for message in editor.document:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            body = call.get(call.get("type") or "function") if isinstance(call, dict) else None
            names.append(body.get("name") if isinstance(body, dict) else None)
    mend_names(editor, [p for p in problems if p.rule == "chat.call_name"], names, MAX_NAME)


STAGES: tuple[tuple[frozenset[str], Stage], ...] = (
    (frozenset({"chat.nesting"}), each({"chat.nesting": write_nested})),
    (frozenset({"chat.encoding"}), each({"chat.encoding": replace_characters})),
    (frozenset({"chat.messages"}), each({"chat.messages": _entry})),
    (frozenset({"chat.role"}), each({"chat.role": _role})),
    (frozenset({"chat.tool_calls"}), each({"chat.tool_calls": _split})),
    (frozenset({"chat.tool_calls"}), each({"chat.tool_calls": _calls})),
    (
        frozenset(
            {
                "chat.arguments",
                "chat.arguments_json",
                "chat.arguments_length",
                "chat.role_for_model",
            }
        ),
        each(
            {
                "chat.arguments": _arguments,
                "chat.arguments_json": wrap_unreadable,
                "chat.arguments_length": wrap_long,
                "chat.role_for_model": _role_for_model,
            }
        ),
    ),
    (frozenset({"chat.call_name"}), _names),
    (
        frozenset({"chat.content", "chat.parts"}),
        each({"chat.content": _content, "chat.parts": _parts}),
    ),
    (
        frozenset({"chat.image_type", "chat.file_data"}),
        each({"chat.image_type": mend_chat_part, "chat.file_data": mend_chat_part}),
    ),
    (frozenset({"chat.call_id"}), mend_ids),
    (frozenset({"chat.tool_call_id"}), mend_result_ids),
    (frozenset({"chat.duplicate_call_id"}), mend_repeats),
    (
        frozenset(
            {
                "chat.results_after_calls",
                "chat.result_without_calls",
                "chat.unknown_call_id",
                "chat.duplicate_result",
            }
        ),
        mend_pairing,
    ),
    (frozenset({"chat.reused_call_id", "chat.result_order"}), mend_reused),
)
"""What is mended first, and so on: each pass mends one stage, and the next one sees the messages as they are then."""
