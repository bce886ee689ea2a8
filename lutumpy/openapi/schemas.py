"""Schema Objects of OpenAPI as JSON Schema 2020-12, with what they refer to as definitions."""

# What is hard here
# -----------------
# Schemas of OpenAPI 3.0 are a dialect: `nullable`, `example`, `exclusiveMinimum: true`. Those of
# 3.1 are JSON Schema, with words of OpenAPI's own. Beyond the words:
#
# - `nullable` beside `enum`, `$ref` or `allOf` has no effect if it is taken by the letter, and the
#   authors of such documents mean it. It accepts null in every place.
# - A property that is read-only is left out of what the model writes, and out of `required`. That
#   list may be in another part of an `allOf` than the property, so the names go down to all the
#   parts (`Place.left_out`). A condition (`not`, `if`) that doesn't ask for them any more would
#   hold for more values than it did, so it stays as it is written (`Place.is_condition`).
# - `closed` adds `additionalProperties: false` where the document doesn't decide. In a part of an
#   `allOf` it would forbid the properties of the other parts, so a part stays open
#   (`Place.is_part`), and the whole gets `unevaluatedProperties: false`.
# - `discriminator` tells the branches of a union apart by the name of a schema. Without it more
#   than one branch of a `oneOf` may fit, which refuses a value that is right. So each branch says
#   which names of its property are its own.
#
# A reference stays one, to `$defs`, so recursion costs nothing. A definition that is used in two
# kinds of places is there twice, under two names, each derived from its place alone: the order of a
# document makes no difference.

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.schema_parts import SchemaParts, list_items
from lutumpy.plain.clean_names import clean_name, with_digest
from lutumpy.plain.pointer import tokens
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_repr

__all__ = ["SchemaConverter"]

_MAPS = ("properties", "patternProperties")
_UNIONS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("not", "if")
_PARTS = (*_CONDITIONS, "then", "else")
_SINGLES = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_DESCRIBE_OBJECTS = {
    *_MAPS,
    *_UNIONS,
    "$ref",
    "additionalProperties",
    "dependentSchemas",
    "if",
    "unevaluatedProperties",
}
_ANNOTATIONS = ("title", "description", "default", "deprecated", "examples")
# What 3.0 ignores beside `$ref` by the letter, and authors mean all the same.
_BESIDE_REFERENCES = {
    *("$ref", "nullable", "readOnly", "writeOnly", "example", "required"),
    *_ANNOTATIONS,
}
_DROPPED = {
    "$anchor",
    "$comment",
    "$defs",  # references to them lead through the document
    "$dynamicAnchor",
    "$id",
    "$schema",
    "$vocabulary",
    "definitions",
    "discriminator",
    "example",
    "externalDocs",
    "nullable",
    "readOnly",
    "writeOnly",
    "xml",
}
_DIALECT = re.compile(r"https?://(json-schema\.org/draft/2020-12|spec\.openapis\.org/oas/3\.1)/.*")
_MOST_DEFINITIONS = 5000
"""Of one operation. Real documents need some hundreds; a hostile one could ask for 2^30."""
_MOST_PLACES = 8
"""In how many kinds of places a schema is used, averaged over an operation: real ones in two."""
_FEW_DEFINITIONS = 100
"""Up to here nobody counts places."""
_MOST_IN_ALL = 200_000
"""Definitions of all operations together. Each operation has its own copy, so a document of some
hundred kilobytes could ask for gigabytes."""
_LARGE = 100_000
"""A larger document raises that bound: to the number of its objects and lists beyond this."""
_COMPONENT = re.compile(r"#/components/schemas/([a-zA-Z0-9._-]+)")


class Place(NamedTuple):
    """The place of a schema in its document.

    Attributes:
        is_part: Whether other schemas describe the same value, so that it can't be closed.
        left_out: Properties that the model isn't asked for.
        is_condition: Whether it says when something holds, and not what is wanted: nothing is left
            out of it or added to it.
    """

    is_part: bool = False
    left_out: frozenset[str] = frozenset()
    is_condition: bool = False


_WHOLE = Place()
_CONDITION = Place(is_part=True, is_condition=True)


class _Definition(NamedTuple):
    schema: dict[str, Any]
    references: frozenset[str]


class SchemaConverter:
    """Converts a document's Schema Objects to JSON Schemas, and keeps the results.

    Args:
        document: The document.
        direction: Whether the schemas are of what is sent or of what comes back: read-only
            properties are not sent, and write-only ones don't come back.
        closed: Whether objects that don't say whether they take further properties take none.
    """

    def __init__(
        self, document: Document, *, direction: Literal["request", "response"], closed: bool
    ) -> None:
        self._document = document
        self._parts = SchemaParts(document, "readOnly" if direction == "request" else "writeOnly")
        self._closed = closed
        self._sources: dict[str, tuple[str, Place]] = {}
        self._definitions: dict[str, _Definition] = {}
        self._definition_count = 0
        self._most_in_all = _MOST_IN_ALL

    def convert(
        self, schema: Any, references: set[str], *, left_out: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """A schema of a whole value.

        Args:
            schema: The Schema Object.
            references: Gets the names of the definitions that it refers to.
            left_out: Properties of its objects that the model isn't asked for.

        Raises:
            UnusableError: It can't be converted.
        """
        return self._convert(schema, Place(left_out=left_out), references)

    def definitions(self, references: set[str]) -> dict[str, Any]:
        """The definitions of these names, and those that they refer to.

        Raises:
            UnusableError: One of them can't be converted.
        """
        needed: dict[str, Any] = {}
        sources: set[str] = set()
        waiting = sorted(references, reverse=True)
        while waiting:
            name = waiting.pop()
            if name in needed:
                continue
            sources.add(self._sources[name][0])
            most = min(_MOST_DEFINITIONS, _FEW_DEFINITIONS + _MOST_PLACES * len(sources))
            if len(needed) >= most:
                raise UnusableError(f"it needs more than {most} schemas")
            self._count_definition()
            definition = self._make_definition(name)
            needed[name] = definition.schema
            waiting += sorted(definition.references, reverse=True)
        return dict(sorted(needed.items()))

    def _count_definition(self) -> None:
        self._definition_count += 1
        if self._definition_count == _MOST_IN_ALL + 1:
            self._most_in_all = max(_MOST_IN_ALL, _count_parts(self._document.source) - _LARGE)
        if self._definition_count > self._most_in_all:
            raise UnusableError(
                f"with it the operations need more than {self._most_in_all} schemas in all; take "
                "fewer of them by only=, tags= or include="
            )

    # --- references -----------------------------------------------------------------------------

    def _make_definition(self, name: str) -> _Definition:
        if name not in self._definitions:
            reference, place = self._sources[name]
            references: set[str] = set()
            schema = self._convert(self._document.find(reference), place, references)
            self._definitions[name] = _Definition(schema, frozenset(references))
        return self._definitions[name]

    def _refer(self, reference: Any, place: Place, references: set[str]) -> str:
        """The reference to a definition, which is converted when it is needed."""
        self._document.find(reference)  # it leads somewhere
        # What it leaves out by itself needs no saying; so most definitions have one place.
        hidden = self._parts.hidden_names({"$ref": reference})
        is_part = place.is_part and self._closed
        place = place._replace(is_part=is_part, left_out=place.left_out - hidden)
        name = _name_definition(reference, place)
        known = self._sources.setdefault(name, (reference, place))
        if known != (reference, place):
            raise UnusableError(f"two schemas have the name {name!r}")
        references.add(name)
        return f"#/$defs/{name}"

    # --- one schema -----------------------------------------------------------------------------

    def _convert(self, schema: Any, place: Place, references: set[str]) -> dict[str, Any]:
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, Mapping):
            raise UnusableError(f"a schema is {shorten(safe_repr(schema), 100)}, not an object")
        self._check_words(schema)
        if self._document.is_3_0 and "$ref" in schema:
            schema = {key: schema[key] for key in schema if key in _BESIDE_REFERENCES}
        if not place.is_condition:
            hidden = self._parts.hidden_names(schema) | self._parts.hidden_in_branches(schema)
            place = place._replace(left_out=place.left_out | hidden)
        converted: dict[str, Any] = {}
        for key, value in schema.items():
            if key not in _DROPPED and not str(key).startswith("x-"):
                self._convert_keyword(converted, key, value, schema, place, references)
        if "example" in schema and "examples" not in converted:
            converted["examples"] = [_copy_value(schema["example"])]
        _convert_exclusive_limits(converted)
        self._mark_branches(converted, schema, place)
        if self._closed and not place.is_part:
            self._close(converted, schema)
        if self._document.is_3_0 and schema.get("nullable") is True:
            return _accept_null(converted)
        return converted

    def _check_words(self, schema: Mapping[str, Any]) -> None:
        for key in ("$dynamicRef", "$recursiveRef"):
            if key in schema:
                raise UnusableError(f"a schema has {key!r}, which is not followed")
        dialect = schema.get("$schema")
        if dialect is not None and not _DIALECT.fullmatch(str(dialect)):
            raise UnusableError(f"a schema is of another dialect, {dialect!r:.100}")

    def _convert_keyword(
        self,
        converted: dict[str, Any],
        key: str,
        value: Any,
        schema: Mapping[str, Any],
        place: Place,
        references: set[str],
    ) -> None:
        part = _CONDITION if key in _CONDITIONS else place._replace(is_part=True)
        whole = _CONDITION if place.is_condition else _WHOLE
        if key == "$ref":
            converted[key] = self._refer(value, _place_below(key, schema, place), references)
        elif key == "required":
            # A boolean is a common mistake of authors, and has no meaning.
            names = [name for name in list_items(value) if str(name) not in place.left_out]
            if names:
                converted[key] = names
        elif key in _MAPS and isinstance(value, Mapping):
            converted[key] = {
                str(name): self._convert(inner, whole, references)
                for name, inner in value.items()
                if key != "properties" or name not in place.left_out
            }
        elif key == "dependentRequired" and isinstance(value, Mapping):
            needed = _without_names(value, place.left_out)
            if needed:
                converted[key] = needed
        elif key == "dependentSchemas" and isinstance(value, Mapping):
            converted[key] = {
                str(name): self._convert(inner, part, references) for name, inner in value.items()
            }
        elif key in _UNIONS and _is_list(value):
            below = _place_below(key, schema, place)
            converted[key] = [self._convert(inner, below, references) for inner in value]
        elif key == "prefixItems" and _is_list(value):
            converted[key] = [self._convert(inner, whole, references) for inner in value]
        elif key in _PARTS:
            converted[key] = self._convert(value, part, references)
        elif key in _SINGLES and isinstance(value, Mapping):
            converted[key] = self._convert(value, whole, references)
        elif key != "examples" or _is_list(value):  # a map of examples is a mistake
            converted[key] = _copy_value(value)

    # --- unions and closed objects --------------------------------------------------------------

    def _mark_branches(
        self, converted: dict[str, Any], schema: Mapping[str, Any], place: Place
    ) -> None:
        """Make the branches of a union say which names of its discriminator are theirs, where the
        model is asked for it.
        """
        discriminator = schema.get("discriminator")
        if not isinstance(discriminator, Mapping):
            return
        name, mapping = discriminator.get("propertyName"), discriminator.get("mapping")
        if not isinstance(name, str) or name in place.left_out:
            return
        mapping = mapping if isinstance(mapping, Mapping) else {}
        for key in ("oneOf", "anyOf"):
            for index, branch in enumerate(list_items(schema.get(key)) if key in converted else ()):
                reference = branch.get("$ref") if isinstance(branch, Mapping) else None
                if not isinstance(reference, str) or not self._parts.leaves_open(reference, name):
                    continue
                if not place.is_condition and name in self._parts.hidden_names(branch):
                    continue
                last = tokens(reference)[-1]
                names = [str(k) for k, value in mapping.items() if value in (reference, last)]
                marked = converted[key][index]
                if marked.keys() == {"$ref"}:
                    marked["properties"] = {name: {"enum": names or [last]}}
                    marked["required"] = [name]

    def _close(self, converted: dict[str, Any], schema: Mapping[str, Any]) -> None:
        if "additionalProperties" in converted or "unevaluatedProperties" in converted:
            return
        composed = [key for key in (*_UNIONS, "$ref", "if", "dependentSchemas") if key in converted]
        if not composed:
            if converted.get("properties"):
                converted["additionalProperties"] = False
        elif not _is_alone(composed[0], schema) and self._parts.has_fields(schema):
            converted["unevaluatedProperties"] = False


def _count_parts(source: Any) -> int:
    """The objects and lists of a document; one that is in several places counts once."""
    seen: set[int] = set()
    stack = [source]
    while stack:
        part = stack.pop()
        if isinstance(part, (Mapping, list)) and id(part) not in seen:
            seen.add(id(part))
            stack += part.values() if isinstance(part, Mapping) else part
    return len(seen)


def _name_definition(reference: str, place: Place) -> str:
    """A name that depends on the reference and its place alone."""
    component = _COMPONENT.fullmatch(reference)
    if component is not None and place == _WHOLE and len(component[1]) <= 64:
        return component[1]
    last = (tokens(reference) or ["document"])[-1]
    name = clean_name(last, others="_.-")
    about = f"{reference} {place.is_part} {sorted(place.left_out)}"
    if place.is_condition:
        about += " condition"
    return with_digest(about, name, 64)


def _place_below(key: str, schema: Mapping[str, Any], place: Place) -> Place:
    """The place of a branch or of what is referred to, which describes the same value."""
    if _is_alone(key, schema):
        return place
    return place._replace(is_part=True)


def _is_alone(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether nothing but this keyword describes an object, and it is one schema at a time."""
    others = [other for other in schema if other in _DESCRIBE_OBJECTS and other != key]
    if others or key not in (*_UNIONS, "$ref"):
        return False
    return key != "allOf" or len(list_items(schema["allOf"])) == 1


def _without_names(dependent: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, list[Any]]:
    """What `dependentRequired` asks for, without these properties."""
    needed: dict[str, list[Any]] = {}
    for name, others in dependent.items():
        asked = [other for other in list_items(others) if str(other) not in left_out]
        if asked and str(name) not in left_out:
            needed[str(name)] = asked
    return needed


def _convert_exclusive_limits(converted: dict[str, Any]) -> None:
    """`exclusiveMinimum: true` of 3.0 says about `minimum` that the number itself is refused."""
    for exclusive, limit in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        if (
            isinstance(converted.get(exclusive), bool)
            and converted.pop(exclusive)
            and limit in converted
        ):
            converted[exclusive] = converted.pop(limit)


def _accept_null(converted: dict[str, Any]) -> dict[str, Any]:
    restricting = converted.keys() & {"const", "enum", "not", "if", "$ref", *_UNIONS}
    kind = converted.get("type")
    if restricting <= {"enum"}:
        if isinstance(kind, str) and kind != "null":
            converted["type"] = [kind, "null"]
        if _is_list(converted.get("enum")) and None not in converted["enum"]:
            converted["enum"] = [*converted["enum"], None]
        return converted
    annotations = {key: converted.pop(key) for key in _ANNOTATIONS if key in converted}
    return {"anyOf": [converted, {"type": "null"}], **annotations}


def _copy_value(value: Any) -> Any:
    """A JSON value as it is; what a YAML reader took for a date is a text again."""
    if isinstance(value, Mapping):
        return {str(key): _copy_value(inner) for key, inner in value.items()}
    if _is_list(value):
        return [_copy_value(inner) for inner in value]
    if isinstance(value, datetime.date):  # a time of day included
        return value.isoformat()
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
