"""Limits over restarts, and what the user says meanwhile (rules P3, P17)."""

from __future__ import annotations

from typing import Any

import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SCOPE,
    Desk,
    Form,
    Ledger,
    Model,
    call,
    calls,
    dispatcher,
    hold_charges,
    make_loop,
    new_store,
)

from lutumpy import Session
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.execution import ToolExecutor
from lutumpy.models import Message
from lutumpy.testing import Reply


def looks(count: int, word: str = "cat") -> list[Reply]:
    return [calls(call("look", f"l{number}", word=word)) for number in range(count)]


class Interrupted(Exception):
    """A run that ends after a round, as by a deploy."""


def stopped_after(rounds: int) -> Any:
    """A callback that ends a run when so many rounds of it were committed."""
    seen: list[Any] = []

    def tell(event: Any) -> None:
        if type(event).__name__ == "RoundCommitted":
            seen.append(event)
            if len(seen) == rounds:
                raise Interrupted

    return tell


@pytest.mark.parametrize(
    ("word", "options", "stopped_by"),
    [
        ("cat", {"max_rounds": 3}, "round_limit"),
        ("unknown", {"max_repeats": 3}, "repeat"),
        ("cat", {"token_budget": 40}, "budget"),  # 15 for each answer
    ],
)
def test_limits_count_over_all_runs_of_a_task_P17(
    form: Form, word: str, options: dict[str, Any], stopped_by: str
) -> None:
    store, llm, ledger = form.await_(new_store), Model(looks(9, word)), Ledger()
    with pytest.raises(Interrupted):
        form.run(make_loop(store, llm, ledger, on_progress=stopped_after(2), **options))
    done = form.run(make_loop(store, llm, ledger, **options))
    assert isinstance(done, Answered)
    assert (done.result.stopped_by, done.result.rounds) == (stopped_by, 3)
    assert (llm.requests, len(ledger.done)) == (3, 3)
    assert done.result.usage.total_tokens == 15  # of this run

    # A limit that was reached stays reached, until the user says something.
    again = form.run(make_loop(store, llm, ledger, **options))
    assert (again.result.stopped_by, llm.requests) == (stopped_by, 3)
    assert again.result.text == done.result.text


def test_a_message_of_the_user_begins_a_new_count_P17(form: Form) -> None:
    store, llm, ledger = form.await_(new_store), Model(looks(9)), Ledger()
    options = {"max_rounds": 2, "token_budget": 1000}
    assert form.run(make_loop(store, llm, ledger, **options)).result.rounds == 2
    form.await_(store.push, SCOPE, "Go on.", idempotency_key="m1")
    form.await_(store.push, SCOPE, "Go on.", idempotency_key="m1")
    done = form.run(make_loop(store, llm, ledger, **options))
    assert (done.result.rounds, llm.requests) == (2, 4)
    session: Session = form.await_(store.session, SCOPE)
    said = [item for item in session.transcript if isinstance(item, Message)]
    assert [item.parts[0].text for item in said] == ["Do it, please.", "Go on."]  # type: ignore[union-attr]


def test_a_message_in_the_middle_is_taken_with_the_round_and_begins_a_new_count_P3(
    form: Form,
) -> None:
    store, llm, ledger = form.await_(new_store), Model([*looks(4), ANSWER]), Ledger()

    async def say() -> None:
        ledger.during.clear()
        await store.push(SCOPE, message_of("Hurry up."), idempotency_key="m1")

    ledger.during["look"] = say
    loop = make_loop(store, llm, ledger, max_rounds=3, token_budget=60)
    done = form.run(loop)
    # The first round was of the old task; three rounds of the new one were allowed.
    assert (done.result.stopped_by, done.result.rounds, llm.requests) == ("round_limit", 3, 4)
    session: Session = form.await_(store.session, SCOPE)
    kinds = [type(item).__name__ for item in session.transcript]
    assert kinds[:4] == ["Message", "AssistantTurn", "ToolResults", "Message"]


def message_of(text: str) -> Message:
    session = Session()
    session.push_user(text)
    (message,) = session.transcript
    assert isinstance(message, Message)
    return message


def test_a_message_in_the_last_moment_is_answered_by_the_same_run(form: Form) -> None:
    class SaidMeanwhile(MemoryStore):
        async def release(self, claim: Any, *, status: Any = None) -> None:
            await self.push(SCOPE, "One more thing.", idempotency_key="m1")
            await super().release(claim, status=status)

    store = SaidMeanwhile()
    session = Session()
    session.push_user("Do it.")
    form.await_(store.create, SCOPE, session)
    second = Reply(text="That too.", usage=(10, 5))
    done = form.run(make_loop(store, Model([ANSWER, second]), Ledger()))
    assert done.result.text == "That too."


def test_a_message_waits_while_a_person_decides(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    loop = make_loop(store, Model([calls(CHARGE), ANSWER]), ledger, hooks=hold_charges)
    waiting = form.run(loop)
    form.await_(store.push, SCOPE, "Well?", idempotency_key="m1")
    assert form.run(loop) == waiting
    assert isinstance(waiting, Waiting)
    form.await_(loop.decide, SCOPE, waiting.digest, {"p1": {"decision": "run"}}, by="ann")
    form.run(loop)
    kinds = [type(item).__name__ for item in form.await_(store.session, SCOPE).transcript]
    assert kinds == ["Message", "AssistantTurn", "ToolResults", "Message", "AssistantTurn"]


def test_a_round_that_is_open_is_finished_before_a_limit_is_looked_at(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = Model([calls(LOOK), calls(CHARGE), ANSWER])
    waiting = form.run(make_loop(store, llm, ledger, hooks=hold_charges))
    lower = make_loop(store, llm, ledger, max_rounds=1)
    form.await_(lower.decide, SCOPE, waiting.digest, {"p1": {"decision": "run"}}, by="ann")
    done = form.run(lower)
    assert (done.result.stopped_by, done.result.rounds) == ("round_limit", 2)


def test_a_paused_turn_is_gone_on_with(form: Form) -> None:
    store = form.await_(new_store)
    llm = Model([Reply(text="Wait", finish="paused"), ANSWER], api="anthropic_messages")
    first = form.run(make_loop(store, llm, Ledger()))
    assert first.result.stopped_by == "paused"
    assert [info.status for info in form.await_(store.scopes)] == ["open"]
    assert form.run(make_loop(store, llm, Ledger())).result.stopped_by == "answer"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"scope": "s"}, "scope= belongs to run"),
        ({"sign": "secret"}, "sign= takes a Signer"),
        ({"verify": b"secret"}, "verify= takes keys by id"),
        ({"drift": "ignore"}, "drift= is 'refuse' or 'reject'"),
        ({"on_progress": 7}, "on_progress= takes a callable"),
        ({"lease": True}, "lease= is a number"),
        ({"lease": 0}, "not a positive number of seconds"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"runner": 7}, "runner= takes a CallRunner"),
        ({"store": None}, "store= takes a SessionStore"),
    ],
)
def test_what_a_loop_is_made_of_is_checked_at_once(options: dict[str, Any], error: str) -> None:
    store = options.pop("store", MemoryStore())
    with pytest.raises((TypeError, ValueError), match=error):
        make_loop(store, Model([]), Ledger(), **options)


def test_options_of_the_loop_in_memory_hold(form: Form) -> None:
    store = form.await_(new_store)
    llm = Model([calls(LOOK), ANSWER])
    executor = ToolExecutor(max_concurrency=1)
    loop = DurableLoop(
        store, llm, tools=Desk, dispatch=dispatcher(Ledger()), executor=executor, temperature=0.5
    )
    assert isinstance(form.run(loop), Answered)
    assert len(executor.report.calls) == 1
    assert "DurableLoop" in repr(loop)


def test_run_sync_is_refused_inside_an_event_loop(backend: str) -> None:
    import anyio

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"await run\(\) there"):
            make_loop(MemoryStore(), Model([]), Ledger()).run_sync(SCOPE)

    anyio.run(main, backend=backend)
