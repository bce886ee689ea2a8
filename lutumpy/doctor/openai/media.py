"""Images, files and sounds of OpenAI's APIs: read, written, and mended where their type is wrong.

Both APIs name the same things, Chat Completions in an object of its own (`image_url.url`,
`file.file_data`), Responses in the part itself (`image_url`, `file_data`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.media import PDF_BEGINS, WRITTEN_AS_TEXT, decode_text_file
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.pieces import Media, Piece, non_empty_text, type_of
from lutumpy.doctor.spelling import Json
from lutumpy.errors import Problem
from lutumpy.rules.media import PDF, data_type, image_type, is_data_url, type_of_bytes

__all__ = [
    "mend_chat_media",
    "mend_chat_source",
    "mend_responses_media",
    "mend_responses_source",
    "read_audio",
    "read_file",
    "read_image",
    "write_audio",
]

# ------------------------------------------------------------ for conversion


def read_image(part: Mapping[str, Any]) -> Piece | None:
    """`image_url` of Chat Completions, `input_image` of Responses."""
    image = part.get("image_url")
    if isinstance(image, Mapping):
        url, detail = image.get("url"), image.get("detail")
    else:
        url, detail = image, part.get("detail")
    url, file_id = non_empty_text(url), non_empty_text(part.get("file_id"))
    if url is None and file_id is None:
        return None
    return Media("image", url, file_id, "openai", detail=non_empty_text(detail))


def read_file(part: Mapping[str, Any]) -> Piece | None:
    """`file` of Chat Completions, `input_file` of Responses."""
    file = part.get("file")
    body: Mapping[str, Any] = file if isinstance(file, Mapping) else part
    url = non_empty_text(body.get("file_data")) or non_empty_text(body.get("file_url"))
    file_id = non_empty_text(body.get("file_id"))
    if url is None and file_id is None:
        return None
    return Media("file", url, file_id, "openai", non_empty_text(body.get("filename")))


def read_audio(part: Mapping[str, Any]) -> Piece | None:
    """`input_audio` of both."""
    audio = part.get("input_audio")
    return Media("audio", audio=audio) if isinstance(audio, Mapping) else None


def write_audio(media: Media) -> Json | None:
    """A sound as both write it; `None` for anything else."""
    if media.audio is None:
        return None
    return {"type": "input_audio", "input_audio": copied(dict(media.audio))}


# ------------------------------------------------------------------ mending


def mend_chat_source(editor: Editor, problem: Problem) -> None:
    """An address without the object around it; an image without its bytes, bytes without `data:`; a
    file without its name.
    """
    file_path = (*problem.path[:3], "file")
    if isinstance(editor.get(file_path), dict):
        _mend_file(editor, problem, file_path)
        return
    path = (*problem.path[:3], "image_url")
    image = editor.get(path)
    if isinstance(image, str):
        editor.put(path, {"url": image})
        reason = "Chat Completions takes an object with the address of an image; it gets one."
        editor.done("set_content", problem, reason)
    elif isinstance(image, dict):
        _mend_address(editor, problem, (*path, "url"))


def mend_responses_source(editor: Editor, problem: Problem) -> None:
    """An object around an address; an image without its bytes, bytes without `data:`; a file
    without its name, or with an address for its data.
    """
    part = editor.get(problem.path[:3])
    if type_of(part) == "input_file":
        _mend_file(editor, problem, problem.path[:3], takes_address=True)
        return
    path = (*problem.path[:3], "image_url")
    image = editor.get(path)
    if not isinstance(image, dict):
        _mend_address(editor, problem, path)
        return
    url, detail = non_empty_text(image.get("url")), non_empty_text(image.get("detail"))
    if url is None:
        return
    editor.expect(path)
    editor.put(path, url)
    if detail is not None and editor.get((*path[:3], "detail")) is None:
        editor.put((*path[:3], "detail"), detail)
    reason = "Responses takes the address of an image itself, without an object around it."
    editor.done("set_content", problem, reason)


def _mend_file(
    editor: Editor, problem: Problem, path: Path, *, takes_address: bool = False
) -> None:
    file = editor.get(path)
    data = file.get("file_data")
    if not isinstance(data, str):
        return
    if takes_address and data[:4].lower() == "http":
        editor.expect((*path, "file_data"))
        editor.remove_key((*path, "file_data"))
        editor.put((*path, "file_url"), data)
        reason = "This is the address of a file and not its data; it goes where addresses do."
        editor.done("set_content", problem, reason)
        return
    is_pdf = data.startswith(PDF_BEGINS) or _is_pdf(data)
    if not is_data_url(data):
        if not is_pdf:
            return
        editor.put((*path, "file_data"), f"data:{PDF};base64,{data}")
    if not non_empty_text(file.get("filename")):
        editor.put((*path, "filename"), "file.pdf" if is_pdf else "file")
    reason = (
        "The API takes the data of a file as a data URL, and beside a name; it gets what lacks."
    )
    editor.done("set_content", problem, reason)


def _mend_address(editor: Editor, problem: Problem, path: Path) -> None:
    url = editor.get(path)
    if not isinstance(url, str):
        return
    shown = type_of_bytes(url)
    if shown is not None:
        editor.put(path, f"data:{shown};base64,{url}")
        reason = f"These are the bytes of {shown}, which the API takes in a data URL."
        editor.done("set_content", problem, reason)
    elif data_type(url) is not None and not url.partition(",")[2]:
        reason = "The image has no bytes, which the API refuses; it is left out."
        drop_entry(editor, path[:3], problem, "drop_empty", reason)


def mend_chat_media(editor: Editor, problem: Problem) -> None:
    """An image that is a PDF, a file that is an image or a text: written as what it is."""
    path = problem.path[:3]
    part = editor.get(path)
    body = part.get(str(part.get("type"))) if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(body, dict):
        return
    new: Json | None = None
    if part["type"] == "image_url" and _is_pdf(body.get("url")):
        new = {"type": "file", "file": {"filename": "file.pdf", "file_data": body["url"]}}
    elif part["type"] == "file":
        image = _image_url_of(body.get("file_data"))
        if image is not None:
            new = {"type": "image_url", "image_url": {"url": image}}
        else:
            new = _text_part_of(body.get("file_data"), "text")
    _replace_part(editor, problem, path, new)


def mend_responses_media(editor: Editor, problem: Problem) -> None:
    """An image or a file that is something else by its type: written as what it is."""
    path = problem.path[:3]
    part = editor.get(path)
    if not isinstance(part, dict):
        return
    new: Json | None
    if part.get("type") == "input_file":
        image = _image_url_of(part.get("file_data"))
        if image is not None:
            new = {"type": "input_image", "image_url": image}
        else:
            new = _text_part_of(part.get("file_data"), "input_text")
    elif _is_pdf(part.get("image_url")):
        new = {"type": "input_file", "filename": "file.pdf", "file_data": part["image_url"]}
    else:
        new = _text_part_of(part.get("image_url"), "input_text")
    _replace_part(editor, problem, path, new)


def _replace_part(editor: Editor, problem: Problem, path: Path, new: Json | None) -> None:
    if new is None:
        return
    editor.expect(path)
    editor.set_entry(path, new)
    reason = WRITTEN_AS_TEXT
    if "text" not in new:
        reason = f"This API takes such data as a part of type {new['type']!r}; it is rewritten so."
    editor.done("set_content", problem, reason)


def _is_pdf(url: Any) -> bool:
    return data_type(url) == PDF


def _image_url_of(url: Any) -> str | None:
    """The data URL of an image, with the media type that its name or its bytes show."""
    named = data_type(url)
    if named is None:
        return None
    data = url.partition(",")[2]
    actual = type_of_bytes(data) or image_type(named)
    return f"data:{actual};base64,{data}" if actual is not None else None


def _text_part_of(url: Any, kind: str) -> Json | None:
    """A file that is plain text, as a text part."""
    if not isinstance(url, str):
        return None
    text = decode_text_file(data_type(url) or "", url.partition(",")[2])
    return {"type": kind, "text": text} if text else None
