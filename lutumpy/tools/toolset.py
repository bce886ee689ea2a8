"""The toolset: a class whose members are tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

from typing_extensions import Never, Self, TypeVar

from lutumpy.errors import (
    DeclarationError,
    InvalidArgumentsError,
    InvalidToolConstraints,
    MalformedArgumentsError,
    UnknownToolError,
)
from lutumpy.tools.arguments import Refused, decode_arguments, second_look
from lutumpy.tools.body import check_body
from lutumpy.tools.branches import check_branches
from lutumpy.tools.calls import BaseToolCall, ToolCall
from lutumpy.tools.selectors import ByTool, NestedSelectors, Selector, select
from lutumpy.tools.tool import Nested, Tool

if TYPE_CHECKING:
    from lutumpy.core.items import ToolMetadata
    from lutumpy.hooks.tool_hooks import ToolHooks
    from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
    from lutumpy.rounds.offer import Offer
    from lutumpy.tools.definition import ToolDef

TS = TypeVar("TS", bound="Toolset[Any]")
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)
V_co = TypeVar("V_co", covariant=True)

# Names that a generated hook registry needs for itself (rule D8).
REGISTRY_NAMES = frozenset({
    "apply", "apply_sync", "describe", "description_overrides", "description_overrides_sync", "extend", "load_plugins",
    "nested", "on", "register", "review", "review_sync", "unregister", "with_extended", "with_hooks",
})  # fmt: skip
_GENERAL_SLOTS = ("any_tool_hook", "any_result_hook")


class HasView(Protocol[V_co]):
    """What takes part in a turn as its tools: a toolset class."""

    def __view__(self) -> V_co: ...


class View(Generic[TS, C]):
    """A toolset together with the type of its calls."""

    __slots__ = ("toolset",)

    def __init__(self, toolset: type[TS]) -> None:
        self.toolset: type[TS] = toolset


class ToolsetTable:
    """What the class builder makes of a toolset's members."""

    __slots__ = (
        "by_member",
        "by_name",
        "cache",
        "defaults",
        "groups",
        "members",
        "places",
        "selectors",
    )

    def __init__(
        self, toolset: type[Toolset[Any]], members: dict[str, Tool[Any, Any] | Nested[Any]]
    ) -> None:
        self.members: dict[str, Tool[Any, Any] | Nested[Any]] = members
        self.by_member: dict[Any, Any] = {}
        self.by_name: dict[str, Selector[Any, Any, Any]] = {}
        self.groups: dict[Any, Any] = {}
        self.places: dict[str, str] = {}
        defaults: list[Selector[Any, Any, Any]] = []
        for name, member in members.items():
            place = f"{toolset.__name__}.{name}"
            if isinstance(member, Tool):
                selector = self._add(toolset, place, select(toolset, member.source))
                self.by_member[member] = selector
                if not member.off:
                    defaults.append(selector)
                continue
            inner = member.toolset.__lutumpy_table__
            self.groups[member] = NestedSelectors(toolset, member.toolset)
            for other in inner.selectors:
                # "AppTools.data.get_user": the inner place without the name of the inner toolset
                path = inner.places[other.name].partition(".")[2]
                selector = self._add(toolset, f"{place}.{path}", select(toolset, other.tool))
                if not member.off and other in inner.defaults:
                    defaults.append(selector)
        self.selectors: tuple[Selector[Any, Any, Any], ...] = tuple(self.by_name.values())
        self.defaults: tuple[Selector[Any, Any, Any], ...] = tuple(defaults)
        # Offers that were made without arguments, and what else is made once for a toolset by those who use it.
        self.cache: dict[str, Any] = {}

    def _add(
        self, toolset: type[Toolset[Any]], place: str, selector: Selector[Any, Any, Any]
    ) -> Selector[Any, Any, Any]:
        if selector.name in self.by_name:
            raise DeclarationError(
                f"two tools of {toolset.__name__} have the name {selector.name!r}: {self.places[selector.name]} and "
                f"{place}; a toolset's tool names are unique, nested ones included (rule D1)"
            )
        self.by_name[selector.name] = selector
        self.places[selector.name] = place
        return selector


class Toolset(Generic[C]):
    """Base of toolsets: a class whose members are made by `tool()` and `nested()`.

    `Toolset[A | B]`, a union of `ToolCall[...]`, gives rounds exactly these calls, so that a checker can prove that
    every tool is handled; the class builder refuses a union that doesn't match the members, or in which a checker would
    take the calls of two tools for one another.
    """

    __lutumpy_table__: ClassVar[ToolsetTable]

    def __new__(cls) -> Self:
        raise TypeError(f"{cls.__name__} is used as a class; it has no instances")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        members = _members(cls)
        _check_member_names(cls, members)
        table = ToolsetTable(cls, members)
        _check_slots(cls, members)
        check_branches(cls, Toolset, table)
        cls.__lutumpy_table__ = table

    @classmethod
    def __view__(cls) -> View[Self, C]:
        return View(cls)

    @classmethod
    def selectors(cls) -> tuple[Selector[Self, Any, Any], ...]:
        """All tools in declaration order, nested ones in place."""
        return cls.__lutumpy_table__.selectors

    @classmethod
    def default_selectors(cls) -> tuple[Selector[Self, Any, Any], ...]:
        """All tools but those that are off."""
        return cls.__lutumpy_table__.defaults

    @classmethod
    def selector(cls, name: str) -> Selector[Self, Any, Any]:
        """The tool of this name; raises `UnknownToolError`."""
        found = cls.__lutumpy_table__.by_name.get(name)
        if found is None:
            raise _unknown(cls, name)
        return found

    @classmethod
    def try_selector(cls, name: str) -> Selector[Self, Any, Any] | None:
        """The tool of this name, or `None`."""
        return cls.__lutumpy_table__.by_name.get(name)

    @classmethod
    def definitions(cls) -> tuple[ToolDef, ...]:
        """The definitions of all tools."""
        return tuple([s.definition for s in cls.__lutumpy_table__.selectors])

    @classmethod
    def definitions_for(cls, selectors: Iterable[Selector[Self, Any, Any]]) -> tuple[ToolDef, ...]:
        """The definitions of these tools, in this order.

        Raises:
            InvalidToolConstraints: one is of another toolset.
        """
        return tuple([own(cls, s).definition for s in selectors])

    @classmethod
    def parse(cls, metadata: ToolMetadata) -> C:
        """One call, decoded; every tool of the toolset is available.

        Raises:
            UnknownToolError: no tool has this name.
            MalformedArgumentsError: the arguments are no JSON object.
            InvalidArgumentsError: the arguments don't fit the tool's input.
        """
        try:
            selector = cls.__lutumpy_table__.by_name[metadata.name]
        except KeyError:
            raise _unknown(cls, metadata.name) from None
        except AttributeError:
            raise TypeError(f"parse takes a ToolMetadata, not {type(metadata).__name__}") from None
        # Nothing stands between a good call and `validate_json`. The class builder has checked the union C.
        text = metadata.arguments
        if (
            "NaN" in text or "Infinity" in text
        ):  # pydantic's parser takes both, and JSON has neither (rule C2b)
            decoded = decode_arguments(selector.tool, text)
        else:
            try:
                return ToolCall(metadata, selector.tool.decode(text), selector)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
            except Exception as error:
                decoded = second_look(selector.tool, text, error)
        if isinstance(decoded, Refused):
            refused = (
                MalformedArgumentsError
                if decoded.reason == "malformed_arguments"
                else InvalidArgumentsError
            )
            raise refused(metadata.name, metadata.id, decoded.detail)
        return ToolCall(metadata, decoded.input, selector, decoded.repairs)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    @classmethod
    def offer(
        cls,
        available: ToolAvailability[Self] | None = None,
        require: ToolRequirement[Self] | None = None,
        describe: ByTool[Selector[Self, Any, Any], str] | None = None,
        parallel: bool = True,
    ) -> Offer[C]:
        """The tools of one turn: renders to each API, and reads an answer back.

        Args:
            available: Which tools the model may call; the default ones when left out.
            require: Whether it must call one; optional when left out.
            describe: Other descriptions for this turn; those of tools that are not offered are ignored.
            parallel: `False` asks the provider for at most one call.

        Raises:
            InvalidToolConstraints: the constraints can't hold (rule A2), or a selector is of another toolset.
        """
        # Offers live in a layer above this one; the import stands here so that using tools costs nothing of it.
        from lutumpy.rounds.offer import make_offer

        return make_offer(cls, available, require, describe, parallel)

    @classmethod
    def hooks(cls) -> ToolHooks[Self]:
        """A new, empty registry of hooks for this toolset."""
        from lutumpy.hooks.tool_hooks import ToolHooks

        return ToolHooks(cls)


def own(toolset: type[TS], selector: Selector[TS, Any, Any]) -> Selector[TS, Any, Any]:
    """`selector`, if it is one of `toolset`; raises `InvalidToolConstraints` otherwise."""
    if not isinstance(selector, Selector):
        raise InvalidToolConstraints(
            f"{selector!r} is no selector; write {toolset.__name__}.<tool>"
        )
    if selector.toolset is not toolset:
        raise InvalidToolConstraints(
            f"{selector.toolset.__name__}.{selector.name} is a tool of another toolset than {toolset.__name__}"
        )
    return selector


def _unknown(toolset: type[Toolset[Any]], name: str) -> UnknownToolError:
    return UnknownToolError(
        name, toolset.__name__, near_names(name, toolset.__lutumpy_table__.by_name)
    )


def near_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names most like `name`, nearest first; at most three."""
    import difflib

    return tuple(difflib.get_close_matches(name[:200], list(names), n=3, cutoff=0.5))


def _members(cls: type[Any]) -> dict[str, Tool[Any, Any] | Nested[Any]]:
    members: dict[str, Tool[Any, Any] | Nested[Any]] = {}
    for base in reversed(cls.__mro__):
        if base is Toolset:
            continue
        for name, value in vars(base).items():
            if isinstance(value, (Tool, Nested)):
                members[name] = value
            elif name in members:
                raise DeclarationError(
                    f"{base.__name__}.{name} takes the place of a tool and is none; use tool()"
                )
        check_body(base, of_toolset=issubclass(base, Toolset))
    return members


def _check_member_names(cls: type[Any], members: Iterable[str]) -> None:
    taken = {n for n in dir(Toolset) if not n.startswith("_")} | REGISTRY_NAMES
    for name in members:
        if name in taken:
            raise DeclarationError(
                f"{cls.__name__}.{name}: the name is taken by a method of toolsets or of their hook registries "
                "(rule D8); name the member differently, the tool's own name may stay"
            )


def _check_slots(cls: type[Any], members: Mapping[str, Tool[Any, Any] | Nested[Any]]) -> None:
    slots: dict[str, str] = dict.fromkeys(_GENERAL_SLOTS, "every toolset")
    for name, member in members.items():
        if isinstance(member, Tool):
            place = f"{cls.__name__}.{name}"
            for slot in hook_slots(member.source.definition.name):
                if slot in slots:
                    raise DeclarationError(
                        f"{place} and {slots[slot]} have the same hook slot {slot!r} (rule D8)"
                    )
                slots[slot] = place


def hook_slots(name: str) -> tuple[str, str]:
    """The names of a tool's two hook slots: for its calls, and for its description (rule D8)."""
    stem = name.replace("-", "_")
    return f"{stem}_hook", f"{stem}_description_hook"


class NoTools(Toolset[Never]):
    """The toolset without tools: an offer of it offers nothing."""
