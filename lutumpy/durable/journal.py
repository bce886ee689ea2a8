"""The journal of calls on a store: the rules P5 to P8 in one place, for every runner and engine."""

# What `begin` says of a call, in this order:
#
#   what the store has                          the answer
#   ------------------------------------------  ----------------------------------------------------
#   its result                                  that result
#   a marker of it without a result (`once`)    maybe_executed; recorded, so the call is unresolved
#   the same, of a tool that may be late        promised; recorded, so the call is open (LR8)
#   an equal `once` call that is open           rejected; the result is recorded (LR13)
#   an equal call that nobody has decided       rejected; the result is recorded
#   a marker of an equal call, likewise         rejected; the result is recorded
#   nothing, and its tool is `once`             the marker is inserted, then: it may be run
#   nothing else                                it may be run
#
# So a `once` call runs only in the moment after its marker was inserted, by whoever inserted it.
# Where an equal call of a late tool runs beside it, its result is waited for: nobody knows before
# whether that call will be open. Workers that are sent such calls can't wait for each other; there
# the second one is rejected (`equal_calls.py`).
#
# An engine that begins a call at most once by itself asks `known` and `mark` apart (`engines.py`):
# a marker without a result is then a reason to ask the engine, which may be running the call still.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio

from lutumpy import CallTicket, TakenOverError, ToolResult
from lutumpy.durable.attempts import count_try
from lutumpy.durable.equal_calls import EqualCalls
from lutumpy.durable.journal_home import JournalHome, WorkersConversation
from lutumpy.durable.late import UNKNOWN, untold_promise
from lutumpy.durable.questions import leg_record
from lutumpy.durable.store import SessionStore
from lutumpy.execution import Begun, ExecutionResult, UnresolvedCall
from lutumpy.tools import still_running_reason, written_text

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["StoreJournal", "is_unresolved", "record_name"]


class StoreJournal:
    """The journal of the calls of one round, on the store of its conversation.

    Args:
        conversation: The conversation, claimed by this process.
        tickets: The calls of the round, where they are known: one that an earlier process has begun
            is unresolved before anybody asks about it.
    """

    def __init__(self, conversation: JournalHome, tickets: Sequence[CallTicket] = ()) -> None:
        self._conversation = conversation
        self._left_over = [ticket for ticket in tickets if self.was_begun(ticket)]
        # Recorded results, by the names of their records; and `once` calls that were begun here and
        # have no result.
        self._results: dict[str, ToolResult] = {}
        self._running: dict[str, CallTicket] = {}
        # Calls of this round that are open.
        self._promised: list[CallTicket] = [
            ticket for ticket in tickets if self._is_promised(ticket)
        ]
        # Late `once` calls that are begun here and have no result yet, by id, each with what is set
        # when it has.
        self._starting: dict[str, tuple[CallTicket, anyio.Event]] = {}
        # In a worker: the places of equal calls, of which this journal doesn't know.
        self._equal: EqualCalls | None = None
        if isinstance(conversation, WorkersConversation):
            self._equal = EqualCalls(conversation)
        # Results that are known, whether or not they could be recorded.
        self._known: dict[str, ToolResult] = {}

    async def begin(self, ticket: CallTicket) -> Begun | ToolResult:
        """Whether a call may be run now; see `CallJournal.begin`."""
        known = await (self._admit(ticket) if ticket.late else self.known(ticket))
        if known is not None:
            return known
        if self._equal is not None and _is_late_once(ticket):
            running = await self._equal.take_place(ticket)
            if running is not None:
                return await self._keep(ticket, _still_running(ticket, running))
        equal = self._find_left_over(ticket)
        if equal is not None:
            return await self._keep(ticket, _rejected(ticket, equal))
        if ticket.effect == "once":
            if not await self.mark(ticket):
                return await self._keep(ticket, _left_by_marker(ticket))
            # Of a late tool, the marker itself says that the call is open.
            if not ticket.late:
                self._running[ticket.call_id] = ticket
        else:
            await self.count_again(ticket)
        return Begun(f"claim {self._conversation.claim.fence}")

    async def known(self, ticket: CallTicket) -> ToolResult | None:
        """Why a call isn't run, if it isn't; see `RoundJournal.known`."""
        known = self.result_of(ticket)
        if known is not None:
            return known
        if self.was_begun(ticket):
            return None  # whatever became of an equal call, this one may have run (rule P7)
        running = self._find_open(ticket)
        if running is not None:
            return await self._keep(ticket, _still_running(ticket, running))
        equal = self._find_unresolved(ticket)
        if equal is not None:
            return await self._keep(ticket, _rejected(ticket, equal))
        return None

    async def admit(self, ticket: CallTicket) -> ToolResult | None:
        """As `known`, for who calls `end` in any case; see `RoundJournal.admit`."""
        for begun in self._left_over:
            # An earlier process has begun it; an engine may be running it still.
            if _is_late_once(begun) and self.result_of(begun) is None:
                self._starting.setdefault(begun.call_id, (begun, anyio.Event()))
        return await self._admit(ticket)

    async def _admit(self, ticket: CallTicket) -> ToolResult | None:
        if self._starting and not self.was_begun(ticket):
            await self._wait_for_equal(ticket)
        known = await self.known(ticket)
        if known is None and _is_late_once(ticket) and not self.was_begun(ticket):
            self._starting[ticket.call_id] = ticket, anyio.Event()
        return known

    async def _wait_for_equal(self, ticket: CallTicket) -> None:
        """Wait for the results of equal late calls that run beside this one (rule LR13)."""
        while True:
            running = [
                ended
                for other, ended in self._starting.values()
                if other.call_id != ticket.call_id and _are_equal(other, ticket)
            ]
            if not running:
                return
            await running[0].wait()

    def _is_promised(self, ticket: CallTicket) -> bool:
        value: Any = self._conversation.recorded(record_name(ticket))
        return isinstance(value, Mapping) and value.get("status") == "promised"

    def was_begun(self, ticket: CallTicket) -> bool:
        """Whether the call had a marker without a result when this process took over."""
        return record_name(ticket) in self._conversation.claim.begun

    def may_have_begun(self, ticket: CallTicket) -> bool:
        """Whether an earlier run may have begun the call: its round was taken up before."""
        return self.was_begun(ticket) or self._conversation.claim.attempts > 1

    async def mark(self, ticket: CallTicket) -> bool:
        """Insert the marker of a call; see `RoundJournal.mark`."""
        claim = self._conversation.claim
        return await self._conversation.store.begin(claim, record_name(ticket))

    async def count_again(self, ticket: CallTicket) -> None:
        """Count a call that is begun where a run of this round ended before; see `RoundJournal`."""
        home = self._conversation
        if home.claim.attempts > 1:
            await count_try(home.store, home.claim, record_name(ticket))

    async def is_held(self) -> bool:
        """Whether the conversation is still this process's; its lease is renewed then."""
        try:
            await self._conversation.store.renew(self._conversation.claim)
        except TakenOverError:
            return False
        return True

    def token(self) -> dict[str, JsonValue]:
        """What a worker in another process needs for `of_token`, as JSON values."""
        claim = self._conversation.claim
        return {"scope": claim.scope, "fence": claim.fence, "round": claim.round}

    @staticmethod
    def of_token(store: SessionStore, token: Mapping[str, Any]) -> StoreJournal:
        """The journal of a round, in a worker that the loop's process has sent a call to.

        It writes with the claim of that process: once another one has taken the conversation over,
        every write is a `TakenOverError`. It doesn't know what was recorded before, so the sender
        asks `known` first.

        Args:
            store: The store of the conversation.
            token: The `token()` of the loop's journal.

        Raises:
            ValueError: it isn't a token.
        """
        return StoreJournal(WorkersConversation(store, token))

    async def end(self, ticket: CallTicket, result: ExecutionResult) -> None:
        """Keep the result of a call; see `CallJournal.end`."""
        await self._keep(ticket, result)

    async def keep(self, ticket: CallTicket, result: ToolResult) -> ToolResult:
        """The recorded result of a call that a runner returned; recorded now, if it wasn't."""
        known = self.result_of(ticket)
        return await self._keep(ticket, result) if known is None else known

    def result_of(self, ticket: CallTicket) -> ToolResult | None:
        """The recorded result of a call; `None` where there is none."""
        known = self._results.get(record_name(ticket))
        if known is None:
            value = self._conversation.recorded(record_name(ticket))
            if value is None:
                return None
            known = self._results[record_name(ticket)] = _load(value, ticket)
        return known

    async def settle_running(self) -> None:
        """Record `maybe_executed` for every `once` call that was begun here and has no result.

        One whose result is known, and couldn't be recorded, gets that (rule P2).
        """
        for ticket in [*self._running.values()]:
            await self._keep(ticket, _maybe_executed(ticket, "The process that ran"))

    async def _keep(self, ticket: CallTicket, result: ToolResult) -> ToolResult:
        result = self._known.setdefault(record_name(ticket), result)
        value = result.dump()
        unresolved = UnresolvedCall.of(ticket.scope, ticket.metadata, ticket.equal_to)
        if is_unresolved(result):
            # The store keeps it beside the records, and has it from here.
            value["unresolved"] = unresolved.dump()
        recorded = await self._conversation.record(record_name(ticket), value)
        self._running.pop(ticket.call_id, None)
        kept: ToolResult = result if recorded == value else _load(recorded, ticket)
        self._results[record_name(ticket)] = kept
        if kept.status == "promised":
            self._promised.append(ticket)
        elif self._equal is not None:
            await self._equal.leave_place(ticket)
        if ticket.call_id in self._starting:
            _, ended = self._starting.pop(ticket.call_id)
            ended.set()
        if is_unresolved(kept):
            self._conversation.unresolved += (unresolved,)
        return kept

    def _find_left_over(self, ticket: CallTicket) -> UnresolvedCall | None:
        """An equal call of this round that an earlier process has begun, if this one wasn't."""
        if not self._left_over or self.was_begun(ticket):
            return None
        for begun in self._left_over:
            if _are_equal(begun, ticket) and self.result_of(begun) is None:
                return UnresolvedCall.of(begun.scope, begun.metadata, begun.equal_to)
        return None

    def _find_open(self, ticket: CallTicket) -> str | None:
        """The id of an equal `once` call that is open, in this round or an earlier one."""
        if ticket.effect != "once":
            return None
        for other in self._promised:
            if _are_equal(other, ticket):
                return other.call_id
        for call in self._conversation.open_calls:
            if call.name == ticket.tool and (
                written_text(call.metadata) == written_text(ticket.metadata)
            ):
                return call.call_id
        return None

    def _find_unresolved(self, ticket: CallTicket) -> UnresolvedCall | None:
        for call in self._conversation.unresolved:
            if (call.metadata.name, call.equal_to) == (ticket.tool, ticket.equal_to):
                return call
        return None


def _is_late_once(ticket: CallTicket) -> bool:
    return ticket.late and ticket.effect == "once"


def _are_equal(one: CallTicket, other: CallTicket) -> bool:
    return (one.tool, one.equal_to) == (other.tool, other.equal_to)


def is_unresolved(result: ToolResult) -> bool:
    """Whether nobody knows what became of the call."""
    return isinstance(result, ExecutionResult) and result.outcome == "maybe_executed"


def record_name(ticket: CallTicket) -> str:
    """The name of the record of a call."""
    return leg_record(ticket.call_id, ticket.leg)


def _load(value: JsonValue, ticket: CallTicket) -> ToolResult:
    return ToolResult.load(cast("Mapping[str, Any]", value), ticket)


def _rejected(ticket: CallTicket, known: UnresolvedCall) -> ExecutionResult:
    reason = (
        f"An equal call ({known.metadata.id}) may have taken effect already; its outcome is "
        "unknown. It is not run again until that is decided."
    )
    return ExecutionResult(
        ticket.metadata, f"Tool call rejected: {reason}", "rejected", reason, outcome="rejected"
    )


def _still_running(ticket: CallTicket, other: str) -> ExecutionResult:
    reason = still_running_reason(other)
    return ExecutionResult(
        ticket.metadata, f"Tool call rejected: {reason}", "rejected", reason, outcome="rejected"
    )


def _left_by_marker(ticket: CallTicket) -> ExecutionResult:
    """The result of a call that somebody has begun and whose marker is all there is."""
    if ticket.late:
        return untold_promise(ticket)
    return _maybe_executed(ticket, "The process that ran")


def _maybe_executed(ticket: CallTicket, who: str) -> ExecutionResult:
    text = f"{who} the tool ended before it gave an answer. The {UNKNOWN}"
    return ExecutionResult(ticket.metadata, text, "error", outcome="maybe_executed", attempts=1)
