"""JSON Schemas of a tool's input and output, in the shape that every provider takes.

The root is always an object with `properties`; titles are left out; what docstrings say stands at the properties.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, TypeAdapter
from pydantic.errors import PydanticErrorMixin
from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    JsonSchemaWarningKind,
)
from typing_extensions import NotRequired, Required

from lutumpy.core.safe_text import safe_str
from lutumpy.errors import DeclarationError
from lutumpy.rules.subschemas import subschemas
from lutumpy.tools.annotations import annotated_texts, type_and_metadata
from lutumpy.tools.docstrings import attribute_docstrings, read_docstring

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "Generator",
    "aliases",
    "input_schema",
    "output_adapter",
    "output_schema",
    "reason_of",
    "reference_schema",
    "user_bases",
]

Schema = dict[str, Any]

MADE_HERE = "__lutumpy_made_here__"
"""Set on models that were made from a signature: there is no source of theirs to read."""

# Tools of these are many, and one adapter serves them all.
_PLAIN_OUTPUTS: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}

_COMBINATORS = ("anyOf", "oneOf", "allOf", "not", "enum", "const")


def input_schema(
    model: type[BaseModel], generator: type[Generator] | None = None
) -> tuple[Schema, bool]:
    """The schema of a tool's arguments, and whether it is wrapped (rule D6).

    Args:
        model: The model of the arguments.
        generator: What generates the schema; it may know more of the arguments than the model says.

    A union, or anything else that isn't an object, is wrapped: an object whose one property `input` holds it. The
    model's own docstring isn't in the schema: it is the tool's description.

    Raises:
        DeclarationError: A field's type has no JSON Schema; the message names the field.
    """
    try:
        schema = model.model_json_schema(schema_generator=generator or Generator)
    except Exception as error:
        culprit = _culprit(model)
        about = f"field {culprit!r} of {model.__name__}" if culprit else model.__name__
        raise DeclarationError(f"{about} has no JSON Schema: {reason_of(error)}") from error
    schema = _plain_root(schema)
    schema.pop("description", None)
    for name, field in model.model_fields.items():
        # Pydantic leaves out what a definition says too, but not every provider shows a model its definitions there.
        entry = schema.get("properties", {}).get(field.alias or name)
        if field.description and entry is not None:
            entry.setdefault("description", field.description)
    if schema.get("type") == "object" and not any(key in schema for key in _COMBINATORS):
        return _ordered(schema), False
    definitions = {key: schema.pop(key) for key in ("$defs",) if key in schema}
    wrapper: Schema = {"type": "object", "properties": {"input": schema}, "required": ["input"]}
    return _ordered({**wrapper, "additionalProperties": False, **definitions}), True


def reference_schema(model: type[BaseModel]) -> dict[str, Schema]:
    """The definitions that a schema needs which refers to `model`: its own, and those it refers to in turn.

    Raises:
        Exception: pydantic has no JSON Schema for it, or would not refer to it.
    """
    schema = TypeAdapter(list[model]).json_schema(schema_generator=Generator)  # type: ignore[valid-type]
    definitions: dict[str, Schema] = schema["$defs"]
    if schema["items"] != {"$ref": f"#/$defs/{model.__name__}"}:
        raise ValueError(f"{model.__name__} isn't referred to by its name")
    return definitions


def output_adapter(output_type: Any, names: Mapping[str, Any]) -> TypeAdapter[Any]:
    """What validates and serializes results of `output_type`; `names` are those where the tool is declared.

    Raises:
        DeclarationError: pydantic knows no schema for the type.
    """
    if output_type in _PLAIN_OUTPUTS:
        return _plain_adapter(output_type)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        if not getattr(adapter, "pydantic_complete", True):
            adapter.rebuild(_types_namespace=names)
    except Exception as error:
        raise DeclarationError(
            f"the output type {_name(output_type)} has no JSON Schema: {reason_of(error)}"
        ) from error
    return adapter


def output_schema(output_type: Any, adapter: TypeAdapter[Any]) -> Schema | None:
    """The schema of what a tool returns, as it is serialized; `None` for a tool that returns nothing.

    Raises:
        DeclarationError: The type has no JSON Schema.
    """
    if output_type is NoneType:
        return None
    if output_type in _PLAIN_OUTPUTS:
        return {"type": _PLAIN_OUTPUTS[output_type]}
    try:
        schema = adapter.json_schema(schema_generator=Generator, mode="serialization")
    except Exception as error:
        raise DeclarationError(
            f"the output type {_name(output_type)} has no JSON Schema: {reason_of(error)}"
        ) from error
    return _plain_root(schema)


@functools.cache
def _plain_adapter(output_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(output_type)


def _name(output_type: Any) -> str:
    return output_type.__name__ if isinstance(output_type, type) else str(output_type)


def reason_of(error: Exception) -> str:
    """The first sentence of pydantic's message, without its link; for the developer, never for a model."""
    text = error.message if isinstance(error, PydanticErrorMixin) else safe_str(error)
    return re.split(r"\n|\. ", text.strip(), maxsplit=1)[0] or type(error).__name__


def user_bases(cls: type) -> Iterator[type]:
    """`cls` and its bases as far as users wrote them, nearest first."""
    for base in cls.__mro__:
        if base in (object, BaseModel) or base.__module__.split(".")[0] in (
            "pydantic",
            "typing",
            "lutumpy",
        ):
            continue
        yield base


class Generator(GenerateJsonSchema):
    """Pydantic's generator, which also reads the docstrings of the classes it meets and sets no titles of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def render_warning_message(self, kind: JsonSchemaWarningKind, detail: str) -> str | None:
        return None  # such as a default without JSON form: it is left out of the schema, and still the default

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        generated = super().generate(schema, mode=mode)
        _drop_titles(generated)
        return generated

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        cls: type[BaseModel] = schema["cls"]
        if not cls.__pydantic_root_model__:
            _describe(generated, cls, cls.model_fields)
        return generated

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().dataclass_schema(schema)
        _describe(generated, schema["cls"], {})
        return generated

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().typed_dict_schema(schema)
        if isinstance(cls := schema.get("cls"), type):
            _describe(generated, cls, {})
        return generated


def _describe(schema: Schema, cls: type, fields: Mapping[str, FieldInfo]) -> None:
    """Put what `cls` says of its fields where the properties of its schema have no description of their own.

    Its docstrings come first, then the texts in `Annotated`.
    """
    properties: dict[str, Schema] = schema.get("properties", {})
    keys = {
        name: next((a for a in aliases(field) if a in properties), name)
        for name, field in fields.items()
    }
    keys.update((name, name) for name in properties if name not in keys.values())
    _describe_by_docstrings(schema, cls, properties, keys)
    for name, key in keys.items():
        entry = properties.get(key)
        if entry is not None and "description" not in entry:
            metadata = fields[name].metadata if name in fields else _metadata(cls, name)
            if texts := annotated_texts(metadata):
                entry["description"] = texts[0]


def _metadata(cls: type, name: str) -> tuple[Any, ...]:
    """What stands beside the type of a field of a dataclass or `TypedDict`."""
    try:
        hint = typing.get_type_hints(cls, include_extras=True)[name]
    except Exception:  # names that only pydantic was told of
        return ()
    while get_origin(hint) in (Required, NotRequired):
        hint = get_args(hint)[0]
    return type_and_metadata(hint)[1]


def _describe_by_docstrings(
    schema: Schema, cls: type, properties: Mapping[str, Schema], keys: Mapping[str, str]
) -> None:
    for base in user_bases(cls):
        if not any("description" not in entry for entry in properties.values()):
            return
        text = base.__dict__.get("__doc__")
        docs = read_docstring(text, [*keys, *keys.values()]) if isinstance(text, str) else None
        said = {} if MADE_HERE in base.__dict__ else attribute_docstrings(base)
        for texts in (said, docs.params if docs else {}):
            for name, description in texts.items():
                entry = properties.get(keys.get(name, name))
                if entry is not None and description:
                    entry.setdefault("description", description)
        if (
            docs
            and docs.params
            and base is cls
            and schema.get("description") == inspect.cleandoc(text or "")
        ):
            schema["description"] = docs.description


def aliases(field: FieldInfo) -> Iterator[str]:
    """The keys that a field may have in place of its name."""
    for alias in (field.validation_alias, field.serialization_alias, field.alias):
        for choice in alias.choices if isinstance(alias, AliasChoices) else (alias,):
            if isinstance(choice, AliasPath):
                choice = str(choice.path[0])
            if choice is not None:
                yield choice


def _drop_titles(schema: Schema) -> None:
    """Leave out every title; a property that is named `title` isn't one."""
    schema.pop("title", None)
    for _, inner in subschemas(schema):
        _drop_titles(inner)


def _plain_root(schema: Schema) -> Schema:
    """`schema` with a reference at its root replaced by what it names, and without definitions that nothing uses."""
    root = dict(schema)
    definitions: Schema = root.pop("$defs", {})
    for _ in range(len(definitions) + 1):
        if isinstance(ref := root.get("$ref"), str):
            siblings = {key: value for key, value in root.items() if key != "$ref"}
            root = {**copy.deepcopy(definitions[ref.removeprefix("#/$defs/")]), **siblings}
        elif len(entries := root.get("allOf", ())) == 1:
            siblings = {key: value for key, value in root.items() if key != "allOf"}
            root = {**entries[0], **siblings}
        else:
            break
    used: set[str] = set()
    waiting = list(_refs(root))
    while waiting:
        name = waiting.pop().removeprefix("#/$defs/")
        if name in definitions and name not in used:
            used.add(name)
            waiting.extend(_refs(definitions[name]))
    if used:
        root["$defs"] = {name: entry for name, entry in definitions.items() if name in used}
    return root


def _refs(schema: Schema) -> Iterator[str]:
    if isinstance(ref := schema.get("$ref"), str):
        yield ref
    for _, inner in subschemas(schema):
        yield from _refs(inner)


_ROOT_ORDER = ("type", "properties", "required", "additionalProperties")


def _ordered(schema: Schema) -> Schema:
    """An object's schema in the order in which a reader wants it, `properties` always there."""
    schema.setdefault("properties", {})
    first = {key: schema[key] for key in _ROOT_ORDER if key in schema}
    return {**first, **{key: value for key, value in schema.items() if key not in first}}


def _culprit(model: type[BaseModel]) -> str | None:
    """The first field whose type alone has no JSON Schema."""
    return next(
        (name for name, field in model.model_fields.items() if not _has_schema(field.annotation)),
        None,
    )


def _has_schema(annotation: Any) -> bool:
    try:
        TypeAdapter(annotation).json_schema(schema_generator=Generator)
    except Exception:
        return False
    return True
