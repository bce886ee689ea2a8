"""Who asks for the results of calls that were promised (rule LR32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy import ToolMetadata
from lutumpy.tools import Polled, poll_once

CALL = ToolMetadata("c1", "render", "{}")


class Plain:
    def interval(self, handle: Any) -> float:
        return 1.0

    async def poll(
        self, handle: Any, answers: Mapping[str, Any] | None = None, *, holds: bool = False
    ) -> Polled:
        return Polled("done", output=f"{handle} {answers} {holds}")

    async def cancel(self, handle: Any) -> None:
        return None


class Knowing(Plain):
    async def poll_call(
        self, call: ToolMetadata, handle: Any, answers: Any = None, *, holds: bool = False
    ) -> Polled:
        return Polled("done", output=f"{call.id} {handle} {answers} {holds}")


async def test_a_poller_is_told_whose_result_it_asks_for_if_it_wants_to_know() -> None:
    polled = await poll_once(Plain(), CALL, "h", {"who": 1}, holds=True)
    assert polled.output == "h {'who': 1} True"
    polled = await poll_once(Knowing(), CALL, "h")
    assert polled.output == "c1 h None False"
