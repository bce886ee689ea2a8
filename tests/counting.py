"""Work counted in function calls: the same number on every machine, however busy."""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import lutumpy

PACKAGE = os.path.dirname(lutumpy.__file__)


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


def functions_entered(run: Callable[[], object], *, but: tuple[str, ...] = ()) -> Counter[str]:
    """The functions of this package that `run` enters in this thread, by file and name.

    Args:
        run: The work.
        but: Folders of the package that don't count.
    """
    found: Counter[str] = Counter()
    left_out = tuple(os.path.join(PACKAGE, folder) for folder in but)

    def count(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(left_out)
        # What dataclasses write has no file.
        if event == "call" and (ours or code.co_filename == "<string>"):
            found[f"{os.path.basename(code.co_filename)}:{code.co_name}"] += 1

    profiled(run, count)
    return found


@contextmanager
def ended_if_endless() -> Iterator[None]:
    """End the process, and print where it was, if the block would take for ever.

    That is no bound on how fast something is: the minutes are many times what the slowest machine
    takes. Code in C can't be interrupted by anything gentler.
    """
    faulthandler.dump_traceback_later(300, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
