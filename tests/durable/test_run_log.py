"""The log of a run: what ends it, what a person must see, what front ends make of it (W1 to W4)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SCOPE,
    Form,
    Ledger,
    Model,
    asked,
    before_it_waits,
    call,
    calls,
    hold_charges,
    make_loop,
    new_store,
)

from lutumpy import Session
from lutumpy.durable import (
    Answered,
    Claim,
    MemoryStore,
    StoredEvent,
    Stuck,
    UnknownEvent,
    Waiting,
    log,
)
from lutumpy.models import FilePart, ImagePart, Message, TextPart
from lutumpy.testing import Reply

ENDINGS = {"LoopEnded", "RunWaits", "RunFailed", "RunStopped"}


async def whole_log(store: Any, after: int = 0) -> list[StoredEvent]:
    """The events up to the end of the last run."""
    with anyio.fail_after(10):
        return [event async for event in store.events(SCOPE, after=after, until="end")]


def names(events: list[StoredEvent]) -> list[str]:
    return [str(event.event["event"]) for event in events]


def loaded(events: list[StoredEvent], kind: type[Any]) -> list[Any]:
    found = [event.load() for event in events]
    return [event for event in found if isinstance(event, kind)]


class Refuses(Model):
    """Its provider is down, with a key in the text of the error."""

    def _next(self, transcript: Any) -> Any:
        raise ConnectionError("no route to host, key sk-canary")


# --- W1: every run ends its log -----------------------------------------------------------------


def test_a_run_that_fails_ends_its_log_and_says_no_text_of_the_error_W1(form: Form) -> None:
    store = form.await_(new_store)
    with pytest.raises(ConnectionError):
        form.run(make_loop(store, Refuses([]), Ledger(), events=True))
    events = form.await_(whole_log, store)
    assert events[-1].load() == log.RunFailed("ConnectionError", retryable=False)
    assert "canary" not in json.dumps([event.event for event in events])
    # The next run begins behind it, and ends it in another way.
    form.run(make_loop(store, Model([ANSWER]), Ledger(), events=True))
    later = form.await_(whole_log, store, events[-1].seq)
    assert [name for name in names(later) if name in ENDINGS] == ["LoopEnded"]


def test_a_run_whose_last_event_could_not_be_written_ends_its_log_W1(form: Form) -> None:
    store = form.await_(new_store)
    add_events = store.add_events

    async def away(claim: Claim, events: Any, **options: Any) -> None:
        if events[-1]["event"] == "LoopEnded":
            raise OSError
        await add_events(claim, events, **options)

    store.add_events = away
    with pytest.raises(OSError):
        form.run(make_loop(store, Model([ANSWER]), Ledger(), events=True))
    assert form.await_(whole_log, store)[-1].load() == log.RunFailed("OSError", retryable=False)


def test_errors_that_may_pass_are_said_to_be_retryable_W1(form: Form) -> None:
    class Busy(Exception):
        retryable = True

    class Overloaded(Model):
        """Says that the same may succeed later."""

        def _next(self, transcript: Any) -> Any:
            raise Busy

    store = form.await_(new_store)
    with pytest.raises(Busy):
        form.run(make_loop(store, Overloaded([]), Ledger(), events=True))
    assert form.await_(whole_log, store)[-1].load() == log.RunFailed("Busy", retryable=True)


async def test_a_run_that_is_cancelled_ends_its_log_W1() -> None:
    store, ledger = await new_store(), Ledger()
    with anyio.move_on_after(5) as scope:

        async def cancel() -> None:
            scope.cancel()
            await anyio.sleep(1)

        ledger.during["look"] = cancel
        await make_loop(store, Model([calls(LOOK), ANSWER]), ledger, events=True).run(SCOPE)
    assert scope.cancelled_caught
    events = await whole_log(store)
    assert events[-1].load() == log.RunStopped("program")


def test_a_run_that_finds_everything_done_says_so_if_nobody_did_W1(form: Form) -> None:
    """The process was killed between the commit of the answer and its last event."""
    store = form.await_(new_store)
    loop = make_loop(store, Model([ANSWER]), Ledger(), events=True)
    kept, add_events = [], store.add_events

    async def dies(claim: Any, events: Any, **options: Any) -> None:
        if any(event["event"] == "LoopEnded" for event in events):
            kept.append(1)
            raise KeyboardInterrupt
        if not kept:
            await add_events(claim, events, **options)

    store.add_events = dies
    with pytest.raises(KeyboardInterrupt):
        form.run(loop)
    store.add_events = add_events
    for _ in range(2):
        form.run(loop)
    told = names(form.await_(whole_log, store))
    assert told[-1] == "LoopEnded"
    assert told.count("LoopEnded") == 1


# --- W2: what a person must see -----------------------------------------------------------------


@pytest.mark.slow
async def test_a_held_call_says_what_a_person_must_see_W2(make: Callable[[], Any]) -> None:
    store, ledger = make(), Ledger()
    await store.create(SCOPE, asked())
    script = [calls(LOOK, call("charge", "p1", amount=900)), ANSWER]
    loop = make_loop(store, Model(script), ledger, events=True, hooks=hold_charges)
    waiting = await loop.run(SCOPE)
    assert isinstance(waiting, Waiting)
    events = await whole_log(store)
    (held,) = loaded(events, log.CallHeld)
    assert (held.call.input, held.call.effect) == ({"amount": 900, "memo": ""}, "once")
    assert (held.reason, held.digest) == ("money", waiting.digest)
    assert held.approval_id == f"{waiting.digest}:p1"
    assert held.schema["properties"]["amount"]["type"] == "integer"
    (planned,) = loaded(events, log.RoundPlanned)
    assert [each.call_id for each in planned.held] == ["p1"]
    assert [each.call_id for each in planned.pending] == ["l1"]
    assert events[-1].load() == log.RunWaits(waiting.digest, ("p1",))

    # Another run that still waits ends its log too, and says the call once.
    await loop.run(SCOPE)
    again = await whole_log(store, events[-1].seq)
    assert names(again) == ["RunWaits"]

    # W3: what is shown is what ran.
    decision = {"decision": "run", "input": {"amount": 90}}
    assert await loop.decide(SCOPE, waiting.digest, {"p1": decision}, by="ann")
    assert not await loop.decide(SCOPE, waiting.digest, {"p1": {"decision": "run"}}, by="bob")
    await loop.run(SCOPE)
    later = await whole_log(store, again[-1].seq)
    assert names(later)[0] == "CallDecided"
    (decided,) = loaded(later, log.CallDecided)
    assert (decided.decision, decided.by) == ("edited", "ann")
    assert decided.approval_id == held.approval_id
    assert (decided.call.input, decided.call.edited) == ({"amount": 90}, True)
    (planned,) = loaded(later, log.RoundPlanned)
    pay = planned.pending[1]
    assert (pay.input, pay.edited) == ({"amount": 90, "memo": ""}, True)
    assert json.loads(pay.arguments) == {"amount": 900}
    (executed,) = loaded(later, log.RoundExecuted)
    shown = executed.results[1]
    assert (shown.call, shown.status, shown.content) == (pay, "ok", "charged 90")
    assert ledger.done == ["look cat", "charge 90"]
    assert "Restarted" not in names(later)
    assert names(later).count("Completed") == 1  # of the next round: the first one has its own


async def test_what_waits_is_written_with_the_status_W2(make: Callable[[], Any]) -> None:
    """Also where the process is killed right then: whoever sees the status finds the calls."""
    store = make()
    await store.create(SCOPE, asked())
    loop = make_loop(store, Model([calls(CHARGE)]), Ledger(), events=True, hooks=hold_charges)
    released: list[Any] = []

    async def killed(claim: Any, *, status: Any = None) -> None:
        released.append(status)

    store.release = killed
    waiting: Any = await loop.run(SCOPE)
    assert released == ["waiting"]
    (info,) = await store.scopes()
    assert info.status == "waiting"
    (held,) = await store.held()
    assert held.digest == waiting.digest


@pytest.mark.parametrize("is_told", [False, True])
async def test_a_run_does_not_wait_for_what_was_decided_in_its_last_moment_W1_W2(
    make: Callable[[], Any], is_told: bool
) -> None:
    store, ledger = make(), Ledger()
    await store.create(SCOPE, asked())
    script = [calls(CHARGE), ANSWER]
    loop = make_loop(store, Model(script), ledger, events=True, hooks=hold_charges)
    if is_told:  # a follower of another process looks once more, as the person decides
        await loop.run(SCOPE)
    before = await store.last_event(SCOPE)

    async def decide() -> None:
        (held,) = await store.held()
        assert await loop.decide(SCOPE, held.digest, {"p1": {"decision": "run"}}, by="ann")

    before_it_waits(store, decide)
    release, released = store.release, []

    async def kept(claim: Claim, *, status: Any = None) -> None:
        released.append(status)
        await release(claim, status=status)

    store.release = kept
    await loop.run(SCOPE)
    assert released == ["open", "done"]
    told = names(await whole_log(store, before))
    assert [name for name in told if name in ENDINGS] == ["LoopEnded"]
    assert told.count("CallDecided") == is_told  # nobody was asked of it otherwise
    assert "CallHeld" not in told
    assert ledger.done == ["charge 5"]


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("events", [False, True])
async def test_a_run_that_is_killed_as_it_ends_leaves_nothing_waiting_that_was_decided(
    make: Callable[[], Any], events: bool
) -> None:
    """A worker that watches the store finds the conversation open, and goes on with it."""
    store, ledger = make(), Ledger()
    await store.create(SCOPE, asked())
    script = Model([calls(CHARGE), ANSWER])
    loop = make_loop(store, script, ledger, events=events, hooks=hold_charges)
    release = store.release

    async def released_too_late(claim: Claim, *, status: Any = None) -> None:
        if status == "waiting":
            (held,) = await store.held()
            assert await loop.decide(SCOPE, held.digest, {"p1": {"decision": "run"}}, by="ann")
            await release(claim, status=status)
            raise Killed
        if status == "done" and len(await store.inbox(SCOPE)) == 0:
            await store.push(SCOPE, "And now?", idempotency_key="1")
            await release(claim, status=status)
            raise Killed
        await release(claim, status=status)

    store.release = released_too_late
    for _ in range(2):  # it waits for ann; it has answered
        with pytest.raises(Killed):
            await loop.run(SCOPE)
        assert (await store.scopes())[0].status == "open"
    assert ledger.done == ["charge 5"]


async def test_a_message_that_came_before_the_answer_outlives_the_run_that_commits_it(
    make: Callable[[], Any],
) -> None:
    """The run is killed behind that commit, before it gives the conversation up."""
    store, ledger = make(), Ledger()
    await store.create(SCOPE, asked())
    loop = make_loop(store, Model([ANSWER, ANSWER]), ledger)
    commit, release = store.commit, store.release

    async def committed_behind_a_message(*args: Any, **options: Any) -> Any:
        if len(await store.inbox(SCOPE)) == 0:
            await store.push(SCOPE, "And now?", idempotency_key="1")
        return await commit(*args, **options)

    async def killed(claim: Claim, *, status: Any = None) -> None:
        raise Killed

    store.commit, store.release = committed_behind_a_message, killed
    with pytest.raises(Killed):
        await loop.run(SCOPE)
    store.commit, store.release = commit, release
    assert await store.break_lease(SCOPE, by="its end")
    assert await store.next() == SCOPE
    answered = await loop.run(SCOPE)
    assert isinstance(answered, Answered)
    assert await store.inbox(SCOPE) == ()
    assert (await store.scopes())[0].status == "done"


async def test_decisions_are_told_where_somebody_follows_only_W2(make: Callable[[], Any]) -> None:
    store = make()
    await store.create(SCOPE, asked())
    loop = make_loop(store, Model([calls(CHARGE), ANSWER]), Ledger(), hooks=hold_charges)
    waiting: Any = await loop.run(SCOPE)
    await loop.decide(SCOPE, waiting.digest, {"p1": {"decision": "reject"}}, by="ann")
    assert await store.last_event(SCOPE) == 0


# --- tasks, rounds, messages --------------------------------------------------------------------


async def test_tasks_and_rounds_mean_one_thing(make: Callable[[], Any]) -> None:
    store = make()
    await store.create(SCOPE, Session())
    await store.push(SCOPE, "first", idempotency_key="m1")
    more = {"push": True}

    async def push() -> None:
        if more.pop("push", None):
            await store.push(SCOPE, "second", idempotency_key="m2")

    ledger = Ledger()
    script = [calls(LOOK), calls(LOOK), calls(LOOK), ANSWER]
    loop = make_loop(store, Model(script), ledger, events=True)
    ledger.during["look"] = push  # while round 1 runs: its commit begins task 2
    await loop.run(SCOPE)
    events = await whole_log(store)
    steps = [
        (event.task, event.round, event.event["event"], event.event.get("round"))
        for event in events
        if event.event["event"] in ("RequestStarted", "RoundExecuted", "RoundCommitted")
    ]
    assert steps == [
        (1, 1, "RequestStarted", 1),
        (1, 1, "RoundExecuted", 1),
        (1, 1, "RoundCommitted", 1),
        (2, 1, "RequestStarted", 1),
        (2, 1, "RoundExecuted", 1),
        (2, 1, "RoundCommitted", 1),
        (2, 2, "RequestStarted", 2),
        (2, 2, "RoundExecuted", 2),
        (2, 2, "RoundCommitted", 2),
        (2, 3, "RequestStarted", 3),
    ]
    taken = [
        (event.task, event.round, event.load()) for event in events if "messages" in event.event
    ]
    assert taken == [
        (1, 1, log.MessagesTaken((log.ShownMessage("m1", "first"),))),
        (2, 1, log.MessagesTaken((log.ShownMessage("m2", "second"),))),
    ]
    (ended,) = loaded(events, log.LoopEnded)
    assert (ended.rounds, ended.text, ended.stopped_by) == (2, "It is done.", "answer")
    assert events == sorted(events, key=lambda event: event.at)


def test_messages_that_a_conversation_came_with_are_told_once(form: Form) -> None:
    session = Session()
    parts = (TextPart("look"), FilePart(b"%PDF", "application/pdf", filename="a.pdf"))
    session.transcript.append(Message("user", (*parts, ImagePart(url="https://x.example/i.png"))))
    store = form.await_(new_store, session)
    with pytest.raises(ConnectionError):
        form.run(make_loop(store, Refuses([]), Ledger(), events=True))
    form.run(make_loop(store, Model([ANSWER]), Ledger(), events=True))
    events = form.await_(whole_log, store)
    (taken,) = loaded(events, log.MessagesTaken)
    assert taken.messages == (log.ShownMessage("", "look", ("a.pdf", "image")),)


def test_the_log_holds_nothing_of_the_providers(form: Form, api: str) -> None:
    store = form.await_(new_store)
    form.run(make_loop(store, Model([calls(LOOK), ANSWER], api), Ledger(), events=True))
    events = form.await_(whole_log, store)
    assert "native" not in json.dumps([event.event for event in events])
    first, last = loaded(events, log.Completed)
    assert [block["block"] for block in first.blocks] == ["call"]
    assert last.blocks == ({"block": "text", "text": "It is done."},)
    assert names(events).index("Completed") < names(events).index("RoundDecoded")


@pytest.mark.pure
@pytest.mark.slow
def test_long_results_are_cut_and_say_so(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    long = call("look", "l1", word="é" * 20_000)
    form.run(make_loop(store, Model([calls(long), ANSWER]), ledger, events=True))
    (executed,) = loaded(form.await_(whole_log, store), log.RoundExecuted)
    (result,) = executed.results
    assert result.cut
    assert 16_000 < len(str(result.content).encode()) <= 16_384


def test_events_of_other_releases_are_loaded_as_far_as_they_go() -> None:
    found = log.load_event({"event": "Teleported", "to": 3})
    assert found == UnknownEvent("Teleported", {"to": 3})
    assert log.load_event({"event": "RunFailed"}) == UnknownEvent("RunFailed", {})
    more = log.load_event({"event": "RunStopped", "by": "ann", "why": "late"})
    assert more == log.RunStopped("ann")
    assert log.load_event({"event": "TextDelta", "text": "a", "delta": True}) == log.Delta(
        "TextDelta", {"text": "a"}
    )
    assert log.load_event({"event": "RoundPlanned", "round": 1, "pending": 3}) == UnknownEvent(
        "RoundPlanned", {"round": 1, "pending": 3}
    )


# --- followers ----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_follower_until_the_end_goes_on_while_somebody_goes_on(
    make: Callable[[], Any],
) -> None:
    store = make()
    await store.create(SCOPE, asked())
    loop = make_loop(store, Model([ANSWER, ANSWER]), Ledger(), events=True)
    await loop.run(SCOPE)
    last = await store.last_event(SCOPE)
    assert names(await whole_log(store))[-1] == "LoopEnded"
    assert await whole_log(store, last) == []
    found: list[StoredEvent] = []

    async def look() -> None:
        found.extend(await whole_log(store, last))

    # A message waits, then a run has the claim: neither is the end.
    await store.push(SCOPE, "more", idempotency_key="m2")
    async with anyio.create_task_group() as group:
        group.start_soon(look)
        await anyio.sleep(0.25)
        claim = await store.claim(SCOPE)
        assert isinstance(claim, Claim)
        await anyio.sleep(0.25)
        assert found == []
        await store.release(claim)
        await loop.run(SCOPE)
    assert names(found)[0] == "MessagesTaken"
    assert names(found)[-1] == "LoopEnded"
    assert {event.task for event in found} == {2}


def show(events: list[StoredEvent], *, completes: bool = True) -> list[Any]:
    """A front end: what it shows after these events, by task and round."""
    shown: dict[tuple[int, int], dict[str, Any]] = {}
    for stored in events:
        step = shown.setdefault((stored.task, stored.round), {})
        match stored.load():
            case log.Delta("TextDelta", values):
                step["text"] = step.get("text", "") + str(values["text"])
            case log.Restarted() if "whole" not in step:
                step.pop("text", None)
            case log.Completed(blocks) if completes:
                texts = [str(block["text"]) for block in blocks if block["block"] == "text"]
                step["whole"], step["text"] = True, "".join(texts)
            case log.RoundExecuted(results=results):
                step["results"] = [(each.call.input, each.content) for each in results]
            case _:
                pass
    return [(place, step.get("text"), step.get("results")) for place, step in shown.items()]


class Breaking(MemoryStore):
    """Loses its connection when this many events were seen, in the first two runs."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after
        self.seen: list[StoredEvent] = []

    async def add_events(self, claim: Claim, events: Any, *, drop_deltas: bool = False) -> None:
        await super().add_events(claim, events, drop_deltas=drop_deltas)
        last = self.seen[-1].seq if self.seen else 0
        there = list(self._conversations[SCOPE].events)  # without waiting for more
        self.seen += [event for event in there if event.seq > last]
        if len(self.seen) > self.after and claim.fence < 3:
            raise ConnectionError


def test_followers_that_look_at_any_moment_end_equal_W4(form: Form) -> None:
    """Whichever deltas they missed. The control doesn't know `Completed`, and differs."""
    said = "A long answer that comes in many pieces, of which some are seen and some are not."
    script = [calls(LOOK), Reply(text=said, usage=(1, 1))]
    chance = random.Random(4)
    controls: list[bool] = []
    for after in range(0, 18, 3):
        store = Breaking(after)
        form.await_(store.create, SCOPE, asked())
        for _ in range(4):
            with suppress(ConnectionError):
                form.run(make_loop(store, Model(script), Ledger(), events=True))
        final = show(form.await_(whole_log, store))
        assert final[-1][1] == said
        assert show(store.seen) == final  # everything that was ever there
        for _ in range(10):
            some = [
                event
                for event in store.seen
                if not event.event.get("delta") or chance.random() < 0.5
            ]
            assert show(some) == final
            controls.append(show(some, completes=False) == final)
    assert not all(controls)


def test_the_marker_of_a_stream_is_not_a_restart(form: Form) -> None:
    """`Restarted` comes after a restart only: not in a run that waits, and not in its next."""
    store = form.await_(new_store)
    loop = make_loop(
        store, Model([calls(CHARGE), ANSWER]), Ledger(), events=True, hooks=hold_charges
    )
    waiting = [form.run(loop) for _ in range(3)][-1]
    form.await_(loop.decide, SCOPE, waiting.digest, {"p1": {"decision": "run"}}, by="ann")
    form.run(loop)
    assert "Restarted" not in names(form.await_(whole_log, store))


async def test_a_conversation_that_is_stuck_tells_its_followers_once_W1(
    make: Callable[[], Any],
) -> None:
    """Its processes were killed, and said nothing; nobody goes on."""
    store = make()
    await store.create(SCOPE, asked())
    for _ in range(2):
        claim = await store.claim(SCOPE, lease=0.01)
        assert isinstance(claim, Claim)
        await anyio.sleep(0.03)
    loop = make_loop(store, Model([]), Ledger(), events=True, max_attempts=2)
    for _ in range(2):
        assert isinstance(await loop.run(SCOPE), Stuck)
    events = await whole_log(store)
    assert [event.load() for event in events] == [log.RunFailed("Stuck")]
