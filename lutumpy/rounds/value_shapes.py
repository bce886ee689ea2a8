"""What a value of a structured turn looks like: its schema, and how a text becomes a value."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from types import NoneType
from typing import Any, NamedTuple, get_origin

from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, create_model

from lutumpy.core.output_spec import OutputSpec
from lutumpy.errors import DeclarationError
from lutumpy.tools.arguments import Refused, decode_arguments
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef, ToolOptions
from lutumpy.tools.docstrings import class_docstring
from lutumpy.tools.schema import input_schema, reason_of

__all__ = ["WRAPPED", "ReadValue", "TypeShape", "ValueShape"]

WRAPPED = "value"
"""The property that holds a value whose schema is not an object."""

# The field of pydantic's `RootModel`.
_ROOT = "root"


class ReadValue(NamedTuple):
    """The value, or why there is none."""

    value: Any = None
    error: str | None = None


class ValueShape(ABC):
    """What a value looks like.

    Attributes:
        spec: What is asked for: an object at the root.
        wrapped: Whether the value is the property `value` of that object.
        knows_value: Whether the object may have a property `value` of its own.
        about: What the model is told of the value beside the schema; empty for nothing.
        name: How reasons call it.
    """

    __slots__ = ("about", "knows_value", "name", "spec", "wrapped")

    def __init__(self, spec: OutputSpec, *, wrapped: bool, about: str) -> None:
        self.spec: OutputSpec = spec
        self.wrapped: bool = wrapped
        self.knows_value: bool = WRAPPED in spec.schema["properties"] or bool(
            spec.schema.get("additionalProperties")
        )
        self.about: str = about
        self.name: str = spec.name

    @abstractmethod
    def read_object(self, text: str) -> ReadValue:
        """The value of the text of a JSON object as it was asked for. Never raises."""


class TypeShape(ValueShape):
    """Values of a Python type.

    Args:
        value_type: The type: anything that pydantic has a JSON Schema for.

    Raises:
        DeclarationError: the type has no JSON Schema.
    """

    __slots__ = ("_attribute", "_tool")

    def __init__(self, value_type: Any) -> None:
        name = _make_name(value_type)
        model, schema, attribute = _build_model(value_type, name)
        about = inspect.cleandoc(_find_docstring(value_type))
        super().__init__(OutputSpec(name, schema), wrapped=attribute == WRAPPED, about=about)
        # The attribute of the validated model that holds the value; `None` if it is the model.
        self._attribute: str | None = attribute
        self._tool: CompiledTool = CompiledTool(
            definition=ToolDef(name, "", schema, None, ToolOptions()),
            input_type=model,
            output_type=NoneType,
            adapter=TypeAdapter(None),
            wrapped=False,
        )

    def read_object(self, text: str) -> ReadValue:
        decoded = decode_arguments(self._tool, text)
        if isinstance(decoded, Refused):
            return ReadValue(error=decoded.detail)
        found: Any = decoded.input
        return ReadValue(found if self._attribute is None else getattr(found, self._attribute))


def _make_name(value_type: Any) -> str:
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", getattr(value_type, "__name__", ""))
    return name[:64].strip("_") or "answer"


def _build_model(value_type: Any, name: str) -> tuple[type[BaseModel], dict[str, Any], str | None]:
    """The model that is validated, its schema, and the attribute that holds the value."""
    fields: Any = {WRAPPED: (value_type, ...)}
    root: Any = {_ROOT: (value_type, ...)}
    model: Any = value_type
    try:
        is_model = (
            inspect.isclass(value_type)
            and get_origin(value_type) is None
            and issubclass(value_type, BaseModel)
        )
        # First as it is. Only the schema says whether that is an object.
        if not is_model:
            model = create_model(name, __base__=RootModel, **root)
        schema, wrapped = input_schema(model)
        if not wrapped:
            return model, schema, None if is_model else _ROOT
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        return model, input_schema(model)[0], WRAPPED
    except DeclarationError:
        raise
    except Exception as error:  # pydantic's, and those of the user's own schema methods
        raise DeclarationError(
            f"the value type {value_type!r} has no JSON Schema: {reason_of(error)}"
        ) from error


def _find_docstring(value_type: Any) -> str:
    """The docstring that the author of a model wrote.

    Dataclasses and the like are left out: they have docstrings that nobody wrote.
    """
    if (
        inspect.isclass(value_type)
        and get_origin(value_type) is None
        and issubclass(value_type, BaseModel)
    ):
        return class_docstring(value_type) or ""
    return ""
