"""How large an image is, by its own bytes."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.rules.image_size import image_size, image_size_in_base64

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 9000, 20, 8, 6, 0, 0, 0)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
FRAME = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 1080, 1920)
EXIF = b"\xff\xe1" + struct.pack(">H", 2 + 60_000) + b"\xff\xc0" * 30_000
TABLES = b"\xff\xc4" + struct.pack(">H", 4) + b"xx" + b"\xff\xff\xd0"
JPEG = b"\xff\xd8" + EXIF + TABLES + FRAME + b"\x03"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + b"\x00\x00\x00\x00" + rest.ljust(14, b"\x00")


IMAGES = [
    (PNG, (9000, 20)),
    (GIF, (640, 480)),
    (JPEG, (1920, 1080)),
    (
        webp(b"VP8X", b"\x00" * 4 + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")),
        (100, 50),
    ),
    (webp(b"VP8 ", b"\x00" * 6 + struct.pack("<HH", 0x4000 | 800, 600)), (800, 600)),
    (webp(b"VP8L", b"\x2f" + ((799 | 599 << 14).to_bytes(4, "little"))), (800, 600)),
]


@pytest.mark.parametrize(
    ("data", "size"), IMAGES, ids=["png", "gif", "jpeg", "x", "lossy", "lossless"]
)
def test_the_size_is_in_the_first_bytes(data: bytes, size: tuple[int, int]) -> None:
    assert image_size(data) == size
    assert image_size(data + b"\x00" * 100) == size
    assert image_size_in_base64(base64.b64encode(data + b"\x00" * 100).decode()) == size


@pytest.mark.parametrize("data", [data for data, _ in IMAGES])
def test_of_a_cut_image_the_size_is_right_or_unknown(data: bytes) -> None:
    whole = image_size(data)
    for end in {*range(min(len(data), 40)), *range(len(data) - 12, len(data))}:
        assert image_size(data[:end]) in (None, whole)


@given(st.binary(max_size=80), st.sampled_from([data[:20] for data, _ in IMAGES] + [b"\xff\xd8"]))
def test_no_bytes_raise(data: bytes, begin: bytes) -> None:
    image_size(begin + data)
    image_size_in_base64((begin + data).hex())


@pytest.mark.parametrize(
    "text", ["", "A", "AAAA", "data:image/png;base64,", "\u00e4" * 8, "!" * 40]
)
def test_of_what_is_no_image_nothing_is_known(text: str) -> None:
    assert image_size_in_base64(text) is None
