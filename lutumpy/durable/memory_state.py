"""What a store in memory holds of a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lutumpy.durable.checks import held_in, notice_id
from lutumpy.durable.columns import key_of
from lutumpy.durable.envelopes import Place
from lutumpy.durable.log import ENDINGS
from lutumpy.durable.past import calls_with_effects
from lutumpy.durable.tables import is_believed
from lutumpy.durable.types import Counts, InboxEntry, PastRound, Status, StoredEvent
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "Conversation",
    "Past",
    "UnresolvedHere",
    "copy_of",
    "is_at_end",
    "lease_of",
    "now",
    "open_plan",
    "tell",
    "undecided_in",
    "unresolved_of",
]


def now() -> datetime:
    """The moment, by the clock of the store."""
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True)
class Past:
    """A past round, and what a conversation that goes on from it begins with."""

    row: PastRound
    state: Mapping[str, Any]
    head: Head
    counts: Counts


@dataclass(slots=True)
class UnresolvedHere:
    """A call of unknown outcome.

    Attributes:
        call: The call.
        round: The round in which it was made.
        happened: Whether somebody said so; it is refused until the model was told.
        at: Since when.
    """

    call: UnresolvedCall
    round: int
    happened: bool = False
    at: datetime = field(default_factory=now)


@dataclass(slots=True)
class Conversation:
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
    # By round and id.
    unresolved: dict[tuple[int, str], UnresolvedHere] = field(default_factory=dict)
    events: list[StoredEvent] = field(default_factory=list)
    next_event: int = 1
    # The number of the first event of the open round.
    first_of_round: int = 1
    lease: float = 0.0
    created: datetime = field(default_factory=now)
    since: datetime = field(default_factory=now)
    ready_at: datetime = field(default_factory=now)
    attempts: int = 0
    last_error: str | None = None
    tries: dict[str, int] = field(default_factory=dict)
    task: int = 0
    task_round: int = 0
    past: list[Past] = field(default_factory=list)
    # When entries of the inbox came, by id, and events, by number.
    times: dict[str | int, datetime] = field(default_factory=dict)

    def records_of_round(self) -> dict[str, JsonValue]:
        """The records of the open round that have a value, by name."""
        return {name: value for (n, name), value in self.records.items() if n == self.round}

    def add_entry(self, entry: InboxEntry) -> None:
        """Put something into the inbox."""
        self.inbox.append(entry)
        self.times[entry.id] = now()

    def add_event(self, event: Mapping[str, Any], place: Place | None) -> None:
        """Write an event behind the last one, for the open round or another place."""
        seq, moment = self.next_event, now()
        task, round = place or Place(max(1, self.task), self.task_round + 1)
        self.events.append(StoredEvent(seq, task, round, self.fence, moment, copy_of(event)))
        self.times[seq] = moment
        self.next_event += 1

    def set_status(self, status: Status | None) -> None:
        """Set a status, if there is one, and let workers see it."""
        self.ready_at = now()
        if status is not None and status != self.status:
            self.status, self.since = status, now()

    def keep_round(self, effects: Sequence[UnresolvedCall]) -> None:
        """Keep where it is, after the round that was just committed."""
        number = self.round - 1
        row = PastRound(
            self.task, self.task_round, number, len(self.items), tuple(effects), self.updated
        )
        self.past.append(Past(row, self.state, self.head, self.counts))

    def effects(self) -> list[UnresolvedCall]:
        """The calls of the open round whose effects may have taken place."""
        plan = open_plan(self)
        if plan is None or all(call.get("effect", "read") == "read" for call in plan["calls"]):
            return []
        begun = {key_of(name) for number, name in self.begun if number == self.round}
        recorded = {key_of(name) for number, name in self.records if number == self.round}
        return calls_with_effects(plan, begun=begun, recorded=recorded)


# `json.dumps` would make one for each value.
_ENCODER = json.JSONEncoder(allow_nan=False)


def is_at_end(found: Conversation) -> bool:
    """Whether nothing comes behind the last event, until somebody begins a run."""
    if not found.events or lease_of(found) is not None:
        return False
    waits = any(entry.kind == "message" and not entry.taken for entry in found.inbox)
    return found.events[-1].event.get("event") in ENDINGS and not waits


def copy_of(value: Any) -> Any:
    return json.loads(_ENCODER.encode(value))


def lease_of(found: Conversation) -> datetime | None:
    """When the running lease ends."""
    until = found.lease_until
    if until is None:
        return None
    runs = is_believed(until.timestamp(), found.lease, now().timestamp())
    return until if runs else None


def unresolved_of(found: Conversation) -> tuple[UnresolvedCall, ...]:
    """The calls that are refused, those among them that are known to have happened."""
    return tuple([each.call for each in found.unresolved.values()])


def tell(found: Conversation, key: tuple[int, str], notice: Mapping[str, Any]) -> None:
    """Leave a notice for the model about a call, by its round and id."""
    found.add_entry(InboxEntry(notice_id(*key), "notice", copy_of(notice)))
    found.unresolved[key].happened = True


def open_plan(found: Conversation) -> Mapping[str, Any] | None:
    plan: Any = found.records.get((found.round, "plan"))
    return plan if isinstance(plan, dict) else None


def undecided_in(found: Conversation, plan: Mapping[str, Any]) -> tuple[str, ...]:
    decided = {
        str(entry.value["call_id"])
        for entry in found.inbox
        if entry.kind == "decision" and entry.value["plan"] == plan["digest"]
    }
    return tuple([call_id for call_id in held_in(plan) if call_id not in decided])
