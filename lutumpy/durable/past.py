"""Past rounds in a database: where a conversation was after each, and going back to one.

See `operations.py` for what an operation is.
"""

# Behind every commit a row of `rounds` keeps where the conversation is, and the calls of the
# round whose effects must not be repeated: `once` calls that were begun, and idempotent ones that
# ran, since their keys are those of this conversation. A conversation that goes on from an earlier
# round holds the effects of all later ones for calls of unknown outcome. So an equal call is
# refused there, by the same rule P8, until somebody says that it may be run.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.durable.checks import first_status
from lutumpy.durable.columns import (
    Content,
    damaged,
    key_of,
    load_counts,
    long_name_of,
    moment,
    original,
    read,
    read_call,
    read_plan,
    whole,
    write,
)
from lutumpy.durable.refusals import exists, no_past_round
from lutumpy.durable.tables import NOTIFY, Operation, Query, Rows, known, lock, lock_fences
from lutumpy.durable.types import PastRound
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head
from lutumpy.tools import ticket_in_plan

__all__ = ["calls_with_effects", "fork", "history", "keep_round"]


def keep_round(
    key: str,
    round: int,
    task: int,
    task_round: int,
    head: Head,
    state: Content,
    counts: Content,
    records: Rows | None,
) -> Operation[None]:
    """Keep where a conversation is after a round.

    Args:
        key: The conversation.
        round: The number of the round in it; 0 for its beginning.
        task: Which task the next request belongs to, from 1.
        task_round: How many rounds of that task there were.
        head: Its head.
        state: Its state.
        counts: What limits are held against.
        records: Name, fence of the marker and plan of each record of the round.
    """
    effects = _effects(records or ())
    yield Query(
        "INSERT INTO {t}rounds (scope, round, task, task_round, items, digest, state, counts, "
        "effects, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {now}) "
        "ON CONFLICT (scope, round) DO NOTHING",
        (key, round, task, task_round, *head, state, counts, effects),
    )


def _effects(records: Rows) -> Content | None:
    """The calls of a round that had effects, as content; `None` where none did."""
    named = {original(name): fence for name, fence, _ in records}
    called = {name: fence for name, fence in named.items() if name.startswith("call:")}
    plan = next((value for _, _, value in records if value is not None), None)
    if not called or plan is None:
        return None
    begun = any(fence is not None for fence in called.values())
    if not begun and '"idempotent"' not in plan:
        return None  # as most rounds; a plan is long
    calls = calls_with_effects(
        read_plan(plan),
        begun={name for name, fence in called.items() if fence is not None},
        recorded={*called},
    )
    return write([call.dump() for call in calls]) if calls else None


def calls_with_effects(
    plan: Mapping[str, Any], *, begun: set[str], recorded: set[str]
) -> list[UnresolvedCall]:
    """The calls of a plan whose effects may have taken place.

    Args:
        plan: The plan, as it was recorded.
        begun: The keys of the records with a marker.
        recorded: Those of all records.
    """
    found: list[UnresolvedCall] = []
    for call in plan["calls"]:
        effect, key = call.get("effect"), key_of(f"call:{call['call_id']}")
        has_effect = key in begun or (effect == "idempotent" and key in recorded)
        if has_effect and "key" in call:
            ticket = ticket_in_plan(plan, call)
            found.append(UnresolvedCall(ticket.scope, ticket.metadata, ticket.equal_to))
    return found


def history(scope: str, after: int, limit: int) -> Operation[list[PastRound]]:
    """See `OperatorStore.history`."""
    yield from known(scope)
    rows = yield Query(
        "SELECT round, task, task_round, items, effects, at FROM {t}rounds "
        "WHERE scope = ? AND round > ? ORDER BY round LIMIT ?",
        (key_of(scope), after, limit),
    )
    return [
        PastRound(task, task_round, round, items, tuple(_read_effects(scope, effects)), moment(at))
        for round, task, task_round, items, effects, at in rows
    ]


def _read_effects(scope: str, effects: Any) -> list[UnresolvedCall]:
    listed = [] if effects is None else read(effects)
    if not isinstance(listed, list):
        raise damaged("list of calls")
    return [replace(read_call(write(each)), scope=scope) for each in listed]


def fork(scope: str, at: tuple[int, int], to: str) -> Operation[None]:
    """See `OperatorStore.fork`."""
    fence = yield from lock_fences()
    yield from lock(scope)
    key, new = key_of(scope), key_of(to)
    found = yield Query(
        "SELECT round, items, digest, state, counts FROM {t}rounds "
        "WHERE scope = ? AND task = ? AND task_round = ? ORDER BY round DESC LIMIT 1",
        (key, *at),
    )
    if not found:
        raise no_past_round(scope, at)
    round, items, digest, state, counts = found[0]
    read(state)
    load_counts(counts)
    inserted = yield Query(
        "INSERT INTO {t}sessions (scope, long_name, items, digest, round, state, counts, fence, "
        "status, next_event, updated, created, status_since, ready_at, task, task_round) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, {now}, {now}, {now}, {now}, ?, ?) "
        "ON CONFLICT (scope) DO NOTHING RETURNING 1",
        (
            *(new, long_name_of(to, new), items, digest, round + 1),
            *(Content(state), Content(counts), fence, first_status(at[0]), *at),
        ),
    )
    if not inserted:
        raise exists(to)
    yield Query(
        "INSERT INTO {t}items (scope, seq, item) SELECT ?, seq, item FROM {t}items "
        "WHERE scope = ? AND seq < ?",
        (new, key, items),
    )
    yield Query(
        "INSERT INTO {t}rounds (scope, round, task, task_round, items, digest, state, counts, "
        "effects, at) SELECT ?, round, task, task_round, items, digest, state, counts, effects, at "
        "FROM {t}rounds WHERE scope = ? AND round <= ?",
        (new, key, round),
    )
    calls = yield from _later_effects(scope, whole(round))
    yield Query(
        "INSERT INTO {t}unresolved (scope, round, call_id, call, at) VALUES (?, ?, ?, ?, {now})",
        [
            (new, number, key_of(call.metadata.id), write(replace(call, scope=to).dump()))
            for number, call in calls
        ],
        many=True,
    )
    yield NOTIFY


def _later_effects(scope: str, round: int) -> Operation[list[tuple[int, UnresolvedCall]]]:
    """The effects that a conversation had behind a round, and those whose outcome isn't known.

    Their rounds are negative: the new conversation has rounds of its own with these numbers.
    """
    key = key_of(scope)
    found: dict[tuple[int, str], UnresolvedCall] = {}
    unknown = yield Query(
        "SELECT round, call FROM {t}unresolved WHERE scope = ? ORDER BY round", (key,)
    )
    for number, text in unknown:
        call = read_call(text)
        found[-abs(number) - 1, call.metadata.id] = call
    rows = yield Query(
        "SELECT round, effects FROM {t}rounds WHERE scope = ? AND round > ? "
        "AND effects IS NOT NULL ORDER BY round",
        (key, round),
    )
    for number, text in rows:
        for call in _read_effects(scope, text):
            found[-abs(number) - 1, call.metadata.id] = call
    open_round = yield Query(
        "SELECT r.round, r.name, r.begun_fence, r.value FROM {t}records r JOIN {t}sessions s "
        "ON s.scope = r.scope AND s.round = r.round WHERE r.scope = ?",
        (key,),
    )
    values: dict[str, Any] = {original(name): value for _, name, _, value in open_round}
    if "plan" in values:
        begun = {original(name) for _, name, fence, _ in open_round if fence is not None}
        plan = read_plan(values["plan"])
        for call in calls_with_effects(plan, begun=begun, recorded={*values}):
            found[-abs(open_round[0][0]) - 1, call.metadata.id] = call
    return [(number, call) for (number, _), call in found.items()]
