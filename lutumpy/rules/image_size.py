"""How large an image is, by the first bytes of its file: PNG, GIF, WebP and JPEG.

What an image is said to be doesn't matter. Nothing here raises: of bytes that aren't an image, or
that are cut, the size isn't known.

Sources: the formats' own descriptions (PNG: RFC 2083; GIF89a; WebP: RFC 9649; JPEG: ITU T.81).
"""

from __future__ import annotations

import base64

__all__ = ["image_size", "image_size_in_base64", "longest_side"]

# How many characters of base64 are looked at. Pictures and colour profiles inside a JPEG come
# before its size; `/9` begins its base64.
_OF_JPEG = 1_000_000
_OF_OTHERS = 60
# The markers of JPEG that begin a frame, and those that nothing belongs to.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset((0x01, *range(0xD0, 0xD9)))


def longest_side(data: bytes | str) -> int:
    """The pixels of the longer side of an image, from its bytes or their base64; 0 where they don't
    say it.
    """
    size = image_size_in_base64(data) if isinstance(data, str) else image_size(data)
    return 0 if size is None else max(size)


def image_size_in_base64(data: str) -> tuple[int, int] | None:
    """`image_size` of base64 text."""
    most = _OF_JPEG if data.lstrip().startswith("/9") else _OF_OTHERS
    whole_groups = min(most, len(data)) // 4 * 4
    try:
        return image_size(base64.b64decode(data[:whole_groups]))
    except ValueError:
        return None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of an image in pixels; `None` where its bytes don't say it.

    Args:
        data: The file, or its beginning.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        return _number(data[16:20]), _number(data[20:24])
    if data.startswith(b"GIF8") and len(data) >= 10:
        return _little(data[6:8]), _little(data[8:10])
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _size_of_webp(data)
    return _size_of_jpeg(data) if data.startswith(b"\xff\xd8") else None


def _size_of_webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _size_of_jpeg(data: bytes) -> tuple[int, int] | None:
    """Segments follow each other, each with its length, until one begins a frame."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            return _number(data[at + 7 : at + 9]), _number(data[at + 5 : at + 7])
        if marker == 0xFF:  # a byte that fills up
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + _number(data[at + 2 : at + 4])
    return None


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
