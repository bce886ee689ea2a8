"""One conversation, and everything that is exported of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing_extensions import Self

from lutumpy import (
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.loops import LoopResult, run_tools, run_tools_sync
from lutumpy.otel import Telemetry
from lutumpy.testing import Call, Reply, ScriptedModel

CANARY = "canary-5e1f"
"""A text that stands wherever content can stand."""


@tool_fn(effect="read")
async def look(word: str) -> str:
    """Look a word up."""
    await anyio.lowlevel.checkpoint()
    if word.startswith("unknown"):
        raise ToolError(f"no {word} in {CANARY}")
    return f"{CANARY} means {word}"


@tool_fn(effect="read")
def count(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


@tool_fn
def burn(word: str) -> None:
    """Burn a book."""


class Shelf(Toolset):
    look = tool(look)
    count = tool(count)
    burn = tool(burn)


def decide(call: Any) -> ToolDecision[Any, Any]:
    """No book is burnt."""
    if Shelf.burn.matches(call):
        return Reject(f"nobody burns {CANARY}")
    return RunNormally()


SCRIPT = [
    Reply(
        text=f"Let me see {CANARY}.",
        reasoning=f"They want {CANARY}.",
        calls=[
            Call("look", {"word": CANARY}, id="c1"),
            Call("count", {"word": "three"}, id="c2"),
            Call("burn", {"word": CANARY}, id="c3"),
            Call("look", {"wrod": CANARY}, id="c4"),
            Call("look", {"word": "unknown"}, id="c5"),
        ],
        usage=(100, 20),
    ),
    Reply(text=f"It is {CANARY}.", usage=(200, 7)),
]


class Exported:
    """Providers, and what came out of them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()

    def telemetry(self, **options: Any) -> Telemetry:
        return Telemetry(self.tracers, self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        """The one span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def parent_of(self, span: ReadableSpan) -> str | None:
        """The name of the span around this one."""
        if span.parent is None:
            return None
        names = {each.context.span_id: each.name for each in self.spans if each.context}
        return names.get(span.parent.span_id, "somewhere else")

    def metrics(self) -> dict[str, list[tuple[Mapping[str, Any], Any]]]:
        """The attributes and sums of every metric, by its name; asked once."""
        data: Any = self._reader.get_metrics_data()
        return {
            metric.name: [
                (dict(point.attributes), getattr(point, "sum", getattr(point, "value", None)))
                for point in metric.data.data_points
            ]
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def text(self) -> str:
        """Everything that was exported, as one text."""
        return "\n".join([*[span.to_json() for span in self.spans], repr(self.metrics())])


def asked() -> Session:
    session = Session()
    session.push_system(f"You know {CANARY}.")
    session.push_user(f"What is {CANARY}?")
    return session


def converse(
    telemetry: Telemetry, api: str = "openai_chat", *, sync: bool = False, stream: bool = False
) -> LoopResult[Any]:
    """The conversation, in one form of the loop."""
    llm = ScriptedModel(SCRIPT, api=api, model="m-1")
    options: dict[str, Any] = {"tools": Shelf, "hooks": decide, "telemetry": telemetry}
    options |= {"temperature": 0.5, "max_output_tokens": 50}
    if stream:
        options["on_event"] = lambda event: None
    if sync:
        return run_tools_sync(asked(), llm, **options)

    async def run() -> LoopResult[Any]:
        return await run_tools(asked(), llm, **options)

    return anyio.run(run)
