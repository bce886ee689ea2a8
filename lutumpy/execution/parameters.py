"""What code asks for beside its input: values of the context, the idempotency key, the call's metadata."""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from lutumpy.core.items import ToolMetadata
from lutumpy.execution.identity import IdempotencyKey
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.signature import enclosing_names

__all__ = [
    "MISSING",
    "Context",
    "Parameter",
    "handler_parameters",
    "is_coroutine_function",
    "skip_parameters",
]

Source = Literal["context", "key", "metadata"]

MISSING: Any = object()
_ASYNC_RESULTS = (collections.abc.Awaitable, collections.abc.Coroutine)
_SUPPLIED: Mapping[Any, Source] = {IdempotencyKey: "key", ToolMetadata: "metadata"}
_SUPPLIED_TEXT = re.compile(r"(?:\w+\.)*(IdempotencyKey|ToolMetadata)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that code asks for by name.

    Attributes:
        name: The parameter.
        annotation: Its type; `Any` where that isn't known.
        required: Whether it has no default.
        source: Where its value comes from.
    """

    name: str
    annotation: Any
    required: bool
    source: Source


class Context:
    """Values by name: those of a mapping, or the attributes of an object."""

    __slots__ = ("_values",)

    def __init__(self, values: object) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """The value, or `MISSING`. Whatever reading an attribute raises passes."""
        if self._values is None:
            return MISSING
        if isinstance(self._values, Mapping):
            return cast("Mapping[str, Any]", self._values).get(name, MISSING)
        return getattr(self._values, name, MISSING)


def skip_parameters(tool: CompiledTool) -> list[Parameter]:
    """The `Skip` parameters of a tool's function."""
    assert tool.function is not None
    signature = inspect.signature(tool.function)
    return [
        _parameter(name, annotation, signature.parameters[name].default is inspect.Parameter.empty)
        for name, annotation in tool.skip_types.items()
    ]


def handler_parameters(
    handler: Callable[..., Any], frame: types.FrameType | None
) -> tuple[list[Parameter], bool]:
    """What a handler asks for beside its input, which is its first parameter; and whether its result is to be awaited.

    Args:
        handler: The handler.
        frame: Where it was registered, for annotations that are text.

    Raises:
        TypeError: It can't be called with one input and the rest by name; the message says why.
    """
    is_async = is_coroutine_function(handler)
    try:
        signature = inspect.signature(handler)
    except ValueError:  # some functions that are written in C don't tell
        return [], is_async
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    ):
        raise TypeError("it takes no input")
    found: list[Parameter] = []
    names = _names(handler, frame)
    if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        required = parameter.default is inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            if required:
                raise TypeError(f"{parameter.name!r} can't be given by name")
            continue
        found.append(_parameter(parameter.name, _resolved(parameter.annotation, names), required))
    result = get_origin(_resolved(signature.return_annotation, names))
    return found, is_async or (isinstance(result, type) and issubclass(result, _ASYNC_RESULTS))


def is_coroutine_function(function: Any) -> bool:
    """Whether calling it certainly gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value may be of the annotated type, as far as `isinstance` can tell; `True` where it can't."""
    for kind in _alternatives(annotation):
        if kind is None or (kind in (float, complex) and isinstance(value, (int, float))):
            return True
        try:
            if isinstance(value, kind):
                return True
        except TypeError:  # a class that can't be asked
            return True
    return False


def type_name(annotation: Any) -> str:
    """A type for messages."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation in (None, types.NoneType):
        return "None"
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return " | ".join([type_name(entry) for entry in get_args(annotation)])
    plain = isinstance(annotation, (type, typing.NewType)) and not get_args(annotation)
    return str(annotation.__name__ if plain else annotation)


def _parameter(name: str, annotation: Any, required: bool) -> Parameter:
    source: Source = "context"
    for entry in _members(annotation):
        if isinstance(entry, typing.Hashable):
            source = _SUPPLIED.get(entry, source)
    return Parameter(name, annotation, required, source)


def _members(annotation: Any) -> Iterator[Any]:
    """The types of a union, `Annotated` taken off; or the one type."""
    annotation = _bare(annotation)
    if get_origin(annotation) in (typing.Union, types.UnionType):
        for entry in get_args(annotation):
            yield from _members(entry)
    else:
        yield annotation


def _alternatives(annotation: Any) -> Iterator[type | None]:
    """The classes that `isinstance` can ask for; `None` for what it can't."""
    for entry in _members(annotation):
        kind = get_origin(entry) or entry
        protocol = isinstance(kind, type) and getattr(kind, "_is_protocol", False)
        yield (
            kind
            if isinstance(kind, type) and not protocol and not typing.is_typeddict(kind)
            else None
        )


def _bare(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif annotation is None:
            return types.NoneType
        else:
            return annotation


def _names(handler: Any, frame: types.FrameType | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The globals of a handler, and the names of the functions around it."""
    inner = inspect.unwrap(handler)
    inner = getattr(inner, "__func__", inner)
    return getattr(inner, "__globals__", {}), enclosing_names(
        getattr(inner, "__code__", None), frame
    )


def _resolved(annotation: Any, names: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, *names, include_extras=True)["it"]
    except Exception:
        # Such as a class that is imported for type checkers only. By name it is found all the same.
        match = _SUPPLIED_TEXT.fullmatch(annotation) if isinstance(annotation, str) else None
        if match is None:
            return Any
        return IdempotencyKey if match[1] == "IdempotencyKey" else ToolMetadata
