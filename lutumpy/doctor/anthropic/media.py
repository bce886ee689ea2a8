"""Images and documents of Messages: read, written, and mended where their media type is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.doctor.anthropic.paths import block_path
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.media import (
    PDF_BEGINS,
    TAKEN_FROM_DATA_URL,
    WRITTEN_AS_TEXT,
    base64_of_data_url,
    decode_text_file,
)
from lutumpy.doctor.mending import drop_key
from lutumpy.doctor.pieces import Media, Piece, Text, non_empty_text, type_of
from lutumpy.doctor.spelling import Json
from lutumpy.doctor.wording import as_text
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.media import SOURCES
from lutumpy.rules.media import PDF, PLAIN, image_type, plain_type, type_of_bytes
from lutumpy.rules.problem import items

__all__ = ["mend_media_type", "mend_source", "read_source", "write_source"]


def read_source(block: Mapping[str, Any]) -> Piece | None:
    """The source of an `image` or a `document`, in the terms of no API."""
    source = block.get("source")
    if not isinstance(source, Mapping):
        return None
    kind: Literal["image", "file"] = "image" if block.get("type") == "image" else "file"
    name, data = non_empty_text(block.get("title")), non_empty_text(source.get("data"))
    form = source.get("type")
    if form == "base64" and data is not None:
        return Media(kind, f"data:{source.get('media_type')};base64,{data}", name=name)
    if form == "text" and data is not None:
        return Media(kind, text=_with_context(block, data), name=name)
    if form == "content":
        words = _text_of_content(source.get("content"))
        # Only the text of a document that shows images as well says what is where in it.
        if words is None:
            return Text(as_text(block))
        return Media("file", text=_with_context(block, words), name=name)
    url, file_id = non_empty_text(source.get("url")), non_empty_text(source.get("file_id"))
    if (form == "url" and url is not None) or (form == "file" and file_id is not None):
        return Media(kind, url, file_id, "anthropic", name)
    return None


def _with_context(block: Mapping[str, Any], words: str) -> str:
    """The words of a document behind what the model is told about it."""
    context = non_empty_text(block.get("context"))
    return words if context is None else f"{context}\n{words}"


def _text_of_content(content: Any) -> str | None:
    """The words of a document that is made of blocks; `None` where it isn't words alone."""
    if isinstance(content, str):
        return content or None
    texts = [block.get("text") for block in items(content) if isinstance(block, Mapping)]
    words = [text for text in texts if isinstance(text, str)]
    return "\n".join(words) if words and len(words) == len(items(content)) else None


def write_source(media: Media) -> Json | None:
    """The block that shows an image or a file; `None` for sounds and for files of other vendors."""
    if media.kind == "audio":
        return None
    if media.data is not None:
        media_type, data = media.data
        source: Json = {"type": "base64", "media_type": media_type, "data": data}
    elif media.url is not None and not media.url.startswith("data:"):
        source = {"type": "url", "url": media.url}
    elif media.kind == "file" and media.text is not None and media.text.strip():
        source = {"type": "text", "media_type": PLAIN, "data": media.text}
    else:
        return None
    if media.kind == "image":
        return {"type": "image", "source": source}
    document: Json = {"type": "document", "source": source}
    if media.name is not None:
        document["title"] = media.name
    return document


def mend_media_type(editor: Editor, problem: Problem) -> None:
    """The media type that the bytes show; a document that is plain text becomes text."""
    path: Path = (*block_path(problem), "source")
    source = editor.get(path)
    data = source.get("data") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(data, str):
        return
    block = editor.get(path[:-1])
    media_type = source.get("media_type")
    named = plain_type(media_type if isinstance(media_type, str) else None)
    actual: str | None = None
    if block.get("type") == "image":
        actual = type_of_bytes(data) or image_type(named)
    elif source.get("type") == "text":
        actual = PLAIN
    elif data.startswith(PDF_BEGINS):
        actual = PDF
    if actual is not None:
        editor.put((*path, "media_type"), actual)
        reason = (
            "The media type must be one that the API knows, and that of the bytes; "
            "it is set to what they or its name show."
        )
        editor.done("set_field", problem, reason)
        return
    text = decode_text_file(named, data)
    if text and block.get("type") == "document":
        editor.expect((*path, "type"))
        editor.put(path, {"type": "text", "media_type": PLAIN, "data": text})
        editor.done("set_content", problem, WRITTEN_AS_TEXT)


def mend_source(editor: Editor, problem: Problem) -> None:
    """Bytes in a data URL: the base64 in it. Keys that no source of this type has go."""
    path: Path = (*block_path(problem), "source")
    source = editor.get(path)
    if not isinstance(source, dict):
        return
    data, members = base64_of_data_url(source.get("data")), SOURCES.get(type_of(source))
    if data is not None:
        editor.put((*path, "data"), data)
        editor.done("set_content", problem, TAKEN_FROM_DATA_URL)
    elif members is not None:
        drop_key(editor, problem, frozenset(("type", *members)), path)
