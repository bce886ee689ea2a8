"""The shape errors that both OpenAI APIs answer, worded once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.rules.problem import Certainty, Problem, is_number, json_kind, listed

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
OFFICIAL_MODEL = re.compile(r"(?:ft:)?(?:gpt-|chatgpt-|o[134](?:-|\Z))")
"""Names of OpenAI's own models: rules about what a model can do hold for these only, not for other hosts' models."""

MAX_TEXT = 1_048_576
"""Characters of a call's arguments [reported: longer ones make every later request fail]."""

MAX_TOOLS = 128
MAX_DESCRIPTION = 1024
RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}


def missing(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    return Problem(
        rule,
        where,
        f"Missing required parameter: '{where}'.",
        certainty,
        param=where,
        code="missing_required_parameter",
    )


def unknown(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    return Problem(
        rule,
        where,
        f"Unknown parameter: '{where}'.",
        certainty,
        param=where,
        code="unknown_parameter",
    )


def wrong_type(
    rule: str, where: str, expected: str, value: Any, certainty: Certainty = "refused"
) -> Problem:
    got = json_kind(value)
    message = f"Invalid type for '{where}': expected {expected}, but got {got} instead."
    return Problem(rule, where, message, certainty, param=where, code="invalid_type")


def wrong_value(
    rule: str, where: str, value: Any, supported: Iterable[str], certainty: Certainty = "refused"
) -> Problem:
    message = f"Invalid value: '{value}'. Supported values are: {listed(supported)}."
    return Problem(rule, where, message, certainty, param=where, code="invalid_value")


def empty_array(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    message = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Problem(rule, where, message, certainty, param=where, code="empty_array")


def long_array(rule: str, where: str, limit: int, length: int) -> Problem:
    message = (
        f"Invalid '{where}': array too long. Expected an array with maximum length {limit}, "
        f"but got an array with length {length} instead."
    )
    return Problem(rule, where, message, "refused", param=where, code="array_above_max_length")


def empty_string(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    message = f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string instead."
    return Problem(rule, where, message, certainty, param=where, code="empty_string")


def long_string(
    rule: str, where: str, limit: int, length: int, certainty: Certainty = "refused"
) -> Problem:
    message = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="string_above_max_length")


def check_text_length(rule: str, where: str, value: str, certainty: Certainty) -> list[Problem]:
    """The arguments or the input of a call are not too long to be sent back."""
    return (
        [long_string(rule, where, MAX_TEXT, len(value), certainty)] if len(value) > MAX_TEXT else []
    )


def check_name(rule: str, where: str, value: Any, limit: int) -> list[Problem]:
    """A tool's or function's name, in a declaration or in history."""
    if value is None:
        return [missing(rule, where)]
    if not isinstance(value, str):
        return [wrong_type(rule, where, "a string", value)]
    if not value:
        return [empty_string(rule, where)]
    if not _NAME.match(value):
        message = (
            f"Invalid '{where}': string does not match pattern. "
            f"Expected a string that matches the pattern '{NAME_PATTERN}'."
        )
        return [
            Problem(
                rule, where, message, "refused", param=where, code="invalid_value", tools=(value,)
            )
        ]
    if len(value) > limit:
        return [long_string(rule, where, limit, len(value))]
    return []


COUNTS: Mapping[str, tuple[int, int]] = {"n": (1, 128)}


def check_ranges(prefix: str, body: Mapping[str, Any]) -> list[Problem]:
    """Sampling parameters inside their limits [recorded for `temperature`]."""
    found: list[Problem] = []
    for key, (low, high) in RANGES.items():
        value = body.get(key)
        if value is None:
            continue
        if not is_number(value):
            found.append(wrong_type(f"{prefix}.ranges", key, "a decimal", value))
        elif value < low:
            message = f"Invalid '{key}': decimal below minimum value. Expected a value >= {low}, but got {value} instead."
            found.append(
                Problem(
                    f"{prefix}.ranges",
                    key,
                    message,
                    "refused",
                    param=key,
                    code="decimal_below_min_value",
                )
            )
        elif value > high:
            message = f"Invalid '{key}': decimal above maximum value. Expected a value <= {high}, but got {value} instead."
            found.append(
                Problem(
                    f"{prefix}.ranges",
                    key,
                    message,
                    "refused",
                    param=key,
                    code="decimal_above_max_value",
                )
            )
    for key, (least, most) in COUNTS.items():
        found += check_integer(f"{prefix}.ranges", key, body.get(key), least, most)
    return found


def check_integer(rule: str, where: str, value: Any, low: int, high: int) -> list[Problem]:
    """A count inside its limits; absent is fine."""
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [wrong_type(rule, where, "an integer", value)]
    if low <= value <= high:
        return []
    side, sign, limit = (
        ("below minimum", ">=", low) if value < low else ("above maximum", "<=", high)
    )
    message = f"Invalid '{where}': integer {side} value. Expected a value {sign} {limit}, but got {value} instead."
    code = f"integer_{'below_min' if value < low else 'above_max'}_value"
    return [Problem(rule, where, message, "refused", param=where, code=code)]


def check_model(prefix: str, value: Any, absent: str | None = None) -> list[Problem]:
    """`model` is a string; `absent` is the message for a missing one where it is not the usual."""
    rule = f"{prefix}.required"
    if value is None:
        if absent is None:
            return [missing(rule, "model")]
        return [Problem(rule, "model", absent, "refused")]
    return [] if isinstance(value, str) else [wrong_type(rule, "model", "a string", value)]


def repeated(rule: str, names: Iterable[tuple[str, str]]) -> list[Problem]:
    """Two tools of one name. OpenAI's own answer is not known, so no refusal is claimed."""
    found: list[Problem] = []
    seen: set[str] = set()
    for where, name in names:
        if name in seen:
            message = f"Invalid 'tools': the tool name '{name}' is used more than once."
            found.append(Problem(rule, where, message, "some", param="tools", tools=(name,)))
        seen.add(name)
    return found


def is_official(model: str | None) -> bool:
    return model is not None and OFFICIAL_MODEL.match(model) is not None
