"""Bytes that a program hands to an SDK, as the base64 text that they are on the wire.

The text can be read, compared and moved about as any other, and knows that it was bytes: whoever
gives a value back to the program gives it bytes again.
"""

from __future__ import annotations

import base64
from typing import Any

__all__ = ["MOST_LEVELS", "SdkBytes", "with_bytes"]

MOST_LEVELS = 200
"""How deep bytes are looked for: what is nested deeper is as the program made it."""


class SdkBytes(str):
    """The base64 text of bytes."""

    __slots__ = ()

    @classmethod
    def of(cls, value: bytes | bytearray | memoryview) -> SdkBytes:
        """The text of these bytes."""
        return cls(base64.b64encode(value).decode("ascii"))


def with_bytes(value: Any, depth: int = 0) -> Any:
    """The same value with bytes where `SdkBytes` are; itself where it holds none."""
    if isinstance(value, SdkBytes):
        return base64.b64decode(value)
    if depth > MOST_LEVELS:
        return value
    if isinstance(value, dict):
        named = {key: with_bytes(inner, depth + 1) for key, inner in value.items()}
        return named if any(named[key] is not value[key] for key in value) else value
    if isinstance(value, list):
        entries = [with_bytes(inner, depth + 1) for inner in value]
        changed = any(one is not other for one, other in zip(entries, value, strict=True))
        return entries if changed else value
    return value
