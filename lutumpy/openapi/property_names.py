"""The names of properties that a schema has for its objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.openapi.document import Document
from lutumpy.openapi.schema_parts import list_items

__all__ = ["find_property_names"]

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas")


def find_property_names(document: Document, schema: Any) -> frozenset[str]:
    """Every name that a schema, and those that describe the same value, have for a property.

    Names that are only possible, by `additionalProperties` or a pattern, are not among them.

    Raises:
        UnusableError: A reference leads out of the document, or nowhere.
    """
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            found |= {str(name) for name in properties}
        for value in [part.get("const"), *list_items(part.get("enum"))]:
            if isinstance(value, Mapping):
                found |= {str(name) for name in value}
        for key in _SAME_VALUE:
            inner = part.get(key)
            if key == "dependentSchemas":
                waiting += inner.values() if isinstance(inner, Mapping) else ()
            else:
                waiting += [inner, *list_items(inner)]
        if isinstance(part.get("$ref"), str):
            waiting.append(document.find(part["$ref"]))
    return frozenset(found)
