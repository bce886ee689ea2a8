"""Content parts as blocks of the Anthropic Messages API: the same in user messages and in tool results."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from lutumpy.core.items import FilePart, ImagePart, Part, TextPart, describe

__all__ = ["part_blocks", "text_blocks"]

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_TITLE_LIMIT = 500


def text_blocks(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Text blocks, none of which may be empty."""
    return [{"type": "text", "text": text} for text in texts]


def part_blocks(part: Part) -> list[dict[str, Any]]:
    """The block of a part; none for white space, which the API refuses; a text that names it for what it doesn't take."""
    if isinstance(part, TextPart):
        return text_blocks([part.text]) if part.text.strip() else []
    block = _image(part) if isinstance(part, ImagePart) else _document(part)
    return [block if block is not None else {"type": "text", "text": describe(part)}]


def _image(part: ImagePart) -> dict[str, Any] | None:
    if part.data is None:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    media_type = _media_type(part)
    if media_type not in _IMAGE_TYPES or not part.data:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": _base64(part.data)}}


def _document(part: FilePart) -> dict[str, Any] | None:
    media_type = _media_type(part)
    source: dict[str, Any]
    if part.data is None:
        # Documents by URL are PDF only.
        if media_type not in ("", "application/pdf"):
            return None
        source = {"type": "url", "url": part.url}
    elif not part.data:
        return None
    elif media_type == "application/pdf":
        source = {"type": "base64", "media_type": media_type, "data": _base64(part.data)}
    elif media_type == "text/plain":
        text = part.data.decode("utf-8", "replace")
        if not text.strip():
            return None
        source = {"type": "text", "media_type": media_type, "data": text}
    else:
        return None
    block: dict[str, Any] = {"type": "document", "source": source}
    if part.filename and part.filename.strip():
        block["title"] = part.filename[:_TITLE_LIMIT]
    return block


def _media_type(part: ImagePart | FilePart) -> str:
    return (part.media_type or "").partition(";")[0].strip().lower()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
