"""Several processes at once, cancellations, and conversations that are taken away (P4, P5, P19)."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SAVE,
    SCOPE,
    Deaf,
    Desk,
    Form,
    Ledger,
    Model,
    TicketRunner,
    asked,
    call,
    calls,
    dispatcher,
    end_lease,
    make_loop,
    new_store,
    results,
    said_by_user,
)

from lutumpy import NeedsTools, RunNormally, TakenOverError
from lutumpy.durable import Answered, LocalRunner, MemoryStore, Taken
from lutumpy.errors import StoreError
from lutumpy.testing import Reply

SCRIPT = [calls(LOOK, CHARGE), ANSWER]
HAPPENED = "The call p1 of charge, whose outcome was not known, did happen: it took effect."


async def run_two_at_once() -> None:
    store, ledger, llm = await new_store(), Ledger(), Model(SCRIPT)
    ended: list[str] = []

    async def run() -> None:
        outcome = await make_loop(store, llm, ledger).run(SCOPE)
        ended.append(type(outcome).__name__)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        group.start_soon(run)
    # Both have the answer where the second came when the first was done.
    assert sorted(ended) in (["Answered", "Taken"], ["Answered", "Answered"])
    assert ledger.count("charge 5") == 1
    assert llm.requests == 2


@pytest.mark.pure
@pytest.mark.slow
def test_of_two_runs_at_once_one_goes_on_P2(backend: str) -> None:
    async def main() -> None:
        for _ in range(50):
            await run_two_at_once()

    anyio.run(main, backend=backend)


def test_who_comes_while_another_goes_on_is_told_until_when(form: Form) -> None:
    store = form.await_(new_store)
    claim = form.await_(store.claim, SCOPE)
    taken = form.run(make_loop(store, Model(SCRIPT), Ledger()))
    assert taken == Taken(claim.until)


def test_an_unknown_conversation_is_an_error(form: Form) -> None:
    with pytest.raises(StoreError) as caught:
        form.run(make_loop(MemoryStore(), Model(SCRIPT), Ledger()))
    assert caught.value.kind == "unknown_scope"


@pytest.mark.parametrize("by_tickets", [False, True])
def test_a_process_that_was_taken_over_writes_nothing_and_says_so_once_P4(
    backend: str, by_tickets: bool
) -> None:
    async def main() -> None:
        store, ledger, other = await new_store(), Ledger(), Ledger()
        script = [calls(CHARGE), ANSWER]

        async def take_over() -> None:
            # As if this process had slept for longer than its lease.
            end_lease(store)
            ledger.during.clear()
            done = await make_loop(store, Model(script), other).run(SCOPE)
            assert isinstance(done, Answered)

        ledger.during["charge"] = take_over
        runner = TicketRunner(ledger) if by_tickets else None
        with pytest.raises(TakenOverError):
            await make_loop(store, Model(script), ledger, runner=runner).run(SCOPE)
        assert ledger.count("charge 5") == 1
        assert other.count("charge 5") == 0
        unknown = [text for _, text in results(await store.session(SCOPE)) if "unknown" in text]
        assert len(unknown) == 1

    anyio.run(main, backend=backend)


def test_a_lost_lease_is_noticed_while_a_tool_runs_and_cancels_it(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()

        async def lose() -> None:
            end_lease(store)
            assert not isinstance(await store.claim(SCOPE), Taken)
            await anyio.sleep_forever()

        ledger.during["charge"] = lose
        with anyio.fail_after(5), pytest.raises(TakenOverError):
            await make_loop(store, Model(SCRIPT), ledger, lease=0.06).run(SCOPE)

    anyio.run(main, backend=backend)


@pytest.mark.slow
def test_a_lease_is_renewed_as_long_as_a_run_goes_on(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()

        async def wait() -> None:
            await anyio.sleep(1.2)
            assert isinstance(await store.claim(SCOPE), Taken)

        ledger.during["charge"] = wait
        done = await make_loop(store, Model(SCRIPT), ledger, lease=0.8).run(SCOPE)
        assert isinstance(done, Answered)

    anyio.run(main, backend=backend)


def test_a_renewal_that_fails_is_logged_and_tried_again(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Shaky(MemoryStore):
        async def renew(self, claim: Any) -> None:
            raise ConnectionError("the store is away")

        async def release(self, claim: Any, *, status: Any = None) -> None:
            raise ConnectionError("the store is away")

    async def main() -> None:
        store, ledger = Shaky(), Ledger()
        await store.create(SCOPE, asked())
        ledger.during["charge"] = partial(anyio.sleep, 0.1)
        done = await make_loop(store, Model(SCRIPT), ledger, lease=0.06).run(SCOPE)
        assert isinstance(done, Answered)

    anyio.run(main, backend=backend)
    assert "was not renewed: the store is away" in caplog.text
    assert "was not released: the store is away" in caplog.text


@pytest.mark.parametrize("by_tickets", [False, True])
def test_a_cancelled_run_records_what_was_running_and_leaves_the_rest_open_P19(
    backend: str, by_tickets: bool
) -> None:
    async def main() -> None:
        store, ledger, llm = await new_store(), Ledger(), Model(SCRIPT)
        running: list[str] = []

        async def stay() -> None:
            running.append("one")
            if len(running) == 2:
                group.cancel_scope.cancel()
            await anyio.sleep_forever()

        ledger.during = {"charge": stay, "look": stay}
        runner = TicketRunner(ledger) if by_tickets else None
        async with anyio.create_task_group() as group:
            group.start_soon(make_loop(store, llm, ledger, runner=runner).run, SCOPE)
        assert len((await store.session(SCOPE)).transcript) == 1
        (unresolved,) = await store.unresolved(SCOPE)
        assert unresolved.metadata.name == "charge"

        # The claim was released: the next goes on at once, with the same answer of the model.
        ledger.during = {}
        done = await make_loop(store, llm, ledger).run(SCOPE)
        assert isinstance(done, Answered)
        assert (ledger.count("charge 5"), ledger.count("look cat")) == (1, 2)
        assert llm.requests == 2

    anyio.run(main, backend=backend)


def test_an_error_leaves_the_round_open_for_the_next_run(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    seen: list[str] = []

    def fail_once(event: Any) -> None:
        seen.append(type(event).__name__)
        if seen.count("RoundExecuted") == 1 and seen[-1] == "RoundExecuted":
            raise ValueError("the display is broken")

    llm = Model(SCRIPT)
    with pytest.raises(ValueError, match="the display is broken"):
        form.run(make_loop(store, llm, ledger, on_progress=fail_once))
    assert isinstance(form.run(make_loop(store, llm, ledger, on_progress=fail_once)), Answered)
    assert sorted(ledger.done) == ["charge 5", "look cat"]
    assert llm.requests == 2
    # A round that is taken up makes no request, and its calls were decoded in another run.
    assert seen.count("RequestStarted") == 2
    assert seen.count("RoundDecoded") == 1


def test_an_equal_call_is_refused_in_every_process_until_somebody_resolves_P8(
    form: Form,
) -> None:
    again = call("charge", "p2", amount=5)
    script = [calls(CHARGE), calls(again), calls(call("charge", "p3", amount=5)), ANSWER]
    store, ledger = form.await_(new_store), Ledger()

    class Died(BaseException):
        pass

    def die() -> None:
        end_lease(store)
        form_claim = store._conversations[SCOPE]
        form_claim.fence += 1  # whatever this process writes now is refused
        raise Died

    ledger.during["charge"] = die
    with pytest.raises((Died, TakenOverError)):
        form.run(make_loop(store, Model(script), ledger))
    ledger.during = {}
    done = form.run(make_loop(store, Model(script), ledger))
    assert isinstance(done, Answered)
    assert ledger.count("charge 5") == 1
    said = results(form.await_(store.session, SCOPE))
    assert [status for status, _ in said] == ["error", "rejected", "rejected"]
    (unresolved,) = form.await_(store.unresolved, SCOPE)
    form.await_(store.resolve, SCOPE, unresolved.metadata.id, "did_not_happen", by="ann")
    assert form.await_(store.unresolved, SCOPE) == []


def test_a_call_that_did_not_happen_may_be_made_again_P7_P8(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    script = [
        calls(CHARGE),
        Reply(text="I don't know."),
        calls(call("charge", "p2", amount=5)),
        ANSWER,
    ]
    # One loop, whose executor remembers what it ran itself: the store decides all the same.
    loop = make_loop(store, Model(script), ledger)

    def fail() -> None:
        ledger.during.clear()
        raise ConnectionError("no answer")

    ledger.during["charge"] = fail
    assert isinstance(form.run(loop), Answered)
    form.await_(store.resolve, SCOPE, "p1", "did_not_happen", by="ann")
    form.await_(store.push, SCOPE, "It did not. Again, please.", idempotency_key="m1")
    assert isinstance(form.run(loop), Answered)
    assert ledger.count("charge 5") == 2


def test_a_call_that_happened_is_refused_until_the_model_was_told_P8(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    again = [call("charge", f"p{number}", amount=5) for number in range(2, 5)]
    llm = Model([calls(CHARGE), calls(again[0]), calls(again[1]), ANSWER])

    def fail() -> None:
        ledger.during.clear()
        raise ConnectionError("no answer")

    async def tell(event: Any) -> None:
        if type(event).__name__ == "RequestStarted" and event.round == 2:
            await store.resolve(SCOPE, "p1", "happened", by="ann")

    ledger.during["charge"] = fail
    assert isinstance(form.run(make_loop(store, llm, ledger, on_progress=tell)), Answered)
    session = form.await_(store.session, SCOPE)
    assert [status for status, _ in results(session)] == ["error", "rejected", "ok"]
    # The answer with p2 was made before the model was told, that with p3 after it.
    assert list(said_by_user(session)) == ["Do it, please.", HAPPENED]


def test_what_happened_is_told_before_the_next_turn_and_begins_no_task_P8(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = Model([calls(CHARGE), ANSWER, ANSWER])

    def fail() -> None:
        ledger.during.clear()
        raise ConnectionError("no answer")

    ledger.during["charge"] = fail
    assert isinstance(form.run(make_loop(store, llm, ledger)), Answered)
    form.await_(partial(store.resolve, output={"receipt": 7}), SCOPE, "p1", "happened", by="ann")
    assert isinstance(form.run(make_loop(store, llm, ledger)), Answered)
    assert llm.requests == 2
    assert said_by_user(form.await_(store.session, SCOPE)) == ["Do it, please."]
    form.await_(store.push, SCOPE, "Well?", idempotency_key="m1")
    assert isinstance(form.run(make_loop(store, llm, ledger)), Answered)
    told = f'{HAPPENED} Its output: {{"receipt": 7}}'
    assert said_by_user(form.await_(store.session, SCOPE)) == ["Do it, please.", told, "Well?"]
    assert ledger.count("charge 5") == 1


def die_once(ledger: Ledger) -> None:
    ledger.during.clear()
    raise KeyboardInterrupt


class AwayStore:
    """A store that is away while results are recorded: for a moment, or until `back` is set."""

    def __init__(self, store: MemoryStore, failures: int) -> None:
        self.store = store
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def record(self, claim: Any, name: str, value: Any) -> Any:
        if name == "call:p1" and self.failures > 0:
            self.failures -= 1
            raise sqlite3.OperationalError("database is locked")
        return await self.store.record(claim, name, value)


def test_a_known_result_outlives_a_store_that_is_away_P2(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    away = AwayStore(store, failures=2)
    assert isinstance(form.run(make_loop(away, Model(SCRIPT), ledger)), Answered)
    assert away.failures == 0
    assert ("ok", "charged 5") in results(form.await_(store.session, SCOPE))
    assert form.await_(store.unresolved, SCOPE) == []


def test_a_known_result_is_recorded_on_the_way_out_P2(form: Form) -> None:
    """The store is away for longer than the lease, and back when the run settles."""
    store, ledger = form.await_(new_store), Ledger()
    away = AwayStore(store, failures=1)
    loop = make_loop(away, Model(SCRIPT), ledger, lease=0.02)
    with pytest.raises(sqlite3.OperationalError):
        form.run(loop)
    assert isinstance(form.run(make_loop(store, Model(SCRIPT), ledger)), Answered)
    assert ("ok", "charged 5") in results(form.await_(store.session, SCOPE))
    assert ledger.count("charge 5") == 1


def test_what_happened_in_an_open_round_is_its_result_P8(form: Form) -> None:
    """The process dies in a call; a person knows what it gave before another one goes on."""
    for output, said in (
        ("charged 5", [("ok", "charged 5")]),
        (None, None),
        ({"of": "another type"}, None),
    ):
        store, ledger = form.await_(new_store), Ledger()
        llm = Model([calls(CHARGE, LOOK), ANSWER])

        ledger.during["charge"] = partial(die_once, ledger)
        with pytest.raises(KeyboardInterrupt):
            form.run(make_loop(store, llm, ledger))
        (known,) = form.await_(store.unresolved, SCOPE)
        resolve = partial(store.resolve, output=output)
        form.await_(resolve, SCOPE, known.metadata.id, "happened", by="ann")
        assert isinstance(form.run(make_loop(store, llm, ledger)), Answered)
        session = form.await_(store.session, SCOPE)
        users = said_by_user(session)
        if said is not None:
            assert results(session)[:1] == said
            assert users == ["Do it, please."]
        else:
            assert results(session)[0][0] == "error"
            assert [text.startswith(HAPPENED) for text in users] == [False, True]
        assert ledger.count("charge 5") == 1
        assert form.await_(store.unresolved, SCOPE) == []


def test_a_ticket_of_another_tool_is_not_run_P18(backend: str) -> None:
    async def main() -> None:
        ledger = Ledger()
        llm: Any = Model([calls(LOOK)])
        outcome = await asked().text_turn(llm, tools=Desk).collect()
        assert isinstance(outcome, NeedsTools)
        planned = await outcome.round.apply_hooks(lambda call: RunNormally())
        (ticket,) = planned.tickets(scope=SCOPE)
        planned.discard()
        other = replace(ticket, tool_digest="sha256:other")
        unknown = replace(ticket, call_id="l2", tool="nope")
        ran = await LocalRunner(dispatcher(ledger)).run([other, unknown], Deaf())
        assert [result.outcome for result in ran] == ["failed", "failed"]
        assert ledger.done == []
        assert await LocalRunner(dispatcher(ledger)).run([], Deaf()) == []

    anyio.run(main, backend=backend)


def test_an_idempotent_call_has_the_same_key_in_every_process_P6_P9(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()

    def fail() -> None:
        ledger.during.clear()
        raise KeyboardInterrupt

    ledger.during["save"] = fail
    script = [calls(SAVE), ANSWER]
    with pytest.raises(KeyboardInterrupt):
        form.run(make_loop(store, Model(script), ledger))
    runner = TicketRunner(ledger)
    assert isinstance(form.run(make_loop(store, Model(script), ledger, runner=runner)), Answered)
    assert runner.tickets == ["s1"]
    assert len(ledger.keys) == 2
    assert len(set(ledger.keys)) == 1


def test_a_runner_that_gives_other_results_is_an_error(form: Form) -> None:
    class Forgetful(TicketRunner):
        async def run(self, tickets: Any, journal: Any) -> Any:
            return (await super().run(tickets, journal))[1:]

    store, ledger = form.await_(new_store), Ledger()
    loop = make_loop(store, Model(SCRIPT), ledger, runner=Forgetful(ledger))
    with pytest.raises(ValueError, match="one result for each ticket, in order"):
        form.run(loop)


def test_a_runner_may_leave_the_journal_alone(form: Form) -> None:
    class AtMostOnce(TicketRunner):
        """Its engine begins a call once: it asks nobody."""

        async def run(self, tickets: Any, journal: Any) -> Any:
            from lutumpy.durable import StoreJournal
            from lutumpy.execution import ExecutionResult

            assert isinstance(journal, StoreJournal)
            return [ExecutionResult(ticket.metadata, "done", "ok") for ticket in tickets]

    store, ledger = form.await_(new_store), Ledger()
    loop = make_loop(store, Model(SCRIPT), ledger, runner=AtMostOnce(ledger))
    assert isinstance(form.run(loop), Answered)
    assert results(form.await_(store.session, SCOPE)) == [("ok", "done"), ("ok", "done")]
