"""Calls that ran are never told as not run, whatever changed since (rules P7, P14, P18)."""

from __future__ import annotations

from dataclasses import replace
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
    call,
    calls,
    dispatcher,
    end_lease,
    make_loop,
    new_store,
    results,
)

from lutumpy import CallTicket, ToolMetadata, ToolResult, Toolset, hook_impl, tool, tool_fn
from lutumpy.durable import Answered, Claim, DurableLoop, LocalRunner, MemoryStore, StoreJournal
from lutumpy.durable.conversation import OpenConversation
from lutumpy.errors import TakenOverError
from lutumpy.execution import Dispatcher, ToolExecutor, run_ticket

SCRIPT = [calls(LOOK, CHARGE), ANSWER]
UNKNOWN = "The outcome is unknown"


class Died(BaseException):
    """In place of a kill."""


def die_after(ledger: Ledger, store: MemoryStore, charges: int = 1) -> None:
    """Have the process die in the middle of so many payments at once."""

    async def die() -> None:
        if ledger.count("charge 5") < charges:
            await anyio.sleep_forever()
        await anyio.sleep(0.01)  # what else runs has ended and is recorded
        end_lease(store)
        store._conversations[SCOPE].fence += 1  # what this process writes now is refused
        raise Died

    ledger.during["charge"] = die


@tool_fn(name="charge", effect="once")
async def charge_in(amount: int, currency: str = "EUR") -> str:
    """Charge somebody, in a currency."""
    raise AssertionError("it is not run")


@tool_fn(name="look", effect="read")
async def look_again(word: str) -> str:
    """Look a word up, in a newer release."""
    raise AssertionError("it is not run")


class NewDesk(Toolset):
    charge = tool(charge_in)
    look = tool(look_again)


class ChargesOnly(Toolset):
    charge = tool(charge_in)


class Reviewer:
    @hook_impl
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
        return replace(result, content="reviewed")


def died_in_a_payment(form: Form) -> MemoryStore:
    store: MemoryStore = form.await_(new_store)
    ledger = Ledger()
    die_after(ledger, store)
    with pytest.raises((Died, TakenOverError)):
        form.run(make_loop(store, Model(SCRIPT), ledger))
    return store


def new_release(store: MemoryStore, tools: Any = NewDesk, **options: Any) -> Any:
    return DurableLoop(
        store, Model(SCRIPT), tools=tools, dispatch=Dispatcher(tools), drift="reject", **options
    )


def test_what_a_changed_call_came_to_is_told_and_not_that_it_was_not_run_P7_P14(
    form: Form,
) -> None:
    store = died_in_a_payment(form)
    assert isinstance(form.run(new_release(store)), Answered)
    looked, charged = results(form.await_(store.session, SCOPE))
    assert looked == ("ok", "cat means tac")
    assert charged[0] == "error"
    assert UNKNOWN in charged[1]
    (unresolved,) = form.await_(store.unresolved, SCOPE)
    assert unresolved.metadata.id == "p1"


def test_results_of_changed_calls_are_reviewed_like_others(form: Form) -> None:
    store = died_in_a_payment(form)
    hooks = NewDesk.hooks().with_hooks(Reviewer())
    assert isinstance(form.run(new_release(store, hooks=hooks)), Answered)
    assert results(form.await_(store.session, SCOPE))[0] == ("ok", "reviewed")


def test_a_result_of_a_tool_that_is_gone_is_withheld_from_who_reviews_results(form: Form) -> None:
    store = died_in_a_payment(form)
    hooks = ChargesOnly.hooks()
    assert isinstance(form.run(new_release(store, ChargesOnly, hooks=hooks)), Answered)
    status, text = results(form.await_(store.session, SCOPE))[0]
    assert status == "error"
    assert "is withheld" in text


def test_a_review_that_was_recorded_stands_for_changed_calls(form: Form) -> None:
    store = died_in_a_payment(form)

    async def record_review() -> None:
        claim = await store.claim(SCOPE)
        assert isinstance(claim, Claim)
        value: Any = {"l1": {"status": "ok", "content": "reviewed before"}}
        await store.record(claim, "review", value)
        await store.release(claim)

    form.await_(record_review)
    hooks = NewDesk.hooks().with_hooks(Reviewer())
    assert isinstance(form.run(new_release(store, hooks=hooks)), Answered)
    assert results(form.await_(store.session, SCOPE))[0] == ("ok", "reviewed before")


def test_equal_calls_that_have_both_begun_are_both_unknown_P7(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    script = [calls(CHARGE, call("charge", "p2", amount=5)), ANSWER]
    die_after(ledger, store, charges=2)
    with pytest.raises((Died, TakenOverError)):
        form.run(make_loop(store, Model(script), ledger))
    ledger.during = {}
    assert isinstance(form.run(make_loop(store, Model(script), ledger)), Answered)
    assert ledger.count("charge 5") == 2
    said = results(form.await_(store.session, SCOPE))
    assert [status for status, _ in said] == ["error", "error"]
    assert all(UNKNOWN in text for _, text in said)
    unresolved = form.await_(store.unresolved, SCOPE)
    assert {each.metadata.id for each in unresolved} == {"p1", "p2"}


def test_of_equal_calls_one_that_has_not_begun_is_refused_P8(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    script = [calls(CHARGE, call("charge", "p2", amount=5)), ANSWER]
    die_after(ledger, store)
    executor = ToolExecutor(max_concurrency=1)
    with pytest.raises((Died, TakenOverError)):
        form.run(make_loop(store, Model(script), ledger, executor=executor))
    ledger.during = {}
    # Now they are begun at once, and whichever comes first.
    assert isinstance(form.run(make_loop(store, Model(script), ledger)), Answered)
    assert ledger.count("charge 5") == 1
    said = results(form.await_(store.session, SCOPE))
    assert sorted(status for status, _ in said) == ["error", "rejected"]


async def _claimed(store: MemoryStore) -> StoreJournal:
    claim = await store.claim(SCOPE)
    assert isinstance(claim, Claim)
    return StoreJournal(OpenConversation(store, claim))


async def _begun_ticket(store: MemoryStore) -> tuple[CallTicket, StoreJournal]:
    """A ticket that a process began and left, and the journal of the next process."""
    await store.create(SCOPE, asked())
    tickets: list[CallTicket] = []

    class Keeps(LocalRunner):
        async def run(self, given: Any, journal: Any) -> Any:
            tickets.extend(given)
            await journal.begin(given[0])
            end_lease(store)
            store._conversations[SCOPE].fence += 1
            raise Died

    loop = make_loop(store, Model([calls(CHARGE)]), Ledger(), runner=Keeps(dispatcher(Ledger())))
    with pytest.raises((Died, TakenOverError)):
        await loop.run(SCOPE)
    return tickets[0], await _claimed(store)


@pytest.mark.parametrize("way", ["runner", "worker"])
def test_a_worker_with_another_tool_asks_the_journal_before_it_says_not_run_P7_P18(
    way: str, backend: str
) -> None:
    async def main() -> None:
        ticket, journal = await _begun_ticket(MemoryStore())
        result: Any
        if way == "runner":
            (result,) = await LocalRunner(Dispatcher(NewDesk)).run([ticket], journal)
            assert result.outcome == "maybe_executed"
        else:
            executor = ToolExecutor(journal=journal)
            dumped = await run_ticket(ticket, NewDesk, Dispatcher(NewDesk), executor=executor)
            assert dumped["outcome"] == "maybe_executed"

    anyio.run(main, backend=backend)


def test_one_that_nobody_began_is_not_run_and_said_so_P18(backend: str) -> None:
    async def main() -> None:
        begun, journal = await _begun_ticket(MemoryStore())
        ticket = replace(begun, call_id="p9", equal_to="another")
        (result,) = await LocalRunner(Dispatcher(NewDesk)).run([ticket], journal)
        assert result.outcome == "failed"
        assert "was not run" in str(result.content)
        assert journal.result_of(ticket) == result

    anyio.run(main, backend=backend)
