"""A content part that names a tool which a search has found.

APIs that load tools on demand take it as a reference, or with the tool's definition. Every other
API gets its name and description as a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.strict_json import copy_json
from lutumpy.plain.values import dataclass

__all__ = ["FoundTool"]


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool that a search has found, as a part of the search's result.

    Args:
        name: The tool's name.
        description: Its description.
        schema: The JSON Schema of its input, an object at the root; it is copied.
        strict: Whether the provider should enforce the schema: asked for, refused, or left open.

    Raises:
        TypeError: An argument is of another type, or something in the schema isn't JSON.
        ValueError: The name is empty; or the schema holds `NaN`, an infinity or itself.

    Attributes:
        name: The tool's name.
        description: Its description.
        data: The schema as JSON bytes.
        strict: As given.
    """

    name: str
    description: str
    data: bytes
    strict: bool | None

    def __init__(
        self,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        strict: bool | None = None,
    ) -> None:
        if not isinstance(name, str) or not isinstance(description, str):
            raise TypeError("FoundTool takes the name and the description of a tool as texts")
        if not name.strip():
            raise ValueError("FoundTool takes the name of a tool, not an empty text")
        if not isinstance(schema, Mapping):
            raise TypeError(f"the schema of a FoundTool is an object, not {type(schema).__name__}")
        if strict not in (True, False, None):
            raise TypeError(f"strict= takes True, False or None, not {strict!r:.100}")
        copied = copy_json(schema, f"the schema of {name!r}")
        object.__setattr__(self, "name", json_values.clean_text(name))
        object.__setattr__(self, "description", json_values.clean_text(description))
        object.__setattr__(self, "data", json_values.encode(copied))
        object.__setattr__(self, "strict", strict)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its input, a new copy each time."""
        found: dict[str, Any] = json_values.decode(self.data)
        return found

    @property
    def text(self) -> str:
        """What APIs are sent that don't load tools: the name and the description."""
        return f"{self.name}: {self.description}" if self.description.strip() else self.name
