"""The whole loop in one call, for those who want it: `run_tools`, and `run_tools_sync`.

Opt-in: nothing else in lutumpy imports this package. What it does can be written by hand in twenty
lines; see `docs/loops.md`.
"""

from lutumpy.loops.progress import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.loops.result import LoopResult, StoppedBy, UncommittedRoundError
from lutumpy.loops.run import run_tools, run_tools_sync
from lutumpy.loops.settings import LoopOptions

__all__ = [
    "LoopEnded",
    "LoopEvent",
    "LoopOptions",
    "LoopResult",
    "RequestStarted",
    "RoundCommitted",
    "RoundDecoded",
    "RoundExecuted",
    "RoundPlanned",
    "StoppedBy",
    "UncommittedRoundError",
    "run_tools",
    "run_tools_sync",
]
