"""The tables of stores in databases, and what all operations on them share."""

# What is hard is in the tables' one lock. Every operation that writes begins with the row of its
# conversation in `sessions`, for update: so the operations of one conversation come one after
# another, and the fence that was read is the fence that holds until the end of the transaction
# (rule P4).
#
#   sessions    the head of each conversation; its state, counts, fence and lease
#   items       the committed items: appended, never changed
#   records     of each round: what was decided and done. A marker is a record without a value
#   unresolved  calls of unknown outcome that nobody has decided
#   inbox       messages and decisions from outside
#   events      of loops with `events=True`
#
# Names of tables have the prefix `{t}`, the present moment is `{now}` (seconds since 1970),
# `{lock}` locks the row that was selected, and `{key}` is text that is compared character by
# character: a database fills them in.
#
# Records, events, and what was taken of the inbox stay as history. What a round reads and writes
# must not depend on it (rule P22): each query of a round goes through a primary key, or through an
# index that has only what isn't history yet.

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lutumpy import TakenOverError
from lutumpy.durable.types import Claim, Counts
from lutumpy.errors import StoreError

__all__ = [
    "SCHEMA",
    "TABLES",
    "VERSION",
    "Operation",
    "Query",
    "Rows",
    "check",
    "check_version",
    "dump_counts",
    "items_of",
    "known",
    "load_counts",
    "lock",
    "lock_fences",
    "moment",
    "moment_or_none",
    "original",
    "prepare",
    "storable",
    "unknown",
    "write",
]

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

    def values(self) -> list[Any]:
        """The parameters as every database takes them."""
        if self.many:
            return [[*map(storable, row)] for row in self.parameters]
        return [*map(storable, self.parameters)]


Operation: TypeAlias = Generator[Query, Rows, T]

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS {t}meta (name {key} PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS {t}sessions (
        scope {key} PRIMARY KEY, items BIGINT NOT NULL, digest TEXT NOT NULL, round BIGINT NOT NULL,
        state TEXT NOT NULL, counts TEXT NOT NULL, fence BIGINT NOT NULL, lease_until {real},
        status TEXT NOT NULL, waiting_since {real}, next_event BIGINT NOT NULL,
        updated {real} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS {t}items (
        scope {key} NOT NULL, seq BIGINT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (scope, seq))""",
    """CREATE TABLE IF NOT EXISTS {t}records (
        scope {key} NOT NULL, round BIGINT NOT NULL, name {key} NOT NULL, begun_fence BIGINT,
        value TEXT, at {real} NOT NULL, PRIMARY KEY (scope, round, name))""",
    """CREATE TABLE IF NOT EXISTS {t}unresolved (
        scope {key} NOT NULL, round BIGINT NOT NULL, call_id {key} NOT NULL, call TEXT NOT NULL,
        decision TEXT, decided_by TEXT, forgotten_after BIGINT, at {real} NOT NULL,
        PRIMARY KEY (scope, round, call_id))""",
    """CREATE TABLE IF NOT EXISTS {t}inbox (
        scope {key} NOT NULL, id {key} NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, plan TEXT,
        value TEXT NOT NULL, taken_round BIGINT, at {real} NOT NULL, PRIMARY KEY (scope, id))""",
    """CREATE TABLE IF NOT EXISTS {t}events (
        scope {key} NOT NULL, seq BIGINT NOT NULL, round BIGINT NOT NULL, attempt BIGINT NOT NULL,
        delta BIGINT NOT NULL, event TEXT NOT NULL, PRIMARY KEY (scope, seq))""",
    "CREATE INDEX IF NOT EXISTS {index}waiting ON {t}sessions (waiting_since)",
    "CREATE INDEX IF NOT EXISTS {index}inbox_order ON {t}inbox (scope, seq)",
    """CREATE INDEX IF NOT EXISTS {index}inbox_open ON {t}inbox (scope, seq)
        WHERE taken_round IS NULL""",
    "CREATE INDEX IF NOT EXISTS {index}deltas ON {t}events (scope, round) WHERE delta = 1",
)
TABLES = ("items", "records", "unresolved", "inbox", "events", "sessions")


def prepare() -> Operation[None]:
    """Make the tables where they are missing, and check their version."""
    for statement in SCHEMA:
        yield Query(statement)
    yield Query(
        "INSERT INTO {t}meta (name, value) VALUES ('version', ?) ON CONFLICT (name) DO NOTHING",
        (str(VERSION),),
    )
    yield Query(
        "INSERT INTO {t}meta (name, value) VALUES ('fence', '0') ON CONFLICT (name) DO NOTHING"
    )
    yield from check_version()


def check_version() -> Operation[None]:
    """Raise `StoreError` where the tables are of another release."""
    ((version,),) = yield Query("SELECT value FROM {t}meta WHERE name = 'version'")
    if version != str(VERSION):
        raise StoreError(
            "version", f"the tables have the version {version}, this release has {VERSION}"
        )


# --- what operations share ---------------------------------------------------------------------


def lock_fences() -> Operation[int]:
    """Lock the largest fence of all conversations that were deleted, and give it.

    A conversation that replaces a deleted one begins behind it, so a claim on the deleted one can
    write nothing to the new one (rule P4). Taken before any conversation's lock.
    """
    ((fence,),) = yield Query("SELECT value FROM {t}meta WHERE name = 'fence'{lock}")
    return int(fence)


def lock(scope: str) -> Operation[tuple[Any, ...]]:
    """Lock a conversation; its fence, round, items, digest and status."""
    found = yield Query(
        "SELECT fence, round, items, digest, status FROM {t}sessions WHERE scope = ?{lock}",
        (scope,),
    )
    if not found:
        raise unknown(scope)
    return found[0]


def check(claim: Claim) -> Operation[tuple[Any, ...]]:
    """Lock a conversation whose claim has to be the last one."""
    row = yield from lock(claim.scope)
    if row[0] != claim.fence:
        raise TakenOverError(
            f"another process has taken {claim.scope!r} over: its fence is {row[0]}, this one has "
            f"{claim.fence}; nothing was written"
        )
    return row


def known(scope: str) -> Operation[None]:
    found = yield Query("SELECT 1 FROM {t}sessions WHERE scope = ?", (scope,))
    if not found:
        raise unknown(scope)


def items_of(scope: str, count: int) -> Operation[list[Any]]:
    rows = yield Query(
        "SELECT item FROM {t}items WHERE scope = ? AND seq < ? ORDER BY seq", (scope, count)
    )
    return [read(item) for (item,) in rows]


# --- values ----------------------------------------------------------------------------------

_ESCAPED = "escaped:"


def storable(value: Any) -> Any:
    """A parameter as every database takes it: a text without NUL and halves of surrogate pairs.

    Programs and models choose ids, and a model may write anything.
    """
    if not isinstance(value, str) or _is_plain(value):
        return value
    return _ESCAPED + json.dumps(value)


def _is_plain(text: str) -> bool:
    if "\0" in text or text.startswith(_ESCAPED):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def original(text: str) -> str:
    """The text that `storable` escaped; the reverse of it."""
    if not text.startswith(_ESCAPED):
        return text
    found: str = json.loads(text[len(_ESCAPED) :])
    return found


def unknown(scope: str) -> StoreError:
    return StoreError("unknown_scope", f"the store has no conversation {scope!r}")


def write(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def read(text: str) -> Any:
    """The value of a column with JSON; `StoreError` where it holds something else."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError("damaged", f"a row of the store is not JSON: {error}") from error


def dump_counts(counts: Counts) -> str:
    failures = [list(failure) for failure in counts.failures]
    return write(
        {
            "rounds": counts.rounds,
            "tokens": counts.tokens,
            "failures": failures,
            "value_retries": counts.value_retries,
        }
    )


def load_counts(text: str) -> Counts:
    data = read(text)
    try:
        failures = tuple([(tool, arguments, count) for tool, arguments, count in data["failures"]])
        # Rows of earlier releases know no retries.
        return Counts(data["rounds"], data["tokens"], failures, data.get("value_retries", 0))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError("damaged", "a row of the store holds no counts of a run") from error


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def moment_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)
