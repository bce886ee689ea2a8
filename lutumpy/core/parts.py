"""What a content part may hold: asked wherever one enters a transcript, so that what is in there can be sent (rule K3b).

A part that only some provider refuses, as an image of an unusual kind, is no fault here: the adapters know what their
wire takes, and say the rest in text (rule K7). What no adapter could even spell is refused: bytes that are text, a part
that is a plain dictionary.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lutumpy.core.items import FilePart, ImagePart, TextPart
from lutumpy.core.json_values import encode_text

__all__ = ["PARTS", "content_problem", "cut_arguments", "cut_text", "part_problem", "sendable"]

PARTS = (TextPart, ImagePart, FilePart)
"""The classes of content parts."""

TRUNCATED = "TRUNCATED"
"""Under what the beginning of arguments stands that were too long."""

_ADDRESS = re.compile(r"https?://[^\s/?#][^\s]*", re.IGNORECASE)
_DETAILS = (None, "low", "high", "auto")


def content_problem(content: Any) -> str | None:
    """Why this can't be the content of a result, or `None` when it is text or parts."""
    if isinstance(content, str):
        return None
    if not isinstance(content, (tuple, list)):
        return f"its content is {_kind(content)}, where text or a tuple of content parts belongs"
    for index, part in enumerate(content):
        if (problem := part_problem(part)) is not None:
            return f"part {index} of its content: {problem}"
    return None


def part_problem(part: Any) -> str | None:
    """What is wrong with a content part, as a sentence; `None` for a good one."""
    if not isinstance(part, PARTS):
        return f"{_kind(part)} is no content part"
    misfit = _misfit(part)
    return f"the {type(part).__name__} {misfit}" if misfit is not None else None


def _misfit(part: TextPart | ImagePart | FilePart) -> str | None:
    # The fields are what a program put there, whatever their annotations say.
    if isinstance(part, TextPart):
        return None if isinstance(part.text, str) else f"has {_kind(part.text)} as its text"
    if (part.data is None) == (part.url is None):
        return "needs either data or url"
    if part.data is not None and not isinstance(part.data, (bytes, bytearray)):
        return (
            f"has {_kind(part.data)} as its data, which is bytes (of the file itself, not base64)"
        )
    if part.data is not None and not (isinstance(part.media_type, str) and part.media_type):
        return "has data and no media_type, such as 'image/png'"
    named = {"url": part.url, "media_type": part.media_type}
    if isinstance(part, FilePart):
        named["filename"] = part.filename
    elif part.detail not in _DETAILS:
        return f"has {part.detail!r} as its detail, not 'low', 'high' or 'auto'"
    for name, value in named.items():
        if value is not None and not isinstance(value, str):
            return f"has {_kind(value)} as its {name}, which is text"
    return None


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def sendable(part: ImagePart | FilePart) -> ImagePart | FilePart | None:
    """The part as a wire might take it: bytes that aren't empty, or an http(s) address; `None` for anything else.

    A data URL is read into its bytes and their media type, since not every API takes one for an address.
    """
    if part.url is None:
        return part if part.data else None
    if part.url[:5].lower() == "data:":
        return _from_data_url(part)
    return part if _ADDRESS.fullmatch(part.url) is not None else None


def _from_data_url(part: ImagePart | FilePart) -> ImagePart | FilePart | None:
    head, comma, body = (part.url or "")[5:].partition(",")
    media_type, _, encoding = head.rpartition(";")
    if not comma or encoding.strip().lower() != "base64" or not (media_type or part.media_type):
        return None
    import base64  # rare

    try:
        data = base64.b64decode(body, validate=True)
    except ValueError:
        return None
    return (
        replace(part, url=None, data=data, media_type=media_type or part.media_type)
        if data
        else None
    )


def cut_text(text: str, limit: int) -> str:
    """`text`, or its beginning with a note of how much was left out, so that it has no more than `limit` characters."""
    if len(text) <= limit:
        return text
    note = f"\n[{len(text)} characters are more than the {limit} that the provider takes; the rest was left out]"
    return text[: limit - len(note)] + note


def cut_arguments(text: str, limit: int) -> str:
    """The text of arguments that are too long to be sent back: an object with their beginning, as text (rule R3)."""
    length = limit
    while True:
        # Quotes and line ends take two characters inside a string, control characters six.
        length = length * 3 // 4
        wrapped = encode_text({TRUNCATED: text[:length]})
        if len(wrapped) <= limit:
            return wrapped
