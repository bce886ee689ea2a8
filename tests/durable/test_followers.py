"""Many followers of one log: what they cost, and that none of them misses anything."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from stores_toolkit import open_claim

from lutumpy.durable.database_store import DatabaseStore

BATCHES = 12


async def follow_together(store: Any, followers: int, *, leave: int = 0) -> list[list[int]]:
    """What followers see of events that come meanwhile; the first `leave` of them go away soon."""
    claim = await open_claim(store)
    seen: list[list[int]] = [[] for _ in range(followers)]

    async def watch(number: int, after: int) -> None:
        async for event in store.events("s", after=after):
            seen[number].append(event.seq)
            if event.seq == BATCHES * 5 or (number < leave and len(seen[number]) > 7):
                return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(followers - 3):
                group.start_soon(watch, number, 0)
            for batch in range(BATCHES):
                await store.add_events(claim, [{"event": str(batch)}] * 5)
                await anyio.sleep(0.02)
                if batch == BATCHES // 2:  # some come late, and from different places
                    for number in range(followers - 3, followers):
                        group.start_soon(watch, number, 7 * (followers - number))
    await store.release(claim)
    return seen


@pytest.mark.slow
async def test_every_follower_sees_every_event_in_order_P20(make: Callable[[], Any]) -> None:
    seen = await follow_together(make(), 30, leave=10)
    everything = [*range(1, BATCHES * 5 + 1)]
    assert all(each == everything[: len(each)] and len(each) > 7 for each in seen[:10])
    assert all(each == everything for each in seen[10:27])
    assert [each == everything[7 * n :] for each, n in zip(seen[27:], (3, 2, 1), strict=True)] == [
        True
    ] * 3


@pytest.mark.slow
async def test_fifty_followers_read_little_more_than_one_P20(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [make(), make()]
    if not isinstance(stores[0], DatabaseStore):
        pytest.skip("a store in memory reads nothing")
    read = DatabaseStore._read_events  # what costs a transaction
    reads = 0

    async def count(self: Any, scope: str, after: int) -> Any:
        nonlocal reads
        reads += 1
        return await read(self, scope, after)

    monkeypatch.setattr(DatabaseStore, "_read_events", count)
    await follow_together(stores[0], 4)
    of_few, reads = reads, 0
    await stores[0].delete("s")
    await follow_together(stores[1], 50)
    assert reads <= 2 * of_few + 10


async def test_a_follower_that_is_cancelled_while_it_reads_leaves_the_others_reading(
    make: Callable[[], Any],
) -> None:
    """Whoever reads for all is one of them; the next one takes its place."""
    store = make()
    claim = await open_claim(store)
    dice = random.Random(7)
    seen: list[int] = []

    async def watch() -> None:
        async for event in store.events("s"):
            seen.append(event.seq)
            if event.seq == BATCHES:
                return

    async def leave(scope: anyio.CancelScope) -> None:
        with scope:
            async for _ in store.events("s"):
                pass

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            scopes = [anyio.CancelScope() for _ in range(BATCHES)]
            for scope in scopes:
                group.start_soon(leave, scope)
            await anyio.sleep(0.01)
            group.start_soon(watch)
            for number in range(BATCHES):
                await store.add_events(claim, [{"event": str(number)}])
                await anyio.sleep(dice.uniform(0, 0.03))
                scopes[number].cancel()
    assert seen == [*range(1, BATCHES + 1)]
