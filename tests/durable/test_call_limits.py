"""A budget's limit of calls holds for calls that a runner runs elsewhere too (rules B2, B5, P7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from durable_toolkit import (
    ANSWER,
    SCOPE,
    Desk,
    Ledger,
    Model,
    TicketRunner,
    asked,
    call,
    calls,
    dispatcher,
    make_loop,
    new_store,
    results,
)

from lutumpy import Session
from lutumpy.budget import Budget
from lutumpy.durable import Answered, DurableLoop
from lutumpy.testing import ScriptedModel

USED_UP = "The tool charge has been called as often as it may be. Go on without it."


def charges(*amounts: int) -> Any:
    return calls(*[call("charge", f"p{amount}", amount=amount) for amount in amounts])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", ["local", "tickets"])
async def test_no_more_calls_are_sent_than_the_budget_has(
    make: Callable[[], Any], kind: str, shared: bool
) -> None:
    store, ledger, budget = make(), Ledger(), Budget(calls={Desk.charge: 2})
    await store.create(SCOPE, asked())
    look = call("look", "l1", word="cat")
    script = [charges(1), calls(look, *charges(2, 3, 4).calls), charges(5), ANSWER]
    llm = ScriptedModel(script, check=False)
    options: dict[str, Any] = {"budget": budget} if shared else {"budget_for": lambda _: budget}
    if kind == "tickets":
        options["runner"] = TicketRunner(ledger)
    loop: DurableLoop[Any, Any] = DurableLoop(
        store, llm, tools=Desk, dispatch=dispatcher(ledger), **options
    )
    assert isinstance(await loop.run(SCOPE), Answered)
    paid = [each for each in ledger.done if each.startswith("charge")]
    assert len(paid) == 2
    assert paid[0] == "charge 1"
    session: Session = await store.session(SCOPE)
    told = results(session)
    statuses = sorted([status for status, _ in told])
    assert statuses == ["error", "error", "ok", "ok", "ok", "rejected"]
    assert {text for status, text in told if status == "error"} == {USED_UP}
    assert budget.spent.calls == {"charge": 2}
    offered = [[each["function"]["name"] for each in request["tools"]] for request in llm.requests]
    assert offered[1] == ["look", "charge", "save"]
    assert offered[2] == ["look", "save"]


class Dying(TicketRunner):
    """Its process is gone behind the first call that it runs."""

    async def run(self, tickets: Any, journal: Any) -> Any:
        for ticket in tickets:
            await journal.begin(ticket)
        raise LookupError("the process is gone")


async def test_a_call_that_an_earlier_run_has_begun_is_not_refused_P7() -> None:
    """It may have run; so it isn't reported as one that was not."""
    store, ledger = await new_store(), Ledger()
    script = [charges(1), ANSWER]
    with pytest.raises(LookupError):
        await make_loop(store, Model(script), ledger, runner=Dying(ledger)).run(SCOPE)
    budget = Budget(calls={Desk.charge: 1})
    other, elsewhere = await new_store(), Ledger()  # another conversation uses it up
    await make_loop(other, Model(script), elsewhere, budget=budget).run(SCOPE)
    assert elsewhere.done == ["charge 1"]
    loop = make_loop(store, Model(script), ledger, runner=TicketRunner(ledger), budget=budget)
    assert isinstance(await loop.run(SCOPE), Answered)
    ((status, text),) = results(await store.session(SCOPE))
    assert (status, ledger.done) == ("error", [])
    assert "outcome is unknown" in text
