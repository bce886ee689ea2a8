"""Calls on the workers of real engines, in processes of their own (section "Engines" of the page).

Every test runs on Temporal and on DBOS; servers and workers are started here.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import ANSWER, Model, call, calls, results
from engines_toolkit import Site
from engines_tools import Desk, Hotel, Studio, dispatcher

from lutumpy import CallTicket, Session, TakenOverError
from lutumpy.durable import Answered, DurableLoop, LocalRunner, Waiting
from lutumpy.errors import EngineError

pytestmark = pytest.mark.anyio

LOOP = Path(__file__).with_name("engines_loop.py")


@pytest.fixture
def anyio_backend() -> str:
    """The engines' packages know asyncio alone."""
    return "asyncio"


async def session_of(site: Site) -> Session:
    return await site.store.session(site.scope)


def shown(session: Session) -> Any:
    """The transcript, without what is measured."""
    return json.loads(json.dumps(session.dump()["items"]))


async def lose(site: Site, script: Any) -> None:
    """A run that loses its conversation while it waits for the first payment."""
    loop = site.loop(script, await site.runner(), lease=0.5)

    async def break_lease() -> None:
        await site.notes.wait_for("charge")
        await site.store.break_lease(site.scope, by="ann")

    async with anyio.create_task_group() as group:
        group.start_soon(break_lease)
        with pytest.raises(TakenOverError):
            await loop.run(site.scope)


CONVERSATION = [
    calls(
        call("look", "l1", word="cat"),
        call("charge", "p1", amount=5),
        call("save", "s1", title="note"),
        call("look", "l2", word=7),
    ),
    calls(call("nothing", "n1"), call("charge", "p2", amount=6)),
    ANSWER,
]


async def test_one_conversation_has_the_same_transcript_here_and_on_an_engine(site: Site) -> None:
    site.start_worker()
    await site.create()
    done = await site.run(CONVERSATION)
    assert isinstance(done, Answered)
    there = shown(await session_of(site))

    here = Site("local", "", site.folder / "here")
    here.folder.mkdir()
    here.store.close()
    local = Site("local", "", here.folder)
    await local.create()
    await local.run(CONVERSATION, LocalRunner(dispatcher(Desk, local.folder)))
    assert shown(await session_of(local)) == there
    assert len(site.notes.read("charge")) == len(local.notes.read("charge")) == 2
    local.close()


async def test_a_worker_killed_in_a_once_tool_gives_maybe_executed_and_one_effect(
    site: Site,
) -> None:
    """P5, P8: it isn't begun again, by another worker neither; and an equal call is refused."""
    first = site.start_worker()
    await site.create()
    script = [
        calls(call("charge", "p1", amount=13)),
        calls(call("charge", "p2", amount=13)),
        ANSWER,
    ]
    async with anyio.create_task_group() as group:
        group.start_soon(site.run, script)
        await site.notes.wait_for("charge")
        await anyio.to_thread.run_sync(first.process.wait)
        await anyio.to_thread.run_sync(site.start_worker)
    said = results(await session_of(site))
    assert [status for status, _ in said] == ["error", "rejected"]
    assert "may have taken effect" in said[0][1]
    assert len(site.notes.read("charge")) == 1
    (unresolved,) = await site.store.unresolved(site.scope)
    assert unresolved.metadata.id == "p1"


async def test_a_worker_killed_in_an_idempotent_tool_is_replaced_with_the_same_key(
    site: Site,
) -> None:
    """P6, P9."""
    first = site.start_worker()
    await site.create()
    async with anyio.create_task_group() as group:
        group.start_soon(site.run, [calls(call("save", "s1", title="fatal")), ANSWER])
        await site.notes.wait_for("save")
        await anyio.to_thread.run_sync(first.process.wait)
        await anyio.to_thread.run_sync(site.start_worker)
    assert results(await session_of(site)) == [("ok", "saved fatal")]
    runs = site.notes.read("save")
    assert len(runs) == 2
    assert len({run["key"] for run in runs}) == 1
    assert len({run["pid"] for run in runs}) == 2


async def test_calls_run_in_other_processes_and_how_many_at_once_is_the_engines(
    site: Site,
) -> None:
    worker = site.start_worker(limit=1)
    await site.create()
    words = ["slow one", "slow two", "slow three"]
    asked_for = [call("look", f"l{index}", word=word) for index, word in enumerate(words)]
    await site.run([calls(*asked_for), ANSWER])
    began, ended = site.notes.read("look"), site.notes.read("looked")
    assert {line["pid"] for line in began} == {worker.process.pid}
    times = sorted(
        [(line["at"], 1) for line in began] + [(line["at"], -1) for line in ended],
    )
    running, most = 0, 0
    for _, step in times:
        running += step
        most = max(most, running)
    assert most == 1
    said = results(await session_of(site))
    assert [text for _, text in said] == [f"{word} means {word[::-1]}" for word in words]


async def test_a_call_of_another_tool_than_the_workers_is_failed_and_not_run(site: Site) -> None:
    """P18."""
    site.start_worker("Changed")
    await site.create()
    await site.run([calls(call("charge", "p1", amount=5), call("look", "l1", word="cat")), ANSWER])
    said = results(await session_of(site))
    assert [status for status, _ in said] == ["error", "ok"]
    assert "was not run" in said[0][1]
    assert site.notes.read("charge") == []
    assert await site.store.unresolved(site.scope) == []


async def test_a_tool_that_exits_doesn_t_end_its_worker(site: Site) -> None:
    worker = site.start_worker()
    await site.create()
    script = [calls(call("charge", "p1", amount=99), call("look", "l1", word="cat")), ANSWER]
    await site.run(script)
    said = results(await session_of(site))
    assert "SystemExit" in said[0][1]
    assert said[1][0] == "ok"
    assert worker.process.poll() is None


async def test_a_cancelled_loop_stops_its_calls_and_says_which_may_have_run_P19(
    site: Site,
) -> None:
    """What may run again does so in the next run, with the same key; the worker stays as it was."""
    worker = site.start_worker()
    await site.create()
    script = [
        calls(call("charge", "p1", amount=20), call("wait", "w1", seconds=2)),
        calls(call("charge", "p2", amount=20)),
        ANSWER,
    ]
    async with anyio.create_task_group() as group:
        group.start_soon(site.run, script)
        await site.notes.wait_for("charge")
        await site.notes.wait_for("wait")
        group.cancel_scope.cancel()
    (unresolved,) = await site.store.unresolved(site.scope)
    assert unresolved.metadata.id == "p1"
    assert isinstance(await site.run(script), Answered)
    said = results(await session_of(site))
    assert [status for status, _ in said] == ["error", "ok", "rejected"]
    assert "was cancelled before the tool gave an answer" in said[0][1]
    assert len(site.notes.read("charge")) == 1
    waits = site.notes.read("wait")
    assert len({line["key"] for line in waits}) == 1
    assert len(waits) == 2
    if site.engine == "temporal":  # a step of DBOS that is running can't be stopped
        assert len(site.notes.read("waited")) == 1
    assert worker.process.poll() is None


async def test_a_run_that_was_taken_over_stops_nothing_P4(site: Site) -> None:
    """The other process waits for the same calls."""
    site.start_worker()
    await site.create()
    script = [calls(call("charge", "p1", amount=20)), ANSWER]
    await lose(site, script)
    assert isinstance(await site.run(script), Answered)
    assert results(await session_of(site)) == [("ok", "charged 20")]
    assert len(site.notes.read("charge")) == 1


async def test_a_loop_that_is_killed_while_it_waits_is_followed_by_one_that_gets_the_result(
    site: Site,
) -> None:
    site.start_worker()
    await site.create()
    arguments = [site.engine, site.where, site.queue, str(site.folder), site.scope]
    loop = subprocess.Popen([sys.executable, str(LOOP), *arguments])
    try:
        await site.notes.wait_for("charge")
        loop.send_signal(signal.SIGKILL)
    finally:
        loop.kill()
        loop.wait()
    with anyio.fail_after(60):
        done: Any = None
        while not isinstance(done, Answered):  # until the lease of the dead one has ended
            done = await site.run([calls(call("charge", "p1", amount=20)), ANSWER])
            await anyio.sleep(0.1)
    assert results(await session_of(site)) == [("ok", "charged 20")]
    assert len(site.notes.read("charge")) == 1


@pytest.mark.parametrize("impatient", [True, False])
async def test_an_engine_that_can_t_be_reached_is_an_error_and_nothing_is_lost(
    site: Site, impatient: bool
) -> None:
    site.impatient = impatient  # whether DBOS tries again by itself
    await site.create()
    script = [calls(call("charge", "p1", amount=5)), ANSWER]
    runner = await site.unreachable()
    with pytest.raises(EngineError, match="the round stays open in the store"):
        await site.run(script, runner)
    assert site.notes.read("charge") == []
    site.start_worker()
    await site.run(script)
    assert results(await session_of(site)) == [("ok", "charged 5")]


async def test_a_call_that_the_engine_has_forgotten_is_not_begun_again(site: Site) -> None:
    """P7: the marker in the store is older than what the engine remembers."""
    site.start_worker()
    await site.create()
    script = [calls(call("charge", "p1", amount=5)), ANSWER]

    class Dying:
        """Marks the call, as a process does that is killed right afterwards."""

        async def run(self, tickets: Any, journal: Any) -> Any:
            assert await journal.mark(tickets[0])
            raise ConnectionError("killed")

    with pytest.raises(ConnectionError):
        await site.run(script, Dying())
    await site.run(script)
    ((status, text),) = results(await session_of(site))
    assert status == "error"
    assert "knows nothing of it" in text
    assert site.notes.read("charge") == []
    assert len(await site.store.unresolved(site.scope)) == 1


async def test_a_runner_of_another_kind_doesn_t_run_what_an_engine_was_given(site: Site) -> None:
    """It finds the marker, and can't ask the engine."""
    site.start_worker()
    await site.create()
    script = [calls(call("charge", "p1", amount=20)), ANSWER]
    await lose(site, script)
    await site.run(script, LocalRunner(dispatcher(Desk, site.folder)))
    ((status, text),) = results(await session_of(site))
    assert status == "error"
    assert "may have taken effect" in text
    assert len(site.notes.read("charge")) == 1


async def loop_for(site: Site, tools: Any, script: Any) -> DurableLoop[Any, Any]:
    """A loop of another toolset than `Desk`, on the engine; another one each time."""
    dispatch = dispatcher(tools, site.folder)
    runner = await site.runner()
    return DurableLoop(site.store, Model(script), tools=tools, dispatch=dispatch, runner=runner)


async def test_a_late_result_of_a_worker_is_delivered_once_LR9_LR10(site: Site) -> None:
    site.start_worker("Studio")
    await site.create()
    script = [calls(call("render", "r1", scene="beach")), ANSWER]
    with anyio.fail_after(90):
        waiting = await (await loop_for(site, Studio, script)).run(site.scope)
        assert isinstance(waiting, Waiting)
        assert [each.call_id for each in waiting.open] == ["r1"]
        (line,) = site.notes.read("render")
        ticket = CallTicket.load(line["ticket"])
        assert await (await loop_for(site, Studio, script)).deliver(ticket, "a picture")
        assert not await (await loop_for(site, Studio, script)).deliver(ticket, "another")
        done = await (await loop_for(site, Studio, script)).run(site.scope)
    assert isinstance(done, Answered)
    assert results(await session_of(site)) == [("ok", "a picture")]
    assert len(site.notes.read("render")) == 1


async def test_a_question_of_a_worker_is_held_and_its_next_leg_is_run_once_LR23_LR26(
    site: Site,
) -> None:
    site.start_worker("Hotel")
    await site.create()
    script = [calls(call("book", "b1")), ANSWER]
    with anyio.fail_after(90):
        waiting = await (await loop_for(site, Hotel, script)).run(site.scope)
        assert isinstance(waiting, Waiting)
        assert [(each.key, each.leg) for each in waiting.questions] == [("who", 1)]
        loop = await loop_for(site, Hotel, script)
        ada = {"action": "accept", "content": {"name": "Ada"}}
        assert await loop.answer(site.scope, "b1", {"who": ada}, by="ann")
        done = await (await loop_for(site, Hotel, script)).run(site.scope)
    assert isinstance(done, Answered)
    assert results(await session_of(site)) == [("ok", "seat 7 for Ada")]
    assert [line["leg"] for line in site.notes.read("book")] == [1, 2]
