"""The schemas of `parameters`: a part of OpenAPI's, as a message with fields of its own.

What isn't a field is refused with its place, in which the properties of an object are counted:
`parameters.properties[8].value`. `parametersJsonSchema` is JSON Schema, of which no refusal is
known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lutumpy.rules.gemini.fields import field, spellings, word
from lutumpy.rules.gemini.wording import KIND
from lutumpy.rules.problem import Certainty, Problem, is_array, items

__all__ = ["SCHEMA_KEYS", "check_schema"]

SCHEMA_KEYS = spellings(
    "type format title description nullable enum items properties required minItems maxItems "
    "minProperties maxProperties minLength maxLength minimum maximum pattern example anyOf "
    "propertyOrdering default".split()
)
"""The keywords of `parameters` that both hosts take."""

_OF_ONE_HOST = spellings(("additionalProperties", "ref", "defs"))
"""Those that Vertex takes and the Gemini API refuses [reported]."""

_TYPES = "TYPE_UNSPECIFIED STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL".split()


class _Place(NamedTuple):
    """Where a schema is: as the reader of the JSON counts, and as the check after it names."""

    counted: str
    named: str


def check_schema(where: str, schema: Mapping[str, Any], tools: tuple[str, ...]) -> list[Problem]:
    """Problems of the schema of a function's parameters.

    Args:
        where: Its place in the request.
        schema: The schema.
        tools: The name of the function, if it has one.
    """
    unread: list[Problem] = []
    wrong: list[Problem] = []
    for place, node in _walk(_Place(where, where), schema):
        if isinstance(node, Mapping):
            unread += _check_fields(place.counted, node, tools)
            wrong += _check_sense(place.named, node, tools)
        else:
            message = (
                f"Invalid value at '{place.counted}' "
                f"(type.googleapis.com/google.ai.generativelanguage.v1beta.Schema), {node!r:.100}"
            )
            unread.append(_refused(place.counted, message, tools))
    return unread + wrong


def _walk(where: _Place, schema: Any) -> Iterator[tuple[_Place, Any]]:
    """Every schema inside of one; no recursion, since a hostile one may be nested deeply."""
    stack: list[tuple[_Place, Any]] = [(where, schema)]
    while stack:
        place, node = stack.pop()
        yield place, node
        if not isinstance(node, Mapping):
            continue
        below: list[tuple[_Place, Any]] = []
        properties = node.get("properties")
        if isinstance(properties, Mapping):
            for number, (name, inner) in enumerate(properties.items()):
                counted = f"{place.counted}.properties[{number}].value"
                below.append((_Place(counted, f"{place.named}.properties[{name}]"), inner))
        if node.get("items") is not None:
            below.append((_Place(f"{place.counted}.items", f"{place.named}.items"), node["items"]))
        for number, inner in enumerate(items(field(node, "anyOf"))):
            end = f".any_of[{number}]"
            below.append((_Place(place.counted + end, place.named + end), inner))
        stack += reversed(below)


def _refused(
    where: str, message: str, tools: tuple[str, ...], certainty: Certainty = "refused"
) -> Problem:
    return Problem("gemini.tool_schema", where, message, certainty, kind=KIND, tools=tools)


def _check_fields(where: str, node: Mapping[str, Any], tools: tuple[str, ...]) -> Iterator[Problem]:
    """What the API can't read: unknown keywords, and a list of types."""
    for key in node:
        if key in SCHEMA_KEYS:
            continue
        message = (
            f'Invalid JSON payload received. Unknown name "{key}" at '
            f"'{where}': Cannot find field."
        )
        yield _refused(where, message, tools, "some" if key in _OF_ONE_HOST else "refused")
    kind = node.get("type")
    if is_array(kind):
        message = (
            f'Invalid JSON payload received. Unknown name "type" at '
            f"'{where}': Proto field is not repeating, cannot start list."
        )
        yield _refused(where, message, tools)
    elif kind is not None and not _is_type(kind):
        message = (
            f"Invalid value at '{where}.type' "
            f"(type.googleapis.com/google.ai.generativelanguage.v1beta.Type), {kind!r:.100}"
        )
        yield _refused(where, message, tools)
    branches = field(node, "anyOf")
    if branches is not None and not is_array(branches):
        yield _refused(where, f"Invalid value at '{where}.any_of', {branches!r:.100}", tools)
    for key in ("enum", "required"):
        listed = node.get(key)
        if listed is not None and not is_array(listed):
            message = f"Invalid value at '{where}.{key}' (TYPE_STRING), {listed!r:.100}"
            yield _refused(where, message, tools)
        for number, value in enumerate(items(listed)):
            if not isinstance(value, str):
                place = f"{where}.{key}[{number}]"
                message = f"Invalid value at '{place}' (TYPE_STRING), {value!r:.100}"
                yield _refused(where, message, tools)


def _is_type(kind: Any) -> bool:
    """Whether a value is a type, by its name or by its number."""
    if isinstance(kind, int):
        return not isinstance(kind, bool)
    return word(kind) in _TYPES


def _check_sense(where: str, node: Mapping[str, Any], tools: tuple[str, ...]) -> Iterator[Problem]:
    """What the API reads and refuses then."""
    kind, place = word(node.get("type")), f"GenerateContentRequest.{where}"
    if items(node.get("enum")) and kind not in ("", "STRING"):
        yield _refused(where, f"{place}.enum: only allowed for STRING type", tools)
    if kind == "ARRAY" and node.get("items") is None:
        yield _refused(where, f"{place}.items: missing field.", tools)
    properties = node.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    for number, name in enumerate(items(node.get("required"))):
        if isinstance(name, str) and name not in known:
            message = f"{place}.required[{number}]: property is not defined"
            yield _refused(where, message, tools)
