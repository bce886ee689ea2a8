"""The schemas of `parameters` as JSON Schema, for what goes to another API.

`parameters` is a part of OpenAPI's schemas, as a message of protobuf: types are the names of an
enum (`OBJECT`), `null` is a flag, and a count may be a text, as protobuf writes 64 bits in JSON.
https://ai.google.dev/api/caching#Schema
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.plain.json_values import copied
from lutumpy.rules.gemini.fields import snake

__all__ = ["as_json_schema"]

_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")
_NAMES = {snake(name): name for name in (*_COUNTS, "anyOf", "propertyOrdering")}


def as_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema in JSON Schema; an equal copy of one that is JSON Schema already."""
    root: dict[str, Any] = {"schema": copied(dict(schema))}
    # Each schema by what holds it. No recursion, since a hostile one may be nested deeply.
    stack: list[tuple[Any, Any]] = [(root, "schema")]
    while stack:
        holder, key = stack.pop()
        if not isinstance(holder[key], dict):
            continue
        node = holder[key] = _rewritten(holder[key])
        properties, options = node.get("properties"), node.get("anyOf")
        if isinstance(properties, dict):
            stack += [(properties, name) for name in properties]
        if isinstance(options, list):
            stack += [(options, index) for index in range(len(options))]
        if "items" in node:
            stack.append((node, "items"))
    found: dict[str, Any] = root["schema"]
    return found


def _rewritten(node: dict[str, Any]) -> dict[str, Any]:
    """One schema without what is within it, in the order that it has."""
    named = {_NAMES.get(key, key): value for key, value in node.items()}
    named.pop("propertyOrdering", None)
    nullable = named.pop("nullable", None) is True
    kind = named.get("type")
    if isinstance(kind, str):
        named["type"] = kind.lower()
        if kind.lower() == "type_unspecified":
            del named["type"]
    for name in _COUNTS:
        count = named.get(name)
        if isinstance(count, str) and count.isdecimal():
            named[name] = int(count)
    return _with_null(named) if nullable else named


def _with_null(node: dict[str, Any]) -> dict[str, Any]:
    """A schema that takes `null` as well."""
    options, values = node.get("anyOf"), node.get("enum")
    if isinstance(options, list):
        node["anyOf"] = [*options, {"type": "null"}]
    if isinstance(values, list):
        node["enum"] = [*values, None]
    if isinstance(node.get("type"), str) and node["type"] != "null":
        node["type"] = [node["type"], "null"]
    return node
