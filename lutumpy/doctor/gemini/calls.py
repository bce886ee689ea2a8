"""Repairs of generateContent: the fields of calls and results, and what they show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.gemini.matching import Conversation
from lutumpy.doctor.media import TAKEN_FROM_DATA_URL, base64_of_data_url
from lutumpy.doctor.wording import as_object
from lutumpy.errors import Problem
from lutumpy.rules.gemini.fields import field, key_of
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.media import type_of_bytes
from lutumpy.rules.problem import text

__all__ = [
    "drop_second_signature",
    "mend_args",
    "mend_id",
    "mend_media",
    "mend_media_type",
    "mend_names",
    "mend_response",
    "mend_result_ids",
    "mend_result_names",
    "mend_result_parts",
    "mend_signature",
]


def mend_id(editor: Editor, problem: Problem) -> None:
    """An id that isn't a text: its digits, or none."""
    value = editor.get(problem.path)
    if value is None:
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        editor.put(problem.path, str(value))
        reason = f"The id is a number; it becomes the text {str(value)!r}."
        editor.done("replace_id", problem, reason)
        return
    editor.remove_key(problem.path)
    editor.done("drop_id", problem, "The id is no text, and none is needed; it is left out.")


def mend_names(editor: Editor, problems: list[Problem]) -> None:
    """Names that are missing: that of the call, or of its result."""
    conversation = Conversation(editor)
    for problem in problems:
        path = problem.path[:4]
        if not isinstance(path[0], int) or not isinstance(editor.get(path), dict):
            continue
        other = conversation.partner.get(path) or conversation.in_place.get(path)
        name = text(editor.get((*other, "name"))) if other is not None else None
        editor.put((*path, "name"), name or UNNAMED)
        reason = f"The API refuses calls and results without a name; this one becomes {name!r}."
        if not name:
            reason = f"Nothing shows the name, which the API requires; it becomes {UNNAMED!r}."
        editor.done("rename_tool", problem, reason)


def mend_args(editor: Editor, problem: Problem) -> None:
    """Arguments that aren't an object."""
    editor.put(problem.path, as_object(editor.get(problem.path)))
    reason = "The arguments are no object, which the API requires; they are put into one."
    editor.done("wrap_arguments", problem, reason)


def mend_response(editor: Editor, problem: Problem) -> None:
    """A response that isn't an object."""
    value = editor.get(problem.path)
    editor.put(problem.path, {} if value is None else {"output": value})
    reason = "The response is no object, which the API requires; it is put into one."
    editor.done("set_content", problem, reason)


def mend_result_parts(editor: Editor, problem: Problem) -> None:
    """What a result shows, in a form that the API takes."""
    path = problem.path
    value = editor.get(path)
    if len(path) == 5:
        if isinstance(value, dict):
            editor.put(path, [value])
            editor.done("set_content", problem, "One file stands without a list; it gets one.")
            return
        editor.remove_key(path)
    elif isinstance(path[-1], int):
        editor.expect(path)
        editor.remove(path)
    else:
        editor.remove_key(path)
    editor.done("drop_key", problem, "The API doesn't know what this shows; it is left out.")


def mend_media(editor: Editor, problem: Problem) -> None:
    """Bytes in a data URL: the base64 in it."""
    data = base64_of_data_url(editor.get(problem.path))
    if data is None:
        return
    editor.put(problem.path, data)
    editor.done("set_content", problem, TAKEN_FROM_DATA_URL)


def mend_media_type(editor: Editor, problem: Problem) -> None:
    """The media type that the bytes show."""
    path = problem.path[:-1]
    holder = editor.get(path)
    data = holder.get("data") if isinstance(holder, Mapping) else None
    found = type_of_bytes(data) if isinstance(data, str) else None
    if found is None or found == editor.get(problem.path):
        return
    editor.put((*path, key_of(holder, "mimeType")), found)
    editor.done("set_field", problem, f"The bytes are those of {found}; the media type says so.")


# ------------------------------------------------------- ids, names, signatures


def mend_result_ids(editor: Editor, problems: list[Problem]) -> None:
    """Results with another id than the call in their place: the call's, or none."""
    conversation = Conversation(editor)
    for problem in problems:
        path = problem.path[:4]
        call = conversation.in_place.get(path)
        if call is None:
            continue
        wanted = text(editor.get((*call, "id")))
        editor.expect_keys(path, "name")
        if wanted:
            editor.put((*path, "id"), wanted)
            reason = "The result has another id than the call in its place; it gets the call's."
        else:
            editor.remove_key((*path, "id"))
            reason = "The call in its place has no id; the id of the result is left out."
        editor.done("match_result", problem, reason, call_ids=(wanted,) if wanted else ())


def mend_result_names(editor: Editor, problems: list[Problem]) -> None:
    """Results with another name than their call."""
    conversation = Conversation(editor)
    for problem in problems:
        path: Path = problem.path[:4]
        call = conversation.partner.get(path)
        result_id = text(editor.get((*path, "id")))
        # Without an id that tells it, the place does.
        if call is None or not result_id or editor.get((*call, "id")) != result_id:
            call = conversation.in_place.get(path)
        name = text(editor.get((*call, "name"))) if call is not None else None
        if not name or name == editor.get((*path, "name")):
            continue
        editor.put((*path, "name"), name)
        reason = f"The result has another name than its call; it gets the call's, {name!r}."
        editor.done("set_field", problem, reason)


def mend_signature(editor: Editor, problem: Problem) -> None:
    """A first call without a signature: the mark for calls that Gemini did not make."""
    part: Any = editor.get(problem.path[:3])
    if field(part, "functionCall") is None:
        return
    editor.expect((*problem.path[:3], key_of(part, "functionCall"), "name"))
    editor.put((*problem.path[:3], key_of(part, "thoughtSignature")), FOREIGN_SIGNATURE)
    reason = (
        "The first call of a content needs its signature, which is lost or never was; the mark for "
        "calls that the model did not make stands in its place."
    )
    editor.done("set_field", problem, reason)


def drop_second_signature(editor: Editor, problem: Problem) -> None:
    """A signature on another call than the first."""
    editor.remove_key(problem.path)
    reason = "Only the first call of a content is signed; this signature is left out."
    editor.done("drop_key", problem, reason)
