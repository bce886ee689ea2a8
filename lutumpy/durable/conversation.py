"""A conversation that was claimed: what this process knows of it, and how it writes to it."""

# The session in memory runs ahead of the store: a round is added to it first, and the next commit
# writes whatever it has beyond the store. The same transaction takes entries of the inbox, so that
# the model is told of each once:
#
#   entry              what becomes of it
#   -----------------  ----------------------------------------------------------------------------
#   message            the user's next message: a new task begins
#   late result        a late item where its call is open; else it is dropped, and resolves its call
#                      if that was given up
#   notice             a message of what became of a call; behind an answer it waits for a message
#   decision, answer   it is in the results of the open round
#
# A `once` call that is given up gets a record of that before the commit. So if the run ends in
# between, the next one doesn't wait for the call again.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy import Session, TakenOverError, ToolResult, Usage
from lutumpy.durable.delivery_spans import DeliverySpans
from lutumpy.durable.late import LateReader, expired_result, is_late, late_id, store_now
from lutumpy.durable.lost_costs import COST, count_lost, dump_lost
from lutumpy.durable.patience import record_patiently
from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim, Counts, InboxEntry, Status, is_answer
from lutumpy.errors import StoreError
from lutumpy.execution import UnresolvedCall
from lutumpy.loops import LoopCounts
from lutumpy.models import Message, PromisedCall, load_item
from lutumpy.plain import json_values

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["OpenConversation", "load_message"]

logger: logging.Logger = logging.getLogger("lutumpy.durable")


# The records that name the spans of a round, each with the fence of the claim that wrote it.
TRACE = "trace:"


class OpenConversation:
    """What one run of the loop holds of a conversation.

    The session here is a copy of what is committed, plus what this process is about to commit. It
    is dropped when anything goes wrong: the next run loads a new one from the store.

    Attributes:
        store: Where it is kept.
        claim: What every write names; that of the open round.
        session: The conversation.
        unresolved: The calls whose outcome is not known and that nobody has decided.
        answer_usage: What the answer of the open round has cost, once it is recorded or about to
            be: no run has to pay for it again.
    """

    def __init__(self, store: SessionStore, claim: Claim) -> None:
        self.store: SessionStore = store
        self.session: Session = Session.build(claim.items, claim.state)
        count_lost(self.session, claim.records)
        self._note_costs()
        self._cost_at_loop: int = self.session.usage.total_tokens
        # The items are in the session now.
        self.claim: Claim = replace(claim, items=(), state={})
        self.unresolved: tuple[UnresolvedCall, ...] = claim.unresolved
        # What people have answered to servers that asked in the middle of calls of the open round.
        self.answers: tuple[InboxEntry, ...] = tuple(filter(is_answer, claim.inbox))
        self._records: dict[str, JsonValue] = dict(claim.records)
        # Called with messages before a commit takes them.
        self.before_taking: Callable[[Sequence[InboxEntry]], Awaitable[None]] | None = None
        # Called with late results, each with its reason, before a commit takes them.
        self.before_late: Callable[[Sequence[tuple[ToolResult, str]]], Awaitable[None]] | None = (
            None
        )
        # Makes the spans of late results, where a loop has telemetry.
        self.delivery_spans: DeliverySpans | None = None
        # The ids of open calls that their servers don't know any more; a loop that polls sets it.
        self.lost: frozenset[str] = frozenset()
        # What makes items of late results; a loop sets it.
        self.late: LateReader | None = None
        # The ids of entries of the inbox whose news is in results of the open round: its commit
        # takes them.
        self._reported_by_results: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """The conversation's id."""
        return self.claim.scope

    @property
    def open_calls(self) -> tuple[PromisedCall, ...]:
        """The calls of committed rounds whose results are still to come."""
        return self.session.transcript.open_calls

    @property
    def is_answered(self) -> bool:
        """Whether the model has nothing to answer now: it has answered, or only open calls are left
        (rule LR6).
        """
        return self.session.answered or self.session.transcript.waits

    @property
    def has_open_round(self) -> bool:
        """Whether the answer of the model is recorded, and not committed."""
        return "turn" in self._records or "plan" in self._records

    def recorded(self, name: str) -> JsonValue:
        """A record of the open round; `None` where there is none."""
        return self._records.get(name)

    def recorded_trace(self) -> Mapping[str, str] | None:
        """Where the spans of the open round are, as the last process that planned it had them."""
        found: Mapping[str, str] | None = None
        latest = -1
        for name, value in self._records.items():
            fence = name.removeprefix(TRACE)
            if fence != name and int(fence) > latest and isinstance(value, Mapping):
                latest = int(fence)
                found = {key: str(each) for key, each in value.items()}
        return found

    async def record_trace(self, carrier: Mapping[str, str]) -> None:
        """Write down where the spans of this process are, for a process that goes on."""
        if carrier:
            await self.record(f"{TRACE}{self.claim.fence}", dict(carrier))

    async def record(self, name: str, value: Any) -> JsonValue:
        """Write a record of the open round, and return the recorded value (rules P1, P2)."""
        recorded = await record_patiently(self.store, self.claim, name, value)
        self._records[name] = recorded
        return recorded

    async def record_own(self, name: str, value: Any) -> None:
        """Write a record that nobody else may have written.

        Raises:
            TakenOverError: somebody has, with another value.
        """
        recorded = await self.record(name, value)
        if recorded is not value and not json_values.equal(recorded, value):
            raise TakenOverError(
                f"another process has recorded another {name} of round {self.claim.round} of "
                f"{self.scope!r}; what this one had is not used"
            )

    async def record_costs(self) -> None:
        """Write down what this run has paid for answers that the store doesn't have."""
        session = self.session
        lost = dump_lost(
            session.usage - self._usage_known - self.answer_usage,
            session.unsettled[self._unsettled_known :],
        )
        if lost is None:
            return
        number = sum(name.startswith(COST) for name in self._records)
        name = f"{COST}{self.claim.fence}:{number}"
        self._records[name] = await self.store.record(self.claim, name, lost)
        self._note_costs()

    def _note_costs(self) -> None:
        """Take what the session has cost so far for what the store knows."""
        self._usage_known: Usage = self.session.usage
        self._unsettled_known: int = len(self.session.unsettled)
        self.answer_usage: Usage = Usage()

    def loop_counts(self) -> LoopCounts:
        """What a loop that begins now goes on counting from (rule P17)."""
        self._cost_at_loop = self.session.usage.total_tokens
        counts = self.claim.counts
        failures = {(tool, arguments): count for tool, arguments, count in counts.failures}
        spent = self._cost_at_loop - counts.tokens
        return LoopCounts(counts.rounds, spent, failures, counts.value_retries)

    def loop_counts_of_new_task(self) -> LoopCounts:
        """As `loop_counts`, for a loop that was running when the user's message came."""
        return LoopCounts(0, self._cost_at_loop - self.session.usage.total_tokens, {})

    async def commit_round(self, counted: LoopCounts) -> bool:
        """Commit what the session has beyond the store, with the messages that wait (rule P3).

        Returns:
            Whether there were messages: they begin a new task.
        """
        failures = [(*key, count) for key, count in counted.failures.items()]
        counts = replace(
            self.claim.counts,
            rounds=counted.rounds,
            failures=tuple(failures),
            value_retries=counted.value_retries,
        )
        reported = self._reported_by_results
        # A notice whose news is in a result waits as well, so this commit may write nothing because
        # of it; the second one takes it.
        waiting = await self._commit(counts, "open", reported, unless_messages=True)
        if not waiting:
            return False
        entries, dropped = await self._drop_late(waiting)
        is_new_task = any(is_message(entry) for entry in entries)
        if is_new_task:
            counts = self._new_counts()
            await self._tell_messages(entries)
        taken = await self._add_entries(entries)
        await self._commit(counts, "open", [*reported, *dropped, *taken])
        return is_new_task

    async def commit_answer(self, status: Status) -> None:
        """Commit a finished answer. The counts for limits stay until the user says something."""
        await self._commit(self.claim.counts, status, ())

    async def commit_retry(self, counted: LoopCounts) -> None:
        """Commit an answer without a valid value, and the reply that asks for one; the task goes
        on.
        """
        counts = replace(self.claim.counts, value_retries=counted.value_retries)
        await self._commit(counts, "open", ())

    async def take_messages(self, inbox: Sequence[InboxEntry]) -> bool:
        """Commit the messages that wait, where no round is open, and tell whether anything was
        taken.

        Notices are taken with messages. By themselves they begin no task: those that come behind an
        answer wait for the user's next message. They also wait where nothing else came but late
        results that no call waits for: nobody has to be told of those.
        """
        expired = self._expired(inbox) if self.open_calls else []
        inbox, dropped = await self._drop_late(inbox, expired)
        is_new_task = any(is_message(entry) for entry in inbox)
        has_late = bool(expired) or any(is_late(entry) for entry in inbox)
        if not is_new_task and not has_late and self.is_answered:
            if not dropped:
                return False
            inbox = ()
        counts = self._new_counts() if is_new_task else self.claim.counts
        await self._tell_messages(inbox)
        taken = [*dropped, *await self._add_entries(inbox, expired)]
        if taken or expired:
            await self._commit(counts, "open", taken)
        return bool(taken)

    def _expired(self, inbox: Sequence[InboxEntry]) -> list[PromisedCall]:
        """The open calls that are given up now: nothing has come and their time is over, or an
        earlier run gave them up and ended before its commit.
        """
        now, came = store_now(self.claim), {entry.id for entry in inbox}

        def is_over(call: PromisedCall) -> bool:
            if self.recorded(_given_up_record(call)) is not None:
                return True
            if late_id(call.call_id) in came:
                return False
            until = call.promise.until
            return call.call_id in self.lost or (until is not None and until <= now)

        return [call for call in self.open_calls if is_over(call)]

    async def notices_with_outputs(self) -> dict[str, InboxEntry]:
        """The notices in which people say what calls of the open round gave, by call id."""
        inbox = await self.store.inbox(self.scope)
        return {
            str(entry.value["call_id"]): entry
            for entry in inbox
            if is_notice(entry)
            and entry.value["round"] == self.claim.round
            and entry.value["output"] is not None
        }

    def tell_by_result(self, notice: InboxEntry) -> None:
        """Let the commit of the round take a notice, since the result of its call says the same."""
        self._reported_by_results += (notice.id,)

    def _new_counts(self) -> Counts:
        return Counts(0, self.session.usage.total_tokens)

    async def _tell_messages(self, inbox: Sequence[InboxEntry]) -> None:
        messages = [entry for entry in inbox if is_message(entry)]
        if messages and self.before_taking is not None:
            await self.before_taking(messages)

    async def _add_entries(
        self, inbox: Sequence[InboxEntry], expired: Sequence[PromisedCall] = ()
    ) -> list[str]:
        """Add the late results, messages and notices of the inbox to the session, and give the ids
        of their entries.

        Late results come first: the calls that they answer were made before all messages.
        """
        transcript = self.session.transcript
        late = [entry for entry in inbox if is_late(entry)]
        if late or expired:
            assert self.late is not None
            items, reported = await self.late.items(self.session, late, expired)
            if self.before_late is not None:
                await self.before_late(reported)
            if self.delivery_spans is not None:
                self.delivery_spans.note_taken([result for result, _ in reported], late)
            for call in expired:
                await self._note_expired(call)
            transcript.append_late(items)
        taken = [entry for entry in inbox if is_message(entry) or is_notice(entry)]
        for entry in taken:
            value: Any = entry.value["message"] if is_notice(entry) else entry.value
            transcript.append(load_message(value))
        return [entry.id for entry in (*late, *taken)]

    async def _note_expired(self, call: PromisedCall) -> None:
        """Record a `once` call that is given up as unresolved: it may have run (rule LR12)."""
        assert self.late is not None
        if self.late.effect_of(call.name) != "once":
            return
        unresolved = self.late.unresolved(self.scope, call)
        value = expired_result(call, "once").dump()
        value["unresolved"] = unresolved.dump()
        await self.record(_given_up_record(call), value)
        self.unresolved += (unresolved,)

    async def _drop_late(
        self, inbox: Sequence[InboxEntry], expired: Sequence[PromisedCall] = ()
    ) -> tuple[Sequence[InboxEntry], list[str]]:
        """Drop the late results that no call waits for.

        One that belongs to a call that was given up resolves it: the inbox then holds a notice.

        Returns:
            The entries of the inbox that are to be added, and the ids of the dropped ones, for a
            commit to take.
        """
        reported = self._reported_by_results
        late = [entry for entry in inbox if is_late(entry) and entry.id not in reported]
        calls = {call.call_id for call in self.open_calls} if late else set()
        awaited = {late_id(call_id) for call_id in calls - {call.call_id for call in expired}}
        dropped = [entry.id for entry in late if entry.id not in awaited]
        resolved = [entry for entry in late if entry.id in dropped and await self._let_go(entry)]
        if resolved:
            inbox = await self.store.inbox(self.scope)
        return [
            entry
            for entry in inbox
            if entry.id not in reported and (not is_late(entry) or entry.id in awaited)
        ], dropped

    async def _let_go(self, entry: InboxEntry) -> bool:
        """Log a late result that no call waits for, and resolve its call by it where that was given
        up; whether it did (rule LR12).
        """
        call_id = str(entry.value["call_id"])
        logger.warning("a late result of %s in %s: no such call is open", call_id, self.scope)
        unknown = [call for call in self.unresolved if call.metadata.id == call_id]
        # A store of the user's own may lack the method; the call stays unresolved then.
        resolve_late = getattr(self.store, "resolve_late", None)
        if not unknown or self.late is None or resolve_late is None:
            return False
        result = await self.late.outcome(unknown[0], entry)
        if result is None:
            return False
        try:
            await resolve_late(self.scope, call_id, result.dump())
        except StoreError:  # somebody has said so before
            return False
        return True

    async def _commit(
        self,
        counts: Counts,
        status: Status,
        taken: Sequence[str],
        *,
        unless_messages: bool = False,
    ) -> tuple[InboxEntry, ...]:
        """Commit; or with `unless_messages`, write nothing where messages wait, and give these."""
        claim, session = self.claim, self.session
        items, head = session.items_since(claim.head), session.head
        waiting = await self.store.commit(
            claim,
            claim.head,
            items,
            head,
            session.state(),
            counts,
            status=status,
            taken=taken,
            unless_messages=unless_messages,
        )
        if waiting:
            return waiting
        # Stores count tasks and rounds in the same way.
        is_new_task = any(entry_id.startswith("message:") for entry_id in taken)
        self.claim = replace(
            claim,
            round=claim.round + 1,
            head=head,
            counts=counts,
            records={},
            begun=frozenset(),
            inbox=(),
            task=claim.task + is_new_task,
            task_round=0 if is_new_task else claim.task_round + 1,
            attempts=min(claim.attempts, 1),
            last_error=None,
            tries={},
        )
        self._records = {}
        self._reported_by_results = ()
        self._note_costs()
        if self.unresolved:
            await self._look_at_unresolved()
        return ()

    async def _look_at_unresolved(self) -> None:
        """Forget the unresolved calls that somebody has resolved in the meantime.

        Equals of those that happened are refused until the model is told, that is, as long as their
        notices wait. The inbox is read last: so no call is missed that is resolved in between.
        """
        unknown = await self.store.unresolved(self.scope)
        inbox = await self.store.inbox(self.scope)
        reported_later = {str(entry.value["call_id"]) for entry in inbox if is_notice(entry)}
        happened = [call for call in self.unresolved if call.metadata.id in reported_later]
        self.unresolved = (*unknown, *[call for call in happened if call not in unknown])


def _given_up_record(call: PromisedCall) -> str:
    """The name of the record that a call of a committed round was given up. It is kept until a
    commit has the late item that says so.
    """
    return f"call:{call.call_id}"


def is_message(entry: InboxEntry) -> bool:
    """Whether an entry is a message that nobody has taken."""
    return entry.kind == "message" and not entry.taken


def is_notice(entry: InboxEntry) -> bool:
    """Whether an entry says what became of a call, and the model wasn't told yet."""
    return entry.kind == "notice" and not entry.taken


def load_message(value: Mapping[str, Any]) -> Message:
    """The message of an entry of the inbox."""
    message = load_item(value)
    assert isinstance(message, Message)  # a store takes nothing else
    return message
