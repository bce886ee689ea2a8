"""Calls that run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lutumpy import CallTicket
from lutumpy.execution import (
    CallJournal,
    Dispatcher,
    ExecutionReport,
    ExecutionResult,
    ToolExecutor,
)
from lutumpy.hooks import BaseToolCall

__all__ = ["LocalRunner"]


class LocalRunner:
    """Runs calls in this process: what a `DurableLoop` does without another runner.

    Args:
        dispatch: The functions of the tools.
        executor: Limits, timeouts and retries; by default a new one.
    """

    def __init__(self, dispatch: Dispatcher[Any], executor: ToolExecutor | None = None) -> None:
        self._dispatch = dispatch
        self._executor = ToolExecutor() if executor is None else executor

    async def run(
        self, tickets: Sequence[CallTicket], journal: CallJournal
    ) -> list[ExecutionResult]:
        """Run the calls of tickets; one result for each, in order."""
        calls = [load_call(ticket, self._dispatch) for ticket in tickets]
        scope = tickets[0].scope if tickets else ""
        return await self.run_calls(calls, journal, scope, ExecutionReport())

    async def run_calls(
        self,
        calls: Sequence[BaseToolCall],
        journal: CallJournal,
        scope: str,
        report: ExecutionReport,
    ) -> list[ExecutionResult]:
        """Run calls that this process has already; their tickets need not be loaded again."""
        return await self._executor.run(
            calls, self._dispatch, scope=scope, report=report, journal=journal
        )
