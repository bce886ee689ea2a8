"""Searches for tools that a model makes by a call of its own kind: calls of the tool that finds.

Such a call has no name on the wire. It gets the name of the tool that runs it, so that hooks,
results and other APIs know it by that; what is sent back to its own API stays as it came.
"""

from __future__ import annotations

from dataclasses import replace

from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.core.tool_specs import SEARCH_CALL

__all__ = ["name_search", "name_searches"]


def name_searches(turn: AssistantTurn, finder: str) -> AssistantTurn:
    """The turn with its searches for tools named like the tool that runs them."""
    if all(call.kind != SEARCH_CALL for call in turn.calls):
        return turn
    # One call is in `calls` and in `blocks`, as the very same object.
    named = {id(call): name_search(call, finder) for call in turn.calls}
    return replace(
        turn,
        blocks=tuple([named.get(id(block), block) for block in turn.blocks]),
        calls=tuple([named[id(call)] for call in turn.calls]),
    )


def name_search(call: CallBlock, finder: str | None) -> CallBlock:
    """The call, named so if it is a search for tools."""
    if call.kind != SEARCH_CALL or finder is None:
        return call
    return replace(call, name=finder)
