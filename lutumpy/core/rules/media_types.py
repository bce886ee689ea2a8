"""Which media types the APIs take in images, files and sounds: one table, and a function for each API.

Sources: `Base64ImageSource`, `Base64PDFSource` and `PlainTextSource` of Anthropic's API description; answers of OpenAI and
Anthropic that users report (openai-dotnet#613, trpc-agent-go#1816, litellm#6120, gptpdf#6, opencode#5704). What stands behind
an address is not known here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from .openai_shapes import wrong_value
from .problem import Certainty, Problem, text

__all__ = [
    "AUDIO_FORMATS",
    "IMAGE_TYPES",
    "anthropic_block",
    "chat_part",
    "data_type",
    "is_image",
    "responses_part",
]

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Images that all three APIs take."""

OTHER_NAMES: Mapping[str, str] = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
"""Names that are none, and what is meant by them: OpenAI looks at the bytes, Anthropic at the name."""

PDF = "application/pdf"
PLAIN = "text/plain"
AUDIO_FORMATS = ("wav", "mp3")

_DATA = re.compile(r"data:([^;,]{1,100})[;,]")
_MAGIC: Mapping[bytes, str] = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_HEAD = 24  # characters of base64 text that are looked at


def data_type(url: Any) -> str | None:
    """The media type that a data URL names; `None` of anything else."""
    match = _DATA.match(url) if isinstance(url, str) else None
    return match[1].strip().lower() if match is not None else None


def is_image(media_type: str) -> bool:
    """Whether every API takes images of this type."""
    return OTHER_NAMES.get(media_type, media_type) in IMAGE_TYPES


def type_of_bytes(data: str) -> str | None:
    """What base64 text begins like, of the images that the APIs take."""
    try:
        head = base64.b64decode(data[: min(_HEAD, len(data)) // 4 * 4])
    except ValueError:
        return None
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for start, media_type in _MAGIC.items() if head.startswith(start)), None)


def chat_part(rule: str, where: str, part: Mapping[str, Any]) -> list[Problem]:
    """An image, a file or a sound of Chat Completions.

    Args:
        rule: Id of the rule.
        where: The position of the part.
        part: The part.
    """
    kind = part.get("type")
    body = part.get(text(kind) or "")
    if kind == "image_url":
        return _openai_image(rule, where, body.get("url") if isinstance(body, Mapping) else body)
    if not isinstance(body, Mapping):
        return []
    if kind == "input_audio":
        given = body.get("format")
        where = f"{where}.input_audio.format"
        bad = isinstance(given, str) and given not in AUDIO_FORMATS
        return [wrong_value(rule, where, given, AUDIO_FORMATS)] if bad else []
    media_type = data_type(body.get("file_data")) if kind == "file" else None
    if media_type in (None, PDF):
        return []
    where = f"{where}.file.file_data"
    message = (
        f"Invalid file data: '{where}'. Expected a base64-encoded data URL with an application/pdf MIME type "
        f"(e.g. 'data:application/pdf;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{media_type}'."
    )
    # Of texts and tables the sources say both: OpenAI announced them, and later answers still refuse them.
    certainty: Certainty = "refused" if str(media_type).startswith(("image/", "audio/", "video/")) else "some"
    return [Problem(rule, where, message, certainty, param=where, code="invalid_value")]


def _openai_image(rule: str, where: str, url: Any) -> list[Problem]:
    media_type = data_type(url)
    if media_type is None or is_image(media_type) or _holds_image(url):
        return []
    message = (
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
        "['png', 'jpeg', 'gif', 'webp']."
        if media_type.startswith("image/")
        else "Invalid MIME type. Only image types are supported."
    )
    return [Problem(rule, where, message, "refused", code="invalid_image_format")]


def _holds_image(url: str) -> bool:
    """Whether the bytes are of another type than the name says, and OpenAI may look at those."""
    return type_of_bytes(url.partition(",")[2]) is not None


def responses_part(rule: str, where: str, part: Mapping[str, Any]) -> list[Problem]:
    """An image of Responses, arguments as for `chat_part`; its files have a rule of their own."""
    url = part.get("image_url") if part.get("type") == "input_image" else None
    media_type = data_type(url)
    if media_type is None or is_image(media_type) or _holds_image(str(url)):
        return []
    message = (
        "The image data you provided does not represent a valid image. Please check your input and try again with one "
        f"of the supported image formats: {list(IMAGE_TYPES)}."
    )
    return [Problem(rule, f"{where}.image_url", message, "refused", param="input", code="invalid_value")]


def anthropic_block(rule: str, where: str, block: Mapping[str, Any]) -> list[Problem]:
    """An image or a document of Messages.

    Args:
        rule: Id of the rule.
        where: The position of the block, its kind included.
        block: The block.
    """
    source = block.get("source")
    form = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or form not in ("base64", "text"):
        return []
    kind = block.get("type")
    expected = IMAGE_TYPES if kind == "image" else (PLAIN,) if form == "text" else (PDF,)
    if kind == "image" and form == "text":
        return []
    given = source.get("media_type")
    if given in expected:
        return []
    where = f"{where}.source.{form}.media_type"
    if given is None:
        return [Problem(rule, where, f"{where}: Field required", "refused")]
    quoted = [f"'{value}'" for value in expected]
    words = " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]
    return [Problem(rule, where, f"{where}: Input should be {words}", "refused")]
