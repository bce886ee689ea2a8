"""The decorators that declare tools: `tool_fn` for functions, `tool_input` for input classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from types import FrameType, NoneType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, cast, overload

from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar, Unpack

from lutumpy.errors import DeclarationError
from lutumpy.tools.annotations import type_and_metadata
from lutumpy.tools.closed import ClosedGenerator
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import (
    DEFAULT_MAX_RETRIES,
    DEFAULT_TIMEOUT,
    Effect,
    ToolDef,
    ToolOptions,
)
from lutumpy.tools.description_warnings import unused_descriptions, warn_lost, warn_undescribed
from lutumpy.tools.docstrings import read_docstring
from lutumpy.tools.plain_schema import plain_schema
from lutumpy.tools.schema import input_schema, output_adapter, output_schema, reason_of
from lutumpy.tools.signature import enclosing_names, quoted, read_signature
from lutumpy.tools.tool import MARK, FunctionTool, compiled_tool

__all__ = ["AsyncToolFn", "SyncToolFn", "ToolFn", "tool_fn", "tool_input"]

P = ParamSpec("P")
O = TypeVar("O")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSET: Any = object()


class ToolFn(Generic[P, O]):
    """A function under `tool_fn`, plain or async: the function, and its declaration as a tool."""

    __lutumpy_tool__: CompiledTool
    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], source: CompiledTool) -> None:
        update_wrapper(cast("Callable[..., Any]", self), function)
        self.__lutumpy_tool__ = source

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.__lutumpy_tool__.definition.name

    @property
    def definition(self) -> ToolDef:
        """Name, description, schemas and options."""
        return self.__lutumpy_tool__.definition

    @property
    def options(self) -> ToolOptions:
        """How the tool may be run and offered."""
        return self.__lutumpy_tool__.definition.options

    @property
    def Input(self) -> type[BaseModel]:
        """The model of the arguments, made from the signature; it refuses names that are no parameter."""
        return self.__lutumpy_tool__.input_type

    @property
    def output_type(self) -> Any:
        """The type that calling the function gives, once awaited; `NoneType` for nothing."""
        return self.__lutumpy_tool__.output_type

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function, unchanged."""
        return self.__wrapped__(*args, **kwargs)

    def __tool__(self) -> FunctionTool[P, O]:
        return FunctionTool(self.__lutumpy_tool__)

    def __reduce__(self) -> str:
        return (
            self.__qualname__
        )  # a module-level name: copied and pickled by reference, as functions are

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class SyncToolFn(ToolFn[P, O]):
    """A plain function under `tool_fn`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> O: ...


class AsyncToolFn(ToolFn[P, O]):
    """An `async def` function under `tool_fn`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, O]: ...


class ToolSettings(TypedDict, total=False):
    """The keyword arguments of `tool_fn`; a type checker checks each, and an editor completes them."""

    name: str | None
    """What the model calls; the function's name by default."""
    description: str | None
    """What the model is told; by default the docstring's text before its sections."""
    timeout: float
    """Seconds for one attempt."""
    max_retries: int
    """Attempts after the first one, for idempotent tools that timed out."""
    idempotent: bool
    """Running it twice is the same as running it once. Short for `effect="idempotent"`."""
    effect: Effect
    """What running it again does: `"read"`, `"idempotent"` or `"once"`."""
    strict: bool | None
    """Whether the provider should enforce the schema; `None` leaves it to the adapter."""


class ToolInputSettings(ToolSettings, total=False):
    """The keyword arguments of `tool_input`."""

    output: Any
    """The type of the result, `None` for nothing; may be left out with `ToolInput[O]` only."""


class _ToolFnDecorator(Protocol):
    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine function is a function too; the first one matches
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncToolFn[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncToolFn[P, R]: ...


@overload
def tool_fn(  # type: ignore[overload-overlap]  # as above
    fn: Callable[P, Coroutine[Any, Any, R]],
    /,
    **settings: Unpack[ToolSettings],
) -> AsyncToolFn[P, R]: ...
@overload
def tool_fn(
    fn: Callable[P, R],
    /,
    **settings: Unpack[ToolSettings],
) -> SyncToolFn[P, R]: ...
@overload
def tool_fn(
    fn: None = None,
    /,
    **settings: Unpack[ToolSettings],
) -> _ToolFnDecorator: ...
def tool_fn(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_retries: int = DEFAULT_MAX_RETRIES,
    idempotent: bool = False,
    effect: Effect = "once",
    strict: bool | None = None,
) -> Any:
    """Declare a function, `async` or plain, as a tool. Also `@tool_fn(name=..., timeout=...)`.

    The parameters become the tool's input, but for those marked `Skip[...]`; the return annotation is its output.

    Args:
        fn: The function.
        name: What the model calls; the function's name by default.
        description: What the model is told; by default the docstring's text before its sections.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first one, for idempotent tools that timed out.
        idempotent: Running it twice is the same as running it once. Short for `effect="idempotent"`.
        effect: What running it again does: `"read"`, `"idempotent"` or `"once"`.
        strict: Whether the provider should enforce the schema; `None` leaves it to the adapter.

    Raises:
        DeclarationError: The signature, the name or an option can't be a tool's.
    """
    options = ToolOptions(timeout, max_retries, idempotent, effect, strict)

    def declare(function: Callable[..., Any]) -> Any:
        return _declare_function(function, name, description, options, _caller())

    return declare if fn is None else _declare_function(fn, name, description, options, _caller())


class _ToolInputDecorator(Protocol):
    def __call__(self, cls: type[M], /) -> type[M]: ...


@overload
def tool_input(
    cls: type[M],
    /,
    **settings: Unpack[ToolInputSettings],
) -> type[M]: ...
@overload
def tool_input(
    cls: None = None,
    /,
    **settings: Unpack[ToolInputSettings],
) -> _ToolInputDecorator: ...
def tool_input(
    cls: type[BaseModel] | None = None,
    /,
    *,
    name: str | None = None,
    output: Any = _UNSET,
    description: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_retries: int = DEFAULT_MAX_RETRIES,
    idempotent: bool = False,
    effect: Effect = "once",
    strict: bool | None = None,
) -> Any:
    """Declare a pydantic model as the input of a tool; gives back the very class. Also `@tool_input(name=...)`.

    Args:
        cls: A pydantic model, a `ToolInput[O]` subclass, or a `RootModel` over a union of models.
        name: What the model calls; by default the class name in snake_case without a trailing `_input` or `_args`.
        output: The type of the result, `None` for nothing; may be left out with `ToolInput[O]` only.
        description: What the model is told; by default the docstring's text before its sections.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first one, for idempotent tools that timed out.
        idempotent: Running it twice is the same as running it once. Short for `effect="idempotent"`.
        effect: What running it again does: `"read"`, `"idempotent"` or `"once"`.
        strict: Whether the provider should enforce the schema; `None` leaves it to the adapter.

    Raises:
        DeclarationError: The class, the name or an option can't be a tool's.
    """
    options = ToolOptions(timeout, max_retries, idempotent, effect, strict)

    def declare(declared: type[BaseModel]) -> Any:
        return _declare_class(declared, name, output, description, options, _caller())

    return (
        declare
        if cls is None
        else _declare_class(cls, name, output, description, options, _caller())
    )


def _caller() -> FrameType:
    """Where the decorator that asks was used."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    if frame is None:
        raise RuntimeError("tools can't be declared by an interpreter without frames")
    return frame


def _declare_function(
    function: Any, name: str | None, description: str | None, options: ToolOptions, frame: FrameType
) -> ToolFn[..., Any]:
    if isinstance(function, staticmethod):
        function = cast("Any", function).__func__
    if isinstance(function, ToolFn):
        raise DeclarationError(
            f"{function.__qualname__} is already declared as the tool {function.name!r}"
        )
    if (
        isinstance(function, (type, classmethod))
        or not callable(function)
        or not hasattr(function, "__name__")
    ):
        raise DeclarationError(
            f"@tool_fn takes a function, not {function!r}; a model is declared with @tool_input"
        )
    name = _checked_name(function.__name__ if name is None else name, lambda: quoted(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = enclosing_names(code, frame)
    signature = read_signature(function, names)
    # Where the parameters are plain, their model is made when the first call comes.
    schema, wrapped = plain_schema(signature.parameters, signature.docs.params), False
    make: Any = signature.make_model.later() if schema is not None else signature.make_model()
    with _about(lambda: quoted(function)):
        if schema is None:
            schema, wrapped = input_schema(make)
        adapter = output_adapter(
            signature.output_type, {**getattr(function, "__globals__", {}), **names}
        )
        returned = output_schema(signature.output_type, adapter)
        definition = _definition(
            name, description, signature.docs.description, schema, returned, options
        )
    annotations = [
        (name, *type_and_metadata(hint)) for name, (hint, _) in signature.parameters.items()
    ]
    warn_lost("docstring", lambda: quoted(function), signature.docs.problems, frame)
    warn_lost(
        "signature", lambda: quoted(function), unused_descriptions(schema, annotations), frame
    )
    warn_undescribed(lambda: quoted(function), definition, frame)
    source = CompiledTool(
        definition=definition,
        input_type=make,
        output_type=signature.output_type,
        adapter=adapter,
        wrapped=wrapped,
        function=function,
        is_async=signature.is_async,
        skip_types=signature.skipped,
        keyword_names=signature.keyword_names,
        positional_only=signature.positional_only,
    )
    return AsyncToolFn(function, source) if signature.is_async else SyncToolFn(function, source)


def _declare_class(
    cls: Any,
    name: str | None,
    output: Any,
    description: str | None,
    options: ToolOptions,
    frame: FrameType,
) -> Any:
    if not isinstance(cls, type) or not issubclass(cls, BaseModel):
        raise DeclarationError(
            f"@tool_input takes a pydantic model, not {cls!r}; a function is declared with @tool_fn"
        )
    about = f"`class {cls.__name__}`"
    if MARK in cls.__dict__:
        raise DeclarationError(
            f"{about} is already declared as the tool {compiled_tool(cls).definition.name!r}"
        )
    name = _checked_name(_default_name(cls) if name is None else name, lambda: about)
    output_type = _output_of(cls, output, about)
    names = {
        **frame.f_globals,
        **enclosing_names(frame.f_code, frame.f_back),
        **frame.f_locals,
        cls.__name__: cls,
    }
    _complete(cls, about, names)
    with _about(lambda: about):
        schema, wrapped = input_schema(cls, ClosedGenerator)
        # Fields go by their names and by their aliases; a docstring may tell of class variables and methods, too.
        others = [attribute for attribute in dir(cls) if not hasattr(BaseModel, attribute)]
        docs = read_docstring(
            vars(cls).get("__doc__"), [*cls.model_fields, *schema["properties"]], others
        )
        adapter = output_adapter(output_type, names)
        returned = output_schema(output_type, adapter)
        definition = _definition(name, description, docs.description, schema, returned, options)
        source = CompiledTool(
            definition=definition,
            input_type=cls,
            output_type=output_type,
            adapter=adapter,
            wrapped=wrapped,
            closed=True,
        )
    annotations = [
        (field.alias or name, field.annotation, field.metadata)
        for name, field in cls.model_fields.items()
    ]
    warn_lost("docstring", lambda: about, docs.problems, frame)
    warn_lost("body", lambda: about, unused_descriptions(schema, annotations), frame)
    warn_undescribed(lambda: about, definition, frame)
    # On the class itself, and looked up there only: a subclass is a tool of its own or none.
    setattr(cls, MARK, source)
    return cls


def _definition(
    name: str,
    description: str | None,
    documented: str,
    schema: dict[str, Any],
    returned: dict[str, Any] | None,
    options: ToolOptions,
) -> ToolDef:
    if description is not None and not isinstance(cast("object", description), str):
        raise DeclarationError(f"description must be text, not {description!r}")
    if options.strict:
        from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

        # Refused here already when no provider could do it; what only one of them refuses is said when it is offered.
        strict_schema(schema, OPENAI_STRICT)
    text = documented if description is None else inspect.cleandoc(description)
    return ToolDef(name, text, schema, returned, options)


class _about:
    """Puts the declaration in front of a `DeclarationError` from inside."""

    def __init__(self, what: Callable[[], str]) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, DeclarationError):
            raise DeclarationError(f"{self.what()}: {error}") from (error.__cause__ or error)


def _checked_name(name: object, about: Callable[[], str]) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise DeclarationError(
        f"{about()}: {name!r} is no tool name; a name has 1 to 64 letters, digits, '_' and '-' of ASCII, pass name="
    )


def _default_name(cls: type) -> str:
    words = _WORDS.sub("_", cls.__name__).lower()
    for suffix in ("_input", "_args"):
        if words.endswith(suffix) and len(words) > len(suffix):
            return words.removesuffix(suffix)
    return words


def _output_of(cls: type[BaseModel], output: Any, about: str) -> Any:
    """The output type of an input class: what `ToolInput[O]` says, or `output=`."""
    from lutumpy.tools.tool_input import ToolInput

    stated = _UNSET
    if issubclass(cls, ToolInput):
        stated = _base_parameter(cls)
    if output is None:
        output = NoneType
    if output is _UNSET and stated is _UNSET:
        raise DeclarationError(
            f"{about} doesn't say what the tool returns: pass output= (None for nothing) or derive from ToolInput[...]"
        )
    if output is not _UNSET and stated is not _UNSET and output != stated:
        raise DeclarationError(
            f"{about}: output={output!r} contradicts its base ToolInput[{stated!r}]"
        )
    return stated if output is _UNSET else output


def _base_parameter(cls: type[BaseModel]) -> Any:
    """`O` of the `ToolInput[O]` that `cls` derives from, through generic bases in between."""
    from lutumpy.tools.tool_input import ToolInput

    stated: Any = _UNSET
    for base in reversed(cls.__mro__):
        metadata: dict[str, Any] = base.__dict__.get("__pydantic_generic_metadata__") or {}
        origin: Any = metadata.get("origin")
        if origin is ToolInput:
            stated = metadata["args"][0]
        elif origin is not None and stated is not _UNSET:
            parameters: tuple[Any, ...] = origin.__pydantic_generic_metadata__["parameters"]
            stated = _substituted(stated, dict(zip(parameters, metadata["args"], strict=False)))
    if isinstance(stated, TypeVar):
        return _UNSET
    return NoneType if stated is None else stated


def _substituted(hint: Any, values: Mapping[Any, Any]) -> Any:
    """`hint` with type variables replaced by what a subclass chose for them."""
    if isinstance(hint, TypeVar):
        return values.get(hint, hint)
    metadata = getattr(hint, "__pydantic_generic_metadata__", None)
    parameters = metadata["parameters"] if metadata else getattr(hint, "__parameters__", ())
    return (
        hint[tuple(values.get(parameter, parameter) for parameter in parameters)]
        if parameters
        else hint
    )


def _complete(cls: type[BaseModel], about: str, names: Mapping[str, Any]) -> None:
    """Build what pydantic put off, so that a name that can't be resolved is said now."""
    if getattr(cls, "__pydantic_complete__", False):
        return
    try:
        cls.model_rebuild(_types_namespace=names)
    except Exception as error:
        raise DeclarationError(f"{about} can't be a tool: {reason_of(error)}") from error
