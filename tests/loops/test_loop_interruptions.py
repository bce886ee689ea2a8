"""Cancellation and interrupts: what ran is in the session, nothing is left open (E4, K5, H4)."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from loop_toolkit import (
    ANSWER,
    WITHHELD,
    Desk,
    Journal,
    Runner,
    asked,
    call,
    calls,
    check_valid,
    dispatcher,
    look,
    results,
    script,
)
from test_interruptions import places, run_until

from lutumpy import Complete, RunNormally, Session, ToolDecision, ToolResult, hook_impl
from lutumpy.execution import ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopEvent, RoundExecuted, RoundPlanned, run_tools

STUCK = calls(look("cat", "c1"), call("wait_for_ever", "c2"), look("dog", "c3"), call("nope", "c4"))


def one_at_a_time() -> ToolExecutor:
    return ToolExecutor(max_concurrency=1)


async def cancelled_when(waiting: anyio.Event, body: Any) -> None:
    """Run `body`, and cancel it once the event is set."""
    async with anyio.create_task_group() as group:

        async def cancel() -> None:
            await waiting.wait()
            group.cancel_scope.cancel()

        group.start_soon(cancel)
        await body()
        raise AssertionError("it was not cancelled")


class Async:
    """Hooks that wait."""

    def __init__(self, waits: str = "", reached: anyio.Event | None = None) -> None:
        self.waits, self.reached = waits, reached

    async def _wait(self, where: str) -> None:
        await anyio.lowlevel.checkpoint()
        if where == self.waits and self.reached is not None:
            self.reached.set()
            await anyio.sleep_forever()

    @hook_impl
    async def any_tool_hook(self, call: BaseToolCall) -> ToolDecision:
        await self._wait("decide")
        return RunNormally(call.input)

    @hook_impl
    async def any_result_hook(self, result: ToolResult) -> ToolResult:
        await self._wait("review")
        return replace(result, content=f"[seen] {result.content}")


def test_a_cancelled_execution_commits_what_had_finished_and_interrupts_the_rest_E4(
    backend: str,
) -> None:
    session, journal = asked(), Journal()

    async def main() -> None:
        reached = anyio.Event()
        journal.during["wait_for_ever"] = reached.set
        body = partial(
            run_tools,
            session,
            script(STUCK),
            tools=Desk,
            dispatch=dispatcher(journal),
            executor=one_at_a_time(),
        )
        await cancelled_when(reached, body)

    anyio.run(main, backend=backend)
    assert journal.ran == ["look_up cat", "wait_for_ever"]
    finished, stuck, waiting, unknown = results(session)
    assert finished == ("ok", "cat means tac")
    assert stuck[0] == "error"
    assert "interrupted while it was running" in stuck[1]
    assert waiting == ("error", "The tool was not started: the run was interrupted before.")
    assert unknown[0] == "rejected"
    check_valid(session)
    assert Runner(backend)(session, script(ANSWER)).stopped_by == "answer"


def test_a_task_of_asyncio_can_be_cancelled_and_says_so() -> None:
    session, journal = asked(), Journal()

    async def main() -> None:
        reached = asyncio.Event()
        journal.during["wait_for_ever"] = reached.set
        task = asyncio.create_task(
            run_tools(session, script(STUCK), tools=Desk, dispatch=dispatcher(journal))
        )
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    assert [status for status, _ in results(session)] == ["ok", "error", "ok", "rejected"]
    check_valid(session)


@pytest.mark.parametrize(("where", "committed"), [("decide", 0), ("review", 1)])
def test_hooks_that_wait_can_be_cancelled(where: str, committed: int, backend: str) -> None:
    session, journal = asked(), Journal()

    async def main() -> None:
        reached = anyio.Event()
        hooks = Desk.hooks().with_hooks(Async(where, reached))
        body = partial(
            run_tools,
            session,
            script(calls(look("cat"))),
            tools=Desk,
            dispatch=dispatcher(journal),
            hooks=hooks,
        )
        await cancelled_when(reached, body)

    anyio.run(main, backend=backend)
    assert len(journal.ran) == committed
    assert results(session) == [("error", WITHHELD)] * committed
    check_valid(session)


def test_results_are_not_shown_unreviewed_after_a_cancellation(backend: str) -> None:
    """A hook that waits can't be asked any more, a plain one can."""

    class Plain:
        @hook_impl
        def any_result_hook(self, result: ToolResult) -> ToolResult:
            return replace(result, content=f"[seen] {result.content}")

    for hooks, shown in ((Async(), ("error", WITHHELD)), (Plain(), ("ok", "[seen] cat means tac"))):
        session, journal = asked(), Journal()

        async def main(
            session: Session = session, journal: Journal = journal, hooks: Any = hooks
        ) -> None:
            reached = anyio.Event()
            journal.during["wait_for_ever"] = reached.set
            registry = Desk.hooks().with_hooks(hooks)
            options: Any = {"tools": Desk, "dispatch": dispatcher(journal), "hooks": registry}
            body = partial(run_tools, session, script(STUCK), executor=one_at_a_time(), **options)
            await cancelled_when(reached, body)

        anyio.run(main, backend=backend)
        assert results(session)[0] == shown
        assert "interrupted" in results(session)[1][1], "what the executor says needs no review"


@pytest.mark.parametrize("kind", [RoundPlanned, RoundExecuted])
def test_a_callback_that_waits_can_be_cancelled(kind: Any, backend: str) -> None:
    session, journal = asked(), Journal()

    async def main() -> None:
        reached = anyio.Event()

        async def tell(event: LoopEvent) -> None:
            if isinstance(event, kind):
                reached.set()
                await anyio.sleep_forever()

        llm = script(calls(look("cat")))
        body = partial(
            run_tools, session, llm, tools=Desk, dispatch=dispatcher(journal), on_progress=tell
        )
        await cancelled_when(reached, body)

    anyio.run(main, backend=backend)
    assert results(session) == [("ok", "cat means tac")] * (kind is RoundExecuted)
    check_valid(session)


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("hooked", [False, True])
def test_cancelling_at_any_moment_leaves_a_session_that_goes_on(
    hooked: bool, streamed: bool, backend: str
) -> None:
    """The loop is cancelled after 0, 1, 2, ... turns of the event loop, until it is done before."""
    moment, done = 0, False
    while not done:
        session, journal = asked(), Journal()
        llm = script(
            calls(look("cat"), call("write", text="x"), call("nope")), calls(look("dog")), ANSWER
        )

        async def main(
            session: Session = session,
            journal: Journal = journal,
            llm: Any = llm,
            after: int = moment,
        ) -> bool:
            ended: list[str] = []

            async def wait(event: Any) -> None:
                await anyio.lowlevel.checkpoint()

            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:

                    async def body() -> None:
                        await run_tools(
                            session,
                            llm,
                            tools=Desk,
                            dispatch=dispatcher(journal),
                            executor=one_at_a_time(),
                            hooks=Desk.hooks().with_hooks(Async()) if hooked else None,
                            on_progress=wait,
                            on_event=wait if streamed else None,
                        )
                        ended.append("done")

                    group.start_soon(body)
                    for _ in range(after):
                        await anyio.lowlevel.checkpoint()
                    if not ended:
                        scope.cancel()
            return not ended

        cancelled = anyio.run(main, backend=backend)
        done = not cancelled
        check_valid(session)
        # A tool that was begun has its result in the session.
        assert len(journal.ran) <= len(
            [status for status, _ in results(session) if status != "rejected"]
        )
        if cancelled:
            if not llm.remaining:
                session.push_user("Thanks.")
            more = Runner(backend)(session, script(calls(look("cow")), ANSWER))
            assert more.stopped_by == "answer"
            check_valid(session)
        moment += 1
    assert moment > 20


class Forever:
    """Waits, with no event loop."""

    def __await__(self) -> Any:
        yield


@pytest.mark.parametrize(("kind", "committed"), [(RoundPlanned, 0), (RoundExecuted, 1)])
def test_a_loop_whose_coroutine_is_closed_leaves_no_round_open(kind: Any, committed: int) -> None:
    session = asked()

    async def tell(event: LoopEvent) -> None:
        if isinstance(event, kind):
            await Forever()

    def cached(call: BaseToolCall) -> ToolDecision:
        return Complete("from the cache")

    running = run_tools(
        session,
        script(calls(look("cat"))),
        tools=Desk,
        dispatch=dispatcher(),
        hooks=cached,
        on_progress=tell,
    )
    running.send(None)
    running.close()
    assert results(session) == [("ok", "from the cache")] * committed
    check_valid(session)


@pytest.mark.scaled
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_an_interrupt_between_the_tools_and_the_end_of_the_commit_loses_no_result() -> None:
    """At each line and byte code from there on: counting, the commit itself, what follows it."""

    async def tell(event: LoopEvent) -> None:
        if isinstance(event, RoundExecuted):
            await Forever()

    def interrupted(place: int, event: str) -> bool:
        session = asked()
        running = run_tools(
            session,
            script(calls(look("cat"), call("nope")), ANSWER),
            tools=Desk,
            dispatch=dispatcher(),
            hooks=lambda call: Complete("from the cache"),
            on_progress=tell,
        )
        running.send(None)

        def go_on() -> None:
            with suppress(StopIteration):
                running.send(None)

        reached = run_until(go_on, place, event)
        assert [status for status, _ in results(session)] == ["ok", "rejected"], (place, event)
        check_valid(session)
        return reached

    assert list(places(interrupted))


# --- the sync form -----------------------------------------------------------------------


def interrupt() -> None:
    """As Ctrl-C does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_an_interrupt_while_tools_run_cancels_them_and_keeps_what_had_finished() -> None:
    session, journal = asked(), Journal()
    journal.during["wait_for_ever"] = interrupt
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        Runner("sync")(session, script(STUCK), journal, executor=one_at_a_time())
    assert [status for status, _ in results(session)] == ["ok", "error", "error", "rejected"]
    assert "interrupted" in results(session)[1][1]
    check_valid(session)
    assert threading.active_count() <= before, "no thread of the event loop is left"
    assert Runner("sync")(session, script(ANSWER)).stopped_by == "answer"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_a_tool_raises_to_end_the_program_passes(
    error: type[BaseException], run: Runner
) -> None:
    session, journal = asked(), Journal()

    def leave() -> None:
        raise error("bye")

    journal.during["count"] = leave
    with pytest.raises(error):
        run(
            session,
            script(calls(look("cat"), call("count", text="x"))),
            journal,
            executor=one_at_a_time(),
        )
    assert [status for status, _ in results(session)] == ["ok", "error"]
    check_valid(session)


def test_a_run_that_could_not_even_be_waited_for_has_a_result_for_each_call() -> None:
    """As after a second Ctrl-C, while the tools of a sync loop are being cancelled."""
    from lutumpy.execution import CallReport, ExecutionReport
    from lutumpy.execution.results import not_started

    session = asked()
    outcome: Any = session.text_turn(
        script(calls(look("cat"), look("dog"))), tools=Desk
    ).collect_sync()
    first, second = outcome.round.calls
    report, done = ExecutionReport(), CallReport(first)
    done.result = not_started(first)
    report.begin([done, CallReport(second)])
    known = report.results_so_far([first, second])
    assert [result.outcome for result in known] == ["not_started", "interrupted"]
    outcome.round.commit(session, known)
