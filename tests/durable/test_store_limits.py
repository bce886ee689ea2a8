"""What a store bears: long conversations, any text, other processes that stop, die or hurry, and
conversations that are deleted under somebody's hands (rules P3, P4, P22).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from stores_toolkit import (
    EMPTY,
    SHORT_LEASE,
    asked,
    claimed,
    commit_rounds,
    commit_text,
    commit_until_killed,
    follow,
    open_claim,
    open_store,
    plan_of,
    result_of,
    run_in_processes,
)

from lutumpy import TakenOverError
from lutumpy.durable import Claim, PostgresStore, SqliteStore, postgres_transaction, sqlite
from lutumpy.durable.columns import original, storable
from lutumpy.durable.waking import Waker
from lutumpy.errors import StoreError

ANY_TEXT = ["", "\0", "a\0b", "\ud800", "é", '"quoted"', "escaped:", 'escaped:"x"', "x" * 1000]


# --- fences ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_claimed", [False, True])
async def test_an_old_claim_writes_nothing_to_a_conversation_made_anew_P4(
    store: Any, is_claimed: bool
) -> None:
    old = await open_claim(store)
    await store.delete("s")
    await store.create("s", asked("something else"))
    new = await claimed(store) if is_claimed else None
    for use in (store.record(old, "turn", 1), store.begin(old, "call:x"), store.renew(old)):
        with pytest.raises(TakenOverError):
            await use
    with pytest.raises(TakenOverError):
        await commit_text(store, old, "more")
    await store.release(old, status="done")
    if new is None:
        new = await claimed(store)
    assert new.fence > old.fence
    assert (new.records, new.begun, new.round) == ({}, frozenset(), 1)
    assert (await store.scopes())[0].status == "open"


async def test_fences_grow_over_several_deletions_P4(store: Any) -> None:
    fences: list[int] = []
    for scope in ("a", "b", "a", "b", "a"):
        claim = await open_claim(store, scope)
        fences.append(claim.fence)
        await store.delete(scope)
    assert fences == sorted(set(fences))


# --- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ANY_TEXT)
def test_a_text_that_is_stored_is_read_back(text: str) -> None:
    stored = storable(text)
    assert original(stored) == text
    assert "\0" not in stored
    stored.encode()


@pytest.mark.parametrize("text", ANY_TEXT[1:])
async def test_every_text_is_an_id(store: Any, text: str) -> None:
    """A model writes ids of calls, programs write the others: none of them raises."""
    claim = await open_claim(store, text)
    assert await store.begin(claim, f"call:{text}") is True
    await store.release(claim)
    claim = await claimed(store, text)
    assert claim.begun == {f"call:{text}"}
    await store.record(claim, f"call:{text}", result_of(text))
    await store.record(claim, "plan", plan_of(text))
    await store.push(text, "hello", idempotency_key=text)
    assert await store.decide(text, "sha256:1", {text: {"decision": "run"}}, by=text) is True
    (pushed, decided) = await store.inbox(text)
    assert (pushed.id, decided.value["call_id"]) == (f"message:{text}", text)
    await store.resolve(text, text, "happened", by=text)
    await store.release(claim)
    claim = await claimed(store, text)
    assert f"call:{text}" in claim.records
    (*_, notice) = await store.inbox(text)
    await commit_text(store, claim, text + "!", taken=[pushed.id, notice.id])
    assert await store.inbox(text) == ()
    assert [one.scope for one in await store.scopes()] == [text]
    await store.delete(text)
    assert await store.scopes() == []


async def test_a_held_plan_names_its_conversation_whatever_that_is_called(store: Any) -> None:
    claim = await open_claim(store, "a\0b")
    await store.record(claim, "plan", plan_of("x"))
    assert [(one.scope, one.held) for one in await store.held()] == [("a\0b", ("x",))]


async def test_conversations_are_listed_in_the_order_of_their_characters(store: Any) -> None:
    names = ["a", "B", "b", "Z", "_", "é", "10", "9"]
    for name in names:
        await store.create(name, asked())
    listed: list[str] = []
    while found := await store.scopes(limit=3, after=listed[-1] if listed else None):
        listed += [one.scope for one in found]
    assert listed == sorted(names)


# --- length ------------------------------------------------------------------------------------


async def _work_of_a_round(store: Any, claim: Claim) -> Claim:
    """All that a round asks of a store."""
    await store.add_events(claim, [{"event": "delta", "delta": True}])
    await store.record(claim, "plan", plan_of("a"))
    await store.decide("s", "sha256:1", {"a": {"decision": "run"}}, by="ann")
    await store.begin(claim, "call:x")
    await store.record(claim, "call:x", {"outcome": "ok"})
    await store.add_events(claim, [{"event": "result"}], drop_deltas=True)
    await store.push("s", "hello", idempotency_key=str(claim.round))
    taken = [entry.id for entry in await store.inbox("s") if entry.kind == "message"]
    return await commit_text(store, claim, "more", taken=taken)


async def test_what_a_round_reads_does_not_depend_on_the_length_P22(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [0]
    connect = sqlite._Worker._connect

    def count() -> int:
        steps[0] += 1
        return 0

    def counted(self: Any) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_progress_handler(count, 5)  # told every five instructions
        return connection

    monkeypatch.setattr(sqlite._Worker, "_connect", counted)
    async with SqliteStore(tmp_path / "a.db", synchronous="NORMAL") as store:
        claim = await open_claim(store)
        spent: list[int] = []
        for _ in range(101):
            steps[0] = 0
            claim = await _work_of_a_round(store, claim)
            spent.append(steps[0])
    assert spent[100] == pytest.approx(spent[2], rel=0.05)


async def test_many_events_are_followed_to_the_end_P20(store: Any) -> None:
    claim = await open_claim(store)
    await store.add_events(claim, [{"event": str(number)} for number in range(1203)])
    assert [one.seq for one in await follow(store, 1203)] == list(range(1, 1204))


# --- other processes ---------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A database that other processes can open: its kind, and where it is."""
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / "a.db")
    url = request.getfixturevalue("postgres_url")
    return "postgres", f"{url} s{uuid4().hex[:12]}"


def test_processes_at_once_make_one_database_and_one_conversation_P3(
    place: tuple[str, str],
) -> None:
    processes = run_in_processes(commit_rounds, 3, *place)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with open_store(*place) as store:
        session = anyio.run(store.session, "s")
        (info,) = anyio.run(store.scopes)
    texts = sorted([item.parts[0].text for item in session.transcript][1:])
    assert texts == sorted([f"{number} {done}" for number in range(3) for done in range(10)])
    assert (info.round, info.items) == (31, 31)


def test_kill_9_leaves_whole_rounds_and_no_lock_P3(place: tuple[str, str]) -> None:
    with open_store(*place) as store:
        anyio.run(partial(store.create, "s", asked()))
        rounds = 1
        for number in range(3):
            (process,) = run_in_processes(commit_until_killed, 1, *place)
            end = time.monotonic() + 30
            while anyio.run(store.scopes)[0].round <= rounds and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.01 * number)
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            session = anyio.run(store.session, "s")
            (info,) = anyio.run(store.scopes)
            assert session.head.items == info.items == info.round > rounds
            rounds = info.round
            time.sleep(SHORT_LEASE)  # what remains of the killed one's
            claim = anyio.run(partial(claimed, store))  # nothing is locked
            assert set(claim.records) <= {"call:x"}
            anyio.run(store.release, claim)


def test_a_new_file_can_be_opened_by_many_at_once(tmp_path: Path) -> None:
    for number in range(5):
        stores = [SqliteStore(tmp_path / f"{number}.db") for _ in range(8)]

        async def open_all(stores: Any = stores) -> None:
            async with anyio.create_task_group() as group:
                for store in stores:
                    group.start_soon(store.held)

        anyio.run(open_all)
        for store in stores:
            store.close()


def test_a_file_that_stays_locked_is_an_error_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_SECONDS_OF_PATIENCE", 0.1)
    with SqliteStore(tmp_path / "a.db") as store:
        anyio.run(store.held)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with SqliteStore(tmp_path / "a.db") as store:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            anyio.run(store.held)
        other.execute("ROLLBACK")
        assert anyio.run(store.held) == []
    other.close()


def test_turning_to_wal_waits_for_others_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Locked:
        def __init__(self, times: int, message: str = "database is locked") -> None:
            self.times = times
            self.message = message

        def execute(self, statement: str) -> None:
            self.times -= 1
            if self.times >= 0:
                raise sqlite3.OperationalError(self.message)

    locked = Locked(3)
    sqlite._turn_to_wal(locked)  # type: ignore[arg-type]
    assert locked.times == -1
    with pytest.raises(sqlite3.OperationalError, match="full"):
        sqlite._turn_to_wal(Locked(1, "disk is full"))  # type: ignore[arg-type]
    monkeypatch.setattr(sqlite, "_SECONDS_OF_PATIENCE", 0.05)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite._turn_to_wal(Locked(1000))  # type: ignore[arg-type]


async def _make_waker() -> Waker:
    return Waker()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_nobody_is_woken_whose_event_loop_is_gone(backend: str) -> None:
    anyio.run(_make_waker, backend=backend).wake()


async def test_a_task_that_is_cancelled_hard_leaves_its_write_to_the_store(tmp_path: Path) -> None:
    """asyncio's own `cancel` goes through every shield; what was handed over is written."""
    async with SqliteStore(tmp_path / "a.db") as store:
        claim = await open_claim(store)
        task = asyncio.ensure_future(store.begin(claim, "call:x"))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await store.record(claim, "call:y", 1)  # comes behind it
        await store.release(claim)
        assert (await claimed(store)).begun == {"call:x"}


# --- Postgres alone ----------------------------------------------------------------------------


async def test_a_process_that_stops_in_a_transaction_loses_it_P4(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    impatient = postgres_transaction._BEGIN.replace("'30s'", "'1s'")
    monkeypatch.setattr(postgres_transaction, "_BEGIN", impatient)
    async with (
        PostgresStore(postgres_url, schema="stops") as asleep,
        PostgresStore(postgres_url, schema="stops") as awake,
    ):
        claim = await open_claim(asleep)
        await awake.held()

        def sleep_with_the_lock() -> Any:
            from lutumpy.durable import operations

            yield from operations.begin(claim, "call:x")
            time.sleep(2.5)  # as a stopped process would
            yield from operations.begin(claim, "call:y")

        lost: list[BaseException] = []

        async def stop() -> None:
            try:
                await asleep._run(sleep_with_the_lock())
            except psycopg.Error as error:
                lost.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            await anyio.sleep(0.3)
            with anyio.fail_after(60):
                while True:
                    try:
                        await awake.release(replace(claim))
                        break
                    except psycopg.errors.LockNotAvailable:
                        continue
        assert len(lost) == 1
        assert (await claimed(awake)).begun == frozenset()
        assert len(await asleep.scopes()) == 1  # by another connection


async def test_a_program_without_the_right_to_make_tables_uses_those_that_are_there(
    postgres_url: str,
) -> None:
    import psycopg

    async with PostgresStore(postgres_url, schema="given") as store:
        await store.create("s", asked())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE limited LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA given TO limited")
        connection.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA given TO limited"
        )
    url = postgres_url.replace("tester@", "limited@")
    async with PostgresStore(url, schema="given") as store:
        claim = await claimed(store)
        await commit_text(store, claim, "more")
        assert len((await store.session("s")).transcript) == 2


async def test_rows_of_a_pool_may_have_another_form(postgres_url: str) -> None:
    import psycopg
    from psycopg.rows import dict_row

    class Pool:
        def connection(self) -> Any:
            connection: Any = psycopg.Connection
            return connection.connect(postgres_url, row_factory=dict_row)

    async with PostgresStore(Pool(), schema="dicts") as store:
        claim = await open_claim(store)
        assert await store.record(claim, "turn", 1) == 1


@pytest.mark.parametrize("written", ["{", "9" * 5000, "[" * 100_000])
def test_a_column_that_holds_no_json_is_a_store_error(tmp_path: Path, written: str) -> None:
    path = tmp_path / "agent.db"

    async def look() -> None:
        with SqliteStore(path) as store:
            await store.create("s", asked())
            with closing(sqlite3.connect(path)) as other, other:
                names = other.execute("SELECT name FROM sqlite_master WHERE name LIKE '%sessions'")
                other.execute(f"UPDATE {names.fetchone()[0]} SET state = ?", (written,))
            for read in (store.session("s"), store.claim("s")):
                with pytest.raises(StoreError, match="is not JSON") as raised:
                    await read
                assert raised.value.kind == "damaged"

    anyio.run(look)


FORKED = """
import multiprocessing, sys
import anyio
from stores_toolkit import asked, open_store

store = open_store(sys.argv[1], sys.argv[2])
anyio.run(store.create, "s", asked())

def child(number):
    async def push():
        for n in range(5):
            await store.push("s", "hello", idempotency_key=f"{number} {n}")
    anyio.run(push)

context = multiprocessing.get_context("fork")
children = [context.Process(target=child, args=(n,)) for n in range(4)]
for each in children:
    each.start()
child("parent")
for each in children:
    each.join(30)
    each.kill()
print([each.exitcode for each in children], len(anyio.run(store.inbox, "s")))
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_goes_on_in_every_process_behind_a_fork(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "agent.db")
    if kind == "postgres":
        place = f"{request.getfixturevalue('postgres_url')} forked"
    command = [sys.executable, "-W", "ignore", "-c", FORKED, kind, place]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=150
    )
    assert done.stdout.strip() == "[0, 0, 0, 0] 25", done.stderr


async def test_values_are_written_into_statements_and_come_back(postgres_url: str) -> None:
    """Quotes, backslashes, percent signs and every sign of Unicode; texts that look like SQL."""
    texts = [
        "'; DROP TABLE given.sessions; --",
        "\\",
        "\\'",
        "%s %(x)s ?",
        "$1",
        "{t}",
        "\u2028 é 🦀",
    ]
    async with PostgresStore(postgres_url, schema="quoted") as store:
        for text in texts:
            await store.create(text, asked(text))
            claim = await claimed(store, text)
            assert await store.begin(claim, text)
            assert await store.record(claim, text, {text: [text, 1.5, None]}) == {
                text: [text, 1.5, None]
            }
            await store.release(claim)
            claim = await claimed(store, text, lease=0.125)
            assert claim.records == {text: {text: [text, 1.5, None]}}
            assert claim.items[0] == asked(text).items_since(EMPTY)[0]
        assert sorted(each.scope for each in await store.scopes()) == sorted(texts)


async def test_a_write_takes_two_messages_to_postgres_and_a_commit_three(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEGIN goes with the first one, what gives no rows with COMMIT: messages are what it costs."""
    kind, sent = postgres_transaction.Transaction, 0
    send = kind._send  # where all messages leave

    def count(self: Any) -> Any:
        nonlocal sent
        sent += 1
        return send(self)

    async with PostgresStore(postgres_url, schema="messages") as store:
        claim = await open_claim(store)
        monkeypatch.setattr(kind, "_send", count)
        counted: list[int] = []
        for _ in range(2):
            before = sent
            await store.begin(claim, f"call:{sent}")
            counted.append(sent - before)
            before = sent
            await store.record(claim, f"call:{sent}", 1)
            counted.append(sent - before)
            before = sent
            await store.renew(claim)
            counted.append(sent - before)
            before = sent
            claim = await commit_text(store, claim, "more")
            counted.append(sent - before)
        assert counted == [2, 2, 2, 3] * 2


async def test_a_statement_that_fails_with_the_commit_undoes_the_transaction(
    postgres_url: str,
) -> None:
    """It waited for COMMIT, and its connection is used again behind it."""
    import psycopg

    async with PostgresStore(postgres_url, schema="undone") as store:
        claim = await open_claim(store)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("INSERT INTO undone.items VALUES ('s', 1, '{}')")
            with pytest.raises(psycopg.errors.UniqueViolation):
                await commit_text(store, claim, "more")
            assert len((await store.session("s")).transcript) == 1
            other.execute("DELETE FROM undone.items WHERE seq = 1")
        await commit_text(store, claim, "more")
        assert len((await store.session("s")).transcript) == 2
