"""A place in a toolset for tools that become known later, and the tools that fill it."""

# `dynamic()` in the body of a toolset makes a `Dynamic`: the place. Read from a class it gives a
# `DynamicGroup`: the place in that class, with the tools that are there. The declared class has
# none; `with_dynamic_tools` makes a subclass of it at run time that has some. A place stays the
# same in all subclasses, and where the toolset is nested, so calls are recognised by it.

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, cast, overload

from typing_extensions import TypeIs, TypeVar

from lutumpy.errors import UnknownToolError
from lutumpy.tools.selectors import BaseToolset, Selector, near_names

if TYPE_CHECKING:
    from lutumpy.core.tool_specs import ToolSpec
    from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCall
    from lutumpy.tools.compiled import CompiledTool
    from lutumpy.tools.definition import ToolDef
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput

__all__ = ["Dynamic", "DynamicGroup", "DynamicSelector", "dynamic", "tool_key"]

TS = TypeVar("TS", bound=BaseToolset)


class Dynamic:
    """A place for tools that become known later, as a member of a toolset.

    Attributes:
        off: Whether its tools are hidden from the default availability.
    """

    __slots__ = ("off",)

    def __init__(self, *, off: bool = False) -> None:
        self.off: bool = off

    def __get__(self, instance: None, owner: type[TS]) -> DynamicGroup[TS]:
        return cast("DynamicGroup[TS]", owner.__lutumpy_table__.by_member[self])


def dynamic(*, off: bool = False) -> Dynamic:
    """A place in a toolset for tools that become known later; `with_dynamic_tools` fills it.

    Args:
        off: Hides its tools from the default availability.
    """
    return Dynamic(off=off)


class DynamicSelector(Selector[TS, Any, Any]):
    """A tool that is known at run time, in the place that it fills.

    Attributes:
        place: The place, `None` for one that is a member of its own (`tool(...)`).
    """

    __slots__ = ("place",)

    def __init__(
        self,
        toolset: type[TS],
        tool: CompiledTool,
        definition: ToolDef | None = None,
        place: Dynamic | None = None,
    ) -> None:
        super().__init__(toolset, tool, definition)
        self.place: Dynamic | None = place

    def for_toolset(self, toolset: type[Any]) -> Selector[Any, Any, Any]:
        return DynamicSelector(toolset, self.tool, self._definition, self.place)

    def _make_spec(
        self, description: str | None, provider: dict[str, dict[str, Any]] | None
    ) -> ToolSpec:
        if description is not None or provider is not None:
            return super()._make_spec(description, provider)
        # What was rendered of a tool is kept with the tool: its toolset may be a new class each
        # turn. A member's own definition has settings that the tool doesn't have.
        shared: dict[Any, ToolSpec] = cast("Any", self.tool).shared
        key = id(self._definition)
        if key not in shared:
            shared[key] = super()._make_spec(None, None)
        return shared[key]


class DynamicGroup(Generic[TS]):
    """The place of a `dynamic()` in one toolset class, with the tools that fill it there.

    Attributes:
        toolset: The toolset class.
        place: The place; the same in every class that has it.
        name: The name of the member; with the path to it where the toolset is nested.
        off: Whether its tools are hidden from the default availability.
    """

    __slots__ = ("_tools", "name", "off", "place", "toolset")

    def __init__(
        self,
        toolset: type[TS],
        place: Dynamic,
        name: str,
        tools: dict[str, Selector[TS, DynamicInput, DynamicOutput]],
        off: bool,
    ) -> None:
        self.toolset: type[TS] = toolset
        self.place: Dynamic = place
        self.name: str = name
        self.off: bool = off
        self._tools = tools

    def selectors(self) -> tuple[Selector[TS, DynamicInput, DynamicOutput], ...]:
        """The tools that are there, in order."""
        return tuple(self._tools.values())

    @overload
    def matches(self, call: BaseToolCall, /) -> TypeIs[ToolCall[DynamicInput, DynamicOutput]]: ...
    @overload
    def matches(
        self, call: HandledTool[Any, Any], /
    ) -> TypeGuard[HandledTool[DynamicInput, DynamicOutput]]: ...
    @overload
    def matches(
        self, call: RejectedToolCall[Any], /
    ) -> TypeGuard[RejectedToolCall[ToolCall[DynamicInput, DynamicOutput]]]: ...
    def matches(
        self, call: BaseToolCall | HandledTool[Any, Any] | RejectedToolCall[Any], /
    ) -> bool:
        """Whether `call` calls a tool of this place, in whichever class that has the place.

        Takes calls, and what became of them: `HandledTool` and `RejectedToolCall`. One that was
        made by hand without a selector goes by the name of the tool.
        """
        selector = call.selector
        if selector is None:
            return call.metadata.name in self._tools
        return isinstance(selector, DynamicSelector) and selector.place is self.place

    def __getitem__(self, name: str) -> Selector[TS, DynamicInput, DynamicOutput]:
        """The tool of this name; raises `UnknownToolError`."""
        try:
            return self._tools[name]
        except KeyError:
            where = f"{self.toolset.__name__}.{self.name}"
            raise UnknownToolError(name, where, near_names(name, self._tools)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Selector[TS, DynamicInput, DynamicOutput]]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicGroup):
            return NotImplemented
        return self.toolset is other.toolset and self.place is other.place

    def __hash__(self) -> int:
        return hash((self.toolset, id(self.place)))

    def __repr__(self) -> str:
        return f"<{self.toolset.__name__}.{self.name}: {', '.join(self._tools) or 'no tools'}>"


def tool_key(selector: Selector[Any, Any, Any]) -> Hashable:
    """What a tool is known by in settings that outlive a set of tools, such as limits and handlers.

    That is the declared tool itself, in whichever toolset it is; of a tool that fills a place, the
    place and its name, so that it is the same for each new set of tools that has one.
    """
    place = selector.place if isinstance(selector, DynamicSelector) else None
    return selector.tool if place is None else (place, selector.name)
