"""What a run tells of itself, stored and followed (rule P20)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SCOPE,
    Crash,
    CrashingStore,
    Form,
    Ledger,
    Model,
    call,
    calls,
    end_lease,
    hold_charges,
    make_loop,
    new_store,
)

from lutumpy import Complete, Reject, RunNormally, ToolDecision
from lutumpy.durable import Answered, MemoryStore, StoredEvent
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Reply

SAID = "A long answer that comes in many pieces."
SCRIPT = [calls(LOOK, CHARGE), Reply(text=SAID, usage=(10, 5))]


async def stored(store: MemoryStore, after: int = 0) -> list[StoredEvent]:
    """The events that are there."""
    found: list[StoredEvent] = []
    with anyio.move_on_after(0.05):
        async for event in store.events(SCOPE, after=after):
            found.append(event)  # noqa: PERF401
    return found


def names(events: list[StoredEvent]) -> list[str]:
    return [str(event.event["event"]) for event in events]


STEPS = [
    "MessagesTaken",
    "RequestStarted",
    "Completed",
    "RoundPlanned",
    "RoundExecuted",
    "RoundCommitted",
    "RequestStarted",
    "Completed",
    "LoopEnded",
]


def test_steps_and_whole_answers_stay_and_deltas_do_not_P20(form: Form, api: str) -> None:
    store = form.await_(new_store)
    assert isinstance(
        form.run(make_loop(store, Model(SCRIPT, api), Ledger(), events=True)), Answered
    )
    events = form.await_(stored, store)
    told = [name for name in names(events) if name != "RoundDecoded"]
    assert told == STEPS
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert not any(event.event.get("delta") for event in events)
    ended = events[-1].event["result"]
    assert isinstance(ended, dict)
    assert (ended["text"], ended["stopped_by"]) == (SAID, "answer")
    assert form.await_(stored, store, events[-2].seq) == [events[-1]]


def test_deltas_are_there_until_their_answer_is_recorded(form: Form) -> None:
    store = form.await_(new_store)
    crashing = CrashingStore(store, 0, after=False)

    class Slow(Model):
        """Its process dies in the middle of the answer."""

        def open_stream(self, transcript: Any, offering: Any, options: Any) -> Any:
            crashing.at = len(crashing.writes) + 1
            crashing.after = True
            return super().open_stream(transcript, offering, options)

    with pytest.raises(Crash):
        form.await_(make_loop(crashing, Slow(SCRIPT), Ledger(), events=True).run, SCOPE)
    seen = form.await_(stored, store)
    assert seen[-1].event["delta"] is True

    # The next attempt: forget what you saw, then the whole answer.
    end_lease(store)
    form.run(make_loop(store, Model(SCRIPT), Ledger(), events=True))
    later = form.await_(stored, store, seen[-1].seq)
    told = names(later)
    assert told.index("Restarted") < told.index("Completed")
    restarted = next(event for event in later if event.event["event"] == "Restarted")
    assert restarted.event == {"event": "Restarted", "round": 1, "attempt": 2}
    assert later[0].attempt == 2


def test_an_answer_that_was_recorded_and_not_told_is_told_by_the_next_run(form: Form) -> None:
    store = form.await_(new_store)
    waiting_for: list[int] = []

    class Dies(CrashingStore):
        """Dies right after the plan was recorded."""

        async def _write(self, name: str, method: Any, *args: Any, **options: Any) -> Any:
            returned = await super()._write(name, method, *args, **options)
            if name == "record" and args[1] == "plan":
                waiting_for.append(1)
                self.dead = True
                raise Crash(name)
            return returned

    dying = Dies(store, 0, after=False)
    with pytest.raises(Crash):
        form.run(make_loop(dying, Model(SCRIPT), Ledger(), events=True))
    assert "Completed" not in names(form.await_(stored, store))
    end_lease(store)
    form.run(make_loop(store, Model(SCRIPT), Ledger(), events=True))
    told = [name for name in names(form.await_(stored, store)) if name != "RoundDecoded"]
    assert told[:4] == ["MessagesTaken", "RequestStarted", "Restarted", "Completed"]


def test_a_round_that_waits_tells_its_answer_once(form: Form) -> None:
    store, llm = form.await_(new_store), Model(SCRIPT)
    loop = make_loop(store, llm, Ledger(), events=True, hooks=hold_charges)
    waiting = form.run(loop)
    form.await_(loop.decide, SCOPE, waiting.digest, {"p1": {"decision": "run"}}, by="ann")
    form.run(loop)
    told = names(form.await_(stored, store))
    assert (told.count("RequestStarted"), told.count("Completed")) == (2, 2)
    assert "Restarted" not in told
    assert told[-1] == "LoopEnded"


def test_a_model_that_cannot_stream_tells_whole_answers(form: Form) -> None:
    class Whole:
        """A model without streams."""

        def __init__(self) -> None:
            self._model = Model(SCRIPT)
            self.respond, self.respond_sync = self._model.respond, self._model.respond_sync
            self.api = self._model.api

    store = form.await_(new_store)
    form.run(make_loop(store, Whole(), Ledger(), events=True))
    told = [name for name in names(form.await_(stored, store)) if name != "RoundDecoded"]
    assert told == STEPS


def test_events_show_what_was_decided(form: Form) -> None:
    def decide(call: BaseToolCall) -> ToolDecision:
        word = call.arguments.get("word")
        decided: dict[Any, ToolDecision] = {"a": Complete("known"), "b": Reject("no")}
        return decided.get(word, RunNormally())

    words = [call("look", f"l{word}", word=word) for word in "abc"]
    store = form.await_(new_store)
    script = [calls(*words, call("nope", "n1")), ANSWER]
    seen: list[str] = []

    async def tell(event: Any) -> None:
        seen.append(type(event).__name__)

    loop = make_loop(store, Model(script), Ledger(), events=True, hooks=decide, on_progress=tell)
    form.run(loop)
    events = {str(event.event["event"]): event.event for event in form.await_(stored, store)}
    planned: Any = events["RoundPlanned"]
    assert [each["call"]["call_id"] for each in planned["handled"]] == ["la"]
    assert planned["handled"][0]["content"] == "known"
    assert planned["rejected"][0]["reason"] == "no"
    assert [each["call_id"] for each in planned["pending"]] == ["lc"]
    decoded: Any = events["RoundDecoded"]
    assert decoded["issues"][0]["reason"] == "unknown_tool"
    executed: Any = events["RoundExecuted"]
    assert executed["results"][0]["status"] == "ok"
    assert executed["results"][0]["content"] == "c means c"
    assert seen[0] == "RequestStarted"
    assert seen[-1] == "LoopEnded"
