"""The references in a JSON Schema: where they stand, and which of them lead back to themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lutumpy.plain.pointer import tokens
from lutumpy.rules.schema_walk import Path, subschemas

__all__ = ["circular_references", "references"]


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
