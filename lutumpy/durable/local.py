"""Calls that run in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import CallTicket, Toolset
from lutumpy.execution import (
    Around,
    CallJournal,
    Dispatcher,
    ExecutionReport,
    ExecutionResult,
    ToolExecutor,
    call_of_ticket,
    refuse_ticket,
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
        """Run the calls of tickets; one result for each, in order.

        A ticket that doesn't fit the tools here is `failed`, and not run.
        """
        toolset = self._dispatch.toolset
        loaded = [_load_call(ticket, toolset) for ticket in tickets]
        calls = [call for call in loaded if isinstance(call, BaseToolCall)]
        scope = tickets[0].scope if tickets else ""
        ran = iter(await self.run_calls(calls, journal, scope, ExecutionReport()))
        return [
            next(ran)
            if isinstance(call, BaseToolCall)
            else await refuse_ticket(call, ticket, journal)
            for ticket, call in zip(tickets, loaded, strict=True)
        ]

    async def run_calls(
        self,
        calls: Sequence[BaseToolCall],
        journal: CallJournal,
        scope: str,
        report: ExecutionReport,
        around: Around | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> list[ExecutionResult]:
        """Run calls that this process has already; their tickets need not be loaded again."""
        # The store knows which calls are unresolved, and somebody may have decided about one in
        # another process.
        self._executor.resolve_scope(scope)
        return await self._executor.run(
            calls,
            self._dispatch,
            scope=scope,
            report=report,
            journal=journal,
            around=around,
            about=about,
        )


def _load_call(ticket: CallTicket, toolset: type[Toolset[Any]]) -> BaseToolCall | ExecutionResult:
    """The call of a ticket; or its result, where it doesn't fit the tools here (rule P18)."""
    try:
        return call_of_ticket(ticket, toolset)
    except (LookupError, ValueError):
        text = "The tool is another one where the call was to be run, so it was not run."
        return ExecutionResult(ticket.metadata, text, "error", outcome="failed")
