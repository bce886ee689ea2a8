"""What members of the service model hold, as small values that check one: texts, words, structures,
unions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lutumpy.rules.bedrock.shapes import (
    constraint,
    enum_problem,
    missing,
    refusal,
    unknown_keys,
    wrong_type,
)
from lutumpy.rules.problem import Problem, is_array, is_number

__all__ = [
    "Kind",
    "anything",
    "array",
    "blob",
    "document",
    "flag",
    "number",
    "structure",
    "text",
    "union",
    "word",
]

Look: TypeAlias = "Callable[[str, Any], list[Problem]]"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a member holds.

    Attributes:
        rule: The rule that its absence breaks where it is required.
        look: Gives the problems of a value at a position.
    """

    rule: str
    look: Look


def anything(rule: str) -> Kind:
    """Any JSON."""
    return Kind(rule, lambda where, value: [])


def document(rule: str) -> Kind:
    """A JSON object of the user's or the model's own."""

    def look(where: str, value: Any) -> list[Problem]:
        return [] if isinstance(value, Mapping) else [wrong_type(rule, where, value, "dict")]

    return Kind(rule, look)


def text(
    rule: str,
    *,
    least: int = 0,
    most: int | None = None,
    pattern: re.Pattern[str] | None = None,
    shown: str = "",
) -> Kind:
    """A text: how many characters it may have, and a pattern as refusals show it."""

    def look(where: str, value: Any) -> list[Problem]:
        if not isinstance(value, str):
            return [wrong_type(rule, where, value, "str")]
        if len(value) < least:
            what = f"Member must have length greater than or equal to {least}"
            return [constraint(rule, where, what)]
        if most is not None and len(value) > most:
            what = f"Member must have length less than or equal to {most}"
            return [constraint(rule, where, what)]
        if pattern is not None and pattern.match(value) is None:
            what = f"Member must satisfy regular expression pattern: {shown or pattern.pattern}"
            return [constraint(rule, where, what)]
        return []

    return Kind(rule, look)


def word(rule: str, values: tuple[str, ...]) -> Kind:
    """One of a few words."""

    def look(where: str, value: Any) -> list[Problem]:
        if not isinstance(value, str):
            return [wrong_type(rule, where, value, "str")]
        return [] if value in values else [enum_problem(rule, where, values)]

    return Kind(rule, look)


def flag(rule: str) -> Kind:
    """True or false."""

    def look(where: str, value: Any) -> list[Problem]:
        return [] if isinstance(value, bool) else [wrong_type(rule, where, value, "bool")]

    return Kind(rule, look)


def number(rule: str, least: float, most: float | None = None, *, whole: bool = False) -> Kind:
    """A number between two others."""

    def look(where: str, value: Any) -> list[Problem]:
        if not is_number(value) or (whole and not isinstance(value, int)):
            return [wrong_type(rule, where, value, "int" if whole else "float")]
        if value < least:
            what = f"Member must have value greater than or equal to {least}"
            return [constraint(rule, where, what)]
        if most is not None and value > most:
            what = f"Member must have value less than or equal to {most}"
            return [constraint(rule, where, what)]
        return []

    return Kind(rule, look)


def blob(rule: str) -> Kind:
    """Bytes: base64 on the wire, themselves where a program hands them to the SDK."""

    def look(where: str, value: Any) -> list[Problem]:
        is_blob = isinstance(value, (str, bytes, bytearray))
        return [] if is_blob else [wrong_type(rule, where, value, "str")]

    return Kind(rule, look)


def array(rule: str, member: Kind, *, least: int = 0, most: int | None = None) -> Kind:
    """A list."""

    def look(where: str, value: Any) -> list[Problem]:
        if not is_array(value):
            return [wrong_type(rule, where, value, "list")]
        if len(value) < least:
            what = f"Member must have length greater than or equal to {least}"
            return [constraint(rule, where, what)]
        if most is not None and len(value) > most:
            what = f"Member must have length less than or equal to {most}"
            return [constraint(rule, where, what)]
        found: list[Problem] = []
        for index, inner in enumerate(value):
            found += member.look(f"{where}.{index}", inner)
        return found

    return Kind(rule, look)


def structure(
    rule: str,
    required: Mapping[str, Kind],
    optional: Mapping[str, Kind] | None = None,
    *,
    keys_rule: str = "",
) -> Kind:
    """An object with members that it must have, and others that it may have."""
    members = {**required, **(optional or {})}

    def look(where: str, value: Any) -> list[Problem]:
        if not isinstance(value, Mapping):
            return [wrong_type(rule, where, value, "dict")]
        found = [
            missing(member.rule, where, key)
            for key, member in required.items()
            if value.get(key) is None
        ]
        for key, member in members.items():
            # The SDK leaves out no null, but other programs write one for what isn't set.
            if value.get(key) is not None:
                found += member.look(f"{where}.{key}" if where else key, value[key])
        return found + unknown_keys(keys_rule or rule, where, value, members)

    return Kind(rule, look)


def union(rule: str, members: Mapping[str, Kind]) -> Kind:
    """An object with exactly one of a few members."""
    names = ", ".join(members)

    def look(where: str, value: Any) -> list[Problem]:
        if not isinstance(value, Mapping):
            return [wrong_type(rule, where, value, "dict")]
        found = unknown_keys(rule, where, value, members)
        present = [key for key in members if value.get(key) is not None]
        if len(present) == 1:
            return members[present[0]].look(f"{where}.{present[0]}", value[present[0]]) + found
        if found and not present:
            return found
        place = re.sub(r"\.(\d+)(?=\.|\Z)", r"[\1]", where)
        message = (
            f"Invalid number of parameters set for tagged union structure {place}. "
            f"Can only set one of the following keys: {names}."
        )
        if not present:
            message = (
                f"Must set one of the following keys for tagged union structure {place}: {names}."
            )
        return [refusal(rule, where, message), *found]

    return Kind(rule, look)
