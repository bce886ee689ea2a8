"""The journal of calls: told before a call starts, and after it has ended (rules P5 to P7)."""

from __future__ import annotations

from typing import Protocol

from lutumpy import CallTicket, ToolResult
from lutumpy.execution.results import ExecutionResult
from lutumpy.plain.values import dataclass

__all__ = ["Begun", "CallJournal"]


@dataclass(frozen=True, slots=True)
class Begun:
    """The call may be run now.

    Attributes:
        owner: Who runs it, for people who look into the journal.
    """

    owner: str


class CallJournal(Protocol):
    """Told before a call starts and after it has ended.

    Methods may be called for several calls at once.
    """

    async def begin(self, ticket: CallTicket) -> Begun | ToolResult:
        """Whether a call may be run now.

        Returns:
            `Begun`: it may. A result: it may not, since this came of it before: `maybe_executed`
            where a call of a tool with the effect `once` was begun by somebody and has no result.

        Raises:
            TakenOverError: this process lost the conversation. The call must not be run.
        """
        ...

    async def end(self, ticket: CallTicket, result: ExecutionResult) -> None:
        """Keep the result of a call; it is durable when this returns.

        Raises:
            TakenOverError: this process lost the conversation; the result is not used.
        """
        ...
