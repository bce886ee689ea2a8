"""The log of a conversation in a database: what is written, read, and where it ends.

See `operations.py` for what an operation is, and `envelopes.py` for what is around an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.durable.columns import key_of, long_name_of, moment, read, read_mapping, whole, write
from lutumpy.durable.envelopes import Envelope, Place, open_envelope
from lutumpy.durable.log import ENDINGS
from lutumpy.durable.refusals import unknown
from lutumpy.durable.tables import (
    LEASED,
    SET_STATUS,
    Operation,
    Query,
    check,
    known,
)
from lutumpy.durable.types import Claim, StoredEvent

__all__ = ["add_events", "append_events", "events_after", "is_at_end", "last_event"]

_MOST_EVENTS = 500
"""How many events are read at a time."""


def add_events(
    claim: Claim, events: Sequence[Mapping[str, Any]], *, drop_deltas: bool
) -> Operation[None]:
    """See `SessionStore.add_events`."""
    envelopes = [open_envelope(event) for event in events]
    if any(envelope.once or envelope.unless for envelope in envelopes):
        yield from check(claim)
        envelopes = yield from _without_outdated(claim.scope, envelopes)
        envelopes = yield from _new_of(claim, envelopes)
    key = key_of(claim.scope)
    numbered = yield Query(
        "UPDATE {t}sessions SET next_event = next_event + ? WHERE scope = ? AND fence = ? "
        "RETURNING next_event, task, task_round",
        (len(envelopes), key, claim.fence),
    )
    if not numbered:
        yield from check(claim)
    next_event, task, task_round = numbered[0]
    if drop_deltas:
        yield Query(
            "DELETE FROM {t}events WHERE scope = ? AND round = ? AND delta = 1", (key, claim.round)
        )
    place = Place(max(1, task), task_round + 1)
    yield _insert(key, next_event - len(envelopes), claim.round, claim.fence, place, envelopes)
    for envelope in envelopes:
        if envelope.status is not None:
            yield Query(
                f"UPDATE {{t}}sessions SET {SET_STATUS} WHERE scope = ?",
                (envelope.status, envelope.status, key),
            )


def _without_outdated(scope: str, envelopes: Sequence[Envelope]) -> Operation[list[Envelope]]:
    """The envelopes but for those that an entry of the inbox keeps out; the scope is locked."""
    kept: list[Envelope] = []
    for envelope in envelopes:
        found: Any = ()
        if envelope.unless:
            places = ", ".join("?" * len(envelope.unless))
            found = yield Query(
                "SELECT 1 FROM {t}inbox WHERE scope = ? AND taken_round IS NULL "
                f"AND id IN ({places}) LIMIT 1",
                (key_of(scope), *map(key_of, envelope.unless)),
            )
        if not found:
            kept.append(envelope)
    return kept


def _new_of(claim: Claim, envelopes: Sequence[Envelope]) -> Operation[list[Envelope]]:
    """Insert the markers of events that are written once; the events that are to be written."""
    new: list[Envelope] = []
    for envelope in envelopes:
        is_new = not envelope.once
        for marker in envelope.once:
            name = key_of(marker)
            inserted = yield Query(
                "INSERT INTO {t}records (scope, round, name, long_name, begun_fence, at) "
                "VALUES (?, ?, ?, ?, ?, {now}) "
                "ON CONFLICT (scope, round, name) DO NOTHING RETURNING 1",
                (key_of(claim.scope), claim.round, name, long_name_of(marker, name), claim.fence),
            )
            is_new = is_new or bool(inserted)
        if is_new:
            new.append(envelope)
    return new


def append_events(
    key: str, round: int, attempt: int, place: Place, events: Sequence[Mapping[str, Any]]
) -> Operation[None]:
    """Write events behind the last one; the conversation is locked.

    Args:
        key: The conversation.
        round: The number of the open round in it.
        attempt: The fence of its last claim.
        place: Where they belong.
        events: The events, without what is around them.
    """
    ((next_event,),) = yield Query(
        "UPDATE {t}sessions SET next_event = next_event + ? WHERE scope = ? RETURNING next_event",
        (len(events), key),
    )
    envelopes = [Envelope(event, place, (), None) for event in events]
    yield _insert(key, next_event - len(events), round, attempt, place, envelopes)


def _insert(
    key: str, first: int, round: int, attempt: int, place: Place, envelopes: Sequence[Envelope]
) -> Query:
    rows = [
        (
            key,
            first + index,
            round,
            attempt,
            1 if envelope.event.get("delta") else 0,
            write(envelope.event),
            *(envelope.place or place),
        )
        for index, envelope in enumerate(envelopes)
    ]
    return Query(
        "INSERT INTO {t}events (scope, seq, round, attempt, delta, event, task, task_round, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now})",
        rows,
        many=True,
    )


def events_after(scope: str, after: int) -> Operation[list[StoredEvent]]:
    """The next events of a conversation behind a number."""
    yield from known(scope)
    rows = yield Query(
        "SELECT seq, COALESCE(task, 1), COALESCE(task_round, round), attempt, COALESCE(at, 0), "
        "event FROM {t}events WHERE scope = ? AND seq > ? ORDER BY seq LIMIT ?",
        (key_of(scope), after, _MOST_EVENTS),
    )
    return [
        StoredEvent(seq, task, round, attempt, moment(at), read_mapping(event, "event"))
        for seq, task, round, attempt, at, event in rows
    ]


def last_event(scope: str) -> Operation[int]:
    """See `OperatorStore.last_event`."""
    found = yield Query("SELECT next_event FROM {t}sessions WHERE scope = ?", (key_of(scope),))
    if not found:
        raise unknown(scope)
    return whole(found[0][0]) - 1


def is_at_end(scope: str, seen: int) -> Operation[bool]:
    """Whether nothing comes behind the event `seen`, until somebody begins a run."""
    key = key_of(scope)
    found = yield Query(
        f"SELECT CASE WHEN {LEASED} THEN 1 ELSE 0 END FROM {{t}}sessions WHERE scope = ?", (key,)
    )
    last = yield Query(
        "SELECT seq, event FROM {t}events WHERE scope = ? ORDER BY seq DESC LIMIT 1", (key,)
    )
    if not found or found[0][0] or not last or last[0][0] > seen:
        return False
    if read(last[0][1]).get("event") not in ENDINGS:
        return False
    waiting = yield Query(
        "SELECT 1 FROM {t}inbox WHERE scope = ? AND taken_round IS NULL AND kind = 'message' "
        "LIMIT 1",
        (key,),
    )
    return not waiting
