"""JSON Pointer (RFC 6901): one text for the way to a place in a JSON value, such as
`/messages/2/a~1b`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["Path", "escape", "indices_in", "pointer", "tokens"]

Path: TypeAlias = "tuple[str | int, ...]"
"""The keys and indices that lead to a value inside another one."""


def escape(step: str) -> str:
    """One key as a part of a pointer: `~` and `/` have spellings of their own there."""
    return step.replace("~", "~0").replace("/", "~1")


def pointer(path: Iterable[str | int]) -> str:
    """The pointer to the end of a path of keys and indices; empty for the whole value."""
    return "".join([f"/{escape(str(step))}" for step in path])


def indices_in(path: Path) -> tuple[int, ...]:
    """What orders places of different depth: the indices alone, without the keys between them."""
    return tuple([step for step in path if isinstance(step, int)])


def tokens(text: str) -> list[str]:
    """The steps of a pointer, unescaped. An index comes back as text: only the value tells it from
    a key.
    """
    # `~1` first: the other way round "~01", which means "~1", would become "/".
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]
