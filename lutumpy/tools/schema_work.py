"""How much work it is to check one value against a schema that is dangerous."""

# What is hard here
# -----------------
# A schema that refers to itself in several places may need time that doubles with each level of a
# value: an `anyOf` of two branches, in each of which the field `a` is the schema itself, checks a
# value of 30 levels 2^30 times. The schema is small, and so is the value. The same goes for a
# schema with hundreds of thousands of checks and a list of thousands of entries.
#
# So the work is counted before it is done: how many schemas are held against each part of the
# value. A pair of a schema and a part is counted once and remembered, so counting takes no longer
# than their product, however often a validator, which remembers nothing, would come by. Schemas
# and values are told apart by identity; both are held while we count.
#
# Only schemas that could be dangerous are counted so (`may_explode`), and values that failed,
# since explaining costs a thousand times as much as checking: each error of the validator holds a
# copy of the part that it is about. So there a keyword that a part may fail at counts by the bytes
# of that part (`is_more_to_explain`).

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from lutumpy.tools.schema_size import SchemaTargets, check_weight

__all__ = ["SchemaWork"]

_MOST_PAIRS = 50_000
"""Pairs of a schema and a part of a value that are counted, in some 0.1 seconds; more are too much
work."""

_SAME = ("not", "if", "then", "else")
_SAME_LISTS = ("anyOf", "oneOf", "allOf")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_OF_VALUES = ("additionalProperties", "unevaluatedProperties")
_OF_ENTRIES = ("contains", "additionalItems", "unevaluatedItems")

_FAILING = frozenset(
    {
        *("type", "enum", "const", "format", "pattern", "minLength", "maxLength", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
        *("uniqueItems", "contains", "minContains", "maxContains", "minProperties"),
        *("maxProperties", "additionalProperties", "unevaluatedProperties", "additionalItems"),
        *("unevaluatedItems", "propertyNames", "not", "anyOf", "oneOf", "contentEncoding"),
        *("contentMediaType", "items", "prefixItems", "if"),
    }
)
"""The keywords that give one error for a part."""

_LISTS_OF_NAMES = ("dependentRequired", "dependencies")

_BYTES_FOR_ONE = 3200
"""How many bytes of a copied part cost as much as a check."""

_BYTES_OF_PART = 100
"""What an entry of a list or an object takes in a copy, measured."""

Pair: TypeAlias = tuple[Any, Any]


class SchemaWork:
    """Counts the work of a schema.

    Args:
        document: The schema.
    """

    __slots__ = ("_document", "_targets")

    def __init__(self, document: Any) -> None:
        self._document = document
        self._targets = SchemaTargets(document)

    def is_more(self, value: Any, most: int) -> bool:
        """Whether checking `value` takes more than so many checks of one schema."""
        return self._is_more(value, most, lambda node, part: 1)

    def is_more_to_explain(self, value: Any, most: int, few_names: int) -> bool:
        """Whether it costs more than so many checks to list every failure of `value`.

        Args:
            value: The value.
            most: So many checks.
            few_names: Longer lists of required names give one error, however many are missing.
        """
        sizes = _measure_parts(value)

        def weigh(node: Any, part: Any) -> int:
            size = _size_of(part, sizes)
            return _count_errors(node, part, few_names) * (1 + size // _BYTES_FOR_ONE)

        return self._is_more(value, most, weigh)

    def _is_more(self, value: Any, most: int, weigh: Callable[[Any, Any], int]) -> bool:
        counts: dict[tuple[int, int], int] = {}
        root = (self._document, value)
        # A pair is met twice: before those below it, and when all of them are counted.
        stack: list[tuple[Pair, list[Pair] | None]] = [(root, None)]
        while stack:
            pair, below = stack.pop()
            key = (id(pair[0]), id(pair[1]))
            if below is not None:
                total = weigh(*pair) + sum([counts[id(node), id(part)] for node, part in below])
                counts[key] = total * check_weight(pair[0])
                if counts[key] > most:
                    return True
            elif key not in counts:
                # What leads back to itself, for the same part, counts no further.
                counts[key] = 1
                # Patterns and properties alone may be millions of pairs.
                below = list(islice(self._pairs_below(*pair), _MOST_PAIRS + 1))
                stack.append((pair, below))
                stack += [(one, None) for one in below]
                if len(counts) + len(stack) > _MOST_PAIRS:
                    return True
        return False

    def _pairs_below(self, node: Any, part: Any) -> Iterator[Pair]:
        """What a validator comes to next: schemas, and the part of the value for each."""
        if not isinstance(node, Mapping):
            return
        for target in self._targets.referred(node):
            yield target, part
        for key in _SAME:
            if key in node:
                yield node[key], part
        for key in _SAME_LISTS:
            for branch in _as_list(node.get(key)):
                yield branch, part
        for key in _SAME_MAPS:
            for branch in _as_map(node.get(key)).values():
                yield branch, part
        if isinstance(part, dict):
            yield from _pairs_of_object(node, part)
        elif isinstance(part, list):
            yield from _pairs_of_list(node, part)


def _count_errors(node: Any, part: Any, few_names: int) -> int:
    """At how many of its own words a schema may refuse a part of a value."""
    if not isinstance(node, Mapping):
        return 1
    count = len(_FAILING.intersection(node))
    required = _as_list(node.get("required"))
    if len(required) > few_names:
        count += 1
    elif isinstance(part, dict):
        count += sum([name not in part for name in required if isinstance(name, str)])
    if "propertyNames" in node and isinstance(part, dict):
        count += len(part)  # each name that fails gives one with a copy of the whole object
    for key in _LISTS_OF_NAMES:
        count += sum([len(_as_list(names)) for names in _as_map(node.get(key)).values()])
    return max(count, 1)


def _measure_parts(value: Any) -> dict[int, int]:
    """About how many bytes a copy of each list and object in a value takes, by identity."""
    sizes: dict[int, int] = {}
    # Each is met twice: before what is in it, and when all of that is measured.
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        part, is_done = stack.pop()
        inner = [*part, *part.values()] if isinstance(part, dict) else part
        if not isinstance(inner, list):
            continue
        if is_done:
            sizes[id(part)] = sum([_size_of(one, sizes) for one in inner])
        else:
            stack.append((part, True))
            stack += [(one, False) for one in inner]
    return sizes


def _size_of(part: Any, sizes: Mapping[int, int]) -> int:
    return _BYTES_OF_PART + (len(part) if isinstance(part, str) else sizes.get(id(part), 0))


def _pairs_of_object(node: Mapping[str, Any], part: dict[str, Any]) -> Iterator[Pair]:
    properties = _as_map(node.get("properties"))
    for name in properties.keys() & part.keys():
        yield properties[name], part[name]
    everywhere = [*_as_map(node.get("patternProperties")).values()]
    everywhere += [node[key] for key in _OF_VALUES if key in node]
    for schema in everywhere:
        for value in part.values():
            yield schema, value
    if "propertyNames" in node:
        for name in part:
            yield node["propertyNames"], name


def _pairs_of_list(node: Mapping[str, Any], part: list[Any]) -> Iterator[Pair]:
    items = node.get("items")
    for first in (_as_list(items), _as_list(node.get("prefixItems"))):
        yield from zip(first, part, strict=False)
    everywhere = [items] if isinstance(items, Mapping) else []
    everywhere += [node[key] for key in _OF_ENTRIES if key in node]
    for schema in everywhere:
        for entry in part:
            yield schema, entry


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
