"""How much work a JSON Schema causes for one value, found out without doing that work."""

# What is hard here
# -----------------
# A short schema can ask for a lot: thirty definitions, each of which refers to the one before it
# twice, are 2^30 checks of one value. And a definition that refers to a next one, 200,000 times,
# is followed on the native stack, which overflows and takes the process with it. So references are
# followed here first, and each definition is counted once and remembered.
#
# A reference is found as the specification says: resolved against the base URI of where it stands
# (the nearest `$id` around it), then by its fragment, a pointer or an anchor. One that leads out of
# the document counts nothing: the validator refuses it.
#
# The walk has a stack of its own and no recursion, since references may be chained as deep as the
# schema is long.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from lutumpy.rules.schema_walk import resolve

__all__ = ["count_checks"]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


def count_checks(document: Any, *, most: int, levels: int) -> int:
    """How many checks one value may cause, at most.

    Every object and array inside counts as a schema, so the number is too large rather than too
    small. A reference counts as what it names. One that leads back to where it stands counts no
    further: the validator follows it only as far as the value goes.

    Args:
        document: The schema: JSON values.
        most: More checks than that are refused.
        levels: So is being nested deeper, references followed.

    Raises:
        ValueError: It is too much; the message says what.
    """
    targets = _Targets(document)
    # By node: checks and levels, of those below that were counted so far.
    counts: dict[int, list[int]] = {}
    root = [1, 1]
    # A node with the count of its parent. It is met a second time when all below it is counted.
    stack: list[tuple[Any, list[int]]] = [(document, root)]
    while stack:
        node, parent = stack.pop()
        own = counts.get(id(node))
        if own is None:
            own = counts[id(node)] = [1, 1]
            stack.append((node, parent))
            stack += [(child, own) for child in targets.below(node)]
            continue
        parent[0] += own[0]
        parent[1] = max(parent[1], own[1] + 1)
        if parent[0] > most:
            raise ValueError(
                f"it asks for more than {most} checks of one value, since it refers to its own "
                "parts again and again"
            )
        if parent[1] > levels:
            raise ValueError(f"it is nested deeper than {levels} levels, references followed")
    return root[0]


class _Targets:
    """What stands below the parts of a schema, references included."""

    def __init__(self, document: Any) -> None:
        self._document = document
        # Where a `$id` names it: the base URI of each node, and the nodes by URI.
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": document}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._index(document)

    def _index(self, document: Any) -> None:
        stack: list[tuple[Any, str]] = [(document, "")]
        seen: set[int] = set()
        while stack:
            node, base = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Mapping):
                name = node.get("$id", node.get("id"))
                if isinstance(name, str):
                    base = _join(base, name)
                    self._resources.setdefault(base, node)
                for key in _ANCHORS:
                    anchor = node.get(key)
                    if isinstance(anchor, str):
                        self._anchors.setdefault((base, anchor), node)
                if base:
                    self._bases[id(node)] = base
                stack += [(child, base) for child in node.values()]
            elif isinstance(node, list):
                stack += [(child, base) for child in node]

    def below(self, node: Any) -> Iterator[Any]:
        """The schemas that checking a value against `node` may lead to next."""
        inner: Any = ()
        if isinstance(node, Mapping):
            inner = node.values()
            for key in _REFERENCES:
                reference = node.get(key)
                if isinstance(reference, str):
                    target = self._find(node, reference)
                    if isinstance(target, (Mapping, list)):
                        yield target
        elif isinstance(node, list):
            inner = node
        for child in inner:
            if isinstance(child, (Mapping, list)):
                yield child

    def _find(self, node: Any, reference: str) -> Any:
        base = self._bases.get(id(node), "")
        uri, fragment = _join(base, reference), ""
        if "#" in reference:
            fragment = unquote(reference.partition("#")[2])
        resource = self._resources.get(uri)
        if not fragment:
            return resource
        if fragment.startswith("/"):
            if not isinstance(resource, Mapping):
                return None
            return resolve(resource, "#" + fragment)
        return self._anchors.get((uri, fragment))


def _join(base: str, reference: str) -> str:
    """A reference resolved against a base URI, without its fragment."""
    try:
        return urldefrag(urljoin(base, reference))[0]
    except ValueError:  # such as an address with half of a bracket
        return reference.partition("#")[0]
