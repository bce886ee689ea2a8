"""Repairs of generateContent: contents and parts by themselves, from the outside in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.parts import marked_system
from lutumpy.doctor.conversion import mend_foreign_part, write_entry
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.entries import mend_entry, mend_role_as_shown
from lutumpy.doctor.gemini.spelling import SPELLING
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.mixed_reader import reader_for
from lutumpy.doctor.wording import as_object, as_text
from lutumpy.errors import Problem
from lutumpy.rules.gemini.blocks import PART_KEYS, data_of
from lutumpy.rules.gemini.fields import field, key_of, snake
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.problem import items

__all__ = [
    "drop_unknown_key",
    "mend_content",
    "mend_empty_parts",
    "mend_part",
    "mend_parts",
    "mend_role",
    "mend_signature_bytes",
    "mend_text",
]

_OTHER_NAMES: Mapping[str, str] = {
    "assistant": "model",
    "ai": "model",
    "bot": "model",
    "human": "user",
    "function": "user",
    "tool": "user",
}
"""Names of roles that other programs and providers use with exactly that meaning."""

_SYSTEM = ("system", "developer")
_ARGUMENTS = ("arguments", "input")
_RESPONSES = ("content", "output", "result")


def mend_content(editor: Editor, problem: Problem) -> None:
    """An entry that isn't a content: empty, or contents in a list inside the list."""
    mend_entry(editor, problem, lambda entry: isinstance(entry.get("parts"), list))


def mend_role(editor: Editor, problem: Problem) -> None:
    """A role under another name, or one that the parts show."""
    path = problem.path[:1]
    content = editor.get(path)
    if not isinstance(content, dict):
        return
    old = content.get("role")
    name = old.strip().lower() if isinstance(old, str) else ""
    if name in _SYSTEM:
        if "parts" not in content:
            return  # as another API has it: it is marked when its content becomes parts
        _write_system_as_user(editor, problem, content)
        return
    mend_role_as_shown(editor, problem, ("user", "model"), _find_shown_role, _OTHER_NAMES)


def _find_shown_role(content: Mapping[str, Any]) -> tuple[str, str] | None:
    """The role that a content must have, and what in it says so."""
    for part in items(content.get("parts")):
        if field(part, "functionResponse") is not None:
            return "user", "results"
        if field(part, "functionCall") is not None:
            return "model", "calls"
        if field(part, "thoughtSignature") is not None:
            return "model", "thoughts"
    return None


def _write_system_as_user(editor: Editor, problem: Problem, content: Mapping[str, Any]) -> None:
    path = problem.path[:1]
    for number, part in enumerate(items(content.get("parts"))):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            editor.put((*path, "parts", number, "text"), marked_system(part["text"]))
    editor.put((*path, "role"), "user")
    reason = "The API takes no instructions among the contents; they become marked user text."
    editor.done("set_role", problem, reason)


def mend_parts(editor: Editor, problem: Problem) -> None:
    """Parts that aren't a list: one part alone, a text, or something else."""
    path = problem.path
    parts = editor.get(path)
    if isinstance(parts, dict):
        editor.put(path, [parts])
        reason = "The parts are one part without a list around it; the list is added."
    else:
        editor.put(path, [{"text": parts if isinstance(parts, str) else as_text(parts)}])
        reason = "The parts are no list; what stands there becomes a text."
    editor.done("set_content", problem, reason)


def mend_empty_parts(editor: Editor, problem: Problem) -> None:
    """A content without parts."""
    reason = "The content has no parts, which the API refuses; it is left out."
    drop_entry(editor, problem.path[:1], problem, "drop_empty", reason)


def mend_part(editor: Editor, problem: Problem) -> None:
    """A part without data, with data of two kinds, or none at all."""
    path = problem.path[:3]
    part = editor.get(path)
    if not isinstance(part, dict):
        _mend_value(editor, problem, path, part)
        return
    if len(problem.path) > 3:
        _mend_field(editor, problem, path, part)
        return
    reason = "The part holds nothing, which the API refuses; it is left out."
    drop_entry(editor, path, problem, "drop_empty", reason)


def _mend_value(editor: Editor, problem: Problem, path: Path, part: Any) -> None:
    if part is None or part == "" or part == []:
        reason = "The part is empty and no object; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
        return
    editor.expect(path)
    editor.set_entry(path, {"text": part if isinstance(part, str) else as_text(part)})
    reason = "The part is no object; what stands there becomes a text."
    editor.done("set_content", problem, reason)


def _mend_field(editor: Editor, problem: Problem, path: Path, part: Mapping[str, Any]) -> None:
    key = str(problem.path[3])
    if key not in part:
        return  # another problem of this part has moved it
    names = [key_of(part, name) for name in data_of(part)]
    if key in names[1:] and isinstance(part.get(key), (str, dict)):
        value = part[key]
        editor.remove_key((*path, key))
        editor.insert((*path[:2], int(path[2]) + 1), {key: value})
        reason = "A part has one kind of data; the second gets a part of its own."
        editor.done("move_content", problem, reason)
        return
    editor.remove_key((*path, key))
    reason = f"The value of {key!r} is of another type than the API takes; it is left out."
    editor.done("drop_key", problem, reason)


def mend_text(editor: Editor, problem: Problem) -> None:
    """A text that is none."""
    value = editor.get(problem.path)
    if value is None or isinstance(value, str):
        return
    editor.put(problem.path, as_text(value))
    reason = "The text is no text; it becomes its JSON text."
    editor.done("set_content", problem, reason)


def drop_sealed(editor: Editor, problem: Problem) -> None:
    """A signature of another host: calls get the mark for those of others."""
    part = editor.get(problem.path[:3])
    if not isinstance(part, dict) or problem.path[-1] not in part:
        return
    if field(part, "functionCall") is not None:
        editor.put(problem.path, FOREIGN_SIGNATURE)
        reason = (
            "Only the host that issued this signature can read it; the mark for calls of others "
            "stands in its place."
        )
    else:
        editor.remove_key(problem.path)
        reason = "Only the host that issued this signature can read it; it is left out."
    editor.done("drop_reasoning", problem, reason)


def mend_signature_bytes(editor: Editor, problem: Problem) -> None:
    """A signature that nobody can have issued: calls get the mark for those of others."""
    part = editor.get(problem.path[:3])
    if not isinstance(part, dict) or problem.path[-1] not in part:
        return
    if field(part, "functionCall") is not None:
        editor.put(problem.path, FOREIGN_SIGNATURE)
        reason = "The signature is no bytes; the mark for calls of others stands in its place."
        editor.done("set_field", problem, reason)
        return
    editor.remove_key(problem.path)
    reason = "The signature is no bytes, so nobody has issued it; it is left out."
    editor.done("drop_key", problem, reason)


# ---------------------------------------------------------------- unknown keys


def drop_unknown_key(editor: Editor, problem: Problem) -> None:
    """A key that the API doesn't know: another name for one that it knows, or nothing."""
    path, key = problem.path[:-1], str(problem.path[-1])
    holder = editor.get(path)
    if not isinstance(holder, dict) or key not in holder:
        return
    if len(path) == 1 and key == "content" and not holder.get("parts"):
        _mend_foreign_content(editor, problem, holder)
        return
    if len(path) == 3 and not data_of(holder) and _mend_foreign(editor, problem, path, holder):
        return
    kind = snake(str(path[-1])) if len(path) == 4 else ""
    value = holder[key]
    if kind == "function_call" and key in _ARGUMENTS and holder.get("args") is None:
        editor.put((*path, "args"), as_object(value))
        editor.remove_key((*path, key))
        editor.done("wrap_arguments", problem, "The API's name for the arguments is 'args'.")
    elif kind == "function_response" and key in _RESPONSES and holder.get("response") is None:
        editor.put((*path, "response"), value if isinstance(value, dict) else {"output": value})
        editor.remove_key((*path, key))
        editor.done("set_content", problem, "The API's name for what came out is 'response'.")
    else:
        editor.remove_key((*path, key))
        reason = "The API refuses keys that it doesn't know; this one is left out."
        editor.done("drop_key", problem, reason)


def _mend_foreign_content(editor: Editor, problem: Problem, content: Mapping[str, Any]) -> None:
    """A content under the key of other APIs."""
    index = int(problem.path[0])
    role, pieces = reader_for(SPELLING).read_entry(content, index)
    entries = write_entry(SPELLING, role, pieces)
    if len(entries) != 1:
        reason = "Nothing is said under the key of other APIs; it is left out."
        editor.remove_key(problem.path)
        editor.done("drop_key", problem, reason)
        return
    editor.expect((index,))
    editor.set_entry((index,), entries[0])
    reason = "What is said stands under the key of other APIs; this one has it as parts."
    editor.done("set_content", problem, reason)


def _mend_foreign(editor: Editor, problem: Problem, path: Path, part: Mapping[str, Any]) -> bool:
    """A part as another API spells it, in this one's spelling."""
    if not isinstance(part.get("type"), str) or part.keys() & PART_KEYS:
        return False
    role = editor.get((path[0], "role"))
    return mend_foreign_part(SPELLING, editor, problem, path, by_model=role == "model")
