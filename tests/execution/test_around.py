"""`ToolExecutor(around=)`: a place around each attempt of each call, which changes no result."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import anyio
import pytest
from execution_toolkit import call, calls, dispatcher

from lutumpy import ToolError
from lutumpy.execution import ExecutionReport, ExecutionResult, ToolExecutor


class Watcher:
    """Writes down what it is shown of each attempt."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, int]] = []
        self.told: list[ExecutionResult] = []
        self.left: list[str] = []

    @asynccontextmanager
    async def around(self, call: Any, attempt: int) -> AsyncIterator[Callable[[Any], None]]:
        self.entered.append((call.metadata.id, attempt))
        try:
            yield self.told.append
        except BaseException as error:
            self.left.append(type(error).__name__)
            raise
        self.left.append("returned")


async def handler(input: Any) -> int:
    if input.n == 1:
        raise ValueError("the cause")
    if input.n == 2:
        raise ToolError("the reason")
    if input.n == 3:
        await anyio.sleep_forever()
    return int(input.n)


async def test_each_attempt_is_entered_told_its_result_and_left_with_what_the_tool_raised() -> None:
    watcher = Watcher()
    executor = ToolExecutor(around=watcher.around, max_concurrency=1, backoff=0.0)
    assert executor.around == watcher.around
    asked = [call("look", k, id=f"c{k}") for k in range(4)]
    got = await executor.run(asked, dispatcher(look=handler))
    assert [result.outcome for result in got] == ["ok", "failed", "failed", "timed_out"]
    retries = [("c3", attempt) for attempt in (1, 2, 3, 4)]
    assert watcher.entered == [("c0", 1), ("c1", 1), ("c2", 1), *retries]
    assert [result.outcome for result in watcher.told] == ["ok", "failed", "failed"] + [
        "timed_out"
    ] * 4
    # The last word is the very result that the run gives.
    assert all(told is result for told, result in zip(watcher.told, got[:3], strict=False))
    assert watcher.told[-1] is got[3]
    assert watcher.left[:3] == ["returned", "ValueError", "ToolError"]
    assert len(watcher.left) == 7
    assert "returned" not in watcher.left[3:]


async def test_waiting_for_its_turn_is_not_the_tools_time() -> None:
    @asynccontextmanager
    async def slow(call: Any, attempt: int) -> AsyncIterator[None]:
        await anyio.sleep(60.0)  # the tool's timeout is 10 seconds
        yield

    (result,) = await ToolExecutor(around=slow).run([call("look", 7)], dispatcher())
    assert (result.outcome, result.output, result.attempts) == ("ok", 7, 1)


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_the_tool_has_the_context_that_was_set_around_it_also_in_a_thread(library: str) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    seen: list[str] = []

    class Manager:
        def __init__(self, name: str) -> None:
            self.name = name

        async def __aenter__(self) -> None:
            variable.set(self.name)

        async def __aexit__(self, *error: object) -> None: ...

    def plain(input: Any) -> int:
        seen.append(variable.get())
        return 0

    async def awaited(input: Any) -> int:
        return plain(input)

    executor = ToolExecutor(around=lambda call, attempt: Manager(call.metadata.name))
    work = partial(executor.run, calls("look", "save"), dispatcher(look=plain, save=awaited))
    anyio.run(work, backend=library)  # in real time, since a thread takes some
    assert sorted(seen) == ["look", "save"]
    assert variable.get() == "nothing"


async def test_a_call_that_is_not_let_in_has_failed_and_did_not_run() -> None:
    ran: list[int] = []

    async def look(input: Any) -> int:
        ran.append(input.n)
        return 0

    @asynccontextmanager
    async def limited(call: Any, attempt: int) -> AsyncIterator[None]:
        if call.metadata.id == "call_0":
            raise ToolError("Too many searches; wait a minute.")
        if call.metadata.id == "call_1":
            raise RuntimeError("secret")
        yield

    executor = ToolExecutor(around=limited)
    got = await executor.run(
        calls("look", "send", "look"), dispatcher(look=look, send=look, save=look)
    )
    assert [result.outcome for result in got] == ["failed", "failed", "ok"]
    assert got[0].content == "Too many searches; wait a minute."
    assert got[1].content == "The tool could not be started (RuntimeError)."
    assert ran == [2]
    assert executor.unresolved == ()


async def test_what_it_swallows_or_raises_behind_the_tool_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "lutumpy.execution")

    def told(result: ExecutionResult) -> None:
        raise LookupError("telling failed")

    class Swallows:
        async def __aenter__(self) -> Callable[[ExecutionResult], None]:
            return told

        async def __aexit__(self, *error: object) -> bool:
            return True

    class Fails(Swallows):
        async def __aexit__(self, *error: object) -> bool:
            raise LookupError("leaving failed")

    managers: dict[str, Any] = {"c0": Swallows(), "c1": Fails()}
    executor = ToolExecutor(around=lambda call, attempt: managers[call.metadata.id])
    asked = [call("look", 1, id="c0"), call("look", 0, id="c1")]
    got = await executor.run(asked, dispatcher(look=handler))
    assert [result.outcome for result in got] == ["failed", "ok"]
    assert sorted([str(r.exc_info[1]) for r in caplog.records if r.exc_info]) == [
        "leaving failed",
        "telling failed",
        "telling failed",
    ]


async def test_a_cancelled_run_leaves_what_it_entered_and_starts_nothing_behind_it() -> None:
    """E4"""
    watcher = Watcher()

    @asynccontextmanager
    async def around(call: Any, attempt: int) -> AsyncIterator[Any]:
        if call.metadata.name == "send":
            await anyio.sleep_forever()
        async with watcher.around(call, attempt) as told:
            yield told

    report = ExecutionReport()
    asked = [call("look", 3, id="a"), call("send", 0, id="b")]
    with anyio.move_on_after(2.0):
        await ToolExecutor(around=around).run(asked, dispatcher(look=handler), report=report)
    assert [r.outcome for r in report.results(asked)] == ["interrupted", "not_started"]
    assert watcher.left in (["CancelledError"], ["Cancelled"])
    assert watcher.told == []


async def test_a_result_is_kept_when_the_run_is_cancelled_while_its_manager_is_left() -> None:
    """E4"""

    class Slow:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *error: object) -> None:
            await anyio.sleep_forever()

    report = ExecutionReport()
    asked = [call("send", 5)]
    with anyio.move_on_after(2.0):
        await ToolExecutor(around=lambda call, attempt: Slow()).run(
            asked, dispatcher(), report=report
        )
    (result,) = report.results(asked)
    assert (result.outcome, result.output) == ("ok", 5)


@pytest.mark.parametrize("place", ["enter", "leave"])
async def test_an_interrupt_ends_the_run(place: str) -> None:
    class Interrupted:
        async def __aenter__(self) -> None:
            if place == "enter":
                raise KeyboardInterrupt

        async def __aexit__(self, *error: object) -> None:
            raise KeyboardInterrupt

    report = ExecutionReport()
    asked = [call("look", 5)]
    with pytest.raises(KeyboardInterrupt):
        await ToolExecutor(around=lambda call, attempt: Interrupted()).run(
            asked, dispatcher(), report=report
        )
    expected = "not_started" if place == "enter" else "interrupted"
    assert report.results(asked)[0].outcome == expected


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="around= takes a function, not int"):
        ToolExecutor(around=3)  # type: ignore[arg-type]
