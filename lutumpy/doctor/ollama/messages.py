"""Repairs of Ollama's API: roles, contents and images of single messages."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.entries import has_role, mend_entry, mend_role_as_shown
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.mixed_reader import reader_for
from lutumpy.doctor.ollama.spelling import SPELLING, write_text_and_images
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem
from lutumpy.rules.ollama.messages import ROLES, is_base64

__all__ = ["mend_content", "mend_images", "mend_list_entry", "mend_role", "write_as_text"]


def mend_list_entry(editor: Editor, problem: Problem) -> None:
    """An entry of the list that is not a message."""
    mend_entry(editor, problem, lambda entry: has_role(entry, ROLES, _find_shown_role))


def mend_role(editor: Editor, problem: Problem) -> None:
    """A role in other words, or one that is missing and shown by what the message holds."""
    mend_role_as_shown(editor, problem, ROLES, _find_shown_role)


def _find_shown_role(message: dict[str, Any]) -> tuple[str, str] | None:
    """The role that a message must have, and what in it says so."""
    if message.get("tool_name") or message.get("tool_call_id"):
        return "tool", "the name or the id of a call"
    if message.get("tool_calls"):
        return "assistant", "calls"
    return ("user", "images") if message.get("images") else None


def mend_content(editor: Editor, problem: Problem) -> None:
    """Content that isn't a text: parts become a text, with their images beside it."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    content = message.get("content")
    if content is None or isinstance(content, str):
        return  # what stands elsewhere could not be read
    parts = [content] if isinstance(content, dict) and "type" in content else content
    if not isinstance(parts, list):
        write_as_text(editor, problem)
        return
    reader = reader_for(SPELLING)
    _, pieces = reader.read_entry({"role": "user", "content": parts}, int(path[0]))
    written = write_text_and_images(SPELLING, pieces)
    editor.put((*path, "content"), written["content"])
    reason = "The content is a list of parts, and the API takes one text; the texts are joined."
    if "images" in written:
        before = message.get("images")
        images = [*(before if isinstance(before, list) else ()), *written["images"]]
        editor.put((*path, "images"), images)
        reason += " Images stand beside it."
    editor.done("set_content", problem, reason)


def write_as_text(editor: Editor, problem: Problem) -> None:
    """A value of another type in place of a text: its JSON."""
    value = editor.get(problem.path)
    editor.put(problem.path, as_text(value))
    reason = "The API takes a text here, and refuses the request otherwise; it is written as JSON."
    editor.done("set_content", problem, reason)


def mend_images(editor: Editor, problem: Problem) -> None:
    """Images that aren't a list of base64 texts."""
    path = (*problem.path[:1], "images")
    images = editor.get(path)
    if not isinstance(images, list):
        if isinstance(images, str):
            editor.put(path, [images])
            reason = "`images` is one image without a list around it; the list is added."
            editor.done("set_content", problem, reason)
        else:
            editor.remove_key(path)
            reason = "`images` holds no images, which the API refuses; the key is left out."
            editor.done("drop_key", problem, reason)
        return
    place = problem.path[:3]
    if len(place) < 3:
        return
    data = _data_of(editor.get(place))
    if data is None:
        reason = "This entry of `images` holds no image in base64; it is left out."
        drop_entry(editor, place, problem, "drop_empty", reason)
        return
    editor.expect(place)
    editor.set_entry(place, data)
    reason = "The API takes the base64 text of an image alone; what stands around it is left out."
    editor.done("set_content", problem, reason)


def _data_of(image: Any) -> str | None:
    """The base64 text in what other APIs write for an image."""
    if isinstance(image, dict):
        return next(
            (found for inner in image.values() if (found := _data_of(inner)) is not None), None
        )
    if not isinstance(image, str) or not image.startswith("data:"):
        return None
    data = image.partition(",")[2]
    return data if data and is_base64(data) else None
