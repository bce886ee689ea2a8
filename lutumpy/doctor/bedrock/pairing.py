"""Repairs of Converse: results first in the message right after their calls."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.block_pairing import Pairing, mend_pairing_of, mend_speakers_of
from lutumpy.doctor.mending import Stage
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.rules.bedrock.sequence import ASSISTANT_ONLY
from lutumpy.rules.bedrock.wire import WIRE

__all__ = ["mend_pairing", "mend_speakers"]


def _write_interrupted(call_id: str) -> dict[str, Any]:
    result = {"toolUseId": call_id, "content": [{"text": INTERRUPTED}], "status": "error"}
    return {"toolResult": result}


_PAIRING = Pairing(
    wire=WIRE,
    open_call_rules=("converse.results_after_calls", "converse.results_first"),
    second_result_rule="converse.single_result",
    empty_rule="converse.empty_content",
    model_kinds=ASSISTANT_ONLY,
    reasoning_kinds=("reasoningContent", "citationsContent"),
    write_interrupted=_write_interrupted,
)
mend_speakers: Stage = mend_speakers_of(_PAIRING)
mend_pairing: Stage = mend_pairing_of(_PAIRING)
