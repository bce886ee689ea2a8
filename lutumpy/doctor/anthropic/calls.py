"""What the repairs of calls and results need to know of Messages."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.block_ids import Ids
from lutumpy.doctor.block_pairing import Pairing
from lutumpy.doctor.block_rows import call_rows
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES
from lutumpy.rules.anthropic.prefix import THINKING
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["CALLS"]


def _write_interrupted(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "is_error": True, "content": INTERRUPTED}


CALLS = call_rows(
    Pairing(
        wire=WIRE,
        open_call_rules=("anthropic.results_after_uses", "anthropic.results_first"),
        second_result_rule="anthropic.single_result",
        empty_rule="anthropic.empty_user",
        model_kinds=ASSISTANT_ONLY,
        reasoning_kinds=THINKING,
        write_interrupted=_write_interrupted,
    ),
    Ids(
        wire=WIRE,
        limit=64,
        prefix="toolu_",
        identified_by="type",
        other_calls={"server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_"},
        other_results=tuple([kind for kind in BLOCK_TYPES if kind.endswith("_tool_result")]),
    ),
    THINKING,
)
