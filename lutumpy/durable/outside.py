"""What comes to a store in a database from outside: messages, decisions, answers, what became of
calls, and late results.

See `operations.py` for what an operation is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.durable.checks import (
    check_decision,
    decision_id,
    held_in,
    make_late_notice,
    make_notice,
    notice_id,
)
from lutumpy.durable.columns import (
    Content,
    key_of,
    long_name_of,
    name_of,
    read,
    read_call,
    read_mapping,
    read_plan,
    write,
)
from lutumpy.durable.envelopes import Place, marker_of
from lutumpy.durable.event_rows import append_events
from lutumpy.durable.questions import AskedCall, answer_id, answer_value, asked_calls
from lutumpy.durable.refusals import no_plan, no_round, not_unresolved, unknown
from lutumpy.durable.shown import decided_event
from lutumpy.durable.tables import NOTIFY, Operation, Query, known, lock
from lutumpy.durable.types import InboxEntry
from lutumpy.execution import UnresolvedCall

__all__ = [
    "answer",
    "asked",
    "decide",
    "deliver",
    "inbox",
    "inbox_of",
    "push",
    "refused",
    "resolve",
    "resolve_late",
    "undecided_in",
    "unresolved",
]


def push(scope: str, message: Content, idempotency_key: str) -> Operation[None]:
    """See `SessionStore.push`; the message as JSON text."""
    status = (yield from lock(scope))[4]
    added = yield from _add_to_inbox(scope, f"message:{idempotency_key}", "message", None, message)
    if added and status == "done":
        yield from _open(scope)


def deliver(scope: str, call_id: str, value: Content) -> Operation[bool]:
    """See `LateStore.deliver`."""
    status = (yield from lock(scope))[4]
    added = yield from _add_to_inbox(scope, f"late:{call_id}", "late", None, value)
    if added and status in ("done", "waiting"):
        yield from _open(scope)
    return added


def _open(scope: str) -> Operation[None]:
    """There is something to do in a conversation again."""
    yield Query(
        "UPDATE {t}sessions SET status = 'open', status_since = {now}, ready_at = {now}, "
        "updated = {now} WHERE scope = ?",
        (key_of(scope),),
    )
    yield NOTIFY


def _add_to_inbox(
    scope: str, entry_id: str, kind: str, plan: str | None, value: Content
) -> Operation[bool]:
    short = key_of(entry_id)
    key = (key_of(scope), short)
    found = yield Query("SELECT 1 FROM {t}inbox WHERE scope = ? AND id = ?", key)
    if found:
        return False
    yield Query(
        "INSERT INTO {t}inbox (scope, id, long_name, seq, kind, plan, value, at) SELECT ?, ?, ?, "
        "COALESCE(MAX(seq), 0) + 1, ?, ?, ?, {now} FROM {t}inbox WHERE scope = ?",
        (*key, long_name_of(entry_id, short), kind, plan, value, key[0]),
    )
    return True


def inbox(scope: str) -> Operation[tuple[InboxEntry, ...]]:
    """See `SessionStore.inbox`."""
    plan = yield from _open_plan(scope)
    return (yield from inbox_of(scope, "" if plan is None else plan["digest"]))


def inbox_of(scope: str, digest: str) -> Operation[tuple[InboxEntry, ...]]:
    rows = yield Query(
        "SELECT id, long_name, kind, value FROM {t}inbox WHERE scope = ? AND taken_round IS NULL "
        "AND (kind IN ('message', 'notice', 'late') OR plan = ?) ORDER BY seq",
        (key_of(scope), digest),
    )
    return tuple(
        [
            InboxEntry(name_of(entry, name), kind, read_mapping(value, "entry of an inbox"))
            for entry, name, kind, value in rows
        ]
    )


def _open_plan(scope: str) -> Operation[Mapping[str, Any] | None]:
    """The plan of the open round; `None` where there is none."""
    key = key_of(scope)
    found = yield Query("SELECT round FROM {t}sessions WHERE scope = ?", (key,))
    if not found:
        raise unknown(scope)
    rows = yield Query(
        "SELECT value FROM {t}records WHERE scope = ? AND round = ? AND name = 'plan'",
        (key, found[0][0]),
    )
    return read_plan(rows[0][0]) if rows else None


def decide(scope: str, plan_digest: str, decisions: Mapping[str, Any], by: str) -> Operation[bool]:
    """See `SessionStore.decide`."""
    row = yield from lock(scope)
    status = row[4]
    plan = yield from _open_plan(scope)
    if plan is None or plan["digest"] != plan_digest:
        raise no_plan(plan_digest, scope)
    held = held_in(plan)
    for call_id, decision in decisions.items():
        check_decision(call_id, decision, held)
    all_taken = True
    events: list[Any] = []
    for call_id, decision in decisions.items():
        value = {"plan": plan_digest, "call_id": call_id, "decision": decision, "by": by}
        entry_id = decision_id(plan_digest, call_id)
        added = yield from _add_to_inbox(scope, entry_id, "decision", plan_digest, write(value))
        all_taken = all_taken and added
        if added and (yield from _is_logged(scope, row[1], call_id)):
            events.append(decided_event(plan, call_id, decision, by))
    if events:
        fence, round, _, _, _, task, task_round = row
        place = Place(max(1, task), task_round + 1)
        yield from append_events(key_of(scope), round, fence, place, events)
    undecided = yield from undecided_in(scope, plan)
    if not undecided:
        yield Query(
            "UPDATE {t}sessions SET waiting_since = NULL, updated = {now} WHERE scope = ?",
            (key_of(scope),),
        )
        if status in ("done", "waiting"):  # done with a plan: its run was stopped
            yield from _open(scope)
    return all_taken


def _is_logged(scope: str, round: int, call_id: str) -> Operation[bool]:
    """Whether the log says that a call is held: then it also says what was decided (rule W2)."""
    name = key_of(marker_of(f"CallHeld:{call_id}"))
    found = yield Query(
        "SELECT 1 FROM {t}records WHERE scope = ? AND round = ? AND name = ?",
        (key_of(scope), round, name),
    )
    return bool(found)


def undecided_in(scope: str, plan: Mapping[str, Any]) -> Operation[tuple[str, ...]]:
    """The calls of a plan that nobody has decided yet."""
    rows = yield Query(
        "SELECT value FROM {t}inbox WHERE scope = ? AND taken_round IS NULL AND plan = ? "
        "AND kind = 'decision'",
        (key_of(scope), plan["digest"]),
    )
    decided = {read_mapping(value, "decision", "call_id")["call_id"] for (value,) in rows}
    return tuple([call_id for call_id in held_in(plan) if call_id not in decided])


def asked(scope: str) -> Operation[tuple[AskedCall, ...]]:
    """See `QuestionStore.asked`."""
    waiting = yield from inbox(scope)
    rows = yield Query(
        "SELECT r.name, r.long_name, r.value FROM {t}records r JOIN {t}sessions s "
        "ON s.scope = r.scope AND s.round = r.round WHERE r.scope = ? AND r.value IS NOT NULL",
        (key_of(scope),),
    )
    records = {name_of(name, long_name): read(value) for name, long_name, value in rows}
    return asked_calls(records, waiting)


def answer(
    scope: str, call_id: str, leg: int, answers: Mapping[str, Any], by: str
) -> Operation[bool]:
    """See `QuestionStore.answer`."""
    status = (yield from lock(scope))[4]
    plan = yield from _open_plan(scope)
    if plan is None:
        raise no_round(scope)
    digest = str(plan["digest"])
    all_taken = True
    for key, chosen in answers.items():
        value = write(answer_value(digest, call_id, leg, key, chosen, by))
        entry_id = answer_id(digest, call_id, leg, key)
        added = yield from _add_to_inbox(scope, entry_id, "answer", digest, value)
        all_taken = all_taken and added
    if status in ("done", "waiting"):
        yield from _open(scope)
    return all_taken


def unresolved(scope: str) -> Operation[list[UnresolvedCall]]:
    """See `SessionStore.unresolved`."""
    yield from known(scope)
    return (yield from refused(scope, " AND decision IS NULL"))


def refused(scope: str, condition: str = "") -> Operation[list[UnresolvedCall]]:
    """The calls whose equals are refused: also those that happened, until the model was told."""
    rows = yield Query(
        f"SELECT call FROM {{t}}unresolved WHERE scope = ?{condition} ORDER BY at, round",
        (key_of(scope),),
    )
    return [read_call(call) for (call,) in rows]


def resolve(
    scope: str,
    call_id: str,
    decision: Literal["happened", "did_not_happen"],
    by: str,
    output: Any = None,
) -> Operation[None]:
    """See `OperatorStore.resolve`."""
    round, call = yield from _lock_unresolved(scope, call_id)
    if decision == "happened":
        yield from _tell(scope, call_id, round, make_notice(call, round, output, by))
    else:
        key = (key_of(scope), round, key_of(call_id))
        yield Query("DELETE FROM {t}unresolved WHERE scope = ? AND round = ? AND call_id = ?", key)


def resolve_late(scope: str, call_id: str, result: Mapping[str, Any]) -> Operation[None]:
    """See `LateStore.resolve_late`."""
    round, call = yield from _lock_unresolved(scope, call_id)
    yield from _tell(scope, call_id, round, make_late_notice(call, round, result))


def _lock_unresolved(scope: str, call_id: str) -> Operation[tuple[int, UnresolvedCall]]:
    """The round of a call whose outcome isn't known, and the call; the conversation is locked."""
    yield from lock(scope)
    found = yield Query(
        "SELECT round, call FROM {t}unresolved WHERE scope = ? AND call_id = ? "
        "AND decision IS NULL ORDER BY round",
        (key_of(scope), key_of(call_id)),
    )
    if not found:
        raise not_unresolved(call_id, scope)
    round, call = found[0]
    return round, read_call(call)


def _tell(scope: str, call_id: str, round: int, notice: Mapping[str, Any]) -> Operation[None]:
    """Leave a notice for the model.

    Equal calls are refused until the commit that tells it (`operations.commit`).
    """
    yield from _add_to_inbox(scope, notice_id(round, call_id), "notice", None, write(notice))
    yield Query(
        "UPDATE {t}unresolved SET decision = 'happened', decided_by = ? "
        "WHERE scope = ? AND round = ? AND call_id = ?",
        (notice["by"], key_of(scope), round, key_of(call_id)),
    )
