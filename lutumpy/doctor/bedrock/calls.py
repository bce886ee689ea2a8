"""What the repairs of calls and results need to know of Converse."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.block_ids import Ids
from lutumpy.doctor.block_pairing import Pairing
from lutumpy.doctor.block_rows import call_rows
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.rules.bedrock.limits import MAX_CALL_ID
from lutumpy.rules.bedrock.sequence import ASSISTANT_ONLY
from lutumpy.rules.bedrock.wire import WIRE

__all__ = ["CALLS"]


def _write_interrupted(call_id: str) -> dict[str, Any]:
    result = {"toolUseId": call_id, "content": [{"text": INTERRUPTED}], "status": "error"}
    return {"toolResult": result}


CALLS = call_rows(
    Pairing(
        wire=WIRE,
        open_call_rules=("converse.results_after_calls", "converse.results_first"),
        second_result_rule="converse.single_result",
        empty_rule="converse.empty_content",
        model_kinds=ASSISTANT_ONLY,
        reasoning_kinds=("reasoningContent", "citationsContent"),
        write_interrupted=_write_interrupted,
    ),
    Ids(wire=WIRE, limit=MAX_CALL_ID, prefix="tooluse_"),
    ("reasoningContent",),
)
