"""What telemetry adds to a turn with a call: wrapped without an SDK of OpenTelemetry, and with one,
beside the same turns without.

A turn here is a request, its round, one trivial async tool and the commit, by a scripted model that
checks nothing. The kinds take turns in one run, and the least time of each counts. With an SDK,
spans go into memory and are dropped; with `content`, everything that is said goes along.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from lutumpy import NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.otel import Telemetry
from lutumpy.testing import Call, Reply, ScriptedModel

TURNS = 20
REPEATS = 60


@tool_fn(effect="read")
async def lookup(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    lookup = tool(lookup)


class Nowhere(SpanExporter):
    """Where spans of this benchmark go."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def turns(telemetry: Telemetry | None) -> float:
    """Seconds of one turn, of many in one new conversation."""
    script = [Reply(calls=[Call("lookup", {"key": "k"})]) for _ in range(TURNS)]
    llm: Any = ScriptedModel(script, check=False, keep=1)
    executor = ToolExecutor()
    if telemetry is not None:
        llm, executor = telemetry.model(llm), ToolExecutor(around=telemetry.tool_call)
    session, dispatch = Session(), Dispatcher(Tools)
    session.push_user("Look it up, again and again.")
    begun = time.perf_counter()
    for _ in range(TURNS):
        outcome = await session.text_turn(llm, tools=Tools).collect()
        assert isinstance(outcome, NeedsTools)
        results = await executor.run(outcome.round.calls, dispatch)
        if telemetry is not None:
            telemetry.decisions(outcome.round)
        outcome.round.commit(session, results)
    return (time.perf_counter() - begun) / TURNS


def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Nowhere()))
    meters = MeterProvider()
    kinds: dict[str, Telemetry | None] = {
        "off": None,
        "on, no SDK": Telemetry(),
        "on, with an SDK": Telemetry(provider, meters, content=False),
        "the same with content": Telemetry(provider, meters, content="messages"),
    }
    best = dict.fromkeys(kinds, float("inf"))
    gc.collect()
    gc.disable()
    for _ in range(REPEATS):
        for name, telemetry in kinds.items():
            best[name] = min(best[name], asyncio.run(turns(telemetry)))
    gc.enable()
    off = best["off"]
    for name, seconds in best.items():
        added = (seconds - off) * 1e6
        print(f"{name:22} {seconds * 1e6:7.0f} us a turn  {seconds / off:5.2f}  {added:+7.1f} us")
    provider.shutdown()
    meters.shutdown()


if __name__ == "__main__":
    main()
