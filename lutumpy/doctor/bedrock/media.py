"""Repairs of Converse: images and documents, and how they are read and written for other APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.doctor.bedrock.paths import part_path
from lutumpy.doctor.block_turns import Conversation, expect_block
from lutumpy.doctor.editor import Editor, copied
from lutumpy.doctor.pieces import Media, Piece, non_empty_text
from lutumpy.doctor.spelling import Json
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.limits import DOCUMENT_FORMATS, IMAGE_FORMATS, allowed_document_name
from lutumpy.rules.bedrock.wire import WIRE
from lutumpy.rules.media import OTHER_NAMES, PDF, PLAIN, plain_type, type_of_bytes

__all__ = [
    "add_text",
    "mend_document_format",
    "mend_document_name",
    "mend_image_format",
    "move_out_of_result",
    "read_shown",
    "write_shown",
]

_SHOWN_AFTER = "What the tool gave stands behind the results."
# Media types by the formats that are not named as they are.
_TYPES: Mapping[str, str] = {
    "pdf": PDF,
    "txt": PLAIN,
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_FORMATS = {media_type: form for form, media_type in _TYPES.items()}


# ------------------------------------------------------- for other APIs


def read_shown(block: Mapping[str, Any]) -> Piece | None:
    """What a block `image` or `document` shows, in the terms of no API."""
    kind = "image" if "image" in block else "document"
    shown = block.get(kind)
    source = shown.get("source") if isinstance(shown, Mapping) else None
    if not isinstance(shown, Mapping) or not isinstance(source, Mapping):
        return None
    form, name = shown.get("format"), non_empty_text(shown.get("name"))
    data, words = non_empty_text(source.get("bytes")), non_empty_text(source.get("text"))
    if kind == "image":
        return None if data is None else Media("image", f"data:image/{form};base64,{data}")
    if words is not None:
        return Media("file", text=words, name=name)
    if data is None:
        return None
    media_type = _TYPES.get(str(form), "application/octet-stream")
    return Media("file", f"data:{media_type};base64,{data}", name=name)


def write_shown(media: Media) -> Json | None:
    """The block that shows an image or a file; `None` for what isn't in the request itself."""
    if media.kind == "audio":
        return None
    if media.data is None:
        return _write_text_file(media)
    media_type, data = media.data
    if media.kind == "image":
        form = _image_format(media_type)
        return None if form is None else {"image": {"format": form, "source": {"bytes": data}}}
    form = _FORMATS.get(media_type)
    if form is None:
        return None
    name = _allowed_name(media.name)
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


def _write_text_file(media: Media) -> Json | None:
    if media.text is None or media.kind != "file":
        return None
    name = _allowed_name(media.name)
    return {"document": {"format": "txt", "name": name, "source": {"text": media.text}}}


def _allowed_name(name: Any) -> str:
    return allowed_document_name(name if isinstance(name, str) else "")


def _image_format(media_type: str) -> str | None:
    """The format that a media type, or a format under another name, means."""
    name = plain_type(media_type)
    name = name if "/" in name else f"image/{name}"
    form = OTHER_NAMES.get(name, name).removeprefix("image/")
    return form if form in IMAGE_FORMATS else None


# -------------------------------------------------------------- repairs


def mend_image_format(editor: Editor, problem: Problem) -> None:
    """The format that the bytes show, or that its name means."""
    path = (*part_path(problem), "image")
    image = editor.get(path)
    if not isinstance(image, dict):
        return
    source = image.get("source")
    data = source.get("bytes") if isinstance(source, dict) else None
    shown = type_of_bytes(data) if isinstance(data, str) else None
    stated = image.get("format")
    form = _image_format(shown or (stated if isinstance(stated, str) else ""))
    if form is None:
        return
    editor.put((*path, "format"), form)
    reason = "The API doesn't know this format; it is set to what the name or bytes show."
    editor.done("set_field", problem, reason)


def mend_document_format(editor: Editor, problem: Problem) -> None:
    """The format that a media type or another name means."""
    path = (*part_path(problem), "document", "format")
    stated = editor.get(path)
    name = plain_type(stated) if isinstance(stated, str) else ""
    form = _FORMATS.get(name, {"text": "txt", "markdown": "md", "htm": "html"}.get(name, name))
    if form not in DOCUMENT_FORMATS:
        return
    editor.put(path, form)
    reason = "The API doesn't know this format under that name; it gets the API's name for it."
    editor.done("set_field", problem, reason)


def mend_document_name(editor: Editor, problem: Problem) -> None:
    """A name of the characters that the API takes."""
    path = (*part_path(problem), "document")
    document = editor.get(path)
    if not isinstance(document, dict):
        return
    name = _allowed_name(document.get("name"))
    editor.put((*path, "name"), name)
    reason = f"The API requires a name of letters, digits and single spaces; it becomes {name!r}."
    editor.done("set_field", problem, reason)


def add_text(editor: Editor, problem: Problem) -> None:
    """A text beside the documents of a message."""
    path = (problem.path[0], "content", 0)
    expect_block(editor, WIRE, problem.path[:3])
    at = path
    content = editor.get(path[:2])
    # Results stay first.
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and "toolResult" in block:
            at = (*path[:2], number + 1)
    editor.insert(at, {"text": "[document]"})
    reason = "The API wants a text in a message with a document; it gets one."
    editor.done("set_content", problem, reason)


def move_out_of_result(editor: Editor, problem: Problem) -> None:
    """A document or a film that a result can't show goes behind the results of its message."""
    path = part_path(problem)
    if len(path) != 6:
        return
    expect_block(editor, WIRE, path[:3])
    part = copied(editor.get(path))
    turn = Conversation(editor, WIRE).at(int(path[0]))
    results = turn.of("toolResult") if turn is not None else []
    end = (*path[:2], max(int(place[2]) for place, _ in results) + 1)
    editor.expect(path)
    editor.set_entry(path, {"text": _SHOWN_AFTER})
    editor.insert(end, part)
    reason = "This model takes no such file in a result; it goes behind the results."
    editor.done("move_content", problem, reason)
