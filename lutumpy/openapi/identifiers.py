"""References by `$id` and `$anchor`, made into references by place."""

# What is hard here
# -----------------
# In a document of OpenAPI 3.1 a schema may have an address (`$id`), and a reference below it is
# read against that address: `#/properties/a` is then a place in that schema, and not in the
# document. A schema may also have a name (`$anchor`), for references such as `#node`. Everything
# else of this package knows one kind of reference, a place in the document. So a document that has
# an address or a name somewhere is copied once, with its references written as places
# (`place_references`). One that has none, as nearly all, stays the object that it is.
#
# Nothing is fetched: an address that no schema of the document has stays as it is, and is refused
# where it is followed.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from lutumpy.plain.pointer import pointer
from lutumpy.plain.uri_references import read_address

__all__ = ["PLAIN_VALUES", "place_references"]

PLAIN_VALUES = frozenset({"const", "enum", "default", "example", "examples"})
_NAMED = frozenset(
    {
        *("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"),
        # Of OpenAPI: names of the document's own, which may be any.
        *("schemas", "responses", "parameters", "requestBodies", "headers", "callbacks", "paths"),
        *("pathItems", "content", "encoding", "links", "variables", "mapping", "webhooks"),
    }
)
_MOST_LEVELS = 900
"""Deeper than that nobody can read a document anyway."""


class _Node(NamedTuple):
    """An object of the document.

    Attributes:
        value: The object.
        base: The address that references in it are read against; empty for the document's own.
        path: The way to it.
        has_names: Whether its keys are names, and no words of a schema.
    """

    value: Any
    base: str
    path: tuple[str | int, ...]
    has_names: bool


def place_references(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document with references by address and name written as places in it.

    Args:
        source: A document of OpenAPI 3.1.

    Returns:
        `source` itself where no schema has an address or a name.
    """
    resources: dict[str, tuple[str | int, ...]] = {"": ()}
    anchors: dict[tuple[str, str], tuple[str | int, ...]] = {}
    for node in _walk(source):
        if node.base and _is_text(node.value, "$id"):
            resources.setdefault(node.base, node.path)
        if _is_text(node.value, "$anchor"):
            anchors.setdefault((node.base, node.value["$anchor"]), node.path)
    if len(resources) == 1 and not anchors:
        return source

    def place(reference: str, base: str) -> str:
        uri, fragment = read_address(base, reference), ""
        if "#" in reference:
            fragment = unquote(reference.partition("#")[2])
        start = resources.get(uri)
        if fragment and not fragment.startswith("/"):
            named = anchors.get((uri, fragment))
            return reference if named is None else f"#{_quote(pointer(named))}"
        return reference if start is None else f"#{_quote(pointer(start) + fragment)}"

    copied: Mapping[str, Any] = _copy(_Node(source, "", (), has_names=False), place)
    return copied


def _walk(source: Mapping[str, Any]) -> Iterator[_Node]:
    """Every object of the document that may be a schema, each once."""
    seen: set[int] = set()
    stack = [_Node(source, "", (), has_names=False)]
    while stack:
        node = stack.pop()
        if id(node.value) in seen or len(node.path) > _MOST_LEVELS:
            continue
        seen.add(id(node.value))
        if isinstance(node.value, Mapping):
            node = _based(node)
            if not node.has_names:
                yield node
        stack += _children(node)


def _children(node: _Node) -> Iterator[_Node]:
    value = node.value
    if isinstance(value, list):
        for number, inner in enumerate(value):
            if isinstance(inner, (Mapping, list)):
                yield _Node(inner, node.base, (*node.path, number), has_names=False)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, (Mapping, list)) and not _is_plain(key, node):
                names = key in _NAMED and not node.has_names
                yield _Node(inner, node.base, (*node.path, str(key)), has_names=names)


def _is_plain(key: Any, node: _Node) -> bool:
    return not node.has_names and (key in PLAIN_VALUES or str(key).startswith("x-"))


def _based(node: _Node) -> _Node:
    """The same with the address that it gives itself."""
    if node.has_names or not _is_text(node.value, "$id"):
        return node
    return node._replace(base=read_address(node.base, node.value["$id"]))


def _copy(node: _Node, place: Any) -> Any:
    value = node.value
    if isinstance(value, Mapping):
        node = _based(node)
        inner = {str(child.path[-1]): _copy(child, place) for child in _children(node)}
        copied = {key: inner.get(str(key), one) for key, one in value.items()}
        if not node.has_names and _is_text(value, "$ref"):
            copied["$ref"] = place(value["$ref"], node.base)
        return copied
    children = {child.path[-1]: child for child in _children(node)}
    return [
        _copy(children[number], place) if number in children else one
        for number, one in enumerate(value)
    ]


def _is_text(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(key), str)


def _quote(text: str) -> str:
    """A pointer as it stands in a reference, where `%` begins an encoded character."""
    return text.replace("%", "%25")
