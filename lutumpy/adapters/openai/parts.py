"""Content parts on both OpenAI wires: what each takes, and what is said in text instead (rule K7)."""

from __future__ import annotations

import base64
from typing import Any

from lutumpy.core.items import FilePart, ImagePart, Part, TextPart, describe
from lutumpy.core.parts import cut_text, sendable
from lutumpy.rules.media import image_type, is_sound_or_film, plain_type
from lutumpy.rules.openai.limits import MAX_FILE_DATA, MAX_IMAGE_URL, MAX_TEXT_PART
from lutumpy.rules.openai.media import takes_chat_file, takes_responses_file

__all__ = ["chat_part", "cut_output", "responses_part"]


def cut_output(text: str) -> str:
    """The text of a message or of a result, no longer than OpenAI takes."""
    return text if len(text) <= MAX_TEXT_PART else cut_text(text, MAX_TEXT_PART)


def chat_part(part: Part) -> dict[str, Any]:
    """A part of a user's message on Chat Completions."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": cut_output(part.text)}
    found = sendable(part)
    if isinstance(found, ImagePart) and (url := _image_url(found)) is not None:
        image = {"url": url} if found.detail is None else {"url": url, "detail": found.detail}
        return {"type": "image_url", "image_url": image}
    if isinstance(found, FilePart) and found.data is not None:
        media_type = plain_type(found.media_type)
        if takes_chat_file(media_type):
            if (data := _data_url(found, media_type, MAX_FILE_DATA)) is not None:
                return {
                    "type": "file",
                    "file": {"filename": found.filename or "file", "file_data": data},
                }
        elif media_type.startswith("text/"):
            return {"type": "text", "text": cut_output(_written_out(found, found.data))}
    return {"type": "text", "text": cut_output(describe(part))}


def responses_part(part: Part) -> dict[str, Any]:
    """A part of a message, or of a result, on Responses."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": cut_output(part.text)}
    found = sendable(part)
    if isinstance(found, ImagePart) and (url := _image_url(found)) is not None:
        return {"type": "input_image", "image_url": url, "detail": found.detail or "auto"}
    if isinstance(found, FilePart):
        media_type = plain_type(found.media_type)
        taken = takes_responses_file(media_type)
        if found.url is not None:
            if not is_sound_or_film(found.url) and (taken or not media_type):
                return {"type": "input_file", "file_url": found.url}
        elif taken and (data := _data_url(found, media_type, MAX_FILE_DATA)) is not None:
            return {"type": "input_file", "filename": found.filename or "file", "file_data": data}
    return {"type": "input_text", "text": cut_output(describe(part))}


def _image_url(part: ImagePart) -> str | None:
    media_type = image_type(part.media_type)
    if part.url is not None:
        fits = (media_type or not plain_type(part.media_type)) and len(part.url) <= MAX_IMAGE_URL
        return part.url if fits else None
    if media_type is None:
        return None
    return _data_url(part, media_type, MAX_IMAGE_URL)


def _data_url(part: ImagePart | FilePart, media_type: str, limit: int) -> str | None:
    """The bytes of a part as a data URL; `None` when that is too long."""
    data = part.data or b""
    head = f"data:{media_type};base64,"
    if len(head) + (len(data) + 2) // 3 * 4 > limit:
        return None
    return head + base64.b64encode(data).decode()


def _written_out(part: FilePart, data: bytes) -> str:
    """A file of text, as this wire's makers advise: its contents, below a line that says what they are."""
    name = ", ".join([word for word in (part.filename, part.media_type) if word])
    return f"[file {name}]\n{data.decode('utf-8', 'replace')}"
