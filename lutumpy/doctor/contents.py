"""Contents that both OpenAI wires refuse: a wrong type, nothing at all, parts of the other wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem

_EMPTY = "The message has no content, and the API refuses that; it is left out."


def mend_content(
    editor: Editor, problem: Problem, path: Path, *, key: str = "content", needed: bool
) -> None:
    """Content of a wrong type as text; a message without any is left out, a result without any says nothing.

    Args:
        editor: The messages.
        problem: What was found.
        path: The message or the output.
        key: Where its content is.
        needed: It can't be left out: a result, or a message with calls.
    """
    holder = editor.get(path)
    if not isinstance(holder, dict):
        return
    content = holder.get(key)
    if content is None or content in ([], {}):
        if not needed:
            drop_entry(editor, path, problem, "drop_empty", _EMPTY)
        else:
            editor.put((*path, key), "")
            editor.done(
                "set_content",
                problem,
                "The result has no content, and the API wants some; an empty text is that.",
            )
        return
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        editor.put((*path, key), [content])
        editor.done(
            "set_content",
            problem,
            "The content is one part without a list around it; the list is added.",
        )
    elif not isinstance(content, (str, list)):
        editor.put((*path, key), as_text(content))
        editor.done(
            "set_content",
            problem,
            "The content is neither text nor parts; it is written as JSON text.",
        )


def mend_part(
    editor: Editor, problem: Problem, path: Path, text_type: str, known: Mapping[str, str]
) -> None:
    """A part that is no object, or has the other wire's type, in the form that this wire takes.

    Args:
        editor: The messages.
        problem: What was found.
        path: The part.
        text_type: The type of a text at this place.
        known: Types that hold text, of either wire, and the key of the text.
    """
    part = editor.get(path)
    if isinstance(part, str) and part:
        editor.expect(path)
        editor.set_entry(path, {"type": text_type, "text": part})
        editor.done("set_content", problem, "A bare text among the parts becomes a text part.")
    elif not isinstance(part, dict):
        reason = "What stands among the parts is none; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    else:
        _mend_object(editor, problem, path, part, text_type, known)


def _mend_object(
    editor: Editor,
    problem: Problem,
    path: Path,
    part: dict[str, Any],
    text_type: str,
    known: Mapping[str, str],
) -> None:
    kind = part.get("type")
    if kind is not None and not isinstance(kind, str):
        return
    key = known.get(kind or "", "text")
    value = part.get(key)
    if kind in known and value is None:
        drop_entry(editor, path, problem, "drop_empty", "A text part without its text is left out.")
    elif kind in known and problem.path == (*path, key):
        editor.put((*path, key), as_text(value))
        editor.done(
            "set_content", problem, "The part's text is no text; it is written as JSON text."
        )
    elif isinstance(value, str) and (kind is None or kind in known):
        editor.expect((*path, key))
        editor.put((*path, "type"), text_type)
        if key != "text":
            editor.remove_key((*path, key))
            editor.put((*path, "text"), value)
        editor.done(
            "set_content",
            problem,
            f"A text stands here as a part of type {text_type!r}, with this API.",
        )
