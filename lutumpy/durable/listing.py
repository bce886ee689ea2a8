"""What a store in a database lists: conversations, waiting plans, calls of unknown outcome.

See `operations.py` for what an operation is. Lists lock nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lutumpy.durable.columns import (
    LONGEST_KEY,
    Raw,
    key_of,
    moment,
    moment_or_none,
    name_of,
    read,
    read_call,
    read_plan,
)
from lutumpy.durable.outside import undecided_in
from lutumpy.durable.tables import LEASED, Operation, Query
from lutumpy.durable.types import HeldPlan, ScopeInfo, Status
from lutumpy.execution import UnresolvedCall

__all__ = ["Conditions", "held", "scopes", "unresolved_everywhere"]

_LONGEST_PREFIX = LONGEST_KEY // 2
_LAST = chr(0x10FFFF)


class Conditions:
    """The conditions of a list, with their parameters.

    Args:
        column: The column with ids of conversations.
        prefix: What they begin with; `None` for all.

    Raises:
        ValueError: the prefix is longer than 100 characters.
    """

    def __init__(self, column: str, prefix: str | None) -> None:
        self.parameters: list[Any] = []
        self._conditions = ["TRUE"]
        if prefix is not None and prefix:
            self._add_prefix(column, prefix)

    def add(self, condition: str, *parameters: Any) -> None:
        """Add a condition."""
        self._conditions.append(condition)
        self.parameters += parameters

    @property
    def sql(self) -> str:
        """All of them."""
        return " AND ".join(self._conditions)

    def _add_prefix(self, column: str, prefix: str) -> None:
        """An index finds ids by their beginning; those that are escaped begin otherwise."""
        if len(prefix) > _LONGEST_PREFIX:
            raise ValueError(f"a prefix has at most {_LONGEST_PREFIX} characters")
        between = f"({column} >= ? AND {column} <= ?)"
        escaped = _range_of("escaped:" + json.dumps(prefix)[:-1])
        if _is_text(prefix):
            plain = f"({between} AND NOT {between})"
            ranges = (*_range_of(prefix), *_range_of("escaped:"), *escaped)
            self.add(f"({plain} OR {between})", *ranges)
        else:
            self.add(between, *escaped)


def _is_text(text: str) -> bool:
    """Whether a column may hold it as it is, or something behind it."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def _range_of(prefix: str) -> tuple[Raw, Raw]:
    return Raw(prefix), Raw(prefix + _LAST * 4)


def scopes(
    status: Status | None, limit: int, after: str | None, prefix: str | None
) -> Operation[list[ScopeInfo]]:
    """See `OperatorStore.scopes`."""
    conditions = Conditions("scope", prefix)
    if status is not None:
        conditions.add("status = ?", status)
    if after is not None:
        conditions.add("scope > ?", key_of(after))
    rows = yield Query(
        "SELECT scope, long_name, status, items, round, "
        f"CASE WHEN {LEASED} THEN lease_until END, updated, created, status_since, {{now}}, "
        f"waiting_since, attempts, last_error, task FROM {{t}}sessions WHERE {conditions.sql} "
        "ORDER BY scope LIMIT ?",
        (*conditions.parameters, limit),
    )
    return [_info(row) for row in rows]


def _info(row: Sequence[Any]) -> ScopeInfo:
    scope, name, status, items, round, until, updated, created, since, now, waiting = row[:11]
    attempts, error, task = row[11:]
    since = updated if since is None else since
    return ScopeInfo(
        name_of(scope, name),
        status,
        items,
        round,
        moment_or_none(until),
        moment(updated),
        moment_or_none(created),
        moment(since),
        max(0.0, moment(now).timestamp() - moment(since).timestamp()),
        moment_or_none(waiting),
        attempts,
        None if error is None else str(read(error)),
        task,
    )


def held(
    limit: int, scope: str | None, prefix: str | None, after: HeldPlan | None
) -> Operation[list[HeldPlan]]:
    """See `OperatorStore.held`."""
    conditions = Conditions("s.scope", prefix)
    if scope is not None:
        conditions.add("s.scope = ?", key_of(scope))
    if after is not None:
        since = after.since.timestamp()
        # A moment has microseconds, the column may have more of them.
        conditions.add(
            "(s.waiting_since > ? OR (s.waiting_since > ? AND s.scope > ?))",
            since + 0.000001,
            since - 0.000001,
            key_of(after.scope),
        )
    rows = yield Query(
        "SELECT s.scope, s.long_name, s.waiting_since, r.value FROM {t}sessions s "
        "JOIN {t}records r ON r.scope = s.scope AND r.round = s.round AND r.name = 'plan' "
        f"WHERE s.waiting_since IS NOT NULL AND {conditions.sql} "
        "ORDER BY s.waiting_since, s.scope LIMIT ?",
        (*conditions.parameters, limit),
    )
    plans: list[HeldPlan] = []
    for key, name, since, value in rows:
        plan, found = read_plan(value), name_of(key, name)
        undecided = yield from undecided_in(found, plan)
        plans.append(HeldPlan(found, plan["digest"], undecided, plan, moment(since)))
    return plans


def unresolved_everywhere(limit: int, prefix: str | None) -> Operation[list[UnresolvedCall]]:
    """See `OperatorStore.unresolved`, for all conversations."""
    conditions = Conditions("u.scope", prefix)
    rows = yield Query(
        "SELECT s.scope, s.long_name, u.call FROM {t}unresolved u JOIN {t}sessions s "
        f"ON s.scope = u.scope WHERE u.decision IS NULL AND {conditions.sql} "
        "ORDER BY u.at, u.scope, u.round LIMIT ?",
        (*conditions.parameters, limit),
    )
    return [replace(read_call(call), scope=name_of(key, name)) for key, name, call in rows]
