"""One attempt of one call: the tool's code under its timeout, in the event loop or in a worker thread."""

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

from lutumpy.errors import ToolError
from lutumpy.execution.threads import ThreadJob

__all__ = ["Attempt", "Borrowing", "absorb_own_cancellation", "cancelled_from_outside"]


class Borrowing(NamedTuple):
    """What has to happen when a function keeps running in its thread although nobody waits for it.

    Attributes:
        lend: Leaves the slot to the thread; called before the function is given up.
        keep: Takes the slot back, since the function was not running after all.
        returned: Is called in the thread when the function returns, with the event to set.
    """

    lend: Callable[[], None]
    keep: Callable[[], None]
    returned: Callable[[anyio.Event], None]


class Attempt:
    """One attempt, and how it ended.

    Attributes:
        returned: Whether there is a `value`.
        value: What the tool gave.
        error: What it raised, or what it made of being stopped.
        timed_out: Whether it was stopped after its time.
        interrupted: Whether it was stopped by a cancellation from outside.
        began: Whether the tool's code was reached.
        late: Is set when the function returns that is still running in its thread; `None` when none is.
    """

    __slots__ = ("began", "error", "interrupted", "late", "returned", "timed_out", "value")

    def __init__(self) -> None:
        self.returned: bool = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.timed_out: bool = False
        self.interrupted: bool = False
        self.began: bool = True
        self.late: anyio.Event | None = None

    async def run(self, code: Callable[[], Any], seconds: float) -> None:
        """Run async code in the event loop.

        Args:
            code: Gives what is awaited.
            seconds: Its timeout.

        Raises:
            BaseException: A cancellation from outside, `KeyboardInterrupt`, `SystemExit`; nothing else that the code raises.
        """
        scope = _scope(seconds)
        try:
            with scope:
                value = code()
                if inspect.isawaitable(value):
                    value = await value
                self.returned, self.value = True, value
        except BaseException as error:
            if self._take(error, scope):
                raise
        if scope.cancelled_caught:
            self.timed_out = True

    async def run_in_thread(
        self,
        code: Callable[[], Any],
        seconds: float,
        limiter: anyio.CapacityLimiter,
        borrowing: Borrowing,
    ) -> None:
        """Run a plain function in a worker thread, with the context variables of this task.

        Args:
            code: The function. What it gives is awaited here, should it be awaitable.
            seconds: Its timeout.
            limiter: One that has always room: slots are counted elsewhere.
            borrowing: For a function that can't be waited for any longer.

        Raises:
            BaseException: As `run`. The function may be running then.
        """
        scope = _scope(seconds)
        returned = anyio.Event()
        job = ThreadJob(code, partial(borrowing.returned, returned))
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
            if waiting and self._give_up(job, returned, borrowing):
                return
            if self._take(error, scope):
                raise
        if scope.cancelled_caught and not (waiting and self._give_up(job, returned, borrowing)):
            self.timed_out = True

    def _take(self, error: BaseException, scope: anyio.CancelScope) -> bool:
        """Note what the code raised; says whether it has to pass."""
        if isinstance(error, ToolError):
            self.error = error
            return False
        if _ends_everything(error):
            self.error = error
            return True
        if cancelled_from_outside():
            self.interrupted = True
            if isinstance(error, anyio.get_cancelled_exc_class()):
                return True
            self.error = error
            return False
        self.error = error
        # What a tool makes of being stopped in time is no failure of its own.
        self.timed_out = scope.cancel_called
        return False

    def _give_up(self, job: ThreadJob, returned: anyio.Event, borrowing: Borrowing) -> bool:
        """Stop waiting for a thread; says whether its function had returned, so that the attempt has an end after all."""
        # First lent, then given up: the thread may return in between, and must find the slot as its own.
        borrowing.lend()
        how = job.give_up()
        if how == "given up":
            self.late = returned
            return False
        borrowing.keep()
        if how == "dropped":
            self.began = False
            return False
        if inspect.isawaitable(job.value):
            _close(job.value)
            return False
        if job.error is not None and _ends_everything(job.error):
            raise job.error
        self.returned, self.value, self.error = job.error is None, job.value, job.error
        return True


def cancelled_from_outside() -> bool:
    """Whether the task that asks is being cancelled by somebody who may, so that it has to end."""
    try:
        return anyio.current_effective_deadline() == -math.inf
    except RuntimeError:  # the event loop is gone, and its tasks are being closed
        return True


async def absorb_own_cancellation() -> None:
    """Take back the cancellation that code requested of the very task that it ran in.

    On asyncio such a request is delivered at the next await, or marks the task as cancelled when there is none, which its group
    would take for a cancellation of everything.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    if getattr(task, "_must_cancel", False) and not cancelled_from_outside():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


def _scope(seconds: float) -> anyio.CancelScope:
    return anyio.CancelScope(
        deadline=math.inf if seconds == math.inf else anyio.current_time() + seconds
    )


def _ends_everything(error: BaseException) -> bool:
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return True
    # Groups have a backport, so they are told by what they can do.
    subgroup = getattr(error, "subgroup", None)
    return callable(subgroup) and not isinstance(error, Exception) and _has_one(error)


def _has_one(group: BaseException) -> bool:
    inner: Any = getattr(group, "exceptions", ())
    return any(_ends_everything(error) for error in inner)


def _close(value: Any) -> None:
    if inspect.iscoroutine(value):
        value.close()
