"""What comes to a store in a database from outside: messages, decisions, and what became of calls.

See `operations.py` for what an operation is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.durable.checks import check_decision, held_in, make_notice, notice_id
from lutumpy.durable.tables import (
    Operation,
    Query,
    known,
    lock,
    moment,
    original,
    read,
    unknown,
    write,
)
from lutumpy.durable.types import HeldPlan, InboxEntry
from lutumpy.errors import StoreError
from lutumpy.execution import UnresolvedCall

__all__ = [
    "decide",
    "digest_of",
    "held",
    "inbox",
    "inbox_of",
    "push",
    "refused",
    "resolve",
    "unresolved",
]


def push(scope: str, message: str, idempotency_key: str) -> Operation[None]:
    """See `SessionStore.push`; the message as JSON text."""
    status = (yield from lock(scope))[4]
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
    return (yield from inbox_of(scope, digest_of(plan)))


def inbox_of(scope: str, digest: str) -> Operation[tuple[InboxEntry, ...]]:
    rows = yield Query(
        "SELECT id, kind, value FROM {t}inbox WHERE scope = ? AND taken_round IS NULL "
        "AND (kind IN ('message', 'notice') OR plan = ?) ORDER BY seq",
        (scope, digest),
    )
    return tuple([InboxEntry(original(entry), kind, read(value)) for entry, kind, value in rows])


def _open_plan(scope: str) -> Operation[Any]:
    """The plan of the open round; `None` where there is none."""
    found = yield Query("SELECT round FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise unknown(scope)
    rows = yield Query(
        "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = 'plan'",
        (scope, found[0][0]),
    )
    return read(rows[0][0]) if rows else None


def digest_of(plan: Any) -> str:
    return str(plan["digest"]) if isinstance(plan, Mapping) else ""


def decide(scope: str, plan_digest: str, decisions: Mapping[str, Any], by: str) -> Operation[bool]:
    """See `SessionStore.decide`."""
    status = (yield from lock(scope))[4]
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
        added = yield from _add_to_inbox(scope, entry_id, "decision", plan_digest, write(value))
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
        "SELECT value FROM {t}inbox WHERE scope = ? AND taken_round IS NULL AND plan = ?",
        (scope, plan["digest"]),
    )
    decided = {read(value)["call_id"] for (value,) in rows}
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
    for key, since, value in rows:
        plan, name = read(value), original(key)
        undecided = yield from _undecided(name, plan)
        plans.append(HeldPlan(name, plan["digest"], undecided, plan, moment(since)))
    return plans


def unresolved(scope: str) -> Operation[list[UnresolvedCall]]:
    """See `SessionStore.unresolved`."""
    yield from known(scope)
    return (yield from refused(scope, " AND decision IS NULL"))


def refused(scope: str, condition: str = "") -> Operation[list[UnresolvedCall]]:
    """The calls whose equals are refused: also those that happened, until the model was told."""
    rows = yield Query(
        f"SELECT call FROM {{t}}unresolved WHERE scope = ?{condition} ORDER BY round, at", (scope,)
    )
    return [UnresolvedCall.load(read(call)) for (call,) in rows]


def resolve(
    scope: str,
    call_id: str,
    decision: Literal["happened", "did_not_happen"],
    by: str,
    output: Any = None,
) -> Operation[None]:
    """See `OperatorStore.resolve`."""
    yield from lock(scope)
    found = yield Query(
        "SELECT round, call FROM {t}unresolved WHERE scope = ? AND call_id = ? "
        "AND decision IS NULL ORDER BY round",
        (scope, call_id),
    )
    if not found:
        raise StoreError("decision", f"no call {call_id!r} of {scope!r} is unresolved")
    round, call = found[0]
    key = (scope, round, call_id)
    if decision == "happened":
        # Equal calls are refused until the commit that tells the model (`operations.commit`).
        notice = write(make_notice(UnresolvedCall.load(read(call)), round, output, by))
        yield from _add_to_inbox(scope, notice_id(round, call_id), "notice", None, notice)
        yield Query(
            "UPDATE {t}unresolved SET decision = ?, decided_by = ? "
            "WHERE scope = ? AND round = ? AND call_id = ?",
            (decision, by, *key),
        )
    else:
        yield Query("DELETE FROM {t}unresolved WHERE scope = ? AND round = ? AND call_id = ?", key)
