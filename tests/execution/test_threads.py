"""Plain functions run in worker threads, and keep their slot until they return (rule E6)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from execution_toolkit import App, SlowTools, call, calls, dispatcher, outcomes, text
from virtual_time import StoppedClock, run

from lutumpy import Skip, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ExecutionReport, ToolExecutor

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


class Held:
    """A plain handler that returns when the test lets it."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.ran: list[int] = []
        self.began = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __call__(self, input: Any) -> int:
        with self._lock:
            self.ran.append(input.n)
            self.running += 1
            self.most = max(self.most, self.running)
        self.began.release()
        self.gate.acquire()
        with self._lock:
            self.running -= 1
        return int(input.n)


async def wait_for(condition: Any) -> None:
    """Wait for something that a thread does."""
    while not condition():
        await anyio.to_thread.run_sync(threading.Event().wait, 0.001)


@tool_fn(effect="read", timeout=float("inf"))
def whoami(letter: str) -> str:
    """Say who asks."""
    seen = user.get()
    user.set(f"tool {letter}")
    return f"{seen} {threading.current_thread() is threading.main_thread()}"


@tool_fn(effect="read", timeout=float("inf"))
async def whoami_async(letter: str, *, pause: Skip[float] = 0.0) -> str:
    """Say who asks, too."""
    seen = user.get()
    user.set(f"tool {letter}")
    await anyio.sleep(pause)
    return f"{seen} {threading.current_thread() is threading.main_thread()}"


class Who(Toolset):
    whoami = tool(whoami)
    whoami_async = tool(whoami_async)


@pytest.mark.parametrize("size", [1, 10])
async def test_tools_have_the_context_variables_of_the_caller_and_leak_none(size: int) -> None:
    """E6"""
    names = ["whoami", "whoami_async"] * 5
    asked = [
        Who.parse(ToolMetadata(str(k), name, f'{{"letter": "{k}"}}'))
        for k, name in enumerate(names)
    ]
    user.set("the caller")
    results = await ToolExecutor(max_concurrency=size).run(asked, Dispatcher(Who))
    assert [result.output for result in results] == ["the caller False", "the caller True"] * 5
    assert user.get() == "the caller"


async def test_more_plain_functions_run_at_once_than_the_event_loop_would_allow() -> None:
    """E1: the limit is the executor's, not that of a loop's own threads (40)."""
    held = Held()
    executor = ToolExecutor(max_concurrency=60)

    async def let_go() -> None:
        await wait_for(lambda: held.running == 60)
        held.gate.release(70)

    async with anyio.create_task_group() as group:
        group.start_soon(let_go)
        results = await executor.run(calls(*["wait"] * 70), dispatcher(wait=held))
    assert (held.most, outcomes(results)) == (60, ["ok"] * 70)


class Most:
    """An async handler that counts what runs at once."""

    def __init__(self) -> None:
        self.running = self.most = self.ended = 0

    async def __call__(self, input: Any) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        await anyio.sleep(1.0)
        self.running -= 1
        self.ended += 1
        return int(input.n)


async def test_a_function_that_timed_out_keeps_its_slot_until_it_returns() -> None:
    """E6"""
    held, most = Held(), Most()
    executor = ToolExecutor(max_concurrency=2, limits={App.send: 1})
    first = ExecutionReport()
    results: list[Any] = []
    order: list[str] = []

    async def begin() -> None:
        results.extend(await executor.run([call("send")], dispatcher(send=held), report=first))

    async def send(input: Any) -> int:
        order.append("send")
        return 1

    async def second() -> None:
        names = ["look", "look", "send", "look"]
        asked = [call(name, 100 + k, id=str(k)) for k, name in enumerate(names)]
        await executor.run(asked, dispatcher(look=most, send=send))
        order.append("run")

    async with anyio.create_task_group() as group:
        with StoppedClock() as clock:
            group.start_soon(begin)
            await wait_for(lambda: held.running)
            await clock.jump(10.0)
            await wait_for(lambda: results)
        assert [(r.outcome, r.attempts) for r in results] == [("maybe_executed", 1)]
        assert [r.call_id for r in first.still_running()] == ["call_1"]
        assert "thread still running" in repr(first["call_1"])
        group.start_soon(second)
        await anyio.sleep(100.0)
        # One slot was left for the others, and none for the tool.
        assert (most.most, most.ended, order) == (1, 3, [])
        held.gate.release()
        await wait_for(lambda: order == ["send", "run"])
    assert first.still_running() == ()
    assert first["call_1"].result is results[0]
    assert results[0].output is None


async def test_a_function_that_timed_out_is_tried_again_only_after_it_has_returned() -> None:
    """E6"""
    held = Held()
    executor = ToolExecutor(backoff=2.0, max_backoff=2.0)
    results: list[Any] = []

    async def work() -> None:
        results.extend(await executor.run([call("save", 4)], dispatcher(save=held)))

    async with anyio.create_task_group() as group:
        with StoppedClock() as clock:
            group.start_soon(work)
            await wait_for(lambda: held.running)
            await clock.jump(10.0)
            await clock.jump(40.0)
            assert (held.ran, executor.report["call_1"].thread_running) == ([4], True)
            held.gate.release()
            await wait_for(lambda: not executor.report["call_1"].thread_running)
            await anyio.lowlevel.checkpoint()
            assert held.ran == [4]
            # The thread takes its time to begin. No virtual time may pass meanwhile: it would
            # count as the attempt's.
            while executor.report["call_1"].attempts == 1:
                await clock.jump(0.5)
                await wait_for(lambda: True)
            await wait_for(lambda: len(held.ran) == 2)
            held.gate.release()
            await wait_for(lambda: results)
    assert (held.ran, held.most) == ([4, 4], 1)
    assert [(r.outcome, r.attempts, r.output) for r in results] == [("ok", 2, 4)]


async def test_a_function_that_never_returns_does_not_keep_its_call_waiting_for_ever() -> None:
    """E6"""
    held = Held()
    executor = ToolExecutor(thread_patience=30.0)
    results: list[Any] = []

    async def work() -> None:
        results.extend(await executor.run([call("save", 4)], dispatcher(save=held)))

    async with anyio.create_task_group() as group:
        with StoppedClock() as clock:
            group.start_soon(work)
            await wait_for(lambda: held.running)
            await clock.jump(10.0)
            await clock.jump(29.0)
            assert results == []
            await clock.jump(2.0)
            await wait_for(lambda: results)
    assert [(r.outcome, r.attempts) for r in results] == [("timed_out", 1)]
    assert executor.report["call_1"].thread_running
    held.gate.release()
    await wait_for(lambda: not executor.report["call_1"].thread_running)


async def test_a_cancelled_function_keeps_its_slot_and_its_result_is_dropped() -> None:
    """E4, E6"""
    held = Held()
    executor = ToolExecutor(max_concurrency=1)
    asked = calls("wait", "wait")
    ran: list[int] = []

    async def later(input: Any) -> int:
        ran.append(input.n)
        return 1

    async with anyio.create_task_group() as group:

        async def work() -> None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await executor.run(asked, dispatcher(wait=held))
            ended.append(True)

        scopes: list[anyio.CancelScope] = []
        ended: list[bool] = []
        group.start_soon(work)
        await wait_for(lambda: held.running)
        scopes[0].cancel()
        await wait_for(lambda: ended)
        report = executor.report
        assert [r.call_id for r in report.still_running()] == ["call_0"]
        assert outcomes(report.results(asked)) == ["interrupted", "not_started"]
        group.start_soon(executor.run, calls("look"), dispatcher(look=later))
        await anyio.sleep(50.0)
        assert ran == []
        held.gate.release()
        await wait_for(lambda: ran == [0])
    assert outcomes(report.results(asked)) == ["interrupted", "not_started"]
    assert held.ran == [0]


async def test_a_function_whose_thread_never_began_did_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E6: then nothing has happened, whatever the effect of the tool is."""
    ran: list[int] = []

    async def no_thread(function: Any, **_: Any) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio.to_thread, "run_sync", no_thread)
    executor = ToolExecutor()
    (result,) = await executor.run([call("send")], dispatcher(send=lambda input: ran.append(1)))
    assert (result.outcome, ran, executor.unresolved) == ("timed_out", [], ())
    assert "did not run" in text(result)
    with anyio.move_on_after(1.0):
        await executor.run([call("send")], dispatcher(send=lambda input: ran.append(1)))
    assert outcomes(executor.report.results([call("send")])) == ["not_started"]
    results = await executor.run(calls("look", "look"), dispatcher())
    assert outcomes(results) == ["ok", "ok"]

    async def refused(function: Any, **_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(anyio.to_thread, "run_sync", refused)
    (result,) = await executor.run([call("send")], dispatcher(send=lambda input: ran.append(1)))
    assert (result.outcome, text(result)) == (
        "failed",
        "The tool could not be started (RuntimeError).",
    )
    assert (executor.unresolved, ran) == ((), [])


async def test_a_function_that_returned_as_it_was_stopped_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E4: finished results are kept, and a known effect is not reported as unknown."""

    async def lost(function: Any, **_: Any) -> None:
        function()
        await anyio.sleep_forever()  # as if the thread's answer were still on its way

    monkeypatch.setattr(anyio.to_thread, "run_sync", lost)
    executor = ToolExecutor()
    (result,) = await executor.run([call("send", 3)], dispatcher(send=lambda input: input.n))
    assert (result.outcome, result.output) == ("ok", 3)
    asked = calls("send", "wait")
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(send=lambda input: input.n, wait=lambda input: 1 / 0))
    results = executor.report.results(asked)
    assert outcomes(results) == ["ok", "failed"]
    assert isinstance(results[1].error, ZeroDivisionError)

    async def never(input: Any) -> int:
        raise AssertionError("it was too late to await this")

    (result,) = await executor.run([call("send", 3)], dispatcher(send=lambda input: never(input)))
    assert result.outcome == "maybe_executed"


def test_a_thread_that_outlives_its_event_loop_gives_its_slot_back(backend: str) -> None:
    """E6"""
    held = Held()
    executor = ToolExecutor(max_concurrency=1)

    async def first() -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(executor.run, [call("wait")], dispatcher(wait=held))
                await wait_for(lambda: held.running)
                scope.cancel()

    async def second() -> list[Any]:
        async with anyio.create_task_group() as group:

            async def let_go() -> None:
                await anyio.sleep(5.0)
                held.gate.release()

            group.start_soon(let_go)
            results: list[Any] = list(await executor.run([call("look", 2)], dispatcher()))
        return results

    run(backend, first)
    assert [r.thread_running for r in executor.report.calls] == [True]
    assert outcomes(run(backend, second)) == ["ok"]
    for thread in threading.enumerate():
        if thread.name.startswith("AnyIO"):
            thread.join()


async def test_plain_functions_can_ask_whether_they_were_cancelled() -> None:
    stopped = threading.Event()
    began = threading.Event()

    def wait(input: Any) -> int:
        began.set()
        while True:
            try:
                anyio.from_thread.check_cancelled()
            except BaseException:
                stopped.set()
                raise

    executor = ToolExecutor()
    async with anyio.create_task_group() as group:
        group.start_soon(executor.run, [call("wait")], dispatcher(wait=wait))
        await wait_for(began.is_set)
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(stopped.wait)
    await wait_for(lambda: not executor.report.still_running())


# --- run_sync ----------------------------------------------------------------------------


def test_run_sync_is_the_same_without_an_event_loop() -> None:
    asked = [Who.parse(ToolMetadata(n, n, '{"letter": "a"}')) for n in ("whoami", "whoami_async")]
    token = user.set("the caller")
    executor = ToolExecutor()
    report = ExecutionReport()
    results = executor.run_sync(iter(asked), Dispatcher(Who), report=report)
    assert [result.output for result in results] == ["the caller False", "the caller True"]
    assert report.results(asked) == results
    assert user.get() == "the caller"
    user.reset(token)
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


async def test_run_sync_in_a_running_event_loop_says_what_to_do() -> None:
    ran: list[int] = []
    with pytest.raises(
        RuntimeError, match=r"inside a running event loop: await run\(\) there; nothing was run"
    ):
        ToolExecutor().run_sync([call("look")], dispatcher(look=lambda input: ran.append(1)))
    assert ran == []


async def test_a_plain_tool_may_use_an_executor_of_its_own() -> None:
    def wait(input: Any) -> int:
        (result,) = ToolExecutor().run_sync([call("look", input.n)], dispatcher())
        return int(result.output) + 1

    (result,) = await ToolExecutor().run([call("wait", 4)], dispatcher(wait=wait))
    assert result.output == 5


def test_a_tool_that_ends_the_program_ends_run_sync() -> None:
    def quit(input: Any) -> int:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        ToolExecutor().run_sync([call("wait")], dispatcher(wait=quit))


def test_the_limits_hold_over_event_loops_in_several_threads() -> None:
    """E1: and a slot that one loop gives back wakes the call that waits in another."""
    lock = threading.Lock()
    running, most = Counter[str](), Counter[str]()

    def count(name: str, step: int) -> None:
        with lock:
            for key in (name, "all"):
                running[key] += step
                most[key] = max(most[key], running[key])

    async def wait(input: Any) -> int:
        count("wait", 1)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        count("wait", -1)
        return int(input.n)

    def send_slowly(input: Any) -> int:
        count("send_slowly", 1)
        count("send_slowly", -1)
        return int(input.n)

    executor = ToolExecutor(max_concurrency=3, limits={App.slow[SlowTools.wait]: 2})
    dispatch = dispatcher(wait=wait, send_slowly=send_slowly)
    outputs: dict[int, list[Any]] = {}

    def work(k: int) -> None:
        results = executor.run_sync(calls(*["wait", "send_slowly"] * 40), dispatch, scope=str(k))
        outputs[k] = [result.output for result in results]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {k: list(range(80)) for k in range(5)}
    assert most["wait"] <= 2
    assert most["all"] <= 3
    assert executor._slots._free == 3
