"""The tools of an offer as the values that `tools(offer)` of an adapter returns."""

# A list of tools is made and checked once for each offer, as its bytes are. What the caller gets is
# a copy as far as the tools' schemas, which are the tools' own: a copy of these too would cost
# twenty times as much. See decision 23.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.core.tool_specs import ToolOffering

__all__ = ["copy_tools", "listed_tools"]

Tools = list[dict[str, Any]]


def copy_tools(tools: Tools) -> Tools:
    """The tools in a list and dictionaries of its own."""
    return [{**tool} for tool in tools]


def listed_tools(
    offer: ToolOffering,
    key: str,
    make: Callable[[], Tools],
    copy: Callable[[Tools], Tools] = copy_tools,
) -> Tools:
    """The tools of an offer, in a list and dictionaries of its own; their schemas are shared.

    Args:
        offer: The tools of a turn.
        key: Tells apart the ways to write them: the API, and the options that it depends on.
        make: Makes and checks the list when it is first asked for. What it raises is raised, and
            nothing is kept.
        copy: Copies tools of the API as far as their schemas. It is called for the whole list, as
            a call for each tool takes longer than the copy.
    """
    kept = offer.listed.get(key)
    if kept is None:
        kept = offer.listed[key] = make()
    return copy(kept)
