"""Contents that both of OpenAI's APIs refuse: a wrong type, nothing, texts of another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem

__all__ = ["mend_content", "mend_text_part"]


def mend_content(
    editor: Editor, problem: Problem, path: Path, *, key: str = "content", needed: bool
) -> None:
    """Write content of a wrong type as text. A message without content is left out.

    Args:
        editor: The messages.
        problem: The problem with the content.
        path: The message or the output.
        key: Where its content is.
        needed: It can't be left out, because it is a result: it gets an empty text.
    """
    holder = editor.get(path)
    if not isinstance(holder, dict):
        return
    content = holder.get(key)
    if content is None or content in ([], {}):
        _mend_empty(editor, problem, path, key, needed=needed)
    elif isinstance(content, dict) and isinstance(content.get("type"), str):
        editor.put((*path, key), [content])
        reason = "The content is one part without a list around it; the list is added."
        editor.done("set_content", problem, reason)
    elif not isinstance(content, (str, list)):
        editor.put((*path, key), as_text(content))
        reason = "The content is neither a text nor a list of parts; it is written as JSON text."
        editor.done("set_content", problem, reason)


def _mend_empty(editor: Editor, problem: Problem, path: Path, key: str, *, needed: bool) -> None:
    if needed:
        editor.put((*path, key), "")
        reason = "The result has no content, but the API requires some; it gets an empty text."
        editor.done("set_content", problem, reason)
    else:
        reason = "The message has no content, which the API refuses; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)


def mend_text_part(
    editor: Editor, problem: Problem, path: Path, text_type: str, text_keys: Mapping[str, str]
) -> None:
    """Write a bare text, or a text part of another type, as this API's text part.

    Args:
        editor: The messages.
        problem: The problem with the part.
        path: The part.
        text_type: The type of a text at this place.
        text_keys: Types of parts that hold text, in either API, and the key of the text.
    """
    part = editor.get(path)
    if isinstance(part, str) and part:
        editor.expect(path)
        editor.set_entry(path, {"type": text_type, "text": part})
        reason = "A bare text stands among the parts; it becomes a text part."
        editor.done("set_content", problem, reason)
    elif not isinstance(part, dict):
        reason = "This entry of the content is not a part; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    else:
        _mend_text_object(editor, problem, path, part, text_type, text_keys)


def _mend_text_object(
    editor: Editor,
    problem: Problem,
    path: Path,
    part: dict[str, Any],
    text_type: str,
    text_keys: Mapping[str, str],
) -> None:
    kind = part.get("type")
    if kind is not None and not isinstance(kind, str):
        return
    # A refusal has its text under another key, and becomes a plain text where none may be.
    key = text_keys.get(kind or "", "text")
    text = part.get(key)
    if kind in text_keys and text is None:
        reason = "The text part has no text; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif kind in text_keys and problem.path == (*path, key):
        editor.put((*path, key), as_text(text))
        reason = "The value in the text part is not a text; it is written as JSON text."
        editor.done("set_content", problem, reason)
    elif isinstance(text, str) and (kind is None or kind in text_keys):
        editor.expect((*path, key))
        editor.put((*path, "type"), text_type)
        if key != "text":
            editor.remove_key((*path, key))
            editor.put((*path, "text"), text)
        reason = f"This text needs the type {text_type!r} in this API; the part gets it."
        editor.done("set_content", problem, reason)
