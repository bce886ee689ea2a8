"""What a tool's code takes beside its input: context values; key, metadata, ticket of a call."""

# The source of a parameter is decided by its annotation, so annotations must be resolved, also
# those that are text (`from __future__ import annotations`) and those that name a class that is
# imported for type checkers only. A text that can't be resolved is still recognised by its last
# word, `IdempotencyKey`, `ToolMetadata` or `CallTicket`; anything else counts as a context value of
# type `Any`.

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_origin

from lutumpy import CallTicket, ToolDef, ToolMetadata
from lutumpy.plain.driving import is_generator
from lutumpy.plain.signatures import signature_of
from lutumpy.plain.type_checks import checked_classes, is_instance, union_members
from lutumpy.tools import IdempotencyKey
from lutumpy.tools.signature import enclosing_names

__all__ = [
    "MISSING",
    "Context",
    "Parameter",
    "ToolCode",
    "code_parameters",
    "handler_parameters",
    "is_coroutine_function",
]

Source = Literal["context", "key", "metadata", "ticket"]

# In place of a value that the context doesn't have: `None` may be a value.
MISSING: Any = object()
_ASYNC_RESULTS = (collections.abc.Awaitable, collections.abc.Coroutine)
_SUPPLIED: Mapping[Any, Source] = {
    IdempotencyKey: "key",
    ToolMetadata: "metadata",
    CallTicket: "ticket",
}
_SUPPLIED_TEXT = re.compile(r"(?:\w+\.)*(IdempotencyKey|ToolMetadata|CallTicket)")
_BY_TEXT: Mapping[str, Any] = {
    "IdempotencyKey": IdempotencyKey,
    "ToolMetadata": ToolMetadata,
    "CallTicket": CallTicket,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that code asks for by name.

    Attributes:
        name: The parameter.
        annotation: Its type; `Any` where that isn't known.
        required: Whether it has no default.
        source: Where its value comes from.
        default: What stands for it when it is left out; where it isn't required.
    """

    name: str
    annotation: Any
    required: bool
    source: Source
    default: Any = None

    def takes(self, value: Any) -> bool:
        """Whether a value may be its argument; `True` where that can't be told."""
        if is_instance(value, checked_classes(self.annotation)):
            return True
        # A default may be none of the type's values, as `library: Library = None` has it.
        return not self.required and value is self.default


class ToolCode(Protocol):
    """The members of `Selector.tool` that matter here: the declaration, and the code if any."""

    @property
    def definition(self) -> ToolDef: ...
    @property
    def function(self) -> Callable[..., Any] | None: ...
    @property
    def run(self) -> Callable[..., Any] | None: ...
    @property
    def is_runnable(self) -> bool: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def skip_types(self) -> Mapping[str, Any]: ...
    def invoke(self, input: Any, skipped: Mapping[str, Any], /) -> Any: ...


class Context:
    """Values by name: those of a mapping, or the attributes of an object."""

    __slots__ = ("_values",)

    def __init__(self, values: object) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """The value, or `MISSING`. Exceptions raised by attribute access propagate."""
        if self._values is None:
            return MISSING
        if isinstance(self._values, Mapping):
            return cast("Mapping[str, Any]", self._values).get(name, MISSING)
        return getattr(self._values, name, MISSING)


def code_parameters(tool: ToolCode) -> list[Parameter]:
    """What a tool's own code takes beside its arguments: the `Skip` parameters of a function."""
    if tool.run is not None:
        # The code of a tool that is known at run time takes its arguments first, as a handler does.
        return handler_parameters(tool.run, None)[0]
    assert tool.function is not None
    signature = signature_of(tool.function)
    return [
        _make_parameter(name, annotation, signature.parameters[name].default)
        for name, annotation in tool.skip_types.items()
    ]


def handler_parameters(
    handler: Callable[..., Any], frame: types.FrameType | None
) -> tuple[list[Parameter], bool]:
    """The parameters of a handler beside its first one, which is the input.

    Also says whether its result is to be awaited.

    Args:
        handler: The handler.
        frame: Where it was registered, to resolve annotations that are text.

    Raises:
        TypeError: It can't be called with one input and the rest by name, or is a generator; the
            message says why.
    """
    if is_generator(handler):
        raise TypeError("it is a generator, and a tool returns one value")
    is_async = is_coroutine_function(handler)
    try:
        signature = signature_of(handler)
    except ValueError:  # some functions that are written in C have no signature
        return [], is_async
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    ):
        raise TypeError("it takes no input")
    found: list[Parameter] = []
    names = _visible_names(handler, frame)
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
        annotation = _resolve_annotation(parameter.annotation, names)
        found.append(_make_parameter(parameter.name, annotation, parameter.default))
    result = get_origin(_resolve_annotation(signature.return_annotation, names))
    return found, is_async or (isinstance(result, type) and issubclass(result, _ASYNC_RESULTS))


def is_coroutine_function(function: Any) -> bool:
    """Whether calling it certainly gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def _make_parameter(name: str, annotation: Any, default: Any) -> Parameter:
    source: Source = "context"
    for entry in union_members(annotation):
        if isinstance(entry, typing.Hashable):
            source = _SUPPLIED.get(entry, source)
    required = default is inspect.Parameter.empty
    return Parameter(name, annotation, required, source, default)


def _visible_names(
    handler: Any, frame: types.FrameType | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The globals of a handler, and the names of the functions around it."""
    inner = inspect.unwrap(handler)
    inner = getattr(inner, "__func__", inner)
    return getattr(inner, "__globals__", {}), enclosing_names(
        getattr(inner, "__code__", None), frame
    )


def _resolve_annotation(annotation: Any, names: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, *names, include_extras=True)["it"]
    except Exception:
        # Such as a class that is imported for type checkers only.
        match = _SUPPLIED_TEXT.fullmatch(annotation) if isinstance(annotation, str) else None
        if match is None:
            return Any
        return _BY_TEXT[match[1]]
