"""Where a JSON Schema holds further schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["LISTS", "subschemas"]

_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The direct subschemas of `schema`, each with where it stands; a property's name is never taken for a keyword."""
    for key in _SINGLES:
        if isinstance(value := schema.get(key), dict):
            yield (key,), value
    for key in LISTS:
        if isinstance(value := schema.get(key), list):
            for index, entry in enumerate(value):
                if isinstance(entry, dict):
                    yield (key, str(index)), entry
    for key in _MAPS:
        if isinstance(value := schema.get(key), dict):
            for name, entry in value.items():
                if isinstance(entry, dict):
                    yield (key, name), entry
