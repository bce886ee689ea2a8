"""What stores in a database do, statement by statement: the same for every database.

An operation is a generator: it yields a `Query`, is sent the rows, and returns what the method of
`SessionStore` gives. Whoever drives it makes one transaction of it; what it raises rolls that back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import Session
from lutumpy.durable.checks import GOES_ON, first_status, has_come, has_request, held_in
from lutumpy.durable.columns import (
    Content,
    dump_counts,
    key_of,
    load_counts,
    long_name_of,
    moment,
    moment_or_none,
    name_of,
    read,
    read_plan,
    whole,
    write,
)
from lutumpy.durable.lost_costs import COST
from lutumpy.durable.outside import inbox, inbox_of, refused
from lutumpy.durable.past import keep_round
from lutumpy.durable.refusals import exists, unknown
from lutumpy.durable.tables import (
    NOTIFY,
    SET_STATUS,
    TABLES,
    Operation,
    Query,
    check,
    is_believed,
    items_of,
    lock,
    lock_fences,
)
from lutumpy.durable.types import Claim, Counts, InboxEntry, Status, Taken
from lutumpy.errors import StoreError
from lutumpy.models import Head

__all__ = [
    "DIED",
    "begin",
    "claim",
    "commit",
    "count_try",
    "create",
    "delete",
    "load",
    "record",
    "release",
    "renew",
]

DIED = "the process that went on with it ended without giving it up"
"""The last error of a conversation whose lease ran out."""

# --- conversations ---------------------------------------------------------------------------


def create(scope: str, session: Session, *, exist_ok: bool) -> Operation[None]:
    """See `SessionStore.create`."""
    task = 1 if has_request(session) else 0
    yield from _insert(
        scope,
        session.head,
        session.items_since(Session().head),
        write(session.state()),
        dump_counts(Counts(0, session.usage.total_tokens)),
        task=task,
        exist_ok=exist_ok,
    )


def _insert(
    scope: str,
    head: Head,
    items: Sequence[Mapping[str, Any]],
    state: Content,
    counts: Content,
    *,
    task: int,
    exist_ok: bool,
) -> Operation[None]:
    fence = yield from lock_fences()
    key = key_of(scope)
    inserted = yield Query(
        "INSERT INTO {t}sessions (scope, long_name, items, digest, round, state, counts, fence, "
        "status, next_event, updated, created, status_since, ready_at, task) "
        "VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, 1, {now}, {now}, {now}, {now}, ?) "
        "ON CONFLICT (scope) DO NOTHING RETURNING 1",
        (
            *(key, long_name_of(scope, key), *head, state, counts, fence),
            *(first_status(task), task),
        ),
    )
    if inserted:
        yield _append_items(key, 0, items)
        yield from keep_round(key, 0, task, 0, head, state, counts, None)
        yield NOTIFY
    elif not exist_ok:
        raise exists(scope)


def _append_items(key: str, first: int, items: Sequence[Mapping[str, Any]]) -> Query:
    rows = [(key, first + index, write(item)) for index, item in enumerate(items)]
    return Query("INSERT INTO {t}items (scope, seq, item) VALUES (?, ?, ?)", rows, many=True)


def load(scope: str) -> Operation[tuple[list[Any], Any, Mapping[str, Any]]]:
    """The items and the state of a conversation, and the records of costs of its open round."""
    key = key_of(scope)
    found = yield Query("SELECT state, items, round FROM {t}sessions WHERE scope = ?", (key,))
    if not found:
        raise unknown(scope)
    state, count, round = found[0]
    items = yield from items_of(scope, count)
    costs = yield Query(
        "SELECT name, value FROM {t}records "
        "WHERE scope = ? AND round = ? AND name >= ? AND name < ? AND value IS NOT NULL",
        (key, round, COST, COST + "~"),
    )
    return items, read(state), {name: read(value) for name, value in costs}


def delete(scope: str) -> Operation[None]:
    """See `SessionStore.delete`."""
    largest = yield from lock_fences()
    fence = whole((yield from lock(scope))[0])
    # Larger than the fence of whoever has claimed it.
    yield Query(
        "UPDATE {t}meta SET value = ? WHERE name = 'fence'", (str(max(largest, fence + 1)),)
    )
    for table in TABLES:
        yield Query(f"DELETE FROM {{t}}{table} WHERE scope = ?", (key_of(scope),))


# --- claims ----------------------------------------------------------------------------------


def claim(scope: str, lease: float) -> Operation[Claim | Taken]:
    """See `SessionStore.claim`."""
    key = key_of(scope)
    found = yield Query(
        "SELECT items, digest, round, state, counts, fence, lease_until, lease, attempts, "
        "last_error, {now}, task, task_round FROM {t}sessions WHERE scope = ?{lock}",
        (key,),
    )
    if not found:
        raise unknown(scope)
    *row, now, task, task_round = found[0]
    count, digest, round, state, counts, fence, until, length, attempts, error = row
    ends = moment_or_none(until)
    if ends is not None and is_believed(until, length, now):
        return Taken(ends)
    if ends is not None:
        error = write(DIED)  # whoever gives it up leaves no lease
    fence, attempts = whole(fence) + 1, whole(attempts) + 1
    yield Query(
        "UPDATE {t}sessions SET fence = ?, lease_until = ?, lease = ?, attempts = ?, "
        "last_error = ?, updated = ? WHERE scope = ?",
        (fence, now + lease, lease, attempts, None if error is None else Content(error), now, key),
    )
    items = yield from items_of(scope, whole(count))
    rows = yield Query(
        "SELECT name, long_name, value, tries FROM {t}records WHERE scope = ? AND round = ?",
        (key, round),
    )
    named = [(name_of(*row[:2]), *row[2:]) for row in rows]
    values = {name: value for name, value, _ in named if value is not None}
    plan = read_plan(values["plan"])["digest"] if "plan" in values else ""
    return Claim(
        scope,
        fence,
        lease,
        moment(now + lease),
        tuple(items),
        read(state),
        Head(count, digest),
        whole(round),
        load_counts(counts),
        {name: read(value) for name, value in values.items()},
        frozenset([name for name, value, tries in named if value is None and tries is None]),
        (yield from inbox_of(scope, plan)),
        tuple((yield from refused(scope))),
        attempts,
        None if error is None else str(read(error)),
        {name: whole(tries) for name, _, tries in named if tries is not None},
        whole(task),
        whole(task_round),
    )


def renew(claim: Claim) -> Operation[None]:
    """See `SessionStore.renew`."""
    renewed = yield Query(
        "UPDATE {t}sessions SET lease_until = {now} + ?, lease = ? "
        "WHERE scope = ? AND fence = ? RETURNING 1",
        (claim.lease, claim.lease, key_of(claim.scope), claim.fence),
    )
    if not renewed:
        yield from check(claim)


def release(claim: Claim, status: Status | None) -> Operation[None]:
    """See `SessionStore.release`.

    With a status the run ended well. Without one it was cut off, which is nobody's failure.
    """
    if status in GOES_ON:
        # The row is locked before the inbox is read: what comes in waits for that, and opens the
        # conversation afterwards.
        locked = yield Query(
            "SELECT 1 FROM {t}sessions WHERE scope = ? AND fence = ?{lock}",
            (key_of(claim.scope), claim.fence),
        )
        if locked:
            read_inbox = inbox(claim.scope) if status == "waiting" else inbox_of(claim.scope, "")
            looked_at = {entry.id for entry in claim.inbox}
            if has_come(status, looked_at, (yield from read_inbox)):
                status = "open"
    attempts = "0" if status is not None else "CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    error = "NULL" if status is not None else "last_error"
    yield Query(
        f"UPDATE {{t}}sessions SET lease_until = NULL, attempts = {attempts}, "
        f"last_error = {error}, ready_at = {{now}}, {SET_STATUS} WHERE scope = ? AND fence = ?",
        (*[status] * 2, key_of(claim.scope), claim.fence),
    )


# --- the open round --------------------------------------------------------------------------

# Each looks at the fence and writes in one statement, which locks the row of the conversation on
# its way; a second one says why nothing was written.
_OF_CLAIM = "FROM {t}sessions s WHERE s.scope = ? AND s.fence = ?{lock}"


def record(claim: Claim, name: str, text: Content) -> Operation[str]:
    """See `SessionStore.record`; the value as JSON text."""
    scope, key = key_of(claim.scope), key_of(name)
    # The marker of the call may be there already; its value is empty until this one is written.
    written = yield Query(
        "INSERT INTO {t}records (scope, round, name, long_name, value, at) "
        f"SELECT s.scope, ?, ?, ?, ?, {{now}} {_OF_CLAIM} "
        "ON CONFLICT (scope, round, name) DO UPDATE SET value = excluded.value, at = excluded.at "
        "WHERE {t}records.value IS NULL RETURNING 1",
        (claim.round, key, long_name_of(name, key), text, scope, claim.fence),
    )
    if not written:
        yield from check(claim)
        ((recorded,),) = yield Query(
            "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = ?",
            (scope, claim.round, key),
        )
        return str(recorded)
    yield from _note(claim, name, text)
    return text


def _note(claim: Claim, name: str, text: str) -> Operation[None]:
    """Keep what follows from a new record."""
    key = key_of(claim.scope)
    if name == "plan" and held_in(read_plan(text)):
        yield Query("UPDATE {t}sessions SET waiting_since = {now} WHERE scope = ?", (key,))
    if name.startswith(("call:", "leg:")) and '"maybe_executed"' in text:
        value = read(text)
        if value.get("outcome") == "maybe_executed":
            call_id = key_of(value["unresolved"]["call"]["id"])
            yield Query(
                "INSERT INTO {t}unresolved (scope, round, call_id, call, at) "
                "VALUES (?, ?, ?, ?, {now}) ON CONFLICT (scope, round, call_id) DO NOTHING",
                (key, claim.round, call_id, write(value["unresolved"])),
            )


def begin(claim: Claim, name: str) -> Operation[bool]:
    """See `SessionStore.begin`."""
    key = key_of(name)
    inserted = yield Query(
        "INSERT INTO {t}records (scope, round, name, long_name, begun_fence, at) "
        f"SELECT s.scope, ?, ?, ?, s.fence, {{now}} {_OF_CLAIM} "
        "ON CONFLICT (scope, round, name) DO NOTHING RETURNING 1",
        (claim.round, key, long_name_of(name, key), key_of(claim.scope), claim.fence),
    )
    if not inserted:
        yield from check(claim)
    return bool(inserted)


def count_try(claim: Claim, name: str) -> Operation[int]:
    """See `OperatorStore.count_try`."""
    tried = f"tries:{name}"
    key = key_of(tried)
    counted = yield Query(
        "INSERT INTO {t}records (scope, round, name, long_name, tries, at) "
        f"SELECT s.scope, ?, ?, ?, 1, {{now}} {_OF_CLAIM} "
        "ON CONFLICT (scope, round, name) DO UPDATE SET tries = {t}records.tries + 1 "
        "RETURNING tries",
        (claim.round, key, long_name_of(tried, key), key_of(claim.scope), claim.fence),
    )
    if not counted:
        yield from check(claim)
    return whole(counted[0][0])


def commit(
    claim: Claim,
    before: Head,
    items: Sequence[Mapping[str, Any]],
    after: Head,
    state: Content,
    counts: Counts,
    status: Status,
    taken: Sequence[str],
    *,
    unless_messages: bool,
) -> Operation[tuple[InboxEntry, ...]]:
    """See `SessionStore.commit`."""
    key = key_of(claim.scope)
    _, round, count, digest, _, task, task_round = yield from check(claim)
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
    if any(entry_id.startswith("message:") for entry_id in taken):
        task, task_round = task + 1, 0
    else:
        task_round += 1
    if status == "done" and has_come(status, taken, (yield from inbox_of(claim.scope, ""))):
        status = "open"
    written = dump_counts(counts)
    yield _append_items(key, count, items)
    yield Query(
        "UPDATE {t}sessions SET items = ?, digest = ?, round = ?, state = ?, counts = ?, "
        "waiting_since = NULL, updated = {now}, attempts = 1, last_error = NULL, task = ?, "
        f"task_round = ?, {SET_STATUS} WHERE scope = ?",
        (*after, round + 1, state, written, task, task_round, status, status, key),
    )
    yield from _take(key, round, taken)
    # All that is needed of the round's records is in the items, or in what is kept of the round.
    records = yield Query(
        "DELETE FROM {t}records WHERE scope = ? AND round = ? RETURNING name, begun_fence, "
        "CASE WHEN name = 'plan' THEN value END",
        (key, round),
    )
    yield from keep_round(key, round, task, task_round, after, state, written, records)
    return ()


def _take(key: str, round: int, taken: Sequence[str]) -> Operation[None]:
    """Mark what a commit takes of the inbox. The plan is over, and so are decisions and answers."""
    marks = ", ".join("?" * len(taken))
    named = f" OR id IN ({marks})" if taken else ""
    yield Query(
        "UPDATE {t}inbox SET taken_round = ? "
        f"WHERE scope = ? AND taken_round IS NULL AND (kind IN ('decision', 'answer'){named})",
        (round, key, *[key_of(entry_id) for entry_id in taken]),
    )
    for entry_id in taken:
        if entry_id.startswith("resolved:"):
            # The model is told by this commit: an equal call of a later answer is a new one.
            _, resolved_round, call_id = entry_id.split(":", 2)
            yield Query(
                "DELETE FROM {t}unresolved "
                "WHERE scope = ? AND round = ? AND call_id = ? AND decision = 'happened'",
                (key, int(resolved_round), key_of(call_id)),
            )
