"""Run the calls of a round with limits, timeouts and retries, and get one result for each.

Opt-in: nothing else in lutumpy needs it, and `commit` takes results from anywhere. Runs on asyncio
and trio, through anyio.
"""

from __future__ import annotations

try:
    import anyio.lowlevel as _anyio  # noqa: F401  # so that the error names it
except ImportError as _error:
    raise ImportError(
        "lutumpy.execution needs anyio; "
        'install it with: python -m pip install ".[execution]" (in a clone)'
    ) from _error

from lutumpy.execution.around import Around, nest_around
from lutumpy.execution.dispatcher import Dispatcher, HandlerDecorator
from lutumpy.execution.executor import ToolExecutor, refuse_running_loop
from lutumpy.execution.journal import Begun, CallJournal
from lutumpy.execution.report import CallReport, ExecutionReport
from lutumpy.execution.results import (
    ExecutionResult,
    Outcome,
    as_execution_result,
    asked_result,
)
from lutumpy.execution.tickets import call_of_ticket, refuse_ticket, run_ticket
from lutumpy.execution.unresolved import UnresolvedCall
from lutumpy.plain.preview import preview
from lutumpy.tools import IdempotencyKey

__all__ = [
    "Around",
    "Begun",
    "CallJournal",
    "CallReport",
    "Dispatcher",
    "ExecutionReport",
    "ExecutionResult",
    "HandlerDecorator",
    "IdempotencyKey",
    "Outcome",
    "ToolExecutor",
    "UnresolvedCall",
    "as_execution_result",
    "asked_result",
    "call_of_ticket",
    "nest_around",
    "preview",
    "refuse_running_loop",
    "refuse_ticket",
    "run_ticket",
]
