"""Turns of a conversation: neighbouring contents of one role are one [recorded: a result content
and a text content after it, two contents of calls before one of results].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.rules.gemini.fields import field as field_of
from lutumpy.rules.gemini.fields import key_of
from lutumpy.rules.gemini.wording import Path
from lutumpy.rules.problem import items, text

__all__ = ["ROLES", "Turn", "join_turns", "role_of"]

ROLES = ("user", "model")
"""The roles that the API names when it refuses another one [recorded]."""


@dataclass(slots=True)
class Turn:
    """Neighbouring contents of one role.

    Attributes:
        role: The role; empty for one that is no text.
        first: The index of the first content.
        last: The index of the last.
        parts: Each part with its path.
    """

    role: str
    first: int
    last: int
    parts: list[tuple[Path, Mapping[str, Any]]] = field(
        default_factory=list[tuple[Path, Mapping[str, Any]]]
    )

    @property
    def calls(self) -> list[tuple[Path, Mapping[str, Any]]]:
        """The calls, each with its path; none in a turn of the user."""
        return list(_objects_in(self.parts, "functionCall")) if self.role == "model" else []

    @property
    def results(self) -> list[tuple[Path, Mapping[str, Any]]]:
        """The results, each with its path; none in a turn of the model."""
        return list(_objects_in(self.parts, "functionResponse")) if self.role == "user" else []


def role_of(content: Mapping[str, Any]) -> str:
    """The role of a content: without one it is the user's."""
    role = content.get("role")
    return "user" if role is None or role == "" else text(role) or "?"


def join_turns(contents: Any) -> list[Turn]:
    """The turns of a list of contents."""
    turns: list[Turn] = []
    for index, content in enumerate(items(contents)):
        if not isinstance(content, Mapping):
            continue
        role = role_of(content)
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, index, index))
        turn = turns[-1]
        turn.last = index
        for number, part in enumerate(items(content.get("parts"))):
            if isinstance(part, Mapping):
                turn.parts.append(((index, "parts", number), part))
    return turns


def _objects_in(
    parts: list[tuple[Path, Mapping[str, Any]]], name: str
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path, part in parts:
        found = field_of(part, name)
        if isinstance(found, Mapping):
            yield (*path, key_of(part, name)), found
