"""Media types: what a part says it is, and what its bytes or its address show.

Plain functions about names and bytes, for the rules, the repairs and the adapters alike. What each
of OpenAI's APIs takes is in `rules/openai/`: the numbers and lists in its `limits` modules, the
checks in `rules/openai/media.py`.

Sources: `Base64ImageSource`, `Base64PDFSource` and `PlainTextSource` of Anthropic's API
description, OpenAI's guides to images and files, and answers of both that users report.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The media types of images that all three APIs take, and no others: OpenAI's refusal of another
one lists these [reported]."""

OTHER_NAMES: Mapping[str, str] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}
"""Names that are in use without being registered, with the type that they mean. OpenAI looks at the
bytes and accepts them; Anthropic looks at the name and refuses them."""

PDF = "application/pdf"
PLAIN = "text/plain"

SOUND_AND_FILM = (".mp3", ".wav", ".m4a", ".ogg", ".flac", ".aac", ".mp4", ".mov", ".webm")
"""How the address of a sound or a film ends. No API takes one as a file [recorded: 4 refusals]."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z")
_DATA_URL = re.compile(r"data:([^;,]{1,200})[;,]")
# The first bytes of each kind of image; WebP has its own check, as its bytes begin like a sound's.
_FIRST_BYTES: Mapping[bytes, str] = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}
_HEAD = 24  # characters of base64 text that are decoded to see the first bytes


def plain_type(media_type: str | None) -> str:
    """A media type without its parameters, in lower case; empty when there is none."""
    return (media_type or "").partition(";")[0].strip().lower()


def image_type(media_type: str | None) -> str | None:
    """The one of `IMAGE_TYPES` that a media type means; `None` for any other."""
    name = plain_type(media_type)
    known = OTHER_NAMES.get(name, name)
    return known if known in IMAGE_TYPES else None


def is_data_url(text: str) -> bool:
    """Whether a text is a data URL, and so holds the data itself; `DATA:` counts as well."""
    return text[:5].lower() == "data:"


def data_type(url: Any) -> str | None:
    """The (plain) media type that a data URL names; `None` for anything else."""
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    return plain_type(match[1]) if match is not None else None


def is_base64(text: str) -> bool:
    """Whether a text is base64 in either of its two alphabets, with padding or without. Gemini
    takes both [recorded].
    """
    if _BASE64.match(text) is None:
        return False
    return len(text.rstrip("=")) % 4 != 1


def type_of_bytes(data: str) -> str | None:
    """The one of `IMAGE_TYPES` that base64 text begins like; `None` if there is none."""
    whole_groups = min(_HEAD, len(data)) // 4 * 4
    try:
        return type_of_image(base64.b64decode(data[:whole_groups]))
    except ValueError:
        return None


def type_of_image(data: bytes) -> str | None:
    """The one of `IMAGE_TYPES` that bytes begin like; `None` if there is none."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    for start, media_type in _FIRST_BYTES.items():
        if data.startswith(start):
            return media_type
    return None


def is_sound_or_film(url: str) -> bool:
    """Whether the path of an address ends like that of a sound or a film."""
    path = url.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0]
    return path.lower().endswith(SOUND_AND_FILM)
