"""Where calls and results are in Converse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.bedrock.limits import SERVER_TOOL
from lutumpy.rules.block_wire import BlockWire, Lens

__all__ = ["WIRE"]


def _is_answered(call: Mapping[str, Any]) -> bool:
    return call.get("type") != SERVER_TOOL


WIRE = BlockWire(
    call=Lens("toolUse", "toolUseId"),
    result=Lens("toolResult", "toolUseId"),
    joins=False,
    is_answered=_is_answered,
)
"""Each message stands for itself: the API joins no neighbours. Results of the provider's own tools
are beside their calls, in the model's message.
"""
