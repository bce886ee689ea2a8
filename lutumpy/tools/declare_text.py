"""The decorator that declares a function of one text as a tool: `text_tool`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol, cast, overload

from pydantic.fields import FieldInfo
from typing_extensions import ParamSpec, TypeVar, Unpack

from lutumpy.core.text_inputs import Lark, Regex, TextFormat, TextInput
from lutumpy.errors import DeclarationError
from lutumpy.tools.annotations import annotated_texts, type_and_metadata, unused_texts
from lutumpy.tools.declare import (
    check_name,
    choose_description,
    find_caller,
    quoting_declaration,
    refuse_non_function,
)
from lutumpy.tools.declared_function import DeclaredFunction
from lutumpy.tools.definition import ToolDef, ToolOptions, make_options
from lutumpy.tools.description_warnings import warn_lost, warn_undescribed
from lutumpy.tools.provider_settings import check_declared
from lutumpy.tools.schema import output_adapter, output_schema
from lutumpy.tools.signature import Signature, enclosing_names, quoted, read_signature
from lutumpy.tools.text_tool import INPUT, TextTool
from lutumpy.tools.tool import Tool

if TYPE_CHECKING:
    from lutumpy.tools.definition import ToolSettings

__all__ = ["AsyncTextToolFn", "SyncTextToolFn", "TextToolFn", "text_tool"]

P = ParamSpec("P")
O = TypeVar("O")
R = TypeVar("R")

_UNDESCRIBED = "The input of the tool, as plain text."


class TextToolFn(DeclaredFunction[P], Generic[P, O]):
    """A function under `text_tool`, plain or async: the function, and its declaration as a tool."""

    @property
    def format(self) -> TextFormat | None:
        """What the text has to fit; `None` for any text."""
        text = self.definition.text
        return None if text is None else text.format

    def __tool__(self) -> Tool[str, O]:
        return Tool(self.__lutumpy_tool__)


class SyncTextToolFn(TextToolFn[P, O]):
    """A plain function under `text_tool`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> O: ...


class AsyncTextToolFn(TextToolFn[P, O]):
    """An `async def` function under `text_tool`. Calling it calls the function, unchanged."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, O]: ...


if TYPE_CHECKING:

    class TextToolSettings(ToolSettings, total=False):
        """The keyword arguments of `text_tool`, described there."""

        format: TextFormat | None

    class _TextToolDecorator(Protocol):
        @overload
        # A coroutine function is a function too; checkers take the first overload that matches.
        def __call__(  # type: ignore[overload-overlap]
            self, fn: Callable[Concatenate[str, P], Coroutine[Any, Any, R]], /
        ) -> AsyncTextToolFn[Concatenate[str, P], R]: ...
        @overload
        def __call__(
            self, fn: Callable[Concatenate[str, P], R], /
        ) -> SyncTextToolFn[Concatenate[str, P], R]: ...


@overload
def text_tool(  # type: ignore[overload-overlap]
    fn: Callable[Concatenate[str, P], Coroutine[Any, Any, R]],
    /,
    **settings: Unpack[TextToolSettings],
) -> AsyncTextToolFn[Concatenate[str, P], R]: ...
@overload
def text_tool(
    fn: Callable[Concatenate[str, P], R],
    /,
    **settings: Unpack[TextToolSettings],
) -> SyncTextToolFn[Concatenate[str, P], R]: ...
@overload
def text_tool(
    fn: None = None,
    /,
    **settings: Unpack[TextToolSettings],
) -> _TextToolDecorator: ...
def text_tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    format: TextFormat | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Declare a function of one text, `async` or plain, as a tool. Also `@text_tool(format=...)`.

    The model writes the text as it is, without JSON around it, where the API knows such tools
    (OpenAI's "custom" tools); elsewhere it is offered a function with the one string `input`. The
    calls have a `str` as their input either way. Parameters marked `Skip[...]` are not part of a
    call; the return annotation is the tool's output.

    Args:
        fn: The function. One of its parameters is annotated `str` and takes the text.
        name: What the model calls; the function's name by default.
        format: A `Lark` grammar or a `Regex` that the text has to fit; `None` for any text.
        description: What the model sees; by default the docstring's text before its sections.
        options: Those of `ToolOptions`, which describes them. `strict` is about the schema of the
            function, where it is sent as one.

    Raises:
        DeclarationError: The signature, the name, the format or an option can't be a tool's.
    """
    checked = make_options("text_tool", options)

    def declare(function: Callable[..., Any]) -> Any:
        return _declare_text(function, name, format, description, checked, find_caller())

    if fn is None:
        return declare
    return _declare_text(fn, name, format, description, checked, find_caller())


def _declare_text(
    function: Any,
    name: str | None,
    format: TextFormat | None,
    description: str | None,
    options: ToolOptions,
    frame: FrameType,
) -> TextToolFn[..., Any]:
    if isinstance(function, staticmethod):
        function = cast("Any", function).__func__
    refuse_non_function(function)

    def about() -> str:
        return quoted(function)

    name = check_name(function.__name__ if name is None else name, about)
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = enclosing_names(code, frame)
    signature = read_signature(function, names)
    with quoting_declaration(about):
        text = choose_description(description, signature.docs.description)
        _check_format(format)
        parameter, parameter_text, unused = _find_text(signature)
        output_names = {**getattr(function, "__globals__", {}), **names}
        adapter = output_adapter(signature.output_type, output_names)
        definition = ToolDef(
            name,
            text,
            _function_schema(parameter_text, format),
            output_schema(signature.output_type, adapter),
            options,
            TextInput(format, parameter_text),
        )
        source = TextTool(
            definition=definition,
            parameter=parameter,
            function=function,
            is_async=signature.is_async,
            output_type=signature.output_type,
            adapter=adapter,
            skip_types=signature.skipped,
            positional_only=signature.positional_only,
        )
        check_declared(source, definition)
    warn_lost("docstring", about, signature.docs.problems, frame)
    warn_lost("signature", about, unused, frame)
    warn_undescribed(about, definition, frame)
    kind = AsyncTextToolFn if signature.is_async else SyncTextToolFn
    return kind(function, source)


def _check_format(format: Any) -> None:
    if format is None:
        return
    if not isinstance(format, (Lark, Regex)):
        raise DeclarationError(f"format= takes Lark(...), Regex(...) or None, not {format!r:.100}")
    definition: Any = format.definition
    if not isinstance(definition, str) or not definition.strip():
        raise DeclarationError(
            f"{type(format).__name__} takes its definition as text, not {definition!r:.100}"
        )


def _find_text(signature: Signature) -> tuple[str, str, list[str]]:
    """The parameter that takes the text, its description, and descriptions that aren't used.

    Raises:
        DeclarationError: None does, or there are others that the model would have to fill.
    """
    parameters = signature.parameters
    if len(parameters) != 1:
        found = ", ".join(parameters) or "none"
        raise DeclarationError(
            f"a text tool takes one text, in a parameter annotated str, and it has {found}; mark "
            "others Skip[...], or declare it with @tool_fn"
        )
    ((name, (hint, default)),) = parameters.items()
    kind, metadata = type_and_metadata(hint)
    fields = [entry for entry in metadata if isinstance(entry, FieldInfo)]
    others = len(metadata) - len(fields) - len(annotated_texts(metadata))
    if kind is not str or others or any(field.metadata for field in fields):
        raise DeclarationError(
            f"parameter {name!r} takes the text of a call, so it must be annotated str; what the "
            "text has to fit is said by format="
        )
    if default is not ...:
        raise DeclarationError(
            f"parameter {name!r} has a default, which would never be used: a call always has a text"
        )
    texts = [field.description for field in fields if field.description]
    parameter_text = texts[0] if texts else signature.docs.params.get(name, "")
    return (
        name,
        parameter_text,
        list(unused_texts({name: {"description": parameter_text}}, name, kind, metadata)),
    )


def _function_schema(parameter_text: str, format: TextFormat | None) -> dict[str, Any]:
    """The schema of the function that stands for the tool where an API knows no text tools.

    Nothing enforces the format there, so the model is told of it.
    """
    texts = [parameter_text or _UNDESCRIBED]
    if isinstance(format, Lark):
        texts.append(f"It has to fit this Lark grammar:\n{format.definition.strip()}")
    elif isinstance(format, Regex):
        texts.append(f"It has to match this regular expression as a whole: {format.definition}")
    return {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": "\n\n".join(texts)}},
        "required": [INPUT],
        "additionalProperties": False,
    }
