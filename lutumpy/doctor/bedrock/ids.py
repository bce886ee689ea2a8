"""Repairs of Converse: ids of calls, in the call and in its result alike."""

from __future__ import annotations

from lutumpy.doctor.block_ids import Ids, mend_ids_of, mend_repeats_of
from lutumpy.doctor.mending import Stage
from lutumpy.rules.bedrock.limits import MAX_CALL_ID
from lutumpy.rules.bedrock.wire import WIRE

__all__ = ["mend_ids", "mend_repeats"]

_IDS = Ids(wire=WIRE, limit=MAX_CALL_ID, prefix="tooluse_")
mend_ids: Stage = mend_ids_of(_IDS)
mend_repeats: Stage = mend_repeats_of(_IDS)
