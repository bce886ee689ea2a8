"""`run_tools` and its sync twin: everything is checked first, then the loop is driven."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import Any

from typing_extensions import TypeVar, Unpack

from lutumpy import Model, Session, Toolset
from lutumpy.execution import Dispatcher, refuse_running_loop
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.effects import AsyncEffects, Effects, SyncEffects
from lutumpy.loops.loop import Loop
from lutumpy.loops.progress import LoopEvent
from lutumpy.loops.result import LoopResult
from lutumpy.loops.settings import (
    UNSENT,
    AskApproval,
    LoopOptions,
    LoopSettings,
    Policy,
    SyncApprove,
    SyncPolicy,
    refuse_async_hooks,
)
from lutumpy.plain.driving import drive_async, is_async
from lutumpy.streaming import StreamEvent
from lutumpy.tools import HasView, View

__all__ = ["run_tools", "run_tools_sync"]

TS = TypeVar("TS", bound=Toolset[Any])
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
V = TypeVar("V", default=None)


async def run_tools(
    session: Session,
    llm: Model,
    *,
    tools: HasView[View[TS, C]],
    dispatch: Dispatcher[TS] | None = None,
    hooks: ToolHooks[TS] | Policy[C] | None = None,
    approve: AskApproval | None = None,
    decide_held: Policy[C] | None = None,
    max_rounds: int = 15,
    output: type[V] | None = None,
    on_progress: Callable[[LoopEvent[C]], Awaitable[None] | None] | None = None,
    on_event: Callable[[StreamEvent[C]], Awaitable[None] | None] | None = None,
    **options: Unpack[LoopOptions[TS]],
) -> LoopResult[V]:
    """Make turns, and run what the model calls, until it answers or a limit is reached.

    In each round hooks decide the calls, the executor runs what is pending, the registry's result
    hooks review the results, and turn and results are committed. What the model got wrong is
    answered by the library; that is a round too. Whether the loop returns, raises or is
    cancelled, the session is valid afterwards and another `run_tools` continues it.

    Args:
        session: The conversation. It must end in something to answer, or in a paused turn.
        llm: An adapter with its model.
        tools: The toolset.
        dispatch: What runs its calls; by default `Dispatcher(tools)`, for toolsets whose tools have
            code of their own.
        hooks: The toolset's registry, whose description hooks also word the tools of each
            request; or a plain policy, a callable `call -> RunNormally | Complete | Reject`.
        approve: Asked about each call that the provider makes itself and that no hook has decided:
            `True` approves it. Sync or async. Without it they are rejected.
        decide_held: Asked about each call that a hook holds for a person: what it returns decides
            the call, as a hook's decision does. Sync or async. Without it a held call is a
            `HookError`.
        max_rounds: After this many committed rounds the loop stops with `round_limit`, and makes
            no further request.
        output: The type of the answer: every turn is a `structured_turn`, and the result has the
            value. As there, it may be whatever pydantic has a JSON Schema for, or an
            `OutputSchema`. What the model writes is never raised: see `value_retries`.
        on_progress: Called with each step of the loop, see `LoopEvent`; sync or async.
        on_event: Called with the events of the streamed answers; sync or async. With it, turns
            are streamed, which the model must be able to do.
        **options: Limits, the executor, and the options of each request: see `LoopOptions`.

    Returns:
        The text of the last turn, the number of committed rounds, the tokens of this loop, what
        stopped it, and the value, where one was asked for.

    Raises:
        ValueError: a limit is not a positive number; nothing was sent. `TypeError` where another
            argument is of the wrong type.
        InvalidToolConstraints: `available`, `require`, `describe` and `provider` can't hold;
            nothing was sent.
        DeclarationError: `dispatch` doesn't cover the toolset, or is for another one; nothing was
            sent.
        AdapterError: a request failed. No round is open; earlier rounds are in the session.
        TranscriptError: there is nothing to answer.
        HookError: a hook failed. If it decided a call, nothing of its round was run, and the
            round is discarded. If it reviewed a result, the round is committed, with an error in
            place of each result that could not be reviewed.
        UncommittedRoundError: tools ran, but meanwhile the session was changed so that their
            round no longer fits; the results are in the error. Where something was only added to
            the session, the round is committed after it.
        BaseException: a cancellation, a `KeyboardInterrupt`, and what `on_progress` or `on_event`
            raised propagate; so does what `approve` raised. If no tool of the round had run, the
            round is discarded. Otherwise it is committed: finished calls with their result
            (withheld where result hooks can no longer review it), the others as interrupted.
    """
    effects = AsyncEffects(on_event)
    settings = LoopSettings(
        tools,
        dispatch,
        hooks,
        approve,
        max_rounds,
        output=output,
        decide_held=decide_held,
        **options,
    )
    loop = _make_loop(session, llm, effects, settings, on_progress, on_event)
    if settings.telemetry is None:
        return await drive_async(loop.steps())
    with settings.telemetry.run(settings.name) as running:
        result = await drive_async(loop.steps())
        running.ended(result.rounds, result.stopped_by)
        return result


def run_tools_sync(
    session: Session,
    llm: Model,
    *,
    tools: HasView[View[TS, C]],
    dispatch: Dispatcher[TS] | None = None,
    hooks: ToolHooks[TS] | SyncPolicy[C] | None = None,
    approve: SyncApprove | None = None,
    decide_held: SyncPolicy[C] | None = None,
    max_rounds: int = 15,
    output: type[V] | None = None,
    on_progress: Callable[[LoopEvent[C]], None] | None = None,
    on_event: Callable[[StreamEvent[C]], None] | None = None,
    **options: Unpack[LoopOptions[TS]],
) -> LoopResult[V]:
    """As `run_tools`, with a sync client, plain hooks and plain callbacks.

    Requests, hooks and callbacks run in the calling thread. Tools, async ones included, run in an
    event loop (asyncio) in another thread: one loop for all rounds, with the context variables of
    the caller. A `KeyboardInterrupt` while they run cancels them, and propagates when they have
    ended.

    Raises:
        RuntimeError: it was called inside a running event loop; nothing was sent.
        HookError: a hook, or the policy, is async; nothing was sent.
    """
    refuse_running_loop(
        f"run_tools_sync was called inside a running event loop: await run_tools there; {UNSENT}"
    )
    for name, callback in (
        ("approve", approve),
        ("decide_held", decide_held),
        ("on_progress", on_progress),
        ("on_event", on_event),
    ):
        if is_async(callback):
            raise TypeError(
                f"{name}= is async; run_tools_sync takes plain callbacks, run_tools both; {UNSENT}"
            )
    refuse_async_hooks(hooks)
    with SyncEffects(on_event) as effects:
        settings = LoopSettings(
            tools,
            dispatch,
            hooks,
            approve,
            max_rounds,
            output=output,
            decide_held=decide_held,
            **options,
        )
        loop = _make_loop(session, llm, effects, settings, on_progress, on_event)
        if settings.telemetry is None:
            return _drive_sync(loop.steps())
        with settings.telemetry.run(settings.name) as running:
            result = _drive_sync(loop.steps())
            running.ended(result.rounds, result.stopped_by)
            return result


def _make_loop(
    session: Session,
    llm: Model,
    effects: Effects,
    settings: LoopSettings,
    on_progress: Any,
    on_event: Any,
) -> Loop:
    if not isinstance(session, Session):
        raise TypeError(f"session takes a Session, not {type(session).__name__}; {UNSENT}")
    for name, callback in (("on_progress", on_progress), ("on_event", on_event)):
        if callback is not None and not callable(callback):
            raise TypeError(f"{name}= takes a callable, not {type(callback).__name__}; {UNSENT}")
    if on_event is not None and not hasattr(llm, "open_stream"):
        raise TypeError(
            "on_event= needs a model that streams; "
            f"{type(llm).__name__} has no open_stream(); {UNSENT}"
        )
    return Loop(session, settings.watched(llm), effects, settings, on_progress)


def _drive_sync(steps: Generator[Any, Any, LoopResult[Any]]) -> LoopResult[Any]:
    # A KeyboardInterrupt may come between two steps, where no step could catch it. Closing the
    # generator raises GeneratorExit at its last yield, so that the open round is still dealt with.
    with closing(steps):
        try:
            value = next(steps)
            while True:
                value = steps.send(value)
        except StopIteration as done:
            result: LoopResult[Any] = done.value
            return result
