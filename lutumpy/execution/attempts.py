"""One attempt of one call: the tool's code under its timeout, in the event loop or in a thread."""

# What is hard: code that is stopped may raise anything, or nothing, and the same exception may mean
# four things. What an attempt comes to:
#
#     what happened                              noted as                           what `run` does
#     -----------------------------------------  ---------------------------------  ---------------
#     the code returned                          returned, value                    returns
#     it raised ToolError                        error                              returns
#     it raised while the caller is cancelled    interrupted (and error, if other   raises a
#                                                than a cancellation)               cancellation on
#     it raised KeyboardInterrupt or SystemExit  error                              raises it
#     it raised after its timeout                timed_out, error                   returns
#     it raised otherwise                        error                              returns
#     its timeout ended it silently              timed_out                          returns
#
# In a thread there is one more question, since a thread can't be stopped: `_stop_waiting` has to
# learn whether the function is still running, and leaves the slot to it in that case.

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from lutumpy import ToolError
from lutumpy.execution.results import ExecutionResult
from lutumpy.execution.threads import ThreadJob

__all__ = [
    "Attempt",
    "SlotHandover",
    "absorb_own_cancellation",
    "cancelled_from_outside",
    "ends_everything",
]


class SlotHandover(NamedTuple):
    """How a slot changes hands when a function keeps running although nobody waits for it.

    Attributes:
        leave_to_thread: Leaves the slot to the thread; called before the function is given up.
        take_back: Takes the slot back, since the function was not running after all.
        thread_returned: Called in the thread when the function returns, with the event to set.
    """

    leave_to_thread: Callable[[], None]
    take_back: Callable[[], None]
    thread_returned: Callable[[anyio.Event], None]


class Attempt:
    """One attempt, and how it ended.

    Args:
        ran_before: Whether the tool's code was reached in an earlier attempt.

    Attributes:
        returned: Whether there is a `value`.
        value: What the tool returned.
        error: What it raised, of its own accord or when it was stopped.
        timed_out: Whether it was stopped by its timeout.
        interrupted: Whether it was stopped by a cancellation from outside.
        began: Whether the tool's code was reached.
        thread_done: Set when the function returns that is still running in its thread; `None`
            when no function is.
        concluded: The result that it came to, and why its output can't be used, where something
            around the attempt was told of it; else `None`.
    """

    __slots__ = (
        "began",
        "concluded",
        "error",
        "interrupted",
        "ran_before",
        "returned",
        "thread_done",
        "timed_out",
        "value",
    )

    def __init__(self, *, ran_before: bool = False) -> None:
        self.ran_before: bool = ran_before
        self.returned: bool = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.timed_out: bool = False
        self.interrupted: bool = False
        self.began: bool = True
        self.thread_done: anyio.Event | None = None
        self.concluded: tuple[ExecutionResult, str | None] | None = None

    async def run(self, code: Callable[[], Any], seconds: float) -> None:
        """Run async code in the event loop.

        Args:
            code: Returns what is awaited.
            seconds: Its timeout.

        Raises:
            BaseException: A cancellation from outside, `KeyboardInterrupt`, `SystemExit`; nothing
                else that the code raises.
        """
        scope = _make_timeout(seconds)
        try:
            with scope:
                value = code()
                if inspect.isawaitable(value):
                    value = await value
                self.returned, self.value = True, value
        except BaseException as error:
            if self._note_error(error, scope):
                raise
        if scope.cancelled_caught:
            self.timed_out = True

    async def run_in_thread(
        self,
        code: Callable[[], Any],
        seconds: float,
        limiter: anyio.CapacityLimiter,
        handover: SlotHandover,
    ) -> None:
        """Run a plain function in a worker thread, with the context variables of this task.

        Args:
            code: The function. If what it returns is awaitable, it is awaited here.
            seconds: Its timeout.
            limiter: One that always has room: slots are counted elsewhere.
            handover: For a function that can't be waited for any longer.

        Raises:
            BaseException: As `run`. The function may be running then.
        """
        scope = _make_timeout(seconds)
        thread_done = anyio.Event()
        job = ThreadJob(code, partial(handover.thread_returned, thread_done))
        waiting = True
        try:
            with scope:
                await anyio.to_thread.run_sync(job.run, abandon_on_cancel=True, limiter=limiter)
                waiting = False
                value = job.output()
                if inspect.isawaitable(value):
                    value = await value
                self.returned, self.value = True, value
        except BaseException as error:
            if waiting and self._stop_waiting(job, thread_done, handover):
                return
            if self._note_error(error, scope):
                raise
        if scope.cancelled_caught:
            if waiting and self._stop_waiting(job, thread_done, handover):
                return
            self.timed_out = True

    def _note_error(self, error: BaseException, scope: anyio.CancelScope) -> bool:
        """Note what the code raised; says whether it has to propagate."""
        if isinstance(error, ToolError):
            self.error = error
            return False
        if ends_everything(error):
            self.error = error
            return True
        if cancelled_from_outside():
            self.interrupted = True
            if isinstance(error, anyio.get_cancelled_exc_class()):
                return True
            self.error = error
            return False
        self.error = error
        # Whatever a tool raises when its timeout stops it is the timeout's doing.
        self.timed_out = scope.cancel_called
        return False

    def _stop_waiting(
        self, job: ThreadJob, thread_done: anyio.Event, handover: SlotHandover
    ) -> bool:
        """Give up a thread; says whether its function had returned, so that it ended after all."""
        # The slot is handed over before the job is given up: the thread may return in between,
        # and must find the slot as its own.
        handover.leave_to_thread()
        state = job.give_up()
        if state == "given up":
            self.thread_done = thread_done
            return False
        handover.take_back()
        if state == "dropped":
            self.began = False
            return False
        if inspect.isawaitable(job.value):
            if inspect.iscoroutine(job.value):
                job.value.close()
            return False
        if job.error is not None and ends_everything(job.error):
            raise job.error
        self.returned, self.value, self.error = job.error is None, job.value, job.error
        return True


def cancelled_from_outside() -> bool:
    """Whether the current task is being cancelled by somebody else, so that it has to end."""
    try:
        return anyio.current_effective_deadline() == -math.inf
    except RuntimeError:  # the event loop is gone, and its tasks are being closed
        return True


async def absorb_own_cancellation() -> None:
    """Take back the cancellation that a tool's code requested of the very task that ran it.

    On asyncio such a request is delivered at the next await. Without a next await, it marks the
    task as cancelled, which the task group would take for a cancellation of everything.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    if getattr(task, "_must_cancel", False) and not cancelled_from_outside():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


def _make_timeout(seconds: float) -> anyio.CancelScope:
    if seconds == math.inf:
        return anyio.CancelScope()
    return anyio.CancelScope(deadline=anyio.current_time() + seconds)


def ends_everything(error: BaseException) -> bool:
    """Whether this is an interrupt or exit, or a group that holds one."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return True
    # Exception groups have a backport, so they are recognised by what they can do.
    if isinstance(error, Exception) or not callable(getattr(error, "subgroup", None)):
        return False
    inner: Any = getattr(error, "exceptions", ())
    return any(ends_everything(each) for each in inner)
