"""Files whose content is plain text: what each API's repairs of media share.

What has to be converted is left alone: only the program can say which picture a film becomes, and
who reads a table.
"""

from __future__ import annotations

import base64
import binascii

__all__ = ["WRITTEN_AS_TEXT", "decode_text_file"]

WRITTEN_AS_TEXT = "The API takes no files of this type; this one is plain text and is sent as text."
"""The reason for a file that becomes a text."""

_TEXT_TYPES = ("application/json", "application/xml", "application/yaml", "application/x-yaml")


def decode_text_file(media_type: str, data: str) -> str | None:
    """The text of a file, from its base64; `None` for a file of a type that isn't text."""
    if not media_type.startswith("text/") and media_type not in _TEXT_TYPES:
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
