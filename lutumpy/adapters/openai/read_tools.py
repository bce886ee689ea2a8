"""The tools of a request that was read, as this library knows tools (rule PB18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.text_inputs import Lark, Regex, TextFormat, TextInput
from lutumpy.core.tool_specs import ToolSpec

__all__ = ["read_function", "read_text_tool"]

_TEXT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def read_function(fields: Mapping[str, Any], api: str, written: frozenset[str]) -> ToolSpec | None:
    """A function, as its fields are in a request; `None` for one without a name.

    Args:
        fields: Its name, description, parameters and `strict`.
        api: The API of the request.
        written: The keys that the adapter writes itself.
    """
    name, description, schema = (fields.get(key) for key in ("name", "description", "parameters"))
    if not isinstance(name, str) or not name:
        return None
    settings = {key: value for key, value in fields.items() if key not in written}
    return ToolSpec(
        name,
        description if isinstance(description, str) else "",
        schema if isinstance(schema, dict) else {"type": "object", "properties": {}},
        # `false` is what the adapters write for one that leaves it open.
        True if fields.get("strict") is True else None,
        {api: settings} if settings else None,
        late=fields.get("async") is True,
    )


def read_text_tool(fields: Mapping[str, Any], grammar: Any) -> ToolSpec | None:
    """A tool that takes a text; `None` for one without a name.

    Args:
        fields: Its name and description.
        grammar: Its `syntax` and `definition`, if it has any.
    """
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name:
        return None
    wanted: TextFormat | None = None
    definition = grammar.get("definition") if isinstance(grammar, dict) else None
    if isinstance(definition, str):
        wanted = Regex(definition) if grammar.get("syntax") == "regex" else Lark(definition)
    return ToolSpec(
        name,
        description if isinstance(description, str) else "",
        _TEXT_SCHEMA,
        text=TextInput(wanted),
        late=fields.get("async") is True,
    )
