"""Limits of calls that a runner runs elsewhere: its workers don't know the budget of the loop."""

# In this process the executor enters `budget.tool_call` when a call begins. A runner is sent
# tickets, so the budget is asked before they are sent. A call that an earlier run may have begun is
# sent whatever the budget says: it may have run, and nobody may report then that it was not (P7).

from __future__ import annotations

from collections.abc import Sequence

from lutumpy import CallTicket, ToolResult
from lutumpy.durable.journal import StoreJournal
from lutumpy.durable.runner import CallRunner
from lutumpy.execution import Around, as_execution_result
from lutumpy.hooks import BaseToolCall

__all__ = ["run_within_limits"]


async def run_within_limits(
    limit: Around | None,
    runner: CallRunner,
    calls: Sequence[BaseToolCall],
    tickets: Sequence[CallTicket],
    journal: StoreJournal,
) -> list[ToolResult]:
    """Run the calls of tickets that the budget lets pass; one result for each ticket, in order.

    Args:
        limit: `tool_call` of the budget: what it raises is why a call isn't run.
        runner: Who runs them.
        calls: The calls.
        tickets: Their tickets.
        journal: Gets the results of those that aren't run.
    """
    if limit is None:
        return [*await runner.run(tickets, journal)]
    refused: dict[int, ToolResult] = {}
    for index, (call, ticket) in enumerate(zip(calls, tickets, strict=True)):
        if journal.result_of(ticket) is None:
            error = await _refusal(limit, call)
            if error is not None and not journal.may_have_begun(ticket):
                refused[index] = await journal.keep(ticket, as_execution_result(call.fail(error)))
    sent = [ticket for index, ticket in enumerate(tickets) if index not in refused]
    results = [*await runner.run(sent, journal)] if sent else []
    for index, result in refused.items():
        results.insert(index, result)
    return results


async def _refusal(limit: Around, call: BaseToolCall) -> Exception | None:
    """Count a call as begun; why it may not begin, if it may not."""
    manager = limit(call, 1)
    if manager is None:
        return None
    try:
        async with manager:
            return None
    except Exception as error:
        return error
