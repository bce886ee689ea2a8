"""Where a JSON Schema holds further schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["LISTS", "subschemas", "with_items"]

_SINGLES = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
)
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


def with_items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with `items` in every array that says nothing of them: a tuple's are what its places hold.

    OpenAI refuses an array without ("array schema missing items"), strict or not. The argument isn't changed, and is
    given back where it has none.
    """
    changed = dict(schema)
    if _is_bare_array(schema):
        places = [entry for entry in schema.get("prefixItems", ()) if isinstance(entry, dict)]
        different = [entry for index, entry in enumerate(places) if entry not in places[:index]]
        changed["items"] = (
            {} if not different else different[0] if len(different) == 1 else {"anyOf": different}
        )
    for where, inner in subschemas(changed):
        made = with_items(inner)
        if made is not inner:
            _replace(changed, where, made)
    return schema if changed == schema else changed


def _is_bare_array(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return "items" not in schema and (
        kind == "array" or (isinstance(kind, list) and "array" in kind)
    )


def _replace(schema: dict[str, Any], where: tuple[str, ...], made: Mapping[str, Any]) -> None:
    key = where[0]
    if len(where) == 1:
        schema[key] = made
        return
    holder: Any = schema[key]
    holder = dict(holder) if isinstance(holder, dict) else list(holder)
    holder[where[1] if isinstance(holder, dict) else int(where[1])] = made
    schema[key] = holder
