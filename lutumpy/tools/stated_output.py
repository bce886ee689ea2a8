"""What an input class says about its tool's output: `output=`, or the parameter of `ToolInput`."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypeVar

from lutumpy.errors import DeclarationError

__all__ = ["NOT_STATED", "stated_output"]

NOT_STATED: Any = object()
"""Stands for an `output=` that was left out, since `None` means that the tool returns nothing."""


def stated_output(cls: type[BaseModel], output: Any, about: str) -> Any:
    """The output type of an input class; `NoneType` for nothing.

    Args:
        cls: The input class.
        output: What the declaration said; `NOT_STATED` where it said nothing.
        about: The class, for errors.

    Raises:
        DeclarationError: Neither the declaration nor the class says it, or they contradict each
            other.
    """
    of_base = _parameter_of_base(cls)
    if output is None:
        output = NoneType
    if output is NOT_STATED and of_base is NOT_STATED:
        raise DeclarationError(
            f"{about} doesn't say what the tool returns: pass output= (None for nothing) or derive "
            "from ToolInput[...]"
        )
    if output is not NOT_STATED and of_base is not NOT_STATED and output != of_base:
        raise DeclarationError(
            f"{about}: output={output!r} contradicts its base ToolInput[{of_base!r}]"
        )
    return of_base if output is NOT_STATED else output


def _parameter_of_base(cls: type[BaseModel]) -> Any:
    """`O` of the `ToolInput[O]` that `cls` derives from, through generic bases in between.

    Pydantic makes a class of each `ToolInput[X]`, which says in its metadata what it was made of.
    So the bases are walked from the farthest to the nearest: `ToolInput[T]` states a type variable,
    and each generic class below replaces its own variables by what it was given.
    """
    # Imported here: making `ToolInput` costs a third of what importing this library does.
    from lutumpy.tools.tool_input import ToolInput

    stated: Any = NOT_STATED
    if not issubclass(cls, ToolInput):
        return stated
    for base in reversed(cls.__mro__):
        metadata: dict[str, Any] = base.__dict__.get("__pydantic_generic_metadata__") or {}
        origin: Any = metadata.get("origin")
        if origin is ToolInput:
            stated = metadata["args"][0]
        elif origin is not None and stated is not NOT_STATED:
            parameters: tuple[Any, ...] = origin.__pydantic_generic_metadata__["parameters"]
            stated = _substitute(stated, dict(zip(parameters, metadata["args"], strict=False)))
    if isinstance(stated, TypeVar):
        return NOT_STATED
    return NoneType if stated is None else stated


def _substitute(hint: Any, values: Mapping[Any, Any]) -> Any:
    """`hint` with type variables replaced by what a subclass chose for them."""
    if isinstance(hint, TypeVar):
        return values.get(hint, hint)
    metadata = getattr(hint, "__pydantic_generic_metadata__", None)
    parameters = metadata["parameters"] if metadata else getattr(hint, "__parameters__", ())
    if not parameters:
        return hint
    return hint[tuple(values.get(parameter, parameter) for parameter in parameters)]
