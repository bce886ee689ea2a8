"""The tables of stores in databases, and what all operations on them share."""

# What is hard is in the tables' one lock. Every operation that writes begins with the row of its
# conversation in `sessions`, for update: so the operations of one conversation come one after
# another, and the fence that was read is the fence that holds until the end of the transaction
# (rule P4).
#
#   sessions    the head of each conversation; its state, counts, fence and lease
#   items       the committed items: appended, never changed
#   records     of the open round: what was decided and done. A marker is a record without a value
#   rounds      past rounds: where the conversation was after each, and its calls with effects
#   unresolved  calls of unknown outcome that nobody has decided
#   inbox       messages and decisions from outside
#   events      of loops with `events=True`
#
# Names of tables have the prefix `{t}`, the present moment is `{now}` (seconds since 1970),
# `{lock}` locks the row that was selected, and `{key}` is text that is compared character by
# character: a database fills them in.
#
# Past rounds, events, and what was taken of the inbox stay as history. What a round reads and
# writes must not depend on it (rule P22): each query of a round goes through a primary key, or
# through an index that has only what isn't history yet. Records go with the commit of their round:
# all that is needed of them is in the items then, or in `rounds`.
#
# A column that a later version added has a default or may be NULL: a program of the version before,
# which has its tables open while they are migrated, goes on writing to them (`migrations.py`).

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lutumpy.durable.checks import LONGEST_LEASE
from lutumpy.durable.codecs import Codec, as_stored
from lutumpy.durable.columns import key_of, read, whole
from lutumpy.durable.refusals import taken_over, unknown
from lutumpy.durable.types import Claim

__all__ = [
    "INDEXES",
    "LEASED",
    "NOTIFY",
    "SCHEMA",
    "SET_STATUS",
    "TABLES",
    "Operation",
    "Query",
    "Rows",
    "check",
    "is_believed",
    "items_of",
    "known",
    "lock",
    "lock_fences",
]

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

    def values(self, codec: Codec | None = None) -> list[Any]:
        """The parameters as every database takes them, content encoded."""
        if self.many:
            return [[as_stored(value, codec) for value in row] for row in self.parameters]
        return [as_stored(value, codec) for value in self.parameters]


Operation: TypeAlias = Generator[Query, Rows, T]

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS {t}meta (name {key} PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS {t}sessions (
        scope {key} PRIMARY KEY, items BIGINT NOT NULL, digest TEXT NOT NULL, round BIGINT NOT NULL,
        state TEXT NOT NULL, counts TEXT NOT NULL, fence BIGINT NOT NULL, lease_until {real},
        status TEXT NOT NULL, waiting_since {real}, next_event BIGINT NOT NULL,
        updated {real} NOT NULL, long_name TEXT, created {real}, status_since {real}, lease {real},
        ready_at {real} NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT 0, last_error TEXT,
        task BIGINT NOT NULL DEFAULT 0, task_round BIGINT NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS {t}items (
        scope {key} NOT NULL, seq BIGINT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (scope, seq))""",
    """CREATE TABLE IF NOT EXISTS {t}records (
        scope {key} NOT NULL, round BIGINT NOT NULL, name {key} NOT NULL, begun_fence BIGINT,
        value TEXT, at {real} NOT NULL, long_name TEXT, tries BIGINT,
        PRIMARY KEY (scope, round, name))""",
    """CREATE TABLE IF NOT EXISTS {t}rounds (
        scope {key} NOT NULL, round BIGINT NOT NULL, task BIGINT NOT NULL,
        task_round BIGINT NOT NULL, items BIGINT NOT NULL, digest TEXT NOT NULL,
        state TEXT NOT NULL, counts TEXT NOT NULL, effects TEXT, at {real} NOT NULL,
        PRIMARY KEY (scope, round))""",
    # `forgotten_after` is written by nobody; programs of version 1 name it in a statement.
    """CREATE TABLE IF NOT EXISTS {t}unresolved (
        scope {key} NOT NULL, round BIGINT NOT NULL, call_id {key} NOT NULL, call TEXT NOT NULL,
        decision TEXT, decided_by TEXT, forgotten_after BIGINT, at {real} NOT NULL,
        PRIMARY KEY (scope, round, call_id))""",
    """CREATE TABLE IF NOT EXISTS {t}inbox (
        scope {key} NOT NULL, id {key} NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, plan TEXT,
        value TEXT NOT NULL, taken_round BIGINT, at {real} NOT NULL, long_name TEXT,
        PRIMARY KEY (scope, id))""",
    """CREATE TABLE IF NOT EXISTS {t}events (
        scope {key} NOT NULL, seq BIGINT NOT NULL, round BIGINT NOT NULL, attempt BIGINT NOT NULL,
        delta BIGINT NOT NULL, event TEXT NOT NULL, task BIGINT, task_round BIGINT, at {real},
        PRIMARY KEY (scope, seq))""",
)
INDEXES = (
    "CREATE INDEX IF NOT EXISTS {index}waiting ON {t}sessions (waiting_since)",
    "CREATE INDEX IF NOT EXISTS {index}inbox_order ON {t}inbox (scope, seq)",
    """CREATE INDEX IF NOT EXISTS {index}inbox_open ON {t}inbox (scope, seq)
        WHERE taken_round IS NULL""",
    "CREATE INDEX IF NOT EXISTS {index}deltas ON {t}events (scope, round) WHERE delta = 1",
    "CREATE INDEX IF NOT EXISTS {index}ready ON {t}sessions (ready_at) WHERE status = 'open'",
    "CREATE INDEX IF NOT EXISTS {index}by_status ON {t}sessions (status, scope)",
    """CREATE INDEX IF NOT EXISTS {index}unresolved_open ON {t}unresolved (at, scope)
        WHERE decision IS NULL""",
)
TABLES = ("items", "records", "rounds", "unresolved", "inbox", "events", "sessions")

_SECONDS_OF_DOUBT = 60
LEASED = (
    "(lease_until IS NOT NULL AND lease_until > {now} AND lease_until <= "
    f"{{now}} + COALESCE(lease, {LONGEST_LEASE}) + {_SECONDS_OF_DOUBT})"
)
"""The condition that a lease runs; see `is_believed`."""

SET_STATUS = (
    "status_since = CASE WHEN COALESCE(?, status) = status THEN status_since ELSE {now} END, "
    "status = COALESCE(?, status)"
)
"""Sets a status that is given twice, `None` for the one that is there."""
NOTIFY = Query("{notify}")
"""Says to whoever watches, at the end of the transaction, that something may be gone on with."""


def is_believed(until: float | None, lease: float | None, now: float) -> bool:
    """Whether a lease runs, by the clock of the store.

    One that ends further off than it is long was written by a clock that ran ahead, and isn't
    believed: leases only save work, and the fence keeps whoever has it from writing (rule P4).
    """
    if until is None or until <= now:
        return False
    return until <= now + (LONGEST_LEASE if lease is None else lease) + _SECONDS_OF_DOUBT


# --- what operations share ---------------------------------------------------------------------


def lock_fences() -> Operation[int]:
    """Lock the largest fence of all conversations that were deleted, and give it.

    A conversation that replaces a deleted one begins behind it, so a claim on the deleted one can
    write nothing to the new one (rule P4). Taken before any conversation's lock.
    """
    ((fence,),) = yield Query("SELECT value FROM {t}meta WHERE name = 'fence'{lock}")
    return whole(read(fence))


def lock(scope: str) -> Operation[tuple[Any, ...]]:
    """Lock a conversation; its fence, round, items, digest, status, task and round in it."""
    found = yield Query(
        "SELECT fence, round, items, digest, status, task, task_round FROM {t}sessions "
        "WHERE scope = ?{lock}",
        (key_of(scope),),
    )
    if not found:
        raise unknown(scope)
    return found[0]


def check(claim: Claim) -> Operation[tuple[Any, ...]]:
    """Lock a conversation whose claim has to be the last one."""
    row = yield from lock(claim.scope)
    if row[0] != claim.fence:
        raise taken_over(claim, row[0])
    return row


def known(scope: str) -> Operation[None]:
    found = yield Query("SELECT 1 FROM {t}sessions WHERE scope = ?", (key_of(scope),))
    if not found:
        raise unknown(scope)


def items_of(scope: str, count: int) -> Operation[list[Any]]:
    rows = yield Query(
        "SELECT item FROM {t}items WHERE scope = ? AND seq < ? ORDER BY seq",
        (key_of(scope), count),
    )
    return [read(item) for (item,) in rows]
