"""What is logged on `lutumpy.execution` (rule E7)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from execution_toolkit import call, calls, dispatcher
from test_threads import Held, wait_for
from virtual_time import StoppedClock

from lutumpy import TextPart, ToolError, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor

LOGGER = "lutumpy.execution"


async def handler(input: Any) -> int:
    if input.n == 1:
        raise ValueError("the cause")
    if input.n == 2:
        raise ToolError("the reason")
    if input.n == 3:
        await anyio.sleep_forever()
    await anyio.sleep(1.5)
    return 987654321


async def test_every_call_is_logged_with_tool_id_attempt_latency_and_status(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E7"""
    caplog.set_level(logging.INFO, LOGGER)
    asked = [call("look", k, id=f"c{k}", more="the secret argument") for k in range(4)]
    await ToolExecutor(backoff=0.0, max_concurrency=1).run(asked, dispatcher(look=handler))
    found: list[Any] = [
        (r.tool, r.call_id, r.attempt, round(r.latency, 3), r.status, r.levelname)
        for r in caplog.records  # type: ignore[attr-defined]
    ]
    assert found == [
        ("look", "c0", 1, 1.5, "ok", "INFO"),
        ("look", "c1", 1, 0.0, "failed", "WARNING"),
        ("look", "c2", 1, 0.0, "failed", "WARNING"),
        ("look", "c3", 1, 10.0, "timed_out", "WARNING"),
        ("look", "c3", 2, 20.0, "timed_out", "WARNING"),
        ("look", "c3", 3, 30.0, "timed_out", "WARNING"),
        ("look", "c3", 4, 40.0, "timed_out", "WARNING"),
    ]
    assert {r.name for r in caplog.records} == {LOGGER}
    assert caplog.messages[0] == "c0 of look: ok, attempt 1, 1.500 s"
    assert "987654321" not in caplog.text
    assert "the secret argument" not in caplog.text


async def test_the_original_exception_is_logged_with_its_traceback_and_a_tool_error_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E3, E7"""
    caplog.set_level(logging.INFO, LOGGER)
    await ToolExecutor().run(
        [call("look", 1, id="a"), call("look", 2, id="b")], dispatcher(look=handler)
    )
    infos = {r.call_id: r.exc_info for r in caplog.records}  # type: ignore[attr-defined]
    assert infos["a"] is not None
    assert infos["b"] is None
    assert "ValueError: the cause" in caplog.text
    assert "in handler" in caplog.text


async def test_an_exception_without_text_can_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    async def look(input: Any) -> int:
        raise Unprintable

    caplog.set_level(logging.INFO, LOGGER)
    await ToolExecutor().run([call("look")], dispatcher(look=look))
    assert "Unprintable" in caplog.text


@tool_fn(effect="read")
async def tell(length: int) -> str:
    """Tell something long."""
    return "ü" * length + "\ud800"


@tool_fn(effect="read")
async def show() -> list[TextPart]:
    """Show parts."""
    return [TextPart("one "), TextPart("two")]


class Tellers(Toolset):
    tell = tool(tell)
    show = tool(show)


async def test_outputs_are_shown_at_debug_only_as_a_preview(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E7"""
    caplog.set_level(logging.DEBUG, LOGGER)
    asked: list[Any] = [
        Tellers.parse(ToolMetadata(str(n), "tell", f'{{"length": {n}}}')) for n in (3, 1000)
    ]
    asked.append(Tellers.parse(ToolMetadata("s", "show", "{}")))
    await ToolExecutor(max_concurrency=1).run(asked, Dispatcher(Tellers))
    short, long, parts = [
        r.getMessage().partition("output ")[2] for r in caplog.records if r.levelname == "DEBUG"
    ]
    assert short == "üüü\ufffd"
    assert long == "ü" * 248 + "…"
    assert parts == "one two"


async def test_what_was_not_run_and_what_was_cut_off_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    executor = ToolExecutor(deduplicate=True, max_concurrency=1)
    asked = [call("wait", 1, id="a"), call("wait", 1, id="b"), call("look", 1, id="c")]

    async def wait(input: Any) -> int:
        await anyio.sleep_forever()
        return 1

    with anyio.move_on_after(2.0):
        await executor.run(asked, dispatcher(wait=wait))
    records: list[Any] = caplog.records
    assert [(record.call_id, record.status, record.levelname) for record in records] == [
        ("b", "rejected", "INFO"),
        ("a", "interrupted", "WARNING"),
    ]


async def test_a_thread_that_returns_late_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """E6"""
    caplog.set_level(logging.INFO, LOGGER)
    held = Held()
    executor = ToolExecutor()
    async with anyio.create_task_group() as group:
        with StoppedClock() as clock:
            group.start_soon(executor.run, calls("send"), dispatcher(send=held))
            await wait_for(lambda: held.running)
            await clock.jump(10.0)
            await wait_for(lambda: not executor.report.active)
    held.gate.release()
    await wait_for(lambda: len(caplog.records) == 2)
    assert "has returned after it was given up" in caplog.messages[1]


async def test_nothing_is_made_for_a_log_that_nobody_reads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, LOGGER)
    await ToolExecutor().run(calls("look", "look"), dispatcher(look=handler))
    assert caplog.records == []
