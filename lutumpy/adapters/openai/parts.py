"""Content parts as both OpenAI APIs take them, and texts in place of what they don't take (K7)."""

from __future__ import annotations

import base64
from typing import Any

from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart, describe
from lutumpy.core.parts import cut_text, raw_value, sendable
from lutumpy.rules.media import image_type, is_sound_or_film, plain_type
from lutumpy.rules.openai.limits import MAX_FILE_DATA, MAX_IMAGE_URL, MAX_TEXT_PART
from lutumpy.rules.openai.media import takes_chat_file, takes_responses_file

__all__ = ["chat_part", "cut_output", "responses_part"]

# OpenAI wants a name with the data of a file.
_UNNAMED_FILE = "file"


def cut_output(text: str) -> str:
    """The text of a message or of a result, cut to what OpenAI takes."""
    return text if len(text) <= MAX_TEXT_PART else cut_text(text, MAX_TEXT_PART)


def chat_part(part: Part) -> dict[str, Any]:
    """A part of a user's message on Chat Completions.

    What the API doesn't take becomes a text: the contents of a text file, else a description.
    """
    if isinstance(part, TextPart):
        return {"type": "text", "text": cut_output(part.text)}
    if isinstance(part, RawPart):
        # Wherever it came from, it goes into a user's message: tool messages take text only.
        value = raw_value(part, "openai_chat", "message")
        return value or {"type": "text", "text": cut_output(part.text)}
    if isinstance(part, FoundTool):
        return {"type": "text", "text": cut_output(part.text)}
    found = sendable(part)
    if isinstance(found, ImagePart) and (url := _image_url(found)) is not None:
        image = {"url": url}
        if found.detail is not None:
            image["detail"] = found.detail
        return {"type": "image_url", "image_url": image}
    if isinstance(found, FilePart) and found.data is not None:
        media_type = plain_type(found.media_type)
        if takes_chat_file(media_type):
            if (data := _data_url(found, media_type, MAX_FILE_DATA)) is not None:
                file = {"filename": found.filename or _UNNAMED_FILE, "file_data": data}
                return {"type": "file", "file": file}
        elif media_type.startswith("text/"):
            return {"type": "text", "text": cut_output(_file_as_text(found, found.data))}
    return {"type": "text", "text": cut_output(describe(part))}


def responses_part(part: Part) -> dict[str, Any]:
    """A part of a message, or of a result, on Responses; a description of what it doesn't take."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": cut_output(part.text)}
    if isinstance(part, RawPart):
        value = raw_value(part, "openai_responses", "result")
        return value or {"type": "input_text", "text": cut_output(part.text)}
    if isinstance(part, FoundTool):
        return {"type": "input_text", "text": cut_output(part.text)}
    found = sendable(part)
    if isinstance(found, ImagePart) and (url := _image_url(found)) is not None:
        return {"type": "input_image", "image_url": url, "detail": found.detail or "auto"}
    if isinstance(found, FilePart) and (source := _file_source(found)) is not None:
        return {"type": "input_file", **source}
    return {"type": "input_text", "text": cut_output(describe(part))}


def _file_source(part: FilePart) -> dict[str, str] | None:
    """Where Responses finds a file; `None` for a file that it doesn't take."""
    media_type = plain_type(part.media_type)
    takes = takes_responses_file(media_type)
    if part.url is not None:
        # Without a media type, only the ending of the address says what the file is.
        if is_sound_or_film(part.url) or (media_type and not takes):
            return None
        return {"file_url": part.url}
    if takes and (data := _data_url(part, media_type, MAX_FILE_DATA)) is not None:
        return {"filename": part.filename or _UNNAMED_FILE, "file_data": data}
    return None


def _image_url(part: ImagePart) -> str | None:
    """The address of an image, or its bytes as a data URL; `None` for what OpenAI doesn't take."""
    media_type = image_type(part.media_type)
    if part.url is not None:
        if media_type is None and plain_type(part.media_type):
            return None
        return part.url if len(part.url) <= MAX_IMAGE_URL else None
    if media_type is None:
        return None
    return _data_url(part, media_type, MAX_IMAGE_URL)


def _data_url(part: ImagePart | FilePart, media_type: str, limit: int) -> str | None:
    """The bytes of a part as a data URL; `None` if that has more than `limit` characters."""
    data = part.data or b""
    head = f"data:{media_type};base64,"
    # Worked out before the bytes are encoded: three bytes become four characters.
    if len(head) + (len(data) + 2) // 3 * 4 > limit:
        return None
    return head + base64.b64encode(data).decode()


def _file_as_text(part: FilePart, data: bytes) -> str:
    """A text file as OpenAI's guide advises: its contents below a line that says what they are."""
    name = ", ".join([word for word in (part.filename, part.media_type) if word])
    return f"[file {name}]\n{data.decode('utf-8', 'replace')}"
