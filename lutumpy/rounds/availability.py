"""Which tools a model may call this turn, and whether it must."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from lutumpy.errors import InvalidToolConstraints
from lutumpy.tools.selectors import BaseToolset, Selector, as_member_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from lutumpy.tools.definition import ProviderSettings
    from lutumpy.tools.selectors import ByTool

__all__ = ["SearchAvailability", "ToolAvailability", "ToolRequirement"]

TS = TypeVar("TS", bound=BaseToolset)
T = TypeVar("T", bound=BaseToolset)

# The static methods below are generic in the toolset, which no argument of theirs may name:
# `ToolAvailability.default()` fits any. mypy solves `T` by the context; pyright does so too, and
# warns about it.


class ToolAvailability(Generic[TS]):
    """Which tools are offered (rule A1).

    Make one with `default`, `all`, `only` or `default_plus`.
    """

    __slots__ = ("mode", "selectors")

    def __init__(
        self,
        mode: Literal["default", "all", "only", "default_plus"],
        selectors: tuple[Selector[TS, Any, Any], ...] = (),
    ) -> None:
        # Checked at run time too: a mode may come out of a configuration.
        if mode not in ("default", "all", "only", "default_plus"):
            raise InvalidToolConstraints(
                f"{mode!r} is not an availability; make one as ToolAvailability.only(...)"
            )
        for selector in selectors:
            _check_selector(selector)
        self.mode = mode
        self.selectors: tuple[Selector[TS, Any, Any], ...] = selectors

    @staticmethod
    def default() -> ToolAvailability[T]:  # pyright: ignore[reportInvalidTypeVarUse]
        """Every tool but the ones that are off, in declaration order."""
        return ToolAvailability("default")

    @staticmethod
    def all() -> ToolAvailability[T]:  # pyright: ignore[reportInvalidTypeVarUse]
        """Every tool, including those that are off."""
        return ToolAvailability("all")

    @staticmethod
    def only(*selectors: Selector[T, Any, Any]) -> ToolAvailability[T]:
        """Exactly these, in this order, off or not; without any: no tools."""
        return ToolAvailability("only", selectors)

    @staticmethod
    def default_plus(*selectors: Selector[T, Any, Any]) -> ToolAvailability[T]:
        """The default ones, then those of these that aren't among them."""
        return ToolAvailability("default_plus", selectors)

    def resolve(self, toolset: type[TS]) -> tuple[Selector[TS, Any, Any], ...]:
        """The offered tools in order, each once.

        Raises:
            InvalidToolConstraints: a selector is of another toolset.
        """
        extra = [as_member_of(toolset, s) for s in self.selectors]
        if self.mode == "all":
            return toolset.selectors()
        # `dict.fromkeys` keeps the order, and each tool once.
        if self.mode == "only":
            return tuple(dict.fromkeys(extra))
        return tuple(dict.fromkeys([*toolset.default_selectors(), *extra]))

    def without(self, toolset: type[TS], names: Collection[str]) -> ToolAvailability[TS]:
        """The same without the tools of these names.

        Raises:
            InvalidToolConstraints: as `resolve`.
        """
        kept = [selector for selector in self.resolve(toolset) if selector.name not in names]
        return ToolAvailability("only", tuple(kept))

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_list

        return f"ToolAvailability.{self.mode}({brief_list(map(repr, self.selectors), 80)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolAvailability):
            return NotImplemented
        return self.mode == other.mode and self.selectors == other.selectors

    def __hash__(self) -> int:
        return hash((self.mode, self.selectors))


class SearchAvailability(ToolAvailability[TS]):
    """What is available in a turn in which the model may search for tools.

    Where the API loads tools on demand, all of them are offered, and most are deferred. Elsewhere
    only those are offered that it needs, or has found.

    Attributes:
        finder: The tool that finds others.
        deferred: The tools that it can find, in an order that stays the same.
    """

    __slots__ = ("deferred", "finder")

    def __init__(
        self,
        finder: Selector[TS, Any, Any],
        always: tuple[Selector[TS, Any, Any], ...],
        deferred: tuple[Selector[TS, Any, Any], ...],
        found: tuple[Selector[TS, Any, Any], ...],
    ) -> None:
        # What was found comes last, in the order in which it was found: the tools before it keep
        # their bytes, which providers cache.
        super().__init__("only", (*always, finder, *found))
        self.finder: Selector[TS, Any, Any] = finder
        self.deferred: tuple[Selector[TS, Any, Any], ...] = deferred

    def without(self, toolset: type[TS], names: Collection[str]) -> ToolAvailability[TS]:
        """The same without the tools of these names: they can't be found either."""
        if self.finder.name in names:  # nothing can be found
            return super().without(toolset, names)
        place = self.selectors.index(self.finder)
        always, deferred, found = [
            tuple([selector for selector in selectors if selector.name not in names])
            for selectors in (self.selectors[:place], self.deferred, self.selectors[place + 1 :])
        ]
        return SearchAvailability(self.finder, always, deferred, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchAvailability):
            return False
        return (self.selectors, self.finder, self.deferred) == (
            other.selectors,
            other.finder,
            other.deferred,
        )

    def __hash__(self) -> int:
        return hash((self.mode, self.selectors))

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_list

        loaded = brief_list(map(repr, self.selectors), 70)
        return f"<{loaded} available, {len(self.deferred)} tools to be found>"


class ToolRequirement(Generic[TS]):
    """Whether the model must call a tool (rule A2).

    Make one with `optional`, `at_least_one` or `specific`.
    """

    __slots__ = ("mode", "selector")

    def __init__(
        self,
        mode: Literal["optional", "at_least_one", "specific"],
        selector: Selector[TS, Any, Any] | None = None,
    ) -> None:
        if mode not in ("optional", "at_least_one", "specific"):
            raise InvalidToolConstraints(
                f"{mode!r} is not a requirement; make one as ToolRequirement.specific(...)"
            )
        if mode == "specific":
            _check_selector(selector)
        self.mode = mode
        self.selector: Selector[TS, Any, Any] | None = selector

    @staticmethod
    def optional() -> ToolRequirement[T]:  # pyright: ignore[reportInvalidTypeVarUse]
        """The model may call tools."""
        return ToolRequirement("optional")

    @staticmethod
    def at_least_one() -> ToolRequirement[T]:  # pyright: ignore[reportInvalidTypeVarUse]
        """The model must call some tool."""
        return ToolRequirement("at_least_one")

    @staticmethod
    def specific(selector: Selector[T, Any, Any]) -> ToolRequirement[T]:
        """The model must call this tool."""
        return ToolRequirement("specific", selector)

    def check(self, toolset: type[TS], offered: tuple[Selector[TS, Any, Any], ...]) -> None:
        """Check that these tools can meet it.

        Raises:
            InvalidToolConstraints: they can't; nothing was sent.
        """
        if self.selector is not None:
            if as_member_of(toolset, self.selector) not in offered:
                names = ", ".join([s.name for s in offered]) or "none"
                raise InvalidToolConstraints(
                    f"the tool {self.selector.name!r} is required but not available "
                    f"(available: {names}); nothing was sent"
                )
        elif self.mode == "at_least_one" and not offered:
            raise InvalidToolConstraints(
                "a tool call is required but no tool is available; nothing was sent"
            )

    def __repr__(self) -> str:
        selector = repr(self.selector) if self.selector else ""
        return f"ToolRequirement.{self.mode}({selector})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolRequirement):
            return NotImplemented
        return self.mode == other.mode and self.selector == other.selector

    def __hash__(self) -> int:
        return hash((self.mode, self.selector))


if TYPE_CHECKING:
    # Names for checkers alone: typed dictionaries are slow to build.

    class ToolConstraints(TypedDict, Generic[TS], total=False):
        """What a turn with tools may say about them.

        Attributes:
            available: Which tools the model may call; the default ones, if omitted.
            require: Whether it must call one; it may, if omitted.
            describe: Other descriptions for this turn.
            parallel: `False` asks for at most one call.
            provider: Settings of tools for single APIs in this turn, by the tool and the API's
                name.
            prefix_stable: `True` sends the same list of tools whatever `available` says, and
                narrows it beside the list, where the API can do that; see `Toolset.offer`.
        """

        available: ToolAvailability[TS] | None
        require: ToolRequirement[TS] | None
        describe: ByTool[Selector[TS, Any, Any], str] | None
        parallel: bool
        provider: ByTool[Selector[TS, Any, Any], ProviderSettings] | None
        prefix_stable: bool


def _check_selector(value: Any) -> None:
    if isinstance(value, Selector):
        return
    hint = ""
    if isinstance(value, (list, tuple, set)):
        hint = "; give them one by one, or with a star"
    raise InvalidToolConstraints(f"{value!r:.100} is not a selector; write AppTools.<tool>{hint}")
