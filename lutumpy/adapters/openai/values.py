"""Reading fields of a provider's answer that may have any type: what isn't as documented counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core import json_values

__all__ = ["count", "filled", "mapping", "model_text", "text"]


def text(value: Any) -> str | None:
    """`value` when it is a string that isn't empty, else `None`."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int:
    """`value` when it is a number of tokens, else 0."""
    return value if type(value) is int and value > 0 else 0


def filled(value: Any) -> bool:
    """Whether there is anything in it: not `null`, and no empty string, list or object."""
    return value is not None and value != "" and value != [] and value != {}


def model_text(value: Any) -> str:
    """What a model wrote where text belongs: the text itself, JSON for anything else, nothing for `null`."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_values.encode_text(value)


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` without the fields that are `null`."""
    return {name: inner for name, inner in value.items() if inner is not None}
