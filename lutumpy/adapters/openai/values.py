"""Reading fields of a provider's answer that may have any type: what isn't as documented counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core import json_values
from lutumpy.core.items import Usage

__all__ = ["count", "filled", "mapping", "model_text", "text", "token_usage"]


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


def token_usage(usage: Any, given_as: str, made_as: str) -> Usage:
    """The tokens of an answer. The wires count the same things, and call input and output by names of their own."""
    counted = mapping(usage)
    given = count(counted.get(f"{given_as}_tokens"))
    made = count(counted.get(f"{made_as}_tokens"))
    details = mapping(counted.get(f"{given_as}_tokens_details"))
    return Usage(
        given,
        made,
        count(counted.get("total_tokens")) or given + made,
        # The second name is DeepSeek's, on Chat Completions.
        count(details.get("cached_tokens")) or count(counted.get(f"{given_as}_cache_hit_tokens")),
        count(details.get("cache_write_tokens")),
        count(mapping(counted.get(f"{made_as}_tokens_details")).get("reasoning_tokens")),
    )
