"""What files and their bytes may be that a request shows the model.

Sources: the vendor's pages about images, sound, films and documents; recorded requests; the refusal
of an address that may not be fetched, three times recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.fields import field, key_of, spellings
from lutumpy.rules.gemini.limits import (
    MEDIA_KINDS,
    MEDIA_TYPES,
    RESULT_MEDIA_TYPES,
)
from lutumpy.rules.gemini.wording import Path, problem, unknown_name, wrong_bytes, wrong_value
from lutumpy.rules.media import is_base64, plain_type
from lutumpy.rules.problem import Problem

__all__ = ["check_media", "is_own_address"]

_KEYS: Mapping[str, frozenset[str]] = {
    "inlineData": spellings(("data", "mimeType", "displayName")),
    "fileData": spellings(("fileUri", "mimeType", "displayName")),
}
# Files of the vendor's own stores, and of the one site whose films it plays.
_OWN_ADDRESS = re.compile(
    r"gs://|https://generativelanguage\.googleapis\.com/|https://storage\.googleapis\.com/"
    r"|https://(?:(?:www|m|music)\.)?youtube\.com/|https://youtu\.be/"
)


def is_own_address(address: str) -> bool:
    """Whether an address is one that the vendor doesn't have to ask others for."""
    return _OWN_ADDRESS.match(address) is not None


def check_media(
    path: Path, name: str, value: Mapping[str, Any], *, in_result: bool = False
) -> list[Problem]:
    """Problems of bytes or of a file.

    Args:
        path: The place.
        name: `inlineData` or `fileData`.
        value: The object under it.
        in_result: Whether the result of a function shows it.
    """
    found = [
        unknown_name("gemini.unknown_key", path, str(key))
        for key in value
        if key not in _KEYS[name]
    ]
    content = "data" if name == "inlineData" else "fileUri"
    data, place = field(value, content), (*path, key_of(value, content))
    if data is None or data == "":
        found.append(problem("gemini.media", place, "{}: required", "some"))
    elif not isinstance(data, str):
        kind = "TYPE_BYTES" if name == "inlineData" else "TYPE_STRING"
        found.append(wrong_value("gemini.media", place, kind, data))
    elif name == "inlineData" and not is_base64(data):
        found.append(wrong_bytes("gemini.media", place, data))
    elif name == "fileData" and not is_own_address(data):
        found.append(problem("gemini.file_address", place, _NOT_FETCHED, "some"))
    return found + _check_type(path, name, value, in_result)


# What is at an address isn't known here, so this is reported for every address of others.
_NOT_FETCHED = (
    "Cannot fetch content from the provided URL. Please ensure the URL is valid and accessible by "
    "Vertex AI. Vertex AI respects robots.txt rules, so confirm the URL is allowed to be crawled. "
    "Status: URL_ROBOTED-ROBOTED_DENIED"
)


def _check_type(path: Path, name: str, value: Mapping[str, Any], in_result: bool) -> list[Problem]:
    media_type = field(value, "mimeType")
    place = (*path, key_of(value, "mimeType"))
    if media_type is None or media_type == "":
        # The type of a file of its own store is known to the vendor.
        if name == "fileData":
            return []
        message = "{}: mime_type must not be empty."
        return [problem("gemini.media_type", place, message, "some")]
    if not isinstance(media_type, str):
        return [wrong_value("gemini.media_type", place, "TYPE_STRING", media_type)]
    plain = plain_type(media_type)
    known = plain.partition("/")[0] in MEDIA_KINDS or plain in MEDIA_TYPES
    if not known or (in_result and plain not in RESULT_MEDIA_TYPES):
        message = f"Unsupported MIME type: {media_type}"
        return [problem("gemini.media_type", place, message, "some")]
    return []
