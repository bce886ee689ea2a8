"""What every encoder of a log has in common: frames of server-sent events."""

from __future__ import annotations

import json
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

__all__ = ["HEARTBEAT", "Frame", "encode_data"]

HEARTBEAT = b": lutumpy\n\n"
"""A comment, which every client ignores: it keeps proxies from closing a silent connection."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to be sent as they are.

    Attributes:
        seq: The number of the event that they come from.
        data: One or more server-sent events.
    """

    seq: int
    data: bytes


def encode_data(value: Any) -> bytes:
    """A JSON value as one server-sent event."""
    text = json.dumps(json_values.clean(value), ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode("utf-8", "replace") + b"\n\n"
