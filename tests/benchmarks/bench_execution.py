"""What the executor adds to running trivial async tools: beside a bare anyio task group, for one
round and for many calls.

The bare side starts a task for each call, runs the tool's function under a timeout, and makes the
result; that much any executor has to do. Both take turns in one run; the best time of each counts,
since whatever else the machine does only makes it slower.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from typing import Any

import anyio

from lutumpy import ToolMetadata, ToolResult, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor

SIZES = [(1, 400), (8, 200), (64, 60), (1000, 8)]


@tool_fn(effect="read")
async def lookup(key: str, limit: int = 10) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    lookup = tool(lookup)


async def bare(calls: Sequence[Any]) -> list[ToolResult]:
    """The same by hand, without limit, report or isolation."""
    results: list[Any] = [None] * len(calls)

    async def one(index: int, call: Any) -> None:
        with anyio.fail_after(15.0):
            results[index] = call.complete(await call.call())

    async with anyio.create_task_group() as group:
        for index, call in enumerate(calls):
            group.start_soon(one, index, call)
    return results


async def measure(size: int, rounds: int) -> tuple[float, float]:
    """Best seconds for each call, by hand and through the executor."""
    calls = [
        Tools.parse(ToolMetadata(f"call_{n}", "lookup", f'{{"key": "key {n}"}}'))
        for n in range(size)
    ]
    dispatch = Dispatcher(Tools)
    executor = ToolExecutor(max_concurrency=100)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for kind in (0, 1):
            gc.collect(0)
            begun = time.perf_counter()
            results: Sequence[ToolResult] = await (
                executor.run(calls, dispatch) if kind else bare(calls)
            )
            times[kind].append(time.perf_counter() - begun)
            assert [r.status for r in results] == ["ok"] * size
    return min(times[0]) / size, min(times[1]) / size


def main() -> None:
    for backend in ("asyncio", "trio"):
        if backend == "trio" and "trio" not in sys.modules:
            try:
                import trio  # noqa: F401  # only to see whether it is there
            except ImportError:
                continue
        for size, rounds in SIZES:
            by_hand, executed = anyio.run(measure, size, rounds, backend=backend)
            print(
                f"{backend:8} {size:5} calls: by hand {by_hand * 1e6:7.1f} us a call, "
                f"executor {executed * 1e6:7.1f} us, ratio {executed / by_hand:.2f}"
            )


if __name__ == "__main__":
    main()
