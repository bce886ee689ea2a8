"""How Converse words what has a wrong shape.

A value that breaks a constraint of the service model is named by the service; a member that is
missing, unknown or of another type by the service model's reader in the official SDK, which sends
no such request. The SDK's words are used for those: the service's own are not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.rules.problem import Certainty, Problem

__all__ = [
    "KIND",
    "MODEL_SAYS",
    "constraint",
    "enum_problem",
    "missing",
    "refusal",
    "unknown_keys",
    "wrong_type",
]

KIND = "ValidationException"
"""The type of a refusal, which is in a header of the answer."""

MODEL_SAYS = "The model returned the following errors: "
"""How Converse begins what the model's own API has refused."""

_INDEX = re.compile(r"\.(\d+)(?=\.|\Z)")


def refusal(
    rule: str, where: str, message: str, certainty: Certainty = "refused", **more: Any
) -> Problem:
    """A problem in the service's own words."""
    return Problem(rule, where, message, certainty, kind=KIND, **more)


def constraint(
    rule: str, where: str, what: str, certainty: Certainty = "refused", **more: Any
) -> Problem:
    """A value that the service model has a constraint for."""
    # The service counts members of lists from 1.
    place = _INDEX.sub(lambda found: f".{int(found[1]) + 1}.member", where)
    message = (
        f"1 validation error detected: Value at '{place}' failed to satisfy constraint: {what}"
    )
    return refusal(rule, where, message, certainty, **more)


def enum_problem(rule: str, where: str, values: Iterable[str], **more: Any) -> Problem:
    """A word that is none of those that the service model lists."""
    listed = ", ".join(values)
    return constraint(rule, where, f"Member must satisfy enum value set: [{listed}]", **more)


def _parameter(where: str) -> str:
    """A place as the SDK writes it: `messages[0].content[1].toolUse`."""
    return _INDEX.sub(r"[\1]", where) or "input"


def missing(rule: str, where: str, key: str, **more: Any) -> Problem:
    """A member that has to be there."""
    message = f'Missing required parameter in {_parameter(where)}: "{key}"'
    return refusal(rule, f"{where}.{key}" if where else key, message, **more)


_TYPES: Mapping[str, str] = {
    "list": "<class 'list'>, <class 'tuple'>",
    "dict": "<class 'dict'>",
    "str": "<class 'str'>",
    "bool": "<class 'bool'>",
    "int": "<class 'int'>",
    "float": "<class 'float'>, <class 'decimal.Decimal'>, <class 'int'>",
}


def wrong_type(rule: str, where: str, value: Any, wanted: str, **more: Any) -> Problem:
    """A member that holds another type of value; `wanted` is one of Python's names, as `dict`."""
    shown = f"{value!r:.60}"
    message = (
        f"Invalid type for parameter {_parameter(where)}, value: {shown}, type: {type(value)}, "
        f"valid types: {_TYPES[wanted]}"
    )
    return refusal(rule, where, message, **more)


def unknown_keys(
    rule: str, where: str, value: Mapping[str, Any], known: Iterable[str], **more: Any
) -> list[Problem]:
    """Members that the service model doesn't have."""
    names = tuple(known)
    found: list[Problem] = []
    for key in value:
        if key in names:
            continue
        holder = _parameter(where)
        message = f'Unknown parameter in {holder}: "{key}", must be one of: {", ".join(names)}'
        # A key that would read as several steps is named in the message only.
        is_word = isinstance(key, str) and key.isidentifier()
        place = ".".join([part for part in (where, key if is_word else "") if part])
        found.append(refusal(rule, place, message, **more))
    return found
