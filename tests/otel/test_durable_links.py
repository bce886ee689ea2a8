"""A round that outlives its process: the span of the next one is linked to that of the first."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from otel_toolkit import Exported, Shelf, asked

from lutumpy import Hold, RunNormally
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.otel import Telemetry
from lutumpy.testing import Call, Reply, ScriptedModel


def hold_burns(call: Any) -> Any:
    return Hold("ask somebody") if Shelf.burn.matches(call) else RunNormally()


def make_loop(store: MemoryStore, llm: Any, telemetry: Telemetry | None) -> DurableLoop[Any, Any]:
    return DurableLoop(store, llm, tools=Shelf, hooks=hold_burns, telemetry=telemetry)


async def test_a_process_that_goes_on_links_its_span_to_the_one_that_planned_the_round() -> None:
    store = MemoryStore()
    await store.create("c7", asked())
    calls = [Call("burn", {"word": "x"}, id="c1"), Call("look", {"word": "y"}, id="c2")]
    script = [Reply(calls=calls, usage=(10, 5)), Reply(text="Done.", usage=(20, 6))]
    llm = ScriptedModel(script)
    with Exported() as first, Exported() as second, Exported() as third:
        waiting = await make_loop(store, llm, first.telemetry()).run("c7")
        assert isinstance(waiting, Waiting)
        # Nobody has decided: it is looked at again, and that is a span too.
        assert isinstance(await make_loop(store, llm, second.telemetry()).run("c7"), Waiting)
        loop = make_loop(store, llm, third.telemetry())
        await loop.decide("c7", waiting.digest, {"c1": {"decision": "run"}}, by="me")
        assert isinstance(await loop.run("c7"), Answered)

        (began,) = [span for span in first.spans if span.name == "invoke_agent Shelf"]
        (looked,) = [span for span in second.spans if span.name == "invoke_agent Shelf"]
        (ended,) = [span for span in third.spans if span.name == "invoke_agent Shelf"]
        assert began.links == ()
        assert linked(looked) == linked(ended) == [place(began)]
        assert place(ended)[0] != place(began)[0]
        stops: list[Any] = [span.attributes for span in (began, looked, ended)]
        stopped = [each["lutumpy.loop.stopped_by"] for each in stops]
        assert stopped == ["waiting", "waiting", "answer"]
        everything: list[Any] = [*first.spans, *second.spans, *third.spans]
        assert {each.attributes["gen_ai.conversation.id"] for each in everything} == {"c7"}
        assert began.status.status_code.name == "UNSET"
        # What ran where: the request in the first process, the calls and the answer in the last.
        assert sorted(span.name for span in first.spans) == ["chat scripted", "invoke_agent Shelf"]
        assert sorted(span.name for span in third.spans) == [
            "chat scripted",
            "execute_tool burn",
            "execute_tool look",
            "invoke_agent Shelf",
        ]


async def test_without_telemetry_and_without_an_sdk_the_store_holds_nothing_of_it() -> None:
    for telemetry in (None, Telemetry()):
        store = MemoryStore()
        await store.create("c7", asked())
        llm = ScriptedModel([Reply(calls=[Call("burn", {"word": "x"}, id="c1")])])
        assert isinstance(await make_loop(store, llm, telemetry).run("c7"), Waiting)
        claim: Any = await store.claim("c7", lease=1.0)
        assert set(claim.records) == {"plan"}


async def test_a_carrier_of_ones_own_links_as_well(exported: Exported) -> None:
    telemetry = exported.telemetry()
    with telemetry.run("first"):
        carrier = telemetry.carrier()
    with telemetry.run("second", earlier=carrier), telemetry.run("third", earlier={}):
        pass
    with telemetry.run("fourth", earlier={"traceparent": "nonsense"}):
        pass
    assert linked(exported.named("invoke_agent second")) == [
        place(exported.named("invoke_agent first"))
    ]
    assert exported.named("invoke_agent third").links == ()
    assert exported.named("invoke_agent fourth").links == ()


def place(span: ReadableSpan) -> tuple[int, int]:
    context = span.context
    assert context is not None
    return context.trace_id, context.span_id


def linked(span: ReadableSpan) -> list[tuple[int, int]]:
    assert all(link.attributes == {"lutumpy.link": "earlier_process"} for link in span.links)
    return [(link.context.trace_id, link.context.span_id) for link in span.links]
