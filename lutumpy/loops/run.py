"""`run_tools` and its sync twin: everything is checked first, then the loop is driven."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import closing
from typing import Any

from typing_extensions import TypeVar

from lutumpy.core.model import Model
from lutumpy.core.safe_text import safe_repr
from lutumpy.errors import HookError
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.execution.executor import refuse_running_loop
from lutumpy.hooks.decisions import Policy, ToolDecision
from lutumpy.hooks.implementations import is_async
from lutumpy.hooks.tool_hooks import ToolHooks, list_async_hooks
from lutumpy.loops.effects import AsyncEffects, Effects, SyncEffects
from lutumpy.loops.loop import Limits, Loop, Request
from lutumpy.loops.progress import LoopEvent
from lutumpy.loops.result import LoopResult
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.events import StreamEvent
from lutumpy.session import Session
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import ByTool, Selector
from lutumpy.tools.views import HasView, View
from lutumpy.toolset import Toolset

TS = TypeVar("TS", bound=Toolset[Any])
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)


UNSENT = "nothing was sent"


async def run_tools(
    session: Session,
    llm: Model,
    *,
    tools: HasView[View[TS, C]],
    dispatch: Dispatcher[TS],
    hooks: ToolHooks[TS] | Policy[C] | None = None,
    executor: ToolExecutor | None = None,
    scope: str | None = None,
    max_rounds: int = 15,
    max_repeats: int | None = 3,
    token_budget: int | None = None,
    available: ToolAvailability[TS] | None = None,
    require: ToolRequirement[TS] | None = None,
    describe: ByTool[Selector[TS, Any, Any], str] | None = None,
    parallel: bool = True,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    extra: Mapping[str, Any] | None = None,
    on_progress: Callable[[LoopEvent[C]], Awaitable[None] | None] | None = None,
    on_event: Callable[[StreamEvent[C]], Awaitable[None] | None] | None = None,
) -> LoopResult:
    """Make turns, and run what the model calls, until it answers or a limit is reached.

    A round goes: hooks decide its calls, the executor runs what is pending, the registry's result hooks review the results, and
    turn and results are committed. What the model got wrong is answered by the library, and is a round too. Whether the loop
    returns, raises or is cancelled, the session is valid afterwards and another `run_tools` goes on with it.

    Args:
        session: Where the conversation stands; it must have something to answer, or a paused turn.
        llm: An adapter with its model.
        tools: The toolset.
        dispatch: What runs its calls.
        hooks: The toolset's registry, whose description hooks word the tools of each request; or a plain policy, a callable
            `call -> RunNormally | Complete | Reject`.
        executor: How calls are run; a `ToolExecutor()` of this loop alone when left out. One that lives longer keeps calls of
            unknown outcome from being run again by later loops.
        scope: What tells this conversation from all others, in place of the executor's scope: for an executor that serves several.
        max_rounds: After so many committed rounds it stops with `round_limit`; no further request is made.
        max_repeats: When the same call (the same tool, arguments that are equal as JSON values) was invalid, rejected or failed
            in so many rounds of this loop, it stops with `repeat`. `None`: never.
        token_budget: Once the session has cost so many tokens since the loop began (`usage.total_tokens`, what is known of
            requests that failed or were left included), it stops with `budget` in place of another request.
            The round that is open then is run and committed, so a loop may exceed it by one answer.
            `None`: no limit. Hosts that count no tokens never reach it.
        available: Which tools the model may call.
        require: Whether it must call one: in the first request only, else it could never answer.
        describe: Other descriptions, for all requests; they win over those of hooks.
        parallel: `False` asks for at most one call in each answer.
        temperature: Sampling temperature.
        max_output_tokens: Limit of each answer, in tokens.
        extra: Provider parameters, passed through with every request.
        on_progress: Is told what happens, see `LoopEvent`; sync or async.
        on_event: Is given the events of the streamed answers; sync or async. Turns are streamed then, which the model must be
            able to.

    Returns:
        The text of the last turn, the number of committed rounds, this loop's tokens, and what stopped it.

    Raises:
        ValueError: a limit is no positive number; nothing was sent. `TypeError` where another parameter isn't what it has to be.
        InvalidToolConstraints: `available`, `require` and `describe` can't hold; nothing was sent.
        DeclarationError: `dispatch` doesn't cover the toolset, or is of another one; nothing was sent.
        AdapterError: a request failed. Nothing is open; the rounds before it are in the session.
        TranscriptError: there is nothing to answer.
        HookError: a hook failed. If it decided a call, nothing of its round was run, and the round is discarded. If it reviewed
            a result, the round is committed, with an error in place of each result that could not be reviewed.
        UncommittedRoundError: tools ran, but the session was changed meanwhile so that their round has no place in it; the
            results are in the error. Where something was only added to the session, the round is committed after that.
        BaseException: a cancellation, a `KeyboardInterrupt`, or what `on_progress` or `on_event` raised, passes. Before any tool
            of the round ran, it is discarded; afterwards it is committed: what had finished with its result (withheld where
            result hooks can't review it any more), the rest as interrupted.
    """
    loop = _loop(
        session,
        llm,
        AsyncEffects(on_event),
        Request(
            tools,
            available,
            require,
            dict(describe.items() if describe else ()),
            parallel,
            temperature,
            max_output_tokens,
            extra,
        ),
        _limits(max_rounds, max_repeats, token_budget),
        dispatch,
        executor,
        scope,
        hooks,
        on_progress,
        on_event,
    )
    return await _drive(loop.steps())


def run_tools_sync(
    session: Session,
    llm: Model,
    *,
    tools: HasView[View[TS, C]],
    dispatch: Dispatcher[TS],
    hooks: ToolHooks[TS] | Callable[[C], ToolDecision[Any, Any]] | None = None,
    executor: ToolExecutor | None = None,
    scope: str | None = None,
    max_rounds: int = 15,
    max_repeats: int | None = 3,
    token_budget: int | None = None,
    available: ToolAvailability[TS] | None = None,
    require: ToolRequirement[TS] | None = None,
    describe: ByTool[Selector[TS, Any, Any], str] | None = None,
    parallel: bool = True,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    extra: Mapping[str, Any] | None = None,
    on_progress: Callable[[LoopEvent[C]], None] | None = None,
    on_event: Callable[[StreamEvent[C]], None] | None = None,
) -> LoopResult:
    """As `run_tools`, with a sync client, plain hooks and plain callbacks.

    Requests, hooks and callbacks run in the calling thread. Tools run in an event loop (asyncio) in another thread, async ones
    included: one loop for all rounds, with the context variables of the caller. A `KeyboardInterrupt` while they run cancels them,
    and passes when they have ended.

    Raises:
        RuntimeError: it was called inside a running event loop; nothing was sent.
        HookError: a hook, or the policy, is async; nothing was sent.
    """
    refuse_running_loop(
        f"run_tools_sync was called inside a running event loop: await run_tools there; {UNSENT}"
    )
    _refuse_async(hooks, on_progress=on_progress, on_event=on_event)
    with SyncEffects(on_event) as effects:
        loop = _loop(
            session,
            llm,
            effects,
            Request(
                tools,
                available,
                require,
                dict(describe.items() if describe else ()),
                parallel,
                temperature,
                max_output_tokens,
                extra,
            ),
            _limits(max_rounds, max_repeats, token_budget),
            dispatch,
            executor,
            scope,
            hooks,
            on_progress,
            on_event,
        )
        return _drive_sync(loop.steps())


async def _drive(steps: Generator[Any, Any, LoopResult]) -> LoopResult:
    try:
        waiting = next(steps)
        while True:
            try:
                value = await waiting
            except BaseException as error:
                waiting = steps.throw(error)
            else:
                waiting = steps.send(value)
    except StopIteration as done:
        result: LoopResult = done.value
        return result


def _drive_sync(steps: Generator[Any, Any, LoopResult]) -> LoopResult:
    # An interrupt may come between two steps; closing the generator is what tells it.
    with closing(steps):
        try:
            value = next(steps)
            while True:
                value = steps.send(value)
        except StopIteration as done:
            result: LoopResult = done.value
            return result


# --- checks before the first request ---------------------------------------------------------------------------------


def _loop(
    session: Session,
    llm: Model,
    effects: Effects,
    request: Request,
    limits: Limits,
    dispatch: Dispatcher[Any],
    executor: ToolExecutor | None,
    scope: str | None,
    hooks: Any,
    on_progress: Any,
    on_event: Any,
) -> Loop:
    if not isinstance(session, Session):
        raise TypeError(f"session takes a Session, not {type(session).__name__}; {UNSENT}")
    if not hasattr(request.tools, "__view__"):
        raise TypeError(f"tools= takes a Toolset class, not {request.tools!r:.100}; {UNSENT}")
    toolset = request.tools.__view__().toolset
    if not isinstance(dispatch, Dispatcher):
        raise TypeError(
            f"dispatch= takes a Dispatcher({toolset.__name__}), not {safe_repr(dispatch)}; {UNSENT}"
        )
    dispatch.check(toolset)
    _check_hooks(hooks, toolset)
    for name, callback in (("on_progress", on_progress), ("on_event", on_event)):
        if callback is not None and not callable(callback):
            raise TypeError(f"{name}= takes a callable, not {type(callback).__name__}; {UNSENT}")
    if on_event is not None and not hasattr(llm, "open_stream"):
        raise TypeError(
            f"on_event= needs a model that streams; {type(llm).__name__} has no open_stream(); {UNSENT}"
        )
    if executor is None:
        executor = ToolExecutor()
    elif not isinstance(executor, ToolExecutor):
        raise TypeError(f"executor= takes a ToolExecutor, not {type(executor).__name__}; {UNSENT}")
    if scope is not None and not isinstance(scope, str):
        raise TypeError(f"scope= takes text, not {type(scope).__name__}; {UNSENT}")
    return Loop(
        session, llm, effects, request, limits, dispatch, executor, scope, hooks, on_progress
    )


def _check_hooks(hooks: Any, toolset: type[Toolset[Any]]) -> None:
    if isinstance(hooks, ToolHooks):
        if hooks._toolset is not toolset:
            raise HookError(f"{hooks!r} is no registry of {toolset.__name__}; {UNSENT}")
    elif hooks is not None and not callable(hooks):
        raise HookError(
            f"hooks= takes a registry or a callable, not {type(hooks).__name__}; {UNSENT}"
        )


def _limits(max_rounds: Any, max_repeats: Any, token_budget: Any) -> Limits:
    return Limits(
        _positive("max_rounds", max_rounds),
        None if max_repeats is None else _positive("max_repeats", max_repeats),
        None if token_budget is None else _positive("token_budget", token_budget),
    )


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={safe_repr(value)} is no whole number from 1; {UNSENT}")
    return value


def _refuse_async(hooks: Any, **callbacks: Any) -> None:
    for name, callback in callbacks.items():
        if is_async(callback):
            raise TypeError(
                f"{name}= is async; run_tools_sync takes plain callbacks, run_tools both; {UNSENT}"
            )
    if isinstance(hooks, ToolHooks):
        for name, label in list_async_hooks(hooks):
            raise HookError(f"hook {label} of {name!r} is async; use run_tools(); {UNSENT}")
    elif hooks is not None and is_async(hooks):
        raise HookError(f"the policy {safe_repr(hooks)} is async; use run_tools(); {UNSENT}")
