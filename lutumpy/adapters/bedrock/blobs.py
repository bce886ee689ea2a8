"""Bytes in requests and answers: base64 on the wire, themselves where the SDK gives or takes them.

This library keeps what is on the wire. What is under `json` and `input` is a tool's own, and
isn't looked into.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.bedrock.blocks import BLOB_KEYS

__all__ = ["with_base64", "with_bytes"]

_OWN = frozenset({"additionalModelRequestFields", "additionalModelResponseFields", "input", "json"})


def with_base64(value: Any) -> Any:
    """The same value with base64 texts in place of bytes; itself where it holds none."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        converted = {
            key: inner if key in _OWN else with_base64(inner) for key, inner in value.items()
        }
        return converted if any(converted[key] is not value[key] for key in value) else value
    if isinstance(value, (list, tuple)):
        entries = [with_base64(inner) for inner in value]
        changed = any(one is not other for one, other in zip(entries, value, strict=True))
        return entries if changed else value
    return value


def with_bytes(value: Any) -> Any:
    """The same JSON value with bytes in place of base64 texts, as boto3 takes them."""
    if isinstance(value, Mapping):
        converted: dict[str, Any] = {}
        for key, inner in value.items():
            if key in _OWN:
                converted[key] = inner
            elif key in BLOB_KEYS and isinstance(inner, str):
                converted[key] = _from_base64(inner)
            else:
                converted[key] = with_bytes(inner)
        return converted
    return [with_bytes(inner) for inner in value] if isinstance(value, list) else value


def _from_base64(text: str) -> Any:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return text
