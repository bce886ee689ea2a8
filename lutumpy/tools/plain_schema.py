"""The JSON Schema of plain parameters, without building a model for it.

Most tools take texts, numbers, lists of these, and models. For them the schema is written down here, the very one that pydantic
would generate, and the model of the arguments is made when the first call comes. Everything else is left to pydantic.
"""

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

# What pydantic says of a model that parameters refer to: its definition and those it needs, by name. The entry goes with the class.
_DEFINITIONS: WeakKeyDictionary[type, Mapping[str, Schema]] = WeakKeyDictionary()


class _Not(Exception):
    """This is for pydantic to say."""


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
            entry = _type(hint, definitions)
            if default is _REQUIRED:
                required.append(name)
            else:
                entry["default"] = _default(default)
            if description := descriptions.get(name):
                entry["description"] = description
            properties[name] = dict(sorted(entry.items())) if len(entry) > 1 else entry
    except _Not:
        return None
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _type(hint: Any, definitions: dict[str, Schema]) -> Schema:
    try:
        scalar = _SCALARS.get(hint)
    except TypeError:  # it can't be hashed
        raise _Not from None
    if scalar is not None:
        return {"type": scalar}
    origin = get_origin(hint)
    if origin is None:
        return _model(hint, definitions)
    arguments = get_args(hint)
    if origin is list and len(arguments) == 1:
        return {"items": _type(arguments[0], definitions), "type": "array"}
    if origin is dict and arguments[:1] == (str,):
        if arguments[1] is Any:
            raise _Not
        return {"additionalProperties": _type(arguments[1], definitions), "type": "object"}
    if origin is Literal and len(arguments) > 1 and all(type(value) is str for value in arguments):
        return {"enum": list(dict.fromkeys(arguments)), "type": "string"}
    if origin in _UNIONS:
        branches = [_type(argument, definitions) for argument in arguments]
        if any(branch == other for i, branch in enumerate(branches) for other in branches[:i]):
            raise _Not
        return {"anyOf": branches}
    raise _Not


def _model(hint: Any, definitions: dict[str, Schema]) -> Schema:
    if not isinstance(hint, type) or not issubclass(hint, BaseModel) or hint is BaseModel:
        raise _Not
    name = hint.__name__
    if (
        not (name.isidentifier() and name.isascii())
        or hint.__pydantic_root_model__
        or not hint.__pydantic_complete__
    ):
        raise _Not
    needed = _DEFINITIONS.get(hint)
    if needed is None:
        try:
            needed = reference_schema(hint)
        except Exception:
            raise _Not from None
        _DEFINITIONS[hint] = needed
    if name not in needed:
        raise _Not
    for key, schema in needed.items():
        # Two classes of one name: pydantic tells them apart by their modules.
        if definitions.setdefault(key, schema) is not schema and definitions[key] != schema:
            raise _Not
    return {"$ref": f"#/$defs/{name}"}


def _default(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float and value - value == 0:
        return value
    if (kind is list or kind is dict) and not value:
        return kind()
    raise _Not
