"""What a loop has to wait for, awaited or blocking: requests, hooks, tools, callbacks."""

# The sync form has one difficulty: tools may be async, and a Ctrl-C has to reach them. They run in
# an event loop in another thread (a portal of anyio), and this thread blocks until they are done.
# A KeyboardInterrupt is raised here, so it is turned into a cancellation over there, and only when
# that has taken effect is it raised on: the report of the run is read next.

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

from lutumpy import ApprovalRequest, NeedsTools, RoundClosedError, ToolResult, ToolRound
from lutumpy.execution import Dispatcher, ExecutionReport, ToolExecutor
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.settings import Policy
from lutumpy.models import ToolTurn
from lutumpy.plain.safe_text import safe_repr
from lutumpy.streaming import TurnStream, TurnStreamSync

__all__ = ["AsyncEffects", "Effects", "SyncEffects"]

Callback = Callable[[Any], Any]


class _Raised(NamedTuple):
    """What a tool raised, on its way from one thread to the other."""

    error: BaseException


class Effects(Protocol):
    """Each method returns what the loop yields: an awaitable, or the value itself."""

    def collect(self, turn: ToolTurn[Any, None]) -> Any:
        """The outcome of the turn."""

    def describe(self, hooks: ToolHooks[Any]) -> Any:
        """The tool descriptions that the hooks return, by selector."""

    def decide(self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any]) -> Any:
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

    def ask(self, approve: Callback, request: ApprovalRequest) -> Any:
        """What `approve` says about the request."""

    def notify(self, callback: Callback, event: Any) -> Any:
        """Nothing, once the callback has returned."""


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
                    await self.notify(self._on_event, event)
            return stream.outcome
        except BaseException:
            _discard_round(stream)
            raise

    async def describe(self, hooks: ToolHooks[Any]) -> Any:
        return await hooks.description_overrides()

    async def decide(self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any]) -> Any:
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

    async def ask(self, approve: Callback, request: ApprovalRequest) -> Any:
        returned = approve(request)
        return await returned if inspect.isawaitable(returned) else returned

    async def notify(self, callback: Callback, event: Any) -> None:
        returned = callback(event)
        if inspect.isawaitable(returned):
            await returned


class SyncEffects:
    """In the calling thread, except tools: they run in an event loop that lives as long as this.

    It is one loop for all rounds, so that what an async tool keeps between calls (a client, a
    pool) stays usable.
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
                    self.notify(self._on_event, event)
            return stream.outcome
        except BaseException:
            _discard_round(stream)
            raise

    def describe(self, hooks: ToolHooks[Any]) -> Any:
        return hooks.description_overrides_sync()

    def decide(self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any]) -> Any:
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
                # A tool that raises SystemExit must not end the event loop's thread; the caller's
                # thread raises it.
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
            # The report is read next, so nothing may be running any more.
            ended.wait()
            raise
        if isinstance(results, _Raised):
            raise results.error
        return results

    def review(self, hooks: ToolHooks[Any], result: ToolResult) -> Any:
        return hooks.review_sync([result])

    def ask(self, approve: Callback, request: ApprovalRequest) -> Any:
        return _call_plainly(approve, request)

    def notify(self, callback: Callback, event: Any) -> None:
        _call_plainly(callback, event)


def _call_plainly(callback: Callback, argument: Any) -> Any:
    returned = callback(argument)
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()  # else Python warns that nobody awaited it
        raise TypeError(
            f"{safe_repr(callback)} gave an awaitable; "
            "run_tools_sync takes plain callbacks, run_tools both"
        )
    return returned


def _discard_round(stream: TurnStream[Any, Any] | TurnStreamSync[Any, Any]) -> None:
    """Discard the round of a stream whose callback failed after the last event."""
    try:
        outcome = stream.outcome
    except RoundClosedError:
        return
    if isinstance(outcome, NeedsTools):
        outcome.round.discard()
