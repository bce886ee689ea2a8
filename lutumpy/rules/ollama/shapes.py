"""The words in which Ollama refuses a value of a wrong type: those of Go's JSON reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import Certainty, Problem, is_array

__all__ = ["refusal", "wrong_type"]

_INDEX = re.compile(r"\[\d+\]")


def wrong_type(rule: str, where: str, value: Any, expected: str) -> Problem:
    """A value of another type.

    Args:
        rule: The rule's id.
        where: Its place, as `messages[0].content`.
        value: The value.
        expected: The Go type that is there.
    """
    field = _INDEX.sub("", where)
    message = (
        f"json: cannot unmarshal {_kind(value)} into Go struct field ChatRequest.{field} "
        f"of type {expected}"
    )
    return refusal(rule, where, message)


def refusal(rule: str, where: str, message: str, certainty: Certainty = "refused") -> Problem:
    """A problem in the words of the API."""
    return Problem(rule, where, message, certainty)


def _kind(value: Any) -> str:
    """The name that Go's reader has for a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    return "array" if is_array(value) else "value"
