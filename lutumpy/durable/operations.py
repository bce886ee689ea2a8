"""What stores in a database do, statement by statement: the same for every database.

An operation is a generator: it yields a `Query`, is sent the rows, and returns what the method of
`SessionStore` gives. Whoever drives it makes one transaction of it; what it raises rolls that back.
"""

# What is hard is in the tables' one lock. Every operation that writes begins with the row of its
# conversation in `sessions`, for update: so the operations of one conversation come one after
# another, and the fence that was read is the fence that holds until the end of the transaction
# (rule P4).
#
#   sessions    where each conversation stands; its state, counts, fence and lease
#   items       the committed items: appended, never changed
#   records     of each round: what was decided and done. A marker is a record without a value
#   unresolved  calls of unknown outcome that nobody has decided
#   inbox       messages and decisions from outside
#   events      of loops with `events=True`
#
# Names of tables have the prefix `{t}`, the present moment is `{now}` (seconds since 1970), and
# `{lock}` locks the row that was selected: a database fills them in.

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from lutumpy import Session, TakenOverError
from lutumpy.durable.checks import check_decision, held_in
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
from lutumpy.models import Head

__all__ = ["SCHEMA", "VERSION", "Operation", "Query", "Rows"]

VERSION = 1
"""The version of the tables."""

T = TypeVar("T")
Rows: TypeAlias = "Sequence[tuple[Any, ...]]"


class Query(NamedTuple):
    """One statement.

    Attributes:
        sql: Its text, with `?` for parameters.
        parameters: Their values.
        many: Run it for each of `parameters`, which are lists then; it gives no rows.
    """

    sql: str
    parameters: Sequence[Any] = ()
    many: bool = False


Operation: TypeAlias = Generator[Query, Rows, T]

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS {t}meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS {t}sessions (
        scope TEXT PRIMARY KEY, items BIGINT NOT NULL, digest TEXT NOT NULL, round BIGINT NOT NULL,
        state TEXT NOT NULL, counts TEXT NOT NULL, fence BIGINT NOT NULL, lease_until {real},
        status TEXT NOT NULL, waiting_since {real}, next_event BIGINT NOT NULL,
        updated {real} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS {t}items (
        scope TEXT NOT NULL, seq BIGINT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (scope, seq))""",
    """CREATE TABLE IF NOT EXISTS {t}records (
        scope TEXT NOT NULL, round BIGINT NOT NULL, name TEXT NOT NULL, begun_fence BIGINT,
        value TEXT, at {real} NOT NULL, PRIMARY KEY (scope, round, name))""",
    """CREATE TABLE IF NOT EXISTS {t}unresolved (
        scope TEXT NOT NULL, round BIGINT NOT NULL, call_id TEXT NOT NULL, call TEXT NOT NULL,
        decision TEXT, decided_by TEXT, forgotten_after BIGINT, at {real} NOT NULL,
        PRIMARY KEY (scope, round, call_id))""",
    """CREATE TABLE IF NOT EXISTS {t}inbox (
        scope TEXT NOT NULL, id TEXT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, plan TEXT,
        value TEXT NOT NULL, taken_round BIGINT, at {real} NOT NULL, PRIMARY KEY (scope, id))""",
    """CREATE TABLE IF NOT EXISTS {t}events (
        scope TEXT NOT NULL, seq BIGINT NOT NULL, round BIGINT NOT NULL, attempt BIGINT NOT NULL,
        delta BIGINT NOT NULL, event TEXT NOT NULL, PRIMARY KEY (scope, seq))""",
    "CREATE INDEX IF NOT EXISTS {index}waiting ON {t}sessions (waiting_since)",
)
TABLES = ("items", "records", "unresolved", "inbox", "events", "sessions")


def prepare() -> Operation[None]:
    """Make the tables where they are missing.

    Raises:
        StoreError: `version`.
    """
    for statement in SCHEMA:
        yield Query(statement)
    yield Query(
        "INSERT INTO {t}meta (name, value) VALUES ('version', ?) ON CONFLICT (name) DO NOTHING",
        (str(VERSION),),
    )
    ((version,),) = yield Query("SELECT value FROM {t}meta WHERE name = 'version'")
    if version != str(VERSION):
        raise StoreError(
            "version", f"the tables have the version {version}, this release has {VERSION}"
        )


# --- conversations ---------------------------------------------------------------------------


def create(scope: str, session: Session, *, exist_ok: bool) -> Operation[None]:
    """See `SessionStore.create`."""
    head = session.head
    counts = _dump_counts(Counts(0, session.usage.total_tokens))
    made = yield Query(
        "INSERT INTO {t}sessions (scope, items, digest, round, state, counts, fence, status, "
        "next_event, updated) VALUES (?, ?, ?, 1, ?, ?, 0, 'open', 1, {now}) "
        "ON CONFLICT (scope) DO NOTHING RETURNING 1",
        (scope, head.items, head.digest, _write(session.state()), counts),
    )
    if made:
        yield _append_items(scope, 0, session.items_since(Session().head))
    elif not exist_ok:
        raise StoreError("exists", f"the store has a conversation {scope!r} already")


def _append_items(scope: str, first: int, items: Sequence[Mapping[str, Any]]) -> Query:
    rows = [(scope, first + index, _write(item)) for index, item in enumerate(items)]
    return Query("INSERT INTO {t}items (scope, seq, item) VALUES (?, ?, ?)", rows, many=True)


def load(scope: str) -> Operation[tuple[list[Any], Any]]:
    """The items and the state of a conversation."""
    found = yield Query("SELECT state, items FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise _unknown(scope)
    state, count = found[0]
    items = yield from _items_of(scope, count)
    return items, json.loads(state)


def _items_of(scope: str, count: int) -> Operation[list[Any]]:
    rows = yield Query(
        "SELECT item FROM {t}items WHERE scope = ? AND seq < ? ORDER BY seq", (scope, count)
    )
    return [json.loads(item) for (item,) in rows]


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
        ScopeInfo(scope, found, items, round, _moment_or_none(until), _moment(updated))
        for scope, found, items, round, until, updated in rows
    ]


def delete(scope: str) -> Operation[None]:
    """See `SessionStore.delete`."""
    yield from _lock(scope)
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
        raise _unknown(scope)
    count, digest, round, state, counts, fence, lease_until, now = found[0]
    if lease_until is not None and lease_until > now:
        return Taken(_moment(lease_until))
    until = now + lease
    yield Query(
        "UPDATE {t}sessions SET fence = ?, lease_until = ?, updated = ? WHERE scope = ?",
        (fence + 1, until, now, scope),
    )
    items = yield from _items_of(scope, count)
    rows = yield Query(
        "SELECT name, value FROM {t}records WHERE scope = ? AND round = ?", (scope, round)
    )
    records = {name: json.loads(value) for name, value in rows if value is not None}
    return Claim(
        scope,
        fence + 1,
        lease,
        _moment(until),
        tuple(items),
        json.loads(state),
        Head(count, digest),
        round,
        _load_counts(counts),
        records,
        frozenset([name for name, value in rows if value is None]),
        (yield from _inbox_of(scope, _digest_of(records.get("plan")))),
        tuple((yield from _refused(scope))),
    )


def renew(claim: Claim) -> Operation[None]:
    """See `SessionStore.renew`."""
    yield from _check(claim)
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


def _lock(scope: str) -> Operation[tuple[Any, ...]]:
    """Lock a conversation; its fence, round, items, digest and status."""
    found = yield Query(
        "SELECT fence, round, items, digest, status FROM {t}sessions WHERE scope = ?{lock}",
        (scope,),
    )
    if not found:
        raise _unknown(scope)
    return found[0]


def _check(claim: Claim) -> Operation[tuple[Any, ...]]:
    """Lock a conversation whose claim has to be the last one."""
    row = yield from _lock(claim.scope)
    if row[0] != claim.fence:
        raise TakenOverError(
            f"another process has taken {claim.scope!r} over: its fence is {row[0]}, this one has "
            f"{claim.fence}; nothing was written"
        )
    return row


# --- the open round --------------------------------------------------------------------------


def record(claim: Claim, name: str, text: str) -> Operation[str]:
    """See `SessionStore.record`; the value as JSON text."""
    yield from _check(claim)
    key = (claim.scope, claim.round, name)
    found = yield Query(
        "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = ?", key
    )
    if found and found[0][0] is not None:
        stands: str = found[0][0]
        return stands
    if found:  # a marker, of which this is the result
        yield Query(
            "UPDATE {t}records SET value = ?, at = {now} "
            "WHERE scope = ? AND round = ? AND name = ?",
            (text, *key),
        )
    else:
        yield Query(
            "INSERT INTO {t}records (scope, round, name, value, at) VALUES (?, ?, ?, ?, {now})",
            (*key, text),
        )
    yield from _note(claim, name, text)
    return text


def _note(claim: Claim, name: str, text: str) -> Operation[None]:
    """Keep what follows from a new record."""
    if name == "plan" and held_in(json.loads(text)):
        yield Query("UPDATE {t}sessions SET waiting_since = {now} WHERE scope = ?", (claim.scope,))
    if name.startswith("call:") and '"maybe_executed"' in text:
        value = json.loads(text)
        if value.get("outcome") == "maybe_executed":
            yield Query(
                "INSERT INTO {t}unresolved (scope, round, call_id, call, at) "
                "VALUES (?, ?, ?, ?, {now}) ON CONFLICT (scope, round, call_id) DO NOTHING",
                (
                    claim.scope,
                    claim.round,
                    value["unresolved"]["call"]["id"],
                    _write(value["unresolved"]),
                ),
            )


def begin(claim: Claim, name: str) -> Operation[bool]:
    """See `SessionStore.begin`."""
    yield from _check(claim)
    key = (claim.scope, claim.round, name)
    found = yield Query("SELECT 1 FROM {t}records WHERE scope = ? AND round = ? AND name = ?", key)
    if found:
        return False
    yield Query(
        "INSERT INTO {t}records (scope, round, name, begun_fence, at) VALUES (?, ?, ?, ?, {now})",
        (*key, claim.fence),
    )
    return True


def commit(
    claim: Claim,
    before: Head,
    items: Sequence[Mapping[str, Any]],
    after: Head,
    state: str,
    counts: Counts,
    status: Status,
    taken: Sequence[str],
) -> Operation[None]:
    """See `SessionStore.commit`."""
    _, round, count, digest, _ = yield from _check(claim)
    if (count, digest, round) != (*before, claim.round):
        raise StoreError(
            "head",
            f"{claim.scope!r} is at {count} items in round {round}, not at {before.items} in round "
            f"{claim.round}; nothing was written",
        )
    yield _append_items(claim.scope, count, items)
    yield Query(
        "UPDATE {t}sessions SET items = ?, digest = ?, round = ?, state = ?, counts = ?, "
        "status = ?, waiting_since = NULL, updated = {now} WHERE scope = ?",
        (*after, round + 1, state, _dump_counts(counts), status, claim.scope),
    )
    yield Query(
        "DELETE FROM {t}unresolved WHERE scope = ? AND forgotten_after <= ?", (claim.scope, round)
    )
    for entry_id in taken:
        yield Query(
            "UPDATE {t}inbox SET taken_round = ? WHERE scope = ? AND id = ?",
            (round, claim.scope, entry_id),
        )


# --- what comes from outside -----------------------------------------------------------------


def push(scope: str, message: str, idempotency_key: str) -> Operation[None]:
    """See `SessionStore.push`; the message as JSON text."""
    status = (yield from _lock(scope))[4]
    added = yield from _add_to_inbox(scope, f"message:{idempotency_key}", "message", None, message)
    if added and status == "done":
        yield Query(
            "UPDATE {t}sessions SET status = 'open', updated = {now} WHERE scope = ?", (scope,)
        )


def _add_to_inbox(
    scope: str, entry_id: str, kind: str, plan: str | None, value: str
) -> Operation[bool]:
    key = (scope, entry_id)
    found = yield Query("SELECT 1 FROM {t}inbox WHERE scope = ? AND id = ?", key)
    if found:
        return False
    yield Query(
        "INSERT INTO {t}inbox (scope, id, seq, kind, plan, value, at) SELECT ?, ?, "
        "COALESCE(MAX(seq), 0) + 1, ?, ?, ?, {now} FROM {t}inbox WHERE scope = ?",
        (*key, kind, plan, value, scope),
    )
    return True


def inbox(scope: str) -> Operation[tuple[InboxEntry, ...]]:
    """See `SessionStore.inbox`."""
    plan = yield from _open_plan(scope)
    return (yield from _inbox_of(scope, _digest_of(plan)))


def _inbox_of(scope: str, digest: str) -> Operation[tuple[InboxEntry, ...]]:
    rows = yield Query(
        "SELECT id, kind, value FROM {t}inbox WHERE scope = ? AND taken_round IS NULL "
        "AND (kind = 'message' OR plan = ?) ORDER BY seq",
        (scope, digest),
    )
    return tuple([InboxEntry(entry_id, kind, json.loads(value)) for entry_id, kind, value in rows])


def _open_plan(scope: str) -> Operation[Any]:
    """The plan of the open round; `None` where there is none."""
    found = yield Query("SELECT round FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise _unknown(scope)
    rows = yield Query(
        "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = 'plan'",
        (scope, found[0][0]),
    )
    return json.loads(rows[0][0]) if rows else None


def _digest_of(plan: Any) -> str:
    return str(plan["digest"]) if isinstance(plan, Mapping) else ""


def decide(scope: str, plan_digest: str, decisions: Mapping[str, Any], by: str) -> Operation[bool]:
    """See `SessionStore.decide`."""
    status = (yield from _lock(scope))[4]
    plan = yield from _open_plan(scope)
    if plan is None or plan["digest"] != plan_digest:
        raise StoreError("plan", f"no plan {plan_digest} is waiting in {scope!r}")
    held = held_in(plan)
    for call_id, decision in decisions.items():
        check_decision(call_id, decision, held)
    all_taken = True
    for call_id, decision in decisions.items():
        value = {"plan": plan_digest, "call_id": call_id, "decision": decision, "by": by}
        entry_id = f"decision:{plan_digest}:{call_id}"
        added = yield from _add_to_inbox(scope, entry_id, "decision", plan_digest, _write(value))
        all_taken = all_taken and added
    undecided = yield from _undecided(scope, plan)
    if not undecided:
        status = "open" if status == "waiting" else status
        yield Query(
            "UPDATE {t}sessions SET status = ?, waiting_since = NULL, updated = {now} "
            "WHERE scope = ?",
            (status, scope),
        )
    return all_taken


def _undecided(scope: str, plan: Mapping[str, Any]) -> Operation[tuple[str, ...]]:
    rows = yield Query(
        "SELECT value FROM {t}inbox WHERE scope = ? AND plan = ?", (scope, plan["digest"])
    )
    decided = {json.loads(value)["call_id"] for (value,) in rows}
    return tuple([call_id for call_id in held_in(plan) if call_id not in decided])


def held(limit: int, scope: str | None) -> Operation[list[HeldPlan]]:
    """See `SessionStore.held`."""
    condition, parameters = ("", ()) if scope is None else (" AND s.scope = ?", (scope,))
    rows = yield Query(
        "SELECT s.scope, s.waiting_since, r.value FROM {t}sessions s JOIN {t}records r "
        "ON r.scope = s.scope AND r.round = s.round AND r.name = 'plan' "
        f"WHERE s.waiting_since IS NOT NULL{condition} ORDER BY s.waiting_since, s.scope LIMIT ?",
        (*parameters, limit),
    )
    plans: list[HeldPlan] = []
    for name, since, value in rows:
        plan = json.loads(value)
        undecided = yield from _undecided(name, plan)
        plans.append(HeldPlan(name, plan["digest"], undecided, plan, _moment(since)))
    return plans


def unresolved(scope: str) -> Operation[list[UnresolvedCall]]:
    """See `SessionStore.unresolved`."""
    yield from _known(scope)
    return (yield from _refused(scope, " AND decision IS NULL"))


def _refused(scope: str, condition: str = "") -> Operation[list[UnresolvedCall]]:
    """The calls whose equals are refused: also those that happened, until the round is over."""
    rows = yield Query(
        f"SELECT call FROM {{t}}unresolved WHERE scope = ?{condition} ORDER BY round, at", (scope,)
    )
    return [UnresolvedCall.load(json.loads(call)) for (call,) in rows]


def _known(scope: str) -> Operation[None]:
    found = yield Query("SELECT 1 FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise _unknown(scope)


def resolve(
    scope: str, call_id: str, decision: Literal["happened", "did_not_happen"], by: str
) -> Operation[None]:
    """See `SessionStore.resolve`."""
    round = (yield from _lock(scope))[1]
    found = yield Query(
        "SELECT round FROM {t}unresolved WHERE scope = ? AND call_id = ? AND decision IS NULL "
        "ORDER BY round",
        (scope, call_id),
    )
    if not found:
        raise StoreError("decision", f"no call {call_id!r} of {scope!r} is unresolved")
    key = (scope, found[0][0], call_id)
    if decision == "happened":
        yield Query(
            "UPDATE {t}unresolved SET decision = ?, decided_by = ?, forgotten_after = ? "
            "WHERE scope = ? AND round = ? AND call_id = ?",
            (decision, by, round, *key),
        )
    else:
        yield Query("DELETE FROM {t}unresolved WHERE scope = ? AND round = ? AND call_id = ?", key)


# --- events ----------------------------------------------------------------------------------


def add_events(
    claim: Claim, events: Sequence[Mapping[str, Any]], *, drop_deltas: bool
) -> Operation[None]:
    """See `SessionStore.add_events`."""
    yield from _check(claim)
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
            _write(event),
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
    """The events of a conversation behind a number."""
    yield from _known(scope)
    rows = yield Query(
        "SELECT seq, round, attempt, event FROM {t}events WHERE scope = ? AND seq > ? ORDER BY seq",
        (scope, after),
    )
    return [
        StoredEvent(seq, round, attempt, json.loads(event)) for seq, round, attempt, event in rows
    ]


# --- values ----------------------------------------------------------------------------------


def _unknown(scope: str) -> StoreError:
    return StoreError("unknown_scope", f"the store has no conversation {scope!r}")


def _write(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _dump_counts(counts: Counts) -> str:
    failures = [list(failure) for failure in counts.failures]
    return _write({"rounds": counts.rounds, "tokens": counts.tokens, "failures": failures})


def _load_counts(text: str) -> Counts:
    data = json.loads(text)
    failures = tuple([(tool, arguments, count) for tool, arguments, count in data["failures"]])
    return Counts(data["rounds"], data["tokens"], failures)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _moment_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)
