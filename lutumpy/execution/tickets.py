"""Calls that come as tickets: loaded, and run in a worker (rule P18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy import CallTicket, ToolCall, ToolMetadata, ToolResult, Toolset
from lutumpy.execution.dispatcher import Dispatcher
from lutumpy.execution.executor import ToolExecutor
from lutumpy.execution.journal import CallJournal
from lutumpy.execution.results import ExecutionResult, as_execution_result
from lutumpy.hooks import BaseToolCall
from lutumpy.tools import CallLeg, NotPortable, load_input, restored_origin

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["call_of_ticket", "refuse_ticket", "run_ticket"]

_CHANGED = (
    "The tool is not the one that this call was decided for: it changed meanwhile, so it was not "
    "run. Look at the tool as it is described now."
)
_MISFIT = "The input of the call doesn't fit the tool any more, so it was not run."


def call_of_ticket(ticket: CallTicket, tools: type[Toolset[Any]]) -> BaseToolCall:
    """The call of a ticket, with the input and the key that were decided on.

    Raises:
        LookupError: the toolset has no such tool (`UnknownToolError`).
        ValueError: the tool is another one now, or the input doesn't fit it.
    """
    selector = tools.selector(ticket.tool)
    if selector.tool.digest != ticket.tool_digest:
        raise ValueError(f"the tool {ticket.tool!r} is not the one that was decided on")
    value = load_input(selector.tool, ticket.input)
    # Equal calls of the answer are told apart by how many come before each of them.
    before = [ToolMetadata("", ticket.tool, ticket.arguments)] * ticket.occurrence
    origin = restored_origin(ticket.at, [*before, ticket.metadata])
    call: ToolCall[Any, Any] = ToolCall(ticket.metadata, value, selector, (), origin)
    call.key = ticket.key
    call.equal_to = ticket.equal_to
    if ticket.leg:
        resume = ticket.resume if isinstance(ticket.resume, dict) else None
        call.leg = CallLeg(ticket.leg, resume)
    return call


async def run_ticket(
    ticket: CallTicket,
    tools: type[Toolset[Any]],
    dispatch: Dispatcher[Any],
    *,
    executor: ToolExecutor | None = None,
) -> dict[str, JsonValue]:
    """Run one call in a worker, and give its outcome as JSON.

    The digest of the tool is checked first: another tool is `failed`, and not run. Whatever the
    tool does is an outcome; `ExecutionResult.load(outcome, ticket)` reads it.

    Args:
        ticket: The ticket.
        tools: The toolset.
        dispatch: What runs its calls.
        executor: Limits, timeouts and retries; by default a new one.

    Raises:
        DeclarationError: the dispatcher doesn't cover the toolset. Nothing was run.
        BaseException: a cancellation of the caller, or a tool's `KeyboardInterrupt` or
            `SystemExit`.
    """
    runner = ToolExecutor() if executor is None else executor
    try:
        call = call_of_ticket(ticket, tools)
    except NotPortable:
        refused = _not_run(ticket, _MISFIT)
    except (LookupError, ValueError):
        refused = _not_run(ticket, _CHANGED)
    else:
        (result,) = await runner.run([call], dispatch, scope=ticket.scope)
        return result.dump()
    if runner.journal is not None:
        refused = await refuse_ticket(refused, ticket, runner.journal)
    return refused.dump()


async def refuse_ticket(
    refused: ExecutionResult, ticket: CallTicket, journal: CallJournal
) -> ExecutionResult:
    """The result of a call that isn't run here: what came of it, where it was begun before (P7).

    Args:
        refused: Why it isn't run.
        ticket: Its ticket.
        journal: Knows whether somebody has begun it, and is told otherwise.
    """
    answer = await journal.begin(ticket)
    if isinstance(answer, ToolResult):
        return as_execution_result(answer)
    await journal.end(ticket, refused)
    return refused


def _not_run(ticket: CallTicket, text: str) -> ExecutionResult:
    return ExecutionResult(ticket.metadata, text, "error", outcome="failed")
