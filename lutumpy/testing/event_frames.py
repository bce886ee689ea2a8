"""The frames of Amazon's event stream: bytes with lengths and checksums around each event."""

#     total length, length of the headers    4 + 4 bytes, big-endian
#     checksum of these                      4 bytes, CRC-32
#     headers                                name after its length (1), 7, text after its (2)
#     payload                                JSON
#     checksum of all before                 4 bytes

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

__all__ = ["json_bytes", "read_frames", "write_frame"]

_TEXT = 7
"""The type of a header that holds a text."""
_AROUND = 16
"""Bytes of a frame that are neither headers nor payload."""


def write_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame."""
    written = b"".join([_write_header(name, value) for name, value in headers.items()])
    total = _AROUND + len(written) + len(payload)
    lengths = struct.pack(">II", total, len(written))
    frame = lengths + struct.pack(">I", zlib.crc32(lengths)) + written + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def json_bytes(value: Any) -> bytes:
    """A value as JSON without white space, as payloads have it; half a character stays one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _write_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + struct.pack(">H", len(text)) + text


def read_frames(data: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The frames in some bytes, each as its headers and its payload.

    Raises:
        ValueError: the last frame isn't whole, or a header holds something else than a text.
    """
    frames: list[tuple[dict[str, str], bytes]] = []
    start = 0
    while start < len(data):
        if len(data) - start < _AROUND:
            raise ValueError("the event stream ends within a frame")
        total, headers_size = struct.unpack_from(">II", data, start)
        if total < _AROUND + headers_size or start + total > len(data):
            raise ValueError("the event stream ends within a frame")
        middle = start + 12 + headers_size
        headers = _read_headers(data[start + 12 : middle])
        frames.append((headers, data[middle : start + total - 4]))
        start += total
    return frames


def _read_headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    start = 0
    while start < len(data):
        end = start + 1 + data[start]
        name = data[start + 1 : end].decode()
        if data[end : end + 1] != bytes([_TEXT]):
            raise ValueError(f"the header {name!r} of an event isn't a text")
        (size,) = struct.unpack_from(">H", data, end + 1)
        headers[name] = data[end + 3 : end + 3 + size].decode()
        start = end + 3 + size
    return headers
