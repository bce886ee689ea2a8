"""Bytes and files whose content is plain text: what each API's repairs of media share.

What has to be converted is left alone: only the program can say which picture a film becomes, and
who reads a table.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from lutumpy.rules.media import is_base64

__all__ = [
    "PDF_BEGINS",
    "TAKEN_FROM_DATA_URL",
    "WRITTEN_AS_TEXT",
    "base64_of_data_url",
    "decode_text_file",
]

PDF_BEGINS = "JVBERi0"
"""The beginning of every PDF, `%PDF-`, in base64."""

WRITTEN_AS_TEXT = "The API takes no files of this type; this one is plain text and is sent as text."
"""The reason for a file that becomes a text."""

TAKEN_FROM_DATA_URL = "The bytes stand in a data URL; the API takes the base64 alone."
"""The reason for base64 that is taken out of a data URL."""

_TEXT_TYPES = ("application/json", "application/xml", "application/yaml", "application/x-yaml")


def decode_text_file(media_type: str, data: str) -> str | None:
    """The text of a file, from its base64; `None` for a file of a type that isn't text."""
    if not media_type.startswith("text/") and media_type not in _TEXT_TYPES:
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def base64_of_data_url(value: Any) -> str | None:
    """The base64 in a data URL; `None` for anything else, and for one without a single byte."""
    head, comma, data = value.partition(",") if isinstance(value, str) else ("", "", "")
    says_base64 = head.startswith("data:") and head.endswith(";base64")
    return data if comma and says_base64 and data.rstrip("=") and is_base64(data) else None
