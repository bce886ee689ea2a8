"""A late result of a durable loop has a span of its own, linked to that of its call (LR20)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from otel_toolkit import Exported, asked

from lutumpy import CallTicket, Later, Skip, Toolset, tool, tool_fn
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.testing import Call, Reply, ScriptedModel

LATE_WAYS = ["wait", "go_on"]


class Desk:
    """A conversation with one late call, and what its tool was told."""

    def __init__(self, late: str, until: timedelta | None = None) -> None:
        self.store = MemoryStore()
        self.late = late
        self.tickets: list[CallTicket] = []
        self.carriers: list[Any] = []
        self.telemetry: Any = None

        @tool_fn(late=True, effect="once")
        async def render(word: str, *, ticket: Skip[CallTicket]) -> str:
            """Render."""
            self.tickets.append(ticket)
            if self.telemetry is not None:
                self.carriers.append(self.telemetry.carrier())
            raise Later("soon", until=until)

        class Studio(Toolset):
            renders = tool(render)

        self.tools = Studio

    def loop(self, *script: Reply, telemetry: Any) -> DurableLoop[Any, Any]:
        self.telemetry = telemetry
        late: Any = self.late
        return DurableLoop(
            self.store, ScriptedModel([*script]), tools=self.tools, telemetry=telemetry, late=late
        )

    async def promise(self, telemetry: Any) -> CallTicket:
        """A run in which the call promises."""
        await self.store.create("c7", asked())
        asks = Reply(calls=[Call("render", {"word": "x"}, id="c1")])
        script = [asks] if self.late == "wait" else [asks, Reply(text="It renders.")]
        await self.loop(*script, telemetry=telemetry).run("c7")
        (ticket,) = self.tickets
        return ticket

    async def take(self, telemetry: Any) -> Any:
        """A run that takes what was delivered."""
        return await self.loop(Reply(text="Done."), telemetry=telemetry).run("c7")


def place(span: ReadableSpan) -> int:
    assert span.context is not None
    span_id: int = span.context.span_id
    return span_id


def deliveries(exported: Exported) -> list[ReadableSpan]:
    return [span for span in exported.spans if span.name.startswith("deliver_result")]


@pytest.mark.parametrize("late", LATE_WAYS)
async def test_a_delivery_has_one_span_linked_to_that_of_its_call_LR20(late: str) -> None:
    desk = Desk(late)
    with Exported() as exported:
        telemetry = exported.telemetry()
        ticket = await desk.promise(telemetry)
        promised = exported.named("execute_tool render")
        attributes: Any = promised.attributes
        assert attributes["lutumpy.call.outcome"] == "promised"
        assert attributes["lutumpy.call.key"] == ticket.key
        assert await desk.loop(telemetry=telemetry).deliver(ticket, "film")
        (delivery,) = deliveries(exported)
        assert delivery.attributes == {
            "gen_ai.tool.name": "render",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.conversation.id": "c7",
            "lutumpy.call.key": ticket.key,
            "lutumpy.delivery.status": "ok",
        }
        assert [link.context.span_id for link in delivery.links] == [place(promised)]
        assert isinstance(await desk.take(telemetry), Answered)
        assert deliveries(exported) == [delivery]  # the run that takes it makes no second one


@pytest.mark.parametrize("late", LATE_WAYS)
async def test_in_another_process_the_carrier_links_a_delivery_LR20(late: str) -> None:
    desk = Desk(late)
    with Exported() as first, Exported() as second, Exported() as third:
        ticket = await desk.promise(first.telemetry())
        webhook = desk.loop(telemetry=second.telemetry())
        (carrier,) = desk.carriers
        loaded = CallTicket.load(ticket.dump())
        assert await webhook.deliver(loaded, ValueError("the farm burnt down"), earlier=carrier)
        (delivery,) = second.spans
        attributes: Any = delivery.attributes
        assert attributes["lutumpy.call.key"] == ticket.key
        assert attributes["lutumpy.delivery.status"] == "error"
        promised = first.named("execute_tool render")
        assert [link.context.span_id for link in delivery.links] == [place(promised)]
        assert isinstance(await desk.take(third.telemetry()), Answered)
        assert deliveries(third) == []


@pytest.mark.parametrize("late", LATE_WAYS)
async def test_the_run_makes_the_span_of_what_it_takes_where_nobody_has_LR20(late: str) -> None:
    desk = Desk(late)
    with Exported() as exported:
        ticket = await desk.promise(None)
        # Its process makes no spans.
        assert await desk.loop(telemetry=None).deliver(ticket, "film")
        assert isinstance(await desk.take(exported.telemetry()), Answered)
        (delivery,) = deliveries(exported)
        attributes: Any = delivery.attributes
        assert delivery.links == ()
        assert attributes["gen_ai.conversation.id"] == "c7"
        assert attributes["gen_ai.tool.call.id"] == "c1"
        assert attributes["lutumpy.call.key"] == ticket.key


@pytest.mark.parametrize("late", LATE_WAYS)
@pytest.mark.parametrize("end", ["withdrawn", "expired"])
async def test_a_call_that_is_given_up_has_a_delivery_too_LR20(late: str, end: str) -> None:
    desk = Desk(late, timedelta(seconds=0) if end == "expired" else None)
    with Exported() as exported:
        telemetry = exported.telemetry()
        await desk.promise(telemetry)
        if end == "withdrawn":
            loop = desk.loop(telemetry=telemetry)
            assert await loop.withdraw("c7", "c1", reason="too dear", by="ann")
            assert deliveries(exported) == []
        assert isinstance(await desk.take(telemetry), Answered)
        (delivery,) = deliveries(exported)
        attributes: Any = delivery.attributes
        status = "rejected" if end == "withdrawn" else "error"
        assert attributes["lutumpy.delivery.status"] == status
        assert delivery.name == "deliver_result render"
        linked = [link.context.span_id for link in delivery.links]
        assert linked == [place(exported.named("execute_tool render"))]


class Plain:
    """Telemetry of a program's own, of an earlier release: it knows no deliveries."""

    def __init__(self, telemetry: Any) -> None:
        self._telemetry = telemetry

    def __getattr__(self, name: str) -> Any:
        if name == "delivery":
            raise AttributeError(name)
        return getattr(self._telemetry, name)


async def test_telemetry_without_deliveries_goes_on_as_before() -> None:
    desk = Desk("wait")
    with Exported() as exported:
        telemetry = Plain(exported.telemetry())
        ticket = await desk.promise(telemetry)
        waiting = await desk.loop(telemetry=telemetry).run("c7")
        assert isinstance(waiting, Waiting)
        assert await desk.loop(telemetry=telemetry).deliver(ticket, "film")
        assert isinstance(await desk.take(telemetry), Answered)
        assert deliveries(exported) == []
