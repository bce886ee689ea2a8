"""The events of Converse as frames of Amazon's event stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.testing.event_frames import json_bytes, write_frame

__all__ = ["write_event_frame", "write_exception_frame"]

_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
"""What payloads are padded with, so that their lengths don't tell what they say."""


def write_event_frame(name: str, payload: Mapping[str, Any]) -> bytes:
    """The frame of an event, padded as the service does."""
    padded = {**payload, "p": _PADDING[: 1 + len(str(payload)) % len(_PADDING)]}
    headers = {
        ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return write_frame(headers, json_bytes(padded))


def write_exception_frame(name: str, message: str) -> bytes:
    """The frame of an error after the stream has begun."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return write_frame(headers, json_bytes({"message": message}))
