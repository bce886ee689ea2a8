"""Argument values that a model writes without saying their type, read by the tool's schema."""

# XML formats write `3` for a number and for a text alike. The schema decides: a value is what it
# says only where the schema allows that kind, and it is a text otherwise. Nothing is converted that
# the schema doesn't ask for, so validation still sees what the model wrote (rule C5).

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import ToolDef
from lutumpy.plain import json_values

__all__ = ["KnownTools", "known_tools", "only_text_property", "write_arguments", "write_value"]

KnownTools = Mapping[str, ToolDef]
"""The tools of the offer by name; empty where no offer is known."""

_MOST_LEVELS = 20
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def known_tools(definitions: Sequence[ToolDef] | None) -> KnownTools:
    """The definitions of an offer by their names."""
    return {definition.name: definition for definition in definitions or ()}


def write_arguments(name: str, values: Mapping[str, str], tools: KnownTools) -> str:
    """The JSON text of arguments whose values have no types.

    Args:
        name: The tool that is called.
        values: The text of each argument.
        tools: The tools that are known.
    """
    root: Mapping[str, Any] = tools[name].input_schema if name in tools else {}
    properties = root.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    members = [
        f"{json_values.encode_text(key)}: {write_value(text, known.get(key), root)}"
        for key, text in values.items()
    ]
    return "{" + ", ".join(members) + "}"


def write_value(text: str, schema: Any, root: Mapping[str, Any]) -> str:
    """The JSON text of one value.

    Args:
        text: The value as the model wrote it.
        schema: The schema of the value; `None` where none is known, so that it is a text.
        root: The schema that its references point into.
    """
    kinds = {"string"} if schema is None else _kinds(schema, root, 0)
    if kinds == {"string"}:
        return json_values.encode_text(text)
    written = text.strip()
    if "string" not in kinds:
        written = _PYTHON_WORDS.get(written, written)
    if _kind_of(written) & kinds:
        return written
    return json_values.encode_text(text)


def only_text_property(name: str, tools: KnownTools) -> str | None:
    """The one property of a tool that takes a text and nothing beside it; `None` if it has more."""
    properties = tools[name].input_schema.get("properties") if name in tools else None
    if not isinstance(properties, Mapping) or len(properties) != 1:
        return None
    ((key, schema),) = properties.items()
    return str(key) if "string" in _kinds(schema, tools[name].input_schema, 0) else None


_ALL_KINDS = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def _kinds(schema: Any, root: Mapping[str, Any], level: int) -> set[str]:
    """The kinds of values that a schema allows, as far as it says."""
    if not isinstance(schema, Mapping) or level > _MOST_LEVELS:
        return set(_ALL_KINDS)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _kinds(_resolve(reference, root), root, level + 1)
    if "const" in schema or isinstance(schema.get("enum"), list):
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return {kind for value in values for kind in _kind_of_value(value)}
    declared = schema.get("type")
    if isinstance(declared, str):
        return {declared}
    if isinstance(declared, list):
        return {str(one) for one in declared}
    for word in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and branches:
            return {kind for branch in branches for kind in _kinds(branch, root, level + 1)}
    return set(_ALL_KINDS)


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(found, Mapping):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _kind_of(written: str) -> set[str]:
    """The kinds of the JSON value that a text is; none for a text that is no JSON, or a string."""
    if not written or written[0] == '"':
        return set()
    try:
        value = json_values.decode(written)
    except (ValueError, RecursionError):
        return set()
    return set() if json_values.holds_non_finite(value) else _kind_of_value(value)


def _kind_of_value(value: Any) -> set[str]:
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    if isinstance(value, float):
        return {"number", "integer"} if value.is_integer() else {"number"}
    if isinstance(value, str):
        return {"string"}
    return {"array"} if isinstance(value, list) else {"object"}
