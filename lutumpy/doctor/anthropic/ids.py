"""Repairs of Messages: ids of calls, in the call and in its result alike."""

from __future__ import annotations

from lutumpy.doctor.block_ids import Ids, mend_ids_of, mend_repeats_of
from lutumpy.doctor.mending import Stage
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["mend_ids", "mend_repeats"]

_IDS = Ids(
    wire=WIRE,
    limit=64,
    prefix="toolu_",
    told_by="type",
    other_calls={"server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_"},
    other_results=tuple([kind for kind in BLOCK_TYPES if kind.endswith("_tool_result")]),
)
mend_ids: Stage = mend_ids_of(_IDS)
mend_repeats: Stage = mend_repeats_of(_IDS)
