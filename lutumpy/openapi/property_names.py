"""The properties that a schema has by name for its objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.schema_parts import list_items

__all__ = ["find_properties", "find_property_names"]

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas")
_MOST_PARTS = 10_000
"""Of one schema, references followed. Real documents have some hundreds."""


def find_property_names(document: Document, schema: Any) -> frozenset[str]:
    """Every name that a schema, and those that describe the same value, have for a property.

    Names that are only possible, by `additionalProperties` or a pattern, are not among them. The
    answer is kept, since the operations of a document share their schemas.

    Raises:
        UnusableError: A reference leads out of the document, or nowhere, or there are too many
            parts.
    """
    key: str | int = id(schema)  # all schemas are parts of the document, which is held
    if isinstance(schema, Mapping) and schema.keys() == {"$ref"}:
        key = str(schema["$ref"])
    known = document.property_names.get(key)
    if known is None:
        known = document.property_names[key] = frozenset(find_properties(document, schema))
    return known


def find_properties(document: Document, schema: Any) -> dict[str, list[Any]]:
    """The schemas of each property, by its name; as `find_property_names`."""
    found: dict[str, list[Any]] = {}
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        if len(seen) > _MOST_PARTS:
            raise UnusableError(f"a schema of it is composed of more than {_MOST_PARTS} parts")
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            for name, inner in properties.items():
                found.setdefault(str(name), []).append(inner)
        for value in [part.get("const"), *list_items(part.get("enum"))]:
            if isinstance(value, Mapping):
                for name in value:
                    found.setdefault(str(name), [])
        for key in _SAME_VALUE:
            inner = part.get(key)
            if key == "dependentSchemas":
                waiting += inner.values() if isinstance(inner, Mapping) else ()
            else:
                waiting += [inner, *list_items(inner)]
        if isinstance(part.get("$ref"), str):
            waiting.append(document.find(part["$ref"]))
    return found
