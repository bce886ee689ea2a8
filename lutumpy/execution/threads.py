"""A plain function in a worker thread, which can't be stopped and may outlive its caller."""

# Two sides touch a job (rule E6): the worker thread that runs the function, and the task that waits
# for it and may stop waiting at any moment. What becomes of the outcome depends on which of them
# was first, so the state changes under a lock only:
#
#     state      the function            how it got there         its outcome
#     ---------  ----------------------  -----------------------  ------------------------------
#     new        has not begun                                    none yet
#     running    is running              the thread began         none yet
#     returned   has returned or raised  from `running`           kept in `value` and `error`
#     dropped    never runs              `give_up` from `new`     none
#     given up   is running, or has      `give_up` from           dropped; `on_late_return` is
#                returned since          `running`                called when it is there

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, Literal

__all__ = ["ThreadJob"]


class ThreadJob:
    """One run of a plain function.

    Args:
        function: What to run.
        on_late_return: Called in the thread when the function returns after it was given up.

    Attributes:
        value: What the function returned, once it has.
        error: What it raised, if it did.
    """

    __slots__ = ("_function", "_lock", "_on_late_return", "_state", "error", "value")

    def __init__(self, function: Callable[[], Any], on_late_return: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._state: str = "new"
        self._function: Callable[[], Any] | None = function
        self._on_late_return = on_late_return
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the function, in the thread; what it returns or raises is kept."""
        function = self._function
        with self._lock:
            if self._state == "dropped" or function is None:
                return
            self._state = "running"
        value: Any = None
        error: BaseException | None = None
        try:
            value = function()
        except BaseException as raised:
            # Raised later, where the call is awaited: in a worker thread nobody would see it.
            error = raised
        self._function = function = None
        with self._lock:
            late = self._state == "given up"
            if not late:
                self._state = "returned"
                self.value, self.error = value, error
        if late:
            if inspect.iscoroutine(value):
                value.close()  # else Python warns that nobody awaited it
            self._on_late_return()

    def give_up(self) -> Literal["returned", "dropped", "given up"]:
        """Stop waiting for the function.

        Returns:
            `returned`: it was done; `value` and `error` count. `dropped`: it had not begun and
            never will. `given up`: it is running, and its outcome will be dropped.
        """
        with self._lock:
            if self._state == "returned":
                return "returned"
            if self._state == "new":
                self._state = "dropped"
                return "dropped"
            self._state = "given up"
            return "given up"

    def output(self) -> Any:
        """What the function returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value
