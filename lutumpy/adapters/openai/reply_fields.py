"""Reading fields of a provider's answer that may have any type: what isn't as documented counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lutumpy.core import json_values
from lutumpy.core.items import Usage
from lutumpy.core.json_values import clean_text, encode_text

__all__ = [
    "TokenNames",
    "count",
    "filled",
    "mapping",
    "model_text",
    "name_text",
    "text",
    "token_names",
    "token_usage",
]

NO_USAGE = Usage()


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
    if json_values.holds_non_finite(value):
        return json_values.as_written(
            value
        )  # the model wrote no JSON, and whoever reads it is to see that
    return "" if value is None else encode_text(value)


def name_text(value: str) -> str:
    """A call's id or name as it can be sent: with lone surrogates replaced."""
    return value if value.isascii() else clean_text(value)


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` without the fields that are `null`."""
    return {name: inner for name, inner in value.items() if inner is not None}


class TokenNames(NamedTuple):
    """What a wire calls the tokens that went in and came out. Both wires count the same things."""

    given: str
    made: str
    given_details: str
    made_details: str
    cache_hits: str


def token_names(given: str, made: str) -> TokenNames:
    """The names that begin with `given` and `made`."""
    return TokenNames(
        f"{given}_tokens",
        f"{made}_tokens",
        f"{given}_tokens_details",
        f"{made}_tokens_details",
        f"{given}_cache_hit_tokens",  # DeepSeek's, on Chat Completions
    )


def token_usage(usage: Any, names: TokenNames) -> Usage:
    """The tokens of an answer."""
    if not isinstance(usage, dict):
        return NO_USAGE
    get = usage.get
    given, made = count(get(names.given)), count(get(names.made))
    total = count(get("total_tokens")) or given + made
    cached = written = reasoning = 0
    if details := get(names.given_details):
        details = mapping(details)
        cached, written = (
            count(details.get("cached_tokens")),
            count(details.get("cache_write_tokens")),
        )
    if not cached and (hits := get(names.cache_hits)):
        cached = count(hits)
    if details := get(names.made_details):
        reasoning = count(mapping(details).get("reasoning_tokens"))
    # Both wires count cached tokens in the input. A host that names more of them than there is input counts them beside
    # it, which its total shows.
    beside = 0 if cached + written <= given else None
    return Usage(given, made, total, cached, written, reasoning, beside)
