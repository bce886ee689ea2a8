"""What operators and workers do with a store in a database, beside the runs of loops.

See `operations.py` for what an operation is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lutumpy.durable.columns import Content, Raw, key_of, name_of, whole, write
from lutumpy.durable.envelopes import Place
from lutumpy.durable.event_rows import append_events
from lutumpy.durable.listing import Conditions
from lutumpy.durable.log import RunStopped
from lutumpy.durable.operations import delete
from lutumpy.durable.shown import dump_event
from lutumpy.durable.tables import (
    LEASED,
    NOTIFY,
    SET_STATUS,
    Operation,
    Query,
    lock,
    lock_fences,
)
from lutumpy.durable.types import Claim, Pruned

__all__ = [
    "break_lease",
    "fail",
    "next_scope",
    "pause_after",
    "prune_page",
    "reason_of_break",
    "recode_page",
    "retry",
    "scopes_behind",
]

LONGEST_PAUSE = 300.0
"""Seconds that workers leave a conversation alone at most, whose run has failed again."""
_LONGEST_ERROR = 2_000


def fail(claim: Claim, error: str, *, stuck: bool) -> Operation[None]:
    """See `OperatorStore.fail`."""
    pause = pause_after(claim.attempts)
    status = ", status = 'stuck', status_since = {now}" if stuck else ""
    yield Query(
        "UPDATE {t}sessions SET lease_until = NULL, last_error = ?, ready_at = {now} + ?, "
        f"updated = {{now}}{status} WHERE scope = ? AND fence = ?",
        (write(error[:_LONGEST_ERROR]), pause, key_of(claim.scope), claim.fence),
    )


def pause_after(attempts: int) -> float:
    """Seconds that workers leave a conversation alone after so many attempts."""
    return float(min(LONGEST_PAUSE, 2.0 ** min(max(attempts - 1, 0), 20)))


def break_lease(scope: str, by: str, *, stop: bool) -> Operation[bool]:
    """See `OperatorStore.break_lease`."""
    fence, round, _, _, before, task, task_round = yield from lock(scope)
    status = "done" if stop and before == "open" else None
    broken = yield Query(
        "UPDATE {t}sessions SET fence = fence + 1, lease_until = NULL, ready_at = {now}, "
        f"updated = {{now}}, last_error = ?, {SET_STATUS} "
        "WHERE scope = ? AND lease_until IS NOT NULL RETURNING 1",
        (write(reason_of_break(by, stop=stop)), status, status, key_of(scope)),
    )
    if not broken:
        return False
    if stop and before != "waiting":  # that a run waits is the end of its log
        place = Place(max(1, task), task_round + 1)
        event = dump_event(RunStopped(by))
        yield from append_events(key_of(scope), round, whole(fence) + 1, place, [event])
    yield NOTIFY
    return True


def reason_of_break(by: str, *, stop: bool) -> str:
    """The last error of a conversation whose lease was broken."""
    return f"it was stopped by {by}" if stop else f"its lease was broken by {by}"


def retry(scope: str, by: str) -> Operation[bool]:
    """See `OperatorStore.retry`."""
    yield from lock(scope)
    opened = yield Query(
        "UPDATE {t}sessions SET status = 'open', status_since = {now}, ready_at = {now}, "
        "attempts = 0, updated = {now}, last_error = ? "
        "WHERE scope = ? AND status = 'stuck' RETURNING 1",
        (write(f"it is tried again since {by} said so"), key_of(scope)),
    )
    if opened:
        yield NOTIFY
    return bool(opened)


def next_scope(prefix: str | None, reserve: float) -> Operation[str | None]:
    """See `OperatorStore.next`."""
    conditions = Conditions("scope", prefix)
    found = yield Query(
        "SELECT scope, long_name FROM {t}sessions WHERE status = 'open' AND ready_at <= {now} "
        f"AND NOT {LEASED} AND {conditions.sql} ORDER BY ready_at LIMIT 1{{skip}}",
        conditions.parameters,
    )
    if not found:
        return None
    key, name = found[0]
    yield Query("UPDATE {t}sessions SET ready_at = {now} + ? WHERE scope = ?", (reserve, Raw(key)))
    return name_of(key, name)


# --- what grows ------------------------------------------------------------------------------


def scopes_behind(after: str, limit: int, prefix: str | None) -> Operation[list[str]]:
    """The keys of the next conversations, as they stand in the column."""
    conditions = Conditions("scope", prefix)
    rows = yield Query(
        f"SELECT scope FROM {{t}}sessions WHERE scope > ? AND {conditions.sql} "
        "ORDER BY scope LIMIT ?",
        (Raw(after), *conditions.parameters, limit),
    )
    return [key for (key,) in rows]


# Of each table, what is history: it belongs to a round that was committed.
_PAST = "round < (SELECT s.round FROM {t}sessions s WHERE s.scope = {t}%s.scope)"
_HISTORY = {
    "rounds": "at < ? AND " + _PAST % "rounds",
    "records": "at < ? AND " + _PAST % "records",
    "inbox": "at < ? AND taken_round IS NOT NULL",
    "events": "COALESCE(at, 0) < ? AND " + _PAST % "events",
}


def prune_page(first: str, last: str, before: float, what: Collection[str]) -> Operation[Pruned]:
    """Remove what is old of the conversations from one key to another; see `OperatorStore.prune`.

    Rows are counted by what is returned of them.
    """
    conversations = 0
    if "conversations" in what:
        conversations = yield from _delete_old(first, last, before)
    counts = dict.fromkeys(_HISTORY, 0)
    for table, is_past in _HISTORY.items():
        if ("events" if table == "events" else "records") in what:
            removed = yield Query(
                f"DELETE FROM {{t}}{table} WHERE scope >= ? AND scope <= ? AND {is_past} "
                "RETURNING 1",
                (Raw(first), Raw(last), before),
            )
            counts[table] = len(removed)
    events = counts.pop("events")
    return Pruned(sum(counts.values()), events, conversations)


def _delete_old(first: str, last: str, before: float) -> Operation[int]:
    """Delete conversations that are done, of which nobody has anything to find out."""
    yield from lock_fences()  # before any conversation's lock
    rows = yield Query(
        "SELECT scope, long_name FROM {t}sessions s WHERE scope >= ? AND scope <= ? "
        f"AND status = 'done' AND updated < ? AND NOT {LEASED} AND NOT EXISTS "
        "(SELECT 1 FROM {t}unresolved u WHERE u.scope = s.scope) AND NOT EXISTS "
        "(SELECT 1 FROM {t}inbox i WHERE i.scope = s.scope AND i.taken_round IS NULL "
        "AND i.kind <> 'decision'){lock}",
        (Raw(first), Raw(last), before),
    )
    for key, name in rows:
        yield from delete(name_of(key, name))
    return len(rows)


# --- codecs ----------------------------------------------------------------------------------

_CONTENT = {
    "sessions": ("scope", "state", "counts", "last_error"),
    "items": ("seq", "item"),
    "records": ("round, name", "value"),
    "rounds": ("round", "state", "counts", "effects"),
    "unresolved": ("round, call_id", "call"),
    "inbox": ("id", "value"),
    "events": ("seq", "event"),
}


def recode_page(key: str) -> Operation[int]:
    """Read all content of a conversation, and write it again; gives the number of rows."""
    locked = yield Query("SELECT 1 FROM {t}sessions WHERE scope = ?{lock}", (Raw(key),))
    if not locked:
        return 0  # it was deleted meanwhile
    written = 0
    for table, (ids, *columns) in _CONTENT.items():
        rows = yield Query(
            f"SELECT {ids}, {', '.join(columns)} FROM {{t}}{table} WHERE scope = ?", (Raw(key),)
        )
        for row in rows:
            yield _rewrite(table, key, ids.split(", "), columns, row)
        written += len(rows)
    return written


def _rewrite(table: str, key: str, ids: list[str], columns: list[str], row: Any) -> Query:
    where = " AND ".join([f"{name} = ?" for name in ids])
    values = [None if value is None else Content(value) for value in row[len(ids) :]]
    names = [Raw(value) if isinstance(value, str) else value for value in row[: len(ids)]]
    assignments = ", ".join([f"{column} = ?" for column in columns])
    return Query(
        f"UPDATE {{t}}{table} SET {assignments} WHERE scope = ? AND {where}",
        (*values, Raw(key), *names),
    )
