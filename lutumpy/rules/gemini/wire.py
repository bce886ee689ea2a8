"""Where calls and results are in generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.block_wire import BlockWire, Lens
from lutumpy.rules.gemini.fields import key_of
from lutumpy.rules.problem import text

__all__ = ["ROLES", "WIRE", "role_of"]

ROLES = ("user", "model")
"""The roles that the API names when it refuses another one [recorded]."""


def role_of(content: Mapping[str, Any]) -> str:
    """The role of a content: without one it is the user's."""
    role = content.get("role")
    return "user" if role is None or role == "" else text(role) or "?"


WIRE = BlockWire(
    call=Lens("functionCall", "id"),
    result=Lens("functionResponse", "id"),
    model="model",
    blocks_key="parts",
    role_of=role_of,
    key_of=key_of,
)
"""Neighbouring contents of one role are one turn [recorded: a result content and a text content
after it, two contents of calls before one of results].
"""
