"""Images, files, sounds and long texts: which kinds and sizes each API takes. Every number and list stands here once.

The rules look at what stands in a request, the repairs mend what its name or its bytes show, and the adapters ask the same
functions before they put anything there, and say in text what the wire doesn't take. What stands behind an address is not
known here, but for how it ends. Sources: OpenAI's API description (lengths) and its guides to images and files (kinds);
`Base64ImageSource`, `Base64PDFSource` and `PlainTextSource` of Anthropic's API description; recorded refusals of sound; and
answers of both that users report (openai-dotnet#613, trpc-agent-go#1816, litellm#6120, gptpdf#6, opencode#5704).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.shapes import wrong_value
from lutumpy.rules.problem import Certainty, Problem

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The kinds of image that all three APIs take, and no others: OpenAI's answer to another lists these [reported]."""

OTHER_NAMES: Mapping[str, str] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}
"""Names that are none, and what is meant by them: OpenAI looks at the bytes, Anthropic at the name."""

PDF = "application/pdf"
PLAIN = "text/plain"
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

ANTHROPIC_DOCUMENT_TYPES = frozenset({PDF, PLAIN})
"""What a document of the Messages API is [Anthropic's API description]."""

AUDIO_FORMATS = ("wav", "mp3")
"""What a sound of Chat Completions is [API description]."""

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

_DATA_URL = re.compile(r"data:([^;,]{1,200})[;,]")
_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}
_HEAD = 24  # characters of base64 text that are looked at


def plain_type(media_type: str | None) -> str:
    """A media type without its parameters, in lower case; empty when there is none."""
    return (media_type or "").partition(";")[0].strip().lower()


def image_type(media_type: str | None) -> str | None:
    """The kind of image that a media type means, of those that every API takes; `None` for any other."""
    name = plain_type(media_type)
    known = OTHER_NAMES.get(name, name)
    return known if known in IMAGE_TYPES else None


def data_type(url: Any) -> str | None:
    """The (plain) media type that a data URL names; `None` for anything else."""
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    return plain_type(match[1]) if match is not None else None


def type_of_bytes(data: str) -> str | None:
    """What base64 text begins like, of the images that the APIs take."""
    try:
        head = base64.b64decode(data[: min(_HEAD, len(data)) // 4 * 4])
    except ValueError:
        return None
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next(
        (media_type for start, media_type in _MAGIC.items() if head.startswith(start)), None
    )


def sounds(url: str) -> bool:
    """Whether an address is one of sound or film, as far as it shows."""
    return (
        url.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0].lower().endswith(UNREADABLE_ENDINGS)
    )


def takes_responses_file(media_type: str) -> bool:
    """Whether Responses takes a file of this (plain) type."""
    return media_type.startswith("text/") or media_type in RESPONSES_FILE_TYPES


def surely_no_file(media_type: str) -> bool:
    """Whether a file of this (plain) type is known to be refused: sound, film and images."""
    return media_type.startswith(("audio/", "video/", "image/"))


# ------------------------------------------------------------------- OpenAI


def check_image(kind_rule: str, length_rule: str, where: str, url: Any) -> list[Problem]:
    """An image that OpenAI reads: of a kind that it knows, and not too long.

    One whose bytes are of such a kind, under whatever name, isn't refused: OpenAI may look at those.
    """
    kind = data_type(url)
    if (
        kind is None
        or image_type(kind) is not None
        or type_of_bytes(url[:300].partition(",")[2]) is not None
    ):
        return _long(length_rule, where, url, MAX_IMAGE_URL)
    if not kind_rule.startswith("chat."):
        message = (
            "The image data you provided does not represent a valid image. Please check your input and try again with "
            f"one of the supported image formats: {list(IMAGE_TYPES)}."
        )
        return [Problem(kind_rule, where, message, "refused", param="input", code="invalid_value")]
    message = (
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
        "['png', 'jpeg', 'gif', 'webp']."
        if kind.startswith("image/")
        else "Invalid MIME type. Only image types are supported."
    )
    return [Problem(kind_rule, where, message, "refused", code="invalid_image_format")]


def check_file_data(kind_rule: str, length_rule: str, where: str, data: Any) -> list[Problem]:
    """A file that OpenAI reads. What isn't known to be taken is not known to be refused either.

    Of texts and tables on Chat Completions the sources say both: OpenAI announced them, and later answers refuse them.
    """
    kind = data_type(data)
    if kind is None:
        return _long(length_rule, where, data, MAX_FILE_DATA)
    if kind_rule.startswith("chat."):
        taken, expected, more = (
            kind in CHAT_FILE_TYPES,
            "an application/pdf MIME type (e.g. 'data:application/pdf",
            "",
        )
    else:
        taken, expected = (
            takes_responses_file(kind),
            "a valid file MIME type (e.g. 'data:text/plain",
        )
        more = (
            " Please see https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported "
            "file types."
        )
    if taken:
        return _long(length_rule, where, data, MAX_FILE_DATA)
    message = (
        f"Invalid file data: '{where}'. Expected a base64-encoded data URL with {expected};base64,"
        f"SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{kind}'.{more}"
    )
    certainty: Certainty = "refused" if surely_no_file(kind) else "some"
    return [Problem(kind_rule, where, message, certainty, param=where, code="invalid_value")]


def check_file_url(rule: str, where: str, url: Any) -> list[Problem]:
    """Sound and film are no files by address either [recorded]."""
    if not isinstance(url, str) or not sounds(url):
        return []
    message = "The file type you uploaded is not supported. Please try again with a pdf"
    return [Problem(rule, where, message, "refused", param="input", code="unsupported_file")]


def check_sound(rule: str, where: str, given: Any) -> list[Problem]:
    """The format of a sound that OpenAI hears."""
    if not isinstance(given, str) or given in AUDIO_FORMATS:
        return []
    return [wrong_value(rule, where, given, AUDIO_FORMATS)]


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


def check_source(
    kind_rule: str, size_rule: str, where: str, block: Mapping[str, Any]
) -> list[Problem]:
    """The source of an image or a document, given in the request itself.

    Args:
        kind_rule: Id of the rule about kinds.
        size_rule: Id of the rule about sizes.
        where: The position of the block, its kind included.
        block: The block.
    """
    source, kind = block.get("source"), block.get("type")
    form = source.get("type") if isinstance(source, Mapping) else None
    if (
        not isinstance(source, Mapping)
        or form not in ("base64", "text")
        or (kind == "image" and form == "text")
    ):
        return []
    expected: tuple[str, ...] = (
        IMAGE_TYPES if kind == "image" else (PLAIN,) if form == "text" else (PDF,)
    )
    most = MAX_ANTHROPIC_IMAGE if kind == "image" else MAX_ANTHROPIC_DOCUMENT
    where = f"{where}.source.{form}"
    media_type, data = source.get("media_type"), source.get("data")
    if media_type is None:
        return [
            Problem(
                kind_rule, f"{where}.media_type", f"{where}.media_type: Field required", "refused"
            )
        ]
    if media_type not in expected:
        *others, last = [f"'{name}'" for name in expected]
        listed = f"{', '.join(others)} or {last}" if others else last
        message = f"{where}.media_type: Input should be {listed}"
        return [Problem(kind_rule, f"{where}.media_type", message, "refused")]
    if isinstance(data, str) and len(data) > most:
        message = (
            f"{where}: {kind} exceeds {most >> 20} MB maximum: {len(data)} bytes > {most} bytes"
        )
        return [Problem(size_rule, where, message, "refused")]
    return []
