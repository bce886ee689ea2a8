"""The JSON Schema of plain parameters, without building a model for it."""

# Most tools take texts, numbers, lists of these, and models. For them the schema is written down
# here, the very one that pydantic would generate, and the model of the arguments is made when the
# first call comes: declaring such a tool takes an eighth of the time. Everything else is left to
# pydantic, so each function either gives a schema that is surely pydantic's, or raises
# `_LeftToPydantic`; it never guesses. A test holds the two ways together on generated signatures.
#
#   written here                                     left to pydantic, among others
#   -----------------------------------------------  --------------------------------------------
#   str, int, float, bool, None                      their subclasses, enums, dates, `Any`
#   list[X], dict[str, X]                            bare `list`, other keys, `dict[str, Any]`
#   Literal of two strings or more                   Literal of one value, or of other values
#   X | Y of different schemas                       a union with equal branches
#   a model whose name is its own and is complete    root models, generics, two models of one name
#   defaults: None, str, int, bool, finite float,    any other default
#   an empty list or dict
#
# Keys of an entry are sorted, as pydantic sorts them: equal schemas then are equal bytes.

from __future__ import annotations

import types
from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from lutumpy.tools.schema import Schema, reference_schema

__all__ = ["plain_schema"]

_SCALARS: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_UNIONS = (Union, types.UnionType)
_REQUIRED = ...

# The definitions of a model that parameters refer to, and of those it needs, by name: generating
# them is slow, and many tools take the same model. An entry goes with its class.
_DEFINITIONS: WeakKeyDictionary[type, Mapping[str, Schema]] = WeakKeyDictionary()


class _LeftToPydantic(Exception):
    """Only pydantic knows the schema of this."""


def plain_schema(
    parameters: Mapping[str, tuple[Any, Any]], descriptions: Mapping[str, str]
) -> Schema | None:
    """The schema of an object with these properties, or `None` when only pydantic knows it.

    Args:
        parameters: Type and default (`...` for none) by name.
        descriptions: Descriptions by name.
    """
    definitions: dict[str, Schema] = {}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    try:
        for name, (hint, default) in parameters.items():
            entry = _write_type(hint, definitions)
            if default is _REQUIRED:
                required.append(name)
            else:
                entry["default"] = _write_default(default)
            if description := descriptions.get(name):
                entry["description"] = description
            properties[name] = dict(sorted(entry.items())) if len(entry) > 1 else entry
    except _LeftToPydantic:
        return None
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _write_type(hint: Any, definitions: dict[str, Schema]) -> Schema:
    try:
        scalar = _SCALARS.get(hint)
    except TypeError:  # it can't be hashed
        raise _LeftToPydantic from None
    if scalar is not None:
        return {"type": scalar}
    origin = get_origin(hint)
    if origin is None:
        return _write_model(hint, definitions)
    arguments = get_args(hint)
    if origin is list and len(arguments) == 1:
        return {"items": _write_type(arguments[0], definitions), "type": "array"}
    if origin is dict and arguments[:1] == (str,):
        if arguments[1] is Any:
            raise _LeftToPydantic
        return {"additionalProperties": _write_type(arguments[1], definitions), "type": "object"}
    if origin is Literal and len(arguments) > 1 and all(type(value) is str for value in arguments):
        return {"enum": list(dict.fromkeys(arguments)), "type": "string"}
    if origin in _UNIONS:
        branches = [_write_type(argument, definitions) for argument in arguments]
        if any(branch == other for i, branch in enumerate(branches) for other in branches[:i]):
            raise _LeftToPydantic
        return {"anyOf": branches}
    raise _LeftToPydantic


def _write_model(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """A reference to a model; its definitions go into `definitions`."""
    if not isinstance(hint, type) or not issubclass(hint, BaseModel) or hint is BaseModel:
        raise _LeftToPydantic
    name = hint.__name__
    # Pydantic changes other names to make a key of them: `Page[int]` becomes `Page_int_`.
    is_plain_name = name.isidentifier() and name.isascii()
    if not is_plain_name or hint.__pydantic_root_model__ or not hint.__pydantic_complete__:
        raise _LeftToPydantic
    needed = _DEFINITIONS.get(hint)
    if needed is None:
        try:
            needed = reference_schema(hint)
        except Exception:
            raise _LeftToPydantic from None
        _DEFINITIONS[hint] = needed
    if name not in needed:
        raise _LeftToPydantic
    for key, schema in needed.items():
        # Two classes of one name: pydantic tells them apart by their modules.
        if definitions.setdefault(key, schema) is not schema and definitions[key] != schema:
            raise _LeftToPydantic
    return {"$ref": f"#/$defs/{name}"}


def _write_default(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float and value - value == 0:  # neither NaN nor an infinity
        return value
    if (kind is list or kind is dict) and not value:
        return kind()
    raise _LeftToPydantic
