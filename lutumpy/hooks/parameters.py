"""The two forms of a hook of one tool: it takes the input, or the function's parameters."""

#   async def pay_hook(self, metadata: ToolMetadata, input: Any) -> ToolDecision: ...
#   async def pay_hook(self, metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision: ...
#
# Which of them it is follows from the names alone:
#
#   the tool's function has a parameter    a hook that names    is of the form
#   -------------------------------------  -------------------  ----------------------------------
#   `metadata`                             anything             input: the name is the hook's own
#   `input`                                `input` alone        input, if it is annotated as
#                                                               `BaseModel` or `.Input`; else
#                                                               parameters
#   `input` and others                     `input` and others   parameters
#   none of these                          `input`              input
#   none of these                          a parameter, `**_`   parameters
#
# All of it is worked out when the hook is registered, so that running one costs a look at the
# input's values and the call itself.

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from types import CodeType, SimpleNamespace
from typing import Annotated, Any, Union, get_args, get_origin

from lutumpy.hooks.decisions import RunNormally
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.selectors import near_names

_UNKNOWN: Any = object()
_STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def is_by_parameters(function: Any, signature: inspect.Signature, tool: CompiledTool) -> bool:
    """Whether a hook of `tool` is written with the parameters of its function."""
    names = _names(signature)
    parameters = _parameters(tool)
    if "metadata" in parameters:
        return False
    if "input" in names:
        # Beside another parameter of the function, `input` is one of them too.
        others = parameters.intersection(names) - {"input"}
        if "input" not in parameters or (not others and _takes_model(function, signature, tool)):
            return False
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    return not parameters.isdisjoint(names) or (takes_rest and tool.has_parameters)


def wrong_parameters(
    function: Any, signature: inspect.Signature, tool: CompiledTool
) -> Iterator[str]:
    """What is wrong with the names of a hook that is written with a function's parameters."""
    known = list(tool.keyword_names.values())
    bound = function.keywords if isinstance(function, functools.partial) else ()
    for parameter in signature.parameters.values():
        name = parameter.name
        if name in bound and name not in known:
            continue  # `partial` provides it
        if parameter.kind is parameter.VAR_KEYWORD or name == "metadata" or name in known:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                yield f"{name!r} must be usable by name"
            elif name in known and parameter.kind is not parameter.VAR_KEYWORD:
                yield from _wrong_type(function, parameter, tool)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            # Arguments come by name. One that says that it is unused takes the place of a Skip
            # parameter that can be given by position, for a type checker.
            if not name.startswith("_"):
                yield f"name the parameters that it needs in place of {parameter}"
        elif name in tool.skipped:
            yield (
                f"{name!r} is marked Skip: it is not part of a call, and hooks are not given it; "
                "leave it out, and for a type checker end with `**_: Any`; with "
                "`*_: Any, **__: Any` where it isn't keyword-only"
            )
        elif parameter.default is parameter.empty or not name.startswith("_"):
            near = near_names(name, known)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            has = f"it has ({', '.join(known)}){hint}"
            yield f"the tool {tool.definition.name!r} has no parameter {name!r}; {has}"


def _wrong_type(function: Any, parameter: inspect.Parameter, tool: CompiledTool) -> Iterator[str]:
    """Whether a parameter is annotated with a class that the tool's own can't be.

    Only classes are compared: what else an annotation says is a type checker's business.
    """
    field = next(key for key, name in tool.keyword_names.items() if name == parameter.name)
    declared = tool.input_type.model_fields[field].annotation
    wanted = _resolve(function, parameter.annotation)
    if get_origin(wanted) is Annotated:
        wanted = get_args(wanted)[0]
    if not isinstance(declared, type) or not isinstance(wanted, type) or get_origin(wanted):
        return
    if wanted in (parameter.empty, Any) or getattr(wanted, "_is_protocol", False):
        return
    try:
        fits = issubclass(declared, wanted) or (declared is int and wanted in (float, complex))
    except TypeError:  # a `TypedDict` has no subclasses that can be asked for
        return
    if not fits:
        yield (
            f"`{parameter.name}: {_type_name(wanted)}` is not the parameter of "
            f"{tool.definition.name!r}, which is {_type_name(declared)}"
        )


def mixed_names(signature: inspect.Signature, tool: CompiledTool) -> Iterator[str]:
    """What is wrong with a hook that takes the input and names parameters of the function too."""
    mixed = [
        name
        for name in _names(signature)
        if name in _parameters(tool) and name not in ("metadata", "input")
    ]
    if mixed:
        allowed = f"hooks of {tool.definition.name!r} take {describe_forms(tool)}"
        yield f"{', '.join(mixed)} can't be asked for here: {allowed}"


def describe_forms(tool: CompiledTool) -> str:
    """What a hook of `tool` may take, for errors."""
    by_input = "(metadata, input)"
    if not tool.has_parameters:
        return by_input
    if "metadata" in _parameters(tool):
        return (
            f"{by_input} only, since a parameter of the tool is called 'metadata' as the hook's own"
        )
    either = f"{by_input} or ({', '.join(['metadata', *tool.keyword_names.values()])})"
    if "input" in _parameters(tool):
        return (
            f"{either}; in the first, annotate `input: BaseModel`, "
            "since the tool has a parameter of that name"
        )
    return either


def with_parameters(
    function: Callable[..., Any], signature: inspect.Signature, tool: CompiledTool
) -> Callable[..., Any]:
    """A hook that takes parameters, as one that takes (metadata, input)."""
    names = _names(signature)
    takes_rest = len(names) < len(signature.parameters)
    wanted = [
        (field, name) for field, name in tool.keyword_names.items() if takes_rest or name in names
    ]
    if "metadata" not in names:

        def without_metadata(metadata: Any, input: Any) -> Any:
            values = input.__dict__
            return function(**{name: values[field] for field, name in wanted})

        return without_metadata

    def with_metadata(metadata: Any, input: Any) -> Any:
        values = input.__dict__
        return function(metadata=metadata, **{name: values[field] for field, name in wanted})

    return with_metadata


def wrong_annotations(
    function: Any, signature: inspect.Signature, tool: CompiledTool, *, of_input: bool
) -> Iterator[str]:
    """The annotations of a hook that say it is for another tool's input.

    Args:
        function: The hook.
        signature: Its own.
        tool: The tool that it is registered for.
        of_input: Whether it takes the input; else only what it returns is looked at.
    """
    name, wanted = tool.definition.name, tool.input_type.__name__
    if of_input and "input" in signature.parameters:
        kind = _resolve(function, signature.parameters["input"].annotation)
        if not _accepts(kind, tool):
            yield f"`input: {_type_name(kind)}` is not the input of {name!r}, which is {wanted}"
    for kind in _list_passed_on(_resolve(function, signature.return_annotation)):
        is_narrower = isinstance(kind, type) and issubclass(kind, tool.input_type)
        if not _accepts(kind, tool) and not is_narrower:
            yield f"`RunNormally[{_type_name(kind)}]` is not for {name!r}, whose input is {wanted}"


def _names(signature: inspect.Signature) -> list[str]:
    return [p.name for p in signature.parameters.values() if p.kind not in _STARS]


def _parameters(tool: CompiledTool) -> frozenset[str]:
    """The parameters of the tool's function, including `Skip` ones; empty where the input is not
    made of them.
    """
    if not tool.has_parameters:
        return frozenset()
    return tool.skipped.union(tool.keyword_names.values())


def _takes_model(function: Any, signature: inspect.Signature, tool: CompiledTool) -> bool:
    """Whether `input` is annotated as the whole input, and not as the parameter of that name."""
    annotation = signature.parameters["input"].annotation
    kind = _resolve(function, annotation)
    if kind is _UNKNOWN:  # a name that only type checkers see
        return isinstance(annotation, str) and annotation.rpartition(".")[2] in (
            "BaseModel",
            "Input",
        )
    return _is_base_model(kind) or kind is tool.input_type


def _is_base_model(kind: Any) -> bool:
    # By name: nothing here imports pydantic, and the tools' own models say where theirs is.
    return (
        isinstance(kind, type)
        and kind.__name__ == "BaseModel"
        and kind.__module__.startswith("pydantic.")
    )


def _accepts(kind: Any, tool: CompiledTool) -> bool:
    """Whether a tool's input can be what a hook takes, as far as that can be seen."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _accepts(get_args(kind)[0], tool)
    if origin is Union or origin is types.UnionType:
        return any(_accepts(branch, tool) for branch in get_args(kind))
    if kind is Any or kind is inspect.Parameter.empty:
        return True
    if _is_base_model(kind):
        return not tool.is_text
    kind = kind if origin is None else origin
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return issubclass(tool.input_type, kind)


def _list_passed_on(kind: Any) -> Iterator[Any]:
    """The types `I` of `RunNormally[I]` that a return annotation names."""
    origin = get_origin(kind)
    if origin is RunNormally:
        yield get_args(kind)[0]
    elif origin in (Union, types.UnionType, Annotated, Awaitable, Coroutine):
        for inner in get_args(kind):
            yield from _list_passed_on(inner)


def _resolve(function: Any, annotation: Any) -> Any:
    """The type that an annotation means; `_UNKNOWN` if it names something only checkers see."""
    if not isinstance(annotation, str):
        return annotation
    inner = _innermost(function)
    holder = SimpleNamespace(__annotations__={"it": annotation})
    module = getattr(inner, "__globals__", {})
    # Most names are global; looking through the stack is the second try.
    try:
        return typing.get_type_hints(holder, module, include_extras=True)["it"]
    except Exception:
        pass
    try:
        return typing.get_type_hints(holder, module, _local_names(inner), include_extras=True)["it"]
    except Exception:
        return _UNKNOWN


def _innermost(function: Any) -> Any:
    """The plain function with the code, out of wrappers, `partial`s, methods and callables."""
    while not hasattr(function, "__code__") or hasattr(function, "__wrapped__"):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(type(function).__call__, "__code__"):
            function = type(function).__call__
        else:
            return function  # written in C
    return function


def _local_names(function: Any) -> dict[str, Any]:
    """Local names of the running functions whose bodies hold the hook; inner ones win.

    A hook that is defined inside a function, as in a test, may be annotated with local classes,
    which no module knows.
    """
    code = getattr(function, "__code__", None)
    frame: Any = sys._getframe(1)
    found: list[dict[str, Any]] = []
    while frame is not None and code is not None:
        if frame.f_locals is not frame.f_globals and _contains(frame.f_code, code):
            found.append(dict(frame.f_locals))
        frame = frame.f_back
    names: dict[str, Any] = {}
    for outer in reversed(found):
        names.update(outer)
    return names


def _contains(outer: CodeType, inner: CodeType) -> bool:
    """Whether `inner` is defined somewhere inside `outer`."""
    return any(
        c is inner or (isinstance(c, CodeType) and _contains(c, inner)) for c in outer.co_consts
    )


def _type_name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)
