"""Content parts as generateContent takes them, and texts in place of what it doesn't take (K7)."""

from __future__ import annotations

import base64
from typing import Any

from lutumpy.adapters.gemini.decode import API
from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart, describe
from lutumpy.core.parts import raw_value, sendable
from lutumpy.rules.gemini.limits import MEDIA_KINDS, MEDIA_TYPES, RESULT_MEDIA_TYPES
from lutumpy.rules.media import plain_type

__all__ = ["message_parts", "shown_part"]

_ENDINGS = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webp": "image/webp",
}


def message_parts(part: Part) -> list[dict[str, Any]]:
    """A part of a user's message; none for white space."""
    if isinstance(part, TextPart):
        return [{"text": part.text}] if part.text.strip() else []
    if isinstance(part, RawPart):
        value = raw_value(part, API, "message")
        return [value] if value is not None else _texts(part.text)
    if isinstance(part, FoundTool):
        return _texts(part.text)
    shown = _media(part, in_result=False)
    return [shown] if shown is not None else _texts(describe(part))


def shown_part(part: Part) -> dict[str, Any] | None:
    """A part that is beside the response of a function; `None` for what is text there."""
    if isinstance(part, RawPart):
        return raw_value(part, API, "result")
    if isinstance(part, (ImagePart, FilePart)):
        return _media(part, in_result=True)
    return None


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text.strip() else []


def _media(part: ImagePart | FilePart, *, in_result: bool) -> dict[str, Any] | None:
    found = sendable(part)
    if found is None:
        return None
    media_type = plain_type(found.media_type)
    if found.data is None:
        # The provider fetches what is at an address, and has to be told what it is.
        media_type = media_type or _type_by_ending(found)
        if in_result or not media_type or not _takes(media_type):
            return None
        return {"fileData": {"mimeType": media_type, "fileUri": found.url}}
    if not (media_type in RESULT_MEDIA_TYPES if in_result else _takes(media_type)):
        return None
    data = base64.b64encode(found.data).decode("ascii")
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _type_by_ending(part: ImagePart | FilePart) -> str:
    path = (part.url or "").partition("?")[0].partition("#")[0].lower()
    known = next((kind for end, kind in _ENDINGS.items() if path.endswith(end)), "")
    return known or ("image/jpeg" if isinstance(part, ImagePart) else "")


def _takes(media_type: str) -> bool:
    return media_type.partition("/")[0] in MEDIA_KINDS or media_type in MEDIA_TYPES
