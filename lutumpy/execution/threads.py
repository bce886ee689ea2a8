"""A plain function in a worker thread, which can't be stopped and may outlive whoever waits for it (rule E6)."""

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
        on_late_return: Is called in the thread when the function has returned after it was given up.
    """

    __slots__ = ("_function", "_lock", "_on_late_return", "_state", "error", "value")

    def __init__(self, function: Callable[[], Any], on_late_return: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        # new, running, returned, dropped, or given up
        self._state: str = "new"
        self._function: Callable[[], Any] | None = function
        self._on_late_return = on_late_return
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the function, in the thread; what it gives or raises is kept."""
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
            # To be raised where the call is awaited: an exception in a worker thread would end in the thread.
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
        """Stop waiting for it.

        Returns:
            `returned`: it was done, `value` and `error` count. `dropped`: it had not begun and never will. `given up`: it is
            running, and what it gives is dropped.
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
        """What the function gave; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value
