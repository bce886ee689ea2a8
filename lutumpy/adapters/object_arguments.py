"""Arguments of calls where an API has them as an object: Messages, Converse, Gemini and Ollama.

The library keeps them as the text that hooks, logs and results refer to. What isn't an object goes
back inside one.
"""

from __future__ import annotations

from typing import Any

from lutumpy.core.items import CallBlock
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.plain.json_values import (
    INVALID_JSON,
    clean_text,
    decode,
    encode,
    encode_text,
    holds_non_finite,
    parse_arguments,
)

__all__ = [
    "UnparsedInput",
    "arguments_object",
    "parse_streamed",
    "read_arguments",
]

_NO_NUMBER = (
    "The arguments are not valid JSON, which has neither NaN nor Infinity. Send one JSON object."
)


class UnparsedInput(str):
    """A text that is the arguments themselves, in place of an object: the model's own words, kept
    as the arguments (rule C2). Streamed arguments that are not JSON are one, and so is what a host
    writes that has them as a text.
    """

    __slots__ = ()


def parse_streamed(text: str) -> Any:
    """The value of arguments whose text has arrived in pieces."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return UnparsedInput(clean_text(text))


def read_arguments(value: Any) -> tuple[str, dict[str, Any], str | None]:
    """The arguments of a call as a text, the object that goes back, and what is wrong with them.

    Args:
        value: What the reply has in their place. A text that is an `UnparsedInput` is the arguments
            themselves; any other one is a JSON value like a number.
    """
    if isinstance(value, dict):
        # NaN and infinities become texts here, so that the call can be replayed; it isn't run
        # (rules C2b and R3).
        arguments = encode(value).decode()
        if ("NaN" in arguments or "Infinity" in arguments) and holds_non_finite(value):
            return arguments, value, _NO_NUMBER
        return arguments, value, None
    if value is None or (isinstance(value, str) and not value.strip()):
        return "", {}, None
    is_text = type(value) is UnparsedInput
    arguments = str(clean_text(value)) if is_text else encode_text(value)
    return arguments, {INVALID_JSON: arguments}, None


def arguments_object(call: CallBlock) -> dict[str, Any]:
    """The arguments of another API's call as an object (rule R3)."""
    if call.kind not in ("function", SEARCH_CALL) and call.server_label is None:
        return {"input": call.arguments}
    try:
        value = parse_arguments(call.arguments)
    except (ValueError, RecursionError):
        return {INVALID_JSON: call.arguments}
    # A number that overflows to infinity can't be written again, so the text is what is kept.
    fits = isinstance(value, dict) and not holds_non_finite(value)
    return value if fits else {INVALID_JSON: call.arguments}
