"""A store in memory, for tests and examples: it keeps the protocol, and nothing else."""

# Every method does its work without awaiting anything, under a lock: so it is one transaction, for
# tasks and for threads. Values go through JSON, as they would on their way to a database.

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal

import anyio

from lutumpy import Session, TakenOverError
from lutumpy.durable.checks import (
    check_decision,
    check_resolution,
    dump_message,
    held_in,
    make_notice,
    notice_id,
)
from lutumpy.durable.types import (
    Claim,
    Counts,
    HeldPlan,
    InboxEntry,
    ScopeInfo,
    Status,
    StoredEvent,
    Taken,
)
from lutumpy.errors import StoreError
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head, Message

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["MemoryStore"]

_SECONDS_BETWEEN_LOOKS = 0.01


@dataclass(slots=True)
class _Unresolved:
    """A call of unknown outcome.

    Attributes:
        call: The call.
        round: The round in which it was made.
        happened: Whether somebody said so; it is refused until the model was told.
    """

    call: UnresolvedCall
    round: int
    happened: bool = False


@dataclass(slots=True)
class _Conversation:
    """One conversation, and the records of its rounds."""

    items: list[dict[str, Any]]
    state: Mapping[str, Any]
    head: Head
    counts: Counts
    updated: datetime
    round: int = 1
    fence: int = 0
    lease_until: datetime | None = None
    status: Status = "open"
    # By round and name; a marker has no value.
    records: dict[tuple[int, str], JsonValue] = field(default_factory=dict)
    begun: set[tuple[int, str]] = field(default_factory=set)
    waiting_since: datetime | None = None
    inbox: list[InboxEntry] = field(default_factory=list)
    unresolved: dict[str, _Unresolved] = field(default_factory=dict)
    events: list[StoredEvent] = field(default_factory=list)
    next_event: int = 1


class MemoryStore:
    """Conversations in this process: gone with it. For tests and examples, not for production."""

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}
        # Larger than the fences of all deleted conversations: a claim on one of them can write
        # nothing to a conversation that replaces it.
        self._fence = 0
        self._lock = threading.Lock()

    # --- conversations -----------------------------------------------------------------------

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None:
        """See `SessionStore.create`."""
        counts = Counts(0, session.usage.total_tokens)
        items = [_copy(item) for item in session.items_since(Session().head)]
        created = _Conversation(items, _copy(session.state()), session.head, counts, _now())
        with self._lock:
            if scope not in self._conversations:
                created.fence = self._fence
                self._conversations[scope] = created
            elif not exist_ok:
                raise StoreError("exists", f"the store has a conversation {scope!r} already")

    async def session(self, scope: str) -> Session:
        """See `SessionStore.session`."""
        with self._lock:
            found = self._find(scope)
            items, state = [*found.items], found.state
        return Session.build(items, state)

    async def scopes(
        self, *, status: Status | None = None, limit: int = 100, after: str | None = None
    ) -> list[ScopeInfo]:
        """See `SessionStore.scopes`."""
        with self._lock:
            listed = sorted(self._conversations.items())
            return [
                ScopeInfo(
                    scope, each.status, len(each.items), each.round, _lease_of(each), each.updated
                )
                for scope, each in listed
                if (status is None or each.status == status) and (after is None or scope > after)
            ][:limit]

    async def delete(self, scope: str) -> None:
        """See `SessionStore.delete`."""
        with self._lock:
            self._fence = max(self._fence, self._find(scope).fence + 1)
            del self._conversations[scope]

    # --- claims ------------------------------------------------------------------------------

    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        """See `SessionStore.claim`."""
        with self._lock:
            found = self._find(scope)
            until = _lease_of(found)
            if until is not None:
                return Taken(until)
            found.fence += 1
            found.lease_until = _now() + timedelta(seconds=lease)
            of_round = {
                name: value for (n, name), value in found.records.items() if n == found.round
            }
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
                _copy(of_round),
                frozenset(begun - of_round.keys()),
                self._inbox_of(found),
                _unresolved_of(found),
            )

    async def renew(self, claim: Claim) -> None:
        """See `SessionStore.renew`."""
        with self._lock:
            found = self._check(claim)
            found.lease_until = _now() + timedelta(seconds=claim.lease)

    async def release(self, claim: Claim, *, status: Status | None = None) -> None:
        """See `SessionStore.release`."""
        with self._lock:
            found = self._conversations.get(claim.scope)
            if found is not None and found.fence == claim.fence:
                found.lease_until = None
                if status is not None:
                    found.status = status

    # --- the open round ----------------------------------------------------------------------

    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        """See `SessionStore.record`."""
        copied = _copy(value)
        with self._lock:
            found = self._check(claim)
            key = claim.round, name
            if key not in found.records:
                found.records[key] = copied
                self._note(found, claim, name, copied)
            recorded: JsonValue = _copy(found.records[key])
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
        copied, state = [_copy(item) for item in items], _copy(state)
        with self._lock:
            found = self._check(claim)
            if found.head != before:
                raise StoreError(
                    "head", f"{claim.scope!r} is at {found.head.items} items, not {before.items}"
                )
            if unless_messages:
                waiting = [entry for entry in self._inbox_of(found) if entry.kind != "decision"]
                if waiting:
                    return tuple(waiting)
            found.items += copied
            found.head, found.state, found.counts = after, state, counts
            found.status, found.updated = status, _now()
            found.inbox = [
                replace(entry, taken=True) if entry.id in taken else entry for entry in found.inbox
            ]
            found.unresolved = {
                call_id: each
                for call_id, each in found.unresolved.items()
                if not (each.happened and notice_id(each.round, call_id) in taken)
            }
            found.round += 1
            found.waiting_since = None
        return ()

    # --- what comes from outside -------------------------------------------------------------

    async def push(
        self, scope: str, item: Mapping[str, Any] | Message | str, *, idempotency_key: str
    ) -> None:
        """See `SessionStore.push`."""
        value = _copy(dump_message(item))
        with self._lock:
            found = self._find(scope)
            entry_id = f"message:{idempotency_key}"
            if all(entry.id != entry_id for entry in found.inbox):
                found.inbox.append(InboxEntry(entry_id, "message", value))
                if found.status == "done":
                    found.status = "open"

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
            plan = _open_plan(found)
            if plan is None or plan["digest"] != plan_digest:
                raise StoreError("plan", f"no plan {plan_digest} is waiting in {scope!r}")
            held = held_in(plan)
            for call_id, decision in decisions.items():
                check_decision(call_id, decision, held)
            taken = True
            for call_id, decision in decisions.items():
                entry_id = f"decision:{plan_digest}:{call_id}"
                if any(entry.id == entry_id for entry in found.inbox):
                    taken = False
                    continue
                value = {"plan": plan_digest, "call_id": call_id, "decision": decision, "by": by}
                found.inbox.append(InboxEntry(entry_id, "decision", _copy(value)))
            if found.status == "waiting" and not _undecided(found, plan):
                found.status = "open"
            return taken

    async def held(self, *, limit: int = 100, scope: str | None = None) -> list[HeldPlan]:
        """See `SessionStore.held`."""
        waiting: list[HeldPlan] = []
        with self._lock:
            for name, each in self._conversations.items():
                plan = _open_plan(each)
                if plan is None or scope not in (None, name):
                    continue
                held = _undecided(each, plan)
                if held and each.waiting_since is not None:
                    digest = str(plan["digest"])
                    waiting.append(HeldPlan(name, digest, held, _copy(plan), each.waiting_since))
        return sorted(waiting, key=lambda plan: plan.since)[:limit]

    async def unresolved(self, scope: str) -> list[UnresolvedCall]:
        """See `SessionStore.unresolved`."""
        with self._lock:
            known = self._find(scope).unresolved.values()
            return [each.call for each in known if not each.happened]

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
            found = self._find(scope)
            known = found.unresolved.get(call_id)
            if known is None or known.happened:
                raise StoreError("decision", f"no call {call_id!r} of {scope!r} is unresolved")
            if decision == "happened":
                notice = _copy(make_notice(known.call, known.round, output, by))
                entry_id = notice_id(known.round, call_id)
                found.inbox.append(InboxEntry(entry_id, "notice", notice))
                known.happened = True
            else:
                del found.unresolved[call_id]

    # --- events ------------------------------------------------------------------------------

    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None:
        """See `SessionStore.add_events`."""
        copied = [_copy(event) for event in events]
        with self._lock:
            found = self._check(claim)
            if drop_deltas:
                found.events = [
                    event
                    for event in found.events
                    if event.round != claim.round or not event.event.get("delta")
                ]
            for event in copied:
                found.events.append(StoredEvent(found.next_event, claim.round, claim.fence, event))
                found.next_event += 1

    async def events(self, scope: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """See `SessionStore.events`."""
        while True:
            with self._lock:
                new = [event for event in self._find(scope).events if event.seq > after]
            for event in new:
                yield event
                after = event.seq
            await anyio.sleep(_SECONDS_BETWEEN_LOOKS)

    # --- inside ------------------------------------------------------------------------------

    def _find(self, scope: str) -> _Conversation:
        found = self._conversations.get(scope)
        if found is None:
            raise StoreError("unknown_scope", f"the store has no conversation {scope!r}")
        return found

    def _check(self, claim: Claim) -> _Conversation:
        """The conversation, if the claim is still the last one (rule P4)."""
        found = self._find(claim.scope)
        if found.fence != claim.fence:
            raise TakenOverError(
                f"another process has taken {claim.scope!r} over: its fence is {found.fence}, this "
                f"one has {claim.fence}; nothing was written"
            )
        found.updated = _now()
        return found

    def _note(self, found: _Conversation, claim: Claim, name: str, value: Any) -> None:
        """Keep what follows from a new record."""
        if name == "plan" and held_in(value):
            found.waiting_since = _now()
        if name.startswith("call:") and value.get("outcome") == "maybe_executed":
            call = UnresolvedCall.load(value["unresolved"])
            found.unresolved[call.metadata.id] = _Unresolved(call, claim.round)

    def _inbox_of(self, found: _Conversation) -> tuple[InboxEntry, ...]:
        plan = _open_plan(found)
        digest = None if plan is None else plan["digest"]
        return tuple(
            [
                entry
                for entry in found.inbox
                if not entry.taken and (entry.kind != "decision" or entry.value["plan"] == digest)
            ]
        )


def _now() -> datetime:
    return datetime.now(timezone.utc)


# `json.dumps` would make one for each value.
_ENCODER = json.JSONEncoder(allow_nan=False)


def _copy(value: Any) -> Any:
    return json.loads(_ENCODER.encode(value))


def _lease_of(found: _Conversation) -> datetime | None:
    """When the running lease ends."""
    until = found.lease_until
    return until if until is not None and until > _now() else None


def _unresolved_of(found: _Conversation) -> tuple[UnresolvedCall, ...]:
    """The calls that are refused, those among them that are known to have happened."""
    return tuple([each.call for each in found.unresolved.values()])


def _open_plan(found: _Conversation) -> Mapping[str, Any] | None:
    plan: Any = found.records.get((found.round, "plan"))
    return plan if isinstance(plan, dict) else None


def _undecided(found: _Conversation, plan: Mapping[str, Any]) -> tuple[str, ...]:
    decided = {
        str(entry.value["call_id"])
        for entry in found.inbox
        if entry.kind == "decision" and entry.value["plan"] == plan["digest"]
    }
    return tuple([call_id for call_id in held_in(plan) if call_id not in decided])
