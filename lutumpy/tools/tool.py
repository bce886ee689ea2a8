"""`tool()` and `nested()`: the members of a toolset, as descriptors that know their types."""

# What a checker infers, and how:
#
#   in the class body                      is a             which reads as
#   -------------------------------------  ---------------  ---------------------------------------
#   tool(web_search), under @tool_fn       FunctionTool     FunctionSelector[AppTools, P, O]
#   tool(run_sql), under @text_tool        Tool             Selector[AppTools, str, O]
#   tool(ReadFile), a ToolInput[FileText]  Tool             Selector[AppTools, ReadFile, FileText]
#   tool(ReadFile, output=FileText)        Tool             the same; the class can't say the output
#   tool(weather), a DynamicTool           Tool             Selector[AppTools, DynamicInput, ...]
#   nested(DataTools)                      Nested           NestedSelectors[AppTools, DataTools]
#   dynamic()                              Dynamic          DynamicGroup[AppTools]
#
# `tool()` learns the types from the method `__tool__` of what it is given (`HasTool`). Reading a
# member gives a selector of the class that it is read from, so a toolset that inherits a member has
# a selector of its own.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, overload

from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar

from lutumpy.errors import DeclarationError, UnknownToolError
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ProviderSettings, ToolDef
from lutumpy.tools.dynamic_group import DynamicGroup
from lutumpy.tools.provider_settings import with_settings
from lutumpy.tools.selectors import BaseToolset, FunctionSelector, Selector

TS = TypeVar("TS", bound=BaseToolset)
N = TypeVar("N", bound=BaseToolset)
I = TypeVar("I")
O = TypeVar("O")
P = ParamSpec("P")
I2 = TypeVar("I2")
O2 = TypeVar("O2")
P2 = ParamSpec("P2")
T_co = TypeVar("T_co", covariant=True)


class HasTool(Protocol[T_co]):
    """What `tool()` takes: a `ToolInput` subclass or a decorated function."""

    def __tool__(self) -> T_co: ...


class Tool(Generic[I, O]):
    """A tool as a member of a toolset. Reading it from the class gives the toolset's `Selector`."""

    __slots__ = ("definition", "off", "source")

    def __init__(
        self, source: CompiledTool, *, off: bool = False, definition: ToolDef | None = None
    ) -> None:
        self.source: CompiledTool = source
        self.off: bool = off
        # With the settings of this member, where it has any.
        self.definition: ToolDef = source.definition if definition is None else definition

    def __get__(self, instance: None, owner: type[TS]) -> Selector[TS, I, O]:
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
        return cast("NestedSelectors[TS, N]", owner.__lutumpy_table__.by_member[self])


class NestedSelectors(Generic[TS, N]):
    """The tools of a nested toolset, as tools of the outer one.

    `AppTools.data.get_user` is the tool by its member name; `AppTools.data[DataTools.get_user]` the
    same, fully typed.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, outer: type[TS], inner: type[N]) -> None:
        self._outer = outer
        self._inner = inner

    def __getattr__(self, name: str) -> Selector[TS, Any, Any]:
        inner: Any = None if name.startswith("__") else getattr(self._inner, name, None)
        if isinstance(inner, NestedSelectors):
            # A group inside the group; to a checker every member is a selector.
            return cast("Selector[TS, Any, Any]", NestedSelectors(self._outer, inner._inner))
        if isinstance(inner, DynamicGroup):
            return cast("Selector[TS, Any, Any]", self._outer.__lutumpy_table__.groups[inner.place])
        if not isinstance(inner, Selector):
            raise AttributeError(f"{self._inner.__name__} has no tool {name!r}")
        return self._outer.selector(inner.name)

    @overload
    def __getitem__(
        self, selector: FunctionSelector[N, P2, O2]
    ) -> FunctionSelector[TS, P2, O2]: ...
    @overload
    def __getitem__(self, selector: Selector[N, I2, O2]) -> Selector[TS, I2, O2]: ...
    @overload
    def __getitem__(self, selector: DynamicGroup[N]) -> DynamicGroup[TS]: ...
    def __getitem__(self, selector: Selector[N, Any, Any] | DynamicGroup[N]) -> Any:
        if isinstance(selector, DynamicGroup) and selector.toolset is self._inner:
            return self._outer.__lutumpy_table__.groups[selector.place]
        if not isinstance(selector, Selector) or selector.toolset is not self._inner:
            raise UnknownToolError(str(selector), self._inner.__name__)
        return self._outer.selector(selector.name)

    def __repr__(self) -> str:
        return f"<{self._inner.__name__} in {self._outer.__name__}>"


MARK = "__lutumpy_tool__"
"""The attribute of a declared function or class that holds its `CompiledTool`."""

_UNSET: Any = object()
"""Stands for an `output=` that was left out, since `None` is one."""


@overload
def tool(
    declared: HasTool[FunctionTool[P, O]],
    /,
    *,
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> FunctionTool[P, O]: ...
@overload
def tool(
    declared: HasTool[Tool[I, O]],
    /,
    *,
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> Tool[I, O]: ...
@overload
def tool(
    declared: type[I],
    /,
    *,
    output: None,
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> Tool[I, None]: ...
@overload
def tool(
    declared: type[I],
    /,
    *,
    output: type[O],
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> Tool[I, O]: ...
@overload
def tool(
    declared: type[I],
    /,
    *,
    output: Any = ...,
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> Tool[I, Any]: ...
def tool(
    declared: Any,
    /,
    *,
    output: Any = _UNSET,
    off: bool = False,
    provider: ProviderSettings | None = None,
    late: bool | None = None,
) -> Tool[Any, Any]:
    """A declared tool as a member of a toolset.

    Args:
        declared: A function under `tool_fn` or `text_tool`, a class under `tool_input`, or a
            `DynamicTool`.
        output: The output type, where the type checker can't see it in the class (a plain pydantic
            model).
        off: Hidden from the default availability.
        provider: Settings of the tool in this toolset for one API alone, by the API's name. It wins
            over the declaration's, key by key.
        late: Whether its result may come later in this toolset; as declared, if omitted.

    Raises:
        DeclarationError: It was not declared as a tool, `output` contradicts the declaration, or
            an API refuses what it would be told.
    """
    source = compiled_tool(declared)
    if output is not _UNSET:
        wanted = type(None) if output is None else output
        if source.output_type != wanted:
            raise DeclarationError(
                f"tool({getattr(declared, '__name__', declared)}, output={output!r}): the tool "
                f"{source.definition.name!r} was declared with the output {source.output_type!r}"
            )
    kind = FunctionTool if source.has_parameters else Tool
    return kind(source, off=off, definition=with_settings(source, provider, late))


def nested(toolset: type[N], *, off: bool = False) -> Nested[N]:
    """A toolset as a member of another one: its tools become tools of the outer one, in place.

    Args:
        toolset: The inner toolset.
        off: Hides the whole group from the default availability.

    Raises:
        DeclarationError: `toolset` is not a toolset class.
    """
    if not isinstance(toolset, type) or not hasattr(cast("Any", toolset), "__lutumpy_table__"):
        raise DeclarationError(f"nested() takes a Toolset class, not {toolset!r}")
    return Nested(toolset, off=off)


def compiled_tool(declared: Any) -> CompiledTool:
    """What the decorator of a function or class found out about it.

    Raises:
        DeclarationError: It was not declared as a tool; a subclass of one that was has to be
            declared itself.
    """
    # A class is asked for its own attribute: a declaration isn't inherited.
    is_class = isinstance(declared, type)
    source = vars(declared).get(MARK) if is_class else getattr(declared, MARK, None)
    if isinstance(source, CompiledTool):
        return source
    name = getattr(declared, "__qualname__", repr(declared))
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        parents = [base.__name__ for base in declared.__mro__ if MARK in base.__dict__]
        aside = ""
        if parents:
            aside = f"; the declaration of {parents[0]} doesn't pass to its subclasses"
        raise DeclarationError(
            f"{name} is not declared as a tool{aside}: decorate it with @tool_input"
        )
    if callable(declared):
        raise DeclarationError(f"{name} is not declared as a tool: decorate it with @tool_fn")
    raise DeclarationError(
        f"{name} is not a tool: a function under @tool_fn or a model under @tool_input is one"
    )
