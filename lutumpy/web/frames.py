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


_quote = json.encoder.encode_basestring


def encode_data(value: Any) -> bytes:
    """A JSON value as one server-sent event."""
    # Nearly all are pieces of a text for one watcher of many: an object of texts.
    if type(value) is dict and all(type(each) is str for each in value.values()):
        text = ",".join([f"{_quote(key)}:{_quote(each)}" for key, each in value.items()])
        try:
            return b"data: {%b}\n\n" % text.encode()
        except UnicodeEncodeError:
            pass  # a lone surrogate
    text = json.dumps(json_values.clean(value), ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode("utf-8", "replace") + b"\n\n"
