"""How many calls run at once, and in which order they start (rule E1)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest
from execution_toolkit import App, call, calls, dispatcher, outcomes
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from virtual_time import BACKENDS, run, tasks

from lutumpy.execution import ExecutionReport, ToolExecutor


class Gauge:
    """Counts what runs at once."""

    def __init__(self, seconds: Any = 1.0) -> None:
        self.seconds = seconds
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.started: list[int] = []
        self.ended: list[int] = []

    async def __call__(self, input: Any) -> int:
        self._count(type(input).__name__, 1)
        self.started.append(input.n)
        try:
            await anyio.sleep(self.seconds(input.n) if callable(self.seconds) else self.seconds)
        finally:
            self._count(type(input).__name__, -1)
        self.ended.append(input.n)
        return int(input.n)

    def _count(self, name: str, step: int) -> None:
        for key in (name, "all"):
            self.running[key] += step
            self.most[key] = max(self.most[key], self.running[key])


async def test_at_most_max_concurrency_calls_run_and_five_by_default() -> None:
    """E1"""
    for executor, size in ((ToolExecutor(), 5), (ToolExecutor(max_concurrency=3), 3)):
        gauge = Gauge()
        begun = anyio.current_time()
        results = await executor.run(calls(*["look"] * 13), dispatcher(look=gauge))
        assert gauge.most["all"] == size
        assert anyio.current_time() - begun == pytest.approx(-(-13 // size))
        assert [result.output for result in results] == list(range(13))


@pytest.mark.pure
@pytest.mark.slow
async def test_ten_thousand_calls_keep_to_the_limit_and_lose_nothing() -> None:
    """E1"""
    gauge = Gauge(lambda n: (n * 7919 % 97) / 10)
    before = await tasks()
    executor = ToolExecutor(max_concurrency=100)
    report = ExecutionReport()
    results = await executor.run(calls(*["look"] * 10_000), dispatcher(look=gauge), report=report)
    assert gauge.most["all"] == 100
    # trio shuffles what starts at the same moment, so that nobody relies on it.
    assert max(abs(n - place) for place, n in enumerate(gauge.started)) < 100
    assert sorted(gauge.ended) == list(range(10_000))
    assert [result.output for result in results] == list(range(10_000))
    assert {(r.attempts, r.outcome) for r in report.calls} == {(1, "ok")}
    assert await tasks() == before


async def test_a_slow_call_keeps_no_free_slot_idle() -> None:
    """E1"""
    gauge = Gauge(lambda n: 8.0 if n == 0 else 1.0)
    begun = anyio.current_time()
    await ToolExecutor(max_concurrency=2).run(calls(*["look"] * 9), dispatcher(look=gauge))
    assert anyio.current_time() - begun == pytest.approx(8.0)
    assert gauge.ended == [1, 2, 3, 4, 5, 6, 7, *gauge.ended[7:]]


async def test_calls_start_and_results_come_in_call_order() -> None:
    """E1"""
    gauge = Gauge(lambda n: 5.0 - n)
    results = await ToolExecutor(max_concurrency=2).run(
        calls(*["look"] * 5), dispatcher(look=gauge)
    )
    assert [sorted(gauge.started[k : k + 2]) for k in (0, 2)] == [[0, 1], [2, 3]]
    assert [result.output for result in results] == [0, 1, 2, 3, 4]
    assert gauge.ended[:2] == [1, 0]


async def test_a_call_that_waits_for_its_tool_keeps_no_free_slot_idle() -> None:
    """E1"""
    gauge = Gauge()
    executor = ToolExecutor(max_concurrency=3, limits={App.save: 1})
    begun = anyio.current_time()
    names = ["save", "save", "save", "look", "look", "look", "look"]
    results = await executor.run(calls(*names), dispatcher(look=gauge, save=gauge))
    assert [sorted(gauge.started[k : k + 3]) for k in (0, 3, 6)] == [[0, 3, 4], [1, 5, 6], [2]]
    assert (gauge.most["Save"], gauge.most["all"]) == (1, 3)
    assert anyio.current_time() - begun == pytest.approx(3.0)
    assert outcomes(results) == ["ok"] * 7


async def test_the_limits_hold_over_all_runs_of_an_executor() -> None:
    gauge = Gauge()
    executor = ToolExecutor(max_concurrency=4, limits={App.save: 2})
    dispatch = dispatcher(look=gauge, save=gauge)
    found: list[Any] = []

    async def one() -> None:
        found.append(await executor.run(calls("save", "save", "look", "look"), dispatch))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    assert (gauge.most["Save"], gauge.most["all"]) == (2, 4)
    assert [outcomes(results) for results in found] == [["ok"] * 4] * 6


async def test_a_long_run_does_not_keep_a_short_one_waiting() -> None:
    gauge = Gauge()
    executor = ToolExecutor(max_concurrency=2)
    dispatch = dispatcher(look=gauge)
    ended: list[float] = []

    async def one(count: int) -> None:
        await executor.run(calls(*["look"] * count), dispatch)
        ended.append(anyio.current_time())

    begun = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(one, 40)
        await anyio.sleep(0.5)
        group.start_soon(one, 2)
    assert ended[0] - begun <= 4.0
    assert ended[1] - begun == pytest.approx(21.0)


async def test_the_wait_before_a_retry_keeps_no_slot() -> None:
    """E1"""
    tries: list[int] = []

    async def look(input: Any) -> int:
        tries.append(input.n)
        await anyio.sleep(100.0 if tries.count(input.n) == 1 and input.n == 0 else 1.0)
        return int(input.n)

    executor = ToolExecutor(max_concurrency=1, backoff=40.0, max_backoff=40.0)
    begun = anyio.current_time()
    results = await executor.run(calls("look", "look", "look"), dispatcher(look=look))
    assert tries == [0, 1, 2, 0]
    assert outcomes(results) == ["ok"] * 3
    assert 10 + 20 <= anyio.current_time() - begun <= 10 + 40 + 1 + 0.001


async def test_a_retry_comes_before_calls_that_were_not_started_yet() -> None:
    """E1"""
    tries: list[int] = []

    async def look(input: Any) -> int:
        tries.append(input.n)
        await anyio.sleep(11.0 if tries.count(input.n) == 1 and input.n == 0 else 6.0)
        return int(input.n)

    await ToolExecutor(max_concurrency=1, backoff=0.0).run(
        calls("look", "look", "look"), dispatcher(look=look)
    )
    assert tries == [0, 1, 0, 2] or tries == [0, 0, 1, 2]


@settings(max_examples=examples(40))
@given(
    names=st.lists(st.sampled_from(["look", "save", "send"]), max_size=30),
    size=st.integers(1, 6),
    limits=st.fixed_dictionaries(
        {}, optional={"look": st.integers(1, 4), "save": st.integers(1, 4)}
    ),
    seconds=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=30, max_size=30),
    backend=st.sampled_from(BACKENDS),
)
def test_limits_hold_slots_are_used_and_order_is_kept(
    names: list[str], size: int, limits: dict[str, int], seconds: list[float], backend: str
) -> None:
    """E1: a call waits only while its tool is at its limit or all slots are taken.

    Calls of one tool start in call order.
    """
    asked = calls(*names)
    waiting = set(range(len(names)))
    running: Counter[str] = Counter()

    async def handler(input: Any) -> int:
        waiting.remove(input.n)
        running[names[input.n]] += 1
        await anyio.sleep(seconds[input.n])
        running[names[input.n]] -= 1
        return int(input.n)

    def check() -> None:
        assert sum(running.values()) <= size
        assert all(running[name] <= limit for name, limit in limits.items())
        if sum(running.values()) < size:
            assert all(running[names[k]] == limits.get(names[k]) for k in waiting)
        for k in waiting:
            assert all(j in waiting for j in range(k, len(names)) if names[j] == names[k])

    async def main() -> Any:
        executor = ToolExecutor(
            max_concurrency=size, limits={App.selector(n): k for n, k in limits.items()}
        )
        results: list[Any] = []

        async def work() -> None:
            results.extend(
                await executor.run(asked, dispatcher(look=handler, save=handler, send=handler))
            )

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await anyio.sleep(0.25)  # between the moments at which something ends
            while waiting or sum(running.values()):
                check()
                await anyio.sleep(0.5)
        return results

    assert [result.output for result in run(backend, main)] == list(range(len(names)))


async def test_no_calls_give_no_results() -> None:
    assert await ToolExecutor().run([], dispatcher()) == []


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"max_concurrency": 0}),
        (TypeError, {"max_concurrency": 2.5}),
        (TypeError, {"max_concurrency": True}),
        (ValueError, {"limits": {App.look: 0}}),
        (TypeError, {"limits": {"look": 2}}),
        (ValueError, {"backoff": -1.0}),
        (ValueError, {"max_backoff": float("nan")}),
        (TypeError, {"thread_patience": "long"}),
        (TypeError, {"scope": None}),
    ],
)
def test_bad_options_are_refused(error: type[Exception], options: dict[str, Any]) -> None:
    with pytest.raises(error, match=next(iter(options)) if "limits" not in options else "limit"):
        ToolExecutor(**options)


def test_a_sync_run_says_what_it_takes_as_well() -> None:
    with pytest.raises(
        TypeError, match=r"round.calls or plan.pending, not object; nothing was run"
    ):
        ToolExecutor().run_sync(object(), dispatcher())  # type: ignore[arg-type]


async def test_a_call_is_taken_once_and_nothing_else_is() -> None:
    ran: list[int] = []

    async def look(input: Any) -> int:
        ran.append(input.n)
        return 0

    executor = ToolExecutor()
    dispatch = dispatcher(look=look)
    one = call("look")
    with pytest.raises(ValueError, match=r"two calls have the id 'call_1'.*nothing was run"):
        await executor.run([one, one], dispatch)
    with pytest.raises(
        TypeError, match=r"round.calls or plan.pending, not object; nothing was run"
    ):
        await executor.run(object(), dispatch)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="issues are answered by the commit"):
        await executor.run([one, "call"], dispatch)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="takes a Dispatcher, not ToolExecutor"):
        await executor.run([one], executor)  # type: ignore[arg-type]
    report = ExecutionReport()
    await executor.run([one], dispatch, report=report)
    with pytest.raises(ValueError, match="the report is of another run"):
        await executor.run([one], dispatch, report=report)
    assert ran == [0]
