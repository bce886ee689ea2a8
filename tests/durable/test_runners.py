"""What runners on engines have in common, on an engine of the test's own (P5, P7, P9, P18)."""

from __future__ import annotations

import builtins
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SAVE,
    SCOPE,
    Desk,
    Ledger,
    Model,
    calls,
    dispatcher,
    end_lease,
    make_loop,
    new_store,
    results,
)

from lutumpy import CallTicket, TakenOverError, ToolResult, Toolset, tool, tool_fn
from lutumpy.durable import (
    Answered,
    Claim,
    DbosRunner,
    EngineError,
    MemoryStore,
    RoundJournal,
    StoreJournal,
    TemporalRunner,
    serve_dbos,
    temporal_activity,
    temporal_workflows,
)
from lutumpy.durable.dbos import _check_sqlite, _in_thread
from lutumpy.durable.engines import (
    check_dispatch,
    engine_id,
    lost,
    read_outcome,
    run_in_worker,
    run_on_engine,
)
from lutumpy.durable.temporal import make_order
from lutumpy.execution import (
    Dispatcher,
    ExecutionResult,
    ToolExecutor,
    as_execution_result,
    run_ticket,
)

SCRIPT = [calls(LOOK, CHARGE, SAVE), ANSWER]
TICKET = CallTicket(
    SCOPE, "p1", "charge", '{"amount": 5}', {"amount": 5, "memo": ""}, "key", "once", 15.0, 3,
    Desk.charge.definition.digest, "00", 0,
)  # fmt: skip


class Engine:
    """An engine as the real ones: it runs a call in a worker, and knows it afterwards."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.ended: dict[str, Any] = {}
        self.began: list[str] = []
        self.reachable = True
        self.slow: float = 0
        self.is_lost = False
        self.stopped: list[str] = []
        self.three_ended = anyio.Event()

    async def has(self, ticket: CallTicket) -> bool:
        await self._reach()
        return engine_id(ticket) in {*self.ended, *self.began}

    async def run(self, ticket: CallTicket) -> ExecutionResult:
        await self._reach()
        name = engine_id(ticket)
        if name not in self.began:
            self.began.append(name)
            self.ended[name] = await run_in_worker(ticket.dump(), Desk, dispatcher(self.ledger))
            if len(self.ended) == 3:
                self.three_ended.set()
        if self.is_lost:
            await anyio.sleep(0.1)  # meanwhile the others end
            raise EngineError("it was there a moment ago")
        await anyio.sleep(self.slow)
        return read_outcome(self.ended[name], ticket)

    async def stop(self, ticket: CallTicket) -> ExecutionResult | None:
        await self._reach()
        self.stopped.append(ticket.call_id)
        if ticket.effect == "read":  # as if the others hadn't ended
            return read_outcome(self.ended[engine_id(ticket)], ticket)
        return None

    async def _reach(self) -> None:
        await anyio.lowlevel.checkpoint()
        if not self.reachable:
            raise EngineError("it is gone")


class Runner:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def run(
        self, tickets: Sequence[CallTicket], journal: RoundJournal
    ) -> list[ExecutionResult]:
        return await run_on_engine(self.engine, tickets, journal)


def go(backend: str, main: Any) -> None:
    anyio.run(main, backend=backend)


def test_a_round_runs_on_an_engine_and_its_results_are_in_order(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        done = await make_loop(store, Model(SCRIPT), ledger, runner=Runner(engine)).run(SCOPE)
        assert isinstance(done, Answered)
        said = results(await store.session(SCOPE))
        assert said == [("ok", "cat means tac"), ("ok", "charged 5"), ("ok", "saved note")]
        assert len({*engine.began}) == 3

    go(backend, main)


def test_a_second_loop_finds_what_the_first_one_began_P9(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        engine.is_lost = True
        llm = Model(SCRIPT)
        with pytest.raises(EngineError):
            await make_loop(store, llm, ledger, runner=Runner(engine)).run(SCOPE)
        engine.is_lost = False
        await make_loop(store, llm, ledger, runner=Runner(engine)).run(SCOPE)
        assert [status for status, _ in results(await store.session(SCOPE))] == ["ok"] * 3
        assert sorted(ledger.done) == ["charge 5", "look cat", "save note"]
        assert llm.requests == 2

    go(backend, main)


def test_a_marked_call_that_the_engine_doesn_t_know_is_not_begun_P7(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        engine.is_lost = True
        llm = Model(SCRIPT)
        with pytest.raises(EngineError):
            await make_loop(store, llm, ledger, runner=Runner(engine)).run(SCOPE)
        fresh = Engine(ledger)  # a server that was set up anew
        await make_loop(store, llm, ledger, runner=Runner(fresh)).run(SCOPE)
        said = results(await store.session(SCOPE))
        assert [status for status, _ in said] == ["ok", "error", "ok"]
        assert "knows nothing of it. The outcome is unknown" in said[1][1]
        assert ledger.count("charge 5") == 1
        assert ledger.count("look cat") == 2
        assert [call.metadata.id for call in await store.unresolved(SCOPE)] == ["p1"]

    go(backend, main)


def test_a_call_that_an_engine_begins_again_is_counted(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        llm = Model(SCRIPT)
        for number in range(3):  # a server that is set up anew each time
            engine = Engine(ledger)
            engine.is_lost = True
            with pytest.raises(EngineError):
                await make_loop(store, llm, ledger, runner=Runner(engine)).run(SCOPE)
            claim = await store.claim(SCOPE)
            assert isinstance(claim, Claim)
            # The `once` call has its marker instead, and isn't begun again.
            expected = {"tries:call:l1": number, "tries:call:s1": number} if number else {}
            assert claim.tries == expected
            await store.release(claim)

    go(backend, main)


def test_a_cancelled_run_stops_its_calls_and_records_what_may_have_run_P19(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        engine.slow = math.inf
        llm = Model(SCRIPT)
        loop = make_loop(store, llm, ledger, runner=Runner(engine))
        async with anyio.create_task_group() as group:
            group.start_soon(loop.run, SCOPE)
            await engine.three_ended.wait()
            group.cancel_scope.cancel()
        assert sorted(engine.stopped) == ["l1", "p1", "s1"]
        assert [call.metadata.id for call in await store.unresolved(SCOPE)] == ["p1"]
        claim = await store.claim(SCOPE)
        assert isinstance(claim, Claim)
        kept = {name for name in claim.records if name.startswith("call:")}
        assert kept == {"call:l1", "call:p1"}
        await store.release(claim)
        engine.slow = 0
        await loop.run(SCOPE)
        said = results(await store.session(SCOPE))
        assert [status for status, _ in said] == ["ok", "error", "ok"]
        assert "was cancelled before the tool gave an answer" in said[1][1]

    go(backend, main)


@pytest.mark.parametrize("fault", ["taken over", "unreachable", "store"])
def test_what_can_t_be_stopped_goes_on_and_is_not_forgotten_P4_P19(
    backend: str, fault: str
) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        engine.slow = math.inf
        renew, record = store.renew, store.record

        async def fail(*args: Any, **options: Any) -> Any:
            raise ConnectionError("the database is gone")

        loop = make_loop(store, Model(SCRIPT), ledger, runner=Runner(engine))
        async with anyio.create_task_group() as group:
            group.start_soon(loop.run, SCOPE)
            await engine.three_ended.wait()
            if fault == "taken over":
                await store.break_lease(SCOPE, by="ann")
            elif fault == "unreachable":
                engine.reachable = False
            else:
                store.renew = store.record = fail
            group.cancel_scope.cancel()
        store.renew, store.record = renew, record
        assert engine.stopped == []
        unresolved = [call.metadata.id for call in await store.unresolved(SCOPE)]
        assert unresolved == (["p1"] if fault == "unreachable" else [])

    go(backend, main)


def test_an_engine_that_is_gone_leaves_no_marker(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)
        engine.reachable = False
        loop = make_loop(store, Model(SCRIPT), ledger, runner=Runner(engine))
        with pytest.raises(EngineError, match="gone"):
            await loop.run(SCOPE)
        engine.reachable = True
        await loop.run(SCOPE)
        assert [status for status, _ in results(await store.session(SCOPE))] == ["ok"] * 3

    go(backend, main)


def test_an_equal_call_of_an_unresolved_one_never_reaches_the_engine_P8(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        engine = Engine(ledger)

        def stop() -> None:
            raise SystemExit(3)

        ledger.during["charge"] = stop
        again = replace(CHARGE, id="p2")
        script = [calls(CHARGE), calls(again), ANSWER]
        await make_loop(store, Model(script), ledger, runner=Runner(engine)).run(SCOPE)
        said = results(await store.session(SCOPE))
        assert [status for status, _ in said] == ["error", "rejected"]
        assert "ended with SystemExit" in said[0][1]
        assert len(engine.began) == 1

    go(backend, main)


def test_who_was_taken_over_gives_the_engine_nothing_P4(backend: str) -> None:
    async def main() -> None:
        store, ledger = await new_store(), Ledger()

        class Sleeper(Engine):
            async def has(self, ticket: CallTicket) -> bool:
                end_lease(store)
                assert isinstance(await store.claim(SCOPE), Claim)
                return False

        engine = Sleeper(ledger)
        loop = make_loop(store, Model([calls(CHARGE), ANSWER]), ledger, runner=Runner(engine))
        with pytest.raises(TakenOverError):
            await loop.run(SCOPE)
        assert engine.began == []

    go(backend, main)


# --- a worker --------------------------------------------------------------------------------


def test_a_call_of_another_tool_is_failed_in_a_worker_P18(backend: str) -> None:
    async def main() -> None:
        ledger = Ledger()
        other = replace(TICKET, tool_digest="sha256:another")
        outcome = await run_in_worker(other.dump(), Desk, dispatcher(ledger))
        result = read_outcome(outcome, other)
        assert (result.outcome, result.attempts, ledger.done) == ("failed", 0, [])

    go(backend, main)


@pytest.mark.parametrize("outcome", [None, "done", 7, [], {}, {"status": "ok"}, {"outcome": "ok"}])
def test_what_is_no_outcome_counts_as_lost(outcome: Any) -> None:
    assert read_outcome(outcome, TICKET).outcome == "maybe_executed"
    assert read_outcome(outcome, replace(TICKET, effect="read")).outcome == "failed"


def test_a_lost_call_that_may_run_again_says_so() -> None:
    said = lost(replace(TICKET, effect="idempotent"), "It ended.")
    assert said.content == "It ended. It may have run; calling it again does no harm."


def test_a_recorded_result_of_another_class_becomes_one_of_the_executor_s() -> None:
    found = as_execution_result(ToolResult(TICKET.metadata, "no", "rejected", "no"))
    assert (found.outcome, found.content, found.rejection_reason) == ("rejected", "no", "no")


@tool_fn
def nothing() -> None:
    """Do nothing."""


class Other(Toolset):
    nothing = tool(nothing)


def test_a_dispatcher_that_doesn_t_fit_is_refused_before_anything_is_served() -> None:
    with pytest.raises(TypeError, match="takes a Dispatcher, not dict"):
        check_dispatch(Desk, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not for"):
        check_dispatch(Desk, Dispatcher(Other))


def test_a_worker_writes_to_the_loop_s_journal_with_a_token(backend: str) -> None:
    """P4, P5: what it begins is marked, what it ends recorded, until somebody takes over."""

    class Queue:
        """A plain queue in place of an engine, which delivers everything twice."""

        def __init__(self, store: MemoryStore, ledger: Ledger) -> None:
            self.store, self.ledger = store, ledger
            self.tokens: list[Any] = []

        async def run(self, tickets: Any, journal: RoundJournal) -> Any:
            found = []
            for ticket in tickets:
                assert await journal.known(ticket) is None
                self.tokens.append(journal.token())
                first = await self.work(ticket.dump(), journal.token())
                second = await self.work(ticket.dump(), journal.token())
                assert (first["outcome"], first["content"]) == (
                    second["outcome"],
                    second["content"],
                )
                found.append(ToolResult.load(first, ticket))
            return found

        async def work(self, data: Any, token: Any) -> Any:
            executor = ToolExecutor(journal=StoreJournal.of_token(self.store, token))
            ticket = CallTicket.load(data)
            return await run_ticket(ticket, Desk, dispatcher(self.ledger), executor=executor)

    async def main() -> None:
        store, ledger = await new_store(), Ledger()
        queue = Queue(store, ledger)
        script = [calls(CHARGE), ANSWER]
        await make_loop(store, Model(script), ledger, runner=queue).run(SCOPE)
        assert results(await store.session(SCOPE)) == [("ok", "charged 5")]
        assert ledger.count("charge 5") == 1
        await store.claim(SCOPE)
        with pytest.raises(TakenOverError):
            await queue.work(TICKET.dump(), queue.tokens[0])
        assert ledger.count("charge 5") == 1

    go(backend, main)


@pytest.mark.parametrize(
    "token", [{}, None, {"scope": "s", "fence": "1", "round": 1}, {"scope": "s", "fence": 1}]
)
def test_what_is_no_token_is_refused(token: Any) -> None:
    with pytest.raises(ValueError, match="the token of a journal has no"):
        StoreJournal.of_token(MemoryStore(), token)


# --- without the packages --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: TemporalRunner(None), "temporalio"),  # type: ignore[arg-type]
        (lambda: temporal_activity(Desk, dispatcher(Ledger())), "temporalio"),
        (temporal_workflows, "temporalio"),
        (DbosRunner, "dbos"),
        (lambda: serve_dbos(Desk, dispatcher(Ledger())), "dbos"),
    ],
)
def test_without_its_package_an_engine_says_what_to_install(
    make: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module = builtins.__import__

    def refuse(name: str, *args: Any, **options: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == package:
            raise ImportError(name)
        return import_module(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError) as raised:
        make()
    extra = package.removesuffix("io")
    assert f'needs {package}; install it with: python -m pip install ".[{extra}]"' in str(
        raised.value
    )
    assert "\n" not in str(raised.value)


def test_a_sqlite_that_is_too_old_for_dbos_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.40.1")
    _check_sqlite("postgresql+psycopg")
    with pytest.raises(EngineError, match=r"this Python has 3\.40\.1: use Postgres, or a Python"):
        _check_sqlite("sqlite")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 42, 0))
    _check_sqlite("sqlite")


def test_a_thread_that_asks_for_ever_is_left_behind(backend: str) -> None:
    async def main() -> None:
        assert await _in_thread(lambda: 7) == 7
        with pytest.raises(KeyError):
            await _in_thread(partial({}.__getitem__, "a"))  # type: ignore[arg-type]

    go(backend, main)


@pytest.mark.parametrize(
    ("effect", "timeout", "retries", "attempts", "seconds"),
    [
        ("once", 15.0, 3, 1, 75.0),
        ("read", 15.0, 0, 2, 75.0),
        ("idempotent", 10.0, 2, 3, 240.0),
        ("once", math.inf, 0, 1, 30 * 86_400.0),
    ],
)
def test_temporal_begins_a_once_call_one_time_and_others_as_their_tool_says_P5(
    effect: Any, timeout: float, retries: int, attempts: int, seconds: float
) -> None:
    ticket = replace(TICKET, effect=effect, timeout=timeout, max_retries=retries)
    order = make_order(ticket, 10.0)
    assert (order["attempts"], order["seconds"]) == (attempts, seconds)
    assert CallTicket.load(order["ticket"]) == ticket  # type: ignore[arg-type]
