"""What 200 watchers of one run cost it: a thousand deltas in a hundred writes, on each store.

Milliseconds on the clock, with one watcher and with 200, in turns: the median write, and how long
after its write an event is with a watcher (99 of 100). All are in one process, as behind one web
server: readers of the store's log, and then watchers as the routes have them, of one `EventHub`,
each with a stream of the AI SDK of its own. Postgres where it can be started.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).parents[1] / "durable"))

from postgres_server import serve_postgres, why_not

from lutumpy import Session
from lutumpy.durable import Claim, PostgresStore, SqliteStore
from lutumpy.web import AISDKStream, EventHub

WRITES = 100
IN_ONE = 10
WATCHERS = 200
SECONDS_BETWEEN = 0.02
DELTA: dict[str, Any] = {"event": "TextDelta", "text": "word ", "delta": True}


async def measure(store: Any, watchers: int, *, as_routes: bool) -> tuple[float, float, float]:
    """Milliseconds: the median write, the slow deliveries; and seconds for everything."""
    hub = EventHub(store)
    session, scope = Session(), uuid.uuid4().hex
    session.push_user("go")
    await store.create(scope, session)
    claim = await store.claim(scope, lease=600.0)
    assert isinstance(claim, Claim)
    written: dict[int, float] = {}
    took: list[float] = []
    late: list[float] = []

    async def watch() -> None:
        stream = AISDKStream(scope)
        count = sent = 0
        async for event in hub.follow(scope) if as_routes else store.events(scope):
            if as_routes:
                sent += sum(len(frame.data) for frame in stream.feed(event))
            late.append(time.perf_counter() - written[event.seq])
            count += 1
            if count == WRITES * IN_ONE:
                assert sent > 1000 * IN_ONE or not as_routes
                return

    async def write() -> None:
        for number in range(WRITES):
            start = time.perf_counter()
            written.update(
                dict.fromkeys(range(number * IN_ONE + 1, (number + 1) * IN_ONE + 1), start)
            )
            await store.add_events(claim, [DELTA] * IN_ONE)
            took.append(time.perf_counter() - start)
            await anyio.sleep(SECONDS_BETWEEN)

    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(watchers):
            group.start_soon(watch)
        group.start_soon(write)
    assert len(late) == watchers * WRITES * IN_ONE
    slow = statistics.quantiles(late, n=100)[98]
    return statistics.median(took) * 1e3, slow * 1e3, time.perf_counter() - start


async def compare(make_store: Any, *, as_routes: bool) -> None:
    found: dict[int, list[tuple[float, float, float]]] = {1: [], WATCHERS: []}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(make_store())
        for _ in range(3):
            for watchers, measured in found.items():
                measured.append(await measure(store, watchers, as_routes=as_routes))
    writes: list[float] = []
    for watchers, measured in found.items():
        write, late, seconds = [statistics.median(each) for each in zip(*measured, strict=True)]
        writes.append(write)
        print(
            f"{type(store).__name__} {'routes' if as_routes else 'readers'} "
            f"{watchers:3} watchers: write {write:5.2f} ms, "
            f"delivered in {late:6.1f} ms, {seconds:4.1f} s"
        )
    print(f"writes take {writes[1] / writes[0]:.2f} times as long")


def main() -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        makers: list[Callable[[], Any]] = [lambda: SqliteStore(Path(folder) / "a.db")]
        if why_not():
            print(f"no Postgres: {why_not()}")
        else:
            url = stack.enter_context(serve_postgres())
            makers.append(lambda: PostgresStore(url))
        for make in makers:
            for as_routes in (False, True):
                asyncio.run(compare(make, as_routes=as_routes))


if __name__ == "__main__":
    main()
