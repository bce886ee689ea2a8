"""The shape errors that both OpenAI APIs answer, worded once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .problem import Certainty, Problem, is_number, json_kind, listed

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
    return Problem(rule, where, f"Unknown parameter: '{where}'.", certainty, param=where, code="unknown_parameter")


def wrong_type(rule: str, where: str, expected: str, value: Any, certainty: Certainty = "refused") -> Problem:
    got = json_kind(value)
    message = f"Invalid type for '{where}': expected {expected}, but got {got} instead."
    return Problem(rule, where, message, certainty, param=where, code="invalid_type")


def wrong_value(
    rule: str, where: str, value: Any, supported: Iterable[str], certainty: Certainty = "refused"
) -> Problem:
    message = f"Invalid value: '{value}'. Supported values are: {listed(supported)}."
    return Problem(rule, where, message, certainty, param=where, code="invalid_value")


def empty_array(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    message = (
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="empty_array")


def long_array(rule: str, where: str, limit: int, length: int) -> Problem:
    message = (
        f"Invalid '{where}': array too long. Expected an array with maximum length {limit}, "
        f"but got an array with length {length} instead."
    )
    return Problem(rule, where, message, "refused", param=where, code="array_above_max_length")


def empty_string(rule: str, where: str, certainty: Certainty = "refused") -> Problem:
    message = (
        f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="empty_string")


def long_string(rule: str, where: str, limit: int, length: int, certainty: Certainty = "refused") -> Problem:
    message = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return Problem(rule, where, message, certainty, param=where, code="string_above_max_length")


def check_text_length(rule: str, where: str, value: str, certainty: Certainty) -> list[Problem]:
    """The arguments or the input of a call are not too long to be sent back."""
    return [long_string(rule, where, MAX_TEXT, len(value), certainty)] if len(value) > MAX_TEXT else []


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
        return [Problem(rule, where, message, "refused", param=where, code="invalid_value", tools=(value,))]
    if len(value) > limit:
        return [long_string(rule, where, limit, len(value))]
    return []


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
            message = (
                f"Invalid '{key}': decimal below minimum value. Expected a value >= {low}, but got {value} instead."
            )
            found.append(
                Problem(f"{prefix}.ranges", key, message, "refused", param=key, code="decimal_below_min_value")
            )
        elif value > high:
            message = (
                f"Invalid '{key}': decimal above maximum value. Expected a value <= {high}, but got {value} instead."
            )
            found.append(
                Problem(f"{prefix}.ranges", key, message, "refused", param=key, code="decimal_above_max_value")
            )
    return found


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


OPENAI_ONLY: Mapping[str, frozenset[str]] = {
    "chat": frozenset(
        {
            "chat.call_id",
            "chat.call_name",
            "chat.content",
            "chat.file_data",
            "chat.image_type",
            "chat.parts",
            "chat.ranges",
            "chat.tool_choice",
            "chat.tool_name",
            "chat.tools",
            "chat.unknown_parameter",
        }
    ),
    "responses": frozenset(
        {
            "responses.arguments_length",
            "responses.call_name",
            "responses.dangling_reasoning",
            "responses.image_type",
            "responses.item_id",
            "responses.item_keys",
            "responses.item_type",
            "responses.part_length",
            "responses.parts",
            "responses.ranges",
            "responses.reasoning_summary",
            "responses.tool_choice",
            "responses.tool_name",
            "responses.tools",
            "responses.unknown_parameter",
        }
    ),
}
"""Rules that other hosts of the same API are known, or likely, not to keep [recorded from eleven hosts]."""


def for_compatible_host(prefix: str, found: list[Problem]) -> list[Problem]:
    """The same problems, sure no more where only OpenAI is known to refuse: shapes, names, schemas, not pairing."""
    softer = OPENAI_ONLY[prefix]
    schema = (f"{prefix}.strict_", f"{prefix}.schema_")
    return [
        replace(problem, certainty="some")
        if problem.certainty == "refused" and (problem.rule in softer or problem.rule.startswith(schema))
        else problem
        for problem in found
    ]


def is_official(model: str | None) -> bool:
    return model is not None and OFFICIAL_MODEL.match(model) is not None
