"""Content parts as blocks of the Anthropic Messages API: the same in user messages and in tool
results.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart, describe
from lutumpy.core.parts import sendable
from lutumpy.rules import media
from lutumpy.rules.anthropic import limits

__all__ = ["part_blocks", "text_blocks"]


def text_blocks(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Text blocks, none of which may be empty."""
    return [{"type": "text", "text": text} for text in texts]


def part_blocks(part: Part) -> list[dict[str, Any]]:
    """The block of a part; none for white space, which the API refuses; a text that names it for
    what it doesn't take, and for what was written for one API alone (see `part_writer`).
    """
    if isinstance(part, TextPart):
        return text_blocks([part.text]) if part.text.strip() else []
    if isinstance(part, (RawPart, FoundTool)):
        return text_blocks([part.text])
    found = sendable(part)
    block = None
    if isinstance(found, ImagePart):
        block = _encode_image(found)
    elif found is not None:
        block = _encode_document(found)
    # What the API doesn't take is named in a text, so that the model knows that something was
    # there.
    return [block if block is not None else {"type": "text", "text": describe(part)}]


def _encode_image(part: ImagePart) -> dict[str, Any] | None:
    media_type = media.image_type(part.media_type)
    if media_type is None and (media.plain_type(part.media_type) or part.data is not None):
        return None
    if part.data is None:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    from lutumpy.rules.claude_images import pixels_refusal  # few conversations show anything

    data = _encode_base64(part.data)
    if len(data) > limits.MAX_IMAGE or pixels_refusal(part.data):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _encode_document(part: FilePart) -> dict[str, Any] | None:
    media_type = media.plain_type(part.media_type)
    source: dict[str, Any]
    if part.data is None:
        # Documents by URL are PDF only.
        if media_type not in ("", media.PDF) or media.is_sound_or_film(part.url or ""):
            return None
        source = {"type": "url", "url": part.url}
    elif media_type not in limits.DOCUMENT_TYPES:
        return None
    else:
        form, data = "base64", ""
        if media_type == media.PDF:
            data = _encode_base64(part.data)
        else:
            form, data = "text", part.data.decode("utf-8", "replace")
        if not data.strip() or len(data) > limits.MAX_DOCUMENT:
            return None
        source = {"type": form, "media_type": media_type, "data": data}
    block: dict[str, Any] = {"type": "document", "source": source}
    if part.filename and part.filename.strip():
        block["title"] = part.filename[: limits.MAX_TITLE]
    return block


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
