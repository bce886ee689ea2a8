"""What a run has paid before it failed is counted by whoever goes on (rules B1, P17, U1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SCOPE,
    Desk,
    Form,
    Ledger,
    asked,
    calls,
    decision,
    dispatcher,
    hold_charges,
    new_store,
)

from lutumpy import AdapterError, HookError, Session
from lutumpy.budget import Budget
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.testing import Failure, Reply, ScriptedModel, render_stream

API = "anthropic_messages"


def dying(events: int | None = None) -> list[Any]:
    """A streamed answer that breaks off: behind its usage, or earlier."""
    whole = render_stream(Reply(text="a long answer", usage=(100, 10)), API, number=1, model="m")
    return [*whole[: -1 if events is None else events], Failure(500, "gone")]


def loop_of(store: Any, *script: Any, **options: Any) -> DurableLoop[Any, Any]:
    llm = ScriptedModel([*script], api=API, model="m")
    options = {"dispatch": dispatcher(Ledger()), "events": True, **options}
    return DurableLoop(store, llm, tools=Desk, **options)


class Budgets:
    """Makes the budget of a conversation, and keeps it."""

    def __init__(self, **limits: Any) -> None:
        self.limits = limits
        self.made: list[Budget] = []

    def __call__(self, scope: str) -> Budget:
        self.made.append(Budget(**self.limits))
        return self.made[-1]


@pytest.mark.parametrize("limit", ["budget_for", "token_budget"])
def test_runs_that_fail_reach_a_limit(form: Form, limit: str) -> None:
    store = form.await_(new_store)
    budgets = Budgets(tokens=200)
    options: dict[str, Any] = {"token_budget": 200} if limit == "token_budget" else {}
    if limit == "budget_for":
        options = {"budget_for": budgets}
    for _ in range(2):
        with pytest.raises(AdapterError):
            form.run(loop_of(store, dying(), **options))
    ended = form.run(loop_of(store, ANSWER, **options))
    assert (ended.result.stopped_by, ended.result.rounds, ended.result.text) == ("budget", 0, "")
    assert form.await_(store.session, SCOPE).usage.total_tokens == 220
    # The user says something: what limits count begins anew, what was spent stays spent.
    form.await_(store.push, SCOPE, "Once more.", idempotency_key="m2")
    again = form.run(loop_of(store, ANSWER, **options))
    stopped_by = "budget" if limit == "budget_for" else "answer"
    assert again.result.stopped_by == stopped_by


async def test_every_store_keeps_what_a_failed_run_has_cost(make: Callable[[], Any]) -> None:
    store = make()
    await store.create(SCOPE, asked())
    budgets = Budgets(tokens=10_000, requests=100)
    for events in (None, 2):
        with pytest.raises(AdapterError):
            await loop_of(store, dying(events), budget_for=budgets).run(SCOPE)
    # Another process reads it, before anything is committed and afterwards.
    pending: Session = await make().session(SCOPE)
    assert pending.usage.input_tokens == 200
    (unsettled,) = pending.unsettled
    assert (unsettled.api, unsettled.model) == (API, "m")
    answered = await loop_of(make(), ANSWER, budget_for=budgets).run(SCOPE)
    assert isinstance(answered, Answered)
    assert answered.result.usage.total_tokens == 15  # of this run
    done: Session = await make().session(SCOPE)
    assert done.usage == pending.usage + answered.result.usage
    assert done.unsettled == pending.unsettled
    spent = budgets.made[-1].spent
    assert (spent.usage.total_tokens, spent.unsettled) == (done.usage.total_tokens, (unsettled,))
    # A request of which only the estimate is known was sent as well.
    assert spent.requests == 2


async def test_an_answer_that_a_hook_lost_is_paid_and_one_that_waits_is_paid_once() -> None:
    store = await new_store()

    def fail(call: Any) -> Any:
        raise ValueError("the hook is broken")

    for _ in range(2):
        with pytest.raises(HookError):
            await loop_of(store, calls(LOOK), hooks=fail).run(SCOPE)
    assert (await store.session(SCOPE)).usage.total_tokens == 30

    async def fail_later(call: Any) -> Any:
        raise ValueError("the hook is broken")

    budgets = Budgets(tokens=1000)
    for _ in range(2):  # the answer is recorded before a hook that may wait is asked
        with pytest.raises(HookError):
            await loop_of(store, calls(CHARGE), hooks=fail_later, budget_for=budgets).run(SCOPE)
        assert budgets.made[-1].spent.usage.total_tokens == 45
    waiting = await loop_of(store, hooks=hold_charges, budget_for=budgets).run(SCOPE)
    assert isinstance(waiting, Waiting)
    (held,) = waiting.held
    await store.decide(SCOPE, waiting.digest, {held: decision("run")}, by="ann")
    for _ in range(2):
        with pytest.raises(AdapterError):
            await loop_of(store, dying(), hooks=hold_charges, budget_for=budgets).run(SCOPE)
    await loop_of(store, ANSWER, hooks=hold_charges, budget_for=budgets).run(SCOPE)
    assert (await store.session(SCOPE)).usage.total_tokens == 45 + 220 + 15
    assert budgets.made[-1].spent.usage.total_tokens == 45 + 220 + 15


class Silent:
    """A model that never answers."""

    api = API
    model = "m"

    async def respond(self, transcript: Any, offering: Any, options: Any) -> Any:
        await anyio.sleep_forever()

    def respond_sync(self, transcript: Any, offering: Any, options: Any) -> Any:
        raise NotImplementedError


def test_a_cancelled_request_is_known_to_have_been_sent(backend: str) -> None:
    async def cancel() -> MemoryStore:
        store = await new_store()
        for _ in range(2):
            with anyio.move_on_after(0.01):
                await DurableLoop(store, Silent(), tools=Desk, dispatch=dispatcher(Ledger())).run(
                    SCOPE
                )
        unsettled = (await store.session(SCOPE)).unsettled
        assert [request.model for request in unsettled] == ["m", "m"]
        return store

    anyio.run(cancel, backend=backend)


async def test_a_store_that_refuses_the_record_hides_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await new_store()

    async def refuse(claim: Any, name: str, value: Any) -> Any:
        raise OSError("the disk is full")

    store.record = refuse  # type: ignore[method-assign]
    with pytest.raises(AdapterError):
        await loop_of(store, dying()).run(SCOPE)
    assert f"what {SCOPE!r} has cost was not recorded: the disk is full" in caplog.text
    (info,) = await store.scopes()
    assert (info.claimed_until, info.attempts) == (None, 1)
