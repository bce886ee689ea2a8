"""Many watchers of one log (W20): one reader, and who doesn't read is cut off."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest
from web_toolkit import SCOPE

from lutumpy import Session
from lutumpy.durable import Claim, MemoryStore, StoredEvent, StoreError
from lutumpy.web import EventHub, WebError


class CountingStore(MemoryStore):
    """Counts who follows its logs at the same time."""

    reading = 0
    most = 0

    async def events(self, *args: Any, **options: Any) -> Any:
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            async with aclosing(super().events(*args, **options)) as log:
                async for stored in log:
                    yield stored
        finally:
            self.reading -= 1


async def open_store() -> tuple[CountingStore, Claim]:
    store = CountingStore()
    await store.create(SCOPE, Session())
    claim = await store.claim(SCOPE)
    assert isinstance(claim, Claim)
    return store, claim


async def write(store: MemoryStore, claim: Claim, first: int, count: int) -> None:
    for number in range(first, first + count):
        await store.add_events(claim, [{"event": "RequestStarted", "round": number}])


async def take(hub: EventHub, count: int, after: int = 0) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    async with aclosing(hub.follow(SCOPE, after=after)) as events:
        async for stored in events:
            found.append(stored)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_all_followers_are_given_everything_by_one_reader_W20(backend: str) -> None:
    async def main() -> None:
        store, claim = await open_store()
        await write(store, claim, 1, 5)
        hub = EventHub(store)
        found: list[list[int]] = []

        async def follow(after: int) -> None:
            events = await take(hub, 25 - after, after)
            found.append([stored.seq for stored in events])

        async with anyio.create_task_group() as group:
            for after in (0, 0, 3, 5):
                group.start_soon(follow, after)
            await anyio.sleep(0.2)
            for first in range(6, 26, 4):
                await write(store, claim, first, 4)
                await anyio.sleep(0.02)
        expected = [list(range(1, 26)), list(range(1, 26)), list(range(4, 26)), list(range(6, 26))]
        assert sorted(found) == sorted(expected)
        assert store.reading == 0
        assert store.most <= 5  # one that reads for all, and four that catch up
        assert not hub._channels

    anyio.run(main, backend=backend)


def test_a_follower_that_doesn_t_read_is_cut_off_and_resumes_W20() -> None:
    async def main() -> None:
        store, claim = await open_store()
        hub = EventHub(store, queue=4)
        async with aclosing(hub.follow(SCOPE)) as slow:
            await write(store, claim, 1, 1)
            seen = [(await anext(slow)).seq]
            async with anyio.create_task_group() as group:
                group.start_soon(take, hub, 10, 1)
                await anyio.sleep(0.05)
                await write(store, claim, 2, 10)
            seen += [stored.seq async for stored in slow]
        assert seen == [1, 2, 3, 4, 5]
        seen += [stored.seq for stored in await take(hub, 6, seen[-1])]
        assert seen == list(range(1, 12))

    anyio.run(main)


def test_a_reader_that_leaves_hands_over() -> None:
    async def main() -> None:
        store, claim = await open_store()
        hub = EventHub(store)
        found: list[int] = []

        async def follow() -> None:
            found.extend([stored.seq for stored in await take(hub, 2)])

        async with anyio.create_task_group() as group:
            with anyio.move_on_after(0.1):
                async with anyio.create_task_group() as first:
                    first.start_soon(take, hub, 1)  # it reads, and is cancelled
                    await anyio.sleep(0.02)
                    group.start_soon(follow)
                    await anyio.sleep_forever()
            await write(store, claim, 1, 2)
        assert found == [1, 2]

    anyio.run(main)


def test_what_is_not_there_is_refused() -> None:
    async def main() -> None:
        store, _ = await open_store()
        hub = EventHub(store)
        with pytest.raises(WebError, match="409"):
            await take(hub, 1, after=5)
        with pytest.raises(StoreError, match="no conversation 'another'"):
            async for _ in hub.follow("another"):
                pass
        quiet = hub.follow_or_wait(SCOPE, patience=0.01)
        async with aclosing(quiet) as events:
            assert await anext(events) is None
            assert await anext(events) is None

    anyio.run(main)
    with pytest.raises(ValueError, match="queue=0 is not positive"):
        EventHub(MemoryStore(), queue=0)
