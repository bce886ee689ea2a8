"""Fields of a provider's reply, read so that nothing raises.

A host may send any JSON where OpenAI documents a text, a number or an object. What isn't of the
documented type counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lutumpy.core.usage import MOST_TOKENS, Usage, token_count
from lutumpy.plain import json_values
from lutumpy.plain.json_values import clean_text, encode_text

__all__ = [
    "NESTED_TEXTS",
    "TokenNames",
    "filled",
    "mapping",
    "model_text",
    "name_text",
    "nested_texts",
    "text",
    "token_names",
    "token_usage",
]

NO_USAGE = Usage()

NESTED_TEXTS: Mapping[str, str] = {"thinking": "thinking", "reasoning": "summary"}
"""The parts of a chat message that hold reasoning as a list of texts, and the field that it is in:
Mistral's and Databricks'.
"""


def text(value: Any) -> str | None:
    """`value` if it is a string that isn't empty, else `None`."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def filled(value: Any) -> bool:
    """Whether `value` holds something: it is not `null`, nor an empty string, list or object."""
    return value is not None and value != "" and value != [] and value != {}


def model_text(value: Any) -> str:
    """What a model wrote where a text belongs.

    A text is taken as it is, `null` is the empty text, and any other value becomes its JSON.
    """
    if isinstance(value, str):
        return value
    if json_values.holds_non_finite(value):
        # The model wrote NaN or an infinity, which is not JSON; whoever reads it has to see that.
        return json_values.as_written(value)
    return "" if value is None else encode_text(value)


def nested_texts(part: Mapping[str, Any]) -> list[str] | None:
    """The texts in a part that holds reasoning (`NESTED_TEXTS`); `None` for every other part."""
    key = NESTED_TEXTS.get(part["type"])
    if key is None:
        return None
    found = part.get(key)
    if not isinstance(found, list):
        if key == "summary":
            return None
        found = [found]
    texts = [each if isinstance(each, str) else mapping(each).get("text") for each in found]
    return [each for each in texts if isinstance(each, str)]


def name_text(value: str) -> str:
    """A call's id or name as it can be sent: lone surrogates are replaced."""
    return value if value.isascii() else clean_text(value)


class TokenNames(NamedTuple):
    """The fields of a usage. Both APIs count the same things under different names."""

    input: str
    output: str
    input_details: str
    output_details: str
    cache_hits: str


def token_names(input: str, output: str) -> TokenNames:
    """The fields of a usage, by how their names begin: `prompt` and `completion`, for example."""
    return TokenNames(
        input=f"{input}_tokens",
        output=f"{output}_tokens",
        input_details=f"{input}_tokens_details",
        output_details=f"{output}_tokens_details",
        cache_hits=f"{input}_cache_hit_tokens",  # DeepSeek's, on Chat Completions
    )


def token_usage(usage: Any, names: TokenNames) -> Usage:
    """The tokens that a reply cost, given its `usage`."""
    if not isinstance(usage, dict):
        return NO_USAGE
    get: Any = usage.get
    input_tokens, output_tokens, total = get(names.input), get(names.output), get("total_tokens")
    # Nearly all are numbers as documented, which is seen without a call for each.
    if not type(input_tokens) is type(output_tokens) is type(total) is int or (
        input_tokens < 0
        or output_tokens < 0
        or total <= 0
        or input_tokens + output_tokens + total > MOST_TOKENS
    ):
        input_tokens, output_tokens = token_count(input_tokens), token_count(output_tokens)
        total = token_count(total) or input_tokens + output_tokens
    cached = written = reasoning = 0
    if details := mapping(get(names.input_details)):
        cached = token_count(details.get("cached_tokens"))
        written = token_count(details.get("cache_write_tokens"))
    if not cached and (hits := get(names.cache_hits)):
        cached = token_count(hits)
    if details := mapping(get(names.output_details)):
        reasoning = token_count(details.get("reasoning_tokens"))
        if reasoning and total == input_tokens + output_tokens + reasoning:
            # xAI counts reasoning beside the answer, and bills it as output.
            output_tokens += reasoning
    # Both APIs include cached tokens in the input. A host that names more cached tokens than input
    # counts them beside the input, as its total shows.
    beside = 0 if cached + written <= input_tokens else None
    return Usage(input_tokens, output_tokens, total, cached, written, reasoning, beside)
