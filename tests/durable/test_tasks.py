"""Tasks of MCP servers are open calls, polled by runs of a durable loop (rules LR31 to LR34)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest
from durable_toolkit import Model
from tasks_toolkit import Farm, completed, form

from lutumpy import Session, ToolError
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting, log, polling
from lutumpy.errors import StoreError
from lutumpy.loops import run_tools
from lutumpy.mcp import McpTools, tasks
from lutumpy.models import Message, ResultBlock, ToolResults
from lutumpy.testing import Call, Reply

SCOPE = "s"
RENDER = Call("render", {"scene": "beach"}, id="c1")
ANSWER = Reply(text="There.")
ADA = {"action": "accept", "content": {"name": "Ada"}}
WORKING = {"status": "working"}
ASKS = {"status": "input_required", "inputRequests": {"who": form()}}


class Clock:
    """Whether the time of a poll has come, so that no test depends on how fast it is."""

    due = False
    seconds_to = polling.Polls._seconds_to


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds_to(polls: Any, key: Any, call: Any, poller: Any) -> float:
        return 0.0 if Clock.due else 7.0

    monkeypatch.setattr(polling.Polls, "_seconds_to", seconds_to)


@pytest.fixture
def real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling.Polls, "_seconds_to", Clock.seconds_to)


def loop_of(store: Any, source: McpTools, **options: Any) -> DurableLoop[Any, Any]:
    script = [Reply(calls=[RENDER]), ANSWER, ANSWER]
    return DurableLoop(store, Model(script), tools=source.toolset, events=True, **options)


async def new_store(make: Callable[[], Any] = MemoryStore) -> Any:
    store = make()
    session = Session()
    session.push_user("Render it.")
    await store.create(SCOPE, session)
    return store


async def run_once(store: Any, farm: Farm, **options: Any) -> Any:
    """One run, as a process of its own would do it; the first one makes the call, the next poll."""
    mcp = {name: options.pop(name) for name in ("ask", "on_answer") if name in options}
    Clock.due = farm.tasks.count("tools/call") > 0
    async with farm.tools(**mcp) as source:
        return await loop_of(store, source, **options).run(SCOPE)


def results(session: Session) -> list[ResultBlock]:
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [result for item in items for result in item.results]


def late_texts(session: Session) -> list[str]:
    items = session.transcript
    return [item.text for item in items if isinstance(item, Message) and item.late is not None]


def test_a_task_is_an_open_call_that_any_process_polls_LR31_LR32(make: Any) -> None:
    async def scenario() -> None:
        store, farm = await new_store(make), Farm(WORKING, completed("rendered"))
        waiting = await run_once(store, farm)
        assert isinstance(waiting, Waiting)
        assert (waiting.held, waiting.questions) == ((), ())
        assert waiting.poll_after is not None
        assert waiting.poll_after == 7.0
        (opened,) = waiting.open
        assert opened.tool == "render"
        assert opened.handle == {
            "address": None,
            "task": "task 1",
            "ttlMs": None,
            "pollIntervalMs": 10,
        }
        assert farm.tasks.count("tasks/get") == 0  # it was recorded before the first poll
        waiting = await run_once(store, farm)
        assert isinstance(waiting, Waiting)
        answered = await run_once(store, farm)
        assert isinstance(answered, Answered)
        (result,) = results(await store.session(SCOPE))
        assert (result.status, result.content) == ("ok", "rendered")
        assert (farm.tasks.count("tools/call"), farm.tasks.count("tasks/get")) == (1, 2)
        events = [event.load() async for event in store.events(SCOPE, until="end")]
        assert [type(event) for event in events].count(log.CallPromised) == 1
        (delivered,) = [event for event in events if isinstance(event, log.CallDelivered)]
        assert (delivered.call_id, delivered.outcome) == ("c1", "ok")
        waits = [event for event in events if isinstance(event, log.RunWaits)]
        assert [each.promised for each in waits] == [("c1",), ("c1",)]
        assert [each.poll_after for each in waits] == [7.0, 0.1]

    anyio.run(scenario)


@pytest.mark.usefixtures("real_clock")
def test_the_interval_of_the_server_is_honoured_LR32() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(WORKING, interval_ms=60_000)
        async with farm.tools() as source:
            loop = loop_of(store, source)
            for _ in range(3):
                waiting = await loop.run(SCOPE)
                assert isinstance(waiting, Waiting)
                assert waiting.poll_after is not None
                assert 50 < waiting.poll_after <= 60
        # A process that has just begun knows since when the call is open.
        waiting = await run_once(store, farm)
        assert 50 < waiting.poll_after <= 60
        assert farm.tasks.count("tasks/get") == 0

    anyio.run(scenario)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (completed("no such scene", is_error=True), "no such scene"),
        ({"status": "failed", "error": {"code": -1, "message": "no memory"}}, "no memory"),
        ({"status": "cancelled", "statusMessage": "by hand"}, "was cancelled. by hand"),
        ({"status": "completed", "result": {"content": 7}}, "result can't be read"),
    ],
)
def test_what_a_task_ends_with_is_the_result_of_the_call_LR32(state: Any, text: str) -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(state)
        await run_once(store, farm)
        assert isinstance(await run_once(store, farm), Answered)
        (result,) = results(await store.session(SCOPE))
        assert result.status == "error"
        assert text in str(result.content)

    anyio.run(scenario)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_who_wants_whole_answers_gets_that_of_a_task_MCP4(late: str) -> None:
    """`on_answer=` was called with the answers of calls alone."""
    answers: list[Any] = []

    async def keep(call: Any, answer: Any) -> None:
        answers.append((call.id, call.name, answer.structured_content))

    def fail(call: Any, answer: Any) -> None:
        raise ToolError("the answer can't be kept")

    async def scenario() -> None:
        result = {"content": [{"type": "text", "text": "7"}], "structuredContent": {"seven": 7}}
        state = {"status": "completed", "result": result}
        for handler in (keep, fail):
            store, farm = await new_store(), Farm(state)
            await run_once(store, farm, late=late, on_answer=handler)
            assert len(answers) == (handler is fail)
            answered = await run_once(store, farm, late=late, on_answer=handler)
            assert isinstance(answered, Answered)
            session = await store.session(SCOPE)
            told = f"{late_texts(session)} {[each.content for each in results(session)]}"
            assert ("can't be kept" in told) == (handler is fail)
        assert answers == [("c1", "render", {"seven": 7})]

    anyio.run(scenario)


def test_go_on_tells_the_result_when_a_poll_finds_it_LR32(make: Any) -> None:
    async def scenario() -> None:
        store, farm = await new_store(make), Farm(WORKING, completed("rendered"))
        first = await run_once(store, farm, late="go_on")
        assert isinstance(first, Answered)
        assert first.result.stopped_by == "open"
        await run_once(store, farm, late="go_on")
        assert late_texts(await store.session(SCOPE)) == []
        last = await run_once(store, farm, late="go_on")
        assert isinstance(last, Answered)
        assert (last.result.stopped_by, last.result.open_calls) == ("answer", ())
        (text,) = late_texts(await store.session(SCOPE))
        assert text.endswith("\nrendered")

    anyio.run(scenario)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_a_task_that_nobody_knows_any_more_is_of_unknown_outcome_LR34(late: str) -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(WORKING)
        await run_once(store, farm, late=late)
        farm.tasks.known.clear()
        assert isinstance(await run_once(store, farm, late=late), Answered)
        (call,) = await store.unresolved(SCOPE)
        assert call.metadata.id == "c1"
        assert farm.tasks.count("tools/call") == 1

    anyio.run(scenario)


@pytest.mark.slow
@pytest.mark.usefixtures("real_clock")
def test_past_its_ttl_a_task_is_asked_a_last_time_LR34() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(WORKING, ttl_ms=2000, interval_ms=60_000)
        waiting = await run_once(store, farm)
        (opened,) = waiting.open
        assert opened.until - opened.since < timedelta(seconds=2.5)
        await anyio.sleep(2.1)
        assert isinstance(await run_once(store, farm), Answered)
        (call,) = await store.unresolved(SCOPE)
        assert call.metadata.id == "c1"
        assert farm.tasks.count("tasks/get") == 1

    anyio.run(scenario)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_withdrawing_cancels_the_task_LR34(late: str) -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(WORKING, interval_ms=60_000)
        await run_once(store, farm, late=late)
        async with farm.tools() as source:
            loop = loop_of(store, source, late=late)
            assert await loop.withdraw(SCOPE, "c1", reason="too dear", by="ann")
            assert isinstance(await loop.run(SCOPE), Answered)
        assert farm.tasks.sent[-1] == ("tasks/cancel", "task 1")
        assert farm.tasks.count("tasks/cancel") == 1
        assert await store.unresolved(SCOPE) == []

    anyio.run(scenario)


def test_what_a_task_asks_is_held_for_a_person_LR33(make: Any) -> None:
    async def scenario() -> None:
        more = {
            "status": "input_required",
            "inputRequests": {"who": form(), "where": form("Where?")},
        }
        farm = Farm(ASKS, ASKS, more, WORKING, completed("rendered"))
        store = await new_store(make)
        await run_once(store, farm, ask="hold")
        waiting = await run_once(store, farm, ask="hold")
        (question,) = waiting.questions
        assert (question.call_id, question.key, question.message) == ("c1", "who", "Who?")
        assert [call.call_id for call in waiting.open] == ["c1"]
        # It is polled on, and the same question isn't another one.
        waiting = await run_once(store, farm, ask="hold")
        assert waiting.questions == (question,)
        async with farm.tools(ask="hold") as source:
            loop = loop_of(store, source)
            bad = {"action": "accept", "content": {"name": "A"}}
            with pytest.raises(StoreError, match="name: "):
                await loop.answer(SCOPE, "c1", {"who": bad}, by="ann")
            assert await loop.answer(SCOPE, "c1", {"who": ADA}, by="ann")
        waiting = await run_once(store, farm, ask="hold")
        # The answer was sent, and the task has another question; the first isn't asked again.
        assert [each.key for each in waiting.questions] == ["where"]
        updates = [sent for name, sent in farm.tasks.sent if name == "tasks/update"]
        assert updates == [{"who": ADA}]
        async with farm.tools(ask="hold") as source:
            await loop_of(store, source).answer(SCOPE, "c1", {"where": ADA}, by="bob")
        assert isinstance(await run_once(store, farm, ask="hold"), Waiting)
        assert isinstance(await run_once(store, farm, ask="hold"), Answered)
        updates = [sent for name, sent in farm.tasks.sent if name == "tasks/update"]
        assert [*updates[1]] == ["where"]
        (result,) = results(await store.session(SCOPE))
        assert result.content == "rendered"

    anyio.run(scenario)


@pytest.mark.slow
def test_a_task_may_ask_more_before_it_is_answered_LR33(make: Any) -> None:
    async def scenario() -> None:
        both = {"who": form(), "where": form("Where?")}
        more = {"status": "input_required", "inputRequests": both}
        store, farm = await new_store(make), Farm(ASKS, more, WORKING, completed("rendered"))
        await run_once(store, farm, ask="hold")
        await run_once(store, farm, ask="hold")
        waiting = await run_once(store, farm, ask="hold")
        assert [(each.key, each.leg) for each in waiting.questions] == [("who", 2), ("where", 3)]
        assert [call.leg for call in await store.asked(SCOPE)] == [2, 3]
        async with farm.tools(ask="hold") as source:
            answers = {"where": ADA, "who": ADA}
            assert await loop_of(store, source).answer(SCOPE, "c1", answers, by="ann")
        await run_once(store, farm, ask="hold")
        assert isinstance(await run_once(store, farm, ask="hold"), Answered)
        updates = [sent for name, sent in farm.tasks.sent if name == "tasks/update"]
        assert updates == [{"who": ADA, "where": ADA}]
        events = [event.load() async for event in store.events(SCOPE, until="end")]
        asked = [event for event in events if isinstance(event, log.CallAsked)]
        keys = [[question.key for question in event.questions] for event in asked]
        assert keys == [["who"], ["who", "where"]]

    anyio.run(scenario)


def test_answers_that_could_not_be_sent_are_sent_later_LR33() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(ASKS, WORKING, completed("rendered"))
        await run_once(store, farm, ask="hold")
        await run_once(store, farm, ask="hold")
        async with farm.tools(ask="hold") as source:
            loop = loop_of(store, source)
            await loop.answer(SCOPE, "c1", {"who": ADA}, by="ann")
            assert source._connection is not None
            await source._connection.close()
            assert isinstance(await loop.run(SCOPE), Waiting)
            assert farm.tasks.count("tasks/update") == 0
            await source.refresh()
            assert isinstance(await loop.run(SCOPE), Waiting)
            assert isinstance(await loop.run(SCOPE), Answered)
        assert farm.tasks.count("tasks/update") == 1

    anyio.run(scenario)


def test_a_handler_answers_each_question_of_a_task_once_LR33() -> None:
    heard: list[str] = []

    def ask(question: Any) -> Any:
        heard.append(question.key)
        return ADA

    async def scenario() -> None:
        store, farm = await new_store(), Farm(ASKS, ASKS, completed("rendered"))
        async with farm.tools(ask=ask) as source:
            loop = loop_of(store, source)
            Clock.due = False
            for _ in range(3):
                assert isinstance(await loop.run(SCOPE), Waiting)
                Clock.due = True
            assert isinstance(await loop.run(SCOPE), Answered)
        assert heard == ["who"]
        assert farm.tasks.count("tasks/update") == 1

    anyio.run(scenario)


def test_where_nobody_can_be_waited_for_a_task_is_told_that_the_person_declines_LR33() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(ASKS, completed("rendered"))
        await run_once(store, farm, ask="hold", late="go_on")
        await run_once(store, farm, ask="hold", late="go_on")
        assert ("tasks/update", {"who": {"action": "decline"}}) in farm.tasks.sent

    anyio.run(scenario)


def test_a_task_whose_question_nobody_can_answer_is_given_up_LR33() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(ASKS)
        await run_once(store, farm)
        assert isinstance(await run_once(store, farm), Answered)
        assert farm.tasks.count("tasks/cancel") == 1
        (call,) = await store.unresolved(SCOPE)
        assert call.metadata.id == "c1"

    anyio.run(scenario)


def test_questions_that_cannot_be_read_keep_the_task_open_LR33() -> None:
    async def scenario() -> None:
        odd = {"status": "input_required", "inputRequests": {"who": {"method": "guess"}}}
        store, farm = await new_store(), Farm(odd)
        await run_once(store, farm)
        assert isinstance(await run_once(store, farm), Waiting)

    anyio.run(scenario)


class Killed(BaseException):
    """The process ends at this point."""


class KilledAt(MemoryStore):
    """A store whose process dies when it writes a record of a name."""

    name = ""
    before = True

    async def record(self, claim: Any, name: str, value: Any) -> Any:
        if name == self.name and self.before:
            raise Killed
        recorded = await super().record(claim, name, value)
        if name == self.name:
            raise Killed
        return recorded


@pytest.mark.parametrize("before", [True, False])
def test_killed_before_and_after_the_id_of_the_task_was_recorded(before: bool) -> None:
    async def scenario() -> None:
        store, farm = await new_store(KilledAt), Farm(completed("rendered"))
        store.name, store.before = "call:c1", before
        with suppress(BaseException):
            await run_once(store, farm)
        await store.break_lease(SCOPE, by="test")
        store.name = ""
        outcome = await run_once(store, farm)
        assert isinstance(outcome, Answered)
        assert farm.tasks.count("tools/call") == 1
        unresolved = [call.metadata.id for call in await store.unresolved(SCOPE)]
        (result,) = results(await store.session(SCOPE))
        if before:
            assert unresolved == ["c1"]
            assert "may have taken effect" in str(result.content)
        else:
            assert unresolved == []
            assert result.content == "rendered"

    anyio.run(scenario)


def test_a_server_that_cannot_be_reached_keeps_the_call_open_LR32() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(WORKING)
        await run_once(store, farm)
        Clock.due = True
        async with farm.tools() as source:
            loop = loop_of(store, source)
            assert source._connection is not None
            await source._connection.close()
            waiting = await loop.run(SCOPE)
        assert isinstance(waiting, Waiting)
        assert [call.call_id for call in waiting.open] == ["c1"]
        assert await store.unresolved(SCOPE) == []

    anyio.run(scenario)


def test_a_task_is_polled_at_its_own_address_only_LR31() -> None:
    async def scenario() -> None:
        store, farm = await new_store(), Farm(completed("rendered"))
        await run_once(store, farm)
        Clock.due = True
        async with farm.tools() as source:
            assert source._tasks is not None
            source._tasks._address = "https://other.example"
            assert isinstance(await loop_of(store, source).run(SCOPE), Waiting)
        assert farm.tasks.count("tasks/get") == 0

    anyio.run(scenario)


def test_without_a_store_the_program_polls() -> None:
    async def scenario() -> None:
        farm, session = Farm(WORKING, completed("rendered")), Session()
        session.push_user("Render it.")
        answers: list[Any] = []
        async with farm.tools(on_answer=lambda call, _: answers.append(call.id)) as source:
            model = Model([Reply(calls=[RENDER]), ANSWER])
            ended = await run_tools(session, model, tools=source.toolset)
            assert ended.stopped_by == "open"
            (opened,) = session.open_calls
            assert await source.poll(opened) is None
            result = await source.poll(opened)
            assert result is not None
            session.deliver([result])
            assert answers == ["c1"]
            assert session.open_calls == ()
            assert late_texts(session)[0].endswith("rendered")
            farm.tasks.known.clear()
            lost = await source.poll(opened)
            assert lost is not None
            assert "knows nothing of the task" in str(lost.content)

    anyio.run(scenario)


def test_what_is_no_task_of_this_server_is_refused() -> None:
    async def scenario() -> None:
        farm, session = Farm(WORKING), Session()
        session.push_user("Render it.")
        async with farm.tools() as source:
            model = Model([Reply(calls=[RENDER]), ANSWER])
            await run_tools(session, model, tools=source.toolset)
            (opened,) = session.open_calls
        async with farm.tools(tasks=False) as source:
            with pytest.raises(ValueError, match="speaks no tasks"):
                await source.poll(opened)
        async with farm.tools() as source:
            model = Model([Reply(calls=[RENDER]), ANSWER])
            elsewhere = {"task": "1", "address": "https://elsewhere.example"}
            for handle in (None, elsewhere, {"task": "1"}):
                with pytest.raises(ValueError, match="is no task of McpTools"):
                    await source.poll(replace(opened, handle=handle))

    anyio.run(scenario)


def test_a_stranger_says_no_interval_that_would_poll_all_the_time_LR32() -> None:
    read = tasks._seconds
    assert [read(value) for value in (0, -5, 1, 250, 1e12)] == [0.1, 0.1, 0.1, 0.25, 3600.0]
    assert [read(value) for value in (None, True, "7", float("nan"))] == [5.0] * 4
