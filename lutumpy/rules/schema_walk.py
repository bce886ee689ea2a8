"""Where a JSON Schema holds further schemas, and ways through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lutumpy.plain import pointer
from lutumpy.rules.problem import is_array, is_object, items, mapping

__all__ = [
    "DEFINITIONS",
    "LISTS",
    "Path",
    "circular_references",
    "lacks_items",
    "references",
    "resolve",
    "subschemas",
    "type_names",
    "walk",
    "with_items",
]

# The keywords of draft 2020-12 that hold schemas, and `definitions`, which older drafts have in
# place of `$defs`. Left out are the ones that no provider is known to read: `unevaluatedItems`,
# `unevaluatedProperties`, `contentSchema`.
DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", *DEFINITIONS, "patternProperties", "dependentSchemas")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
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
# Most schemas of a tool are leaves, as `{"type": "string"}`: one look tells them.
_HOLDERS = frozenset((*_MAPS, *LISTS, *_SINGLES))

Path = tuple[str, ...]


def _children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """What is directly in a schema in a schema's place: keyword, path from the schema, and the
    value.

    A property's name is never taken for a keyword. Of the keywords that hold one schema only
    objects count: `true` and `false` are plain switches there.
    """
    if _HOLDERS.isdisjoint(schema):
        return
    for key in _MAPS:
        if key in schema:
            for name, entry in (mapping(schema[key]) or {}).items():
                yield key, (key, str(name)), entry
    for key in LISTS:
        if key in schema:
            for index, entry in enumerate(items(schema[key])):
                yield key, (key, str(index)), entry
    for key in _SINGLES:
        if key in schema and is_object(schema[key]):
            yield key, (key,), schema[key]


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The direct subschemas of `schema` that are objects, each with its path from there."""
    for _, path, entry in _children(schema):
        if isinstance(entry, dict):
            yield path, entry


def walk(schema: Any) -> Iterator[tuple[Path, int, Any]]:
    """Every subschema with its path and its level of nested objects (the root has 1), parents
    first.

    It doesn't recurse: a hostile schema may be nested deeper than the interpreter's stack.
    """
    stack: list[tuple[Path, int, Any]] = [((), 1, schema)]
    while stack:
        path, level, node = stack.pop()
        yield path, level, node
        if not is_object(node):
            continue
        below: list[tuple[Path, int, Any]] = []
        for key, where, inner in _children(node):
            if key in ("properties", "patternProperties"):
                inner_level = level + 1
            else:
                # What stands by name (a definition) begins anew; alternatives and items are on the
                # level of their schema.
                inner_level = 1 if key in _MAPS else level
            below.append(((*path, *where), inner_level, inner))
        stack += reversed(below)


def type_names(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """The types that a schema names, one or several; `(None,)` when it names none."""
    kind = node.get("type")
    return tuple(items(kind)) if is_array(kind) else (kind,)


def resolve(root: Mapping[str, Any], reference: str) -> Any:
    """The subschema that a local `$ref` names, or `None`."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node: Any = root
    for part in pointer.tokens(reference):
        if isinstance(node, Mapping):
            node = node.get(part)
        elif is_array(node) and _is_index(part) and int(part) < len(node):
            node = node[int(part)]
        else:
            return None
    return node


def _is_index(part: str) -> bool:
    # Nine digits are enough for any list; Python reads no number of thousands of them.
    return part.isascii() and part.isdigit() and len(part) < 9


def references(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every `$ref` in a schema that stands at `path`, with its own place.

    Those inside the schema's definitions aren't among them: they say nothing about a value until
    something names their definition.
    """
    if isinstance(reference := schema.get("$ref"), str):
        yield path, reference
    for where, inner in subschemas(schema):
        if where[0] not in DEFINITIONS:
            yield from references(inner, (*path, *where))


def circular_references(
    root: Mapping[str, Any], find: Callable[[str, Path], Mapping[str, Any]]
) -> set[str]:
    """The references in use whose schema leads back to them, directly or not.

    In use are those that stand in the root outside its definitions, and those in what they name.

    Args:
        root: The whole schema.
        find: What a reference names. Gets the reference and the place where it stands.
    """
    leads_to: dict[str, set[str]] = {}
    waiting = [*references(root)]
    while waiting:
        where, reference = waiting.pop()
        if reference not in leads_to:
            inner = [*references(find(reference, where), tuple(pointer.tokens(reference)))]
            leads_to[reference] = {name for _, name in inner}
            waiting += inner
    return {reference for reference in leads_to if _returns_to(reference, leads_to)}


def _returns_to(reference: str, leads_to: Mapping[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = [*leads_to[reference]]
    while waiting:
        inner = waiting.pop()
        if inner not in seen:
            seen.add(inner)
            waiting += leads_to[inner]
    return reference in seen


def lacks_items(schema: Any) -> bool:
    """Whether an array in a schema doesn't say what its items are. It doesn't recurse either."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if not is_object(node):
            continue
        if "items" not in node:
            kind = node.get("type")
            if kind == "array" or (type(kind) is not str and "array" in type_names(node)):
                return True
        # As `_children` finds them. Their order and their paths don't matter here, and every tool
        # is looked at when it is rendered.
        for key in _HOLDERS.intersection(node):
            value = node[key]
            if key in _MAPS:
                stack += (mapping(value) or {}).values()
            elif key in LISTS:
                stack += items(value)
            else:
                stack.append(value)
    return False


def with_items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with `items` in every array that lacks it: a tuple's are what its places hold.

    OpenAI refuses an array without it ("array schema missing items"), strict or not. The argument
    isn't changed, and is returned where nothing is missing.
    """
    return _add_items(schema) if lacks_items(schema) else schema


def _add_items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    changed = dict(schema)
    if "items" not in schema and "array" in type_names(schema):
        places = [entry for entry in schema.get("prefixItems", ()) if isinstance(entry, dict)]
        different = [entry for index, entry in enumerate(places) if entry not in places[:index]]
        if len(different) > 1:
            changed["items"] = {"anyOf": different}
        else:
            changed["items"] = different[0] if different else {}
    for where, inner in subschemas(changed):
        complete = _add_items(inner)
        if complete is not inner:
            _replace_subschema(changed, where, complete)
    return schema if changed == schema else changed


def _replace_subschema(schema: dict[str, Any], where: Path, replacement: Mapping[str, Any]) -> None:
    """Put a subschema in another one's place, in a copy of the list or object that holds it."""
    key = where[0]
    if len(where) == 1:
        schema[key] = replacement
        return
    holder: Any = schema[key]
    if isinstance(holder, Mapping):
        schema[key] = {**holder, where[1]: replacement}
    else:
        schema[key] = [*holder]
        schema[key][int(where[1])] = replacement
