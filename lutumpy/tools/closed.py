"""Input classes that refuse unknown arguments, as functions do, while the class stays as it is."""

# What is hard here (rule D10)
# ----------------------------
# A pydantic model drops what it doesn't know unless its config sets `extra`. Three ways to change
# that for a tool's input were not taken: setting `extra` on the class would change what the class
# does elsewhere; a subclass would give calls inputs of another class; looking for unknown keys
# before validation would have to know aliases, unions and discriminators again.
#
# So the class's *core schema* is copied, along one path: from its root to the fields of the input
# class, or of each branch where the root is a union.
#
#   definitions -> default, nullable, function -> root model -> union -> model -> fields
#   '------------- copied as they are, with a closed schema inside ----'          forbid extra
#
# In the copy those fields forbid unknown keys; a validator and a JSON Schema are made from it.
# Nested models are not on the path and follow their own config. That holds also where the input
# class holds itself: there the schema refers to it by name, so the copy at the root gives up its
# name, and a copy in a branch gets another one. And a class whose own config sets `extra` is left
# as it is.

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue
from pydantic_core import InitErrorDetails, SchemaValidator, ValidationError, core_schema

from lutumpy.plain.signatures import signature_of
from lutumpy.tools.schema import Generator, aliases

if TYPE_CHECKING:
    from pydantic.plugin._schema_validator import PluggableSchemaValidator

__all__ = ["ClosedGenerator", "closed_schema", "closed_validator"]

CoreSchema = dict[str, Any]

# In the metadata of a core schema: this object takes no unknown keys, although its class says
# nothing of it.
_CLOSED = "lutumpy_closed"

# Schemas that hold what they are about under `schema`, as far as arguments pass through them.
_WRAPPERS = frozenset({"default", "function-after", "function-before", "function-wrap", "nullable"})
_OBJECTS = frozenset({"dataclass", "model", "typed-dict"})

_BUILDING = threading.RLock()


def closed_schema(schema: Any) -> Any:
    """A core schema in which the root object, or the branches of a root union, forbid unknown keys.

    It is `schema` itself where there is nothing to change: where the classes set `extra`, or where
    there is no object at the root.
    """
    return _ClosedCopy(schema).result


def closed_validator(
    input_type: type[BaseModel], *, wrapped: bool = False
) -> SchemaValidator | PluggableSchemaValidator:
    """The validator of a tool's arguments.

    With `wrapped`, it validates an object whose one key `input` holds the arguments (rule D6).
    """
    copy = _ClosedCopy(cast("CoreSchema", input_type.__pydantic_core_schema__))
    schema = copy.result
    if not wrapped:
        if schema is input_type.__pydantic_core_schema__:
            return input_type.__pydantic_validator__
        return _build_validator(schema, copy.classes)
    definitions: list[Any] = []
    if schema["type"] == "definitions":
        schema, definitions = schema["schema"], schema["definitions"]
    fields = {"input": core_schema.typed_dict_field(cast("Any", schema))}
    whole: Any = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
    return _build_validator(
        core_schema.definitions_schema(whole, definitions) if definitions else whole,
        copy.classes,
    )


def _build_validator(schema: Any, classes: list[type]) -> SchemaValidator:
    """The validator of a copied schema.

    Where a schema names a class whose validator is complete, pydantic-core takes that validator in
    place of the schema, in some releases without a way to say otherwise. So the classes that were
    copied are marked as incomplete meanwhile. Naming another class in the schema would do as well,
    but then the inputs would not be instances of the user's.
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
        return _forbid_extra(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _forbid_extra(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _forbid_extra(schema, super().typed_dict_schema(schema))


def _forbid_extra(schema: CoreSchema, generated: JsonSchemaValue) -> JsonSchemaValue:
    if _CLOSED in schema.get("metadata", ()):
        generated.setdefault("additionalProperties", False)
    return generated


class _ClosedCopy:
    """A copy of one core schema with its root closed.

    `entered` holds the references that are being followed, so that a union that is a branch of
    itself ends.
    """

    def __init__(self, schema: CoreSchema) -> None:
        found: list[CoreSchema] = schema["definitions"] if schema["type"] == "definitions" else []
        self.definitions: Mapping[str, CoreSchema] = {entry["ref"]: entry for entry in found}
        self.entered: set[str] = set()
        # The classes whose schemas were copied.
        self.classes: list[type] = []
        self.result: CoreSchema = self.close(schema, at_root=True)

    def close(self, schema: CoreSchema, *, at_root: bool) -> CoreSchema:
        kind = schema["type"]
        if kind == "definition-ref":
            ref = schema["schema_ref"]
            if ref in self.entered or ref not in self.definitions:
                return schema
            self.entered.add(ref)
            closed = self.close(self.definitions[ref], at_root=at_root)
            self.entered.discard(ref)
            return schema if closed is self.definitions[ref] else closed
        if kind in ("union", "tagged-union"):
            return self._close_choices(schema)
        if (
            kind in _WRAPPERS
            or kind == "definitions"
            or (kind == "model" and schema.get("root_model"))
        ):
            inner = self.close(schema["schema"], at_root=at_root)
            if inner is schema["schema"]:
                return schema
            return self._rename_copy({**schema, "schema": inner}, at_root=at_root)
        if kind in _OBJECTS and _leaves_extra_open(schema):
            return self._rename_copy(_close_object(schema), at_root=at_root)
        return schema

    def _close_choices(self, schema: CoreSchema) -> CoreSchema:
        choices: Any = schema["choices"]
        if isinstance(choices, dict):
            by_tag = cast("dict[Any, CoreSchema]", choices)
            closed: Any = {tag: self.close(choice, at_root=False) for tag, choice in by_tag.items()}
        else:
            closed = [self._close_choice(choice) for choice in choices]
        return {**schema, "choices": closed}

    def _close_choice(self, choice: Any) -> Any:
        if isinstance(choice, tuple):  # with a label
            labelled = cast("tuple[CoreSchema, str]", choice)
            return self.close(labelled[0], at_root=False), labelled[1]
        return self.close(choice, at_root=False)

    def _rename_copy(self, schema: CoreSchema, *, at_root: bool) -> CoreSchema:
        """A copied schema under another reference: what refers to the old one means the original.

        Behind the last colon of a reference is an id, which isn't part of the names in a JSON
        Schema; a letter more at its end changes no name.
        """
        if isinstance(cls := schema.get("cls"), type):
            self.classes.append(cls)
        if "ref" not in schema:
            return schema
        out = {key: value for key, value in schema.items() if key != "ref"}
        return out if at_root else {**out, "ref": f"{schema['ref']}c"}


def _close_object(schema: CoreSchema) -> CoreSchema:
    """`schema` of a model, dataclass or typed dictionary with its fields closed."""
    metadata = {**schema.get("metadata", {}), _CLOSED: True}
    if schema["type"] == "typed-dict":
        return {**schema, "extra_behavior": "forbid", "metadata": metadata}
    closed = {**schema, "schema": _close_fields(schema["schema"]), "metadata": metadata}
    if not schema.get("custom_init"):
        return closed
    # An `__init__` of the user's own is given every key, and calls the class's validator, which
    # drops the unknown ones. So the keys are checked before.
    check: Any = core_schema.no_info_before_validator_function(
        _refuse_unknown_keys(schema), cast("Any", closed)
    )
    return cast("CoreSchema", check)


def _close_fields(schema: CoreSchema) -> CoreSchema:
    if schema["type"] in _WRAPPERS:
        return {**schema, "schema": _close_fields(schema["schema"])}
    if schema["type"] in ("model-fields", "dataclass-args"):
        return {**schema, "extra_behavior": "forbid"}
    return schema  # the user made it, by `__get_pydantic_core_schema__`


def _leaves_extra_open(schema: CoreSchema) -> bool:
    """Whether the class says nothing of unknown keys, so that pydantic would drop them."""
    cls: Any = schema.get("cls")
    if schema["type"] == "model":
        return cls.model_config.get("extra") is None
    config: Mapping[str, Any] = getattr(cls, "__pydantic_config__", None) or {}
    return config.get("extra") is None and schema.get("extra_behavior", "ignore") == "ignore"


def _refuse_unknown_keys(schema: CoreSchema) -> Callable[[Any], Any]:
    """A validator that refuses keys which are neither fields nor parameters of `__init__`."""
    cls: type[BaseModel] = schema["cls"]
    known = {
        parameter.name
        for parameter in signature_of(cls.__init__).parameters.values()
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
