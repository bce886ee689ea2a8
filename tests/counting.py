"""Work counted in function calls: the same number on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def profiled(run: Callable[[], object], profile: Callable[[FrameType, str, object], None]) -> None:
    """`run`, with every call in it and every return told to `profile`."""
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)


def calls_made(run: Callable[[], object]) -> int:
    """How many functions `run` calls, those written in C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    profiled(run, count)
    return calls
