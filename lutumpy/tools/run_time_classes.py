"""Toolset classes that are made by a call: filled, extended, or of dynamic tools alone.

They are ordinary classes, so rounds, offers and hooks need to know nothing of them; the garbage
collector takes those that nobody uses any more. `extends` in their table names the class that they
were made of, whose selectors and hook registries are good for them too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lutumpy.errors import DeclarationError
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.dynamic_group import Dynamic, DynamicGroup
from lutumpy.tools.members import Filling, build_table, fill_table
from lutumpy.tools.selectors import BaseToolset, ToolsetTable
from lutumpy.tools.tool import Nested, Tool, nested, tool

if TYPE_CHECKING:
    from lutumpy.tools.compiled import CompiledTool
    from lutumpy.tools.dynamic import DynamicTool

__all__ = ["MAKE_TABLE", "extend_toolset", "fill_toolset", "toolset_of"]

TS = TypeVar("TS", bound=BaseToolset)

MAKE_TABLE = "_make_table"
"""The class keyword by which a class that is made here brings its table with it."""


def toolset_of(root: Any, name: str, tools: Iterable[DynamicTool], prefix: str) -> type[Any]:
    """A toolset of dynamic tools alone.

    Args:
        root: `Toolset`.
        name: The name of the class.
        tools: The tools.
        prefix: Put before each tool's name.
    """
    from lutumpy.tools.calls import ToolCall
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput

    if not isinstance(cast("object", name), str) or not isinstance(cast("object", prefix), str):
        raise DeclarationError("Toolset.of takes a name and tools, and prefix= a text")
    listed = _check_tools(f"Toolset.of({name!r}, ...)", tools)
    if prefix:
        listed = [one.renamed(prefix + one.name) for one in listed]
    place = Dynamic()
    filling = {place: [one.__lutumpy_tool__ for one in listed]}

    def make_table(cls: type[BaseToolset]) -> ToolsetTable:
        table = build_table(cls, root, filling)
        table.made_at_run_time = True
        return table

    return _make_class(
        name, root[ToolCall[DynamicInput, DynamicOutput]], make_table, {"tools": place}
    )


def fill_toolset(
    base: type[TS], tools: Mapping[DynamicGroup[TS], Iterable[DynamicTool]]
) -> type[TS]:
    """`base` with tools in its places."""
    table = base.__lutumpy_table__
    if not isinstance(cast("object", tools), Mapping):
        raise DeclarationError(
            f"with_dynamic_tools takes tools by place, {{{base.__name__}.<place>: [...]}}, not "
            f"{type(tools).__name__}"
        )
    listed_tools: dict[Dynamic, list[CompiledTool]] = {}
    for group, listed in tools.items():
        if not isinstance(group, DynamicGroup) or group.place not in table.groups:
            raise DeclarationError(
                f"{safe_repr(group)} is not a dynamic() place of {base.__name__}"
            )
        where = f"{base.__name__}.{group.name}"
        listed_tools[group.place] = [one.__lutumpy_tool__ for one in _check_tools(where, listed)]
    filling: Filling = {
        place: listed_tools.get(place, [selector.tool for selector in group.selectors()])
        for place, group in table.groups.items()
    }
    # Of the declared class, not of one that was filled before: a session may fill it each turn.
    declared = base
    while declared.__lutumpy_table__.is_filled and declared.__lutumpy_table__.extends is not None:
        declared = cast("type[TS]", declared.__lutumpy_table__.extends)

    def make_table(cls: type[BaseToolset]) -> ToolsetTable:
        return fill_table(cls, declared, filling)

    return _make_class(declared.__name__, declared, make_table, {})


def extend_toolset(base: type[TS], members: Mapping[str, Any], root: Any) -> type[TS]:
    """`base` with further members."""
    known = base.__lutumpy_table__.members
    taken = [name for name in members if name in known]
    if taken:
        raise DeclarationError(
            f"{base.__name__} has a member {taken[0]!r} already; extended() adds members, and "
            "replaces none"
        )
    body = {name: _as_member(value) for name, value in members.items()}
    # What filled the places of `base` stays there.
    filling = {
        place: [selector.tool for selector in group.selectors()]
        for place, group in base.__lutumpy_table__.groups.items()
    }
    make_table = partial(build_table, root=root, filling=filling, extends=base)
    return _make_class(base.__name__, base, make_table, body)


def _as_member(value: Any) -> Any:
    if isinstance(value, (Tool, Nested, Dynamic)):
        return value
    if isinstance(value, type) and hasattr(value, "__lutumpy_table__"):
        return nested(cast("Any", value))
    return tool(value)


def _check_tools(where: str, tools: Iterable[DynamicTool]) -> list[DynamicTool]:
    from lutumpy.tools.dynamic import DynamicTool

    if not isinstance(cast("object", tools), Iterable) or isinstance(tools, (str, Mapping)):
        raise DeclarationError(f"{where} takes a list of DynamicTools, not {safe_repr(tools)}")
    listed = list(tools)
    for one in listed:
        if not isinstance(cast("object", one), DynamicTool):
            raise DeclarationError(
                f"{where} takes DynamicTools, not {safe_repr(one)}; other tools are members of "
                "the class, or added with extended()"
            )
    return listed


def _make_class(
    name: str,
    base: Any,
    make_table: Callable[[type[BaseToolset]], ToolsetTable],
    body: Mapping[str, Any],
) -> type[Any]:
    namespace = {**body, "__module__": base.__module__, "__qualname__": name}
    return types.new_class(
        name, (base,), {MAKE_TABLE: make_table}, lambda scope: scope.update(namespace)
    )
