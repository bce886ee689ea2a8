"""The whole loop in one call, for those who want it: `run_tools`, and `run_tools_sync`.

Opt-in: nothing else in lutumpy imports this package. What it does can be written by hand in twenty
lines; see `docs/loops.md`.

`Loop`, its `Effects` and `LoopSettings` are for who builds a loop of another kind: the order of the
steps, the limits and every way out are `Loop`'s, and the effects say what a step does.
"""

from lutumpy.loops.counts import LoopCounts
from lutumpy.loops.display import ProgressDisplay, show_progress
from lutumpy.loops.effects import AsyncEffects, Effects, OpenRound, PendingCalls, SyncEffects
from lutumpy.loops.loop import Loop
from lutumpy.loops.progress import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.loops.result import LoopResult, StoppedBy, UncommittedRoundError, stop_reason
from lutumpy.loops.reviews import take_content, withhold
from lutumpy.loops.run import run_tools, run_tools_sync
from lutumpy.loops.settings import (
    AskApproval,
    LoopOptions,
    LoopSettings,
    Policy,
    has_async_hooks,
)
from lutumpy.loops.watching import LoopBudget, LoopTelemetry, RunningLoop

__all__ = [
    "AskApproval",
    "AsyncEffects",
    "Effects",
    "Loop",
    "LoopBudget",
    "LoopCounts",
    "LoopEnded",
    "LoopEvent",
    "LoopOptions",
    "LoopResult",
    "LoopSettings",
    "LoopTelemetry",
    "OpenRound",
    "PendingCalls",
    "Policy",
    "ProgressDisplay",
    "RequestStarted",
    "RoundCommitted",
    "RoundDecoded",
    "RoundExecuted",
    "RoundPlanned",
    "RunningLoop",
    "StoppedBy",
    "SyncEffects",
    "UncommittedRoundError",
    "has_async_hooks",
    "run_tools",
    "run_tools_sync",
    "show_progress",
    "stop_reason",
    "take_content",
    "withhold",
]
