"""What 200 watchers of one run cost it: a thousand deltas in a hundred writes, on each store.

Milliseconds on the clock, with one watcher and with 200, in turns: the median write, and how long
after its write an event is with a watcher (99 of 100). All are in one process, as behind one web
server. Postgres where it can be started.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).parents[1] / "durable"))

from postgres_server import serve_postgres, why_not

from lutumpy import Session
from lutumpy.durable import Claim, PostgresStore, SqliteStore

WRITES = 100
IN_ONE = 10
WATCHERS = 200
SECONDS_BETWEEN = 0.02


async def measure(store: Any, watchers: int) -> tuple[float, float, float]:
    """Milliseconds: the median write, the slow deliveries; and seconds for everything."""
    session, scope = Session(), uuid.uuid4().hex
    session.push_user("go")
    await store.create(scope, session)
    claim = await store.claim(scope, lease=600.0)
    assert isinstance(claim, Claim)
    written: dict[int, float] = {}
    took: list[float] = []
    late: list[float] = []

    async def watch() -> None:
        count = 0
        async for event in store.events(scope):
            late.append(time.perf_counter() - written[event.seq])
            count += 1
            if count == WRITES * IN_ONE:
                return

    async def write() -> None:
        for number in range(WRITES):
            start = time.perf_counter()
            written.update(
                dict.fromkeys(range(number * IN_ONE + 1, (number + 1) * IN_ONE + 1), start)
            )
            await store.add_events(claim, [{"event": "TextDelta", "text": "word "}] * IN_ONE)
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


async def compare(make_store: Any) -> None:
    found: dict[int, list[tuple[float, float, float]]] = {1: [], WATCHERS: []}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(make_store())
        for _ in range(3):
            for watchers, measured in found.items():
                measured.append(await measure(store, watchers))
    writes: list[float] = []
    for watchers, measured in found.items():
        write, late, seconds = [statistics.median(each) for each in zip(*measured, strict=True)]
        writes.append(write)
        print(
            f"{store!r:40.40} {watchers:3} watchers: write {write:5.2f} ms, "
            f"delivered in {late:6.1f} ms, {seconds:4.1f} s"
        )
    print(f"writes take {writes[1] / writes[0]:.2f} times as long")


def main() -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        asyncio.run(compare(lambda: SqliteStore(Path(folder) / "a.db")))
        if why_not():
            print(f"no Postgres: {why_not()}")
        else:
            url = stack.enter_context(serve_postgres())
            asyncio.run(compare(lambda: PostgresStore(url)))


if __name__ == "__main__":
    main()
