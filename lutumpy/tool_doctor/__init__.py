"""What becomes of a toolset at each provider: what is lost, changed or refused; and a lock against
changes unseen.

`check_tools` compiles every tool for every API and reports. `Lock` remembers what the model was
shown.
"""

from __future__ import annotations

from lutumpy.errors import ToolsetNotLoadedError
from lutumpy.tool_doctor.check import check_tools
from lutumpy.tool_doctor.differences import Difference, differences
from lutumpy.tool_doctor.loading import load_object, load_toolset
from lutumpy.tool_doctor.lock import (
    LOCK_FILE,
    Drift,
    Lock,
    LockedTool,
    LockedToolset,
    LockError,
    drift,
    locked_toolset,
)
from lutumpy.tool_doctor.renderings import offer_tokens
from lutumpy.tool_doctor.report import Finding, Severity, ToolListSize, ToolReport

__all__ = [
    "LOCK_FILE",
    "Difference",
    "Drift",
    "Finding",
    "Lock",
    "LockError",
    "LockedTool",
    "LockedToolset",
    "Severity",
    "ToolListSize",
    "ToolReport",
    "ToolsetNotLoadedError",
    "check_tools",
    "differences",
    "drift",
    "load_object",
    "load_toolset",
    "locked_toolset",
    "offer_tokens",
]
