"""Ends of requests and calls: errors, streams that are left, retries; context; and silence."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from counting import functions_entered
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, SamplingResult
from otel_toolkit import CANARY, SCRIPT, Exported, Shelf, asked, converse, decide, look

from lutumpy import (
    AdapterError,
    CommitError,
    Hold,
    Later,
    NeedsTools,
    Reject,
    ToolError,
    Toolset,
    Usage,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.budget import Budget
from lutumpy.execution import Dispatcher, ToolExecutor, nest_around
from lutumpy.loops import run_tools, run_tools_sync
from lutumpy.models import (
    DroppedReasoning,
    LeftOut,
    ModelRequest,
    ModelWrapper,
    PrefixReport,
    RequestWatch,
)
from lutumpy.otel import GEN_AI_0_1, SEMCONV_1_41, Telemetry, names
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, serve
from lutumpy.text_tools import TagToolParser, TextTools


def test_every_name_stands_in_one_module_and_none_is_said_twice() -> None:
    said = [v for k, v in vars(names).items() if k.isupper() and isinstance(v, str)]
    assert len(said) == len(set(said))
    ours = {value for value in said if value.startswith("lutumpy.")}
    conventions = {value for value in said if value.startswith("gen_ai.")}
    assert len(ours) > 20
    assert len(conventions) > 20
    assert SEMCONV_1_41.cache_write == "cache_creation.input_tokens"


def test_a_request_that_fails_says_the_providers_code_else_its_status(exported: Exported) -> None:
    telemetry = exported.telemetry()
    failures = [Failure(429, "slow down", kind="rate_limit_error"), Failure(503, CANARY)]
    llm = telemetry.model(ScriptedModel(failures, api="anthropic_messages"))
    for _ in range(2):
        with pytest.raises(AdapterError):
            asked().text_turn(llm).collect_sync()
    found: list[Any] = [span.attributes for span in exported.spans]
    assert [each["error.type"] for each in found] == ["rate_limit_error", "api_error"]
    assert [span.status.status_code.name for span in exported.spans] == ["ERROR", "ERROR"]
    assert {span.status.description for span in exported.spans} == {None}
    assert not any(span.events for span in exported.spans)
    durations = exported.metrics()["gen_ai.client.operation.duration"]
    assert {point[0]["error.type"] for point in durations} == {"rate_limit_error", "api_error"}


def test_an_error_without_code_and_status_is_named_by_its_class(exported: Exported) -> None:
    class Broken(ScriptedModel):
        def respond_sync(self, *arguments: Any) -> Any:
            raise error

    raised: list[tuple[Exception, str]] = [
        (OSError(CANARY), "OSError"),
        (AdapterError(CANARY, provider="x"), "AdapterError"),
        (AdapterError(CANARY, provider="x", status=502), "502"),
    ]
    for error, expected in raised:
        llm = exported.telemetry().model(Broken([]))
        with pytest.raises(type(error)):
            asked().text_turn(llm).collect_sync()
        assert exported.spans[-1].attributes["error.type"] == expected  # type: ignore[index]
    from_cause = AdapterError(CANARY, provider="x")
    from_cause.__cause__ = TimeoutError()
    error = from_cause
    with pytest.raises(AdapterError):
        asked().text_turn(exported.telemetry().model(Broken([]))).collect_sync()
    assert exported.spans[-1].attributes["error.type"] == "TimeoutError"  # type: ignore[index]
    assert CANARY not in exported.text()


async def test_a_stream_that_is_left_breaks_or_is_cancelled_ends_its_span_once(
    exported: Exported,
) -> None:
    telemetry = exported.telemetry()
    reply = Reply(text="a long answer " * 20, usage=(10, 5))
    events: Any = ScriptedModel([reply], api="anthropic_messages")
    listed = events.events(asked().transcript, None, _options())
    broken = [*listed[:4], Failure(529, "overloaded", kind="overloaded_error")]
    script = [reply, broken, reply, reply]
    llm = telemetry.model(ScriptedModel(script, api="anthropic_messages"))

    async with asked().text_turn(llm).stream() as stream:  # left
        async for _ in stream:
            break
    with pytest.raises(AdapterError):  # breaks
        async with asked().text_turn(llm).stream() as stream:
            await stream.collect()
    async with asked().text_turn(llm).stream() as stream:  # read to its end, by events
        async for _ in stream:
            pass
    with asked().text_turn(llm).stream_sync() as sync_stream:  # left without reading
        assert sync_stream.partial is None
    left, broke, whole, unread = exported.spans
    found: list[Any] = [span.attributes for span in (left, broke, whole, unread)]
    assert found[0]["lutumpy.turn.left_early"] is True
    assert found[0]["gen_ai.usage.input_tokens"] == 10
    assert found[0]["gen_ai.response.id"]
    assert "error.type" not in found[0]
    assert found[1]["error.type"] == "overloaded_error"
    assert found[1]["gen_ai.usage.input_tokens"] == 10
    assert found[2]["gen_ai.response.finish_reasons"] == ("stop",)
    assert found[3]["lutumpy.turn.left_early"] is True
    assert "gen_ai.usage.input_tokens" not in found[3]


def _options() -> Any:
    from lutumpy.models import TurnOptions

    return TurnOptions()


def test_a_sync_stream_that_breaks_is_a_failed_request(exported: Exported) -> None:
    reply = Reply(text="a long answer " * 20, usage=(10, 5))
    made: Any = ScriptedModel([reply])
    listed = made.events(asked().transcript, None, _options())
    for way in ("events", "collect"):
        llm = ScriptedModel([[*listed[:3], Failure(500, "gone")]])
        with (
            pytest.raises(AdapterError),
            asked().text_turn(exported.telemetry().model(llm)).stream_sync() as stream,
        ):
            for _ in stream if way == "events" else [stream.collect()]:
                pass
    assert [span.status.status_code.name for span in exported.spans] == ["ERROR", "ERROR"]


async def test_a_cancelled_request_says_so(exported: Exported) -> None:
    class Slow(ScriptedModel):
        async def respond(self, *arguments: Any) -> Any:
            await anyio.sleep_forever()

    with anyio.move_on_after(0.01):
        await asked().text_turn(exported.telemetry().model(Slow([]))).collect()
    assert exported.named("chat scripted").attributes["error.type"] == "CancelledError"  # type: ignore[index]


def test_a_wrapper_streams_where_its_model_does_and_has_what_the_model_has() -> None:
    class Whole:
        structured = "tool"
        host = "example.com"

        async def respond(self, *arguments: Any) -> Any: ...

        def respond_sync(self, *arguments: Any) -> Any: ...

    telemetry = Telemetry()
    whole: Any = telemetry.model(Whole())
    assert not hasattr(whole, "open_stream")
    assert not hasattr(whole, "open_stream_sync")
    assert not hasattr(whole, "_anything")
    assert (whole.structured, whole.host) == ("tool", "example.com")
    assert whole.takes_forced_choice({}) is True
    assert whole.defers_tools is False
    scripted: Any = telemetry.model(ScriptedModel([], api="anthropic_messages"))
    assert hasattr(scripted, "open_stream")
    assert scripted.takes_forced_choice({}) is True
    assert repr(scripted).startswith("TelemetryModel(<ScriptedModel")
    with pytest.raises(TypeError, match="a model is needed"):
        telemetry.model("gpt")  # type: ignore[arg-type]


def test_a_wrapper_that_watches_nothing_changes_nothing() -> None:
    llm = ModelWrapper(ScriptedModel([Reply(text="one"), Reply(text="two")]))
    assert asked().text_turn(llm).collect_sync().text == "one"
    with asked().text_turn(llm).stream_sync() as stream:
        assert stream.collect().text == "two"


async def test_a_wrapper_may_refuse_a_request_and_its_watch_need_not_do_anything() -> None:
    class Once(ModelWrapper):
        asked = 0

        def begin_sync(self, request: ModelRequest) -> RequestWatch:
            self.asked += 1
            if self.asked > 3:
                raise ToolError("no more")
            return RequestWatch()

    model = ScriptedModel(
        [Reply(text="one"), Reply(text="two"), Reply(text="three"), Failure(500, "x")]
    )
    llm = Once(model)
    assert (await asked().text_turn(llm).collect()).text == "one"
    async with asked().text_turn(llm).stream() as stream:
        assert (await stream.collect()).text == "two"
    async with asked().text_turn(llm).stream() as stream:
        async for _ in stream:
            break
    with pytest.raises(ToolError):
        await asked().text_turn(llm).collect()
    assert model.requested == 3
    llm.asked = 0
    with pytest.raises(AdapterError):
        await asked().text_turn(llm).collect()


def test_spans_nest_under_the_users_own_and_the_context_reaches_threads(
    exported: Exported,
) -> None:
    tracer = trace.get_tracer("mine", tracer_provider=exported.tracers)
    threads: list[int] = []

    @tool_fn(effect="read")
    def inner(word: str) -> str:
        """Does more."""
        threads.append(threading.get_ident())
        with tracer.start_as_current_span("inside"):
            return word

    class Tools(Toolset):
        within = tool(inner)

    llm = ScriptedModel([Reply(calls=[Call("inner", {"word": "x"})]), Reply(text="done")])
    with tracer.start_as_current_span("mine"):
        run_tools_sync(asked(), llm, tools=Tools, telemetry=exported.telemetry())
    assert threads != [threading.get_ident()]
    assert exported.parent_of(exported.named("inside")) == "execute_tool inner"
    assert exported.parent_of(exported.named("invoke_agent Tools")) == "mine"


async def test_retries_of_a_tool_are_attempts_and_an_event_on_the_loop(exported: Exported) -> None:
    tried: list[int] = []

    @tool_fn(effect="read", timeout=0.01)
    async def slow(word: str) -> str:
        """Slow at first."""
        tried.append(1)
        if len(tried) == 1:
            await asyncio.sleep(60)
        return word

    class Tools(Toolset):
        waits = tool(slow)

    llm = ScriptedModel([Reply(calls=[Call("slow", {"word": "x"})]), Reply(text="done")])
    executor = ToolExecutor(backoff=0.0)
    await run_tools(asked(), llm, tools=Tools, executor=executor, telemetry=exported.telemetry())
    found: list[Any] = [s.attributes for s in exported.spans if s.name == "execute_tool slow"]
    assert [each["lutumpy.call.attempt"] for each in found] == [1, 2]
    assert [each["lutumpy.call.outcome"] for each in found] == ["timed_out", "ok"]
    events = exported.named("invoke_agent Tools").events
    (retry,) = [event for event in events if event.name == "lutumpy.retry"]
    assert retry.attributes is not None
    assert retry.attributes["lutumpy.call.attempt"] == 2


async def test_a_call_that_is_cut_off_or_not_let_in_ends_its_span(exported: Exported) -> None:
    telemetry = exported.telemetry()

    @asynccontextmanager
    async def closed(call: Any, attempt: int) -> AsyncIterator[None]:
        raise ToolError("come back later")
        yield

    _, calls = _calls(Call("look", {"word": "x"}))
    executor = ToolExecutor(around=closed)
    (result,) = await executor.run(calls, Dispatcher(Shelf), around=telemetry.tool_call)
    assert result.outcome == "failed"
    (span,) = exported.spans
    assert span.attributes is not None
    assert span.attributes["lutumpy.call.outcome"] == "failed"

    class Forever(Toolset):
        look = tool(look)

    dispatch = Dispatcher(Forever)

    @dispatch.on(Forever.look)
    async def wait(input: Any) -> str:
        await anyio.sleep_forever()
        return ""

    _, calls = _calls(Call("look", {"word": "x"}), tools=Forever)
    with anyio.move_on_after(0.01):
        await ToolExecutor(around=telemetry.tool_call).run(calls, dispatch)
    cut: Any = exported.spans[-1].attributes
    assert (cut["lutumpy.call.outcome"], cut["error.type"]) == ("interrupted", "CancelledError")


def _calls(*asked_for: Call, tools: Any = Shelf) -> tuple[Any, Any]:
    outcome = asked().text_turn(ScriptedModel([Reply(calls=asked_for)]), tools=tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    calls = outcome.round.calls
    outcome.round.discard()
    return outcome.round, calls


def test_a_loop_of_ones_own_has_the_same_spans(exported: Exported) -> None:
    telemetry = exported.telemetry(conversation=lambda: "conversation 7")
    llm = telemetry.model(ScriptedModel(SCRIPT, model="m-1"))
    executor = ToolExecutor(around=telemetry.tool_call)
    session, rounds = asked(), 0
    with telemetry.run("Shelf") as run:
        while isinstance(outcome := session.text_turn(llm, tools=Shelf).collect_sync(), NeedsTools):
            plan = outcome.round.apply_hooks_sync(decide)
            telemetry.decisions(plan)
            plan.commit(session, executor.run_sync(plan.pending, Dispatcher(Shelf)))
            rounds += 1
            telemetry.committed(rounds, len(session.transcript))
        run.ended(rounds, "answer")
        assert run.usage == Usage(300, 27, 327)
    by_loop = Exported()
    converse(by_loop.telemetry())
    assert sorted(s.name for s in exported.spans) == sorted(s.name for s in by_loop.spans)
    mine, theirs = exported.named("invoke_agent Shelf"), by_loop.named("invoke_agent Shelf")
    assert [e.name for e in mine.events] == [e.name for e in theirs.events]
    assert mine.attributes == {
        **(theirs.attributes or {}),
        "gen_ai.conversation.id": "conversation 7",
    }
    attributes: list[Any] = [span.attributes for span in exported.spans]
    assert {each["gen_ai.conversation.id"] for each in attributes} == {"conversation 7"}
    by_loop.__exit__()


def test_runs_within_runs_are_counted_to_both(exported: Exported) -> None:
    telemetry = exported.telemetry()
    with telemetry.run("outer") as outer:
        with telemetry.run("inner"):
            converse(telemetry)
        assert outer.usage == Usage(300, 27, 327)
    outside: Any = exported.named("invoke_agent outer").attributes
    assert outside["gen_ai.aggregated_usage.input_tokens"] == 300
    assert "gen_ai.usage.input_tokens" not in outside


def test_the_conversation_of_a_run_is_that_of_all_spans_in_it(exported: Exported) -> None:
    telemetry = exported.telemetry(conversation="of the process")
    with telemetry.run("outer", conversation="c-1"), telemetry.run("inner"):
        converse(telemetry, sync=True)  # its tools run in another thread
    assert len(exported.spans) == 8
    found: list[Any] = [span.attributes for span in exported.spans]
    assert {each["gen_ai.conversation.id"] for each in found} == {"c-1"}
    with telemetry.run("next"):
        pass
    last: Any = exported.spans[-1].attributes
    assert last["gen_ai.conversation.id"] == "of the process"


def test_a_run_that_raises_says_what_and_not_why(exported: Exported) -> None:
    with pytest.raises(ValueError), exported.telemetry().run():
        raise ValueError(CANARY)
    span = exported.named("invoke_agent")
    assert span.attributes is not None
    assert span.attributes["error.type"] == "ValueError"
    assert CANARY not in exported.text()


def test_decisions_of_hooks_are_events_with_hook_and_source(exported: Exported) -> None:
    hooks = Shelf.hooks()

    @hooks.on(Shelf.look)
    def hold(metadata: Any, input: Any) -> Any:
        return Hold(f"ask about {CANARY}")

    @hooks.on(Shelf.burn)
    def never(metadata: Any, input: Any) -> Any:
        return Reject("never")

    telemetry = exported.telemetry()
    turn = asked().text_turn(
        ScriptedModel(
            [
                Reply(
                    calls=[
                        Call("look", {"word": "x"}),
                        Call("burn", {"word": "x"}),
                        Call("count", {"word": "x"}),
                        Call("fly", {}),
                    ]
                )
            ]
        ),
        tools=Shelf,
    )
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    with telemetry.run():
        telemetry.decisions(plan)
    plan.discard()
    issue, held, rejected = exported.named("invoke_agent").events
    seen: list[Any] = [event.attributes for event in (issue, held, rejected)]
    # The name of a tool that doesn't exist is the model's own text.
    assert "gen_ai.tool.name" not in seen[0]
    assert seen[0]["lutumpy.issue.reason"] == "unknown_tool"
    assert (seen[1]["lutumpy.decision"], seen[1]["gen_ai.tool.name"]) == ("held", "look")
    assert seen[2]["lutumpy.decision.source"] == "hook"
    assert "never" in seen[2]["lutumpy.decision.hook"]
    assert CANARY not in exported.text()


def test_a_sampler_sees_what_is_known_at_the_start() -> None:
    seen: list[tuple[str, Any]] = []

    class Sampler:
        def should_sample(
            self, parent_context: Any, trace_id: int, name: str, kind: Any = None,
            attributes: Any = None, links: Any = None, trace_state: Any = None,
        ) -> SamplingResult:  # fmt: skip
            seen.append((name, dict(attributes or {})))
            return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes)

        def get_description(self) -> str:
            return "a sampler"

    provider = TracerProvider(sampler=Sampler())  # type: ignore[arg-type]
    converse(Telemetry(provider))
    provider.shutdown()
    by_name = dict(seen)
    assert by_name["chat m-1"]["gen_ai.request.model"] == "m-1"
    assert by_name["chat m-1"]["gen_ai.provider.name"] == "openai"
    assert by_name["execute_tool look"]["gen_ai.tool.name"] == "look"
    assert by_name["invoke_agent Shelf"]["gen_ai.agent.name"] == "Shelf"


def test_spans_that_are_not_sampled_are_measured_all_the_same(exported: Exported) -> None:
    off = TracerProvider(sampler=ALWAYS_OFF)
    converse(Telemetry(off, exported.meters, content="messages"))
    off.shutdown()
    assert exported.spans == []
    assert exported.metrics()["lutumpy.tool.issues"]


def test_measurements_alone_are_enough(exported: Exported) -> None:
    converse(Telemetry(None, exported.meters))
    assert exported.metrics()["gen_ai.client.token.usage"]


def test_the_names_of_the_newer_conventions_can_be_taken() -> None:
    with Exported() as exported:
        telemetry = exported.telemetry(names=GEN_AI_0_1, provider="my.gateway")
        usage = Usage(10, 5, 75, cached_input_tokens=40, cache_creation_tokens=20)

        class Cached(ScriptedModel):
            def respond_sync(self, *arguments: Any) -> Any:
                return replace(super().respond_sync(*arguments), usage=usage)

        asked().text_turn(telemetry.model(Cached([Reply(text="hi")]))).collect_sync()
        (span,) = exported.spans
        found: Any = span.attributes
        assert found["gen_ai.usage.input_tokens"] == 70
        assert found["gen_ai.usage.cache_read.input_tokens"] == 40
        assert found["gen_ai.usage.cache_write.input_tokens"] == 20
        assert found["gen_ai.provider.name"] == "my.gateway"
        metrics = exported.metrics()
        ((counted, count),) = metrics["gen_ai.client.inference.usage.input_tokens"]
        assert (count, counted["gen_ai.token.modality"]) == (70, "unknown")
        assert metrics["gen_ai.client.inference.usage.cache_write.input_tokens"][0][1] == 20
        assert "gen_ai.client.inference.duration" in metrics
        assert "gen_ai.client.token.usage" not in metrics


def test_a_text_model_may_stand_on_either_side(exported: Exported) -> None:
    telemetry = exported.telemetry()
    reply = '[TOOL_CALL]{"name": "look", "args": {"word": "x"}}[/TOOL_CALL]'
    inner = ScriptedModel([Reply(text=reply), Reply(text=reply)], model="m-1")
    outside = telemetry.model(TextTools(inner, parser=TagToolParser()))
    inside = TextTools(telemetry.model(inner), parser=TagToolParser())
    for llm in (outside, inside):
        outcome = asked().text_turn(llm, tools=Shelf).collect_sync()
        assert isinstance(outcome, NeedsTools)
        outcome.round.discard()
    found: list[Any] = [span.attributes for span in exported.spans]
    assert [each["gen_ai.request.model"] for each in found] == ["m-1", "m-1"]
    assert [each["lutumpy.turn.calls"] for each in found] == [1, 0]


@pytest.mark.parametrize("form", ["whole", "streamed", "sync"])
def test_who_is_watched_already_is_watched_and_counted_once(exported: Exported, form: str) -> None:
    telemetry = exported.telemetry()
    script = ScriptedModel(SCRIPT, model="m-1")
    llm = Budget(requests=9).model(telemetry.model(script))
    executor = ToolExecutor(around=nest_around(telemetry.tool_call, lambda call, attempt: None))
    options: dict[str, Any] = {"tools": Shelf, "telemetry": telemetry, "executor": executor}
    if form == "streamed":
        options["on_event"] = lambda event: None
    if form == "sync":
        done = run_tools_sync(asked(), llm, **options)
    else:
        done = anyio.run(lambda: run_tools(asked(), llm, **options))
    names = [span.name for span in exported.spans]
    assert names.count("chat m-1") == len(script.requests) == 2
    assert len([name for name in names if name.startswith("execute_tool")]) == 4
    found: Any = exported.spans[-1].attributes
    assert found["gen_ai.aggregated_usage.output_tokens"] == done.usage.output_tokens
    tokens = exported.metrics()["gen_ai.client.token.usage"]
    assert sum(count for _, count in tokens) == done.usage.total_tokens
    # Another one watches beside it.
    with Exported() as elsewhere:
        script.play(Reply(text="hi"))
        asked().text_turn(elsewhere.telemetry().model(llm)).collect_sync()
        assert len(elsewhere.spans) == 1


def test_a_model_of_ones_own_is_traced_as_far_as_it_says_what_it_is(exported: Exported) -> None:
    class Mine:
        api = "my_api"
        host = "localhost:8080"
        model = 7

        def respond_sync(self, *arguments: Any) -> Any:
            return ScriptedModel([Reply(text="hi")]).respond_sync(*arguments)

    class Nameless(Mine):
        api = None  # type: ignore[assignment]

        @property
        def host(self) -> str:  # type: ignore[override]
            raise AdapterError("no key", provider="x", sent=False)

    for kind in (Mine, Nameless):
        llm: Any = exported.telemetry().model(kind())  # type: ignore[arg-type]
        asked().text_turn(llm).collect_sync()
    first, second = [dict(span.attributes or {}) for span in exported.spans]
    assert [span.name for span in exported.spans] == ["chat", "chat"]
    assert (first["gen_ai.provider.name"], first["server.port"]) == ("my_api", 8080)
    assert second["gen_ai.provider.name"] == "unknown"
    assert "server.address" not in second


def test_what_goes_wrong_in_telemetry_is_logged_and_ends_no_conversation(
    exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: Any) -> str:
        raise LookupError("telemetry")

    caplog.set_level(logging.WARNING, "lutumpy.otel")
    assert converse(exported.telemetry(content=fails)).stopped_by == "answer"
    assert converse(exported.telemetry(content=fails), stream=True).stopped_by == "answer"
    assert "telemetry failed: LookupError" in caplog.text
    with pytest.raises(TypeError, match="telemetry= takes a Telemetry, not int"):
        run_tools_sync(asked(), ScriptedModel([]), tools=Shelf, telemetry=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_of_a_program_that_raises_costs_only_what_it_would_have_given(
    stream: bool,
) -> None:
    def fails(*arguments: Any) -> str:
        raise LookupError("a function of the program")

    def fails_for_results(name: str, text: str) -> str:
        return fails() if name.endswith(("result", "output.messages")) else text

    def known(**options: Any) -> Any:
        with Exported() as exported:
            telemetry = exported.telemetry(**options)
            with telemetry.run("outer") as run:
                converse(telemetry, stream=stream)
            late: Any = SimpleNamespace(metadata=SimpleNamespace(name="look", id="c1"), status="ok")
            with telemetry.delivery(late):
                pass
            spans = [(span.name, usage_of(span.attributes or {})) for span in exported.spans]
            points = {name: len(found) for name, found in exported.metrics().items()}
            return sorted(spans, key=str), points, run.usage

    def usage_of(attributes: Any) -> dict[str, Any]:
        return {name: count for name, count in attributes.items() if "usage" in name}

    expected = known()
    assert expected[2].output_tokens == 27
    assert known(conversation=fails) == expected
    assert known(content=fails) == expected
    assert known(content=fails_for_results) == expected


def test_where_no_sdk_is_set_up_nothing_is_made() -> None:
    """The API's own providers do nothing: attributes aren't even put together."""
    made: list[str] = []

    class Silent(Telemetry):
        pass

    telemetry = Silent(content=lambda name, text: made.append(name))  # type: ignore[func-returns-value,return-value]
    assert converse(telemetry).stopped_by == "answer"
    assert made == []
    assert telemetry.carrier() == {}
    no_op = Telemetry(trace.NoOpTracerProvider(), content="messages")
    assert converse(no_op).stopped_by == "answer"
    provider = MeterProvider()
    assert converse(Telemetry(None, provider)).stopped_by == "answer"
    provider.shutdown()


async def test_a_promise_ends_the_span_of_its_call_and_the_delivery_is_linked_to_it_LR20(
    exported: Exported,
) -> None:
    telemetry = exported.telemetry(conversation="c-1")
    carriers: list[dict[str, str]] = []

    @tool_fn(late=True)
    async def render(word: str) -> str:
        """Render."""
        carriers.append(telemetry.carrier())
        raise Later("soon")

    class Studio(Toolset):
        renders = tool(render)

    llm = ScriptedModel([Reply(calls=[Call("render", {"word": "x"}, id="c1")])])
    outcome = asked().text_turn(llm, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session = asked()
    outcome.round.discard()
    llm.play(Reply(calls=[Call("render", {"word": "x"}, id="c1")]))
    outcome = session.text_turn(llm, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    executor = ToolExecutor(around=telemetry.tool_call)
    results = await executor.run(outcome.round.calls, Dispatcher(Studio))
    outcome.round.commit(session, results)
    tool_span = exported.named("execute_tool render")
    assert tool_span.attributes is not None
    assert tool_span.attributes["lutumpy.call.outcome"] == "promised"
    assert tool_span.status.status_code.name == "UNSET"
    (open_call,) = session.open_calls
    late = open_call.complete("done")
    with telemetry.delivery(late):
        session.deliver([late])
    delivery = exported.named("deliver_result render")
    assert delivery.attributes == {
        "gen_ai.tool.name": "render",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "c-1",
        "lutumpy.delivery.status": "ok",
    }
    (link,) = delivery.links
    assert tool_span.context is not None
    assert link.context.span_id == tool_span.context.span_id
    # In another process the carrier says which; a refused delivery is a failed one.
    elsewhere = exported.telemetry()
    with pytest.raises(CommitError), elsewhere.delivery(late, earlier=carriers[0]):
        session.deliver([late])
    failed = exported.spans[-1]
    assert [each.context.span_id for each in failed.links] == [tool_span.context.span_id]
    assert failed.status.status_code.name == "ERROR"


def test_promised_calls_are_not_remembered_for_ever(exported: Exported) -> None:
    recorder = exported.telemetry()._recorder  # what it keeps is seen nowhere else
    with exported.telemetry().run() as run:
        for number in range(10_005):
            recorder.remember(str(number), run.span.get_span_context())
    assert recorder.recall("3") is None
    assert recorder.recall("10004") is not None
    assert recorder.recall("10004") is None


def test_what_an_sdk_repeats_is_an_event_of_the_request(exported: Exported) -> None:
    with serve([Failure(500, "slow"), Reply(text="hi")]) as server:
        options: dict[str, Any] = {"base_url": server.openai_base_url, "api_key": "k"}
        with OpenAI(**options, max_retries=1) as client:
            client._calculate_retry_timeout = lambda *a, **k: 0.0  # type: ignore[method-assign]
            llm = exported.telemetry().model(OpenAIChat("m", client))
            asked().text_turn(llm).collect_sync()
    (span,) = exported.spans
    assert span.attributes is not None
    assert span.attributes["lutumpy.request.retries"] == 1
    assert [event.name for event in span.events] == ["lutumpy.retry"]


def test_telemetry_that_nobody_hears_enters_few_functions() -> None:
    """What a request costs where no SDK is set up, beside the request itself."""

    def entered(llm: Any) -> int:
        session = asked()
        turn = session.text_turn(llm)
        return sum(functions_entered(lambda: turn.collect_sync()).values())

    scripted = ScriptedModel([Reply(text="x")] * 4, check=False)
    silent = Telemetry().model(scripted)
    entered(scripted)
    entered(silent)
    assert entered(silent) - entered(scripted) <= 4


def test_what_was_left_out_of_a_request_is_said_by_kind(exported: Exported) -> None:
    """Point 7: origins and prefixes are in spans; the log `lutumpy.prefix` has them as well."""
    report = PrefixReport(
        changed=("tools",),
        dropped=(DroppedReasoning(0, "prefix_mismatch", "provider"),),
        left_out=(LeftOut(0, "signed reasoning", CANARY), LeftOut(1, "signed reasoning", CANARY)),
        cache="restarts",
    )

    class Reporting(ScriptedModel):
        def respond_sync(self, *arguments: Any) -> Any:
            return replace(super().respond_sync(*arguments), prefix=report)

    asked().text_turn(exported.telemetry().model(Reporting([Reply(text="x")]))).collect_sync()
    (span,) = exported.spans
    found: Any = span.attributes
    assert found["lutumpy.request.left_out"] == ("signed reasoning",)
    assert found["lutumpy.request.dropped"] == ("prefix_mismatch",)
    assert found["lutumpy.request.cache"] == "restarts"
    assert CANARY not in exported.text()


def test_logs_of_calls_name_the_model_and_the_round(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lutumpy.execution")
    script = [
        Reply(calls=[Call("count", {"word": "a"})], model="m-7"),
        Reply(calls=[Call("look", {"word": "unknown"})], model="m-7"),
        Reply(text="done"),
    ]
    run_tools_sync(asked(), ScriptedModel(script), tools=Shelf)
    records: list[Any] = [each for each in caplog.records if each.name == "lutumpy.execution"]
    assert [(each.tool, each.round, each.model) for each in records] == [
        ("count", 1, "m-7"),
        ("look", 2, "m-7"),
    ]
