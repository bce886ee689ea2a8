"""Who runs calls: in this process, or on an engine's workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lutumpy import CallTicket
from lutumpy.execution import CallJournal, ExecutionResult

__all__ = ["CallRunner"]


class CallRunner(Protocol):
    """Runs the calls of tickets, wherever that is."""

    async def run(
        self, tickets: Sequence[CallTicket], journal: CallJournal
    ) -> Sequence[ExecutionResult]:
        """One result for each ticket, in order.

        `journal.begin` is asked before a call starts, and `journal.end` told what came of it. A
        runner whose engine already guarantees that a call begins at most once doesn't call `begin`.
        """
        ...
