"""The tools of an offer as the values that `tools(offer)` of an adapter returns."""

# A list of tools is made and checked once for each offer, as its bytes are. What the caller gets is
# a copy as far as the tools' schemas, which are the tools' own: a copy of these too would cost
# twenty times as much. See decision 23.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.core.tool_specs import ToolOffering

__all__ = ["copy_within", "listed_tools"]

Tool = dict[str, Any]


def listed_tools(
    offer: ToolOffering,
    key: str,
    make: Callable[[], list[Tool]],
    copy_tool: Callable[[Tool], Tool] = dict.copy,
) -> list[Tool]:
    """The tools of an offer, in a list and dictionaries of its own; their schemas are shared.

    Args:
        offer: The tools of a turn.
        key: Tells apart the ways to write them: the API, and the options that it depends on.
        make: Makes and checks the list when it is first asked for. What it raises is raised, and
            nothing is kept.
        copy_tool: Copies one tool of the API as far as its schema.
    """
    kept = offer.listed.get(key)
    if kept is None:
        kept = offer.listed[key] = make()
    return [copy_tool(tool) for tool in kept]


def copy_within(tool: Tool, name: str) -> Tool:
    """A copy of a tool that has its own fields in a dictionary under `name`."""
    fresh = tool.copy()
    inner = fresh.get(name)
    if inner is not None:
        fresh[name] = inner.copy()
    return fresh
