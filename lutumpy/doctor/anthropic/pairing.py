"""Repairs of Messages: results first in the message right after their calls."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.block_pairing import Pairing, mend_pairing_of, mend_speakers_of
from lutumpy.doctor.mending import Stage
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY, THINKING
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["mend_pairing", "mend_speakers"]


def _write_interrupted(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "is_error": True, "content": INTERRUPTED}


_PAIRING = Pairing(
    wire=WIRE,
    open_call_rules=("anthropic.results_after_uses", "anthropic.results_first"),
    second_result_rule="anthropic.single_result",
    empty_rule="anthropic.empty_user",
    model_kinds=ASSISTANT_ONLY,
    reasoning_kinds=THINKING,
    write_interrupted=_write_interrupted,
)
mend_speakers: Stage = mend_speakers_of(_PAIRING)
mend_pairing: Stage = mend_pairing_of(_PAIRING)
