"""Whether an operation can be called at all: whether what it asks for has a spelling."""

# What is hard here
# -----------------
# A value that has no spelling in its place is an issue of the call that wrote it. Where that is so
# for every value that a required parameter takes, the model would be refused each time, whatever it
# writes: such an operation isn't a tool. It is found out by trying: the values that a schema lists,
# or one of the kind that it asks for.
#
# A schema may also take nothing at all, most often since it requires a property that it forbids.
# That may be deep in what is required, so the parts that every value has to fit are walked.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from lutumpy.openapi.bodies import Body, spell_body
from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.parameters import Parameter, spell_parameter
from lutumpy.openapi.property_names import find_properties
from lutumpy.openapi.schema_parts import list_items
from lutumpy.openapi.styles import SpellingError

__all__ = ["check_sendable"]

_OBJECT = {"a": "a"}
_MOST_VALUES = 100
"""A longer list of values isn't looked through: one of them will have a spelling."""
_MOST_SCHEMAS = 1_000
"""A schema that requires more schemas than these is taken for one that some value fits."""


def check_sendable(
    document: Document, parameters: tuple[Parameter, ...], body: Body | None
) -> None:
    """Refuse an operation that can never be called.

    Raises:
        UnusableError: Something that it requires takes no value, or none that has a spelling.
    """
    for one in parameters:
        if one.required:
            label = f"its required {one.place} parameter {one.name!r:.100}"
            _check(document, label, one.schema, partial(spell_parameter, one))
    if body is None or not body.required:
        return
    why = _Walk(document).why_nothing(body.schema)
    if why is not None:
        raise UnusableError(f"its required body takes no value{why}")
    if body.kind == "form":
        for name, schema in _required_fields(document, body.schema):
            label = f"the required field {name!r:.100} of its form"
            _check(document, label, schema, partial(_spell_field, body, name))


def _spell_field(body: Body, name: str, value: Any) -> Any:
    return spell_body(body, {name: value})


def _required_fields(document: Document, schema: Any) -> Iterator[tuple[str, Any]]:
    own = document.follow(schema, "a schema") if isinstance(schema, Mapping) else {}
    required = {name for name in list_items(own.get("required")) if isinstance(name, str)}
    for name, schemas in find_properties(document, own).items():
        if name in required and len(schemas) == 1:
            yield name, schemas[0]


def _check(document: Document, label: str, schema: Any, spell: Callable[[Any], Any]) -> None:
    own = document.follow(schema, "a schema") if isinstance(schema, Mapping) else schema
    nothing = _Walk(document).why_nothing(own)
    if nothing is not None:
        raise UnusableError(f"{label} takes no value{nothing}")
    why = ""
    for value in _find_values(document, own):
        try:
            spell(value)
        except SpellingError as error:
            why = str(error)
        else:
            return
    if why:
        raise UnusableError(f"{label} has no value that can be sent: {why}")


class _Walk:
    """A walk over what every value of a schema has to fit."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._seen: set[int] = set()

    def why_nothing(self, schema: Any, path: str = "") -> str | None:
        """Why no value fits a schema, as the end of a sentence; `None` where one may."""
        if not isinstance(schema, Mapping):
            return "" if schema is False else None
        if "$ref" in schema:
            schema = self._document.follow(schema, "a schema")
            if not isinstance(schema, Mapping):
                return self.why_nothing(schema, path)
        if id(schema) in self._seen or len(self._seen) == _MOST_SCHEMAS:
            return None
        self._seen.add(id(schema))
        if schema.get("nullable") is True:
            return None
        if schema.get("enum") == [] or schema.get("not", False) in (True, {}):
            return ""
        for part in list_items(schema.get("allOf")):
            why = self.why_nothing(part, path)
            if why is not None:
                return why
        return self._why_no_object(schema, path) if schema.get("type") == "object" else None

    def _why_no_object(self, schema: Mapping[str, Any], path: str) -> str | None:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        open_to_others = schema.get("additionalProperties") is not False
        for name in list_items(schema.get("required")):
            if not isinstance(name, str):
                continue  # a mistake, and no name
            place = f"{path}.{name}".lstrip(".")
            if name in properties:
                inner = properties[name]
                if isinstance(inner, Mapping) and inner.get("readOnly") is True:
                    continue  # it isn't asked for
                why = self.why_nothing(inner, place)
                if why is not None:
                    return why or f": nothing fits {place!r:.200}, which it requires"
            elif not open_to_others and not schema.get("patternProperties"):
                return f": it requires {place!r:.200}, and forbids it"
        return None


def _find_values(document: Document, schema: Any) -> Iterator[Any]:
    """Values such as a schema takes; none where nothing can be said of them."""
    if not isinstance(schema, Mapping):
        return
    if "const" in schema:
        yield schema["const"]
    elif "enum" in schema:
        yield from list_items(schema["enum"])[:_MOST_VALUES]
    elif schema.get("type") == "array" and schema.get("minItems", 0):  # an empty one has a spelling
        items = schema.get("items")
        inner = document.follow(items, "a schema") if isinstance(items, Mapping) else {}
        kind = inner.get("type")
        if kind in ("object", "array"):
            yield [_OBJECT] if kind == "object" else [["a"]]
