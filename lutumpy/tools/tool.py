"""`tool()` and `nested()`: the members of a toolset, as descriptors that know their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, overload

from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar

from lutumpy.errors import DeclarationError

if TYPE_CHECKING:
    from lutumpy.tools.compiled import CompiledTool
    from lutumpy.tools.selectors import FunctionSelector, NestedSelectors, Selector
    from lutumpy.tools.toolset import Toolset

TS = TypeVar("TS", bound="Toolset[Any]")
N = TypeVar("N", bound="Toolset[Any]")
I = TypeVar("I")
O = TypeVar("O")
P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


class HasTool(Protocol[T_co]):
    """What `tool()` takes: a `ToolInput` subclass or a decorated function."""

    def __tool__(self) -> T_co: ...


class Tool(Generic[I, O]):
    """A tool as a member of a toolset. Reading it from the class gives the toolset's `Selector`."""

    __slots__ = ("off", "source")

    def __init__(self, source: CompiledTool, *, off: bool = False) -> None:
        self.source: CompiledTool = source
        self.off: bool = off

    def __get__(self, instance: None, owner: type[TS]) -> Selector[TS, I, O]:
        # The owner is taken at access: a `Tool` serves the toolset that declares it and every one that inherits it.
        return cast("Selector[TS, I, O]", owner.__lutumpy_table__.by_member[self])

    def __repr__(self) -> str:
        return f"tool({self.source.definition.name!r}{', off=True' if self.off else ''})"


class FunctionTool(Tool[BaseModel, O], Generic[P, O]):
    """A function as a member of a toolset: its selector knows the parameters."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __get__(self, instance: None, owner: type[TS]) -> FunctionSelector[TS, P, O]: ...


class Nested(Generic[N]):
    """A toolset as a member of another one."""

    __slots__ = ("off", "toolset")

    def __init__(self, toolset: type[N], *, off: bool = False) -> None:
        self.toolset: type[N] = toolset
        self.off: bool = off

    def __get__(self, instance: None, owner: type[TS]) -> NestedSelectors[TS, N]:
        return cast("NestedSelectors[TS, N]", owner.__lutumpy_table__.groups[self])


_UNSET: Any = object()


@overload
def tool(declared: HasTool[FunctionTool[P, O]], /, *, off: bool = False) -> FunctionTool[P, O]: ...
@overload
def tool(declared: HasTool[Tool[I, O]], /, *, off: bool = False) -> Tool[I, O]: ...
@overload
def tool(declared: type[I], /, *, output: None, off: bool = False) -> Tool[I, None]: ...
@overload
def tool(declared: type[I], /, *, output: type[O], off: bool = False) -> Tool[I, O]: ...
@overload
def tool(declared: type[I], /, *, output: Any = ..., off: bool = False) -> Tool[I, Any]: ...
def tool(declared: Any, /, *, output: Any = _UNSET, off: bool = False) -> Tool[Any, Any]:
    """A declared tool as a member of a toolset.

    Args:
        declared: A function under `tool_fn`, or a class under `tool_input`.
        output: The output type, where the type checker can't see it in the class (a plain pydantic model).
        off: Hidden from the default availability.

    Raises:
        DeclarationError: it was not declared as a tool, or `output` contradicts the declaration.
    """
    from lutumpy.tools.declare import compiled_tool

    source = compiled_tool(declared)
    if output is not _UNSET:
        wanted = type(None) if output is None else output
        if source.output_type != wanted:
            raise DeclarationError(
                f"tool({getattr(declared, '__name__', declared)}, output={output!r}): the tool "
                f"{source.definition.name!r} was declared with the output {source.output_type!r}"
            )
    return Tool(source, off=off) if source.function is None else FunctionTool(source, off=off)


def nested(toolset: type[N], *, off: bool = False) -> Nested[N]:
    """A whole toolset as a member of another one: its tools become tools of the outer toolset, in place.

    Args:
        toolset: The inner toolset.
        off: Hides the whole group from the default availability.

    Raises:
        DeclarationError: it is no toolset.
    """
    if not isinstance(toolset, type) or not hasattr(cast("Any", toolset), "__lutumpy_table__"):
        raise DeclarationError(f"nested() takes a Toolset class, not {toolset!r}")
    return Nested(toolset, off=off)
