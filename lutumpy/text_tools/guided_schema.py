"""The JSON Schema of a guided answer, made from the offer.

An answer is an object with one property, which holds the calls, or the text where none is needed.
"""

# The schema keeps to what endpoints that constrain their output understand, those that make a
# grammar of it included: definitions, references, unions and constants. What is left out (patterns,
# large counts) is checked when the call is read.
#
# Each tool's schema has `$defs` of its own, and references into them. Put together in one schema,
# they need names that don't collide, and every reference has to follow: `_Definitions` does that.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.models import OutputSpec, ToolOffering, ToolSpec
from lutumpy.rules.schema_walk import resolve

__all__ = ["ANSWER", "MOST_CALLS", "guided_output"]

ANSWER = "answer"
"""The property that every guided answer has."""

MOST_CALLS = 16
"""Calls in one guided answer, at most.

A small model may not find the end of a list, and go on until the output limit cuts it.
"""

# Endpoints that make a grammar of the schema refuse patterns that they can't translate, and large
# numbers of repetitions.
_LEFT_OUT = frozenset({"pattern", "$schema", "$id"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_LARGEST_COUNT = 200
_NO_NAME = re.compile(r"[^a-zA-Z0-9]+")
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_PLAIN_VALUES = frozenset({"const", "enum", "default", "examples", "required"})


def guided_output(
    offering: ToolOffering, arguments_key: str = "args", value: OutputSpec | None = None
) -> OutputSpec:
    """The schema that the endpoint is asked to hold the model to.

    Args:
        offering: The tools of the turn, at least one.
        arguments_key: The key of the arguments of a call.
        value: The schema of the final answer of a structured turn, in place of text.
    """
    definitions = _Definitions()
    specs = offering.specs
    if offering.mode == "specific":
        specs = tuple([spec for spec in specs if spec.name == offering.forced])
    calls = [_call_schema(spec, arguments_key, definitions) for spec in specs]
    several: dict[str, Any] = {
        "type": "array",
        "items": calls[0] if len(calls) == 1 else {"anyOf": calls},
        "minItems": 1,
        "maxItems": MOST_CALLS if offering.parallel else 1,
    }
    answer = several
    if offering.mode == "auto":
        other = {"type": "string"} if value is None else definitions.add("value", value.schema)
        answer = {"anyOf": [several, other]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {ANSWER: answer},
        "required": [ANSWER],
        "additionalProperties": False,
    }
    if definitions.schemas:
        schema["$defs"] = definitions.schemas
    return OutputSpec(ANSWER, schema)


def _call_schema(spec: ToolSpec, arguments_key: str, definitions: _Definitions) -> dict[str, Any]:
    # The name comes first: what the model writes next depends on it.
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "const": spec.name},
            arguments_key: definitions.add(spec.name, spec.schema),
        },
        "required": ["name", arguments_key],
        "additionalProperties": False,
    }


class _Definitions:
    """The `$defs` of several schemas, together under names that every endpoint takes."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def add(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema for the place where it is used; what it refers to becomes a definition."""
        places: dict[str, str] = {}
        inner = [
            (container, key)
            for container in ("$defs", "definitions")
            for key in schema.get(container, ())
        ]
        for container, key in inner:
            places[f"#/{container}/{key}"] = self._reserve_name(f"{name} {key}")
        references = _find_references(schema)
        # A reference may lead to any part of a schema; such a part becomes a definition too.
        parts = {
            reference: resolve(schema, reference)
            for reference in sorted(references - places.keys())
            if reference.startswith("#/")
        }
        for reference in parts:
            places[reference] = self._reserve_name(f"{name} {reference}")
        body = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        refers_to_itself = "#" in references
        if refers_to_itself:
            places["#"] = self._reserve_name(name)
        for container, key in inner:
            self.schemas[places[f"#/{container}/{key}"]] = _move_references(
                schema[container][key], places
            )
        for reference, part in parts.items():
            self.schemas[places[reference]] = _move_references(part, places)
        if not refers_to_itself:
            moved: dict[str, Any] = _move_references(body, places)
            return moved
        self.schemas[places["#"]] = _move_references(body, places)
        return {"$ref": f"#/$defs/{places['#']}"}

    def _reserve_name(self, wanted: str) -> str:
        base = "of-" + (_NO_NAME.sub("-", wanted).strip("-") or "tool")
        name, number = base, 1
        while name in self.schemas:
            number += 1
            name = f"{base}-{number}"
        self.schemas[name] = {}
        return name


def _find_references(schema: Any) -> set[str]:
    """Every `$ref` in a schema. Without recursion: schemas of users may be nested deeply."""
    found: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("$ref"), str):
                found.add(node["$ref"])
            waiting += node.values()
        elif isinstance(node, Sequence) and not isinstance(node, str):
            waiting += node
    return found


def _move_references(schema: Any, places: Mapping[str, str]) -> Any:
    """The schema with references to where its definitions are now.

    What some endpoints don't understand is left out.
    """
    if isinstance(schema, list):
        return [_move_references(entry, places) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _PLAIN_VALUES:
            moved[key] = value
        elif key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            moved[key] = {name: _move_references(inner, places) for name, inner in value.items()}
        elif key == "$ref" and value in places:
            moved[key] = f"#/$defs/{places[value]}"
        elif key in _COUNTS and isinstance(value, int) and value > _LARGEST_COUNT:
            continue
        elif key not in _LEFT_OUT:
            moved[key] = _move_references(value, places)
    return moved
