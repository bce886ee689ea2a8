"""`ToolExecutor(around=)`: what a program does around each attempt of each call."""

# A manager of the user's is around the tool's code, and must change nothing of what became of
# the call:
#
#     step              what goes wrong                      the call
#     ----------------  -----------------------------------  ------------------------------------
#     made, entered     it raises                            failed, and the tool was not started
#                       it is cancelled, interrupted         as if the tool had not been reached
#     the tool runs     the tool raises, or times out        the manager is given the error; it
#                                                            may swallow it, without effect
#     told, left        it raises                            has its result; the error is logged
#                       it is cancelled                      has its result
#                       it is interrupted                    is interrupted with the run

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import anyio

from lutumpy.execution.attempts import Attempt, ends_everything
from lutumpy.execution.logs import logger
from lutumpy.execution.results import ExecutionResult
from lutumpy.hooks import BaseToolCall

__all__ = ["Around", "attempt_within", "nest_around"]

Around: TypeAlias = Callable[[BaseToolCall, int], "AbstractAsyncContextManager[Any] | None"]
"""Gives what is entered around one attempt, or `None` for nothing: it takes the call, and the
number of the attempt from 1."""

Concluded: TypeAlias = tuple[ExecutionResult, "str | None"]


def nest_around(outer: Around | None, inner: Around | None) -> Around | None:
    """What enters one and then the other; each sees what the other shows the executor. One that is
    in both, as where a loop and its executor were given the same, is entered once.
    """
    if outer is None or inner is None:
        return inner if outer is None else outer
    known = _parts_of(outer)
    for part in _parts_of(inner):
        if part not in known:
            outer = partial(_enter_both, outer, part)
    return outer


def _parts_of(around: Around) -> list[Around]:
    if isinstance(around, partial) and around.func is _enter_both:
        return [part for each in around.args for part in _parts_of(each)]
    return [around]


@asynccontextmanager
async def _enter_both(
    outer: Around, inner: Around, call: BaseToolCall, attempt: int
) -> AsyncIterator[Callable[[ExecutionResult], None]]:
    listeners: list[Any] = []
    async with AsyncExitStack() as stack:
        for each in (outer, inner):
            manager = each(call, attempt)
            if manager is not None:
                listeners.append(await stack.enter_async_context(manager))

        def tell(result: ExecutionResult) -> None:
            for listener in listeners:
                if callable(listener):
                    _notify(listener, call, result)

        yield tell


async def attempt_within(
    around: Around,
    call: BaseToolCall,
    number: int,
    attempt: Attempt,
    run: Callable[[], Awaitable[None]],
    conclude: Callable[[], Concluded],
) -> None:
    """Run one attempt inside what `around` gives.

    Args:
        around: As the executor was given it.
        call: The call.
        number: Which attempt it is, from 1.
        attempt: Notes how it ends.
        run: Runs the tool's code.
        conclude: The result that the attempt comes to.

    Raises:
        BaseException: As `Attempt.run`.
    """
    try:
        manager = around(call, number)
        listener = None if manager is None else await manager.__aenter__()
    except BaseException as error:
        attempt.began = False
        attempt.error = error
        if not isinstance(error, Exception) or ends_everything(error):
            raise
        return
    if manager is None:
        await run()
        return
    try:
        await run()
    except BaseException:
        await _leave(manager, call, *sys.exc_info())
        raise
    if not attempt.interrupted:
        attempt.concluded = conclude()
        if callable(listener):
            _notify(listener, call, attempt.concluded[0])
    error_seen = attempt.error
    if attempt.concluded is not None and attempt.concluded[0].outcome in ("promised", "asked"):
        error_seen = None  # that is how a tool says it
    if attempt.timed_out and error_seen is None:
        error_seen = TimeoutError("the tool did not finish in time")
    if error_seen is None:
        await _leave(manager, call, None, None, None)
    else:
        await _leave(manager, call, type(error_seen), error_seen, error_seen.__traceback__)


def _notify(listener: Callable[[ExecutionResult], Any], call: BaseToolCall, result: Any) -> None:
    try:
        listener(result)
    except Exception as error:
        _log_failure(call, error)


async def _leave(
    manager: AbstractAsyncContextManager[Any], call: BaseToolCall, *error: Any
) -> None:
    """Leave a manager; what it swallows or raises changes nothing of the call."""
    try:
        await manager.__aexit__(*error)
    except BaseException as raised:
        if raised is error[1]:
            return
        if isinstance(raised, anyio.get_cancelled_exc_class()):
            # The tool has ended: its result is kept, and the next wait raises this again.
            return
        if not isinstance(raised, Exception) or ends_everything(raised):
            raise
        _log_failure(call, raised)


def _log_failure(call: BaseToolCall, error: Exception) -> None:
    metadata = call.metadata
    logger.error(
        "%s of %s: what is around the call failed; its result stands",
        metadata.id,
        metadata.name,
        extra={"tool": metadata.name, "call_id": metadata.id},
        exc_info=error,
    )
