"""What stores in a database do, statement by statement: the same for every database.

An operation is a generator: it yields a `Query`, is sent the rows, and returns what the method of
`SessionStore` gives. Whoever drives it makes one transaction of it; what it raises rolls that back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import Session
from lutumpy.durable.checks import held_in
from lutumpy.durable.outside import digest_of, inbox_of, refused
from lutumpy.durable.tables import (
    TABLES,
    Operation,
    Query,
    check,
    dump_counts,
    items_of,
    known,
    load_counts,
    lock,
    lock_fences,
    moment,
    moment_or_none,
    original,
    read,
    unknown,
    write,
)
from lutumpy.durable.types import Claim, Counts, InboxEntry, ScopeInfo, Status, StoredEvent, Taken
from lutumpy.errors import StoreError
from lutumpy.models import Head

__all__ = [
    "add_events",
    "begin",
    "claim",
    "commit",
    "create",
    "delete",
    "events_after",
    "load",
    "record",
    "release",
    "renew",
    "scopes",
]

_MOST_EVENTS = 500
"""How many events are read at a time."""

# --- conversations ---------------------------------------------------------------------------


def create(scope: str, session: Session, *, exist_ok: bool) -> Operation[None]:
    """See `SessionStore.create`."""
    head = session.head
    counts = dump_counts(Counts(0, session.usage.total_tokens))
    fence = yield from lock_fences()
    inserted = yield Query(
        "INSERT INTO {t}sessions (scope, items, digest, round, state, counts, fence, status, "
        "next_event, updated) VALUES (?, ?, ?, 1, ?, ?, ?, 'open', 1, {now}) "
        "ON CONFLICT (scope) DO NOTHING RETURNING 1",
        (scope, head.items, head.digest, write(session.state()), counts, fence),
    )
    if inserted:
        yield _append_items(scope, 0, session.items_since(Session().head))
    elif not exist_ok:
        raise StoreError("exists", f"the store has a conversation {scope!r} already")


def _append_items(scope: str, first: int, items: Sequence[Mapping[str, Any]]) -> Query:
    rows = [(scope, first + index, write(item)) for index, item in enumerate(items)]
    return Query("INSERT INTO {t}items (scope, seq, item) VALUES (?, ?, ?)", rows, many=True)


def load(scope: str) -> Operation[tuple[list[Any], Any]]:
    """The items and the state of a conversation."""
    found = yield Query("SELECT state, items FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise unknown(scope)
    state, count = found[0]
    items = yield from items_of(scope, count)
    return items, read(state)


def scopes(status: Status | None, limit: int, after: str | None) -> Operation[list[ScopeInfo]]:
    """See `SessionStore.scopes`."""
    conditions, parameters = ["TRUE"], []
    for condition, value in (("status = ?", status), ("scope > ?", after)):
        if value is not None:
            conditions.append(condition)
            parameters.append(value)
    rows = yield Query(
        "SELECT scope, status, items, round, CASE WHEN lease_until > {now} THEN lease_until END, "
        f"updated FROM {{t}}sessions WHERE {' AND '.join(conditions)} ORDER BY scope LIMIT ?",
        (*parameters, limit),
    )
    return [
        ScopeInfo(original(scope), found, items, round, moment_or_none(until), moment(updated))
        for scope, found, items, round, until, updated in rows
    ]


def delete(scope: str) -> Operation[None]:
    """See `SessionStore.delete`."""
    largest = yield from lock_fences()
    fence = (yield from lock(scope))[0]
    # Larger than the fence of whoever has claimed it.
    yield Query(
        "UPDATE {t}meta SET value = ? WHERE name = 'fence'", (str(max(largest, fence + 1)),)
    )
    for table in TABLES:
        yield Query(f"DELETE FROM {{t}}{table} WHERE scope = ?", (scope,))


# --- claims ----------------------------------------------------------------------------------


def claim(scope: str, lease: float) -> Operation[Claim | Taken]:
    """See `SessionStore.claim`."""
    found = yield Query(
        "SELECT items, digest, round, state, counts, fence, lease_until, {now} FROM {t}sessions "
        "WHERE scope = ?{lock}",
        (scope,),
    )
    if not found:
        raise unknown(scope)
    count, digest, round, state, counts, fence, lease_until, now = found[0]
    if lease_until is not None and lease_until > now:
        return Taken(moment(lease_until))
    until = now + lease
    yield Query(
        "UPDATE {t}sessions SET fence = ?, lease_until = ?, updated = ? WHERE scope = ?",
        (fence + 1, until, now, scope),
    )
    items = yield from items_of(scope, count)
    rows = yield Query(
        "SELECT name, value FROM {t}records WHERE scope = ? AND round = ?", (scope, round)
    )
    records = {original(name): read(value) for name, value in rows if value is not None}
    return Claim(
        scope,
        fence + 1,
        lease,
        moment(until),
        tuple(items),
        read(state),
        Head(count, digest),
        round,
        load_counts(counts),
        records,
        frozenset([original(name) for name, value in rows if value is None]),
        (yield from inbox_of(scope, digest_of(records.get("plan")))),
        tuple((yield from refused(scope))),
    )


def renew(claim: Claim) -> Operation[None]:
    """See `SessionStore.renew`."""
    yield from check(claim)
    yield Query(
        "UPDATE {t}sessions SET lease_until = {now} + ? WHERE scope = ?", (claim.lease, claim.scope)
    )


def release(claim: Claim, status: Status | None) -> Operation[None]:
    """See `SessionStore.release`."""
    yield Query(
        "UPDATE {t}sessions SET lease_until = NULL, status = COALESCE(?, status) "
        "WHERE scope = ? AND fence = ?",
        (status, claim.scope, claim.fence),
    )


# --- the open round --------------------------------------------------------------------------


def record(claim: Claim, name: str, text: str) -> Operation[str]:
    """See `SessionStore.record`; the value as JSON text."""
    yield from check(claim)
    key = (claim.scope, claim.round, name)
    # A marker of which this is the result has no value yet.
    written = yield Query(
        "INSERT INTO {t}records (scope, round, name, value, at) VALUES (?, ?, ?, ?, {now}) "
        "ON CONFLICT (scope, round, name) DO UPDATE SET value = excluded.value, at = excluded.at "
        "WHERE {t}records.value IS NULL RETURNING 1",
        (*key, text),
    )
    if not written:
        ((recorded,),) = yield Query(
            "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = ?", key
        )
        return str(recorded)
    yield from _note(claim, name, text)
    return text


def _note(claim: Claim, name: str, text: str) -> Operation[None]:
    """Keep what follows from a new record."""
    if name == "plan" and held_in(read(text)):
        yield Query("UPDATE {t}sessions SET waiting_since = {now} WHERE scope = ?", (claim.scope,))
    if name.startswith("call:") and '"maybe_executed"' in text:
        value = read(text)
        if value.get("outcome") == "maybe_executed":
            yield Query(
                "INSERT INTO {t}unresolved (scope, round, call_id, call, at) "
                "VALUES (?, ?, ?, ?, {now}) ON CONFLICT (scope, round, call_id) DO NOTHING",
                (
                    claim.scope,
                    claim.round,
                    value["unresolved"]["call"]["id"],
                    write(value["unresolved"]),
                ),
            )


def begin(claim: Claim, name: str) -> Operation[bool]:
    """See `SessionStore.begin`."""
    yield from check(claim)
    inserted = yield Query(
        "INSERT INTO {t}records (scope, round, name, begun_fence, at) VALUES (?, ?, ?, ?, {now}) "
        "ON CONFLICT (scope, round, name) DO NOTHING RETURNING 1",
        (claim.scope, claim.round, name, claim.fence),
    )
    return bool(inserted)


def commit(
    claim: Claim,
    before: Head,
    items: Sequence[Mapping[str, Any]],
    after: Head,
    state: str,
    counts: Counts,
    status: Status,
    taken: Sequence[str],
    *,
    unless_messages: bool,
) -> Operation[tuple[InboxEntry, ...]]:
    """See `SessionStore.commit`."""
    _, round, count, digest, _ = yield from check(claim)
    if (count, digest, round) != (*before, claim.round):
        raise StoreError(
            "head",
            f"{claim.scope!r} is at {count} items in round {round}, not at {before.items} in round "
            f"{claim.round}; nothing was written",
        )
    if unless_messages:
        waiting = yield from inbox_of(claim.scope, "")
        if waiting:
            return waiting
    yield _append_items(claim.scope, count, items)
    yield Query(
        "UPDATE {t}sessions SET items = ?, digest = ?, round = ?, state = ?, counts = ?, "
        "status = ?, waiting_since = NULL, updated = {now} WHERE scope = ?",
        (*after, round + 1, state, dump_counts(counts), status, claim.scope),
    )
    # Resolved by a release that told nobody.
    yield Query(
        "DELETE FROM {t}unresolved WHERE scope = ? AND forgotten_after <= ?", (claim.scope, round)
    )
    # The plan is over, and so are the decisions about it.
    yield Query(
        "UPDATE {t}inbox SET taken_round = ? "
        "WHERE scope = ? AND taken_round IS NULL AND kind = 'decision'",
        (round, claim.scope),
    )
    for entry_id in taken:
        yield Query(
            "UPDATE {t}inbox SET taken_round = ? WHERE scope = ? AND id = ?",
            (round, claim.scope, entry_id),
        )
        if entry_id.startswith("resolved:"):
            # The model is told by this commit: an equal call of a later answer is a new one.
            _, resolved_round, call_id = entry_id.split(":", 2)
            yield Query(
                "DELETE FROM {t}unresolved "
                "WHERE scope = ? AND round = ? AND call_id = ? AND decision = 'happened'",
                (claim.scope, int(resolved_round), call_id),
            )
    return ()


# --- events ----------------------------------------------------------------------------------


def add_events(
    claim: Claim, events: Sequence[Mapping[str, Any]], *, drop_deltas: bool
) -> Operation[None]:
    """See `SessionStore.add_events`."""
    yield from check(claim)
    if drop_deltas:
        yield Query(
            "DELETE FROM {t}events WHERE scope = ? AND round = ? AND delta = 1",
            (claim.scope, claim.round),
        )
    ((first,),) = yield Query("SELECT next_event FROM {t}sessions WHERE scope = ?", (claim.scope,))
    rows = [
        (
            claim.scope,
            first + index,
            claim.round,
            claim.fence,
            1 if event.get("delta") else 0,
            write(event),
        )
        for index, event in enumerate(events)
    ]
    yield Query(
        "INSERT INTO {t}events (scope, seq, round, attempt, delta, event) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        rows,
        many=True,
    )
    yield Query(
        "UPDATE {t}sessions SET next_event = ? WHERE scope = ?", (first + len(rows), claim.scope)
    )


def events_after(scope: str, after: int) -> Operation[list[StoredEvent]]:
    """The next events of a conversation behind a number."""
    yield from known(scope)
    rows = yield Query(
        "SELECT seq, round, attempt, event FROM {t}events WHERE scope = ? AND seq > ? "
        "ORDER BY seq LIMIT ?",
        (scope, after, _MOST_EVENTS),
    )
    return [StoredEvent(seq, round, attempt, read(event)) for seq, round, attempt, event in rows]
