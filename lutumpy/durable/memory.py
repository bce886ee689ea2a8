"""A store in memory, for tests and examples: it keeps the protocol, and nothing else."""

# Every method does its work without awaiting anything, under a lock: so it is one transaction, for
# tasks and for threads. Values go through JSON, as they would on their way to a database.

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio

from lutumpy import Session
from lutumpy.durable.checks import (
    check_decision,
    check_lease,
    check_resolution,
    decision_id,
    dump_message,
    first_status,
    has_come,
    has_request,
    held_in,
    make_late_notice,
    make_notice,
    notice_id,
)
from lutumpy.durable.envelopes import marker_of, open_envelope
from lutumpy.durable.lost_costs import count_lost
from lutumpy.durable.memory_operators import MemoryOperators
from lutumpy.durable.memory_state import (
    Conversation,
    UnresolvedHere,
    copy_of,
    is_at_end,
    lease_of,
    now,
    open_plan,
    tell,
    undecided_in,
    unresolved_of,
)
from lutumpy.durable.operations import DIED
from lutumpy.durable.questions import AskedCall, answer_id, answer_value, asked_calls
from lutumpy.durable.refusals import exists, no_plan, no_round, not_unresolved, taken_over
from lutumpy.durable.shown import decided_event
from lutumpy.durable.types import Claim, Counts, InboxEntry, Status, StoredEvent, Taken
from lutumpy.errors import StoreError
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head, Message

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["MemoryStore"]

_SECONDS_BETWEEN_LOOKS = 0.01
OF_PLAN = ("decision", "answer")  # they are about the open plan, and over with it


class MemoryStore(MemoryOperators):
    """Conversations in this process: gone with it. For tests and examples, not for production."""

    # --- conversations -----------------------------------------------------------------------

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None:
        """See `SessionStore.create`."""
        counts = Counts(0, session.usage.total_tokens)
        items = [copy_of(item) for item in session.items_since(Session().head)]
        created = Conversation(items, copy_of(session.state()), session.head, counts, now())
        with self._lock:
            if scope not in self._conversations:
                created.fence = self._fence
                created.task = 1 if has_request(session) else 0
                created.status = first_status(created.task)
                created.keep_round(())
                self._conversations[scope] = created
            elif not exist_ok:
                raise exists(scope)

    async def session(self, scope: str) -> Session:
        """See `SessionStore.session`."""
        with self._lock:
            found = self._find(scope)
            items, state = [*found.items], found.state
            records = found.records_of_round()
        session = Session.build(items, state)
        count_lost(session, records)
        return session

    async def delete(self, scope: str) -> None:
        """See `SessionStore.delete`."""
        with self._lock:
            self._fence = max(self._fence, self._find(scope).fence + 1)
            del self._conversations[scope]

    # --- claims ------------------------------------------------------------------------------

    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        """See `SessionStore.claim`."""
        check_lease(lease)
        with self._lock:
            found = self._find(scope)
            until = lease_of(found)
            if until is not None:
                return Taken(until)
            if found.lease_until is not None:
                found.last_error = DIED
            found.fence += 1
            found.attempts += 1
            found.lease_until, found.lease = now() + timedelta(seconds=lease), lease
            of_round = found.records_of_round()
            begun = {name for n, name in found.begun if n == found.round}
            return Claim(
                scope,
                found.fence,
                lease,
                found.lease_until,
                tuple(found.items),
                found.state,
                found.head,
                found.round,
                found.counts,
                copy_of(of_round),
                frozenset(begun - of_round.keys()),
                self._inbox_of(found),
                unresolved_of(found),
                found.attempts,
                found.last_error,
                dict(found.tries),
                found.task,
                found.task_round,
            )

    async def renew(self, claim: Claim) -> None:
        """See `SessionStore.renew`."""
        with self._lock:
            found = self._check(claim)
            found.lease_until, found.lease = now() + timedelta(seconds=claim.lease), claim.lease

    async def release(self, claim: Claim, *, status: Status | None = None) -> None:
        """See `SessionStore.release`."""
        with self._lock:
            found = self._conversations.get(claim.scope)
            if found is not None and found.fence == claim.fence:
                found.lease_until = None
                looked_at = {entry.id for entry in claim.inbox}
                came = has_come(status, looked_at, self._inbox_of(found))
                found.set_status("open" if came else status)
                if status is None:
                    found.attempts = max(found.attempts - 1, 0)
                else:
                    found.attempts, found.last_error = 0, None

    # --- the open round ----------------------------------------------------------------------

    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        """See `SessionStore.record`."""
        copied = copy_of(value)
        with self._lock:
            found = self._check(claim)
            key = claim.round, name
            if key not in found.records:
                found.records[key] = copied
                self._note(found, claim, name, copied)
                return value
            recorded: JsonValue = copy_of(found.records[key])
            return recorded

    async def begin(self, claim: Claim, name: str) -> bool:
        """See `SessionStore.begin`."""
        with self._lock:
            found = self._check(claim)
            key = claim.round, name
            if key in found.begun or key in found.records:
                return False
            found.begun.add(key)
            return True

    async def commit(
        self,
        claim: Claim,
        before: Head,
        items: Sequence[Mapping[str, Any]],
        after: Head,
        state: Mapping[str, Any],
        counts: Counts,
        *,
        status: Status = "open",
        taken: Sequence[str] = (),
        unless_messages: bool = False,
    ) -> tuple[InboxEntry, ...]:
        """See `SessionStore.commit`."""
        copied, state = [copy_of(item) for item in items], copy_of(state)
        with self._lock:
            found = self._check(claim)
            if found.head != before:
                raise StoreError(
                    "head",
                    f"{claim.scope!r} is at {found.head.items} items, not at {before.items}; "
                    "nothing was written",
                )
            if unless_messages:
                waiting = [entry for entry in self._inbox_of(found) if entry.kind not in OF_PLAN]
                if waiting:
                    return tuple(waiting)
            effects = found.effects()
            found.items += copied
            found.head, found.state, found.counts = after, state, counts
            found.updated = now()
            came = status == "done" and has_come(status, taken, self._inbox_of(found))
            found.set_status("open" if came else status)
            found.attempts, found.last_error, found.tries = 1, None, {}
            if any(entry_id.startswith("message:") for entry_id in taken):
                found.task, found.task_round = found.task + 1, 0
            else:
                found.task_round += 1
            # The plan is over, and so are decisions and answers.
            found.inbox = [
                replace(entry, taken=True) if entry.id in taken or entry.kind in OF_PLAN else entry
                for entry in found.inbox
            ]
            found.unresolved = {
                key: each
                for key, each in found.unresolved.items()
                if not (each.happened and notice_id(*key) in taken)
            }
            found.round += 1
            found.first_of_round = found.next_event
            found.waiting_since = None
            found.records, found.begun = {}, set()
            found.keep_round(effects)
        return ()

    # --- what comes from outside -------------------------------------------------------------

    async def push(
        self, scope: str, item: Mapping[str, Any] | Message | str, *, idempotency_key: str
    ) -> None:
        """See `SessionStore.push`."""
        value = copy_of(dump_message(item))
        with self._lock:
            found = self._find(scope)
            entry_id = f"message:{idempotency_key}"
            if all(entry.id != entry_id for entry in found.inbox):
                found.add_entry(InboxEntry(entry_id, "message", value))
                if found.status == "done":
                    found.set_status("open")

    async def deliver(self, scope: str, call_id: str, value: Mapping[str, Any]) -> bool:
        """See `LateStore.deliver`."""
        copied = copy_of(value)
        with self._lock:
            found = self._find(scope)
            entry_id = f"late:{call_id}"
            if any(entry.id == entry_id for entry in found.inbox):
                return False
            found.add_entry(InboxEntry(entry_id, "late", copied))
            if found.status in ("done", "waiting"):
                found.set_status("open")
            return True

    async def asked(self, scope: str) -> tuple[AskedCall, ...]:
        """See `QuestionStore.asked`."""
        with self._lock:
            found = self._find(scope)
            return asked_calls(copy_of(found.records_of_round()), self._inbox_of(found))

    async def answer(
        self, scope: str, call_id: str, leg: int, answers: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """See `QuestionStore.answer`."""
        with self._lock:
            found = self._find(scope)
            plan = open_plan(found)
            if plan is None:
                raise no_round(scope)
            digest, taken = str(plan["digest"]), True
            for key, answer in answers.items():
                entry_id = answer_id(digest, call_id, leg, key)
                if any(entry.id == entry_id for entry in found.inbox):
                    taken = False
                    continue
                value = copy_of(answer_value(digest, call_id, leg, key, answer, by))
                found.add_entry(InboxEntry(entry_id, "answer", value))
            if found.status in ("done", "waiting"):
                found.set_status("open")
            return taken

    async def inbox(self, scope: str) -> tuple[InboxEntry, ...]:
        """See `SessionStore.inbox`."""
        with self._lock:
            return self._inbox_of(self._find(scope))

    async def decide(
        self, scope: str, plan_digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """See `SessionStore.decide`."""
        with self._lock:
            found = self._find(scope)
            plan = open_plan(found)
            if plan is None or plan["digest"] != plan_digest:
                raise no_plan(plan_digest, scope)
            held = held_in(plan)
            for call_id, decision in decisions.items():
                check_decision(call_id, decision, held)
            taken = True
            for call_id, decision in decisions.items():
                entry_id = decision_id(plan_digest, call_id)
                if any(entry.id == entry_id for entry in found.inbox):
                    taken = False
                    continue
                value = {"plan": plan_digest, "call_id": call_id, "decision": decision, "by": by}
                found.add_entry(InboxEntry(entry_id, "decision", copy_of(value)))
                if (found.round, marker_of(f"CallHeld:{call_id}")) in found.begun:
                    found.add_event(decided_event(plan, call_id, cast("Any", decision), by), None)
            if not undecided_in(found, plan):
                found.waiting_since = None
                if found.status in ("done", "waiting"):
                    found.set_status("open")
            return taken

    async def resolve(
        self,
        scope: str,
        call_id: str,
        decision: Literal["happened", "did_not_happen"],
        *,
        by: str,
        output: JsonValue = None,
    ) -> None:
        """See `OperatorStore.resolve`."""
        check_resolution(decision, output)
        with self._lock:
            found, key = self._find_unresolved(scope, call_id)
            known = found.unresolved[key]
            if decision == "happened":
                tell(found, key, make_notice(known.call, known.round, output, by))
            else:
                del found.unresolved[key]

    async def resolve_late(self, scope: str, call_id: str, result: Mapping[str, Any]) -> None:
        """See `LateStore.resolve_late`."""
        with self._lock:
            found, key = self._find_unresolved(scope, call_id)
            known = found.unresolved[key]
            tell(found, key, make_late_notice(known.call, known.round, result))

    # --- events ------------------------------------------------------------------------------

    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None:
        """See `SessionStore.add_events`."""
        copied = [copy_of(event) for event in events]
        with self._lock:
            found = self._check(claim)
            if drop_deltas:
                found.events = [
                    event
                    for event in found.events
                    if event.seq < found.first_of_round or not event.event.get("delta")
                ]
            inbox = {entry.id for entry in self._inbox_of(found)}
            for envelope in map(open_envelope, copied):
                if not inbox.isdisjoint(envelope.unless):
                    continue
                markers = {(claim.round, marker) for marker in envelope.once}
                if not markers or not markers <= found.begun:
                    found.add_event(envelope.event, envelope.place)
                found.begun |= markers
                if envelope.status is not None:
                    found.set_status(envelope.status)

    async def last_event(self, scope: str) -> int:
        """See `OperatorStore.last_event`."""
        with self._lock:
            return self._find(scope).next_event - 1

    async def events(
        self, scope: str, *, after: int = 0, until: Literal["end"] | None = None
    ) -> AsyncIterator[StoredEvent]:
        """See `OperatorStore.events`."""
        while True:
            with self._lock:
                found = self._find(scope)
                new = [event for event in found.events if event.seq > after]
                is_end = not new and is_at_end(found)
            for event in new:
                yield event
                after = event.seq
            if is_end and until:
                return
            await anyio.sleep(_SECONDS_BETWEEN_LOOKS)

    # --- inside ------------------------------------------------------------------------------

    def _check(self, claim: Claim) -> Conversation:
        """The conversation, if the claim is still the last one (rule P4)."""
        found = self._find(claim.scope)
        if found.fence != claim.fence:
            raise taken_over(claim, found.fence)
        found.updated = now()
        return found

    def _find_unresolved(self, scope: str, call_id: str) -> tuple[Conversation, tuple[int, str]]:
        """A conversation, and the round and id of its call whose outcome isn't known."""
        found = self._find(scope)
        keys = [
            key
            for key, each in sorted(found.unresolved.items())
            if key[1] == call_id and not each.happened
        ]
        if not keys:
            raise not_unresolved(call_id, scope)
        return found, keys[0]

    def _note(self, found: Conversation, claim: Claim, name: str, value: Any) -> None:
        """Keep what follows from a new record."""
        if name == "plan" and held_in(value):
            found.waiting_since = now()
        if name.startswith(("call:", "leg:")) and value.get("outcome") == "maybe_executed":
            call = UnresolvedCall.load(value["unresolved"])
            key = claim.round, call.metadata.id
            found.unresolved.setdefault(key, UnresolvedHere(call, claim.round))

    def _inbox_of(self, found: Conversation) -> tuple[InboxEntry, ...]:
        plan = open_plan(found)
        digest = None if plan is None else plan["digest"]
        return tuple(
            [
                entry
                for entry in found.inbox
                if not entry.taken and (entry.kind not in OF_PLAN or entry.value["plan"] == digest)
            ]
        )
