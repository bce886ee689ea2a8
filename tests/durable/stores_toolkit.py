"""What the tests of stores share: short ways to a claim and a commit, and what other processes
do.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio

from lutumpy import Session
from lutumpy.durable import Claim, Counts, PostgresStore, SqliteStore, StoredEvent

EMPTY = Session().head


def asked(text: str = "go") -> Session:
    session = Session()
    session.push_user(text)
    return session


async def claimed(store: Any, scope: str = "s", **options: Any) -> Claim:
    claim = await store.claim(scope, **options)
    assert isinstance(claim, Claim)
    return claim


async def open_claim(store: Any, scope: str = "s") -> Claim:
    await store.create(scope, asked())
    return await claimed(store, scope)


def plan_of(*held: str, digest: str = "sha256:1") -> Any:
    calls = [{"call_id": call_id, "standing": "held"} for call_id in held]
    return {"digest": digest, "calls": [*calls, {"call_id": "free", "standing": "pending"}]}


async def commit_text(store: Any, claim: Claim, text: str, **options: Any) -> Claim:
    """Commit one message more; gives the claim of the next round."""
    session = Session.build(claim.items, claim.state)
    session.push_user(text)
    items = session.items_since(claim.head)
    await store.commit(
        claim, claim.head, items, session.head, session.state(), Counts(1, 2), **options
    )
    return replace(
        claim,
        round=claim.round + 1,
        head=session.head,
        items=(*claim.items, *items),
        state=session.state(),
    )


def result_of(call_id: str, outcome: str = "maybe_executed") -> Any:
    call = {"id": call_id, "name": "pay", "arguments": "{}"}
    unresolved = {"scope": "s", "call": call, "arguments": "{}"}
    return {"outcome": outcome, "unresolved": unresolved}


async def follow(store: Any, count: int, after: int = 0) -> list[StoredEvent]:
    seen: list[StoredEvent] = []
    with anyio.fail_after(10):
        async for event in store.events("s", after=after):
            seen.append(event)
            if len(seen) == count:
                break
    return seen


# --- other processes ---------------------------------------------------------------------------


def open_store(kind: str, place: str) -> Any:
    """The store in a database: a file, or a URL and the name of a schema."""
    if kind == "sqlite":
        return SqliteStore(place)
    url, _, schema = place.partition(" ")
    return PostgresStore(url, schema=schema)


def run_in_processes(target: Callable[..., None], count: int, *args: Any) -> list[Any]:
    """Processes of their own, which each run a function of this module with their number."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=target, args=(*args, n)) for n in range(count)]
    for process in processes:
        process.start()
    return processes


def commit_rounds(kind: str, place: str, number: int) -> None:
    async def work() -> None:
        async with open_store(kind, place) as store:
            await store.create("s", asked())
            done = 0
            while done < 10:
                claim = await store.claim("s", lease=5)
                if isinstance(claim, Claim):
                    await store.begin(claim, f"call:{number}")
                    await store.record(claim, f"call:{number}", {"outcome": "ok"})
                    claim = await commit_text(store, claim, f"{number} {done}")
                    await store.release(claim)
                    done += 1
                else:
                    await anyio.sleep(0.005)

    anyio.run(work)


SHORT_LEASE = 0.01  # seconds


def commit_until_killed(kind: str, place: str, number: int) -> None:
    async def work() -> None:
        store = open_store(kind, place)
        claim = await store.claim("s", lease=SHORT_LEASE)
        assert isinstance(claim, Claim)
        while True:
            await store.record(claim, "call:x", {"outcome": "ok"})
            claim = await commit_text(store, claim, "more")

    anyio.run(work)
