"""Images, files and documents whose media type is wrong, where their name or their bytes show the right one.

What has to be converted is left: which picture a film becomes, and who reads a table, is the program's to say.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.errors import Problem
from lutumpy.rules.media import PDF, PLAIN, data_type, image_type, plain_type, type_of_bytes

_PDF_BYTES = "JVBERi0"  # what base64 makes of %PDF-
_RENAMED = "The API doesn't know this media type; it is the one that the name or the bytes show."
_AS_TEXT = "The API takes no file of this type; it is a text, and stands here as one."
_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml")


def _part_path(problem: Problem) -> Path:
    path = problem.path
    inside = len(path) > 4 and path[3] == "content" and isinstance(path[4], int)
    return path[:5] if inside else path[:3]


def mend_block(editor: Editor, problem: Problem) -> None:
    """An image or a document of Messages."""
    path: Path = (*_part_path(problem), "source")
    source = editor.get(path)
    data = source.get("data") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(data, str):
        return
    block = editor.get(path[:-1])
    named = source.get("media_type")
    given = plain_type(named if isinstance(named, str) else None)
    if block.get("type") == "image":
        right = type_of_bytes(data) or image_type(given)
    elif source.get("type") == "text":
        right = PLAIN
    else:
        right = PDF if data.startswith(_PDF_BYTES) else None
    if right is not None:
        editor.put((*path, "media_type"), right)
        editor.done("set_field", problem, _RENAMED)
        return
    words = _words(given, data)
    if words and block.get("type") == "document":
        editor.expect((*path, "type"))
        editor.put(path, {"type": "text", "media_type": PLAIN, "data": words})
        editor.done("set_content", problem, _AS_TEXT)


def mend_chat_part(editor: Editor, problem: Problem) -> None:
    """An image or a file of Chat Completions."""
    path = problem.path[:3]
    part = editor.get(path)
    body = part.get(str(part.get("type"))) if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(body, dict):
        return
    url = body.get("url") if part["type"] == "image_url" else body.get("file_data")
    new: dict[str, Any] | None = None
    if part["type"] == "image_url" and _is_pdf(url):
        new = {"type": "file", "file": {"filename": "file.pdf", "file_data": url}}
    elif part["type"] == "file" and _as_image(url) is not None:
        new = {"type": "image_url", "image_url": {"url": _as_image(url)}}
    elif part["type"] == "file":
        new = _text_part(url, "text")
    _replace(editor, problem, path, new)


def mend_responses_part(editor: Editor, problem: Problem) -> None:
    """An image or a file of Responses."""
    path = problem.path[:3]
    part = editor.get(path)
    if not isinstance(part, dict):
        return
    new: dict[str, Any] | None
    if part.get("type") == "input_file":
        image = _as_image(part.get("file_data"))
        new = {"type": "input_image", "image_url": image} if image is not None else None
        new = new or _text_part(part.get("file_data"), "input_text")
    elif _is_pdf(part.get("image_url")):
        new = {"type": "input_file", "filename": "file.pdf", "file_data": part["image_url"]}
    else:
        new = _text_part(part.get("image_url"), "input_text")
    _replace(editor, problem, path, new)


def _replace(editor: Editor, problem: Problem, path: Path, new: dict[str, Any] | None) -> None:
    if new is None:
        return
    editor.expect(path)
    editor.set_entry(path, new)
    reason = (
        _AS_TEXT
        if "text" in new
        else f"What this shows is written as a part of type {new['type']!r}, with this API."
    )
    editor.done("set_content", problem, reason)


def _is_pdf(url: Any) -> bool:
    return data_type(url) == PDF


def _as_image(url: Any) -> str | None:
    """The data URL of an image, under the type that its name or its bytes show."""
    given = data_type(url)
    if given is None:
        return None
    data = url.partition(",")[2]
    right = type_of_bytes(data) or image_type(given)
    return f"data:{right};base64,{data}" if right is not None else None


def _text_part(url: Any, kind: str) -> dict[str, Any] | None:
    words = _words(data_type(url) or "", url.partition(",")[2]) if isinstance(url, str) else None
    return {"type": kind, "text": words} if words else None


def _words(media_type: str, data: str) -> str | None:
    """The text of a file that is one."""
    if not media_type.startswith("text/") and media_type not in _TEXTS:
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
