"""The problems of shape that Chat Completions and Responses word alike, each text once."""

# The texts are OpenAI's own [recorded or reported], mistakes included, so that what the check says
# can be searched for. A function gives one problem, or a list when the value may be right.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.rules.openai.limits import (
    DECIMAL_RANGES,
    INTEGER_RANGES,
    MAX_ARGUMENTS,
    NAME,
    NAME_PATTERN,
    NOT_IN_SPEAKER,
    SPEAKER_PATTERN,
)
from lutumpy.rules.problem import Certainty, Problem, is_number, json_kind, listed

OFFICIAL_MODEL = re.compile(r"(?:ft:)?(?:gpt-|chatgpt-|o[134](?:-|\Z))")
"""How the names of OpenAI's own models begin. Rules about what a model can do hold for these only:
other hosts' models are not known."""


def missing(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    """A required value is absent or `null`."""
    return Problem(
        rule,
        where,
        f"Missing required parameter: '{where}'.",
        certainty,
        param=where,
        code="missing_required_parameter",
    )


def unknown(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    """A key that the API doesn't have."""
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
    """A value of another JSON type; `expected` is the phrase for the right one."""
    got = json_kind(value)
    message = f"Invalid type for '{where}': expected {expected}, but got {got} instead."
    return Problem(rule, where, message, certainty, param=where, code="invalid_type")


def wrong_value(
    rule: str, where: str, value: Any, supported: Iterable[str], certainty: Certainty = "refused"
) -> Problem:
    """A value that is none of those supported."""
    message = f"Invalid value: '{value}'. Supported values are: {listed(supported)}."
    return Problem(rule, where, message, certainty, param=where, code="invalid_value")


def empty_array(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    """An array that must not be empty."""
    message = (
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="empty_array")


def long_array(rule: str, where: str, limit: int, length: int) -> Problem:
    """An array with too many entries."""
    message = (
        f"Invalid '{where}': array too long. Expected an array with maximum length {limit}, "
        f"but got an array with length {length} instead."
    )
    return Problem(rule, where, message, "refused", param=where, code="array_above_max_length")


def empty_string(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    """A string that must not be empty."""
    message = (
        f"Invalid '{where}': empty string. Expected a string with minimum length 1, "
        "but got an empty string instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="empty_string")


def long_string(
    rule: str, where: str, limit: int, length: int, certainty: Certainty = "refused"
) -> Problem:
    """A string with too many characters."""
    message = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="string_above_max_length")


def check_text_length(rule: str, where: str, value: str, certainty: Certainty) -> list[Problem]:
    """Problems of the length of a call's arguments or input, when it is sent back."""
    if len(value) <= MAX_ARGUMENTS:
        return []
    return [long_string(rule, where, MAX_ARGUMENTS, len(value), certainty)]


def check_name(rule: str, where: str, value: Any, limit: int) -> list[Problem]:
    """Problems of a tool's or a function's name, in a declaration or in a history.

    Args:
        rule: Id of the rule.
        where: The position of the name.
        value: The name, of any type.
        limit: The most characters that it may have there.
    """
    if value is None:
        return [missing(rule, where)]
    if not isinstance(value, str):
        return [wrong_type(rule, where, "a string", value)]
    if not value:
        return [empty_string(rule, where)]
    if NAME.fullmatch(value) is None:
        return [_wrong_pattern(rule, where, NAME_PATTERN, tools=(value,))]
    if len(value) > limit:
        return [long_string(rule, where, limit, len(value))]
    return []


def check_speaker(rule: str, where: str, value: Any) -> list[Problem]:
    """Problems of the `name` of a message, which says who speaks."""
    if not isinstance(value, str):
        return [wrong_type(rule, where, "a string", value)]
    if value and NOT_IN_SPEAKER.search(value) is None:
        return []
    return [_wrong_pattern(rule, where, SPEAKER_PATTERN)]


def _wrong_pattern(rule: str, where: str, pattern: str, tools: tuple[str, ...] = ()) -> Problem:
    message = (
        f"Invalid '{where}': string does not match pattern. "
        f"Expected a string that matches the pattern '{pattern}'."
    )
    return Problem(rule, where, message, "refused", param=where, code="invalid_value", tools=tools)


def check_ranges(prefix: str, body: Mapping[str, Any]) -> list[Problem]:
    """Problems of sampling parameters outside their limits.

    Args:
        prefix: `chat` or `responses`: how the rule's id begins.
        body: The request.
    """
    rule = f"{prefix}.ranges"
    found: list[Problem] = []
    for key, (low, high) in DECIMAL_RANGES.items():
        found += _check_decimal(rule, key, body.get(key), low, high)
    for key, (least, most) in INTEGER_RANGES.items():
        found += check_integer(rule, key, body.get(key), least, most)
    return found


def _check_decimal(rule: str, where: str, value: Any, low: float, high: float) -> list[Problem]:
    if value is None:
        return []
    if not is_number(value):
        return [wrong_type(rule, where, "a decimal", value)]
    # Written so that NaN, which Python's JSON reader accepts, is not called too small or too large.
    if value < low or value > high:
        return [_outside(rule, where, "decimal", value, low, high)]
    return []


def check_integer(rule: str, where: str, value: Any, low: int, high: int) -> list[Problem]:
    """Problems of a count outside its limits; `None` means that it is absent, which is allowed."""
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [wrong_type(rule, where, "an integer", value)]
    if low <= value <= high:
        return []
    return [_outside(rule, where, "integer", value, low, high)]


def _outside(rule: str, where: str, kind: str, value: float, low: float, high: float) -> Problem:
    if value < low:
        side, expected, code = "below minimum", f">= {low}", f"{kind}_below_min_value"
    else:
        side, expected, code = "above maximum", f"<= {high}", f"{kind}_above_max_value"
    message = (
        f"Invalid '{where}': {kind} {side} value. Expected a value {expected}, "
        f"but got {value} instead."
    )
    return Problem(rule, where, message, "refused", param=where, code=code)


def check_model(prefix: str, value: Any, absent: str | None = None) -> list[Problem]:
    """Problems of `model`, a string; `absent` replaces the usual text for a missing one."""
    rule = f"{prefix}.required"
    if value is None:
        if absent is None:
            return [missing(rule, "model")]
        return [Problem(rule, "model", absent, "refused")]
    return [] if isinstance(value, str) else [wrong_type(rule, "model", "a string", value)]


def repeated(rule: str, names: Iterable[tuple[str, str]]) -> list[Problem]:
    """Problems of names, given with their positions, that two tools share.

    OpenAI's own answer is not known, so no refusal is claimed.
    """
    found: list[Problem] = []
    seen: set[str] = set()
    for where, name in names:
        if name in seen:
            message = f"Invalid 'tools': the tool name '{name}' is used more than once."
            found.append(Problem(rule, where, message, "some", param="tools", tools=(name,)))
        seen.add(name)
    return found


def is_official(model: str | None) -> bool:
    """Whether a model is OpenAI's own, by its name."""
    return model is not None and OFFICIAL_MODEL.match(model) is not None
