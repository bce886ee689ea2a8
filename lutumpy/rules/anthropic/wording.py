"""The words in which Messages refuses what has another shape than it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.rules.problem import Certainty, Problem

__all__ = ["check_keys", "shape", "wrong_tag"]


def shape(
    rule: str, where: str, message: str, certainty: Certainty = "refused", **more: Any
) -> Problem:
    """A problem whose message starts with its position, as the API's validation words it."""
    return Problem(rule, where, f"{where}: {message}" if where else message, certainty, **more)


def wrong_tag(value: Any, expected: Sequence[str]) -> str:
    """What is said of a `type` that is none of those that may be there."""
    tags = ", ".join(f"'{tag}'" for tag in expected)
    if value is None:
        return "Unable to extract tag using discriminator 'type'"
    return f"Input tag '{value}' found using 'type' does not match any of the expected tags: {tags}"


def check_keys(
    rule: str, where: str, value: Mapping[str, Any], known: frozenset[str]
) -> list[Problem]:
    """The keys of an object that the API doesn't have there."""
    if value.keys() <= known:
        return []
    found: list[Problem] = []
    for key in value:
        if key not in known:
            # A key that would read as several steps is named in the message only.
            position = f"{where}.{key}" if isinstance(key, str) and key.isidentifier() else where
            found.append(
                Problem(rule, position, f"{where}.{key}: Extra inputs are not permitted", "refused")
            )
    return found
