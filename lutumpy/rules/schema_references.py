"""The references in a JSON Schema: where they stand, and which of them lead back to themselves."""

# What is hard here
# -----------------
# A schema has a reference in more places than any provider reads: in a tuple of draft 7, in
# `dependencies`, in a keyword of somebody's own. Two questions are asked about them:
#
#   `references`       which ones say something of a value? Those where providers look.
#   `referring_parts`  which ones would lead nowhere if a part were moved or left out? Every one.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag, urljoin

from lutumpy.plain.pointer import tokens
from lutumpy.rules.problem import is_array, is_object
from lutumpy.rules.schema_walk import Path, subschemas

__all__ = [
    "NAMED_SCHEMAS",
    "PLAIN_VALUES",
    "circular_references",
    "read_address",
    "references",
    "referring_parts",
]

# Keywords of all drafts that hold values which are no schemas, and those that hold schemas by their
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


def references(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every `$ref` in a schema that stands at `path`, with its own place.

    Those inside the schema's definitions aren't among them: they say nothing about a value until
    something names their definition.
    """
    if isinstance(reference := schema.get("$ref"), str):
        yield path, reference
    for where, inner in subschemas(schema):
        if where[0] not in ("$defs", "definitions"):
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
            inner = [*references(find(reference, where), tuple(tokens(reference)))]
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


def referring_parts(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every part of a schema that has a `$ref`, wherever it stands, with the address that the
    reference is read against: that of the nearest `$id` around it, or nothing.

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
            if isinstance(node.get("$ref"), str):
                yield address, node
        stack += [
            (inner, address, key in NAMED_SCHEMAS and not has_names)
            for key, inner in node.items()
            if has_names or key not in PLAIN_VALUES
        ]


def read_address(base: str, reference: str) -> str:
    """The address of a reference that is read against a base, without its fragment."""
    if reference.startswith("#"):
        return base
    try:
        return urldefrag(urljoin(base, reference))[0]
    except ValueError:  # such as an address with half of a bracket
        return reference.partition("#")[0]
