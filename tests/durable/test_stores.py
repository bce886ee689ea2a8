"""What every store keeps (rules P2, P3, P4, P8, P16, P20 to P22)."""

from __future__ import annotations

import json
import queue
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from postgres_server import has_pgbouncer, serve_pgbouncer
from stores_toolkit import (
    EMPTY,
    asked,
    claimed,
    commit_text,
    follow,
    open_claim,
    plan_of,
    result_of,
)

from lutumpy import TakenOverError, TranscriptError
from lutumpy.durable import (
    Claim,
    Counts,
    MemoryStore,
    PostgresStore,
    SqliteStore,
    StoredEvent,
    StoreError,
    Taken,
)
from lutumpy.models import Head, Message, TextPart

# --- conversations -----------------------------------------------------------------------------


async def test_a_session_is_taken_in_and_given_back(store: Any) -> None:
    session = asked("hello")
    session.push_ephemeral_user("note")
    await store.create("s", session)
    back = await store.session("s")
    assert back.dump() == session.dump()
    await store.create("s", asked("another"))  # stays as it is
    assert (await store.session("s")).dump() == session.dump()
    with pytest.raises(StoreError) as raised:
        await store.create("s", session, exist_ok=False)
    assert raised.value.kind == "exists"


async def test_an_unknown_conversation_is_named(store: Any) -> None:
    await store.create("other", asked())
    gone = replace(await claimed(store, "other"), scope="nobody")
    uses: list[Callable[[], Any]] = [
        lambda: store.session("nobody"),
        lambda: store.claim("nobody"),
        lambda: store.renew(gone),
        lambda: store.record(gone, "turn", 1),
        lambda: store.begin(gone, "call:x"),
        lambda: store.push("nobody", "hi", idempotency_key="1"),
        lambda: store.decide("nobody", "x", {}, by="ann"),
        lambda: store.inbox("nobody"),
        lambda: store.unresolved("nobody"),
        lambda: store.resolve("nobody", "x", "happened", by="ann"),
        lambda: store.delete("nobody"),
        lambda: store.add_events(gone, []),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="'nobody'") as raised:
            await use()
        assert raised.value.kind == "unknown_scope"
    await store.release(gone)  # giving up what is gone is no mistake


async def test_conversations_are_listed_in_pages(store: Any) -> None:
    for name in "cab":
        await store.create(name, asked())
    listed = await store.scopes(limit=2)
    assert [one.scope for one in listed] == ["a", "b"]
    assert [one.scope for one in await store.scopes(after="b")] == ["c"]
    assert [one.status for one in listed] == ["open", "open"]
    claim = await claimed(store, "a")
    assert (await store.scopes(limit=1))[0].claimed_until == claim.until
    await store.release(claim, status="done")
    assert [one.scope for one in await store.scopes(status="done")] == ["a"]
    assert (await store.scopes(limit=1))[0].claimed_until is None
    await store.delete("a")
    assert [one.scope for one in await store.scopes()] == ["b", "c"]


# --- claims ------------------------------------------------------------------------------------


async def test_one_at_a_time_goes_on_P4(store: Any) -> None:
    first = await open_claim(store)
    taken = await store.claim("s")
    assert isinstance(taken, Taken)
    assert taken.until == first.until
    await store.release(first)
    second = await claimed(store)
    assert second.fence > first.fence


async def test_every_write_of_an_old_claim_is_refused_P4(store: Any) -> None:
    old = await open_claim(store)
    await store.release(old)
    new = await claimed(store)
    uses: list[Callable[[], Any]] = [
        lambda: store.renew(old),
        lambda: store.record(old, "turn", 1),
        lambda: store.begin(old, "call:x"),
        lambda: store.add_events(old, [{"event": "x"}]),
        lambda: commit_text(store, old, "more"),
    ]
    for use in uses:
        with pytest.raises(TakenOverError, match="taken 's' over"):
            await use()
    await store.release(old, status="done")  # changes nothing
    assert isinstance(await store.claim("s"), Taken)
    await store.release(new)
    again = await claimed(store)
    assert (again.records, again.begun, again.round) == ({}, frozenset(), 1)


@pytest.mark.slow
async def test_a_lease_that_ended_lets_another_go_on_and_can_be_renewed(store: Any) -> None:
    await store.create("s", asked())
    first = await claimed(store, lease=0.05)
    await anyio.sleep(0.1)
    # The clock decides who may try, the fence who may write.
    await store.record(first, "turn", 1)
    # Longer than a busy machine lets a process wait between two lines, shorter than the loop takes.
    second = await claimed(store, lease=1.2)
    with pytest.raises(TakenOverError):
        await store.record(first, "plan", 1)
    for _ in range(5):
        await anyio.sleep(0.3)
        await store.renew(second)
        assert isinstance(await store.claim("s"), Taken)


# --- the open round ----------------------------------------------------------------------------


async def test_a_record_is_written_once_P2(store: Any) -> None:
    claim = await open_claim(store)
    assert await store.record(claim, "turn", {"a": [1, 2.5, "\ud800é"]}) == {
        "a": [1, 2.5, "\ud800é"]
    }
    assert await store.record(claim, "turn", {"b": 1}) == {"a": [1, 2.5, "\ud800é"]}
    await store.release(claim)
    assert (await claimed(store)).records == {"turn": {"a": [1, 2.5, "\ud800é"]}}


async def test_a_marker_is_inserted_once_and_takes_its_result_P5(store: Any) -> None:
    claim = await open_claim(store)
    assert await store.begin(claim, "call:x") is True
    assert await store.begin(claim, "call:x") is False
    await store.release(claim)
    claim = await claimed(store)
    assert claim.begun == {"call:x"}
    assert await store.begin(claim, "call:x") is False
    await store.record(claim, "call:x", {"outcome": "ok"})
    assert await store.begin(claim, "call:x") is False
    await store.release(claim)
    claim = await claimed(store)
    assert (claim.begun, claim.records) == (frozenset(), {"call:x": {"outcome": "ok"}})


async def test_a_round_is_committed_once_P3(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "turn", 1)
    later = await commit_text(store, claim, "more", status="done")
    with pytest.raises(StoreError) as raised:
        await commit_text(store, claim, "more")
    assert raised.value.kind == "head"
    head, state = Head(2, "x"), later.state
    with pytest.raises(StoreError):
        await store.commit(later, head, [], head, state, Counts())
    assert len((await store.session("s")).transcript) == 2
    await store.release(claim)
    again = await claimed(store)
    assert (again.round, again.records, again.counts) == (2, {}, Counts(1, 2))
    assert again.head == later.head
    assert (await store.scopes())[0].status == "done"


async def test_nothing_is_committed_over_messages_that_wait_P3(store: Any) -> None:
    claim = await open_claim(store)
    await store.push("s", "one", idempotency_key="1")
    await store.push("s", "two", idempotency_key="2")
    before = (claim, claim.head, [], claim.head, claim.state, Counts())
    waiting = await store.commit(*before, unless_messages=True)
    assert [entry.id for entry in waiting] == ["message:1", "message:2"]
    assert [entry.value["parts"][0]["text"] for entry in waiting] == ["one", "two"]
    # Nothing was written: the same round can be committed, with what waited.
    taken = [entry.id for entry in waiting]
    assert tuple(await store.commit(*before, taken=taken)) == ()
    later = replace(claim, round=claim.round + 1)
    after = (later, claim.head, [], claim.head, claim.state, Counts())
    assert tuple(await store.commit(*after, unless_messages=True)) == ()
    assert list(await store.inbox("s")) == []


# --- from outside ------------------------------------------------------------------------------


async def test_messages_wait_until_they_are_taken(store: Any) -> None:
    claim = await open_claim(store)
    await store.push("s", "one", idempotency_key="1")
    await store.push("s", "one again", idempotency_key="1")
    await store.push("s", Message("user", (TextPart("two"),)), idempotency_key="2")
    item = asked("three").items_since(EMPTY)[0]
    await store.push("s", item, idempotency_key="3")
    entries = await store.inbox("s")
    texts = [entry.value["parts"][0]["text"] for entry in entries]
    assert texts == ["one", "two", "three"]
    later = await commit_text(store, claim, "x", taken=[entries[0].id], status="done")
    assert [entry.id for entry in await store.inbox("s")] == [entries[1].id, entries[2].id]
    await store.push("s", "one", idempotency_key="1")  # it was taken
    assert len(await store.inbox("s")) == 2
    await store.push("s", "four", idempotency_key="4")
    assert (await store.scopes())[0].status == "open"
    await store.release(later)
    assert len((await claimed(store)).inbox) == 3


@pytest.mark.parametrize(
    "item",
    [
        "",
        " ",
        Message("system", (TextPart("x"),)),
        Message("user", (TextPart("x"),), True),
        {"item": "results", "results": []},
    ],
    ids=str,
)
async def test_only_a_message_of_the_user_is_pushed(store: Any, item: Any) -> None:
    await store.create("s", asked())
    with pytest.raises(TranscriptError):
        await store.push("s", item, idempotency_key="1")
    assert list(await store.inbox("s")) == []


async def test_a_held_plan_waits_and_is_decided_P16(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("a", "b"))
    await store.release(claim, status="waiting")
    (waiting,) = await store.held()
    assert (waiting.scope, waiting.held, waiting.digest) == ("s", ("a", "b"), "sha256:1")
    assert waiting.plan == plan_of("a", "b")
    assert await store.held(scope="other") == []
    assert await store.decide("s", "sha256:1", {"a": {"decision": "run"}}, by="ann") is True
    assert await store.decide("s", "sha256:1", {"a": {"decision": "run"}}, by="bob") is False
    assert [one.held for one in await store.held(scope="s")] == [("b",)]
    rest = {"a": {"decision": "run"}, "b": {"decision": "reject", "reason": "no"}}
    assert await store.decide("s", "sha256:1", rest, by="bob") is False
    assert await store.held() == []
    assert (await store.scopes())[0].status == "open"
    decided = [(entry.kind, entry.value) for entry in (await claimed(store)).inbox]
    assert decided == [
        (
            "decision",
            {"plan": "sha256:1", "call_id": "a", "decision": {"decision": "run"}, "by": "ann"},
        ),
        (
            "decision",
            {
                "plan": "sha256:1",
                "call_id": "b",
                "decision": {"decision": "reject", "reason": "no"},
                "by": "bob",
            },
        ),
    ]


async def _decide(store: Any) -> None:
    assert await store.decide("s", "sha256:1", {"a": {"decision": "run"}}, by="ann")


async def _deliver(store: Any) -> None:
    assert await store.deliver("s", "c1", {"call_id": "c1"})


async def _push(store: Any) -> None:
    await store.push("s", "and now?", idempotency_key="1")


@pytest.mark.parametrize(
    ("status", "send", "opens"),
    [
        ("done", _push, True),
        ("done", _deliver, True),
        ("waiting", _decide, True),
        ("waiting", _deliver, True),
        ("waiting", _push, False),  # it is for the next round
    ],
)
async def test_what_comes_before_a_conversation_is_given_up_opens_it_P16(
    store: Any, status: Any, send: Callable[[Any], Any], opens: bool
) -> None:
    """A process that is killed right after that looks at nothing any more."""
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("a", "b"))
    await send(store)
    await store.release(claim, status=status)
    assert (await store.scopes())[0].status == ("open" if opens else status)


async def test_what_a_run_has_looked_at_keeps_nothing_from_waiting_P16(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("a", "b"))
    await _decide(store)
    await _deliver(store)
    await store.release(replace(claim, inbox=tuple(await store.inbox("s"))), status="waiting")
    assert (await store.scopes())[0].status == "waiting"


@pytest.mark.parametrize(
    ("digest", "decisions", "kind"),
    [
        ("sha256:2", {"a": {"decision": "run"}}, "plan"),
        ("sha256:1", {"free": {"decision": "run"}}, "decision"),
        ("sha256:1", {"nobody": {"decision": "run"}}, "decision"),
        ("sha256:1", {"a": {"decision": "burn"}}, "decision"),
        ("sha256:1", {"a": {"decision": "complete"}}, "decision"),
        ("sha256:1", {"a": {"decision": "reject", "reason": 7}}, "decision"),
        ("sha256:1", {"a": {"decision": "complete", "output": float("nan")}}, "decision"),
        ("sha256:1", {"a": {"decision": "complete", "output": 10**5000}}, "decision"),
        ("sha256:1", {"a": {"decision": "complete", "output": object()}}, "decision"),
        ("sha256:1", {"a": "run"}, "decision"),
        ("sha256:1", {"a": None}, "decision"),
        ("sha256:1", {"a": {"decision": "run"}, "b": {}}, "decision"),
    ],
)
async def test_a_decision_that_does_not_fit_is_refused_P16(
    store: Any, digest: str, decisions: Any, kind: str
) -> None:
    claim = await open_claim(store)
    await store.record(claim, "plan", plan_of("a", "b"))
    with pytest.raises(StoreError) as raised:
        await store.decide("s", digest, decisions, by="ann")
    assert raised.value.kind == kind
    assert [one.held for one in await store.held()] == [("a", "b")]


async def test_what_waits_is_listed_oldest_first(store: Any) -> None:
    for name in "cab":
        claim = await open_claim(store, name)
        await store.record(claim, "plan", plan_of("x"))
        await anyio.sleep(0.01)
    assert [one.scope for one in await store.held(limit=2)] == ["c", "a"]
    await commit_text(store, replace(claim, items=tuple(asked().items_since(EMPTY))), "on")
    assert [one.scope for one in await store.held()] == ["c", "a"]


async def test_unresolved_calls_live_in_the_store_P8(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "call:x", result_of("x"))
    await store.record(claim, "call:y", result_of("y"))
    await store.record(claim, "call:z", result_of("z", "ok"))
    assert [call.metadata.id for call in await store.unresolved("s")] == ["x", "y"]
    await store.release(claim)
    claim = await claimed(store)
    assert [call.metadata.id for call in claim.unresolved] == ["x", "y"]
    await store.resolve("s", "x", "did_not_happen", by="ann")
    await store.resolve("s", "y", "happened", by="ann")
    assert await store.unresolved("s") == []
    await store.release(claim)
    claim = await claimed(store)
    # What happened is refused until a commit takes its notice.
    assert [call.metadata.id for call in claim.unresolved] == ["y"]
    for call_id in ("x", "y", "z", "nobody"):
        with pytest.raises(StoreError) as raised:
            await store.resolve("s", call_id, "happened", by="ann")
        assert raised.value.kind == "decision"
    (notice,) = claim.inbox
    assert (notice.kind, notice.value["call_id"], notice.value["round"]) == ("notice", "y", 1)
    later = await commit_text(store, claim, "more")
    await store.release(later)
    claim = await claimed(store)
    assert [call.metadata.id for call in claim.unresolved] == ["y"]
    later = await commit_text(store, claim, "told", taken=[notice.id])
    await store.release(later)
    claim = await claimed(store)
    assert (claim.unresolved, claim.inbox) == ((), ())


async def test_a_resolution_that_is_none_resolves_nothing_P8(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "call:x", result_of("x"))
    with pytest.raises(ValueError, match="no output"):
        await store.resolve("s", "x", "did_not_happen", by="ann", output=1)
    with pytest.raises(ValueError, match="'perhaps'"):
        await store.resolve("s", "x", "perhaps", by="ann")
    with pytest.raises(StoreError, match="not JSON"):
        await store.resolve("s", "x", "happened", by="ann", output=float("nan"))
    assert [call.metadata.id for call in await store.unresolved("s")] == ["x"]
    assert await store.inbox("s") == ()


async def test_a_late_result_resolves_a_call_in_its_own_words_LR12_LR36(store: Any) -> None:
    claim = await open_claim(store)
    for call_id in "xyz":
        await store.record(claim, f"call:{call_id}", result_of(call_id))
    parts = [{"part": "text", "text": "at dawn"}]
    await store.resolve_late("s", "x", {"status": "ok", "content": "half a letter: \ud800"})
    await store.resolve_late("s", "y", {"status": "error", "content": parts})
    await store.resolve_late("s", "z", {"status": "error", "content": ""})
    for call_id in ("x", "nobody"):
        with pytest.raises(StoreError) as raised:
            await store.resolve_late("s", call_id, {"status": "ok", "content": "again"})
        assert raised.value.kind == "decision"
    assert await store.unresolved("s") == []
    notices = await store.inbox("s")
    texts = [entry.value["message"]["parts"] for entry in notices]
    assert [["".join(part["text"] for part in one)] for one in texts] == [
        [f"The call {end}"]
        for end in (
            "x of pay, whose outcome was not known, did happen: it took effect. Its output: "
            "half a letter: \ufffd",
            "y of pay, whose outcome was not known, failed. It said:at dawn",
            "z of pay, whose outcome was not known, failed.",
        )
    ]
    # They are refused until a commit takes the notice.
    later = await commit_text(store, claim, "told", taken=[entry.id for entry in notices[:2]])
    await store.release(later)
    assert [call.metadata.id for call in (await claimed(store)).unresolved] == ["z"]


async def test_unresolved_calls_outlive_their_round_P8(store: Any) -> None:
    claim = await open_claim(store)
    await store.record(claim, "call:x", result_of("x"))
    later = await commit_text(store, claim, "more")
    await store.release(later)
    assert [call.metadata.id for call in (await claimed(store)).unresolved] == ["x"]


# --- events ------------------------------------------------------------------------------------


async def test_events_are_replayed_and_followed_P20(store: Any) -> None:
    claim = await open_claim(store)
    await store.add_events(claim, [{"event": "a"}, {"event": "d", "delta": True}])
    assert [(one.seq, one.event["event"]) for one in await follow(store, 2)] == [(1, "a"), (2, "d")]
    found: list[list[StoredEvent]] = []

    async def look() -> None:
        found.append(await follow(store, 2, after=2))

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        await anyio.sleep(0.05)
        await store.add_events(claim, [{"event": "b"}, {"event": "c"}], drop_deltas=True)
    assert [(one.seq, one.round, one.attempt) for one in found[0]] == [
        (3, 1, claim.fence),
        (4, 1, claim.fence),
    ]
    assert [one.seq for one in await follow(store, 3)] == [1, 3, 4]


# --- several at once ---------------------------------------------------------------------------


async def test_of_many_who_claim_at_once_one_goes_on(make: Callable[[], Any]) -> None:
    stores = [make() for _ in range(4)]
    await stores[0].create("s", asked())
    found: list[Any] = []

    async def take(store: Any) -> None:
        found.append(await store.claim("s"))

    for _ in range(10):
        found.clear()
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(take, store)
        claims = [one for one in found if isinstance(one, Claim)]
        assert len(claims) == 1
        await stores[0].release(claims[0])


async def test_of_many_who_begin_at_once_one_runs_P5(make: Callable[[], Any]) -> None:
    stores = [make() for _ in range(3)]
    claim = await open_claim(stores[0])
    found: list[bool] = []

    async def begin(store: Any) -> None:
        found.append(await store.begin(claim, "call:x"))

    async with anyio.create_task_group() as group:
        for store in stores * 3:
            group.start_soon(begin, store)
    assert sorted(found) == [False] * 8 + [True]


async def test_of_many_who_create_at_once_one_does(make: Callable[[], Any]) -> None:
    stores = [make() for _ in range(4)]

    async def create(store: Any, text: str) -> None:
        session = asked(text)
        session.push_user("and")
        for _ in range(len(text)):
            session.push_user("more")
        await store.create("s", session)

    async with anyio.create_task_group() as group:
        for number, store in enumerate(stores):
            group.start_soon(create, store, "x" * number or "y")
    claim = await claimed(stores[0])
    await commit_text(stores[0], claim, "on")
    await stores[0].session("s")


async def test_a_cancelled_caller_waits_for_the_end_of_its_write(store: Any) -> None:
    claim = await open_claim(store)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.begin(claim, "call:x")
    assert await store.begin(claim, "call:x") in (True, False)  # usable, whatever came of it
    await store.record(claim, "call:x", {"outcome": "ok"})


# --- SQLite alone ------------------------------------------------------------------------------


def test_a_store_of_sqlite_works_in_several_event_loops_and_on_trio(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        anyio.run(partial(store.create, "s", asked()), backend="trio")
        for backend in ("asyncio", "trio", "asyncio"):
            claim = anyio.run(partial(claimed, store), backend=backend)
            anyio.run(partial(store.release, claim), backend=backend)


async def test_a_closed_store_says_so(make: Callable[[], Any]) -> None:
    store = make()
    if isinstance(store, MemoryStore):
        return
    await store.create("s", asked())
    await store.aclose()
    store.close()
    with pytest.raises(RuntimeError, match="closed"):
        await store.claim("s")
    assert "s" in [one.scope for one in await make().scopes()]


async def test_operations_that_wait_share_a_transaction(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "a.db") as store:
        claim = await open_claim(store)
        with sqlite3.connect(tmp_path / "a.db") as other:
            # While this holds the file, all that comes waits in the queue.
            other.execute("BEGIN IMMEDIATE")
            before = len((tmp_path / "a.db-wal").read_bytes())
            async with anyio.create_task_group() as group:
                group.start_soon(store.renew, claim)
                await anyio.sleep(0.2)
                for number in range(20):
                    group.start_soon(store.begin, claim, f"call:{number}")
                await anyio.sleep(0.2)
                other.rollback()
        other.close()
        await store.release(claim)
        assert len((await claimed(store)).begun) == 20
        # Twenty transactions would each write the same few pages again.
        assert len((tmp_path / "a.db-wal").read_bytes()) - before < 20 * 4096


async def test_one_who_fails_takes_nobody_along(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "a.db") as store:
        claim = await open_claim(store)
        failed: list[BaseException] = []

        async def fail() -> None:
            try:
                await store.record(replace(claim, fence=99), "turn", 1)
            except TakenOverError as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(store.record, claim, f"r{number}", number)
                group.start_soon(fail)
        await store.release(claim)
        assert len(failed) == 5
        assert (await claimed(store)).records == {f"r{n}": n for n in range(5)}


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"x" * 5000)
    with SqliteStore(tmp_path / "a.db") as store, pytest.raises(sqlite3.DatabaseError):
        anyio.run(store.held)


def test_tables_of_another_release_are_refused(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        anyio.run(store.held)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE meta SET value = '7'")
    connection.close()
    with SqliteStore(tmp_path / "a.db") as store, pytest.raises(StoreError) as raised:
        anyio.run(store.held)
    assert raised.value.kind == "version"


def test_synchronous_is_full_unless_said_otherwise_P21(tmp_path: Path) -> None:
    from lutumpy.durable import sqlite

    for word, number in (("FULL", 2), ("NORMAL", 1)):
        worker = sqlite._Worker(str(tmp_path / "a.db"), word, queue.SimpleQueue())
        connection = worker._connect()
        assert connection.execute("PRAGMA synchronous").fetchone() == (number,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()
    with pytest.raises(ValueError, match="synchronous="):
        SqliteStore("x", synchronous="OFF")  # type: ignore[arg-type]
    assert SqliteStore("x")._synchronous == "FULL"


def test_a_dropped_store_ends_its_thread(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    anyio.run(store.held)
    thread = store._thread
    assert thread is not None
    assert thread.is_alive()
    with pytest.warns(ResourceWarning, match="was not closed"):
        del store
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.pure
@pytest.mark.slow
async def test_what_a_round_writes_does_not_depend_on_the_length_P22(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "a.db") as store:
        claim = await open_claim(store)
        written: list[int] = []
        statements: list[int] = []
        for number in range(201):
            seen: list[Any] = []
            store_run = store._run

            async def counted(operation: Any, seen: Any = seen, run: Any = store_run) -> Any:
                return await run(_counting(operation, seen))

            store._run = counted  # type: ignore[method-assign]
            await store.record(claim, "plan", {"digest": "x", "calls": [], "n": f"{number:06}"})
            await store.record(claim, "call:x", {"outcome": "ok", "n": f"{number:06}"})
            claim = await commit_text(store, claim, f"message {number:06}")
            store._run = store_run  # type: ignore[method-assign]
            written.append(sum([len(json.dumps(query.parameters)) for query in seen]))
            statements.append(len(seen))
    assert statements[200] == statements[2] <= 16
    assert abs(written[200] - written[2]) < 0.05 * written[2]


def _counting(operation: Any, seen: list[Any]) -> Any:
    try:
        query = next(operation)
        while True:
            seen.append(query)
            query = operation.send((yield query))
    except StopIteration as done:
        return done.value


def test_nothing_of_it_is_loaded_with_the_library() -> None:
    names = "{'sqlite3', 'psycopg', 'lutumpy.durable', 'lutumpy.rounds.portable', 'hmac'}"
    # What measures coverage may have loaded some of it before.
    code = (
        "import sys; before = set(sys.modules); import lutumpy; "
        f"print(sorted({names} & sys.modules.keys() - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- Postgres alone ----------------------------------------------------------------------------


def test_what_is_no_address_is_refused(postgres_url: str) -> None:
    with pytest.raises(TypeError, match="a URL or a ConnectionPool"):
        PostgresStore(7)
    with pytest.raises(ValueError, match="schema="):
        PostgresStore(postgres_url, schema="Robert'); DROP TABLE")
    assert "tester" not in repr(PostgresStore(postgres_url))


async def test_a_pool_of_the_users_is_used_and_left_open(postgres_url: str) -> None:
    import psycopg

    class Pool:
        """What a `psycopg_pool.ConnectionPool` is, as far as it is used."""

        def __init__(self) -> None:
            self.connections = 0

        def connection(self) -> Any:
            self.connections += 1
            return psycopg.connect(postgres_url)

    pool = Pool()
    store = PostgresStore(pool, schema="pooled")
    await store.create("s", asked())
    assert len((await store.session("s")).transcript) == 1
    store.close()
    assert pool.connections >= 2


@pytest.mark.slow
async def test_lost_connections_are_replaced_and_nobody_notices(postgres_url: str) -> None:
    """The server was restarted: every idle connection is dead, and no request fails for it."""
    import psycopg

    async with PostgresStore(postgres_url, schema="lost") as store:
        count = 8
        names = [f"s{number}" for number in range(count)]
        for name in names:
            await store.create(name, asked())

        with psycopg.connect(postgres_url, autocommit=True) as watching:
            with psycopg.connect(postgres_url) as holding:
                # Each claim waits for this lock on a connection of its own.
                holding.execute("LOCK TABLE lost.sessions IN EXCLUSIVE MODE")
                with anyio.fail_after(20):
                    async with anyio.create_task_group() as group:
                        for name in names:
                            group.start_soon(claimed, store, name)
                        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
                        while watching.execute(waiting).fetchone() != (count,):  # noqa: ASYNC110
                            await anyio.sleep(0.01)
                        holding.rollback()
            ended = watching.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND query <> '' AND backend_type = 'client backend'"
            )
            assert len(ended.fetchall()) >= count
        for name in names:
            await store.session(name)


async def test_nothing_stays_in_a_session_of_the_server(postgres_url: str) -> None:
    """Behind pgbouncer it is another program's next: no prepared statement, and no setting."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True, prepare_threshold=0) as connection:
        # Sessions of a pool: `prepare_threshold` would prepare everything.
        class Pool:
            @contextmanager
            def connection(self) -> Iterator[Any]:
                yield connection

        store = PostgresStore(Pool(), schema="behind")
        await store.create("s", asked())
        claim = await claimed(store)
        await store.add_events(claim, [{"event": str(number)} for number in range(2_500)])
        assert [one.seq for one in await follow(store, 2_500)] == [*range(1, 2_501)]
        connection.prepare_threshold = None
        left = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert left == (0,)
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("0",)  # type: ignore[call-overload]


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.skipif(not has_pgbouncer(), reason="there is no pgbouncer")
async def test_conversations_go_on_behind_pgbouncer(postgres_url: str) -> None:
    """In transaction mode, twelve conversations on two sessions of the server."""
    import psycopg

    with serve_pgbouncer(postgres_url) as url:
        async with PostgresStore(url, schema="bounced") as store:
            await store.create("s", asked())

            async def go_on(name: str) -> None:
                claim = await open_claim(store, name)
                for number in range(8):
                    await store.begin(claim, f"call:{number}")
                    await store.record(claim, f"call:{number}", {"outcome": "ok"})
                    await store.add_events(claim, [{"event": "a"}, {"event": "b"}])
                    claim = await commit_text(store, claim, str(number))

            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(go_on, f"c{number}")
            listed = await store.scopes()
        assert [one.items for one in listed] == [*[9] * 12, 1]
        # Another client gets the same sessions.
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as other:
            for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
                shown = "SELECT current_setting(%s)"
                assert other.execute(shown, [setting]).fetchone() == ("0",)


async def test_tools_in_threads_do_not_starve_a_lease(postgres_url: str) -> None:
    """Plain functions fill anyio's threads while they run; renewals have their own."""
    async with PostgresStore(postgres_url, schema="starved") as store:
        claim = await open_claim(store)
        default = anyio.to_thread.current_default_thread_limiter()
        tokens = [object() for _ in range(int(default.total_tokens))]
        for token in tokens:
            default.acquire_on_behalf_of_nowait(token)
        try:
            with anyio.fail_after(10):
                await store.renew(claim)
        finally:
            for token in tokens:
                default.release_on_behalf_of(token)


def test_threads_may_share_a_store(make: Callable[[], Any]) -> None:
    store = make()
    anyio.run(partial(store.create, "s", asked()))
    errors: list[BaseException] = []

    def push(number: int) -> None:
        try:
            for each in range(5):
                key = f"{number}-{each}"
                anyio.run(partial(store.push, "s", "hi", idempotency_key=key))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=push, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(anyio.run(store.inbox, "s")) == 20
