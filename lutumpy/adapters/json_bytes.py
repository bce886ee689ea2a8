"""JSON bytes as the adapters write them: pydantic's encoder where it goes, and the core's for all that it does not take.

Both write the same bytes for JSON values. The core stands on the standard library alone, and writes little.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from lutumpy.core import json_values

__all__ = ["encode", "encode_text"]


def encode(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON, total as `json_values.encode` is; about twice as fast."""
    try:
        return to_json(value, inf_nan_mode="strings")
    except (ValueError, TypeError, RecursionError):
        # A lone surrogate, a type of the user's, or deeper than it goes.
        return json_values.encode(value)


def encode_text(value: Any) -> str:
    """As `encode`, as text."""
    return encode(value).decode()
