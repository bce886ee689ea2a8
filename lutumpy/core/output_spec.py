"""The format of an answer that a structured turn asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.plain.values import dataclass

__all__ = ["OutputSpec"]


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The value that a structured turn asks for.

    Attributes:
        name: A name for it, as the wires want one.
        schema: Its JSON Schema, an object at the root.
        description: What the model sees of it beside the schema; empty for nothing.
        strict: Whether the provider should hold the model to the schema: asked for, refused, or
            left open, and then where the schema has a strict form.
    """

    name: str
    schema: Mapping[str, Any]
    description: str = ""
    strict: bool | None = None
