"""One tool that fails harms no other, and what the model is told of it (rule E3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from execution_toolkit import App, asked, call, calls, dispatcher, outcomes, start, text
from virtual_time import tasks

from lutumpy import ToolError
from lutumpy.execution import ExecutionReport, ToolExecutor


class Custom(BaseException):
    pass


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnprintableToolError(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


Nameless = type(" ", (Exception,), {})
Verbose = type("x" * 10_000, (Exception,), {})

HOSTILE: list[Any] = [
    ValueError("secret"),
    Custom("secret"),
    GeneratorExit("secret"),
    StopIteration("secret"),
    StopAsyncIteration("secret"),
    asyncio.CancelledError("secret"),
    MemoryError("secret"),
    RecursionError("secret"),
    Unprintable("secret"),
    Nameless("secret"),
    Verbose("secret"),
    AssertionError("secret"),
]


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize("error", HOSTILE, ids=lambda e: type(e).__name__[:20].strip())
async def test_an_exception_fails_its_own_call_and_no_other(
    error: BaseException, plain: bool, backend: str
) -> None:
    """E3, K6: the class name and a neutral sentence."""

    async def bad(input: Any) -> int:
        raise error

    def bad_plain(input: Any) -> int:
        raise error

    async def good(input: Any) -> int:
        await anyio.sleep(1.0)
        return int(input.n)

    handler: Any = bad_plain if plain else bad
    report = ExecutionReport()
    before = await tasks()
    executor = ToolExecutor()
    # The tools without a timeout: the clock would jump to it while the thread is still starting.
    results = await executor.run(
        calls("look", "wait", "look", "send_slowly"),
        dispatcher(look=good, wait=handler, send_slowly=handler),
        report=report,
    )
    assert await tasks() == before
    assert outcomes(results) == ["ok", "failed", "ok", "maybe_executed"]
    for result in (results[1], results[3]):
        assert "secret" not in text(result)
        assert len(text(result)) < 400
        assert text(result).startswith("The tool failed with ")
        if not isinstance(error, StopIteration | StopAsyncIteration):
            assert result.error is error
            assert (type(error).__name__.strip() or "Error")[:100] in text(result)
        assert result.error is not None
        assert report[result.metadata.id].error is result.error
    assert "unknown" in text(results[3])
    assert [entry.metadata.id for entry in executor.unresolved] == ["call_3"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolError("The city is not known."), "The city is not known."),
        (ToolError(""), "The tool failed."),
        (ToolError(), "The tool failed."),
        (ToolError(" \n"), "The tool failed."),
        (UnprintableToolError("x"), "The tool failed."),
    ],
)
@pytest.mark.parametrize("name", ["look", "save", "send"])
async def test_a_tool_error_shows_its_message_and_nothing_else(
    error: ToolError, expected: str, name: str
) -> None:
    async def handler(input: Any) -> int:
        raise error from ValueError("secret")

    executor = ToolExecutor()
    (result,) = await executor.run([call(name)], dispatcher(**{name: handler}))
    assert (text(result), result.outcome, result.status, result.error) == (
        expected,
        "failed",
        "error",
        error,
    )
    assert executor.unresolved == ()


class HostileToWriting(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "output", ["text", None, 3.5, object(), HostileToWriting(), [1], 10**5000 + 0.5 if 0 else b"1"]
)
@pytest.mark.parametrize("name", ["look", "save", "send"])
async def test_an_output_of_another_type_is_an_error_that_can_be_committed(
    output: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(input: Any) -> Any:
        return output

    caplog.set_level(logging.INFO, "lutumpy.execution")
    session, round = start(asked(name, {"n": 1}), asked("look", {"n": 2}, "call_2"))
    handlers: Any = {"look": _answer, name: handler}
    results = await ToolExecutor().run(round.calls[:1], dispatcher(**handlers))
    results += await ToolExecutor().run(round.calls[1:], dispatcher())
    round.commit(session, results)
    assert results[0].status == "error"
    assert results[0].outcome == ("maybe_executed" if name == "send" else "failed")
    assert text(results[0]).startswith("The tool ran")
    assert ("do not repeat" in text(results[0])) == (name == "send")
    assert "int was expected" in caplog.text


async def _answer(input: Any) -> int:
    return int(input.n)


async def test_huge_outputs_pass() -> None:
    async def look(input: Any) -> int:
        return 10**1000

    (result,) = await ToolExecutor().run([call("look")], dispatcher(look=look))
    assert text(result) == "1" + "0" * 1000


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_what_ends_the_program_passes_and_leaves_nothing_running(
    error: Any, plain: bool
) -> None:
    """E3"""
    ended: list[str] = []

    async def look(input: Any) -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("look")
        return 0

    def quit(input: Any) -> int:
        raise error("now")

    async def quit_async(input: Any) -> int:
        await anyio.lowlevel.checkpoint()
        raise error("now")

    executor = ToolExecutor(max_concurrency=2)
    before = await tasks()
    asked = calls("wait", "send_slowly", "save")
    with pytest.raises(error, match="now"):
        await executor.run(asked, dispatcher(wait=look, send_slowly=quit if plain else quit_async))
    assert await tasks() == before
    assert ended == ["look"]
    results = executor.report.results(asked)
    assert outcomes(results) == ["interrupted", "maybe_executed", "not_started"]
    assert isinstance(results[1].error, error)


async def test_a_tool_that_cancels_its_own_task_fails_alone(backend: str) -> None:
    """E3: nobody else has cancelled anything."""

    def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel("secret")

    async def cancel_and_wait(input: Any) -> int:
        if backend == "trio":
            raise asyncio.CancelledError("secret")
        cancel()
        await anyio.lowlevel.checkpoint()
        return 1

    async def cancel_and_answer(input: Any) -> int:
        if backend == "asyncio":
            cancel()
        return int(input.n)

    async def good(input: Any) -> int:
        await anyio.sleep(1.0)
        return int(input.n)

    results = await ToolExecutor().run(
        calls("look", "send", "save", "look"),
        dispatcher(look=good, send=cancel_and_wait, save=cancel_and_answer),
    )
    assert outcomes(results) == ["ok", "maybe_executed", "ok", "ok"]
    assert [result.output for result in results] == [0, None, 2, 3]


async def test_a_cancelled_scope_inside_a_tool_is_the_tools_own_business() -> None:
    async def look(input: Any) -> int:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(1.0)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            group.cancel_scope.cancel()
        return int(input.n)

    results = await ToolExecutor().run(calls("look", "look"), dispatcher(look=look))
    assert outcomes(results) == ["ok", "ok"]


async def test_a_function_that_gives_an_awaitable_is_awaited() -> None:
    handlers: dict[str, Callable[..., Any]] = {"wait": lambda input: _answer(input)}
    (result,) = await ToolExecutor().run([call("wait", 4)], dispatcher(**handlers))
    assert result.output == 4


async def test_results_of_failed_calls_are_committed_as_they_are() -> None:
    async def bad(input: Any) -> int:
        raise ValueError("secret")

    session, round = start(
        asked("look", {"n": 1}, "a"),
        asked("send", {"n": 2}, "b"),
        asked("unknown", {}, "c"),
        asked("save", {}, "d"),
    )
    results = await ToolExecutor().run(round.calls, dispatcher(look=bad, send=bad))
    round.commit(session, results)
    blocks: Any = session.transcript[-1]
    assert [(r.call_id, r.status) for r in blocks.results] == [
        ("a", "error"),
        ("b", "error"),
        ("c", "rejected"),
        ("d", "ok"),
    ]
    assert App.look.matches(round.calls[0])
