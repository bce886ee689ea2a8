"""From the body of a toolset class to its table of tools: collected, checked, and then looked up.

Everything is checked before the class exists, so that a toolset with a mistake in it is never
there: names that methods of toolsets have (rule D8), tools of one name (D1), hook slots that two
tools would share (D8), and whatever looks like a tool and isn't one (D11, in `body`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from lutumpy.errors import DeclarationError
from lutumpy.tools.body import check_body
from lutumpy.tools.branches import check_branches
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.dynamic_group import Dynamic, DynamicGroup, DynamicSelector
from lutumpy.tools.selectors import BaseToolset, FunctionSelector, Selector, ToolsetTable
from lutumpy.tools.tool import Nested, NestedSelectors, Tool, tool

__all__ = ["REGISTRY_NAMES", "Filling", "add_members", "build_table", "fill_table", "hook_slots"]

Member: TypeAlias = "Tool[Any, Any] | Nested[Any] | Dynamic"
Filling: TypeAlias = "Mapping[Dynamic, Sequence[CompiledTool]]"
"""The tools that fill places for tools known at run time."""

# Names that a generated hook registry needs for itself (rule D8).
REGISTRY_NAMES = frozenset({
    "apply", "apply_sync", "describe", "description_overrides", "description_overrides_sync",
    "extend", "load_plugins", "nested", "on", "register", "review", "review_sync", "unregister",
    "with_extended", "with_hooks", "with_on",
})  # fmt: skip
_GENERAL_SLOTS = ("any_tool_hook", "any_result_hook")


def add_members(cls: type[BaseToolset], declared: Iterable[Any]) -> None:
    """Make declared functions and classes members of a class: what `x = tool(x)` does in a body.

    Raises:
        DeclarationError: One isn't declared as a tool, or the class has something of its name.
    """
    listed: set[str] = set()
    for each in declared:
        member = tool(each)
        name = member.definition.name.replace("-", "_")
        if name in listed:
            raise DeclarationError(
                f"tools= of {cls.__name__} holds two tools for the member {name!r}; leave one out"
            )
        listed.add(name)
        if name in vars(cls):
            raise DeclarationError(
                f"{cls.__name__}.{name} is in the class body, and in tools= as well; leave one out"
            )
        setattr(cls, name, member)


def build_table(
    cls: type[BaseToolset],
    root: type[BaseToolset],
    filling: Filling | None = None,
    extends: type[BaseToolset] | None = None,
) -> ToolsetTable:
    """The table of a toolset class that is being made.

    Args:
        cls: The class.
        root: `Toolset`: the class whose members and type parameter are not the user's.
        filling: The tools of its places for tools known at run time; those of its bases if left
            out.
        extends: The class that it was made of at run time, with more members.

    Raises:
        DeclarationError: The body of the class or its union of calls breaks a rule; the message
            says which, and what to write.
    """
    members = _collect_members(cls, root)
    _check_member_names(cls, root, members)
    table = ToolsetTable(members, extends)
    _add_selectors(table, cls, members, _inherit_filling(cls) if filling is None else filling)
    _check_hook_slots(cls, members)
    check_branches(cls, root, table)
    return table


def _inherit_filling(cls: type[BaseToolset]) -> Filling:
    """The tools that fill places of the bases of a class, but for those in nested toolsets that the
    class has of its own.
    """
    nested = [value.toolset for value in vars(cls).values() if isinstance(value, Nested)]
    own = {place for toolset in nested for place in toolset.__lutumpy_table__.groups}
    filling: dict[Dynamic, Sequence[CompiledTool]] = {}
    for base in reversed(cls.__mro__[1:]):
        table = vars(base).get("__lutumpy_table__")
        for place, group in table.groups.items() if table is not None else ():
            tools = [selector.tool for selector in group.selectors()]
            if tools and place not in own:
                filling[place] = tools
    return filling


def fill_table(cls: type[BaseToolset], base: type[BaseToolset], filling: Filling) -> ToolsetTable:
    """The table of a class that was made of `base` at run time to fill its places.

    Everything but the filling was checked when `base` was made. The tools keep what was rendered
    of them, so that a new set of tools for each turn costs next to nothing.

    Raises:
        DeclarationError: Two tools have one name.
    """
    old = base.__lutumpy_table__
    table = ToolsetTable(old.members, base)
    table.is_filled = True
    kept: dict[str, Selector[Any, Any, Any]] = {}
    for selector in old.selectors:
        if isinstance(selector, DynamicSelector) and selector.place is not None:
            continue  # the old filling; what is kept of it is in the new one
        name = selector.name
        kept[name] = table.by_name[name] = selector.for_toolset(cls)
        table.places[name] = old.places[name]
    for member, value in old.by_member.items():
        if isinstance(value, Selector):
            table.by_member[member] = kept[value.name]
        elif isinstance(value, NestedSelectors):
            table.by_member[member] = NestedSelectors(cls, cast("Any", member).toolset)
    defaults = [kept[s.name] for s in old.defaults if s.name in kept]
    for place, group in old.groups.items():
        off = cast("DynamicGroup[Any]", group).off
        _add_group(table, cls, place, group.name, filling.get(place, ()), off, defaults)
    _finish(table, defaults)
    return table


def hook_slots(name: str) -> tuple[str, str]:
    """The names of a tool's two hook slots: for its calls, and for its description (rule D8)."""
    stem = name.replace("-", "_")
    return f"{stem}_hook", f"{stem}_description_hook"


def _collect_members(cls: type[BaseToolset], root: type[BaseToolset]) -> dict[str, Member]:
    """The members of a class and of its bases.

    A member that a subclass replaces keeps its place in the order.
    """
    members: dict[str, Member] = {}
    for base in reversed(cls.__mro__):
        if base in root.__mro__:
            continue  # ours, or Python's
        for name, value in vars(base).items():
            if isinstance(value, (Tool, Nested, Dynamic)):
                members[name] = value
            elif name in members:
                raise DeclarationError(
                    f"{base.__name__}.{name} takes the place of a tool and is not one; use tool()"
                )
        check_body(base, of_toolset=issubclass(base, root))
    return members


def _check_member_names(
    cls: type[BaseToolset], root: type[BaseToolset], members: Iterable[str]
) -> None:
    taken = {name for name in dir(root) if not name.startswith("_")} | REGISTRY_NAMES
    for name in members:
        if name in taken:
            raise DeclarationError(
                f"{cls.__name__}.{name}: the name is taken by a method of toolsets or of their "
                "hook registries (rule D8); name the member differently, the tool's own name may "
                "stay"
            )


def _add_selectors(
    table: ToolsetTable, cls: type[BaseToolset], members: Mapping[str, Member], filling: Filling
) -> None:
    """Give every tool its selector: a nested one is a tool of `cls` like any other.

    Tools that fill places come last, so that the beginning of an offer, which providers cache, is
    the same whatever they are (rule Y6).
    """
    defaults: list[Selector[Any, Any, Any]] = []
    # The places with their names, what fills them, and whether that is hidden.
    places: dict[Dynamic, tuple[str, Sequence[CompiledTool], bool]] = {}
    for name, member in members.items():
        place = f"{cls.__name__}.{name}"
        if isinstance(member, Tool):
            selector = _add_selector(table, cls, place, member.source, member.definition)
            table.by_member[member] = selector
            if not member.off:
                defaults.append(selector)
        elif isinstance(member, Dynamic):
            places[member] = name, filling.get(member, ()), member.off
        else:
            table.by_member[member] = NestedSelectors(cls, member.toolset)
            inner = member.toolset.__lutumpy_table__
            for other in inner.selectors:
                if isinstance(other, DynamicSelector) and other.place is not None:
                    continue
                # "AppTools.data.get_user": the inner place without the name of the inner toolset
                path = inner.places[other.name].partition(".")[2]
                label = f"{place}.{path}"
                selector = _add_selector(table, cls, label, other.tool, other.definition)
                if not member.off and other in inner.defaults:
                    defaults.append(selector)
            for inner_place, group in inner.groups.items():
                tools = filling.get(inner_place, [s.tool for s in group.selectors()])
                hidden = member.off or group.off
                places[inner_place] = f"{name}.{group.name}", tools, hidden
    for dynamic, (name, tools, hidden) in places.items():
        _add_group(table, cls, dynamic, name, tools, hidden, defaults)
    _finish(table, defaults)


def _finish(table: ToolsetTable, defaults: list[Selector[Any, Any, Any]]) -> None:
    table.selectors = tuple(table.by_name.values())
    table.defaults = tuple(defaults)


def _add_group(
    table: ToolsetTable,
    cls: type[BaseToolset],
    place: Dynamic,
    name: str,
    tools: Iterable[CompiledTool],
    off: bool,
    defaults: list[Selector[Any, Any, Any]],
) -> None:
    """Add a place with the tools that fill it; those that aren't off, to `defaults`."""
    selectors: dict[str, Selector[Any, Any, Any]] = {}
    for compiled in tools:
        definition = compiled.definition
        label = f"{cls.__name__}.{name}[{definition.name!r}]"
        selectors[definition.name] = _add_selector(table, cls, label, compiled, definition, place)
    table.groups[place] = table.by_member[place] = DynamicGroup(cls, place, name, selectors, off)
    if not off:
        defaults += selectors.values()


def _add_selector(
    table: ToolsetTable,
    cls: type[BaseToolset],
    label: str,
    tool: CompiledTool,
    definition: ToolDef,
    place: Dynamic | None = None,
) -> Selector[Any, Any, Any]:
    name = definition.name
    if name in table.by_name:
        raise DeclarationError(
            f"two tools of {cls.__name__} have the name {name!r}: {table.places[name]} and "
            f"{label}; a toolset's tool names are unique, nested ones included (rule D1)"
        )
    selector: Selector[Any, Any, Any]
    if tool.is_dynamic:
        selector = DynamicSelector(cls, tool, definition, place)
    elif tool.has_parameters:  # this one knows the function's parameters
        selector = FunctionSelector(cls, tool, definition)
    else:
        selector = Selector(cls, tool, definition)
    table.by_name[name] = selector
    table.places[name] = label
    return selector


def _check_hook_slots(cls: type[BaseToolset], members: Mapping[str, Member]) -> None:
    # Tool names may have hyphens and method names can't, so `get-user` and `get_user` collide.
    slots: dict[str, str] = dict.fromkeys(_GENERAL_SLOTS, "every toolset")
    for name, member in members.items():
        if not isinstance(member, Tool) or member.source.is_dynamic:
            continue  # a nested toolset has a registry of its own, and dynamic tools have no slots
        place = f"{cls.__name__}.{name}"
        for slot in hook_slots(member.source.definition.name):
            if slot in slots:
                raise DeclarationError(
                    f"{place} and {slots[slot]} have the same hook slot {slot!r} (rule D8)"
                )
            slots[slot] = place
