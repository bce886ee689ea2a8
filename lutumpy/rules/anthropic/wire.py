"""Where calls and results are in Messages."""

from __future__ import annotations

from lutumpy.rules.block_wire import BlockWire, Lens

__all__ = ["WIRE"]

WIRE = BlockWire(
    call=Lens("tool_use", "id"), result=Lens("tool_result", "tool_use_id"), is_tagged=True
)
"""Neighbouring messages of one role are one turn: the API merges them before it looks."""
