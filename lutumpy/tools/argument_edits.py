"""The edits that may make arguments fit: both follow from the schema alone (rules C5, D5)."""

# The module `arguments` says when they are made. A value that failed is edited in one of two ways:
#
#   it is a text, and its place takes no string     what the text holds as JSON takes its place
#   it is null, its place takes none and is         it is left out
#   optional
#
# What a place takes is looked up in the schema. Where the schema says nothing that is understood
# here, the place takes everything, and nothing is edited.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeGuard

from pydantic_core import from_json

from lutumpy.rules.schema_walk import resolve
from lutumpy.tools.argument_report import Path, spell_path

__all__ = ["ArgumentRepair", "Edits", "SchemaLookup", "find_edits", "has_part"]


class ArgumentRepair(NamedTuple):
    """One value that was read in another way than the model wrote it.

    Attributes:
        path: Where, such as `items[0].tags`.
        rule: `json_string`: a JSON text in a string was decoded, since the field takes no string.
            `by_schema`: the model wrote the value without a type, as in XML, and the schema says
            that it is no text.
    """

    path: str
    rule: str


class SchemaLookup:
    """Looks up what a JSON Schema says at a path."""

    def __init__(self, root: Mapping[str, Any], node: Mapping[str, Any]) -> None:
        self.root = root
        self.node = node

    def alternatives(
        self, node: Any, seen: frozenset[str] = frozenset()
    ) -> Iterator[Mapping[str, Any]]:
        """`node` without references and unions: each schema that a value may have to fit."""
        if not _is_object(node):
            return
        if isinstance(ref := node.get("$ref"), str):
            if ref not in seen:
                yield from self.alternatives(resolve(self.root, ref), seen | {ref})
            return
        branches: list[Any] = [
            branch for key in ("anyOf", "oneOf", "allOf") for branch in node.get(key, ())
        ]
        if not branches:
            yield node
        for branch in branches:
            yield from self.alternatives(branch, seen)

    def schemas_at(self, path: Path) -> list[Mapping[str, Any]]:
        """Every schema that may hold at `path`; empty where nothing is known."""
        nodes = list(self.alternatives(self.node))
        for part in path:
            nodes = [
                found
                for node in nodes
                for child in _child_schemas(node, part)
                for found in self.alternatives(child)
            ]
        return nodes

    def takes(self, path: Path, kind: Literal["string", "null"]) -> bool:
        """Whether a value of this kind may fit at `path`; yes where nothing is known."""
        nodes = self.schemas_at(path)
        return not nodes or any(_takes_kind(node, kind) for node in nodes)

    def is_optional(self, path: Path) -> bool:
        """Whether the property at `path` may be left out."""
        name = path[-1]
        parents = [n for n in self.schemas_at(path[:-1]) if name in n.get("properties", ())]
        return any(name not in parent.get("required", ()) for parent in parents)


def _child_schemas(node: Mapping[str, Any], part: str | int) -> Iterator[Any]:
    if isinstance(part, str):
        properties = node.get("properties", {})
        if part in properties:
            yield properties[part]
        elif "patternProperties" not in node:  # which of them is meant isn't looked up
            yield node.get("additionalProperties")
    else:
        first: Any = node.get("prefixItems")
        if _is_list(first) and part < len(first):
            yield first[part]
        else:
            yield node.get("items")


def _takes_kind(node: Mapping[str, Any], kind: Literal["string", "null"]) -> bool:
    wanted = str if kind == "string" else type(None)
    if "const" in node:
        return isinstance(node["const"], wanted)
    if "enum" in node:
        return any(isinstance(value, wanted) for value in node["enum"])
    types = node.get("type", kind)
    return types == kind or (isinstance(types, list) and kind in types)


class Edits:
    """Changes to what the model wrote, all of them made together or none."""

    def __init__(self) -> None:
        self.left_out: list[Path] = []
        self.decoded: dict[Path, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.left_out or self.decoded)

    @property
    def repairs(self) -> tuple[ArgumentRepair, ...]:
        return tuple(ArgumentRepair(spell_path(path), "json_string") for path in self.decoded)

    def apply(self, data: Any) -> Any:
        """`data` with the edits made, in place."""
        for path, value in self.decoded.items():
            _parent_at(data, path)[path[-1]] = value
        for path in self.left_out:
            del _parent_at(data, path)[path[-1]]
        return data


def find_edits(data: Any, failed: Iterable[Path], schema: SchemaLookup) -> Edits:
    """The edits that the values at the failing places allow; `data` stays as it is."""
    edits = Edits()
    for path in dict.fromkeys(path for path in failed if path):
        parent = _parent_at(data, path)
        if not has_part(parent, path[-1]):
            continue
        value = parent[path[-1]]
        if value is None and isinstance(parent, dict):
            if schema.is_optional(path) and not schema.takes(path, "null"):
                edits.left_out.append(path)
        elif isinstance(value, str) and not schema.takes(path, "string"):
            try:
                edits.decoded[path] = from_json(value, allow_inf_nan=False)
            except (ValueError, RecursionError):
                continue
    return edits


def _parent_at(data: Any, path: Path) -> Any:
    for part in path[:-1]:
        data = data[part] if has_part(data, part) else None
    return data


def has_part(value: Any, part: str | int) -> bool:
    """Whether a key or position leads deeper into `value`."""
    if _is_object(value):
        return part in value
    return _is_list(value) and isinstance(part, int) and -1 < part < len(value)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
