"""References in a JSON Schema whose parts are moved, left out, or put in their place.

A schema has a reference in more places than any provider reads: in a tuple of draft 7, in
`dependencies`, in a keyword of somebody's own. `references` of `schema_walk` has those that say
something of a value, where providers look. Here it is every one, since each would lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.plain.pointer import tokens
from lutumpy.plain.uri_references import read_address
from lutumpy.rules.problem import is_array, is_object, mapping
from lutumpy.rules.schema_walk import DEFINITIONS, resolve

__all__ = [
    "NAMED_SCHEMAS",
    "PLAIN_VALUES",
    "definitions_for",
    "inline_root",
    "join_schemas",
    "referring_parts",
    "without_definitions",
]

# Keywords of all drafts that hold values which aren't schemas, and those that hold schemas by their
# names.
PLAIN_VALUES = frozenset({"const", "enum", "default", "example", "examples"})
NAMED_SCHEMAS = frozenset(
    {
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
        "dependencies",
    }
)
# What may be said beside a reference without restricting what it names.
_NOTES = frozenset(("description", "title", "default", "examples", "deprecated"))
# What one of these restricts depends on the others in the very same schema.
_TOGETHER = frozenset(
    "properties patternProperties additionalProperties unevaluatedProperties "
    "prefixItems items additionalItems unevaluatedItems contains minContains maxContains "
    "if then else".split()
)


def referring_parts(schema: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every part of a schema that refers to another one, wherever it stands.

    With it come the keyword of its reference, and the address that this is read against: that of
    the nearest `$id` around it, or nothing.

    It doesn't recurse: a hostile schema may be nested deeper than the interpreter's stack.
    """
    # Each part with its address, and whether its keys are names of schemas.
    stack: list[tuple[Any, str, bool]] = [(schema, "", False)]
    while stack:
        node, address, has_names = stack.pop()
        if is_array(node):
            stack += [(entry, address, False) for entry in node]
        if not is_object(node):
            continue
        if not has_names:
            if isinstance(own := node.get("$id"), str):
                address = read_address(address, own)
            for keyword in ("$ref", "$dynamicRef"):
                if isinstance(node.get(keyword), str):
                    yield address, keyword, node
        stack += [
            (inner, address, key in NAMED_SCHEMAS and not has_names)
            for key, inner in node.items()
            if has_names or key not in PLAIN_VALUES
        ]


def inline_root(document: dict[str, Any]) -> dict[str, Any]:
    """A schema with what a reference at its root names in the place of the reference.

    The reference stays where that would say something else, or leads by an address or an anchor.
    Definitions that nothing names any more are left out.
    """
    root = document
    followed: set[str] = set()
    while isinstance(reference := root.get("$ref"), str) and reference not in followed:
        followed.add(reference)
        named = resolve(document, reference)
        # References in a schema with an address of its own are read against that.
        if not is_object(named) or "$id" in named:
            break
        joined = join_schemas(named, root, "$ref")
        if joined is None:
            break
        root = joined
    if root is document:
        return document
    return {**without_definitions(root), **definitions_for(without_definitions(root), document)}


def without_definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without the definitions at its root."""
    return {key: value for key, value in schema.items() if key not in DEFINITIONS}


def definitions_for(part: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a document that the references in a part lead to, directly or not."""
    needed: dict[str, dict[str, Any]] = {}
    waiting = [one[keyword] for _, keyword, one in referring_parts(part)]
    while waiting:
        reference = waiting.pop()
        if resolve(document, reference) is None:  # by an address or an anchor: any may have it
            return {key: document[key] for key in DEFINITIONS if key in document}
        steps = tokens(reference)
        if len(steps) < 2 or steps[0] not in DEFINITIONS:
            continue
        named = needed.setdefault(steps[0], {})
        definitions = mapping(document.get(steps[0])) or {}
        if steps[1] in definitions and steps[1] not in named:
            named[steps[1]] = definitions[steps[1]]
            inner = referring_parts(definitions[steps[1]])
            waiting += [one[keyword] for _, keyword, one in inner]
    return {key: named for key, named in needed.items() if named}


def join_schemas(
    schema: Mapping[str, Any], holder: Mapping[str, Any], key: str
) -> dict[str, Any] | None:
    """A schema with what its holder says beside it; `None` where that would say something else.

    Args:
        schema: What is under `key` of the holder, or what that names.
        holder: The schema that refers to it.
        key: By which keyword.
    """
    beside = {name: value for name, value in holder.items() if name != key}
    for name in beside.keys() & schema.keys():
        if name not in _NOTES and schema[name] != beside[name]:
            return None
    if not (_TOGETHER.isdisjoint(beside) or _TOGETHER.isdisjoint(schema)):
        return None
    return {**schema, **beside}
