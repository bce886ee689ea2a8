"""Timeouts, and what is tried again (rule E2)."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from execution_toolkit import App, call, calls, dispatcher, outcomes, text
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from virtual_time import BACKENDS, run

from lutumpy import TextPart, ToolError, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor


class Slow:
    """Hangs in its first attempts."""

    def __init__(self, hangs: int, error: BaseException | None = None) -> None:
        self.hangs = hangs
        self.error = error
        self.attempts = 0

    async def __call__(self, input: Any) -> int:
        self.attempts += 1
        if self.attempts <= self.hangs:
            try:
                await anyio.sleep_forever()
            except BaseException:
                if self.error is not None:
                    raise self.error from None
                raise
        return int(input.n)


@pytest.mark.parametrize(
    ("name", "hangs", "attempts", "outcome"),
    [
        ("look", 0, 1, "ok"),
        ("look", 2, 3, "ok"),
        ("look", 3, 4, "ok"),
        ("look", 9, 4, "timed_out"),
        ("save", 2, 3, "ok"),
        ("save", 9, 3, "timed_out"),
        ("send", 9, 1, "maybe_executed"),
    ],
)
async def test_a_timeout_is_retried_as_often_as_the_tool_allows_and_never_with_effect_once(
    name: str, hangs: int, attempts: int, outcome: str
) -> None:
    """E2"""
    slow = Slow(hangs)
    executor = ToolExecutor(backoff=1.0, random=random.Random(1))
    begun = anyio.current_time()
    (result,) = await executor.run([call(name, 7)], dispatcher(**{name: slow}))
    assert (slow.attempts, result.attempts, result.outcome) == (attempts, attempts, outcome)
    timeouts = min(hangs, attempts) * 10.0
    waits = [0.0, 1.0, 3.0, 7.0][attempts - 1]
    assert timeouts + waits / 2 <= result.latency <= timeouts + waits + 0.001
    assert anyio.current_time() - begun == pytest.approx(result.latency)


async def test_each_attempt_has_the_whole_timeout() -> None:
    """E2"""
    deadlines: list[float] = []

    async def look(input: Any) -> int:
        deadlines.append(anyio.current_effective_deadline() - anyio.current_time())
        await anyio.sleep_forever()
        return 0

    await ToolExecutor().run([call("look")], dispatcher(look=look))
    assert deadlines == [pytest.approx(10.0)] * 4


@pytest.mark.parametrize(
    "error", [ValueError("no"), ToolError("no"), TimeoutError("its own"), OSError("no")]
)
@pytest.mark.parametrize("name", ["look", "save", "send"])
async def test_an_exception_is_not_retried(name: str, error: Exception) -> None:
    """E2: only a timeout is; a tool's own TimeoutError is none."""
    ran: list[int] = []

    async def handler(input: Any) -> int:
        ran.append(input.n)
        raise error

    (result,) = await ToolExecutor().run([call(name)], dispatcher(**{name: handler}))
    assert (ran, result.attempts, result.status, result.error) == ([0], 1, "error", error)


async def test_what_a_tool_makes_of_being_stopped_is_a_timeout_all_the_same() -> None:
    slow = Slow(1, ConnectionError("closed by the timeout"))
    (result,) = await ToolExecutor().run([call("look", 3)], dispatcher(look=slow))
    assert (result.outcome, result.attempts, result.output) == ("ok", 2, 3)
    (result,) = await ToolExecutor().run(
        [call("send", 3)], dispatcher(send=Slow(1, ConnectionError("secret")))
    )
    assert (result.outcome, type(result.error)) == ("maybe_executed", ConnectionError)
    assert "secret" not in text(result)


async def test_a_tool_error_is_what_the_tool_says_even_when_it_is_stopped() -> None:
    (result,) = await ToolExecutor().run(
        [call("send", 3)], dispatcher(send=Slow(1, ToolError("nothing was sent")))
    )
    assert (result.outcome, text(result)) == ("failed", "nothing was sent")


async def test_an_output_that_comes_too_late_is_taken_when_the_tool_insists() -> None:
    async def send(input: Any) -> int:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(25.0)
        return 5

    (result,) = await ToolExecutor().run([call("send")], dispatcher(send=send))
    assert (result.outcome, result.output, result.latency) == ("ok", 5, pytest.approx(25.0))


async def test_a_timeout_says_how_long_it_was_and_what_may_have_happened() -> None:
    """E3"""
    slow = Slow(99)
    results = await ToolExecutor().run(calls("look", "send"), dispatcher(look=slow, send=slow))
    assert text(results[0]) == (
        "The tool did not finish within 10 seconds, in 4 attempts. "
        "It may have run; calling it again does no harm."
    )
    assert text(results[1]).startswith(
        "The tool did not finish within 10 seconds. The outcome is unknown: it may have"
    )
    assert "Do not simply repeat" in text(results[1])


NOT_LET_IN: list[tuple[Exception, str]] = [
    (RuntimeError("secret"), "The tool could not be started (RuntimeError)."),
    (ToolError("Too many searches."), "Too many searches."),
    (ToolError("Too many.", content=TextPart("Wait.")), "Too many.\nWait."),
]
MAY_HAVE_RUN = "An earlier attempt timed out and may have run; calling it again does no harm."


@pytest.mark.parametrize(("error", "said"), NOT_LET_IN, ids=["any", "for the model", "parts"])
async def test_a_retry_that_is_not_let_in_says_that_the_tool_may_have_run(
    error: Exception, said: str
) -> None:
    """E3"""

    @asynccontextmanager
    async def limited(call: Any, attempt: int) -> AsyncIterator[None]:
        if attempt == 2:
            raise error
        yield

    slow = Slow(99)
    (result,) = await ToolExecutor(around=limited).run([call("look")], dispatcher(look=slow))
    assert (slow.attempts, result.attempts, result.outcome) == (1, 2, "failed")
    content = result.content
    parts = (
        content.split("\n")
        if isinstance(content, str)
        else [part.text for part in content if isinstance(part, TextPart)]
    )
    assert parts == [*said.split("\n"), MAY_HAVE_RUN]


@pytest.mark.parametrize(
    ("runs", "refuses", "outcome", "ending"),
    [
        (0, False, "timed_out", "it could not be started, and did not run."),
        (1, False, "timed_out", "It may have run; calling it again does no harm."),
        (1, True, "failed", f"The tool could not be started (RuntimeError).\n{MAY_HAVE_RUN}"),
    ],
    ids=["never", "first", "first, then refused"],
)
async def test_a_retry_whose_thread_never_began_says_whether_one_before_may_have_run(
    runs: int, refuses: bool, outcome: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E3"""
    ran: list[int] = []

    async def run_sync(function: Any, **_: Any) -> None:
        if len(ran) < runs:
            function()
        elif refuses:
            raise RuntimeError("can't start new thread")
        await anyio.sleep_forever()

    def save(input: Any) -> Any:
        ran.append(input.n)
        return anyio.sleep_forever()  # what is still waited for at the timeout

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
    (result,) = await ToolExecutor(backoff=0.0).run([call("save")], dispatcher(save=save))
    assert (len(ran), result.outcome) == (runs, outcome)
    assert text(result).endswith(ending)


async def test_idempotent_true_and_the_effect_are_the_same_thing() -> None:
    tries: list[str] = []

    @tool_fn(timeout=0.5, max_retries=1, effect="idempotent")
    async def tool_a() -> None:
        """Wait."""
        tries.append("a")
        await anyio.sleep_forever()

    @tool_fn(timeout=0.5, max_retries=1, idempotent=True)
    async def tool_b() -> None:
        """Wait."""
        tries.append("b")
        await anyio.sleep_forever()

    @tool_fn(timeout=0.5, max_retries=1)
    async def tool_c() -> None:
        """Wait."""
        tries.append("c")
        await anyio.sleep_forever()

    class Tools(Toolset):
        a = tool(tool_a)
        b = tool(tool_b)
        c = tool(tool_c)

    asked = [Tools.parse(ToolMetadata(name, f"tool_{name}", "{}")) for name in "abc"]
    await ToolExecutor().run(asked, Dispatcher(Tools))
    assert sorted(tries) == ["a", "a", "b", "b", "c"]


@settings(max_examples=examples(30))
@given(
    backoff=st.floats(0, 100),
    most=st.floats(0, 1000),
    seed=st.integers(),
    backend=st.sampled_from(BACKENDS),
)
def test_the_backoff_doubles_within_its_bounds_and_can_be_repeated(
    backoff: float, most: float, seed: int, backend: str
) -> None:
    """E2: jittered."""

    async def main() -> list[float]:
        starts: list[float] = []

        async def look(input: Any) -> int:
            starts.append(anyio.current_time())
            await anyio.sleep_forever()
            return 0

        executor = ToolExecutor(backoff=backoff, max_backoff=most, random=random.Random(seed))
        await executor.run([call("look")], dispatcher(look=look))
        return [later - earlier - 10.0 for earlier, later in itertools.pairwise(starts)]

    waits = run(backend, main)
    assert waits == pytest.approx(run(backend, main))
    for k, wait in enumerate(waits):
        longest = min(most, backoff * 2**k)
        assert longest / 2 - 1e-6 <= wait <= longest + 1e-6


async def test_results_say_attempts_and_latency() -> None:
    async def look(input: Any) -> int:
        await anyio.sleep(2.5)
        return 1

    executor = ToolExecutor(max_concurrency=1)
    results = await executor.run(calls("look", "look"), dispatcher(look=look))
    assert outcomes(results) == ["ok", "ok"]
    assert [(r.attempts, r.latency) for r in results] == [(1, pytest.approx(2.5))] * 2
    assert [(r.started, r.finished) for r in executor.report.calls] == [
        (pytest.approx(0.0), pytest.approx(2.5)),
        (pytest.approx(2.5), pytest.approx(5.0)),
    ]
    assert App.look.matches(executor.report.calls[0].call)
