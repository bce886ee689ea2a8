"""What runners on engines have in common: one call, from its ticket to its result."""

# An engine that begins a call at most once can be asked later what became of it, so a process that
# was killed while it waited costs nothing: the next one finds the call by its key. What an engine
# can't say is whether it has never heard of a call or has forgotten it: finished ones are kept for
# days (retention), and a server may be set up anew. The marker in the store says which:
#
#   the engine      the marker          a `once` call
#   --------------  ------------------  ---------------------------------------------------------
#   knows the call  whatever            its result is waited for
#   doesn't         wasn't there        marked, then submitted to the engine
#   doesn't         was there           `maybe_executed`: forgotten, or killed in between, or begun
#                                       by another runner before this one was chosen
#
# Calls of other effects are submitted to the engine each time; it runs them again or finds them.
#
# A run that is cancelled stops its calls on the engine, and records `maybe_executed` for those of
# effect `once` that gave no result (rule P19). One whose conversation another process has taken
# over stops nothing: that process waits for the same calls.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from lutumpy import CallTicket, ToolResult, Toolset
from lutumpy.durable.late import UNKNOWN, untold_promise
from lutumpy.durable.runner import RoundJournal
from lutumpy.execution import Dispatcher, ExecutionResult, as_execution_result, run_ticket

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["Engine", "engine_id", "lost", "read_outcome", "run_in_worker", "run_on_engine"]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

_SECONDS_TO_STOP = 5.0

WORKFLOW = "lutumpy.call"
"""The name under which engines know the run of a call."""


class Engine(Protocol):
    """What an engine does with one call. Both raise `EngineError` where it can't be reached."""

    async def has(self, ticket: CallTicket) -> bool:
        """Whether it knows the call: queued, running or ended."""
        ...

    async def run(self, ticket: CallTicket) -> ExecutionResult:
        """Find the call or begin it, and wait for what comes of it.

        A call of another effect than `once` that was stopped before is begun again.
        """
        ...

    async def stop(self, ticket: CallTicket) -> ExecutionResult | None:
        """Stop the call if it has not ended; its result where it has."""
        ...


def engine_id(ticket: CallTicket) -> str:
    """The id of a call on an engine: a second loop finds the call by it."""
    name = f"call:{ticket.key}"
    return name if ticket.leg <= 1 else f"{name}:leg:{ticket.leg}"


async def run_on_engine(
    engine: Engine, tickets: Sequence[CallTicket], journal: RoundJournal
) -> list[ExecutionResult]:
    """Run calls on an engine, all at once; one result for each, in order.

    Raises:
        EngineError: the engine can't be reached. `TakenOverError`: another process has the
            conversation. What was submitted to the engine goes on there, and is found again.
        BaseException: it was cancelled; what was submitted is stopped, as far as that goes.
    """
    results: dict[str, ExecutionResult] = {}
    submitted: dict[str, CallTicket] = {}
    failed: list[Exception] = []

    async def run(ticket: CallTicket) -> None:
        try:
            results[ticket.call_id] = await _run_call(engine, ticket, journal, submitted)
        except Exception as error:
            # One error, not a group of them: each would say the same of the engine.
            failed.append(error)
            group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            for ticket in tickets:
                group.start_soon(run, ticket)
    except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
        running = [each for call_id, each in submitted.items() if call_id not in results]
        with anyio.CancelScope(shield=True), anyio.move_on_after(_SECONDS_TO_STOP):
            await _stop_calls(engine, running, journal)
        raise
    if failed:
        raise failed[0]
    return [results[ticket.call_id] for ticket in tickets]


async def _stop_calls(engine: Engine, running: Sequence[CallTicket], journal: RoundJournal) -> None:
    """Stop calls on an engine, and record what is known of them; what goes wrong is logged."""

    async def stop(ticket: CallTicket) -> None:
        result: ExecutionResult | None = None
        try:
            result = await engine.stop(ticket)
        except Exception as error:
            logger.warning("the call %s could not be stopped: %s", ticket.call_id, error)
        if result is None and ticket.effect == "once":
            result = lost(ticket, "The run was cancelled before the tool gave an answer.")
        try:
            if result is not None:
                await journal.end(ticket, result)
        except Exception as error:
            logger.warning("the call %s could not be recorded: %s", ticket.call_id, error)

    try:
        is_ours = await journal.is_held()
    except Exception as error:
        logger.warning("calls on the engine go on there: %s", error)
        return
    if is_ours:
        async with anyio.create_task_group() as group:
            for ticket in running:
                group.start_soon(stop, ticket)


async def _run_call(
    engine: Engine, ticket: CallTicket, journal: RoundJournal, submitted: dict[str, CallTicket]
) -> ExecutionResult:
    known = await journal.admit(ticket)
    if known is not None:
        return as_execution_result(known)
    # The engine is asked before the marker is written: one that can't be reached leaves no trace.
    is_once = ticket.effect == "once"
    is_new = is_once and not await engine.has(ticket)
    if is_new and not await journal.mark(ticket):
        result = lost(ticket, "The engine that should have run the tool knows nothing of it.")
    else:
        if not is_once:
            await journal.count_again(ticket)
        submitted[ticket.call_id] = ticket
        result = await engine.run(ticket)
    await journal.end(ticket, result)
    return result


def lost(ticket: CallTicket, what: str) -> ExecutionResult:
    """The result of a call that gave none: `maybe_executed` for `once`, else `failed`; one whose
    result may be late is open (rule LR8).
    """
    if ticket.effect == "once" and ticket.late:
        return untold_promise(ticket)
    if ticket.effect == "once":
        return ExecutionResult(
            ticket.metadata, f"{what} The {UNKNOWN}", "error", outcome="maybe_executed", attempts=1
        )
    text = f"{what} It may have run; calling it again does no harm."
    return ExecutionResult(ticket.metadata, text, "error", outcome="failed", attempts=1)


def read_outcome(outcome: object, ticket: CallTicket) -> ExecutionResult:
    """The result that a worker gave as JSON; what is none counts as lost."""
    try:
        return as_execution_result(ToolResult.load(cast("Mapping[str, Any]", outcome), ticket))
    except (AttributeError, LookupError, TypeError, ValueError):
        return lost(ticket, "The worker that ran the tool gave no result that can be read.")


async def run_in_worker(
    data: Mapping[str, Any], tools: type[Toolset[Any]], dispatch: Dispatcher[Any]
) -> dict[str, JsonValue]:
    """Run the ticket of a dump, and give its outcome as JSON; a tool's `SystemExit` is one too.

    Each call has an executor of its own: how many run at once is the engine's business.
    """
    ticket = CallTicket.load(data)
    try:
        return await run_ticket(ticket, tools, dispatch)
    except (KeyboardInterrupt, SystemExit) as error:
        # A worker has other calls; it isn't ended by one tool.
        return lost(ticket, f"The tool ended with {type(error).__name__}.").dump()


def check_dispatch(tools: type[Toolset[Any]], dispatch: Dispatcher[Any]) -> None:
    """Raise `DeclarationError` or `TypeError` now, and not for each call, where they don't fit."""
    if not isinstance(dispatch, Dispatcher):
        raise TypeError(f"dispatch= takes a Dispatcher, not {type(dispatch).__name__}")
    if dispatch.toolset is not tools:
        raise TypeError(f"the dispatcher is for {dispatch.toolset!r}, not for {tools!r}")
    dispatch.close()


Work = Callable[[Mapping[str, Any]], Awaitable[dict[str, "JsonValue"]]]
"""What a worker does with the dump of a ticket."""
