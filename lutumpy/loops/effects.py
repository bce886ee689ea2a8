"""What a loop has to wait for, awaited or blocking: requests, hooks, tools, callbacks."""

# The sync form has one difficulty: tools may be async, and a Ctrl-C has to reach them. They run in
# an event loop in another thread (a portal of anyio), and this thread blocks until they are done.
# A KeyboardInterrupt is raised here, so it is turned into a cancellation over there, and only when
# that has taken effect is it raised on: the report of the run is read next.

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from typing_extensions import Self

from lutumpy import (
    ApprovalRequest,
    Finished,
    NeedsTools,
    OpenCall,
    RoundClosedError,
    Session,
    ToolResult,
    ToolRound,
)
from lutumpy.execution import Around, Dispatcher, ExecutionReport, ToolExecutor
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.counts import LoopCounts
from lutumpy.loops.endings import InSession, OpenRound
from lutumpy.loops.reviews import take_content
from lutumpy.loops.settings import Policy
from lutumpy.models import ToolTurn
from lutumpy.plain.safe_text import safe_repr
from lutumpy.streaming import TurnStream, TurnStreamSync

__all__ = ["AsyncEffects", "Effects", "OpenRound", "PendingCalls", "SyncEffects"]

Callback = Callable[[Any], Any]


class PendingCalls(NamedTuple):
    """The calls of a round that are to be run, and with what.

    Attributes:
        number: The number of the round, from 1.
        plan: The plan; or the round itself, where no hook was asked.
        calls: Its pending calls.
        executor: What runs them in this process.
        dispatch: The functions behind them.
        scope: The scope of the run, in place of the executor's.
        report: Where the executor notes what becomes of each call. It is read where the run is cut
            off.
        around: What is around each attempt, outside the executor's own.
        about: Further fields of the log records of the calls: their round, and the model.
        open_calls: The calls of the conversation whose results are still to come.
    """

    number: int
    plan: OpenRound
    calls: Sequence[BaseToolCall]
    executor: ToolExecutor
    dispatch: Dispatcher[Any]
    scope: str | None
    report: ExecutionReport
    around: Around | None = None
    about: Mapping[str, Any] | None = None
    open_calls: Sequence[OpenCall] = ()

    def run(self) -> Any:
        """The run of the calls by the executor, to be awaited."""
        more: dict[str, Any] = {}
        if self.open_calls:  # an executor of the user's own may take none
            more["open_calls"] = self.open_calls
        return self.executor.run(
            self.calls,
            self.dispatch,
            scope=self.scope,
            report=self.report,
            around=self.around,
            about=self.about,
            **more,
        )


class _Raised(NamedTuple):
    """What a tool raised, on its way from one thread to the other."""

    error: BaseException


class Effects(Protocol):
    """What a loop asks of the world, and how its rounds end.

    Most methods return what the loop yields to its driver: an awaitable, or the value itself. Those
    that end a round are steps of the loop: `finish` and `commit` yield in the same way whatever
    they wait for, and `cut_off` waits for nothing, since the loop may be closing.
    """

    def collect(self, turn: ToolTurn[Any, Any], number: int) -> Any:
        """The outcome of the turn. A round whose calls were decided before comes as its plan."""

    def describe(self, hooks: ToolHooks[Any]) -> Any:
        """The tool descriptions that the hooks return, by selector."""

    def decide(
        self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any], number: int
    ) -> Any:
        """The plan."""

    def ask(self, approve: Callback, request: ApprovalRequest, number: int) -> Any:
        """What a callback says about a request for approval, or about a call that is held."""

    def execute(self, pending: PendingCalls) -> Any:
        """One result for each call, in their order."""

    def review(
        self,
        hooks: ToolHooks[Any],
        results: Sequence[ToolResult],
        reviewed: list[ToolResult],
        number: int,
    ) -> Any:
        """Nothing, once every result is in `reviewed` as the result hooks leave it.

        They are added one by one: where a hook fails, those before it are there.
        """

    def notify(self, callback: Callback, event: Any) -> Any:
        """Nothing, once the callback has returned."""

    def finish(self, outcome: Finished[Any], session: Session) -> Generator[Any, Any, None]:
        """Keep a finished answer, which is in the session."""
        ...

    def retry(
        self, outcome: Finished[Any], session: Session, message: str, counts: LoopCounts
    ) -> Generator[Any, Any, LoopCounts]:
        """Keep a finished answer that has no value, and `message`, which the user says to it.

        Returns:
            What the loop goes on counting from.
        """
        ...

    def commit(
        self,
        plan: OpenRound,
        session: Session,
        results: Sequence[ToolResult],
        counts: LoopCounts,
    ) -> Generator[Any, Any, LoopCounts]:
        """Commit the round, with what the loop has counted including it.

        Returns:
            What the loop goes on counting from.
        """
        ...

    def cut_off(
        self,
        plan: OpenRound,
        session: Session,
        known_results: Callable[[], Sequence[ToolResult]] | None,
    ) -> None:
        """End a round that an error or a cancellation cuts off; that error propagates then.

        Args:
            plan: The round.
            session: The conversation.
            known_results: Gives the results that are known by then, one for each call; `None` where
                no call was run.
        """


class AsyncEffects(InSession):
    """In the running event loop."""

    def __init__(self, on_event: Callback | None) -> None:
        self._on_event = on_event

    async def collect(self, turn: ToolTurn[Any, Any], number: int) -> Any:
        """See `Effects.collect`."""
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
        """See `Effects.describe`."""
        return await hooks.description_overrides()

    async def decide(
        self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any], number: int
    ) -> Any:
        """See `Effects.decide`."""
        return await round.apply_hooks(hooks)

    async def execute(self, pending: PendingCalls) -> Any:
        """See `Effects.execute`."""
        return await pending.run()

    async def review(
        self,
        hooks: ToolHooks[Any],
        results: Sequence[ToolResult],
        reviewed: list[ToolResult],
        number: int,
    ) -> None:
        """See `Effects.review`."""
        for result in results:
            if result.status == "promised":  # they are shown the late result
                reviewed.append(result)
                continue
            (after,) = await hooks.review([result])
            reviewed.append(take_content(result, after))

    async def ask(self, approve: Callback, request: ApprovalRequest, number: int) -> Any:
        """See `Effects.ask`."""
        returned = approve(request)
        return await returned if inspect.isawaitable(returned) else returned

    async def notify(self, callback: Callback, event: Any) -> None:
        """See `Effects.notify`."""
        returned = callback(event)
        if inspect.isawaitable(returned):
            await returned


class SyncEffects(InSession):
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

    def collect(self, turn: ToolTurn[Any, Any], number: int) -> Any:
        """See `Effects.collect`."""
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
        """See `Effects.describe`."""
        return hooks.description_overrides_sync()

    def decide(
        self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any], number: int
    ) -> Any:
        """See `Effects.decide`."""
        return round.apply_hooks_sync(hooks)

    def execute(self, pending: PendingCalls) -> Any:
        """See `Effects.execute`."""
        ended = threading.Event()

        async def run() -> Any:
            try:
                return await pending.run()
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

    def review(
        self,
        hooks: ToolHooks[Any],
        results: Sequence[ToolResult],
        reviewed: list[ToolResult],
        number: int,
    ) -> None:
        """See `Effects.review`."""
        for result in results:
            if result.status == "promised":
                reviewed.append(result)
                continue
            (after,) = hooks.review_sync([result])
            reviewed.append(take_content(result, after))

    def ask(self, approve: Callback, request: ApprovalRequest, number: int) -> Any:
        """See `Effects.ask`."""
        return _call_plainly(approve, request)

    def notify(self, callback: Callback, event: Any) -> None:
        """See `Effects.notify`."""
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
