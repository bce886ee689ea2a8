"""Threads that are stopped at a chosen line or byte code: interleavings that can be repeated.

A test of threads that run freely finds a race when it is lucky. Here a thread runs up to one place
of the package and waits there while another one runs, so every order in which two threads can meet
is tried, on each build of Python the same.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import lutumpy

PACKAGE = os.path.dirname(lutumpy.__file__)
NEVER = sys.maxsize
PATIENCE = 30.0  # seconds until a thread that never arrives fails its test


class SteppedThread:
    """A function that runs in a thread of its own and stops once, at one place of the package.

    Args:
        run: The function.
        place: The number of the line or byte code before which it stops; `NEVER` for none. Such a
            thread isn't traced.
        event: What is counted: `line` or `opcode`.

    Attributes:
        result: What it returned.
        error: What it raised.
        stopped: Whether it got that far.
        passed: How many places it has run through until then.
    """

    def __init__(self, run: Callable[[], object], place: int, event: str) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self.stopped = False
        self.passed = 0
        self._run, self._left, self._event = run, place, event
        self._arrived, self._on = threading.Event(), threading.Event()
        self._interrupt: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        assert self._arrived.wait(PATIENCE)

    def finish(self, interrupt: BaseException | None = None) -> None:
        """Let it run to its end, or raise `interrupt` where it has stopped."""
        self._interrupt = interrupt
        self._on.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _work(self) -> None:
        if self._left != NEVER:
            # In Python 3.12, settrace asks whether any frame wants them.
            sys._getframe().f_trace_opcodes = self._event == "opcode"
            sys.settrace(self._enter)
        try:
            self.result = self._run()
        except BaseException as error:
            self.error = error
        finally:
            # Only if it was set: Python 3.12 changes the code of all threads here, also of one that
            # stands in the middle of it, and crashes.
            if self._left != NEVER:
                sys.settrace(None)
            self._arrived.set()

    def _enter(self, frame: FrameType, kind: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE) or _in_finalizer(frame):
            return None
        if self._event == "opcode":
            frame.f_trace = self._trace  # from Python 3.13 on, the next line does nothing without
            frame.f_trace_opcodes = True
        return self._trace

    def _trace(self, frame: FrameType, kind: str, argument: object) -> Any:
        # What Python does of its own accord, as when it closes a generator, has no line.
        if kind == self._event and frame.f_lineno is not None and not self.stopped:
            if self._left == 0:
                self.stopped = True
                self._arrived.set()
                assert self._on.wait(PATIENCE)
                if self._interrupt is not None:
                    raise self._interrupt
            self._left -= 1
            self.passed += 1
        return self._trace


def _in_finalizer(frame: FrameType | None) -> bool:
    # The collector runs them when it likes, so they are no place of the function.
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
