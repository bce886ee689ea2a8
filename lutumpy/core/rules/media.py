"""Images, files and long texts: which kinds and sizes each API takes. Every number and list stands here once.

The rules look at what stands in a request; the adapters ask the same functions before they put anything there, and say in
text what the wire doesn't take. Sources: OpenAI's API description (lengths) and its guides to images and files (kinds);
Anthropic's API description and the errors that users report; recorded refusals of sound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .problem import Certainty, Problem

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The kinds of image that all three APIs take, and no others: OpenAI's answer to another lists these [reported]."""

PDF = "application/pdf"
CHAT_FILE_TYPES = frozenset({PDF})
"""What a file of Chat Completions is; the text of others belongs into a text part [OpenAI's guide]."""

RESPONSES_FILE_TYPES = frozenset(
    {
        PDF,
        "application/csv",
        "application/json",
        "application/msword",
        "application/rtf",
        "application/typescript",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/x-sh",
        "application/xml",
        "application/yaml",
    }
)
"""Beside `text/...`, what a file of Responses is: documents, sheets, code [OpenAI's guide]."""

ANTHROPIC_DOCUMENT_TYPES = frozenset({PDF, "text/plain"})
"""What a document of the Messages API is [Anthropic's API description]."""

MAX_TEXT_PART = 10_485_760
"""Characters of a text, or of an output, on Responses [API description]; Chat Completions is taken to be no wider."""
MAX_IMAGE_URL = 20_971_520
"""Characters of an image's URL, a data URL included [API description]."""
MAX_FILE_DATA = 73_400_320
"""Characters of a file's data URL [API description]."""
MAX_ANTHROPIC_IMAGE = 10_485_760
"""Characters of an image in base64 [reported; 5 MB on some hosts]."""
MAX_ANTHROPIC_DOCUMENT = 33_554_432
"""Characters of a document: with more, the whole request is over the 32 MB that it may have [Anthropic's documentation]."""
MAX_ANTHROPIC_TITLE = 500

UNREADABLE_ENDINGS = (".mp3", ".wav", ".m4a", ".ogg", ".flac", ".aac", ".mp4", ".mov", ".webm")
"""How the address of sound or film ends, which no file may be [recorded: 4 refusals]."""

_DATA_URL = re.compile(r"data:([^;,]{0,200})[;,]")


def plain_type(media_type: str | None) -> str:
    """A media type without its parameters, in lower case; empty when there is none."""
    return (media_type or "").partition(";")[0].strip().lower()


def data_type(url: Any) -> str | None:
    """The media type of a data URL, or `None` for anything else."""
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    return plain_type(match[1]) if match is not None else None


def sounds(url: str) -> bool:
    """Whether an address is one of sound or film, as far as it shows."""
    return url.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0].lower().endswith(UNREADABLE_ENDINGS)


def takes_responses_file(media_type: str) -> bool:
    """Whether Responses takes a file of this (plain) type."""
    return media_type.startswith("text/") or media_type in RESPONSES_FILE_TYPES


def surely_no_file(media_type: str) -> bool:
    """Whether a file of this (plain) type is known to be refused: sound, film and images."""
    return media_type.startswith(("audio/", "video/", "image/"))


# ------------------------------------------------------------------- OpenAI


def check_image(kind_rule: str, length_rule: str, where: str, url: Any) -> list[Problem]:
    """An image that OpenAI reads: of a kind that it knows, and not too long."""
    if not isinstance(url, str):
        return []
    kind = data_type(url)
    if kind is not None and kind not in IMAGE_TYPES:
        message = (
            "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
            "['png', 'jpeg', 'gif', 'webp']."
        )
        code = "unsupported_image_media_type"
        return [Problem(kind_rule, where, message, "refused", param=where, code=code)]
    return _long(length_rule, where, url, MAX_IMAGE_URL)


def check_file_data(kind_rule: str, length_rule: str, where: str, data: Any) -> list[Problem]:
    """A file that OpenAI reads. What isn't known to be taken is not known to be refused either."""
    kind = data_type(data)
    if kind is None:
        return []
    if kind_rule.startswith("chat."):
        taken, expected = kind in CHAT_FILE_TYPES, "an application/pdf MIME type (e.g. 'data:application/pdf"
    else:
        taken, expected = takes_responses_file(kind), "a valid file MIME type (e.g. 'data:text/plain"
    if not taken:
        message = (
            f"Invalid file data: '{where}'. Expected a base64-encoded data URL with {expected};base64,"
            f"SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{kind}'. Please see "
            "https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported file types."
        )
        certainty: Certainty = "refused" if surely_no_file(kind) else "some"
        code = "invalid_value"
        return [Problem(kind_rule, where, message, certainty, param=where, code=code)]
    return _long(length_rule, where, data, MAX_FILE_DATA)


def check_file_url(rule: str, where: str, url: Any) -> list[Problem]:
    """Sound and film are no files by address either [recorded]."""
    if not isinstance(url, str) or not sounds(url):
        return []
    message = "The file type you uploaded is not supported. Please try again with a pdf"
    return [Problem(rule, where, message, "refused", param="input", code="unsupported_file")]


def check_text(rule: str, where: str, value: Any) -> list[Problem]:
    """A text that isn't too long for one part."""
    return _long(rule, where, value, MAX_TEXT_PART)


def _long(rule: str, where: str, value: Any, limit: int) -> list[Problem]:
    if not isinstance(value, str) or len(value) <= limit:
        return []
    message = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {len(value)} instead."
    )
    certainty: Certainty = "some" if rule.startswith("chat.") else "refused"
    return [Problem(rule, where, message, certainty, param=where, code="string_above_max_length")]


# ---------------------------------------------------------------- Anthropic


def check_source(kind_rule: str, size_rule: str, where: str, block: Mapping[str, Any]) -> list[Problem]:
    """The source of an image or a document, given in the request itself."""
    source, kind = block.get("source"), block.get("type")
    if not isinstance(source, Mapping) or source.get("type") not in ("base64", "text"):
        return []
    form = str(source["type"])
    media_type, data = source.get("media_type"), source.get("data")
    where = f"{where}.source.{form}"
    expected: tuple[str, ...]
    if kind == "image":
        expected, most = ("image/jpeg", "image/png", "image/gif", "image/webp"), MAX_ANTHROPIC_IMAGE
    else:
        expected, most = ((PDF,) if form == "base64" else ("text/plain",)), MAX_ANTHROPIC_DOCUMENT
    if isinstance(media_type, str) and media_type not in expected:
        *others, last = [f"'{name}'" for name in expected]
        listed = f"{', '.join(others)} or {last}" if others else last
        message = f"{where}.media_type: Input should be {listed}"
        return [Problem(kind_rule, f"{where}.media_type", message, "refused")]
    if isinstance(data, str) and len(data) > most:
        message = f"{where}: {kind} exceeds {most >> 20} MB maximum: {len(data)} bytes > {most} bytes"
        return [Problem(size_rule, where, message, "refused")]
    return []
