"""Content parts as blocks of Converse: the same in user messages and in results; a text that says
what was left out in place of what it doesn't take (rule K7).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.adapters.bedrock.decode import API
from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart, describe
from lutumpy.core.parts import raw_value, sendable
from lutumpy.rules import media
from lutumpy.rules.bedrock.limits import (
    LARGE_DOCUMENTS,
    MAX_DOCUMENT,
    MAX_IMAGE,
    allowed_document_name,
)
from lutumpy.rules.shape import PartPlace

__all__ = ["part_blocks", "text_blocks"]

_FORMATS: Mapping[str, str] = {
    media.PDF: "pdf",
    media.PLAIN: "txt",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
}


def text_blocks(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Text blocks; none for white space, which the API refuses."""
    return [{"text": text} for text in texts if text.strip()]


def part_blocks(part: Part, place: PartPlace, may_be_claude: bool) -> list[dict[str, Any]]:
    """The block of a part; none for white space.

    Args:
        part: The part.
        place: Where it is.
        may_be_claude: The model may be one, and refuse images that are too large for it.
    """
    if isinstance(part, TextPart):
        return text_blocks([part.text])
    if isinstance(part, RawPart) and (value := raw_value(part, API, place)) is not None:
        return [value]
    if isinstance(part, (RawPart, FoundTool)):
        return text_blocks([part.text])
    found = sendable(part)
    block = None
    # Nothing is fetched from an address: the API takes bytes, or a place in S3.
    if found is not None and found.data is not None:
        if isinstance(found, ImagePart):
            block = None if may_be_claude and _is_too_large(found.data) else _image(found)
        else:
            block = _document(found)
    return [block] if block is not None else text_blocks([describe(part)])


def _image(part: ImagePart) -> dict[str, Any] | None:
    media_type = media.image_type(part.media_type)
    if media_type is None or part.data is None:
        return None
    form = media_type.removeprefix("image/")
    return {"image": {"format": form, "source": {"bytes": _encode_base64(part.data)}}}


def _is_too_large(data: bytes) -> bool:
    from lutumpy.rules.claude_images import pixels_refusal  # few conversations show anything

    return len(data) > MAX_IMAGE or bool(pixels_refusal(data))


def _document(part: FilePart) -> dict[str, Any] | None:
    form = _FORMATS.get(media.plain_type(part.media_type))
    if form is None or not part.data:
        return None
    if len(part.data) > MAX_DOCUMENT and form not in LARGE_DOCUMENTS:
        return None
    stem = (part.filename or "").rpartition(".")[0] or part.filename or ""
    name = allowed_document_name(stem)
    return {
        "document": {"format": form, "name": name, "source": {"bytes": _encode_base64(part.data)}}
    }


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
