"""What stores do for workers and operators (`OperatorStore`)."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import Desk, Ledger, Model, asked, call, dispatcher, make_loop, results
from postgres_server import has_pgbouncer, serve_pgbouncer
from stores_toolkit import claimed, commit_text, follow, open_claim, plan_of, result_of

from lutumpy import Hold, RunNormally, Session, TakenOverError
from lutumpy.durable import (
    Answered,
    Claim,
    DurableLoop,
    MemoryStore,
    OperatorStore,
    PostgresStore,
    SqliteStore,
    StoreError,
    Stuck,
    Taken,
    Waiting,
)
from lutumpy.durable.columns import key_of
from lutumpy.durable.log import RunStopped
from lutumpy.testing import Reply

MONTH = 30 * 24 * 3600


def change_lease(store: Any, tmp_path: Path, **columns: Any) -> None:
    """Write to the row of a conversation as a clock that ran ahead would have."""
    if isinstance(store, MemoryStore):
        found = store._conversations["s"]  # a lease by another clock has no public way in
        assert found.lease_until is not None
        found.lease_until += timedelta(seconds=MONTH)
        return
    query = f"UPDATE {{}}sessions SET lease_until = lease_until + {MONTH}"
    if "lease" in columns:
        query += ", lease = NULL"  # as a release without that column leaves it
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(tmp_path / "agent.db")) as connection, connection:
            connection.execute(query.format(""))
    else:
        import psycopg

        with psycopg.connect(store._url, autocommit=True) as other:
            other.execute(query.format(f"{store._schema}."))


def past(**ago: float) -> datetime:
    return datetime.now(timezone.utc) - timedelta(**ago)


# --- leases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [{}, {"lease": None}], ids=["its length", "no length"])
async def test_a_lease_of_a_clock_that_ran_ahead_is_not_believed(
    store: Any, tmp_path: Path, columns: Any
) -> None:
    first = await open_claim(store)
    assert isinstance(await store.claim("s"), Taken)
    change_lease(store, tmp_path, **columns)
    assert (await store.scopes())[0].claimed_until is None
    assert await store.next() == "s"
    second = await claimed(store)
    with pytest.raises(TakenOverError):
        await store.record(first, "turn", 1)
    await store.record(second, "turn", 2)


async def test_a_lease_lasts_an_hour_at_most(store: Any) -> None:
    await store.create("s", asked())
    for lease in (3601.0, float("inf"), float("nan"), 0.0):
        with pytest.raises(ValueError, match="3600 seconds at most"):
            await store.claim("s", lease=lease)
    with pytest.raises(ValueError, match="3600 seconds at most"):
        DurableLoop(store, Model([]), tools=Desk, dispatch=dispatcher(Ledger()), lease=MONTH)
    assert isinstance(await store.claim("s", lease=3600), Claim)


async def test_a_broken_lease_lets_another_go_on_and_its_process_write_nothing(store: Any) -> None:
    first = await open_claim(store)
    assert await store.break_lease("s", by="ann") is True
    for write in (store.renew(first), store.record(first, "turn", 1), store.begin(first, "x")):
        with pytest.raises(TakenOverError):
            await write
    assert await store.break_lease("s", by="ann") is False  # there is none any more
    (info,) = await store.scopes()
    assert "broken by ann" in str(info.last_error)
    second = await claimed(store)
    assert second.fence > first.fence + 1
    with pytest.raises(StoreError) as raised:
        await store.break_lease("nobody", by="ann")
    assert raised.value.kind == "unknown_scope"


async def test_a_run_whose_lease_is_broken_ends_and_another_goes_on(store: Any) -> None:
    await store.create("s", asked())
    ledger = Ledger()
    ledger.during["charge"] = lambda: store.break_lease("s", by="ann")
    script = [Reply(calls=[call("charge", "c1", amount=7)]), Reply(text="done")]
    with pytest.raises(TakenOverError):
        await make_loop(store, Model(script), ledger).run("s")
    ledger.during.clear()
    assert isinstance(await make_loop(store, Model(script), ledger).run("s"), Answered)
    assert ledger.count("charge 7") == 1
    status, text = results(await store.session("s"))[0]
    assert (status, "outcome is unknown" in text) == ("error", True)


async def test_a_run_that_is_stopped_is_gone_on_with_once_something_comes_W19(store: Any) -> None:
    first = await open_claim(store)
    await store.push("s", "more", idempotency_key="1")
    assert await store.break_lease("s", by="ann", stop=True) is True
    assert await store.break_lease("s", by="ann", stop=True) is False  # nobody runs it any more
    with pytest.raises(TakenOverError):
        await store.renew(first)
    (event,) = await follow(store, 1)
    assert (event.load(), event.task, event.round) == (RunStopped("ann"), 1, 1)
    (info,) = await store.scopes()
    assert (info.status, info.last_error) == ("done", "it was stopped by ann")
    assert await store.next() is None
    # A message that comes then lets it go on, and so does what its open round waits for.
    await store.push("s", "and more", idempotency_key="2")
    assert await store.next(reserve=0) == "s"
    second = await claimed(store)
    await store.record(second, "plan", plan_of("c1"))
    assert await store.break_lease("s", by="ann", stop=True) is True
    assert await store.next() is None
    await store.decide("s", "sha256:1", {"c1": {"decision": "run"}}, by="ann")
    assert await store.next() == "s"


async def test_a_run_that_has_come_to_wait_is_not_stopped_any_more_W1_W19(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("c1"))
    await store.add_events(claim, [{"event": "RunWaits", "status": "waiting"}])
    assert await store.break_lease("s", by="ann", stop=True) is True
    assert (await store.scopes())[0].status == "waiting"
    assert await store.last_event("s") == 1


# --- keys --------------------------------------------------------------------------------------


async def test_ids_of_any_length_are_kept_and_told_apart(store: Any) -> None:
    """Proxies put signatures of thousands of characters, which don't compress, into call ids."""
    noise = "".join(
        random.Random(1).choices("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789", k=4000)
    )
    scope = f"scope {noise}"
    ids = [noise + "a", noise + "b", "\0" + noise, "€" * 4000]
    # One that looks like the key of another is another one all the same.
    ids.append(key_of(ids[0]))
    claim = await open_claim(store, scope)
    for call_id in ids:
        assert await store.begin(claim, f"call:{call_id}") is True
        assert await store.begin(claim, f"call:{call_id}") is False
    await store.record(claim, "plan", plan_of(*ids))
    await store.release(claim)
    claim = await claimed(store, scope)
    assert claim.scope == scope
    assert claim.begun == {f"call:{call_id}" for call_id in ids}
    for number, call_id in enumerate(ids):
        await store.record(claim, f"call:{call_id}", result_of(call_id))
        await store.push(scope, f"message {number}", idempotency_key=call_id)
        await store.push(scope, "again", idempotency_key=call_id)
        decision = {call_id: {"decision": "run"}}
        assert await store.decide(scope, "sha256:1", decision, by="ann") is True
    unknown = await store.unresolved(scope)
    assert sorted([each.metadata.id for each in unknown]) == sorted(ids)
    for call_id in ids:
        await store.resolve(scope, call_id, "happened", by="ann")
    inbox = await store.inbox(scope)
    assert len(inbox) == 3 * len(ids)
    taken = [entry.id for entry in inbox if entry.kind != "decision"]
    assert f"message:{ids[0]}" in taken
    await commit_text(store, claim, "more", taken=taken)
    assert await store.inbox(scope) == ()
    assert [each.scope for each in await store.scopes(prefix="scope ")] == [scope]
    assert [each.scope for each in await store.scopes(after=scope)] == []


# --- attempts ----------------------------------------------------------------------------------


async def test_attempts_are_counted_until_a_run_ends_well(store: Any) -> None:
    claim = await open_claim(store)
    assert (claim.attempts, claim.last_error) == (1, None)
    await store.fail(claim, "ValueError: no")
    (info,) = await store.scopes()
    assert (info.attempts, info.last_error, info.status) == (1, "ValueError: no", "open")
    claim = await claimed(store)
    assert (claim.attempts, claim.last_error) == (2, "ValueError: no")
    assert [await store.count_try(claim, "call:x") for _ in range(2)] == [1, 2]
    await store.release(claim)  # cut off: that is nobody's failure
    claim = await claimed(store)
    assert (claim.attempts, claim.tries, claim.begun) == (2, {"tries:call:x": 2}, frozenset())
    claim = await commit_text(store, claim, "more")
    (info,) = await store.scopes()
    assert (info.attempts, info.last_error) == (1, None)
    await store.release(claim, status="done")
    assert (await store.scopes())[0].attempts == 0


def _greeted() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_assistant("What can I do for you?")
    return session


def _instructed() -> Session:
    session = Session()
    session.push_developer("Be brief.")
    return session


@pytest.mark.parametrize("begin", [Session, _instructed, _greeted])
async def test_no_worker_gets_a_conversation_in_which_nothing_was_said(
    store: Any, begin: Callable[[], Session]
) -> None:
    """The message comes a moment after the conversation; a worker in between would have failed."""
    await store.create("s", begin())
    (info,) = await store.scopes()
    assert (await store.next(), info.status, info.task) == (None, "done", 0)
    await store.fork("s", at=(0, 0), to="fork")
    assert await store.next() is None
    for scope in ("s", "fork"):
        await store.push(scope, "Do it.", idempotency_key="m1")
        assert await store.next() == scope
        answered = await make_loop(store, Model([Reply(text="done")]), Ledger()).run(scope)
        assert isinstance(answered, Answered)
        (info,) = await store.scopes(prefix=scope)
        assert (info.status, info.task) == ("done", 1)


async def test_a_process_that_died_is_noticed(store: Any) -> None:
    await store.create("s", asked())
    await claimed(store, lease=0.01)
    await anyio.sleep(0.05)
    claim = await claimed(store)
    assert claim.attempts == 2
    assert "ended without giving it up" in str(claim.last_error)


async def test_a_conversation_that_fails_again_and_again_is_stuck(store: Any) -> None:
    await store.create("s", asked())
    ledger = Ledger()

    def die() -> None:
        raise SystemExit("killed")

    ledger.during["look"] = die
    script = [Reply(calls=[call("look", "c1", word="a"), call("save", "c2", title="t")])] * 9
    for attempt in range(3):
        with pytest.raises(SystemExit):
            await make_loop(store, Model(script), ledger, max_attempts=3).run("s")
        (info,) = await store.scopes()
        assert info.attempts == attempt + 1
    assert (info.status, info.last_error) == ("stuck", "SystemExit: killed")
    assert await store.next() is None
    # The next worker isn't killed.
    done = len(ledger.done)
    stuck = await make_loop(store, Model(script), ledger, max_attempts=3).run("s")
    assert isinstance(stuck, Stuck)
    assert stuck.error == "SystemExit: killed; begun last: call c1, 2 times again"
    assert len(ledger.done) == done
    again = await make_loop(store, Model(script), ledger, max_attempts=3).run("s")
    assert again == stuck  # to look is no attempt
    (info,) = await store.scopes()
    assert (again.attempts, info.attempts, info.status) == (3, 3, "stuck")
    assert info.last_error == stuck.error
    # Somebody mends it.
    assert await store.retry("s", by="ann") is True
    assert await store.retry("s", by="ann") is False
    ledger.during.clear()
    answered = await make_loop(store, Model([*script[:1], Reply(text="ok")]), ledger).run("s")
    assert isinstance(answered, Answered)
    assert (await store.scopes())[0].status == "done"


KILLER = """
import os, sys
import anyio
from durable_toolkit import Ledger, Model, asked, call, make_loop
from lutumpy.durable import SqliteStore
from lutumpy.testing import Reply

async def work():
    async with SqliteStore(sys.argv[1]) as store:
        await store.create("s", asked())
        ledger = Ledger()
        ledger.during["look"] = lambda: os._exit(9)
        script = [Reply(calls=[call("look", "c1", word="a")])]
        ended = await make_loop(store, Model(script), ledger, max_attempts=2, lease=0.2).run("s")
        print(type(ended).__name__, ended.attempts, ended.error)

anyio.run(work)
"""


@pytest.mark.pure
@pytest.mark.slow
def test_a_tool_that_kills_its_process_kills_no_further_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLER, str(tmp_path / "agent.db")]
    codes: list[int] = []
    for _ in range(3):
        here = Path(__file__).parent
        done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=60)
        codes.append(done.returncode)
        time.sleep(0.3)  # the lease of a killed process ends by itself
    assert codes == [9, 9, 0]
    assert "Stuck 2 the process that went on with it ended" in done.stdout
    assert "begun last: call c1, 1 times again" in done.stdout


@pytest.mark.slow
async def test_what_waits_or_is_cancelled_is_not_an_attempt(store: Any) -> None:
    await store.create("s", asked())
    ledger = Ledger()

    def hold(found: Any) -> Any:
        return Hold() if found.metadata.id == "c2" else RunNormally()

    script = [Reply(calls=[call("look", "c1", word="a"), call("look", "c2", word="b")])]
    for _ in range(4):
        loop = make_loop(store, Model(script), ledger, hooks=hold, max_attempts=1)
        assert isinstance(await loop.run("s"), Waiting)
    (plan,) = await store.held()
    await store.decide("s", plan.digest, {"c2": {"decision": "run"}}, by="ann")
    ledger.during["look"] = lambda: anyio.sleep(60)
    for _ in range(2):
        with anyio.move_on_after(0.2):
            await make_loop(store, Model(script), ledger, max_attempts=1).run("s")
    assert (await store.scopes())[0].attempts == 0


def test_a_limit_of_attempts_is_a_positive_number() -> None:
    for wrong, kind in ((0, ValueError), (True, TypeError), (1.5, TypeError)):
        with pytest.raises(kind, match="max_attempts="):
            make_loop(MemoryStore(), Model([]), Ledger(), max_attempts=wrong)


# --- lists -------------------------------------------------------------------------------------


async def test_conversations_are_found_by_prefix_and_status_in_pages(store: Any) -> None:
    names = ["a/1", "a/2", "a/\0", "a/€", "b/1", "escaped:x", "coded:y", "a", "é/1", "e"]
    for name in names:
        await store.create(name, asked())
    for prefix in ("", "a", "a/", "a/\0", "b", "e", "escaped:", "coded:", "é", "zz", "\ud800"):
        found = await store.scopes(prefix=prefix)
        wanted = [name for name in names if name.startswith(prefix)]
        assert sorted([each.scope for each in found]) == sorted(wanted), prefix
    claim = await claimed(store, "a/2")
    await store.release(claim, status="done")
    found = await store.scopes(prefix="a/", status="open")
    assert sorted([each.scope for each in found]) == ["a/\0", "a/1", "a/€"]
    assert len(await store.scopes(prefix="a/", limit=2)) == 2
    if not isinstance(store, MemoryStore):
        with pytest.raises(ValueError, match="100 characters"):
            await store.scopes(prefix="x" * 101)
    (info,) = await store.scopes(prefix="a/2")
    assert info.created is not None
    assert info.since is not None
    assert info.created <= info.since <= info.updated + timedelta(seconds=1)
    assert 0 <= info.age < 60
    assert info.task == 1


async def test_what_waits_is_listed_by_prefix_in_pages(store: Any) -> None:
    for name in ("b/1", "a/2", "a/1"):
        claim = await open_claim(store, name)
        await store.record(claim, "plan", plan_of("x"))
        await store.release(claim, status="waiting")
    pages: list[str] = []
    last = None
    while page := await store.held(limit=1, after=last):
        pages += [each.scope for each in page]
        last = page[-1]
    assert pages == ["b/1", "a/2", "a/1"]
    assert [each.scope for each in await store.held(prefix="a/")] == ["a/2", "a/1"]
    (info,) = await store.scopes(prefix="b/")
    assert info.waiting_since is not None


async def test_calls_of_unknown_outcome_are_listed_over_all_conversations(store: Any) -> None:
    for name in ("b/1", "a/1"):
        claim = await open_claim(store, name)
        await store.record(claim, "call:x", result_of("x"))
    await store.record(claim, "call:y", result_of("y"))
    found = await store.unresolved()
    assert [(each.scope, each.metadata.id) for each in found] == [
        ("b/1", "x"),
        ("a/1", "x"),
        ("a/1", "y"),
    ]
    assert [each.scope for each in await store.unresolved(prefix="b/")] == ["b/1"]
    assert len(await store.unresolved(limit=2)) == 2
    await store.resolve("a/1", "y", "happened", by="ann")
    assert len(await store.unresolved()) == 2


# --- workers -----------------------------------------------------------------------------------


async def test_the_next_one_is_the_one_that_waited_longest(store: Any) -> None:
    for name in ("x/b", "x/a", "y/c"):
        await store.create(name, asked())
        await anyio.sleep(0.005)  # clocks of databases tick in milliseconds
    assert await store.next(prefix="y/") == "y/c"
    assert [await store.next(), await store.next(), await store.next()] == ["x/b", "x/a", None]
    # What nobody claimed is given again.
    await anyio.sleep(0.01)
    await store.create("x/d", asked())
    assert await store.next(reserve=0.01) == "x/d"
    await anyio.sleep(0.05)
    assert await store.next() == "x/d"
    # A claimed, an answered and a failed one aren't.
    claim = await claimed(store, "x/d")
    await store.release(claim, status="done")
    assert await store.next() is None
    await store.push("x/d", "more", idempotency_key="1")
    assert await store.next(reserve=0) == "x/d"
    claim = await claimed(store, "x/d")
    await store.fail(claim, "no")
    assert await store.next() is None


async def test_workers_share_what_there_is_to_do(make: Callable[[], Any]) -> None:
    first, second = make(), make()
    names = [f"c{number}" for number in range(6)]
    done: list[str] = []
    all_done = anyio.Event()
    async with anyio.create_task_group() as group:

        async def work(store: Any) -> None:
            async for scope in store.watch(poll=0.05):
                claim = await claimed(store, scope)
                await store.release(claim, status="done")
                done.append(scope)
                if len(done) == len(names):
                    all_done.set()
                if len(done) == len(names) + 1:
                    group.cancel_scope.cancel()

        group.start_soon(work, first)
        group.start_soon(work, second)
        for name in names[:3]:
            await first.create(name, asked())
        await anyio.sleep(0.1)
        for name in names[3:]:
            await second.create(name, asked())
        with anyio.fail_after(20):
            await all_done.wait()
        await first.push("c0", "more", idempotency_key="1")
    assert sorted(done) == sorted([*names, "c0"])


async def _watched(store: PostgresStore, other: PostgresStore, poll: float) -> str:
    """The first that a watcher gets, who began to wait before it was there."""
    async with anyio.create_task_group() as group:

        async def create() -> None:
            await anyio.sleep(0.3)
            await other.create("s", asked())

        group.start_soon(create)
        watch = store.watch(poll=poll)
        with anyio.fail_after(10):
            found = await watch.__anext__()
        await watch.aclose()  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("lost", [False, True])
async def test_a_watcher_of_postgres_is_woken(postgres_url: str, *, lost: bool) -> None:
    import psycopg

    schema = f"watched{int(lost)}"
    async with (
        PostgresStore(postgres_url, schema=schema) as store,
        PostgresStore(postgres_url, schema=schema) as other,
    ):
        assert await other.scopes() == []
        if not lost:
            assert await _watched(store, other, poll=60) == "s"
            return
        # Its server closes the connection meanwhile: another one is opened.
        watch = store.watch(poll=0.2)
        await store.create("first", asked())
        assert await watch.__anext__() == "first"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()"
            )
        await other.create("s", asked())
        with anyio.fail_after(10):
            assert await watch.__anext__() == "s"
        await watch.aclose()  # type: ignore[attr-defined]


@pytest.mark.skipif(not has_pgbouncer(), reason="there is no pgbouncer")
async def test_behind_pgbouncer_a_watcher_looks_and_nothing_listens(postgres_url: str) -> None:
    import psycopg

    with serve_pgbouncer(postgres_url) as url:
        async with (
            PostgresStore(url, schema="bounced") as store,
            PostgresStore(postgres_url, schema="bounced") as other,
        ):
            assert await _watched(store, other, poll=0.1) == "s"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            ).fetchone()
    assert found == (0,)


# --- history -----------------------------------------------------------------------------------

SCRIPT = [
    Reply(calls=[call("look", "c1", word="a")]),
    Reply(calls=[call("charge", "c2", amount=40), call("save", "c3", title="t")]),
    Reply(text="done"),
]


async def _history(store: Any, scope: str = "s") -> Ledger:
    ledger = Ledger()
    await store.create(scope, asked())
    assert isinstance(await make_loop(store, Model(SCRIPT), ledger).run(scope), Answered)
    await store.push(scope, "more", idempotency_key="1")
    script = [*SCRIPT, Reply(text="again")]
    assert isinstance(await make_loop(store, Model(script), ledger).run(scope), Answered)
    return ledger


async def test_past_rounds_are_listed_with_their_effects(store: Any) -> None:
    await _history(store)
    rows = await store.history("s")
    assert [(row.task, row.round, row.number) for row in rows] == [
        *[(1, number, number) for number in range(4)],
        *[(2, 0, 4), (2, 1, 5)],
    ]
    assert [each.metadata.id for row in rows for each in row.effects] == ["c2", "c3"]
    assert [row.items for row in rows] == sorted([row.items for row in rows])
    assert [row.number for row in await store.history("s", after=3, limit=1)] == [4]
    with pytest.raises(StoreError, match="'nobody'"):
        await store.history("nobody")


async def test_a_fork_goes_on_from_an_old_round_and_repeats_no_effect(store: Any) -> None:
    await _history(store)
    await store.fork("s", at=(1, 1), to="fork")
    old, new = await store.session("s"), await store.session("fork")
    assert new.dump()["items"] == old.dump()["items"][: len(new.transcript)]
    assert [(each.scope, each.metadata.id) for each in await store.unresolved("fork")] == [
        ("fork", "c2"),
        ("fork", "c3"),
    ]
    ledger = Ledger()
    script = [
        Reply(),
        Reply(calls=[call("charge", "d1", amount=40), call("save", "d2", title="t")]),
        Reply(calls=[call("charge", "d3", amount=41), call("save", "d4", title="u")]),
        Reply(text="forked"),
    ]
    await store.resolve("fork", "c3", "did_not_happen", by="ann")
    answered = await make_loop(store, Model(script), ledger).run("fork")
    assert isinstance(answered, Answered)
    # Equal calls of what the old conversation did are refused; somebody let one of them run.
    assert sorted(ledger.done) == ["charge 41", "save t", "save u"]
    rows = await store.history("fork")
    assert [(row.task, row.round) for row in rows] == [(1, number) for number in range(5)]
    assert (await store.session("s")).dump() == old.dump()
    # What a fork of the fork would repeat is known, too.
    await store.fork("fork", at=(1, 1), to="fork 2")
    unknown = {each.metadata.id for each in await store.unresolved("fork 2")}
    assert unknown == {"c2", "d2", "d3", "d4"}


async def test_a_fork_knows_what_the_open_round_has_begun(store: Any) -> None:
    await store.create("s", asked())
    ledger = Ledger()

    async def cut() -> None:
        raise SystemExit

    ledger.during["charge"] = cut
    with pytest.raises(SystemExit):
        await make_loop(store, Model(SCRIPT), ledger).run("s")
    await store.fork("s", at=(1, 0), to="fork")
    assert {each.metadata.id for each in await store.unresolved("fork")} >= {"c2"}
    script = [Reply(calls=[call("charge", "d1", amount=40)]), Reply(text="no")]
    ledger = Ledger()
    assert isinstance(await make_loop(store, Model(script), ledger).run("fork"), Answered)
    assert ledger.done == []
    status, text = results(await store.session("fork"))[0]
    assert (status, "may have taken effect" in text) == ("rejected", True)


async def test_a_round_that_is_not_there_is_not_forked(store: Any) -> None:
    await _history(store)
    for wrong, kind in (((3, 0), "round"), ((1, 9), "round")):
        with pytest.raises(StoreError) as raised:
            await store.fork("s", at=wrong, to="fork")
        assert raised.value.kind == kind
    await store.create("there", asked())
    with pytest.raises(StoreError) as raised:
        await store.fork("s", at=(1, 0), to="there")
    assert raised.value.kind == "exists"
    with pytest.raises(ValueError, match="to another one"):
        await store.fork("s", at=(1, 0), to="s")
    with pytest.raises(StoreError, match="'nobody'"):
        await store.fork("nobody", at=(1, 0), to="fork")


# --- what grows --------------------------------------------------------------------------------


async def test_records_of_past_rounds_do_not_outgrow_the_conversation(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    replies = [
        Reply(calls=[call("look", f"c{number}", word=f"{number} {'x' * 500}")])
        for number in range(12)
    ]
    async with SqliteStore(path) as store:
        await store.create("s", asked())
        await make_loop(store, Model([*replies, Reply(text="ok")]), Ledger()).run("s")
    with closing(sqlite3.connect(path)) as connection:
        (items,) = connection.execute("SELECT sum(length(item)) FROM items").fetchone()
        (records,) = connection.execute("SELECT count(*) FROM records").fetchone()
        (rounds,) = connection.execute(
            "SELECT sum(length(state) + length(counts)) FROM rounds"
        ).fetchone()
    assert records == 0
    assert rounds < items


async def test_what_is_old_is_pruned_and_open_rounds_stay(store: Any) -> None:
    for scope in ("done/1", "done/2", "open/1"):
        await _history(store, scope)
    claim = await claimed(store, "open/1")
    await store.record(claim, "plan", plan_of("x"))
    await store.add_events(claim, [{"event": "kept"}])
    await store.push("open/1", "hello", idempotency_key="2")
    for wrong in (datetime.now(), 7):  # that is what is refused
        with pytest.raises(ValueError, match="time zone"):
            await store.prune(before=wrong)
    with pytest.raises(ValueError, match="not 'items'"):
        await store.prune(before=past(), what=["items"])
    everything = ("records", "events", "conversations")
    nothing = await store.prune(before=past(hours=1), what=everything)
    assert (nothing.records, nothing.events, nothing.conversations) == (0, 0, 0)
    later = past(hours=-1)
    pruned = await store.prune(before=later, prefix="open/")
    assert pruned.records == 6 + 1
    assert await store.history("open/1") == []
    assert (await store.inbox("open/1"))[0].id == "message:2"
    again = await store.claim("open/1")
    assert isinstance(again, Taken)
    assert await store.record(claim, "plan", 1) == plan_of("x")
    pruned = await store.prune(before=later, what=["conversations"])
    assert pruned.conversations == 2
    assert [each.scope for each in await store.scopes()] == ["open/1"]


async def test_decisions_and_answers_are_taken_with_their_round_and_pruned(store: Any) -> None:
    """`MemoryStore` kept them for ever, and with an answer the conversation too."""
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("x"))
    assert await store.decide("s", "sha256:1", {"x": {"decision": "run"}}, by="ann")
    assert await store.answer("s", "x", 1, {"who": {"action": "decline"}}, by="ann")
    assert (await store.scopes())[0].waiting_since is None
    later = past(hours=-1)
    assert (await store.prune(before=later, what=["records"])).records == 1  # its beginning
    claim = await commit_text(store, claim, "more", status="done")
    await store.release(claim, status="done")
    assert await store.inbox("s") == ()
    assert (await store.prune(before=later, what=["records"])).records == 1 + 2
    claim = await claimed(store)
    await store.record(claim, "plan", plan_of())
    assert await store.answer("s", "x", 1, {"who": {"action": "decline"}}, by="ann")
    claim = await commit_text(store, claim, "more", status="done")
    await store.release(claim, status="done")
    assert (await store.prune(before=later, what=["conversations"])).conversations == 1


async def test_events_of_past_rounds_are_pruned(store: Any) -> None:
    claim = await open_claim(store)
    await store.add_events(claim, [{"event": "old"}])
    claim = await commit_text(store, claim, "more")
    await store.add_events(claim, [{"event": "new"}])
    assert (await store.prune(before=past(hours=1), what=["events"])).events == 0
    assert (await store.prune(before=past(hours=-1), what=["events"])).events == 1
    with anyio.fail_after(10):
        async for event in store.events("s"):
            assert (event.seq, event.event) == (2, {"event": "new"})
            break


async def test_a_conversation_with_something_to_find_out_is_not_pruned(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "call:x", result_of("x"))
    claim = await commit_text(store, claim, "more", status="done")
    await store.release(claim, status="done")
    later = past(hours=-1)
    assert (await store.prune(before=later, what=["conversations"])).conversations == 0
    await store.resolve("s", "x", "did_not_happen", by="ann")
    assert (await store.prune(before=later, what=["conversations"])).conversations == 1
    fence = claim.fence
    assert (await open_claim(store)).fence > fence  # rule P4


def test_the_stores_of_the_library_keep_the_protocol() -> None:
    """Checked by mypy; a store of your own needs `SessionStore` alone."""
    stores: list[OperatorStore] = [MemoryStore(), SqliteStore("unused"), PostgresStore("unused")]
    assert len(stores) == 3
