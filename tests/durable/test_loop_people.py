"""Calls that wait for a person, who decides in whatever process (rules P11, P12, P14, P16)."""

from __future__ import annotations

from collections.abc import Mapping
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
    Model,
    asked,
    call,
    calls,
    decision,
    dispatcher,
    hold_charges,
    hold_charges_slowly,
    make_loop,
    new_store,
    results,
)

from lutumpy import Hold, HookError, Session, ToolDecision, Toolset, tool, tool_fn
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.errors import PlanError, StoreError
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import run_tools

SCRIPT = [calls(LOOK, CHARGE), ANSWER]


def waiting_store(form: Form, hooks: Any = hold_charges) -> tuple[MemoryStore, Waiting]:
    """A conversation whose charge waits for somebody."""
    store, ledger = form.await_(new_store), Ledger()
    waiting = form.run(make_loop(store, Model(SCRIPT), ledger, hooks=hooks))
    assert isinstance(waiting, Waiting)
    assert ledger.done == []  # nothing of a round runs while a call of it is held
    return store, waiting


@pytest.mark.parametrize("hooks", [hold_charges, hold_charges_slowly])
def test_a_held_call_ends_the_run_and_is_shown_as_data(form: Form, hooks: Any) -> None:
    store, waiting = waiting_store(form, hooks)
    assert waiting.held == ("p1",)
    assert waiting.plan["digest"] == waiting.digest
    (held,) = form.await_(store.held)
    assert (held.scope, held.digest, held.held) == (SCOPE, waiting.digest, ("p1",))
    assert [info.status for info in form.await_(store.scopes)] == ["waiting"]


def test_asked_again_it_waits_with_the_same_digest_and_asks_no_model_P11(form: Form) -> None:
    store, waiting = waiting_store(form)

    def never(call: BaseToolCall) -> ToolDecision:
        raise AssertionError("the hooks were asked already")

    llm = Model(SCRIPT)
    again = form.run(make_loop(store, llm, Ledger(), hooks=never))
    assert again == waiting
    assert llm.requests == 0


@pytest.mark.parametrize(
    ("decided", "done", "said"),
    [
        (decision("run"), ["charge 5", "look cat"], ("ok", "charged 5")),
        (decision("run", input={"amount": 3}), ["charge 3", "look cat"], ("ok", "charged 3")),
        (decision("complete", output="paid in cash"), ["look cat"], ("ok", "paid in cash")),
        (
            decision("reject", reason="too much"),
            ["look cat"],
            ("rejected", "Tool call rejected: too much"),
        ),
    ],
)
def test_what_a_person_decides_is_done_by_the_next_run_P12(
    form: Form, decided: Mapping[str, Any], done: list[str], said: tuple[str, str]
) -> None:
    store, waiting = waiting_store(form)
    ledger = Ledger()
    loop = make_loop(store, Model(SCRIPT), ledger, hooks=hold_charges)
    assert form.await_(loop.decide, SCOPE, waiting.digest, {"p1": decided}, by="ann")
    assert form.await_(store.held) == []
    answered = form.run(loop)
    assert isinstance(answered, Answered)
    assert sorted(ledger.done) == done
    assert said in results(form.await_(store.session, SCOPE))


def test_a_second_decision_for_a_call_is_ignored_P16(form: Form) -> None:
    store, waiting = waiting_store(form)
    ledger = Ledger()
    loop = make_loop(store, Model(SCRIPT), ledger)
    first = form.await_(loop.decide, SCOPE, waiting.digest, {"p1": decision("run")}, by="ann")
    second = form.await_(
        loop.decide, SCOPE, waiting.digest, {"p1": decision("reject", reason="no")}, by="ben"
    )
    assert (first, second) == (True, False)
    form.run(loop)
    assert ledger.count("charge 5") == 1


@pytest.mark.parametrize(
    ("call_id", "decided", "message"),
    [
        (
            "p1",
            decision("run", input={"amount": "much"}),
            "doesn't fit: amount: Input should be a valid integer, unable to parse string as an "
            "integer; nothing was decided",
        ),
        ("p1", decision("run", input={}), "doesn't fit: amount: Field required; nothing"),
        ("p1", decision("run", input=[1]), "doesn't fit"),
        ("p1", decision("complete"), "not run, complete with an output, or reject"),
        ("p1", decision("reject", reason=7), "not run, complete with an output, or reject"),
        ("p1", "yes", "not run, complete with an output, or reject"),
        ("p1", decision([]), "not run, complete with an output, or reject"),
        # A misspelled edit isn't an approval of what was to be edited.
        ("p1", decision("run", inputs={"amount": 1}), "run, which has 'input' .* not 'inputs'"),
        ("p1", decision("run", output=1), "run, which has 'input' .* not 'output'"),
        ("p1", decision("complete", output=1, reason=""), "has 'output' .* not 'reason'"),
        ("p1", decision("reject", input={}), "reject, which has 'reason' .* not 'input'"),
        ("l1", decision("run"), "l1"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused_when_it_arrives_P16(
    call_id: str, decided: Any, message: str
) -> None:
    form = Form("asyncio")
    store, waiting = waiting_store(form)
    loop = make_loop(store, Model(SCRIPT), Ledger())
    with pytest.raises(StoreError, match=message) as caught:
        form.await_(loop.decide, SCOPE, waiting.digest, {call_id: decided}, by="ann")
    assert caught.value.kind == "decision"
    assert form.run(loop) == waiting


def test_a_decision_for_another_plan_is_refused_P16() -> None:
    form = Form("asyncio")
    store, _ = waiting_store(form)
    loop = make_loop(store, Model(SCRIPT), Ledger())
    with pytest.raises(StoreError) as caught:
        form.await_(loop.decide, SCOPE, "sha256:other", {"p1": decision("run")}, by="ann")
    assert caught.value.kind == "plan"


def test_an_edit_that_does_not_fit_when_it_is_taken_leaves_its_call_held(
    caplog: pytest.LogCaptureFixture,
) -> None:
    form = Form("asyncio")
    store, waiting = waiting_store(form)
    bad: Any = {"p1": decision("run", input={"amount": "much"})}
    # Straight to the store, which knows no tools.
    form.await_(store.decide, SCOPE, waiting.digest, bad, by="ann")
    ledger = Ledger()
    again = form.run(make_loop(store, Model(SCRIPT), ledger))
    assert isinstance(again, Waiting)
    assert ledger.done == []
    assert "the decision of ann can't be used, the call stays held" in caplog.text


def test_people_may_decide_one_call_after_the_other() -> None:
    form = Form("asyncio")
    store, ledger = form.await_(new_store), Ledger()
    two = calls(CHARGE, call("charge", "p2", amount=7))
    loop = make_loop(store, Model([two, ANSWER]), ledger, hooks=hold_charges)
    waiting = form.run(loop)
    form.await_(loop.decide, SCOPE, waiting.digest, {"p2": decision("run")}, by="ann")
    again = form.run(loop)
    assert (again.held, again.digest) == (("p1",), waiting.digest)
    assert ledger.done == []
    form.await_(loop.decide, SCOPE, waiting.digest, {"p1": decision("run")}, by="ben")
    assert isinstance(form.run(loop), Answered)
    assert sorted(ledger.done) == ["charge 5", "charge 7"]


def test_a_decision_in_the_last_moment_of_a_run_is_taken_up_by_it(backend: str) -> None:
    ledger = Ledger()

    class DecidedMeanwhile(MemoryStore):
        async def release(self, claim: Any, *, status: Any = None) -> None:
            for plan in await self.held():
                await self.decide(SCOPE, plan.digest, {"p1": decision("run")}, by="ann")
            await super().release(claim, status=status)

    async def main() -> None:
        store = DecidedMeanwhile()
        await store.create(SCOPE, asked())
        done = await make_loop(store, Model(SCRIPT), ledger, hooks=hold_charges).run(SCOPE)
        assert isinstance(done, Answered)

    anyio.run(main, backend=backend)
    assert ledger.count("charge 5") == 1


@tool_fn(name="charge", effect="once")
async def charge_in(amount: int, currency: str = "EUR") -> str:
    """Charge somebody, in a currency."""
    return f"charged {amount} {currency}"


@tool_fn(name="look", effect="read")
async def look_slowly(word: str) -> str:
    """Look a word up, in a newer release."""
    return word


class NewDesk(Toolset):
    charge = tool(charge_in)


def new_release(store: MemoryStore, drift: Any) -> DurableLoop[Any, Any]:
    return DurableLoop(
        store, Model(SCRIPT), tools=NewDesk, dispatch=Dispatcher(NewDesk), drift=drift
    )


def test_a_plan_whose_tools_changed_is_refused_P14(form: Form) -> None:
    store, _ = waiting_store(form)
    with pytest.raises(PlanError) as caught:
        form.run(new_release(store, "refuse"))
    assert caught.value.kind == "schema"
    assert set(caught.value.tools) == {"look", "charge"}
    assert isinstance(form.run(make_loop(store, Model(SCRIPT), Ledger())), Waiting)


def test_or_its_changed_calls_are_rejected_and_the_model_is_told_P14(form: Form) -> None:
    store, _ = waiting_store(form)
    assert isinstance(form.run(new_release(store, "reject")), Answered)
    said = results(form.await_(store.session, SCOPE))
    assert [status for status, _ in said] == ["rejected", "rejected"]
    assert all("changed while this call waited" in text for _, text in said)


def test_a_loop_in_memory_cannot_hold_a_call(form: Form) -> None:
    session = Session()
    session.push_user("Pay.")
    ledger = Ledger()

    def hold(call: BaseToolCall) -> ToolDecision:
        return Hold("money")

    with pytest.raises(HookError, match="the loop has discarded the round"):
        form.await_(
            run_tools,
            session,
            Model(SCRIPT),
            tools=Desk,
            dispatch=dispatcher(ledger),
            hooks=hold,
        )
    assert ledger.done == []
    assert len(session.transcript) == 1
