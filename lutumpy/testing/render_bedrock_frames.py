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

__all__ = ["write_event_frame", "write_exception_frame", "write_frame"]

_TEXT = 7
"""The type of a header that holds a text."""
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
"""What payloads are padded with, so that their lengths don't tell what they say."""


def write_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame."""
    written = b"".join([_write_header(name, value) for name, value in headers.items()])
    total = 12 + len(written) + len(payload) + 4
    lengths = struct.pack(">II", total, len(written))
    frame = lengths + struct.pack(">I", zlib.crc32(lengths)) + written + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def _write_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + struct.pack(">H", len(text)) + text


def write_event_frame(name: str, payload: Mapping[str, Any]) -> bytes:
    """The frame of an event, padded as the service does."""
    padded = {**payload, "p": _PADDING[: 1 + len(str(payload)) % len(_PADDING)]}
    headers = {
        ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return write_frame(headers, _write_json(padded))


def write_exception_frame(name: str, message: str) -> bytes:
    """The frame of an error after the stream has begun."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return write_frame(headers, _write_json({"message": message}))


def _write_json(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
