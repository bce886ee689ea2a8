"""Cancelling ends everything at once, and what had finished can be committed (rule E4)."""

from __future__ import annotations

import random
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from execution_toolkit import App, asked, calls, dispatcher, outcomes, start, text
from virtual_time import run, tasks

from lutumpy import CommitError, ToolError
from lutumpy.execution import ExecutionReport, ToolExecutor


async def test_cancelling_ends_everything_at_once_and_keeps_what_had_finished() -> None:
    """E4"""
    started: list[int] = []
    stopped: list[int] = []

    async def handler(input: Any) -> int:
        started.append(input.n)
        try:
            await anyio.sleep(1.0 if input.n == 1 else 100.0)
        except BaseException:
            stopped.append(input.n)
            raise
        return int(input.n)

    session, round = start(*[asked(name, {"n": k}, f"call_{k}") for k, name in enumerate(NAMES)])
    executor = ToolExecutor(max_concurrency=3)
    before = await tasks()
    begun = anyio.current_time()
    with anyio.move_on_after(2.5) as scope:
        await executor.run(round.calls, dispatcher(wait=handler, send_slowly=handler))
    assert scope.cancelled_caught
    assert anyio.current_time() - begun == pytest.approx(2.5)
    assert sorted(started) == [0, 1, 2, 3]
    assert sorted(stopped) == [0, 2, 3]
    assert await tasks() == before
    await anyio.sleep(1000.0)
    assert sorted(started) == [0, 1, 2, 3]

    results = executor.report.results(round.calls)
    assert outcomes(results) == [
        "interrupted",
        "ok",
        "maybe_executed",
        "interrupted",
        "not_started",
    ]
    assert [r.status for r in results] == ["error", "ok", "error", "error", "error"]
    assert "does no harm" in text(results[0])
    assert "unknown" in text(results[2])
    assert "not started" in text(results[4])
    assert [entry.metadata.id for entry in executor.unresolved] == ["call_2"]
    round.commit(session, results)
    blocks: Any = session.transcript[-1]
    assert [r.status for r in blocks.results] == ["error", "ok", "error", "error", "error"]


NAMES = ["wait", "wait", "send_slowly", "wait", "wait"]


async def test_calls_that_were_about_to_start_do_not() -> None:
    """E4"""
    started: list[int] = []

    async def look(input: Any) -> int:
        started.append(input.n)
        scope.cancel()
        return int(input.n)

    executor = ToolExecutor()
    asked = calls("look", "look", "look", "send")
    with anyio.CancelScope() as scope:
        await executor.run(asked, dispatcher(look=look, send=look))
    assert scope.cancelled_caught
    (first,) = started
    results = executor.report.results(asked)
    assert outcomes(results) == ["ok" if k == first else "not_started" for k in range(4)]
    assert [report.attempts for report in executor.report.calls] == [
        int(k == first) for k in range(4)
    ]
    assert executor.unresolved == ()


async def test_a_tool_that_says_what_became_of_it_while_it_is_cancelled_is_believed() -> None:
    async def send(input: Any) -> int:
        try:
            await anyio.sleep_forever()
        except BaseException:
            if input.n == 0:
                raise ToolError("nothing was sent") from None
            if input.n == 1:
                return 5
            raise ValueError("secret") from None
        return 0

    executor = ToolExecutor()
    asked = calls("send_slowly", "send_slowly", "send_slowly")
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(send_slowly=send))
    results = executor.report.results(asked)
    assert outcomes(results) == ["failed", "ok", "maybe_executed"]
    assert text(results[0]) == "nothing was sent"
    assert results[1].output == 5
    assert isinstance(results[2].error, ValueError)


async def test_a_cancelled_backoff_and_a_cancelled_wait_for_a_slot_leave_nothing() -> None:
    async def look(input: Any) -> int:
        if input.n == 0:
            await anyio.sleep_forever()
        await anyio.sleep(9.0)
        return int(input.n)

    for moment in (10.5, 12.5, 14.0):
        executor = ToolExecutor(
            max_concurrency=1, backoff=2.0, max_backoff=2.0, random=random.Random(3)
        )
        asked = calls("look", "look", "look")
        with anyio.move_on_after(moment):
            await executor.run(asked, dispatcher(look=look))
        assert outcomes(executor.report.results(asked))[0] == "interrupted"
        results = await executor.run(calls("save", "save"), dispatcher())
        assert outcomes(results) == ["ok", "ok"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_cancelling_at_any_moment_leaves_no_task_and_starts_no_work_and_the_round_commits(
    backend: str, seed: int
) -> None:
    """E4: 25 moments each for two backends and four seeds, 200 in all, in virtual time."""
    rng = random.Random(seed)

    async def once() -> None:
        seconds = [rng.choice([0.0, 0.1, 1.0, 3.0, 30.0]) for _ in range(30)]
        fails = [rng.random() < 0.2 for _ in range(30)]
        cancelled = False
        late: list[int] = []
        late_plain: list[str] = []
        ended: dict[int, str] = {}
        gate = threading.Event()

        def begin(n: int) -> None:
            if cancelled:
                late.append(n)

        async def handler(input: Any) -> int:
            begin(input.n)
            await anyio.sleep(seconds[input.n])
            ended[input.n] = "failed" if fails[input.n] else "ok"
            if fails[input.n]:
                raise ToolError("no")
            return int(input.n)

        def plain(input: Any) -> int:
            if cancelled:
                late_plain.append(f"call_{input.n}")
            if fails[input.n]:
                gate.wait()
            return int(input.n)

        names = [
            rng.choice(["look", "save", "send", "send_slowly", "wait", "wait"]) for _ in range(30)
        ]
        session, round = start(
            *[asked(name, {"n": k}, f"call_{k}") for k, name in enumerate(names)]
        )
        size = rng.randint(1, 8)
        executor = ToolExecutor(
            max_concurrency=size, limits={App.save: 1}, backoff=rng.choice([0.0, 1.0])
        )
        dispatch = dispatcher(
            look=handler, save=handler, send=handler, send_slowly=handler, wait=plain
        )
        before = await tasks()
        report = ExecutionReport()
        with anyio.move_on_after(rng.choice([rng.uniform(0, 5), rng.uniform(0, 60), 0.0])):
            await executor.run(round.calls, dispatch, report=report)
        cancelled = True
        in_threads = {call.call_id for call in report.still_running()}
        assert await tasks() == before
        await anyio.sleep(500.0)
        assert late == []
        # A thread that had been given its function may reach the first line of it only now.
        assert in_threads >= set(late_plain)
        assert not report.active
        results = report.results(round.calls)
        for k, result in enumerate(results):
            if k in ended:
                assert result.outcome == ended[k]
            elif names[k] in ("send", "send_slowly"):
                assert result.outcome in ("not_started", "maybe_executed")
            elif names[k] != "wait":
                assert result.outcome in ("not_started", "interrupted", "timed_out")
        round.commit(session, results)
        gate.set()
        # The slots are all there again, once the threads have returned.
        again = await executor.run(
            calls(*["wait"] * 20), dispatcher(wait=lambda input: input.n), scope="another"
        )
        assert outcomes(again) == ["ok"] * 20
        while report.still_running():
            await anyio.lowlevel.checkpoint()
        assert executor._slots._free == size

    async def main() -> None:
        for _ in range(25):
            await once()

    run(backend, main)


async def test_results_are_not_given_while_the_run_goes_on() -> None:
    executor = ToolExecutor()
    seen: list[Any] = []

    async def look(input: Any) -> int:
        with pytest.raises(RuntimeError, match="still going on"):
            executor.report.results([])
        seen.extend(
            [executor.report.active, repr(executor.report), executor.report.calls[0].outcome]
        )
        return 1

    await executor.run(calls("look"), dispatcher(look=look))
    assert seen == [True, "<ExecutionReport active: 0 of 1 done>", None]
    assert not executor.report.active


async def test_a_report_answers_for_calls_that_it_does_not_know() -> None:
    executor = ToolExecutor()
    results = executor.report.results(calls("look"))
    assert outcomes(results) == ["not_started"]
    await executor.run(calls("look"), dispatcher())
    # The id of a call that was run, with other arguments: not the call that was run.
    (other,) = calls("look", "look")[1:]
    renamed: Any = App.parse(other.metadata._replace(id="call_0"))
    assert outcomes(executor.report.results([renamed])) == ["not_started"]
    with pytest.raises(KeyError):
        executor.report["call_9"]


async def test_resuming_runs_what_was_not_settled_and_nothing_else() -> None:
    ran: list[int] = []
    patient = False

    async def handler(input: Any) -> int:
        ran.append(input.n)
        if input.n == 1:
            raise ToolError("no")
        await anyio.sleep(0.5 if input.n == 0 or patient else 100.0)
        return int(input.n)

    executor = ToolExecutor(max_concurrency=2)
    asked = calls("wait", "wait", "wait", "send_slowly", "wait", "send_slowly")
    dispatch = dispatcher(wait=handler, send_slowly=handler)
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatch)
    first = executor.report
    assert outcomes(first.results(asked)) == [
        "ok",
        "failed",
        "interrupted",
        "maybe_executed",
        *["not_started"] * 2,
    ]
    ran.clear()
    patient = True
    results = await executor.run(asked, dispatch, resume=first)
    assert sorted(ran) == [2, 4, 5]
    assert outcomes(results) == ["ok", "failed", "ok", "maybe_executed", "ok", "ok"]
    assert results[:2] == first.results(asked)[:2]
    assert executor.report is not first


async def test_a_run_that_was_refused_has_run_nothing_and_the_round_is_still_open() -> None:
    session, round = start(asked("look", {"n": 1}))
    report = ExecutionReport()
    wrong: Any = [*round.calls, 3]
    with pytest.raises(TypeError):
        await ToolExecutor().run(wrong, dispatcher(), report=report)
    assert not report.used
    with pytest.raises(CommitError):
        round.commit(session, [])
    round.commit(session, report.results(round.calls))
