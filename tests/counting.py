"""Work counted in function calls: the same number on every machine, however busy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType


def profiled(run: Callable[[], object], profile: Callable[[FrameType, str, object], None]) -> None:
    """`run`, with every call in it and every return reported to `profile`.

    The collector waits meanwhile: the finalizers of what earlier tests left would be counted.
    """
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def calls_made(run: Callable[[], object]) -> int:
    """How many functions `run` calls, those written in C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    profiled(run, count)
    return calls
