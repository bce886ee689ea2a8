"""Calls of tools whose names an API refuses, and that were offered under others (rule R2).

They get the tool's own name, by which hooks, results and other APIs know it. What is sent back to
the answer's own API stays as it came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.rounds.offered import OfferedTools

__all__ = ["name_call", "name_calls"]


def name_calls(offer: OfferedTools[Any], turn: AssistantTurn) -> AssistantTurn:
    """The turn with its calls under the names of their tools."""
    named = tuple([name_call(offer, call) for call in turn.calls])
    if all(call is before for call, before in zip(named, turn.calls, strict=True)):
        return turn
    # One call is in `calls` and in `blocks`, as the very same object.
    by_id = {id(before): call for call, before in zip(named, turn.calls, strict=True)}
    blocks = tuple([by_id.get(id(block), block) for block in turn.blocks])
    return replace(turn, blocks=blocks, calls=named)


def name_call(offer: OfferedTools[Any], call: CallBlock) -> CallBlock:
    """The call under the name of its tool."""
    name = offer.own_name(call.name)
    return call if name == call.name else replace(call, name=name)
