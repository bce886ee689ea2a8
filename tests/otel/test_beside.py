"""Beside the spans of the SDKs and of MCP nothing is counted twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from otel_toolkit import Exported, asked

from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import ToolExecutor
from lutumpy.testing import Reply, serve

with_spans = pytest.mark.skipif(
    not hasattr(Anthropic, "open_telemetry"), reason="this release of the SDK makes no spans"
)
ANSWER = Reply(text="Hello there.", usage=(11, 7))


def counted(exported: Exported, name: str) -> list[str]:
    """The spans with an attribute."""
    return [span.name for span in exported.spans if name in (span.attributes or {})]


@with_spans
async def test_a_request_is_a_chat_with_tokens_once_where_the_sdk_makes_spans(
    exported: Exported,
) -> None:
    with serve([ANSWER] * 3) as server:
        options: dict[str, Any] = {
            "base_url": server.anthropic_base_url,
            "api_key": "k",
            "open_telemetry": {"tracer_provider": exported.tracers},
        }
        telemetry = exported.telemetry()
        async with AsyncAnthropic(**options) as client:
            llm = telemetry.model(AnthropicMessages("claude-test", client))
            with telemetry.run("desk") as run:
                await asked().text_turn(llm).collect()
                async with asked().text_turn(llm).stream() as stream:
                    await stream.collect()
            assert run.usage.total_tokens == 36
            # Somebody who knows better says so.
            told = exported.telemetry(sdk_makes_spans=False)
            await asked().text_turn(told.model(AnthropicMessages("claude-test", client))).collect()
    sdk = "anthropic.messages.create"
    assert counted(exported, "gen_ai.usage.input_tokens") == [sdk, sdk, sdk, "chat claude-test"]
    assert counted(exported, "gen_ai.operation.name")[:3] == [sdk, sdk, "invoke_agent desk"]
    assert [exported.parent_of(s) for s in exported.spans if s.name == sdk] == [
        "turn claude-test",
        "turn claude-test",
        "chat claude-test",
    ]
    turns = [span for span in exported.spans if span.name == "turn claude-test"]
    assert [span.kind.name for span in turns] == ["INTERNAL", "INTERNAL"]
    # The SDK measures nothing, so the measurements are all here.
    tokens = exported.metrics()["gen_ai.client.token.usage"]
    assert sum(total for _, total in tokens) == 54


def test_where_the_sdk_makes_none_the_request_is_ours_with_its_server(exported: Exported) -> None:
    with serve([ANSWER]) as server:
        with OpenAIChat("m", base_url=server.openai_base_url, api_key="k") as llm:
            asked().text_turn(exported.telemetry().model(llm)).collect_sync()
        (request,) = server.requests
        base_url = server.openai_base_url
    (span,) = exported.spans
    found: Any = span.attributes
    assert (span.name, span.kind.name) == ("chat m", "CLIENT")
    assert found["server.address"] == "127.0.0.1"
    assert str(found["server.port"]) in base_url
    assert found["gen_ai.usage.input_tokens"] == 11
    assert request.path.endswith("/chat/completions")


def test_something_else_may_make_the_spans_of_the_sdk(exported: Exported) -> None:
    telemetry = exported.telemetry(sdk_makes_spans=True)
    with (
        serve([ANSWER]) as server,
        OpenAIChat("m", base_url=server.openai_base_url, api_key="k") as llm,
    ):
        asked().text_turn(telemetry.model(llm)).collect_sync()
    assert [span.name for span in exported.spans] == ["turn m"]
    assert counted(exported, "gen_ai.usage.input_tokens") == []
    assert ToolExecutor(around=telemetry.tool_call).around is not None


def test_without_the_api_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("lutumpy.otel")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ImportError, match=r'lutumpy.otel needs .* install ".\[otel\]"'):
        import lutumpy.otel  # noqa: F401


MCP = """
import asyncio, json, sys
sys.path[:0] = [{tests!r}, {mcp!r}]
from mcp_toolkit import FakeServer, make_tool, run_call
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from lutumpy.execution import ToolExecutor
from lutumpy.mcp import McpTools
from lutumpy.otel import Telemetry

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)  # both ends of MCP look for this one
telemetry = Telemetry()

async def main():
    async with McpTools(FakeServer(make_tool("look")).server) as source:
        exporter.clear()
        with telemetry.run("desk"):
            await run_call(source, "look", executor=ToolExecutor(around=telemetry.tool_call))

asyncio.run(main())
spans = exporter.get_finished_spans()
names = {{span.context.span_id: span.name for span in spans}}
print(json.dumps([
    [span.name, span.kind.name, span.attributes.get("gen_ai.operation.name"),
     names.get(span.parent and span.parent.span_id)]
    for span in spans
]))
"""


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.scaled
def test_a_call_of_an_mcp_server_is_one_call_here_and_its_spans_are_inside() -> None:
    tests = Path(__file__).parent.parent
    script = MCP.format(tests=str(tests), mcp=str(tests / "mcp"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spans = json.loads(done.stdout)
    ours = [span for span in spans if span[0] == "execute_tool look"]
    assert ours == [["execute_tool look", "INTERNAL", "execute_tool", "invoke_agent desk"]]
    # The server's is inside, and of another kind: what counts calls of this program counts one.
    served = [span for span in spans if span[2] == "execute_tool" and span not in ours]
    assert served == [["tools/call look", "SERVER", "execute_tool", "execute_tool look"]]
