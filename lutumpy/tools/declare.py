"""The decorators that declare tools: `tool_fn` for functions, `tool_input` for input classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, overload

from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar, Unpack

from lutumpy.errors import DeclarationError
from lutumpy.tools.annotations import type_and_metadata
from lutumpy.tools.closed import ClosedGenerator
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.declared_function import DeclaredFunction
from lutumpy.tools.definition import (
    TOOL_NAME,
    ToolDef,
    ToolOptions,
    make_options,
)
from lutumpy.tools.description_warnings import unused_descriptions, warn_lost, warn_undescribed
from lutumpy.tools.docstrings import class_docstring, read_docstring
from lutumpy.tools.plain_schema import plain_schema
from lutumpy.tools.provider_settings import check_declared
from lutumpy.tools.schema import input_schema, output_adapter, output_schema, reason_of
from lutumpy.tools.signature import enclosing_names, quoted, read_signature
from lutumpy.tools.stated_output import NOT_STATED, stated_output
from lutumpy.tools.tool import MARK, FunctionTool, compiled_tool

if TYPE_CHECKING:
    from lutumpy.tools.definition import ToolSettings

__all__ = [
    "AsyncToolFn",
    "SyncToolFn",
    "ToolFn",
    "check_name",
    "choose_description",
    "find_caller",
    "quoting_declaration",
    "refuse_non_function",
    "tool_fn",
    "tool_input",
]

P = ParamSpec("P")
O = TypeVar("O")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

_WORD_BOUNDARY = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


class ToolFn(DeclaredFunction[P], Generic[P, O]):
    """A function under `tool_fn`, plain or async: the function, and its declaration as a tool."""

    @property
    def Input(self) -> type[BaseModel]:
        """The model of the arguments, made from the signature; it refuses other names."""
        return self.__lutumpy_tool__.input_type

    def __tool__(self) -> FunctionTool[P, O]:
        return FunctionTool(self.__lutumpy_tool__)


class SyncToolFn(ToolFn[P, O]):
    """A plain function under `tool_fn`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> O: ...


class AsyncToolFn(ToolFn[P, O]):
    """An `async def` function under `tool_fn`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, O]: ...


# The overloads below differ in what they take and return, not in their settings. These are stated
# once: for checkers in `ToolSettings`, for programs in `ToolOptions`, which describes them.


if TYPE_CHECKING:
    # Names for checkers alone: protocols are slow to build.

    class _ToolFnDecorator(Protocol):
        @overload
        # A coroutine function is a function too; checkers take the first overload that matches.
        def __call__(  # type: ignore[overload-overlap]
            self, fn: Callable[P, Coroutine[Any, Any, R]], /
        ) -> AsyncToolFn[P, R]: ...
        @overload
        def __call__(self, fn: Callable[P, R], /) -> SyncToolFn[P, R]: ...


@overload
def tool_fn(  # type: ignore[overload-overlap]
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
    **options: Any,
) -> Any:
    """Declare a function, `async` or plain, as a tool. Also `@tool_fn(name=..., timeout=...)`.

    The parameters become the tool's input, but for those marked `Skip[...]`; the return annotation
    is its output.

    Args:
        fn: The function.
        name: What the model calls; the function's name by default.
        description: What the model sees; by default the docstring's text before its sections.
        options: Those of `ToolOptions`, which describes them: `timeout`, `max_retries`,
            `idempotent`, `effect`, `strict`, `late`, `provider` and `annotations`.

    Raises:
        DeclarationError: The signature, the name or an option can't be a tool's.
    """
    checked = make_options("tool_fn", options)

    def declare(function: Callable[..., Any]) -> Any:
        return _declare_function(function, name, description, checked, find_caller())

    if fn is None:
        return declare
    return _declare_function(fn, name, description, checked, find_caller())


if TYPE_CHECKING:

    class ToolInputSettings(ToolSettings, total=False):
        """The keyword arguments of `tool_input`, described there."""

        output: Any

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
    output: Any = NOT_STATED,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Declare a pydantic model as the input of a tool. Also `@tool_input(name=...)`.

    Returns the class that it was given.

    Args:
        cls: A pydantic model, a `ToolInput[O]` subclass, or a `RootModel` over a union of models.
        name: What the model calls; by default the class name in snake_case without a trailing
            `_input` or `_args`.
        output: The type of the result, `None` for nothing; may be left out with `ToolInput[O]`
            only.
        description: What the model sees; by default the docstring's text before its sections.
        options: Those of `ToolOptions`, which describes them: `timeout`, `max_retries`,
            `idempotent`, `effect`, `strict`, `provider` and `annotations`.

    Raises:
        DeclarationError: The class, the name or an option can't be a tool's.
    """
    checked = make_options("tool_input", options)

    def declare(declared: type[BaseModel]) -> Any:
        return _declare_class(declared, name, output, description, checked, find_caller())

    if cls is None:
        return declare
    return _declare_class(cls, name, output, description, checked, find_caller())


def find_caller() -> FrameType:
    """The frame that used the decorator: the caller of the function that calls this."""
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
    refuse_non_function(function)

    def about() -> str:
        return quoted(function)

    name = check_name(function.__name__ if name is None else name, about)
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = enclosing_names(code, frame)
    signature = read_signature(function, names)
    # Where the parameters are plain, their model is made when the first call comes.
    schema, wrapped = plain_schema(signature.parameters, signature.docs.params), False
    make: Any = signature.make_model.later() if schema is not None else signature.make_model()
    with quoting_declaration(about):
        if schema is None:
            schema, wrapped = input_schema(make)
        output_names = {**getattr(function, "__globals__", {}), **names}
        adapter = output_adapter(signature.output_type, output_names)
        returned = output_schema(signature.output_type, adapter)
        definition = _make_definition(
            name, description, signature.docs.description, schema, returned, options
        )
    annotations = [
        (parameter, *type_and_metadata(hint))
        for parameter, (hint, _) in signature.parameters.items()
    ]
    warn_lost("docstring", about, signature.docs.problems, frame)
    warn_lost("signature", about, unused_descriptions(schema, annotations), frame)
    warn_undescribed(about, definition, frame)
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
    with quoting_declaration(about):
        check_declared(source, definition)
    return AsyncToolFn(function, source) if signature.is_async else SyncToolFn(function, source)


def refuse_non_function(function: Any) -> None:
    """Raise `DeclarationError` for what a decorator of functions can't declare."""
    if isinstance(function, DeclaredFunction):
        raise DeclarationError(
            f"{function.__qualname__} is already declared as the tool {function.name!r}"
        )
    is_class = isinstance(function, (type, classmethod))
    if is_class or not callable(function) or not hasattr(function, "__name__"):
        raise DeclarationError(
            f"@tool_fn takes a function, not {function!r}; a model is declared with @tool_input"
        )


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
    text = f"`class {cls.__name__}`"

    def about() -> str:
        return text

    if MARK in cls.__dict__:
        raise DeclarationError(
            f"{text} is already declared as the tool {compiled_tool(cls).definition.name!r}"
        )
    name = check_name(_default_name(cls) if name is None else name, about)
    output_type = stated_output(cls, output, text)
    names = {
        **frame.f_globals,
        **enclosing_names(frame.f_code, frame.f_back),
        **frame.f_locals,
        cls.__name__: cls,
    }
    _complete_class(cls, text, names)
    with quoting_declaration(about):
        schema, wrapped = input_schema(cls, ClosedGenerator)
        # Fields go by their names and by their aliases. A docstring may describe class variables
        # and methods as well, which are nothing to a model and nothing to warn of.
        others = [attribute for attribute in dir(cls) if not hasattr(BaseModel, attribute)]
        fields = [*cls.model_fields, *schema["properties"]]
        docs = read_docstring(class_docstring(cls), fields, others)
        adapter = output_adapter(output_type, names)
        returned = output_schema(output_type, adapter)
        definition = _make_definition(
            name, description, docs.description, schema, returned, options
        )
        source = CompiledTool(
            definition=definition,
            input_type=cls,
            output_type=output_type,
            adapter=adapter,
            wrapped=wrapped,
            closed=True,
        )
        check_declared(source, definition)
    annotations = [
        (field.alias or field_name, field.annotation, field.metadata)
        for field_name, field in cls.model_fields.items()
    ]
    warn_lost("docstring", about, docs.problems, frame)
    warn_lost("body", about, unused_descriptions(schema, annotations), frame)
    warn_undescribed(about, definition, frame)
    # On the class itself, and looked up there only: a subclass is a tool of its own or none.
    setattr(cls, MARK, source)
    return cls


def _make_definition(
    name: str,
    description: str | None,
    documented: str,
    schema: dict[str, Any],
    returned: dict[str, Any] | None,
    options: ToolOptions,
) -> ToolDef:
    text = choose_description(description, documented)
    if options.strict:
        from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

        # What no provider could do is refused here already; what only one of them refuses, when the
        # tool is offered.
        strict_schema(schema, OPENAI_STRICT)
    return ToolDef(name, text, schema, returned, options)


def choose_description(stated: Any, documented: str) -> str:
    """What the model is told: `description=` if it is stated, else what the docstring says.

    Raises:
        DeclarationError: What is stated is not text.
    """
    if stated is None:
        return documented
    if not isinstance(stated, str):
        raise DeclarationError(f"description must be text, not {stated!r}")
    return inspect.cleandoc(stated)


@contextmanager
def quoting_declaration(about: Callable[[], str]) -> Iterator[None]:
    """Puts the declaration in front of a `DeclarationError` from inside."""
    try:
        yield
    except DeclarationError as error:
        raise DeclarationError(f"{about()}: {error}") from (error.__cause__ or error)


def check_name(name: object, about: Callable[[], str]) -> str:
    """The name of a tool (rule D1); `about` quotes the declaration."""
    if isinstance(name, str) and TOOL_NAME.fullmatch(name):
        return name
    raise DeclarationError(
        f"{about()}: {name!r} is not a tool name; a name has 1 to 64 letters, digits, '_' and '-' "
        "of ASCII, pass name="
    )


def _default_name(cls: type) -> str:
    """`web_search` for `WebSearch`, `WebSearchInput` and `WebSearchArgs`."""
    words = re.sub(_WORD_BOUNDARY, "_", cls.__name__).lower()
    for suffix in ("_input", "_args"):
        if words.endswith(suffix) and len(words) > len(suffix):
            return words.removesuffix(suffix)
    return words


def _complete_class(cls: type[BaseModel], about: str, names: Mapping[str, Any]) -> None:
    """Build what pydantic put off, so that a name that can't be resolved is an error now."""
    if getattr(cls, "__pydantic_complete__", False):
        return
    try:
        cls.model_rebuild(_types_namespace=names)
    except Exception as error:
        raise DeclarationError(f"{about} can't be a tool: {reason_of(error)}") from error
