"""What a loop has to wait for, awaited or blocking: requests, hooks, tools, callbacks."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from typing_extensions import Self

from lutumpy.core.safe_text import safe_repr
from lutumpy.errors import RoundClosedError
from lutumpy.execution import Dispatcher, ExecutionReport, ToolExecutor
from lutumpy.hooks.calling import close_coroutine
from lutumpy.hooks.run import Decider
from lutumpy.hooks.tool_hooks import ToolHooks
from lutumpy.rounds.outcome import NeedsTools
from lutumpy.rounds.round import ToolRound
from lutumpy.rounds.stream import TurnStream, TurnStreamSync
from lutumpy.rounds.turns import ToolTurn
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.results import ToolResult

Callback = Callable[[Any], Any]


class _Raised(NamedTuple):
    error: BaseException


class Effects(Protocol):
    """Each gives what the loop yields: an awaitable, or the value itself."""

    def collect(self, turn: ToolTurn[Any, None]) -> Any:
        """The outcome of the turn."""

    def describe(self, hooks: ToolHooks[Any]) -> Any:
        """The descriptions that hooks give."""

    def decide(self, round: ToolRound[Any], hooks: Decider) -> Any:
        """The plan."""

    def execute(
        self,
        executor: ToolExecutor,
        calls: Sequence[BaseToolCall],
        dispatch: Dispatcher[Any],
        scope: str | None,
        report: ExecutionReport,
    ) -> Any:
        """One result for each call, in their order."""

    def review(self, hooks: ToolHooks[Any], result: ToolResult) -> Any:
        """The reviewed result, in a list."""

    def tell(self, callback: Callback, event: Any) -> Any:
        """Nothing, once the callback is done."""


class AsyncEffects:
    """In the running event loop."""

    def __init__(self, on_event: Callback | None) -> None:
        self._on_event = on_event

    async def collect(self, turn: ToolTurn[Any, None]) -> Any:
        if self._on_event is None:
            return await turn.collect()
        stream = turn.stream()
        try:
            async with stream:
                async for event in stream:
                    await self.tell(self._on_event, event)
            return stream.outcome
        except BaseException:
            _drop(stream)
            raise

    async def describe(self, hooks: ToolHooks[Any]) -> Any:
        return await hooks.description_overrides()

    async def decide(self, round: ToolRound[Any], hooks: Decider) -> Any:
        return await round.apply_hooks(hooks)

    async def execute(
        self,
        executor: ToolExecutor,
        calls: Sequence[BaseToolCall],
        dispatch: Dispatcher[Any],
        scope: str | None,
        report: ExecutionReport,
    ) -> Any:
        return await executor.run(calls, dispatch, scope=scope, report=report)

    async def review(self, hooks: ToolHooks[Any], result: ToolResult) -> Any:
        return await hooks.review([result])

    async def tell(self, callback: Callback, event: Any) -> None:
        waiting = callback(event)
        if inspect.isawaitable(waiting):
            await waiting


class SyncEffects:
    """In the calling thread, but for the tools: those run in an event loop that lives as long as this is entered.

    That loop is one for all rounds, so that what an async tool keeps between calls (a client, a pool) stays usable.
    """

    def __init__(self, on_event: Callback | None) -> None:
        self._on_event = on_event
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal = None
        self._stack.__exit__(kind, error, trace)

    def collect(self, turn: ToolTurn[Any, None]) -> Any:
        if self._on_event is None:
            return turn.collect_sync()
        stream = turn.stream_sync()
        try:
            with stream:
                for event in stream:
                    self.tell(self._on_event, event)
            return stream.outcome
        except BaseException:
            _drop(stream)
            raise

    def describe(self, hooks: ToolHooks[Any]) -> Any:
        return hooks.description_overrides_sync()

    def decide(self, round: ToolRound[Any], hooks: Decider) -> Any:
        return round.apply_hooks_sync(hooks)

    def execute(
        self,
        executor: ToolExecutor,
        calls: Sequence[BaseToolCall],
        dispatch: Dispatcher[Any],
        scope: str | None,
        report: ExecutionReport,
    ) -> Any:
        ended = threading.Event()

        async def run() -> Any:
            try:
                return await executor.run(calls, dispatch, scope=scope, report=report)
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:
                # A tool that raises SystemExit must not end the event loop's thread: it is raised in the caller's.
                return _Raised(error)
            finally:
                ended.set()

        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal())
        # The task is started with the context variables of this thread.
        future = self._portal.start_task_soon(run)
        try:
            results = future.result()
        except BaseException:
            future.cancel()
            # The report is read next: nothing may be running any more.
            ended.wait()
            raise
        if isinstance(results, _Raised):
            raise results.error
        return results

    def review(self, hooks: ToolHooks[Any], result: ToolResult) -> Any:
        return hooks.review_sync([result])

    def tell(self, callback: Callback, event: Any) -> None:
        waiting = callback(event)
        if inspect.isawaitable(waiting):
            close_coroutine(waiting)
            raise TypeError(
                f"{safe_repr(callback)} gave an awaitable; run_tools_sync takes plain callbacks, run_tools both"
            )


def _drop(stream: TurnStream[Any, Any] | TurnStreamSync[Any, Any]) -> None:
    """Discard the round of a stream whose reader failed after the last event had come."""
    try:
        outcome = stream.outcome
    except RoundClosedError:
        return
    if isinstance(outcome, NeedsTools):
        outcome.round.discard()
