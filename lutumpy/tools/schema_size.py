"""How much work a JSON Schema causes for one value, found out without doing that work."""

# What is hard here
# -----------------
# A short schema can ask for a lot: thirty definitions, each of which refers to the one before it
# twice, are 2^30 checks of one value. And a definition that refers to a next one, 200,000 times,
# is followed on the native stack, which overflows and takes the process with it. So references are
# followed here first, and each definition is counted once and remembered.
#
# A reference is found as the specification says: resolved against the base URI of where it is
# (the nearest `$id` around it), then by its fragment, a pointer or an anchor. One that leads out of
# the document, or nowhere, is refused here: what we can't follow we can't count. Metaschemas count
# nothing, since they don't grow.
#
# The walk has a stack of its own and no recursion, since references may be chained as deep as the
# schema is long.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from lutumpy.plain.preview import shorten
from lutumpy.plain.uri_references import read_address
from lutumpy.rules.schema_references import NAMED_SCHEMAS, PLAIN_VALUES
from lutumpy.rules.schema_walk import resolve

__all__ = [
    "METASCHEMAS",
    "SchemaSize",
    "SchemaTargets",
    "check_weight",
    "measure_schema",
]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
METASCHEMAS = "json-schema.org/"
"""In the address of every metaschema."""

_SAME_VALUE = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        *("dependentSchemas", "dependencies"),
    }
)
"""Below these, and behind references, are schemas of the same value; below all others of its
parts."""
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


class SchemaSize(NamedTuple):
    """What a schema may cost.

    Attributes:
        checks: How many schemas there are, references followed.
        may_explode: Whether the work may grow by a factor with each level of a value: the schema
            leads back to itself in more than one way.
    """

    checks: int
    may_explode: bool


def measure_schema(document: Any, *, most: int, most_in_all: int, levels: int) -> SchemaSize:
    """How much work a schema may cause.

    Every object and array inside counts as a schema, so the number is too large rather than too
    small. A reference counts as what it names. One that leads back to where it is counts no
    further: the validator follows it only as far as the value goes.

    Args:
        document: The schema: JSON values.
        most: More checks of one value that has no parts are refused.
        most_in_all: So are more of a value and all parts that it may have. What a value really
            causes depends on the parts that it has.
        levels: So is being nested deeper, references followed.

    Raises:
        ValueError: It is too much, or it refers to what isn't in it; the message says what.
    """
    targets = SchemaTargets(document)
    # By node: checks with and without those of parts, and levels, of those below that were counted
    # so far.
    counts: dict[int, list[int]] = {}
    root = [1, 1, 1]
    # A node with the count of its parent, and whether both are about the same value. It is met a
    # second time when all below it is counted.
    stack: list[tuple[Any, list[int], bool]] = [(document, root, True)]
    while stack:
        node, parent, is_same = stack.pop()
        own = counts.get(id(node))
        if own is None:
            own = counts[id(node)] = [1, 1, 1]
            stack.append((node, parent, is_same))
            same = targets.of_same_value(node)
            stack += [(child, own, id(child) in same) for child in targets.below(node)]
            continue
        weight = check_weight(node)
        parent[0] += own[0] * weight
        parent[1] += own[1] * weight if is_same else 1
        parent[2] = max(parent[2], own[2] + 1)
        if parent[1] > most or parent[0] > most_in_all:
            raise ValueError(
                f"its schema costs too much: it asks for more than {most} checks of one value, or "
                f"{most_in_all} with its parts, since it refers to its own parts again and again"
            )
        if parent[2] > levels:
            raise ValueError(
                f"its schema costs too much: it is nested deeper than {levels} levels, references "
                "followed"
            )
    return SchemaSize(
        root[0], targets.has_references and _leads_back_in_two_ways(document, targets)
    )


def check_weight(node: Any) -> int:
    """What multiplies the work of a schema's parts.

    `unevaluatedProperties` wants to know which properties the parts looked at, so the validator
    goes through them once more: three times the work, measured, and nine times for two levels.
    """
    is_again = isinstance(node, Mapping) and any(key in node for key in _UNEVALUATED)
    return 3 if is_again else 1


def _leads_back_in_two_ways(document: Any, targets: SchemaTargets) -> bool:
    """Whether a part of the schema leads back to itself in more than one way.

    That is so where parts that reach one another (a strongly connected component) have more
    edges than parts.
    """
    edges: dict[int, list[int]] = {}
    stack = [document]
    while stack:
        node = stack.pop()
        if id(node) not in edges:
            below = list(targets.below(node))
            edges[id(node)] = [id(child) for child in below]
            stack += below
    component = _find_components(edges)
    members: dict[int, int] = {}
    inner: dict[int, int] = {}
    for node, children in edges.items():
        own = component[node]
        members[own] = members.get(own, 0) + 1
        same = [child for child in children if component[child] == own]
        inner[own] = inner.get(own, 0) + len(same)
    return any(inner[own] > members[own] for own in members)


def _find_components(edges: Mapping[int, list[int]]) -> dict[int, int]:
    """The number of the strongly connected component of each node: Kosaraju, without recursion."""
    order: list[int] = []
    seen: set[int] = set()
    for start in edges:
        stack = [(start, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(child, False) for child in edges[node]]
    reverse: dict[int, list[int]] = {node: [] for node in edges}
    for node, children in edges.items():
        for child in children:
            reverse[child].append(node)
    component: dict[int, int] = {}
    for start in reversed(order):
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in component:
                component[node] = start
                waiting += reverse[node]
    return component


class SchemaTargets:
    """What is below the parts of a schema, references included."""

    def __init__(self, document: Any) -> None:
        self._document = document
        # Where a `$id` names it: the base URI of each node, and the nodes by URI.
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": document}
        self._anchors: dict[tuple[str, str], Any] = {}
        # A `$dynamicRef` may lead to each anchor of its name.
        self._dynamic: dict[str, list[Any]] = {}
        # By identity: nodes that are schemas, and nodes that are plain values, as that of `const`.
        self._schemas: set[int] = set()
        self._plain: set[int] = set()
        self.has_references: bool = False
        self._index(document)

    def _index(self, document: Any) -> None:
        named = str(document.get("$schema", "")) if isinstance(document, Mapping) else ""
        is_old = any(f"draft-0{number}" in named for number in (4, 6, 7))
        # Each node with its base URI, and whether its keys are names of schemas.
        stack: list[tuple[Any, str, bool]] = [(document, "", False)]
        seen: set[int] = set()
        while stack:
            node, base, has_names = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, list):
                stack += [(child, base, False) for child in node]
                continue
            if not isinstance(node, Mapping):
                continue
            if not has_names:
                base = self._index_schema(node, base, is_old=is_old, is_draft_4="draft-04" in named)
            for key, child in node.items():
                if key in PLAIN_VALUES and not has_names:
                    self._plain.add(id(child))
                else:
                    stack.append((child, base, key in NAMED_SCHEMAS and not has_names))

    def _index_schema(
        self, node: Mapping[str, Any], base: str, *, is_old: bool, is_draft_4: bool
    ) -> str:
        """Note what names `node`; the base URI of what is in it."""
        name = node.get("id" if is_draft_4 else "$id")
        # Up to draft 7 nothing counts beside a reference.
        if isinstance(name, str) and not (is_old and "$ref" in node):
            base = read_address(base, name)
            fragment = name.partition("#")[2]
            if not fragment:
                self._resources.setdefault(base, node)
            elif is_old:  # that is how they spell an anchor
                self._anchors.setdefault((base, fragment), node)
        if not self.has_references:
            self.has_references = any(key in node for key in _REFERENCES)
        dynamic = node.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, []).append(node)
        for key in _ANCHORS:
            anchor = node.get(key)
            if isinstance(anchor, str):
                self._anchors.setdefault((base, anchor), node)
        self._schemas.add(id(node))
        if base:
            self._bases[id(node)] = base
        return base

    def below(self, node: Any) -> Iterator[Any]:
        """The schemas that checking a value against `node` may lead to next."""
        inner: Any = ()
        if isinstance(node, Mapping):
            inner = node.values()
            yield from self.referred(node)
        elif isinstance(node, list):
            inner = node
        for child in inner:
            if isinstance(child, (Mapping, list)) and id(child) not in self._plain:
                yield child

    def of_same_value(self, node: Any) -> set[int]:
        """Those below `node` that are about the same value, by identity."""
        if not isinstance(node, Mapping):
            # A list of branches, of entries: what holds it knows.
            return {id(child) for child in node} if isinstance(node, list) else set()
        same = {id(target) for target in self.referred(node)}
        for key in _SAME_VALUE & node.keys():
            same.add(id(node[key]))
            if key in NAMED_SCHEMAS and isinstance(node[key], Mapping):
                same.update(map(id, node[key].values()))
        return same

    def referred(self, node: Mapping[str, Any]) -> Iterator[Any]:
        """The schemas that the references of `node` itself name.

        Raises:
            ValueError: One leads out of the document, or nowhere.
        """
        for key in _REFERENCES:
            reference = node.get(key)
            if not isinstance(reference, str):
                continue
            target = self._find(node, reference)
            if isinstance(target, (Mapping, list)):
                yield target
            elif target is None and id(node) in self._schemas and METASCHEMAS not in reference:
                raise ValueError(_explain_lost(reference))
            if key == "$dynamicRef":
                others = self._dynamic.get(reference.partition("#")[2], ())
                yield from [other for other in others if other is not target]

    def _find(self, node: Any, reference: str) -> Any:
        base = self._bases.get(id(node), "")
        uri, fragment = read_address(base, reference), ""
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


def _explain_lost(reference: str) -> str:
    shown = repr(shorten(reference, 200))
    if reference.startswith("#"):
        return f"its schema is broken: the reference {shown} leads nowhere in it"
    return (
        f"its schema refers to another document, {shown}; references must stay inside of it, and "
        "nothing was fetched"
    )
