"""Argument values that a model writes without saying their type, read by the tool's schema."""

# XML formats write `3` for a number and for a text alike. The schema decides: a value is what it
# says only where the schema allows that kind, and it is a text otherwise. Nothing is converted that
# the schema doesn't ask for, so validation still sees what the model wrote (rule C5).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from lutumpy import ToolDef
from lutumpy.plain import json_values

__all__ = [
    "KnownTools",
    "Schema",
    "WrittenValue",
    "json_kind",
    "known_tools",
    "only_text_property",
    "write_arguments",
]

KnownTools = Mapping[str, ToolDef]
"""The tools of the offer by name; empty where no offer is known."""

_MOST_LEVELS = 20


class WrittenValue(NamedTuple):
    """The text of one argument, and what the model said of its type.

    Attributes:
        text: The value as the model wrote it.
        is_text: Whether it says that it is a text, or JSON; `None` where it says nothing.
    """

    text: str
    is_text: bool | None = None


class Schema(NamedTuple):
    """A schema, and the one that its references point into."""

    node: Any
    root: Mapping[str, Any]

    @classmethod
    def of_tool(cls, name: str, tools: KnownTools) -> Schema:
        """That of a tool's arguments; of nothing where the tool isn't known."""
        root: Mapping[str, Any] = tools[name].input_schema if name in tools else {}
        return cls(root or None, root)

    def of_property(self, key: str) -> Schema:
        """That of a member of an object."""
        for node in self._branches(self.node, 0):
            properties = node.get("properties")
            if isinstance(properties, Mapping) and key in properties:
                return Schema(properties[key], self.root)
            if isinstance(node.get("additionalProperties"), Mapping):
                return Schema(node["additionalProperties"], self.root)
        return Schema(None, self.root)

    def of_items(self, index: int) -> Schema:
        """That of an element of an array."""
        for node in self._branches(self.node, 0):
            first = node.get("prefixItems")
            if isinstance(first, list) and index < len(first):
                return Schema(first[index], self.root)
            if isinstance(node.get("items"), Mapping):
                return Schema(node["items"], self.root)
        return Schema(None, self.root)

    @property
    def kinds(self) -> Set[str]:
        """The kinds of values that it allows, as far as it says; a text where nothing is known."""
        return {"string"} if self.node is None else _kinds(self.node, self.root, 0)

    def read(self, text: str) -> str:
        """The JSON text of a value that says nothing of its type."""
        kinds = self.kinds
        if kinds == {"string"}:
            return json_values.encode_text(text)
        written = text.strip()
        if "string" not in kinds:
            written = _PYTHON_WORDS.get(written, written)
        if _kind_of(written) & kinds:
            return written
        return json_values.encode_text(text)

    def _branches(self, node: Any, level: int) -> Iterator[Mapping[str, Any]]:
        """The schema and what it is made of, references resolved."""
        if not isinstance(node, Mapping) or level > _MOST_LEVELS:
            return
        if isinstance(node.get("$ref"), str):
            yield from self._branches(_resolve(node["$ref"], self.root), level + 1)
            return
        yield node
        for word in ("anyOf", "oneOf", "allOf"):
            branches = node.get(word)
            for branch in branches if isinstance(branches, list) else ():
                yield from self._branches(branch, level + 1)


_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def known_tools(definitions: Sequence[ToolDef] | None) -> KnownTools:
    """The definitions of an offer by their names."""
    return {definition.name: definition for definition in definitions or ()}


def write_arguments(
    name: str, values: Mapping[str, WrittenValue], tools: KnownTools
) -> tuple[str, tuple[str, ...]]:
    """The JSON text of arguments, and the keys of those that the schema made other than a text.

    Args:
        name: The tool that is called.
        values: Each argument.
        tools: The tools that are known.
    """
    schema = Schema.of_tool(name, tools)
    members: list[str] = []
    by_schema: list[str] = []
    for key, value in values.items():
        written = (
            json_values.encode_text(value.text)
            if value.is_text
            else schema.of_property(key).read(value.text)
        )
        if value.is_text is None and written[0] != '"':
            by_schema.append(key)
        members.append(f"{json_values.encode_text(key)}: {written}")
    return "{" + ", ".join(members) + "}", tuple(by_schema)


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


def json_kind(value: Any) -> str:
    """The type of a value, as JSON Schema calls it; every number is a `number`."""
    kinds = _kind_of_value(value)
    return "number" if "number" in kinds else next(iter(kinds))


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
