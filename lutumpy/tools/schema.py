"""JSON Schemas of a tool's input and output, in the shape that every provider takes."""

# What is hard here
# -----------------
# Pydantic generates the schemas. What providers and models need differs from that in five ways:
#
#   1. The root is an object with `properties`. A model that holds itself has a `$ref` at the root,
#      which is replaced by what it names (`_inline_root`). Anything that is not an object, such as
#      a union, is wrapped in one whose property `input` holds it (rule D6).
#   2. No titles (rule D4): pydantic makes them of the names, and they cost tokens. A property
#      *named* `title` must stay, so they are dropped schema by schema, not key by key.
#   3. Descriptions are at the properties, wherever the user wrote them (rule D3). For each
#      property the first of these wins:
#
#          Field(description=...)   pydantic's own work
#          the string under a field of the class or a base        attribute_docstrings
#          the entry in the docstring of the class or a base      read_docstring
#          Annotated[..., "..."] or Doc("...")                    annotated_texts
#
#   4. The description of a model is its docstring without the sections that were moved to the
#      properties; at the root there is none, since it is the tool's description.
#   5. Definitions that nothing refers to any more are left out.
#
# Descriptions are added in a subclass of pydantic's generator, and not afterwards to the finished
# schema, because only the generator knows which class a piece of the schema was made of.

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
from pydantic.errors import PydanticErrorMixin, PydanticInvalidForJsonSchema
from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    JsonSchemaWarningKind,
)
from typing_extensions import NotRequired, Required

from lutumpy.errors import DeclarationError
from lutumpy.plain.safe_text import safe_str
from lutumpy.rules.schema_walk import subschemas
from lutumpy.tools.annotations import annotated_texts, type_and_metadata
from lutumpy.tools.docstrings import attribute_docstrings, class_docstring, read_docstring

if TYPE_CHECKING:
    # At run time this loads much of pydantic, which the first model does anyway.
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

# Many tools return one of these, and one adapter serves them all.
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

    A union, or anything else that isn't an object, is wrapped: an object whose one property `input`
    holds it. The model's own docstring isn't in the schema: it is the tool's description.

    Args:
        model: The model of the arguments.
        generator: What generates the schema; it may know more of the arguments than the model says.

    Raises:
        DeclarationError: A field's type has no JSON Schema; the message names the field.
    """
    try:
        schema = model.model_json_schema(schema_generator=generator or Generator)
    except Exception as error:
        field_name = _first_field_without_schema(model)
        about = f"field {field_name!r} of {model.__name__}" if field_name else model.__name__
        raise DeclarationError(f"{about} has no JSON Schema: {reason_of(error)}") from error
    schema = _inline_root(schema)
    schema.pop("description", None)
    for name, field in model.model_fields.items():
        # Pydantic leaves out at the property what the definition it refers to says too, but not
        # every provider shows a model its definitions there.
        entry = schema.get("properties", {}).get(field.alias or name)
        if field.description and entry is not None:
            entry.setdefault("description", field.description)
    if schema.get("type") == "object" and not any(key in schema for key in _COMBINATORS):
        return _order_root(schema), False
    definitions = {key: schema.pop(key) for key in ("$defs",) if key in schema}
    wrapper: Schema = {"type": "object", "properties": {"input": schema}, "required": ["input"]}
    return _order_root({**wrapper, "additionalProperties": False, **definitions}), True


def reference_schema(model: type[BaseModel]) -> dict[str, Schema]:
    """The definitions that a schema needs which refers to `model`: its own, and those it refers to.

    Raises:
        Exception: Pydantic has no JSON Schema for it, or would not refer to it.
    """
    models: Any = list[model]  # type: ignore[valid-type]
    schema = TypeAdapter(models).json_schema(schema_generator=Generator)
    definitions: dict[str, Schema] = schema["$defs"]
    if schema["items"] != {"$ref": f"#/$defs/{model.__name__}"}:
        raise ValueError(f"{model.__name__} isn't referred to by its name")
    return definitions


def output_adapter(output_type: Any, names: Mapping[str, Any]) -> TypeAdapter[Any]:
    """What validates and serializes results of a type.

    Args:
        output_type: The type.
        names: The names that can be used where the tool is declared.

    Raises:
        DeclarationError: Pydantic knows no schema for the type.
    """
    if output_type in _PLAIN_OUTPUTS:
        return _plain_adapter(output_type)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        if not getattr(adapter, "pydantic_complete", True):
            adapter.rebuild(_types_namespace=names)
    except Exception as error:
        raise _without_schema(output_type, error) from error
    return adapter


def output_schema(output_type: Any, adapter: TypeAdapter[Any]) -> Schema | None:
    """The schema of what a tool returns, as it is serialized; `None` when it returns nothing.

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
        raise _without_schema(output_type, error) from error
    return _inline_root(schema)


@functools.cache
def _plain_adapter(output_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(output_type)


def _without_schema(output_type: Any, error: Exception) -> DeclarationError:
    name = output_type.__name__ if isinstance(output_type, type) else str(output_type)
    return DeclarationError(f"the output type {name} has no JSON Schema: {reason_of(error)}")


def reason_of(error: Exception) -> str:
    """The first sentence of pydantic's message, without its link.

    For the developer, never for a model.
    """
    text = error.message if isinstance(error, PydanticErrorMixin) else safe_str(error)
    return re.split(r"\n|\. ", text.strip(), maxsplit=1)[0] or type(error).__name__


def user_bases(cls: type) -> Iterator[type]:
    """`cls` and its bases as far as users wrote them, nearest first."""
    for base in cls.__mro__:
        package = base.__module__.split(".")[0]
        if base in (object, BaseModel) or package in ("pydantic", "typing", "lutumpy"):
            continue
        yield base


class Generator(GenerateJsonSchema):
    """Pydantic's generator, which also reads the docstrings of classes and makes no titles."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def render_warning_message(self, kind: JsonSchemaWarningKind, detail: str) -> str | None:
        # No warning, such as for a default that JSON can't express: the schema leaves it out, and
        # it still is the default.
        return None

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        if not isinstance(encoded, (list, dict)):
            return encoded
        from lutumpy.tools.set_order import sort_sets  # few defaults hold anything

        # Equal declarations give equal bytes, in every process (rule A4).
        return sort_sets(dft, encoded)

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        generated = super().generate(schema, mode=mode)
        _drop_titles(generated)
        return generated

    def generator_schema(self, schema: Any) -> JsonSchemaValue:
        # Pydantic validates an `Iterable` while somebody iterates, and that can be done once: the
        # first hook that looks at such an argument leaves nothing of it to the tool.
        if self.mode == "validation":
            raise PydanticInvalidForJsonSchema(
                "an Iterable is validated only while it is read, and can be read once; "
                "write list[...] or Sequence[...] in its place"
            )
        return super().generator_schema(schema)

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        cls: type[BaseModel] = schema["cls"]
        if not cls.__pydantic_root_model__:
            _describe_properties(generated, cls, cls.model_fields)
        # Of `Page[int]` pydantic doesn't know what is said of `Page`.
        if not vars(cls).get("__doc__") and (text := class_docstring(cls)):
            described = read_docstring(text, cls.model_fields).description
            if described:
                generated.setdefault("description", described)
        return generated

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().dataclass_schema(schema)
        _describe_properties(generated, schema["cls"], {})
        return generated

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().typed_dict_schema(schema)
        if isinstance(cls := schema.get("cls"), type):
            _describe_properties(generated, cls, {})
        return generated


# --- descriptions -------------------------------------------------------------------------------


def _describe_properties(schema: Schema, cls: type, fields: Mapping[str, FieldInfo]) -> None:
    """Describe the properties that pydantic found no description for, as far as `cls` has one.

    Args:
        schema: The schema of the class; its properties are changed.
        cls: The class.
        fields: Its fields, where pydantic knows of any: a dataclass and a `TypedDict` have none.
    """
    properties: dict[str, Schema] = schema.get("properties", {})
    # A property has the name of its field, or one of its aliases.
    keys = {
        name: next((alias for alias in aliases(field) if alias in properties), name)
        for name, field in fields.items()
    }
    keys.update((name, name) for name in properties if name not in keys.values())
    _describe_by_docstrings(schema, cls, properties, keys)
    for name, key in keys.items():
        entry = properties.get(key)
        if entry is not None and "description" not in entry:
            metadata = fields[name].metadata if name in fields else _field_metadata(cls, name)
            if texts := annotated_texts(metadata):
                entry["description"] = texts[0]


def _field_metadata(cls: type, name: str) -> tuple[Any, ...]:
    """What `Annotated` holds beside the type of a field of a dataclass or `TypedDict`."""
    try:
        hint = typing.get_type_hints(cls, include_extras=True)[name]
    except Exception:  # it names something that only pydantic was given
        return ()
    while get_origin(hint) in (Required, NotRequired):
        hint = get_args(hint)[0]
    return type_and_metadata(hint)[1]


def _describe_by_docstrings(
    schema: Schema, cls: type, properties: Mapping[str, Schema], keys: Mapping[str, str]
) -> None:
    for base in user_bases(cls):
        # Reading source is slow; where nothing is left to describe, there is nothing to read for.
        if not any("description" not in entry for entry in properties.values()):
            return
        text = base.__dict__.get("__doc__")
        docs = read_docstring(text, [*keys, *keys.values()]) if isinstance(text, str) else None
        under_fields = {} if MADE_HERE in base.__dict__ else attribute_docstrings(base)
        for texts in (under_fields, docs.params if docs else {}):
            for name, description in texts.items():
                entry = properties.get(keys.get(name, name))
                if entry is not None and description:
                    entry.setdefault("description", description)
        if docs and docs.params and base is cls:
            # Pydantic takes the whole docstring for the description. What its sections say is
            # at the properties now.
            whole = inspect.cleandoc(text or "")
            if schema.get("description") == whole:
                schema["description"] = docs.description


def aliases(field: FieldInfo) -> Iterator[str]:
    """The keys that a field may have in place of its name."""
    for alias in (field.validation_alias, field.serialization_alias, field.alias):
        for choice in alias.choices if isinstance(alias, AliasChoices) else (alias,):
            if isinstance(choice, AliasPath):
                choice = str(choice.path[0])
            if choice is not None:
                yield choice


# --- the shape of the whole ---------------------------------------------------------------------


def _drop_titles(schema: Schema) -> None:
    schema.pop("title", None)
    for _, inner in subschemas(schema):
        _drop_titles(inner)


def _inline_root(schema: Schema) -> Schema:
    """`schema` with what a reference at its root names, and without unused definitions."""
    root = dict(schema)
    definitions: Schema = root.pop("$defs", {})
    # A definition may be a reference in turn; more steps than definitions would be a circle.
    for _ in range(len(definitions) + 1):
        if isinstance(ref := root.get("$ref"), str):
            siblings = {key: value for key, value in root.items() if key != "$ref"}
            root = {**copy.deepcopy(definitions[ref.removeprefix("#/$defs/")]), **siblings}
        elif len(entries := root.get("allOf", ())) == 1:
            siblings = {key: value for key, value in root.items() if key != "allOf"}
            root = {**entries[0], **siblings}
        else:
            break
    if not definitions:
        return root  # nothing to keep, and nothing to look for
    used: set[str] = set()
    waiting = list(_references(root))
    while waiting:
        name = waiting.pop().removeprefix("#/$defs/")
        if name in definitions and name not in used:
            used.add(name)
            waiting.extend(_references(definitions[name]))
    if used:
        root["$defs"] = {name: entry for name, entry in definitions.items() if name in used}
    return root


def _references(schema: Schema) -> Iterator[str]:
    if isinstance(ref := schema.get("$ref"), str):
        yield ref
    for _, inner in subschemas(schema):
        yield from _references(inner)


_ROOT_ORDER = ("type", "properties", "required", "additionalProperties")


def _order_root(schema: Schema) -> Schema:
    """An object's schema in the order in which a reader wants it, `properties` always there."""
    schema.setdefault("properties", {})
    first = {key: schema[key] for key in _ROOT_ORDER if key in schema}
    return {**first, **{key: value for key, value in schema.items() if key not in first}}


def _first_field_without_schema(model: type[BaseModel]) -> str | None:
    """The first field whose type alone has no JSON Schema: pydantic's error doesn't name it."""
    for name, field in model.model_fields.items():
        annotation: Any = field.annotation
        try:
            TypeAdapter(annotation).json_schema(schema_generator=Generator)
        except Exception:
            return name
    return None
