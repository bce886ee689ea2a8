"""Repairs of Converse: the order inside a message of the model, and of the results after it."""

from __future__ import annotations

from lutumpy.doctor.block_order import (
    mend_calls_last_of,
    mend_order_of,
    mend_reasoning_first_of,
)
from lutumpy.doctor.mending import Stage
from lutumpy.rules.bedrock.wire import WIRE

__all__ = ["mend_calls_last", "mend_order", "mend_reasoning_first"]

mend_calls_last: Stage = mend_calls_last_of(WIRE)
mend_reasoning_first: Stage = mend_reasoning_first_of(WIRE, ("reasoningContent",))
mend_order: Stage = mend_order_of(WIRE)
