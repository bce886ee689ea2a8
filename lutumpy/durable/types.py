"""What a store of conversations gives and takes, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lutumpy.durable.log import DurableEvent, load_event
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "Claim",
    "Counts",
    "HeldPlan",
    "InboxEntry",
    "PastRound",
    "Prunable",
    "Pruned",
    "ScopeInfo",
    "Status",
    "StoredEvent",
    "Taken",
    "is_answer",
]

Status: TypeAlias = Literal["open", "waiting", "done", "stuck"]
"""The status of a conversation: there is something to do; a person has to decide; nothing is left
to do, since the model has answered, a limit was reached, or nobody has said anything yet; or its
round was tried too often, and somebody has to look."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What limits are held against: from one message of the user to its answer (rule P17).

    Attributes:
        rounds: How many rounds were committed.
        tokens: What the session had cost when the task began, in tokens.
        failures: In how many rounds a call went wrong: `[tool, canonical arguments, count]` each.
        value_retries: How often the model was asked again for an answer that has a value.
    """

    rounds: int = 0
    tokens: int = 0
    failures: tuple[tuple[str, str, int], ...] = ()
    value_retries: int = 0


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """Something that came from outside and waits to be taken.

    Attributes:
        id: Its id, unique in the conversation.
        kind: `message`, a user's message as `Session.items_since` writes items; `decision`:
            `{"plan": digest, "call_id": ..., "decision": {...}, "by": ...}`; or `notice`, what
            became of a call whose outcome was not known: `{"message": <as a user's message>,
            "call_id": ..., "round": ..., "output": ..., "by": ...}` (rule P8). A notice begins no
            task: it is written before the next turn, whenever that is.
            Or `late`, the late result of a call: `{"call_id": ..., "tool": ..., "result": ...}`,
            which begins no task either, but is answered (rules LR9, LR11).
            Or `answer`, what a person answered a server in the middle of a call: `{"plan": digest,
            "call_id": ..., "leg": ..., "key": ..., "answer": {...}, "by": ...}` (rule LR24).
        value: The message, decision, notice, late result or answer.
        taken: Whether a round has taken it. A decision or answer is kept as long as its plan is
            open.
    """

    id: str
    kind: Literal["message", "decision", "notice", "late", "answer"]
    value: Mapping[str, JsonValue]
    taken: bool = False


def is_answer(entry: InboxEntry) -> bool:
    """Whether an entry answers a question."""
    return entry.kind == "answer"


@dataclass(frozen=True, slots=True)
class Claim:
    """A conversation that this process goes on with, and all that is known of it.

    Attributes:
        scope: The conversation's id.
        fence: Larger than that of any claim before; every write names it.
        lease: Seconds that nobody else takes it over, unless it is renewed.
        until: When that ends, by the clock of the store.
        items: The committed items, dumped.
        state: What `Session.build` needs besides.
        head: Its head.
        round: The number of the open round, from 1.
        counts: What limits are held against.
        records: The records of the open round that have a value, by name.
        begun: The names of the markers among them without a value: calls that were begun and have
            no result.
        inbox: What waits, oldest first; and the decisions of the open plan.
        unresolved: The calls whose outcome is not known and that nobody has decided.
        attempts: How often the open round was taken up without coming to an end, this time
            included; a store that doesn't count says 0.
        last_error: What went wrong the last time; `None` where nothing did.
        tries: How often each call was begun again in these attempts, by the name of its record.
        task: Which task the open round belongs to, from 1: which message of the user it answers; 0
            before there is one.
        task_round: How many rounds of that task were committed.
    """

    scope: str
    fence: int
    lease: float
    until: datetime
    items: tuple[Mapping[str, Any], ...]
    state: Mapping[str, Any]
    head: Head
    round: int
    counts: Counts
    records: Mapping[str, JsonValue] = field(default_factory=dict)
    begun: frozenset[str] = frozenset()
    inbox: tuple[InboxEntry, ...] = ()
    unresolved: tuple[UnresolvedCall, ...] = ()
    attempts: int = 0
    last_error: str | None = None
    tries: Mapping[str, int] = field(default_factory=dict)
    task: int = 1
    task_round: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """Another process goes on with the conversation at this moment.

    Attributes:
        until: When its lease ends, if it doesn't renew it.
    """

    until: datetime


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """A plan with calls that wait for a person.

    Attributes:
        scope: The conversation's id.
        digest: The digest of the plan, which decisions have to name.
        held: The ids of the calls that nobody has decided yet.
        plan: The plan, as `ToolRoundPlan.dump` gives it.
        since: When it was recorded.
    """

    scope: str
    digest: str
    held: tuple[str, ...]
    plan: Mapping[str, JsonValue]
    since: datetime


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """One conversation of a store, for lists.

    Attributes:
        scope: Its id.
        status: Its status.
        items: How many items are committed.
        round: The number of the open round.
        claimed_until: When the lease of the process that goes on with it ends; `None` where none
            does.
        updated: When it was last written to.
        created: When it was taken in.
        since: When it got its status.
        age: Seconds since then, by the clock of the store.
        waiting_since: Since when its plan waits for a person; `None` where none does.
        attempts: How often its open round was taken up without coming to an end.
        last_error: What went wrong the last time.
        task: Which task it is in: how often the user has said something.
    """

    scope: str
    status: Status
    items: int
    round: int
    claimed_until: datetime | None
    updated: datetime
    created: datetime | None = None
    since: datetime | None = None
    age: float = 0.0
    waiting_since: datetime | None = None
    attempts: int = 0
    last_error: str | None = None
    task: int = 0


@dataclass(frozen=True, slots=True)
class PastRound:
    """A round that was committed, and where the conversation was after it.

    Attributes:
        task: Which task the next request belonged to: how often the user had said something.
        round: How many rounds of that task there had been: 0 where the user has just said
            something. `(task, round)` is what `OperatorStore.fork` goes back to.
        number: The number of the round in the conversation; 0 for its beginning.
        items: How many items were committed.
        effects: The calls of the round whose effects are not repeated: `once` calls that were
            begun, and idempotent ones.
        at: When it was committed.
    """

    task: int
    round: int
    number: int
    items: int
    effects: tuple[UnresolvedCall, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed from a store.

    Attributes:
        records: Past rounds, records of them, and messages and decisions that were taken.
        events: Events of past rounds.
        conversations: Whole conversations.
    """

    records: int = 0
    events: int = 0
    conversations: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.records + other.records,
            self.events + other.events,
            self.conversations + other.conversations,
        )


Prunable: TypeAlias = Literal["records", "events", "conversations"]
"""What `OperatorStore.prune` removes."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a conversation's log, as it was stored (rule P20).

    Attributes:
        seq: Its number in the conversation, from 1.
        task: Which message of the user it answers, from 1; messages that came together are one.
        round: The number of its round in the task, from 1.
        attempt: Which execution of that round wrote it: the fence of its claim.
        at: When it was written, by the clock of the store.
        event: The event as JSON values: `{"event": <name>, ...}`.
    """

    seq: int
    task: int
    round: int
    attempt: int
    at: datetime
    event: Mapping[str, JsonValue]

    def load(self) -> DurableEvent:
        """The event as a value, for `match`; `UnknownEvent` for one of a newer release."""
        return load_event(self.event)

    def __repr__(self) -> str:
        call = self.event.get("call")
        tool = f" {call.get('tool')}"[:41] if isinstance(call, dict) else ""
        name = str(self.event.get("event"))[:20]
        place = f"{self.seq:d} task {self.task:d} round {self.round:d}"
        return f"<StoredEvent {place} {name}{tool}>"
