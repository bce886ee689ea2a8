"""The spans that an SDK's client makes of its calls: the same through an adapter as directly
(OpenTelemetry).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic

from lutumpy import AdapterError, Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.sdk_spans import TracedMethod
from lutumpy.testing import Failure, Reply, WireServer, serve

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
processors = pytest.importorskip("opentelemetry.sdk.trace.export")
trace = pytest.importorskip("opentelemetry.trace")

with_spans = pytest.mark.skipif(
    not hasattr(Anthropic, "open_telemetry"), reason="this release of the SDK makes no spans"
)

# What differs from one call to the next, and so between two calls.
TIMED = {"gen_ai.response.time_to_first_chunk", "anthropic.request.id", "gen_ai.response.id"}
METHOD = AnthropicMessages._method
assert METHOD is not None
is_traced = METHOD.is_traced
ANSWER = Reply(text="Hello there.", usage=(11, 7))


class Spans(NamedTuple):
    """A provider of spans, and where they end up."""

    provider: Any
    exporter: Any

    def taken(self) -> list[dict[str, Any]]:
        """The spans so far, without what no two calls share; none is left."""
        found = [
            {
                "name": span.name,
                "kind": span.kind,
                "status": span.status.status_code,
                "scope": span.instrumentation_scope.name,
                "parent": None if span.parent is None else span.parent.span_id,
                "events": [event.name for event in span.events],
                "attributes": {
                    key: value for key, value in span.attributes.items() if key not in TIMED
                },
                "timed": sorted(TIMED & span.attributes.keys()),
            }
            for span in self.exporter.get_finished_spans()
        ]
        self.exporter.clear()
        return found


@pytest.fixture
def spans() -> Iterator[Spans]:
    exporter = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(exporter))
    yield Spans(provider, exporter)
    provider.shutdown()


def options(server: WireServer, spans: Spans, mode: str) -> dict[str, Any]:
    told = {"tracer_provider": spans.provider, "traces": {"content_mode": mode}}
    return {
        "base_url": server.anthropic_base_url,
        "api_key": "k",
        "max_retries": 0,
        "open_telemetry": told,
    }


def asked() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("Hi")
    return session


def body(model: AnthropicMessages, *, stream: bool) -> dict[str, Any]:
    """The body of the adapter's own request, for the SDK's method."""
    found = AnthropicMessages.request(asked().transcript, stream=stream, cache="auto")
    found.pop("stream", None)
    return {"model": model.model, **found}


@with_spans
@pytest.mark.parametrize("mode", ["metadata_only", "content"])
def test_a_sync_request_gives_the_spans_of_a_direct_call(spans: Spans, mode: str) -> None:
    with serve([ANSWER, ANSWER]) as server, Anthropic(**options(server, spans, mode)) as client:
        llm = AnthropicMessages("claude-test", client)
        message = client.messages.create(**body(llm, stream=False))
        direct = spans.taken()
        result = asked().text_turn(llm).collect_sync()
        through = spans.taken()
        first, second = server.requests
    assert (message.content[0].text, result.text) == ("Hello there.", "Hello there.")
    assert [span["name"] for span in direct] == ["anthropic.messages.create"]
    assert direct[0]["attributes"]["gen_ai.usage.input_tokens"] == 11
    assert through == direct
    assert ("gen_ai.input.messages" in through[0]["attributes"]) == (mode == "content")
    assert first.body == second.body
    assert "traceparent" in second.headers


@with_spans
@pytest.mark.parametrize("mode", ["metadata_only", "content"])
async def test_an_async_request_gives_the_spans_of_a_direct_call(spans: Spans, mode: str) -> None:
    with serve([ANSWER, ANSWER]) as server:
        async with AsyncAnthropic(**options(server, spans, mode)) as client:
            llm = AnthropicMessages("claude-test", client)
            await client.messages.create(**body(llm, stream=False))
            direct = spans.taken()
            result = await asked().text_turn(llm).collect()
            through = spans.taken()
    assert result.text == "Hello there."
    assert result.turn.request_id is not None
    assert len(direct) == 1
    assert through == direct


@with_spans
def test_a_sync_stream_gives_the_spans_of_a_direct_one(spans: Spans) -> None:
    with (
        serve([ANSWER, ANSWER]) as server,
        Anthropic(**options(server, spans, "metadata_only")) as client,
    ):
        llm = AnthropicMessages("claude-test", client)
        for _ in client.messages.create(**body(llm, stream=True), stream=True):
            pass
        direct = spans.taken()
        with asked().text_turn(llm).stream_sync() as stream:
            assert "".join(getattr(event, "text", "") for event in stream) == "Hello there."
        through = spans.taken()
    assert direct[0]["attributes"]["gen_ai.request.stream"] is True
    assert direct[0]["attributes"]["gen_ai.usage.output_tokens"] == 7
    assert through == direct


@with_spans
async def test_an_async_stream_gives_the_spans_of_a_direct_one(spans: Spans) -> None:
    with serve([ANSWER, ANSWER]) as server:
        async with AsyncAnthropic(**options(server, spans, "content")) as client:
            llm = AnthropicMessages("claude-test", client)
            async for _ in await client.messages.create(**body(llm, stream=True), stream=True):
                pass
            direct = spans.taken()
            async with asked().text_turn(llm).stream() as stream:
                result = await stream.collect()
            through = spans.taken()
    assert result.text == "Hello there."
    assert len(direct) == 1
    assert through == direct


@with_spans
def test_a_stream_that_is_left_ends_its_span_as_a_direct_one(spans: Spans) -> None:
    with (
        serve([ANSWER, ANSWER]) as server,
        Anthropic(**options(server, spans, "metadata_only")) as client,
    ):
        llm = AnthropicMessages("claude-test", client)
        with client.messages.create(**body(llm, stream=True), stream=True) as events:
            next(iter(events))
        direct = spans.taken()
        with asked().text_turn(llm).stream_sync() as stream:
            next(stream)
        through = spans.taken()
    assert len(direct) == 1
    assert through == direct


@with_spans
def test_a_refused_request_ends_its_span_as_a_direct_one(spans: Spans) -> None:
    script = [Failure(429, "slow down"), Failure(429, "slow down")]
    with serve(script) as server, Anthropic(**options(server, spans, "metadata_only")) as client:
        llm = AnthropicMessages("claude-test", client)
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(**body(llm, stream=False))
        direct = spans.taken()
        with pytest.raises(AdapterError):
            asked().text_turn(llm).collect_sync()
        through = spans.taken()
    assert direct[0]["attributes"]["error.type"] == "rate_limit_error"
    assert through == direct


@with_spans
def test_a_structured_request_says_that_json_is_asked_for(spans: Spans) -> None:
    script = [Reply(text='{"value": 1}')]
    with serve(script) as server, Anthropic(**options(server, spans, "metadata_only")) as client:
        asked().structured_turn(AnthropicMessages("claude-test", client), int).collect_sync()
    (span,) = spans.taken()
    assert span["attributes"]["gen_ai.output.type"] == "json"


@with_spans
def test_the_span_of_a_request_is_the_child_of_the_span_around_it(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("test")
    with (
        serve([ANSWER]) as server,
        Anthropic(**options(server, spans, "metadata_only")) as client,
        tracer.start_as_current_span("around") as around,
    ):
        asked().text_turn(AnthropicMessages("claude-test", client)).collect_sync()
    inner, outer = spans.taken()
    assert (inner["name"], outer["name"]) == ("anthropic.messages.create", "around")
    assert inner["parent"] == around.get_span_context().span_id


@with_spans
def test_headers_of_the_adapter_are_on_the_span_and_on_the_wire(spans: Spans) -> None:
    with serve([ANSWER]) as server, Anthropic(**options(server, spans, "metadata_only")) as client:
        llm = AnthropicMessages(
            "claude-test", client, headers={"anthropic-beta": "a,b"}, timeout=5.0
        )
        asked().text_turn(llm).collect_sync()
        (request,) = server.requests
    (span,) = spans.taken()
    assert span["attributes"]["anthropic.beta"] == ("a", "b")
    assert request.headers["anthropic-beta"] == "a,b"


@with_spans
def test_where_no_span_would_come_of_it_the_bytes_are_posted_as_ever(spans: Spans) -> None:
    silent = Anthropic(api_key="k")
    off = Anthropic(api_key="k", open_telemetry=False)
    on = Anthropic(api_key="k", open_telemetry={"tracer_provider": spans.provider})
    nothing = Anthropic(api_key="k", open_telemetry={"tracer_provider": trace.NoOpTracerProvider()})
    assert [is_traced(client) for client in (silent, off, nothing, on)] == [
        False,
        False,
        False,
        True,
    ]
    with spans.provider.get_tracer("test").start_as_current_span("around"):
        # The trace goes on with the request, also where the client makes no span of its own.
        assert [is_traced(client) for client in (silent, off, nothing, on)] == [
            True,
            False,
            True,
            True,
        ]
    spans.taken()


class Older:
    """A client of a release that knows nothing of spans, or of a program's own."""


class Claimed(Older):
    __module__ = "anthropic._client"
    open_telemetry: Any = None


@pytest.mark.parametrize("chosen", [None, {}, {"traces": None}, {"traces": {"enabled": False}}])
def test_a_client_without_the_option_has_no_spans(chosen: Any) -> None:
    client = Claimed()
    client.open_telemetry = chosen
    assert not is_traced(client)
    assert not is_traced(Older())


@with_spans
def test_an_environment_without_its_provider_makes_no_spans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> Any:
        raise RuntimeError("no such provider")

    monkeypatch.setattr(trace, "get_tracer_provider", missing)
    assert not is_traced(Anthropic(api_key="k", open_telemetry={"traces": True}))


def test_without_opentelemetry_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    client = Claimed()
    client.open_telemetry = {"traces": {"enabled": True}}
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert not is_traced(client)


@with_spans
@pytest.mark.parametrize(
    ("resource", "name"),
    [("gone", "create"), ("messages", "gone"), ("messages", "count_tokens"), ("models", "list")],
)
def test_a_method_that_works_in_another_way_makes_no_span_and_the_request_is_sent(
    spans: Spans, monkeypatch: pytest.MonkeyPatch, resource: str, name: str
) -> None:
    other = TracedMethod("anthropic", resource, name, {"model": "m", "messages": ()})
    monkeypatch.setattr(AnthropicMessages, "_method", other)
    with (
        serve([ANSWER, ANSWER]) as server,
        Anthropic(**options(server, spans, "metadata_only")) as client,
    ):
        llm = AnthropicMessages("claude-test", client)
        assert asked().text_turn(llm).collect_sync().text == "Hello there."
        with asked().text_turn(llm).stream_sync() as stream:
            assert stream.collect().text == "Hello there."
    assert spans.taken() == []


def test_openai_has_no_spans_of_its_own() -> None:
    """Once its SDK makes some, they are wanted here too."""
    import openai

    assert not hasattr(openai.OpenAI, "open_telemetry")
    assert OpenAIChat._method is None
