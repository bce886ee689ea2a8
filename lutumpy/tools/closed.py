"""Input classes that refuse unknown arguments, as functions do, while the user's class stays as it is (rule D10).

A pydantic model drops what it doesn't know unless its config sets `extra`. Setting it on the class would change what
the class does elsewhere, and a subclass would give calls inputs of another class. So the class's core schema is copied
along one path, from its root to the fields of the input class or of the branches of a root union. In the copy the
fields forbid what is unknown; a validator and a JSON Schema are made from that copy. Nested models are not on the path
and follow their own config, also where the input class holds itself: the copy at the root goes by another reference.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue
from pydantic_core import InitErrorDetails, SchemaValidator, ValidationError, core_schema

from lutumpy.tools.schema import Generator, aliases

if TYPE_CHECKING:
    from pydantic.plugin._schema_validator import PluggableSchemaValidator

__all__ = ["ClosedGenerator", "closed_schema", "closed_validator"]

CoreSchema = dict[str, Any]

# In the metadata of a core schema: this object takes no unknown keys, although its class says nothing of it.
_CLOSED = "lutumpy_closed"

# Schemas that hold what they are about under `schema`, as far as arguments pass through them.
_WRAPPERS = frozenset({"default", "function-after", "function-before", "function-wrap", "nullable"})
_OBJECTS = frozenset({"dataclass", "model", "typed-dict"})

_BUILDING = threading.RLock()


def closed_schema(schema: Any) -> Any:
    """A core schema in which the root object, or the branches of a root union, forbid unknown keys.

    It is `schema` itself where there is nothing to change: where the classes set `extra`, or where no object is at
    the root.
    """
    return _Closing(schema).result


def closed_validator(
    input_type: type[BaseModel], *, wrapped: bool = False
) -> SchemaValidator | PluggableSchemaValidator:
    """The validator of a tool's arguments; with `wrapped`, of an object whose one key `input` holds them (rule D6)."""
    closing = _Closing(cast("CoreSchema", input_type.__pydantic_core_schema__))
    schema = closing.result
    if not wrapped:
        if schema is input_type.__pydantic_core_schema__:
            return input_type.__pydantic_validator__
        return _build(schema, closing.classes)
    definitions: list[Any] = []
    if schema["type"] == "definitions":
        schema, definitions = schema["schema"], schema["definitions"]
    fields = {"input": core_schema.typed_dict_field(cast("Any", schema))}
    whole: Any = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
    return _build(
        core_schema.definitions_schema(whole, definitions) if definitions else whole,
        closing.classes,
    )


def _build(schema: Any, classes: list[type]) -> SchemaValidator:
    """The validator of a copied schema.

    Where a schema names a class whose validator is complete, pydantic-core takes that one in place of the schema, in some
    releases without a way to say otherwise. So the classes that were copied are marked as incomplete meanwhile. A class
    of the same name would do as well, but its instances would not be the user's.
    """
    with _BUILDING:
        complete = [cls for cls in classes if vars(cls).get("__pydantic_complete__")]
        try:
            for cls in complete:
                type.__setattr__(cls, "__pydantic_complete__", False)
            return SchemaValidator(schema)
        finally:
            for cls in complete:
                type.__setattr__(cls, "__pydantic_complete__", True)


class ClosedGenerator(Generator):
    """Generates the JSON Schema of a tool's arguments: objects that forbid unknown keys say so."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        return super().generate(closed_schema(schema), mode=mode)

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _said(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _said(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _said(schema, super().typed_dict_schema(schema))


def _said(schema: CoreSchema, generated: JsonSchemaValue) -> JsonSchemaValue:
    if _CLOSED in schema.get("metadata", ()):
        generated.setdefault("additionalProperties", False)
    return generated


class _Closing:
    """One copy of one schema."""

    def __init__(self, schema: CoreSchema) -> None:
        found: list[CoreSchema] = schema["definitions"] if schema["type"] == "definitions" else []
        self.definitions: Mapping[str, CoreSchema] = {entry["ref"]: entry for entry in found}
        self.entered: set[str] = set()
        self.classes: list[type] = []  # those whose schemas were copied
        self.result: CoreSchema = self.close(schema, at_root=True)

    def close(self, schema: CoreSchema, *, at_root: bool) -> CoreSchema:
        kind = schema["type"]
        if kind == "definition-ref":
            ref = schema["schema_ref"]
            if ref in self.entered or ref not in self.definitions:
                return schema  # a union that is a branch of itself
            self.entered.add(ref)
            closed = self.close(self.definitions[ref], at_root=at_root)
            self.entered.discard(ref)
            return schema if closed is self.definitions[ref] else closed
        if kind in ("union", "tagged-union"):
            return self._with_choices(schema)
        if (
            kind in _WRAPPERS
            or kind == "definitions"
            or (kind == "model" and schema.get("root_model"))
        ):
            inner = self.close(schema["schema"], at_root=at_root)
            if inner is schema["schema"]:
                return schema
            return self._renamed({**schema, "schema": inner}, at_root=at_root)
        if kind in _OBJECTS and _leaves_extra_open(schema):
            return self._renamed(_closed_object(schema), at_root=at_root)
        return schema

    def _with_choices(self, schema: CoreSchema) -> CoreSchema:
        choices: Any = schema["choices"]
        if isinstance(choices, dict):
            by_tag = cast("dict[Any, CoreSchema]", choices)
            closed: Any = {tag: self.close(choice, at_root=False) for tag, choice in by_tag.items()}
        else:
            closed = [self._choice(choice) for choice in choices]
        return {**schema, "choices": closed}

    def _choice(self, choice: Any) -> Any:
        if isinstance(choice, tuple):  # with a label
            labelled = cast("tuple[CoreSchema, str]", choice)
            return self.close(labelled[0], at_root=False), labelled[1]
        return self.close(choice, at_root=False)

    def _renamed(self, schema: CoreSchema, *, at_root: bool) -> CoreSchema:
        """`schema` as a copy, which isn't what others mean by the reference.

        Behind the last colon of a reference stands an id, which no name in a JSON Schema is made of.
        """
        if isinstance(cls := schema.get("cls"), type):
            self.classes.append(cls)
        if "ref" not in schema:
            return schema
        out = {key: value for key, value in schema.items() if key != "ref"}
        return out if at_root else {**out, "ref": f"{schema['ref']}c"}


def _closed_object(schema: CoreSchema) -> CoreSchema:
    """`schema` of a model, dataclass or typed dictionary with its fields closed."""
    metadata = {**schema.get("metadata", {}), _CLOSED: True}
    if schema["type"] == "typed-dict":
        return {**schema, "extra_behavior": "forbid", "metadata": metadata}
    closed = {**schema, "schema": _closed_fields(schema["schema"]), "metadata": metadata}
    if not schema.get("custom_init"):
        return closed
    # An `__init__` of the user's own is given every key, and calls the class's validator, which drops the unknown ones.
    return core_schema.no_info_before_validator_function(_key_check(schema), cast("Any", closed))  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def _closed_fields(schema: CoreSchema) -> CoreSchema:
    if schema["type"] in _WRAPPERS:
        return {**schema, "schema": _closed_fields(schema["schema"])}
    if schema["type"] in ("model-fields", "dataclass-args"):
        return {**schema, "extra_behavior": "forbid"}
    return schema  # a schema of the user's own making


def _leaves_extra_open(schema: CoreSchema) -> bool:
    """Whether the class says nothing of unknown keys, so that pydantic would drop them."""
    cls: Any = schema.get("cls")
    if schema["type"] == "model":
        return cls.model_config.get("extra") is None
    config: Mapping[str, Any] = getattr(cls, "__pydantic_config__", None) or {}
    return config.get("extra") is None and schema.get("extra_behavior", "ignore") == "ignore"


def _key_check(schema: CoreSchema) -> Callable[[Any], Any]:
    """Refuses keys that are neither fields nor parameters of the class's own `__init__`."""
    cls: type[BaseModel] = schema["cls"]
    known = {
        parameter.name
        for parameter in inspect.signature(cls.__init__).parameters.values()
        if _is_named(parameter)
    }
    for name, field in cls.model_fields.items():
        known |= {name, *aliases(field)}

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        keys = cast("dict[str, Any]", value)
        strangers = [key for key in keys if key not in known]
        if strangers:
            errors = [
                InitErrorDetails(type="extra_forbidden", loc=(key,), input=keys[key])
                for key in strangers
            ]
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return keys

    return check


def _is_named(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
