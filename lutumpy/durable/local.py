"""Calls that run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lutumpy import CallTicket, ToolCall, Toolset
from lutumpy.execution import (
    CallJournal,
    Dispatcher,
    ExecutionReport,
    ExecutionResult,
    ToolExecutor,
)
from lutumpy.hooks import BaseToolCall
from lutumpy.tools import NotPortable, load_input

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
        loaded = [load_call(ticket, toolset) for ticket in tickets]
        calls = [call for call in loaded if isinstance(call, BaseToolCall)]
        scope = tickets[0].scope if tickets else ""
        ran = iter(await self.run_calls(calls, journal, scope, ExecutionReport()))
        return [next(ran) if isinstance(call, BaseToolCall) else call for call in loaded]

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


def load_call(ticket: CallTicket, toolset: type[Toolset[Any]]) -> BaseToolCall | ExecutionResult:
    """The call of a ticket; or its result, where the tool here is another one (rule P18)."""
    selector = next((each for each in toolset.selectors() if each.name == ticket.tool), None)
    if selector is None or selector.tool.digest != ticket.tool_digest:
        return _failed(ticket, "The tool is another one where it was to be run, so it was not run.")
    try:
        value = load_input(selector.tool, ticket.input)
    except NotPortable as error:
        return _failed(ticket, f"The input doesn't fit the tool, so it was not run: {error}.")
    call: BaseToolCall = ToolCall(ticket.metadata, value, selector)
    call.key, call.equal_to = ticket.key, ticket.equal_to
    return call


def _failed(ticket: CallTicket, text: str) -> ExecutionResult:
    return ExecutionResult(ticket.metadata, text, "error", outcome="failed")
