"""How one run uses the journal: a ticket for each call, and the ends that a cancellation brings."""

# What is hard is a cancellation between the journal and the tool.
#
#   cancelled while           the call        what the journal is told
#   ------------------------  --------------  ---------------------------------------------------
#   `begin` is under way      isn't run; may  nothing. There may be a result in the journal, or a
#                             have run before marker, which whoever goes on reads as
#                                             `maybe_executed`. So the result here is that, too,
#                                             for a `once` call: the journal gave no answer
#   the tool runs             may have run    a `once` call ended, `maybe_executed`; any other is
#                                             left open, so that it is run again (rule P19)
#   `end` is under way        ran             `end` isn't interrupted: the result would be lost

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import anyio

from lutumpy import CallTicket, ToolResult
from lutumpy.execution.journal import Begun, CallJournal
from lutumpy.execution.report import CallReport
from lutumpy.execution.results import ExecutionResult, as_execution_result, runs_once
from lutumpy.hooks import BaseToolCall
from lutumpy.tools import NotPortable, call_arguments, make_ticket

__all__ = ["JournalUse"]

_PATIENCE = 10.0
"""Seconds that a run which is being cancelled waits for its journal."""


class JournalUse:
    """The journal of one run.

    Args:
        journal: The journal.
        scope: The scope of the run.
    """

    def __init__(self, journal: CallJournal, scope: str) -> None:
        self._journal = journal
        self._scope = scope
        self._tickets: dict[str, CallTicket] = {}
        # The calls that may be running: begun, and not ended.
        self._begun: dict[str, CallTicket] = {}

    def add(self, call: BaseToolCall, key: str) -> None:
        """Make the ticket of a call; before anything of the run begins.

        Raises:
            ValueError: its input doesn't survive JSON.
        """
        metadata = call.metadata
        try:
            self._tickets[metadata.id] = make_ticket(
                call, scope=self._scope, key=key, equal_to=call_arguments(call)
            )
        except NotPortable as error:
            raise NotPortable(
                f"the input of call {metadata.id!r} of {metadata.name!r} doesn't survive JSON, as "
                f"a journal needs it: {error}; nothing was run"
            ) from error

    def ticket_of(self, report: CallReport) -> CallTicket:
        """The ticket that the journal knows a call by."""
        return self._tickets[report.call_id]

    async def begin(self, report: CallReport) -> ExecutionResult | None:
        """Whether a call may be run: `None`, or what came of it before."""
        ticket = self._tickets[report.call_id]
        answer = await self._journal.begin(ticket)
        if isinstance(answer, Begun):
            self._begun[report.call_id] = ticket
            return None
        if isinstance(answer, ToolResult):
            return _as_execution_result(answer, report.call)
        raise TypeError(
            f"the journal's begin() gave {type(answer).__name__}, not Begun or a result; "
            f"call {report.call_id!r} of {report.tool!r} was not run"
        )

    async def end(self, report: CallReport, result: ExecutionResult) -> None:
        """Tell the journal what came of a call; a cancellation waits until it knows."""
        with anyio.CancelScope(shield=True):
            await self._journal.end(self._begun[report.call_id], result)
        del self._begun[report.call_id]

    async def end_cut(self, reports: Iterable[CallReport]) -> None:
        """Tell the journal of the `once` calls that were cut off while they ran."""
        with anyio.move_on_after(_PATIENCE, shield=True):
            for report in reports:
                ticket = self._begun.get(report.call_id)
                if ticket is None or report.started is None or report.result is None:
                    continue
                # Of a call whose result may come later, the marker says that it is open (LR8).
                if runs_once(report.call) and not report.call.selector.definition.options.late:
                    # A journal that fails has the marker of the call, which says the same; and
                    # what ends the run matters more.
                    with contextlib.suppress(Exception):
                        await self._journal.end(ticket, report.result)


def _as_execution_result(result: ToolResult, call: BaseToolCall) -> ExecutionResult:
    if result.status == "ok" and result.output is None:
        # A journal doesn't know the tools, but hooks on results want to see outputs.
        result = ToolResult.load(result.dump(), call)
    return as_execution_result(result)
