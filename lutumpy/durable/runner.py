"""Who runs calls: in this process, or on an engine's workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lutumpy import CallTicket, ToolResult
from lutumpy.execution import CallJournal

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["CallRunner", "RoundJournal"]


class RoundJournal(CallJournal, Protocol):
    """The journal that a runner receives: that of the calls of one round of a conversation.

    `begin` is `admit` and `mark` in one, for who runs a call right then. The two are for an engine
    that begins a call at most once by itself, and can be asked later what became of it.
    """

    async def known(self, ticket: CallTicket) -> ToolResult | None:
        """Why a call isn't run: its recorded result, or the refusal of a call that is equal to an
        unresolved one. `None` where it may be run.

        Raises:
            TakenOverError: this process lost the conversation.
        """
        ...

    async def admit(self, ticket: CallTicket) -> ToolResult | None:
        """As `known`, for a runner that calls `end` with whatever comes of the call: until then
        equal calls of a late `once` tool wait here, since nobody knows whether it will be open.

        Raises:
            TakenOverError: this process lost the conversation.
        """
        ...

    async def mark(self, ticket: CallTicket) -> bool:
        """Insert the marker of a call before it is submitted to an engine; `False` where it exists.

        A marker that exists belongs to a call that was submitted to an engine, or has begun.
        If the engine doesn't know it, its outcome is `maybe_executed`.

        Raises:
            TakenOverError: this process lost the conversation. The call must not be run.
        """
        ...

    async def count_again(self, ticket: CallTicket) -> None:
        """Count that a call is begun, where an earlier run of its round didn't come to an end.

        `begin` does so by itself. The counts tell which call a `Stuck` conversation is stuck at.
        """
        ...

    async def is_held(self) -> bool:
        """Whether the conversation is still this process's."""
        ...

    def token(self) -> dict[str, JsonValue]:
        """What a worker needs to write to this journal; see `StoreJournal.of_token`."""
        ...


class CallRunner(Protocol):
    """Runs the calls of tickets, wherever that is."""

    async def run(
        self, tickets: Sequence[CallTicket], journal: RoundJournal
    ) -> Sequence[ToolResult]:
        """One result for each ticket, in order; `ToolResult.load` reads what a worker gave as JSON.

        `journal.begin` is asked before a call starts, and `journal.end` gets its result. A
        runner whose engine already guarantees that a call begins at most once asks `known` and
        `mark` instead. Results that the journal doesn't have are recorded by the loop.
        """
        ...
