"""Late `once` calls that a runner sends to workers: an equal one isn't begun beside an open one,
and nobody waits for ever (rules LR8, LR13).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from durable_toolkit import ANSWER, SCOPE, asked, new_store, results

from lutumpy import (
    CallTicket,
    Later,
    Skip,
    TakenOverError,
    ToolError,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.durable import Answered, DurableLoop, RoundJournal, StoreJournal
from lutumpy.durable.engines import read_outcome, run_in_worker, run_on_engine
from lutumpy.execution import Dispatcher, ExecutionResult, ToolExecutor, run_ticket
from lutumpy.testing import Call, Reply, ScriptedModel


class Farm:
    """What was begun, and what comes of it: `later`, `ok` or `fails`."""

    def __init__(self, gives: str) -> None:
        self.gives = gives
        self.begun: list[str] = []
        self.running: set[str] = set()


@tool_fn(late=True, effect="once")
async def render(scene: str, *, ticket: Skip[CallTicket], farm: Skip[Farm]) -> str:
    """Render a scene."""
    farm.begun.append(ticket.call_id)
    assert scene not in farm.running
    farm.running.add(scene)
    await anyio.sleep(0.02)
    farm.running.remove(scene)
    if farm.gives == "fails":
        raise ToolError("no room")
    if farm.gives == "ok":
        return "video"
    raise Later("an hour")


class Studio(Toolset):
    render = tool(render)


class Queue:
    """A plain queue, with workers that have nothing but the store and a token; it may deliver a
    call twice.
    """

    def __init__(self, store: Any, farm: Farm, *, at_once: bool, times: int = 1) -> None:
        self.store, self.farm = store, farm
        self.at_once, self.times = at_once, times

    async def run(self, tickets: Any, journal: RoundJournal) -> list[ToolResult]:
        found: dict[str, ToolResult] = {}

        async def send(ticket: CallTicket) -> None:
            known = await journal.known(ticket)
            if known is None:
                for _ in range(self.times):
                    outcome = await self.work(json.dumps(ticket.dump()), journal.token())
                known = ToolResult.load(json.loads(outcome), ticket)
            found[ticket.call_id] = known

        if self.at_once:
            async with anyio.create_task_group() as group:
                for ticket in tickets:
                    group.start_soon(send, ticket)
        else:
            for ticket in tickets:
                await send(ticket)
        return [found[ticket.call_id] for ticket in tickets]

    async def work(self, data: str, token: Any) -> str:
        executor = ToolExecutor(journal=StoreJournal.of_token(self.store, token))
        dispatch = Dispatcher(Studio, context={"farm": self.farm})
        ticket = CallTicket.load(json.loads(data))
        return json.dumps(await run_ticket(ticket, Studio, dispatch, executor=executor))


EQUAL = [
    Call("render", {"scene": "beach"}, id="c1"),
    Call("render", '{ "scene" : "beach" }', id="c2"),
    Call("render", {"scene": "wood"}, id="c3"),
]


async def run_equal(store: Any, runner: Any) -> dict[str, tuple[str, str]]:
    """A round with two equal calls; the results by call id."""
    await store.create(SCOPE, asked())
    llm = ScriptedModel([Reply(calls=EQUAL), ANSWER], check=False)
    loop: DurableLoop[Any, Any] = DurableLoop(
        store,
        llm,
        tools=Studio,
        dispatch=Dispatcher(Studio, context={"farm": Farm("ok")}),
        runner=runner,
        late="go_on",
    )
    with anyio.fail_after(60):  # it waited for ever
        assert isinstance(await loop.run(SCOPE), Answered)
    session = await store.session(SCOPE)
    ids = [str(call.id) for call in EQUAL]
    return dict(zip(ids, results(session), strict=True))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("gives", ["later", "ok", "fails"])
def test_workers_that_are_sent_one_call_after_the_other_LR13(
    make: Callable[[], Any], gives: str, times: int
) -> None:
    """The second one runs only behind a call that isn't open."""
    farm = Farm(gives)

    async def main() -> None:
        store = make()
        told = await run_equal(store, Queue(store, farm, at_once=False, times=times))
        if gives == "later":
            assert farm.begun == ["c1", "c3"]
            assert [status for status, _ in told.values()] == ["promised", "rejected", "promised"]
            assert "An equal call (c1) is still running" in told["c2"][1]
        else:
            assert farm.begun == ["c1", "c2", "c3"]
            assert len(set(told.values())) == 1

    anyio.run(main)


@pytest.mark.parametrize("gives", ["later", "ok", "fails"])
def test_workers_that_are_sent_equal_calls_at_once_LR13(
    backend: str, make: Callable[[], Any], gives: str
) -> None:
    farm = Farm(gives)

    async def main() -> None:
        store = make()
        told = await run_equal(store, Queue(store, farm, at_once=True))
        first, *others = [name for name in farm.begun if name != "c3"]
        (second,) = {"c1", "c2"} - {first}
        if others:  # it came when the first one had ended
            assert (gives == "later", others) == (False, [second])
            assert told[second] == told[first]
        else:
            assert told[second][0] == "rejected"
            assert f"An equal call ({first}) is still running" in told[second][1]

    anyio.run(main, backend=backend)


async def test_a_worker_s_call_that_died_stays_open_and_is_not_begun_again_LR8_LR13() -> None:
    """The queue delivers a call again whose worker died in the tool, and then an equal one."""
    store, farm = await new_store(), Farm("later")
    claim: Any = await store.claim(SCOPE)
    token = {"scope": SCOPE, "fence": claim.fence, "round": claim.round}
    queue = Queue(store, farm, at_once=False)
    tickets: list[CallTicket] = []

    class Keeper:
        async def run(self, found: Any, journal: RoundJournal) -> Any:
            tickets.extend(found)
            raise LookupError("only the tickets are wanted")

    twin = await new_store()
    loop: DurableLoop[Any, Any] = DurableLoop(
        twin,
        ScriptedModel([Reply(calls=EQUAL)]),
        tools=Studio,
        runner=Keeper(),
        dispatch=Dispatcher(Studio, context={"farm": farm}),
    )
    with pytest.raises(LookupError):
        await loop.run(SCOPE)
    first, second, _ = tickets
    # Its worker begins the call, and is gone.
    assert not isinstance(await StoreJournal.of_token(store, token).begin(first), ToolResult)
    again = json.loads(await queue.work(json.dumps(first.dump()), token))
    assert (again["status"], again["outcome"]) == ("promised", "promised")
    equal = json.loads(await queue.work(json.dumps(second.dump()), token))
    assert (equal["status"], farm.begun) == ("rejected", [])


class Engine:
    """An engine that goes on with a call when its loop is gone, and knows it afterwards."""

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        self.outcomes: dict[str, Any] = {}
        self.two_began = anyio.Event()
        self.goes_on = anyio.Event()

    async def go_on_soon(self) -> None:
        await anyio.sleep(0.3)
        self.goes_on.set()

    async def has(self, ticket: CallTicket) -> bool:
        await anyio.lowlevel.checkpoint()
        return ticket.call_id in self.outcomes

    async def run(self, ticket: CallTicket) -> ExecutionResult:
        if ticket.call_id not in self.outcomes:
            dispatch = Dispatcher(Studio, context={"farm": self.farm})
            self.outcomes[ticket.call_id] = await run_in_worker(ticket.dump(), Studio, dispatch)
            if len(self.outcomes) == 2:
                self.two_began.set()
        await self.goes_on.wait()
        return read_outcome(self.outcomes[ticket.call_id], ticket)

    async def stop(self, ticket: CallTicket) -> ExecutionResult | None:
        raise AssertionError("who was taken over stops nothing")


def test_a_call_that_an_engine_runs_still_is_waited_for_by_the_next_loop_LR13(
    backend: str, make: Callable[[], Any]
) -> None:
    """Its loop was taken over before the call had promised; an equal one hasn't begun."""

    async def main() -> None:
        store, farm = make(), Farm("later")
        await store.create(SCOPE, asked())
        engine = Engine(farm)

        class Runner:
            async def run(self, tickets: Any, journal: RoundJournal) -> Any:
                return await run_on_engine(engine, tickets, journal)

        llm = ScriptedModel([Reply(calls=EQUAL), ANSWER], check=False)

        def loop() -> DurableLoop[Any, Any]:
            dispatch = Dispatcher(Studio, context={"farm": farm})
            return DurableLoop(
                store, llm, tools=Studio, dispatch=dispatch, runner=Runner(), late="go_on"
            )

        async def be_taken_over() -> None:
            with pytest.raises(TakenOverError):
                await loop().run(SCOPE)

        async with anyio.create_task_group() as group:
            group.start_soon(be_taken_over)
            with anyio.fail_after(60):
                await engine.two_began.wait()
            await store.break_lease(SCOPE, by="ann")
            group.start_soon(engine.go_on_soon)
            assert isinstance(await loop().run(SCOPE), Answered)
        # Which of the equal ones comes first isn't said: trio starts tasks in any order.
        (first,) = {"c1", "c2"} & {*farm.begun}
        assert sorted(farm.begun) == sorted([first, "c3"])
        told = results(await store.session(SCOPE))
        assert sorted(status for status, _ in told) == ["promised", "promised", "rejected"]

    anyio.run(main, backend=backend)
