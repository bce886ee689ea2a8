"""`OutputSchema`: what a structured turn asks for, when only a JSON Schema is known."""

# The schema that is sent and the one that validates are two, as for dynamic tools:
#
#   the declared schema                    what is sent
#   -------------------------------------  ----------------------------------------------------
#   is an object                           as declared; `type` and `properties` are filled in
#   is anything else: a list, a text, a    an object whose one property `value` has it
#   union, a reference
#
# What validates is the declared one, held against the value alone.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lutumpy.core.output_spec import OutputSpec
from lutumpy.errors import DeclarationError
from lutumpy.plain.preview import shorten
from lutumpy.rounds.value_shapes import WRAPPED, ReadValue, ValueShape
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema
from lutumpy.tools.argument_report import Path
from lutumpy.tools.definition import TOOL_NAME
from lutumpy.tools.json_schema import JsonSchema, SchemaError
from lutumpy.tools.schema_failures import Mended, mend_values, read_value, write_report
from lutumpy.tools.wrapped_schema import wrap_schema

__all__ = ["OutputSchema"]

_OBJECT_WORDS = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
# With one of these at the root, providers don't take a schema for that of an object.
_OTHER_WORDS = frozenset(
    {"anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "$ref", "$dynamicRef"}
)


class OutputSchema:
    """A JSON Schema that a structured turn asks for; the value is JSON that fits it. A value.

    `session.structured_turn(llm, OutputSchema("route", {...}))`. Needs the extra `schema`.

    Args:
        name: A name for it, as APIs want one; letters, digits, `_` and `-`, 64 at most.
        schema: JSON Schema of any value. Its draft is that of its `$schema`, 2020-12 where it has
            none. It is copied. One that isn't an object's is sent as `{"value": ...}`, as types
            are.
        description: What the model sees of the value, beside the schema.
        strict: Whether the provider should hold the model to the schema; `None` leaves it to the
            adapter, which does where the schema has a strict form.

    Raises:
        DeclarationError: The name or the schema can't be used. References that lead out of the
            schema are refused, and nothing is fetched. So is `strict=True` for a schema that has
            no strict form.
        ImportError: The extra `schema` isn't installed.
    """

    __slots__ = ("_checked", "_shape")

    def __init__(
        self,
        name: str,
        schema: Mapping[str, Any],
        *,
        description: str = "",
        strict: bool | None = None,
    ) -> None:
        checked = _check_schema(name, schema)
        _check_words(name, description, strict)
        sent, wrapped = _schema_to_send(checked.document)
        if strict:
            _check_strict(name, sent)
        spec = OutputSpec(name, sent, description, strict)
        self._checked: JsonSchema = checked
        self._shape: ValueShape = _SchemaShape(spec, checked, wrapped=wrapped)

    @property
    def name(self) -> str:
        """A name for it."""
        return self._shape.name

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as it was declared. Not to be changed."""
        return cast("dict[str, Any]", self._checked.document)

    @property
    def description(self) -> str:
        """What the model is told beside the schema."""
        return self._shape.about

    @property
    def strict(self) -> bool | None:
        """Whether the provider should hold the model to the schema."""
        return self._shape.spec.strict

    @property
    def shape(self) -> ValueShape:
        """How it is asked for and read, for structured turns."""
        return self._shape

    def __reduce__(self) -> Any:
        return _make_again, (self.name, self.schema, self.description, self.strict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OutputSchema):
            return NotImplemented
        return (self.name, self.schema, self.description, self.strict) == (
            other.name,
            other.schema,
            other.description,
            other.strict,
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<OutputSchema {self.name}>"


class _SchemaShape(ValueShape):
    """JSON values that fit a schema.

    Args:
        spec: What is asked for.
        schema: What a value has to fit.
        wrapped: Whether what is asked for holds the value as `value`.
    """

    __slots__ = ("_schema",)

    def __init__(self, spec: OutputSpec, schema: JsonSchema, *, wrapped: bool) -> None:
        super().__init__(spec, wrapped=wrapped, about=spec.description)
        self._schema = schema
        # Unknown properties are allowed where the schema doesn't forbid them.
        self.knows_value = self.knows_value or spec.schema.get("additionalProperties") is not False

    def read_object(self, text: str) -> ReadValue:
        try:
            data = read_value(text)
        except ValueError as error:
            return ReadValue(error=f"it can't be read: {shorten(str(error), 200)}")
        value = data
        place: Path = ()
        if self.wrapped:
            if data.keys() != {WRAPPED}:
                return ReadValue(error=f"an object with {WRAPPED} alone was asked for")
            value, place = data[WRAPPED], (WRAPPED,)
        if self._schema.is_valid(value):
            return ReadValue(value)
        mended = mend_values(self._schema, value)
        if isinstance(mended, Mended):
            return ReadValue(mended.value)
        located = [failure._replace(path=(*place, *failure.path)) for failure in mended]
        return ReadValue(error=write_report(located))


def _make_again(
    name: str, schema: Mapping[str, Any], description: str, strict: bool | None
) -> OutputSchema:
    return OutputSchema(name, schema, description=description, strict=strict)


def _check_schema(name: Any, schema: Any) -> JsonSchema:
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        raise DeclarationError(
            f"{name!r:.100} is not a name of an output schema; a name has 1 to 64 letters, digits, "
            "'_' and '-' of ASCII"
        )
    if not isinstance(schema, Mapping):
        raise DeclarationError(
            f"output schema {name!r}: schema must be a JSON Schema, a mapping, not {schema!r:.100}"
        )
    try:
        return JsonSchema(dict(schema))
    except SchemaError as error:
        raise DeclarationError(f"output schema {name!r} can't be used: {error}") from None


def _check_words(name: str, description: Any, strict: Any) -> None:
    if not isinstance(description, str):
        raise DeclarationError(
            f"output schema {name!r}: description must be text, not {description!r:.100}"
        )
    if strict is not None and not isinstance(strict, bool):
        raise DeclarationError(
            f"output schema {name!r}: strict must be True, False or None, not {strict!r:.100}"
        )


def _schema_to_send(document: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema that providers see, and whether the declared one is wrapped in it."""
    named = document.get("type")
    is_object = named == "object" or (named is None and bool(_OBJECT_WORDS & document.keys()))
    if not is_object or _OTHER_WORDS & document.keys():
        return wrap_schema(document, WRAPPED), True
    if "type" in document and "properties" in document:
        return document, False
    return {**document, "type": "object", "properties": document.get("properties", {})}, False


def _check_strict(name: str, schema: dict[str, Any]) -> None:
    try:
        strict_schema(schema, OPENAI_STRICT)
    except DeclarationError as error:
        raise DeclarationError(f"output schema {name!r}: {error}") from None
