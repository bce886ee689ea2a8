"""Going through a JSON Schema, however deep, without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.problem import is_array, items, mapping

_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else")

Path = tuple[str, ...]


def walk(schema: Any) -> Iterator[tuple[Path, int, Any]]:
    """Every subschema with its path and the level of objects that it is in (the root has 1), parents first.

    Without recursion of its own: a hostile schema may be nested deeper than the interpreter's stack.
    """
    stack: list[tuple[Path, int, Any]] = [((), 1, schema)]
    while stack:
        path, level, node = stack.pop()
        yield path, level, node
        if not isinstance(node, Mapping):
            continue
        below: list[tuple[Path, int, Any]] = []
        for key in _MAPS:
            deeper = level + 1 if key in ("properties", "patternProperties") else 1
            below += [
                ((*path, key, str(name)), deeper, sub)
                for name, sub in (mapping(node.get(key)) or {}).items()
            ]
        for key in _LISTS:
            below += [
                ((*path, key, str(index)), level, sub)
                for index, sub in enumerate(items(node.get(key)))
            ]
        for key in _SINGLES:
            if isinstance(node.get(key), Mapping):
                below.append(((*path, key), level, node[key]))
        stack += reversed(below)


def type_names(node: Mapping[str, Any]) -> tuple[Any, ...]:
    kind = node.get("type")
    return tuple(items(kind)) if is_array(kind) else (kind,)


def resolve(root: Mapping[str, Any], reference: str) -> Any:
    """The subschema that a local `$ref` names, or None."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node: Any = root
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(part)
        elif (
            is_array(node)
            and part.isascii()
            and part.isdigit()
            and len(part) < 9
            and int(part) < len(node)
        ):
            node = node[int(part)]
        else:
            return None
    return node
