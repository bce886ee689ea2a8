"""Results that come later, in a store (LR8 to LR15, LR20, LR21, LR36)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import anyio
import pytest
from durable_toolkit import Model, before_it_waits, count_claims

from lutumpy import (
    CallTicket,
    CommitError,
    ImagePart,
    Later,
    OpenCall,
    PlanError,
    RunNormally,
    Session,
    Skip,
    TextPart,
    ToolError,
    ToolMetadata,
    ToolResult,
    Toolset,
    hook_impl,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.durable.engines import lost
from lutumpy.durable.log import CallDelivered
from lutumpy.errors import StoreError
from lutumpy.execution import Dispatcher, ExecutionResult
from lutumpy.loops import run_tools
from lutumpy.models import Message, Promise, ResultBlock, ToolResults
from lutumpy.testing import Call, Reply

SCOPE = "s"


class Farm:
    """A render farm: what was submitted, and the tickets."""

    def __init__(self) -> None:
        self.tickets: list[CallTicket] = []
        self.until: timedelta | None = None
        self.on_submit: Callable[[CallTicket], Any] | None = None

    async def submit(self, ticket: CallTicket) -> None:
        self.tickets.append(ticket)
        if self.on_submit is not None:
            await self.on_submit(ticket)


@tool_fn(late=True, effect="once")
async def render(scene: str, *, ticket: Skip[CallTicket], farm: Skip[Farm]) -> str:
    """Render a scene."""
    await farm.submit(ticket)
    raise Later("soon", handle={"job": 7}, until=farm.until)


@tool_fn(late=True, effect="idempotent")
async def mirror(name: str, *, ticket: Skip[CallTicket], farm: Skip[Farm]) -> int:
    """Mirror something."""
    await farm.submit(ticket)
    raise Later("soon", until=farm.until)


@tool_fn(effect="read")
async def look(what: str) -> str:
    """Look at something."""
    return f"a {what}"


class Studio(Toolset):
    render = tool(render)
    mirror = tool(mirror)
    look = tool(look)


RENDER = Call("render", {"scene": "beach"}, id="c1")
MIRROR = Call("mirror", {"name": "x"}, id="c2")
LOOK = Call("look", {"what": "cat"}, id="c3")
ANSWER = Reply(text="There.")


def loop_of(store: Any, farm: Farm, script: list[Reply], **options: Any) -> DurableLoop[Any, Any]:
    dispatch = Dispatcher(Studio, context={"farm": farm})
    return DurableLoop(store, Model(script), tools=Studio, dispatch=dispatch, **options)


async def new_store(make: Callable[[], Any] = MemoryStore) -> Any:
    store = make()
    session = Session()
    session.push_user("Render it.")
    await store.create(SCOPE, session)
    return store


def results(session: Session) -> list[ResultBlock]:
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [result for item in items for result in item.results]


async def status_of(store: Any) -> str:
    (info,) = await store.scopes()
    status: str = info.status
    return status


async def late_texts(store: Any) -> list[str]:
    session = await store.session(SCOPE)
    items = session.transcript
    return [item.text for item in items if isinstance(item, Message) and item.late is not None]


@pytest.mark.slow
def test_wait_commits_the_round_when_its_results_have_come_LR9_LR10(make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        script = [Reply(calls=[RENDER, MIRROR, LOOK]), ANSWER]
        loop = loop_of(store, farm, script, events=True)
        waiting = await loop.run(SCOPE)
        assert isinstance(waiting, Waiting)
        assert (waiting.held, waiting.plan["digest"]) == ((), waiting.digest)
        assert [(c.call_id, c.tool, c.note) for c in waiting.open] == [
            ("c1", "render", "soon"),
            ("c2", "mirror", "soon"),
        ]
        assert waiting.open[0].handle == {"job": 7}
        assert await status_of(store) == "waiting"
        assert await loop.run(SCOPE) == waiting
        assert len(farm.tickets) == 2
        first, second = sorted(farm.tickets, key=lambda ticket: ticket.call_id)
        ticket = CallTicket.load(first.dump())
        assert ticket.late
        assert await loop.deliver(ticket, "video") is True
        assert await loop.deliver(ticket, "another") is False
        assert await status_of(store) == "open"
        again = await loop.run(SCOPE)
        assert isinstance(again, Waiting)
        assert [c.call_id for c in again.open] == ["c2"]
        assert await loop.deliver(second, 5) is True
        answered = await loop_of(store, farm, script, events=True).run(SCOPE)
        assert isinstance(answered, Answered)
        assert (answered.result.stopped_by, answered.result.open_calls) == ("answer", ())
        session = await store.session(SCOPE)
        told = [(r.call_id, r.status, r.content) for r in results(session)]
        assert told == [("c1", "ok", "video"), ("c2", "ok", "5"), ("c3", "ok", "a cat")]
        assert await late_texts(store) == []
        assert len(farm.tickets) == 2
        assert await store.inbox(SCOPE) == ()
        names = [e.event["event"] async for e in store.events(SCOPE, until="end")]
        assert names.count("CallPromised") == 2
        assert names.count("CallDelivered") == 2
        loaded = [e.load() async for e in store.events(SCOPE, until="end")]
        assert {type(e).__name__ for e in loaded} >= {"CallPromised", "CallDelivered", "RunWaits"}
        assert await loop.deliver(ticket, "late again") is False

    anyio.run(main)


def test_a_run_does_not_wait_for_a_result_that_came_in_its_last_moment_LR9_W1(make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        loop = loop_of(store, farm, [Reply(calls=[RENDER]), ANSWER], events=True)

        async def deliver() -> None:
            assert await loop.deliver(farm.tickets[0], "video")

        before_it_waits(store, deliver)
        assert isinstance(await loop.run(SCOPE), Answered)
        names = [e.event["event"] async for e in store.events(SCOPE, until="end")]
        assert "RunWaits" not in names
        assert (names.count("LoopEnded"), names.count("CallDelivered")) == (1, 1)

    anyio.run(main)


@pytest.mark.parametrize("what", ["stray", "withdrawn sibling", "farm reports as well"])
def test_a_run_ends_whatever_lies_in_the_inbox_that_its_round_has_no_use_for_LR9(
    what: str, make: Any
) -> None:
    """It looked at such a row again and again, and never came back."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        loop = loop_of(store, farm, [Reply(calls=[RENDER, MIRROR, LOOK]), ANSWER], events=True)

        async def fail_mirror(ticket: CallTicket) -> None:
            if ticket.call_id == "c2":
                raise ToolError("the mirror is broken")

        farm.on_submit = fail_mirror
        waiting = await loop.run(SCOPE)
        tickets = {ticket.call_id: ticket for ticket in farm.tickets}
        if what == "stray":
            assert await loop.deliver(replace(tickets["c1"], call_id="c9"), "video")
        elif what == "withdrawn sibling":
            assert await loop.withdraw(SCOPE, "c3", reason="no", by="ann")
        else:
            assert await loop.deliver(tickets["c2"], 5)
        assert await status_of(store) == "open"
        claims = count_claims(store, most=3)
        assert await loop.run(SCOPE) == waiting
        assert (claims, await status_of(store)) == ([1], "waiting")
        assert await loop.deliver(tickets["c1"], "video")
        assert isinstance(await loop.run(SCOPE), Answered)
        assert await store.inbox(SCOPE) == ()
        said = [r.content for r in results(await store.session(SCOPE))]
        assert said == ["video", "the mirror is broken", "a cat"]

    anyio.run(main)


def test_go_on_tells_each_result_when_it_comes_and_no_limit_begins_anew_LR11(
    make: Any,
) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        script = [Reply(calls=[RENDER, LOOK]), Reply(text="Soon."), Reply(calls=[LOOK]), ANSWER]
        options: dict[str, Any] = {"late": "go_on", "max_rounds": 2}
        answered = await loop_of(store, farm, script, **options).run(SCOPE)
        assert isinstance(answered, Answered)
        assert answered.result.stopped_by == "open"
        assert [call.call_id for call in answered.result.open_calls] == ["c1"]
        assert await status_of(store) == "done"
        again = await loop_of(store, farm, script, **options).run(SCOPE)
        assert isinstance(again, Answered)
        assert again.result.stopped_by == "open"
        loop = loop_of(store, farm, script, **options)
        assert await loop.deliver(farm.tickets[0], "video")
        assert await status_of(store) == "open"
        ended = await loop.run(SCOPE)
        assert isinstance(ended, Answered)
        # The first round counts on: after one more the limit is reached.
        assert (ended.result.stopped_by, ended.result.rounds) == ("round_limit", 2)
        assert await late_texts(store) == ["[Late result of call c1 of render]\nvideo"]
        (info,) = await store.scopes()
        assert info.task == 1

    anyio.run(main)


def test_with_nothing_but_open_calls_the_loop_ends_and_asks_nobody_LR6(make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        script = [Reply(calls=[RENDER]), ANSWER]
        loop = loop_of(store, farm, script, late="go_on")
        for _ in range(2):
            ended = await loop.run(SCOPE)
            assert isinstance(ended, Answered)
            assert ended.result.stopped_by == "open"
            assert ended.result.result is None or ended.result.text == ""
        assert await loop.withdraw(SCOPE, "c1", reason="too dear", by="ann") is True
        assert await loop.withdraw(SCOPE, "c1", reason="too dear", by="ann") is False
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        assert answered.result.stopped_by == "answer"
        assert await late_texts(store) == [
            "[Late result of call c1 of render]\nTool call rejected: too dear"
        ]

    anyio.run(main)


@pytest.mark.parametrize("output", [None, int], ids=["text", "value"])
def test_a_later_run_says_of_an_end_with_open_calls_what_the_first_one_did_LR6(
    output: Any,
) -> None:
    """It said `open` of an answer that was cut or refused, and of no answer that it was an empty
    one.
    """
    ends = {
        "open": [Reply(calls=[RENDER, LOOK]), Reply(text="7")],
        "length": [Reply(calls=[RENDER, LOOK]), Reply(text="hal", finish="length")],
        "refusal": [Reply(calls=[RENDER, LOOK]), Reply(text="", refusal="no")],
        "nothing to answer": [Reply(calls=[RENDER], text="Wait.")],
    }

    async def main() -> None:
        for end, script in ends.items():
            loop = loop_of(
                await new_store(), Farm(), script, late="go_on", output=output, value_retries=0
            )
            first, again = await loop.run(SCOPE), await loop.run(SCOPE)
            assert isinstance(first, Answered)
            assert isinstance(again, Answered)
            told = [
                (one.stopped_by, one.text, one.rounds, one.value, one.value_error, one.open_calls)
                for one in (first.result, again.result)
            ]
            assert told[0] == told[1]
            assert (first.result.result is None) == (again.result.result is None)
            if output is None:
                assert told[0][0] == ("open" if end == "nothing to answer" else end)
            assert [call.call_id for call in again.result.open_calls] == ["c1"]

    anyio.run(main)


@pytest.mark.parametrize(
    ("limit", "stopped_by"),
    [({"max_rounds": 1}, "round_limit"), ({"token_budget": 10}, "budget")],
    ids=["rounds", "tokens"],
)
def test_a_later_run_says_that_a_limit_ended_a_round_with_open_calls_P17(
    limit: Any, stopped_by: str, make: Any
) -> None:
    """It said `open`, as if a delivery were all that the model waits for."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        script = [Reply(calls=[RENDER], text="Wait.", usage=(10, 5)), ANSWER]
        loop = loop_of(store, farm, script, late="go_on", **limit)
        first, again = await loop.run(SCOPE), await loop.run(SCOPE)
        assert isinstance(first, Answered)
        assert isinstance(again, Answered)
        for one in (first.result, again.result):
            assert (one.stopped_by, one.rounds, one.text) == (stopped_by, 1, "Wait.")
            assert [call.call_id for call in one.open_calls] == ["c1"]
        assert await loop.deliver(farm.tickets[0], "video")
        ended = await loop.run(SCOPE)
        assert isinstance(ended, Answered)
        assert (ended.result.stopped_by, ended.result.open_calls) == (stopped_by, ())

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_a_delivery_may_come_before_its_round_is_recorded_LR9(late: str, make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        loop = loop_of(store, farm, [Reply(calls=[RENDER, LOOK]), ANSWER], late=late)

        async def at_once(ticket: CallTicket) -> None:
            assert await loop.deliver(ticket, "fast")

        farm.on_submit = at_once
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        assert answered.result.stopped_by == "answer"
        session = await store.session(SCOPE)
        assert session.open_calls == ()
        said = [r.content for r in results(session)]
        if late == "wait":
            assert said == ["fast", "a cat"]
        else:
            assert await late_texts(store) == ["[Late result of call c1 of render]\nfast"]

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_a_crash_while_a_late_tool_starts_leaves_the_call_open_LR8(late: str, make: Any) -> None:
    """A marker alone is no `maybe_executed`: whoever holds the ticket can still deliver."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        script = [Reply(calls=[RENDER, MIRROR, LOOK]), ANSWER, ANSWER]
        loop = loop_of(store, farm, script, late=late)

        async def die(ticket: CallTicket) -> None:
            raise KeyboardInterrupt

        farm.on_submit = die
        with pytest.raises(BaseException):  # noqa: B017  a group, or the interrupt itself
            await loop.run(SCOPE)
        once = [ticket for ticket in farm.tickets if ticket.effect == "once"]
        farm.on_submit = None
        ended = await loop.run(SCOPE)
        open_calls = ended.open if isinstance(ended, Waiting) else ended.result.open_calls  # type: ignore[union-attr]
        by_id = {call.call_id: call for call in open_calls}
        assert by_id.keys() == {"c1", "c2"}
        started = [ticket.call_id for ticket in farm.tickets]
        if once or "c1" not in started:
            assert by_id["c1"].note == "it may not have been started"
            assert started.count("c1") <= 1
        # An idempotent one is started again, with the same key.
        keys = {ticket.key for ticket in farm.tickets if ticket.call_id == "c2"}
        assert len(keys) == 1
        assert await store.unresolved(SCOPE) == []
        tickets = {ticket.call_id: ticket for ticket in farm.tickets}
        if "c1" in tickets:
            assert await loop.deliver(tickets["c1"], "video")
        else:  # its marker was written, and it never began
            assert await loop.withdraw(SCOPE, "c1", reason="it never began", by="ann")
        assert await loop.deliver(tickets["c2"], 5)
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        assert (await store.session(SCOPE)).open_calls == ()

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_until_is_applied_by_the_next_run_and_what_comes_then_has_happened_LR12(
    late: str, make: Any
) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        farm.until = timedelta(seconds=-1)
        script = [Reply(calls=[RENDER, MIRROR, LOOK]), *[ANSWER] * 9]
        loop = loop_of(store, farm, script, late=late, events=True)
        ended = await loop.run(SCOPE)
        assert isinstance(ended, Answered)
        if late == "go_on":
            ended = await loop.run(SCOPE)
            assert isinstance(ended, Answered)
        assert ended.result.stopped_by == "answer"
        session = await store.session(SCOPE)
        texts = [*await late_texts(store), *[str(r.content) for r in results(session)]]
        assert sum("did not come in time" in text for text in texts) == 2
        (unresolved,) = await store.unresolved(SCOPE)
        assert unresolved.metadata.id == "c1"  # the `once` one
        tickets = {ticket.call_id: ticket for ticket in farm.tickets}
        assert await loop.deliver(tickets["c1"], "video") is True
        await loop.run(SCOPE)
        assert await store.unresolved(SCOPE) == []
        await store.push(SCOPE, "And now?", idempotency_key="k")
        await loop.run(SCOPE)
        said = [i.text for i in (await store.session(SCOPE)).transcript if isinstance(i, Message)]
        assert any("c1 of render" in text and "did happen" in text for text in said)  # LR36

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_the_log_tells_a_result_that_came_from_one_that_did_not_LR12(late: str) -> None:
    """With `late="wait"` it said `delivered` of both."""

    async def main() -> None:
        store, farm = await new_store(), Farm()

        async def set_until(ticket: CallTicket) -> None:
            farm.until = timedelta(seconds=-1) if ticket.call_id == "c1" else None

        farm.on_submit = set_until
        script = [Reply(calls=[RENDER, LOOK, MIRROR]), ANSWER, ANSWER]
        loop = loop_of(store, farm, script, late=late, events=True)
        await loop.run(SCOPE)
        (ticket,) = [ticket for ticket in farm.tickets if ticket.call_id == "c2"]
        assert await loop.deliver(ticket, 5)
        assert isinstance(await loop.run(SCOPE), Answered)
        events = [e.load() async for e in store.events(SCOPE, until="end")]
        told = [(e.call_id, e.outcome, e.reason) for e in events if isinstance(e, CallDelivered)]
        assert sorted(told) == [("c1", "error", "expired"), ("c2", "ok", "delivered")]

    anyio.run(main)


C1 = ToolMetadata("c1", "render", '{"scene":"beach"}')
PICTURE = ImagePart(url="https://video.example/1.png")


@pytest.mark.parametrize("late", ["wait", "go_on"])
@pytest.mark.parametrize(
    ("came", "told"),
    [
        ("video", "did happen: it took effect. Its output: video"),
        (
            ToolResult(C1, (TextPart("at dawn"), PICTURE)),
            "did happen: it took effect. Its output:\nat dawn\n"
            "[image left out: https://video.example/1.png]",
        ),
        (ToolError("no credit left"), "failed. It said: no credit left"),
        (None, None),
        (ExecutionResult(C1, "?", "error", outcome="maybe_executed"), None),
    ],
    ids=["output", "parts", "failure", "withdrawn", "unknown"],
)
def test_what_comes_for_a_call_that_was_given_up_is_told_as_it_is_LR12_LR15_LR36(
    late: Any, came: Any, told: str | None, make: Any
) -> None:
    """Whatever came, the model was told that the call took effect, and not what it gave."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        farm.until = timedelta(seconds=-1)
        loop = loop_of(store, farm, [Reply(calls=[RENDER]), *[ANSWER] * 9], late=late)
        for _ in range(2):
            await loop.run(SCOPE)
        if came is None:
            assert await loop.withdraw(SCOPE, "c1", reason="too dear", by="ann")
        else:
            assert await loop.deliver(farm.tickets[0], came)
        before = await store.session(SCOPE)
        assert isinstance(await loop.run(SCOPE), Answered)
        # By itself that asks the model nothing.
        assert (await store.session(SCOPE)).dump() == before.dump()
        assert await status_of(store) == "done"
        unresolved = [call.metadata.id for call in await store.unresolved(SCOPE)]
        assert unresolved == (["c1"] if told is None else [])
        await store.push(SCOPE, "And now?", idempotency_key="k")
        await loop.run(SCOPE)
        session = await store.session(SCOPE)
        new = list(session.transcript)[len(before.transcript) :]
        said = [item for item in new if isinstance(item, Message)]
        notice = f"The call c1 of render, whose outcome was not known, {told}"
        expected = {"And now?"} if told is None else {"And now?", notice}
        assert {item.text for item in said} == expected
        parts = [part for item in said for part in item.parts]
        assert (PICTURE in parts) == ("image" in str(told))
        assert await store.inbox(SCOPE) == ()
        claim = await store.claim(SCOPE)
        assert [call.metadata.id for call in claim.unresolved] == unresolved

    anyio.run(main)


def test_hooks_on_results_see_what_comes_for_a_call_that_was_given_up_LR21() -> None:
    class Censor:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
            return replace(result, content="[removed]")

    async def main() -> None:
        store, farm = await new_store(), Farm()
        farm.until = timedelta(seconds=-1)
        hooks = Studio.hooks()
        hooks.register(Censor())
        loop = loop_of(store, farm, [Reply(calls=[RENDER]), *[ANSWER] * 3], hooks=hooks)
        await loop.run(SCOPE)
        await loop.deliver(farm.tickets[0], "a secret")
        await store.push(SCOPE, "And now?", idempotency_key="k")
        await loop.run(SCOPE)
        session = await store.session(SCOPE)
        said = [item.text for item in session.transcript if isinstance(item, Message)]
        # It is told before the next turn, though both came at once (LR36).
        assert any(text.endswith("Its output: [removed]") for text in said)
        assert "secret" not in str(session.dump())

    anyio.run(main)


def test_a_late_result_of_no_call_asks_the_model_nothing_LR9(make: Any) -> None:
    """Its row alone made a run ask, with nothing but a notice to answer."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        loop = loop_of(store, farm, [Reply(calls=[RENDER]), *[ANSWER] * 3])
        farm.until = timedelta(seconds=-1)
        await loop.run(SCOPE)
        await store.resolve(SCOPE, "c1", "happened", by="ann")
        stray = replace(farm.tickets[0], call_id="c9")
        before = await store.session(SCOPE)
        assert await loop.deliver(stray, "video")
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        assert (await store.session(SCOPE)).dump() == before.dump()
        # The stray is gone, and the notice waits for the user.
        assert [entry.kind for entry in await store.inbox(SCOPE)] == ["notice"]
        assert await status_of(store) == "done"

    anyio.run(main)


def test_a_call_is_given_up_once_nothing_else_of_its_round_is_waited_for_LR12(make: Any) -> None:
    """It was recorded as of unknown outcome before, and stayed that with the result it got."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()

        async def limit(ticket: CallTicket) -> None:
            farm.until = timedelta(seconds=-1) if ticket.call_id == "c1" else None

        farm.on_submit = limit
        script = [Reply(calls=[RENDER, replace(RENDER, arguments={"scene": "wood"}, id="c9")])]
        loop = loop_of(store, farm, [*script, *[ANSWER] * 3])
        waiting = await loop.run(SCOPE)
        assert isinstance(waiting, Waiting)
        assert [call.call_id for call in waiting.open] == ["c9"]
        assert await store.unresolved(SCOPE) == []
        tickets = {ticket.call_id: ticket for ticket in farm.tickets}
        for call_id in ("c1", "c9"):
            assert await loop.deliver(tickets[call_id], f"video {call_id}")
            ended = await loop.run(SCOPE)
        assert isinstance(ended, Answered)
        said = [(r.status, r.content) for r in results(await store.session(SCOPE))]
        assert said == [("ok", "video c1"), ("ok", "video c9")]
        assert await store.unresolved(SCOPE) == []

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_a_call_that_was_given_up_stays_that_though_the_run_came_to_no_commit_P2_LR12(
    late: Any, make: Any
) -> None:
    """Its result comes between the record and the commit: it resolves the call then."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()
        farm.until = timedelta(seconds=-1)
        loop = loop_of(store, farm, [Reply(calls=[RENDER]), *[ANSWER] * 5], late=late)
        commit, record = store.commit, store.record
        recorded: list[str] = []

        async def note(claim: Any, name: str, value: Any) -> Any:
            if name.startswith("call:"):
                recorded.append(name)
            return await record(claim, name, value)

        async def fail(*args: Any, **options: Any) -> Any:
            if len(recorded) == 2 and await store.unresolved(SCOPE):
                raise OSError("the store is away")
            return await commit(*args, **options)

        store.record, store.commit = note, fail
        if late == "go_on":  # it is given up by the run behind the one that promised it
            await loop.run(SCOPE)
        with pytest.raises(OSError, match="away"):
            await loop.run(SCOPE)
        store.commit = commit
        assert await loop.deliver(farm.tickets[0], "video")
        await loop.run(SCOPE)
        await store.push(SCOPE, "And now?", idempotency_key="k")
        await loop.run(SCOPE)
        session = await store.session(SCOPE)
        texts = [*await late_texts(store), *[str(r.content) for r in results(session)]]
        assert sum("did not come in time" in text for text in texts) == 1
        said = [item.text for item in session.transcript if isinstance(item, Message)]
        assert sum("did happen: it took effect. Its output: video" in text for text in said) == 1
        assert (session.open_calls, await store.unresolved(SCOPE)) == ((), [])
        assert await store.inbox(SCOPE) == ()

    anyio.run(main)


def test_an_equal_call_of_an_open_once_call_is_rejected_LR13(make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()
        again = Call("render", '{ "scene" : "beach" }', id="c7")
        twice = Call("render", {"scene": "beach"}, id="c8")
        script = [Reply(calls=[RENDER, twice, LOOK]), Reply(calls=[again]), ANSWER]
        executor_options: dict[str, Any] = {"late": "go_on"}
        loop = loop_of(store, farm, script, **executor_options)
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        told = {r.call_id: (r.status, str(r.content)) for r in results(await store.session(SCOPE))}
        assert told["c7"][0] == "rejected"
        assert "is still running" in told["c7"][1]
        assert len([t for t in farm.tickets if t.call_id == "c7"]) == 0

    anyio.run(main)


def test_an_equal_call_is_not_begun_beside_the_first_one_LR13(make: Any) -> None:
    """Both were begun where the first had its marker and had not promised yet."""

    async def main() -> None:
        store, farm = await new_store(make), Farm()

        async def take_a_while(ticket: CallTicket) -> None:
            await anyio.sleep(0.05)

        farm.on_submit = take_a_while
        twice = Call("render", '{ "scene" : "beach" }', id="c8")
        script = [Reply(calls=[RENDER, twice, LOOK]), ANSWER]
        waiting = await loop_of(store, farm, script).run(SCOPE)
        assert isinstance(waiting, Waiting)
        (ticket,) = farm.tickets
        assert [call.call_id for call in waiting.open] == [ticket.call_id]
        await loop_of(store, farm, script).deliver(ticket, "video")
        assert isinstance(await loop_of(store, farm, script).run(SCOPE), Answered)
        told = {r.call_id: (r.status, str(r.content)) for r in results(await store.session(SCOPE))}
        (other,) = {"c1", "c8"} - {ticket.call_id}
        assert told[ticket.call_id] == ("ok", "video")
        assert told[other][0] == "rejected"
        assert f"({ticket.call_id}) is still running" in told[other][1]

    anyio.run(main)


def test_an_equal_call_runs_behind_one_that_has_promised_nothing_LR13(make: Any) -> None:
    async def main() -> None:
        store, farm = await new_store(make), Farm()

        async def fail_slowly(ticket: CallTicket) -> None:
            await anyio.sleep(0.01)
            raise ToolError(f"no room for {ticket.call_id}")

        farm.on_submit = fail_slowly
        equal = [Call("render", {"scene": "beach"}, id=name) for name in ("c1", "c7", "c8")]
        answered = await loop_of(store, farm, [Reply(calls=equal), ANSWER]).run(SCOPE)
        assert isinstance(answered, Answered)
        told = {r.call_id: str(r.content) for r in results(await store.session(SCOPE))}
        assert told == {name: f"no room for {name}" for name in ("c1", "c7", "c8")}

    anyio.run(main)


@tool_fn(late=True, effect="once")
async def draw(
    scene: str, quality: str = "high", *, ticket: Skip[CallTicket], farm: Skip[Farm]
) -> str:
    """Draw a scene."""
    await farm.submit(ticket)
    raise Later("soon", until=farm.until)


@text_tool(late=True, effect="once")
async def sketch(scene: str, *, ticket: Skip[CallTicket], farm: Skip[Farm]) -> str:
    """Sketch a scene."""
    await farm.submit(ticket)
    raise Later("soon", until=farm.until)


class Drawers(Toolset):
    draw = tool(draw)
    sketch = tool(sketch)


def in_low_quality(call: Any) -> Any:
    return RunNormally(call.edited(quality="low").input)


@pytest.mark.parametrize(("late", "until"), [("wait", -1), ("go_on", -1), ("go_on", None)], ids=str)
@pytest.mark.parametrize("is_edited", [False, True])
def test_an_equal_call_is_rejected_however_it_is_spelled_P8_LR12_LR13(
    late: Any, until: int | None, is_edited: bool, make: Any
) -> None:
    """Of a call that was given up behind its round, the model's own spelling was kept: no call was
    equal to that.
    """
    beach = Call("draw", '{"scene": "beach", "quality": "high"}', id="c1")
    turned = Call("draw", '{"quality":"high","scene":"beach"}', id="c2")
    pairs = [(beach, turned), (beach, replace(beach, id="c2"))]
    if not is_edited:
        words = Call.of_text("sketch", "a beach", id="c1")
        pairs.append((words, replace(words, id="c2")))
        # As providers write it that know no free text.
        pairs.append((words, Call("sketch", {"input": "a beach"}, id="c2")))

    async def main() -> None:
        store = make()
        for index, (first, second) in enumerate(pairs):
            scope, session, farm = f"s{index}", Session(), Farm()
            farm.until = None if until is None else timedelta(seconds=until)
            session.push_user("Draw it.")
            await store.create(scope, session)
            # Nothing is left to answer where the call is open.
            between = [] if until is None else [ANSWER]
            script = [Reply(calls=[first]), *between, Reply(calls=[second]), *[ANSWER] * 3]
            loop = DurableLoop(
                store,
                Model(script),
                tools=Drawers,
                dispatch=Dispatcher(Drawers, context={"farm": farm}),
                hooks=in_low_quality if is_edited else None,
                late=late,
            )
            for _ in range(2):
                await loop.run(scope)
            unresolved = await store.unresolved(scope)
            assert [call.metadata.id for call in unresolved] == ([] if until is None else ["c1"])
            assert all(("low" in call.arguments) == is_edited for call in unresolved)
            await store.push(scope, "And now?", idempotency_key="k")
            await loop.run(scope)
            (*_, result) = results(await store.session(scope))
            assert (result.call_id, result.status) == ("c2", "rejected")
            assert "An equal call (c1)" in str(result.content)
            assert len(farm.tickets) == 1

    anyio.run(main)


def test_what_is_delivered_is_checked_as_it_arrives_LR2_LR14_LR21() -> None:
    async def main() -> None:
        store, farm = await new_store(), Farm()
        loop = loop_of(store, farm, [Reply(calls=[MIRROR]), ANSWER])
        waiting: Any = await loop.run(SCOPE)
        (ticket,) = farm.tickets
        with pytest.raises(CommitError, match="doesn't fit"):
            await loop.deliver(ticket, "five")
        with pytest.raises(CommitError, match="promised"):
            await loop.deliver(ticket, ToolResult(ticket.metadata, "x", "promised"))
        other = replace(ticket, call_id="c9")
        with pytest.raises(CommitError, match="of the call 'c9'"):
            await loop.deliver(ticket, ToolResult(other.metadata, "x"))
        # As `Session.deliver` checks the results that an open call gives (K3).
        (typed,) = waiting.open
        # One that another process loaded doesn't know the type.
        opened = OpenCall.of(replace(typed.promised, promise=Promise()))
        with pytest.raises(CommitError, match="doesn't fit: int was expected"):
            await loop.deliver(ticket, opened.complete("five"))
        for output in (5, opened.complete(5)):
            with pytest.raises(PlanError) as caught:
                await loop.deliver(replace(ticket, tool_digest="sha256:0"), output)
            assert caught.value.kind == "schema"
        with pytest.raises(StoreError):
            await loop.deliver(replace(ticket, scope="nobody"), 5)
        assert await store.inbox(SCOPE) == ()
        # A ticket that fits no call is kept until its round ends, then dropped.
        assert await loop.deliver(other, 7) is True
        assert await loop.deliver(ticket, ToolError("the disk is full")) is True
        answered = await loop.run(SCOPE)
        assert isinstance(answered, Answered)
        (result,) = results(await store.session(SCOPE))
        assert (result.status, result.content) == ("error", "the disk is full")
        assert await store.inbox(SCOPE) == ()

        class Bare:
            claim = None

        store_without: Any = MemoryStore()
        store_without.deliver = None
        with pytest.raises(TypeError, match="late results"):
            await loop_of(store_without, farm, [ANSWER]).deliver(ticket, 5)

    anyio.run(main)


def test_a_tool_that_changed_while_the_call_was_open_LR21() -> None:
    @tool_fn(name="render", late=True, effect="once")
    async def newer(scene: str, size: int = 1) -> str:
        """Render a scene."""
        return "x"

    class Newer(Toolset):
        render = tool(newer)

    async def main() -> None:
        for drift in ("refuse", "reject"):
            store, farm = await new_store(), Farm()
            script = [Reply(calls=[RENDER]), ANSWER]
            loop = loop_of(store, farm, script, late="go_on")
            await loop.run(SCOPE)
            await loop.deliver(farm.tickets[0], "video")
            options: dict[str, Any] = {"drift": drift, "late": "go_on"}
            changed = DurableLoop(store, Model(script), tools=Newer, **options)
            if drift == "refuse":
                with pytest.raises(PlanError) as caught:
                    await changed.run(SCOPE)
                assert caught.value.tools == ("render",)
                continue
            assert isinstance(await changed.run(SCOPE), Answered)
            (text,) = await late_texts(store)
            assert "has changed while the call was running" in text

    anyio.run(main)


@pytest.mark.parametrize("delivered", [True, False])
@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_a_tool_that_changed_while_its_round_waited_LR21(effect: Any, delivered: bool) -> None:
    """The round was open for ever, since nobody could commit a promise of another tool."""
    name = "render" if effect == "once" else "mirror"

    @tool_fn(name=name, late=True, effect=effect)
    async def newer(scene: str = "", name: str = "", size: int = 1) -> str:
        """Another one."""
        return "x"

    class Newer(Toolset):
        tool = tool(newer)

    async def main() -> None:
        store, farm = await new_store(), Farm()
        script = [Reply(calls=[RENDER if effect == "once" else MIRROR]), ANSWER]
        await loop_of(store, farm, script).run(SCOPE)
        if delivered:
            loop = loop_of(store, farm, script)
            await loop.deliver(farm.tickets[0], "video" if effect == "once" else 7)
        changed = DurableLoop(store, Model(script), tools=Newer, drift="reject")
        assert isinstance(await changed.run(SCOPE), Answered)
        (result,) = results(await store.session(SCOPE))
        assert "changed while this call was open" in str(result.content)
        # What came, or comes, says that a call of unknown outcome has happened.
        unresolved = [call.metadata.id for call in await store.unresolved(SCOPE)]
        assert unresolved == ([] if delivered or effect != "once" else ["c1"])

    anyio.run(main)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_hooks_on_results_see_the_late_result_and_not_the_placeholder_LR21(late: str) -> None:
    async def main() -> None:
        store, farm = await new_store(), Farm()
        seen: list[str] = []

        class Review:
            @hook_impl
            def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
                if metadata.name == "render":
                    seen.append(str(result.content))
                return replace(result, content=f"{result.content}, reviewed")

        hooks = Studio.hooks().with_hooks(Review())
        script = [Reply(calls=[RENDER, LOOK]), ANSWER, ANSWER]
        loop = loop_of(store, farm, script, late=late, hooks=hooks)
        await loop.run(SCOPE)
        assert seen == []
        await loop.deliver(farm.tickets[0], "video")
        await loop.run(SCOPE)
        assert seen == ["video"]
        session = await store.session(SCOPE)
        told = [*await late_texts(store), *[str(r.content) for r in results(session)]]
        assert any(text.endswith("video, reviewed") for text in told)

    anyio.run(main)


def test_a_fork_has_the_call_open_and_the_ticket_delivers_to_its_scope_only_LR17() -> None:
    async def main() -> None:
        store, farm = await new_store(), Farm()
        loop = loop_of(store, farm, [Reply(calls=[RENDER, LOOK]), ANSWER, ANSWER], late="go_on")
        await loop.run(SCOPE)
        await store.fork(SCOPE, at=(1, 1), to="t")
        await loop.deliver(farm.tickets[0], "video")
        assert len(await store.inbox(SCOPE)) == 1
        assert await store.inbox("t") == ()
        assert [c.call_id for c in (await store.session("t")).open_calls] == ["c1"]

    anyio.run(main)


def test_run_tools_goes_on_and_says_what_is_open() -> None:
    """LR1, LR6: `stopped_by="open"`; deliver, and call it again."""

    async def main() -> None:
        farm = Farm()
        session = Session()
        session.push_user("Render it.")
        script = [Reply(calls=[RENDER, LOOK]), Reply(text="Soon."), Reply(text="Done.")]
        dispatch = Dispatcher(Studio, context={"farm": farm})
        llm = Model(script)
        first = await run_tools(session, llm, tools=Studio, dispatch=dispatch)
        assert (first.stopped_by, first.text) == ("open", "Soon.")
        assert [call.call_id for call in first.open_calls] == ["c1"]
        session.deliver([first.open_calls[0].complete("video")])
        second = await run_tools(session, llm, tools=Studio, dispatch=dispatch)
        assert (second.stopped_by, second.text, second.open_calls) == ("answer", "Done.", ())
        alone = Session()
        alone.push_user("Render it.")
        llm = Model([Reply(calls=[RENDER]), Reply(text="Done.")])
        for _ in range(2):
            waits = await run_tools(alone, llm, tools=Studio, dispatch=dispatch, max_repeats=1)
            assert (waits.stopped_by, llm.requests) == ("open", 1)
        alone.deliver([alone.open_calls[0].complete("video")])
        ended = await run_tools(alone, llm, tools=Studio, dispatch=dispatch)
        assert ended.stopped_by == "answer"

    anyio.run(main)


def test_an_engine_that_lost_a_late_call_leaves_it_open_LR8() -> None:
    ticket = CallTicket("s", "c1", "render", "{}", {}, "k", "once", 1.0, 0, "d", "", 0)
    assert lost(ticket, "The engine knows nothing of it.").outcome == "maybe_executed"
    left = lost(replace(ticket, late=True), "The engine knows nothing of it.")
    assert (left.outcome, left.status) == ("promised", "promised")


def test_late_is_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="late="):
        loop_of(MemoryStore(), Farm(), [ANSWER], late="later")
    assert datetime.now(timezone.utc).tzinfo is not None
