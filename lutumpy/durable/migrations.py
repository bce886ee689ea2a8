"""The version of the tables, and how those of an earlier one become those of this one."""

# What a later version may do to tables that programs of the one before have open: add tables,
# indexes, and columns that have a default or may be NULL. Such a program goes on with its own
# statements, and is refused when it opens the tables anew; the row `oldest` of `meta` names the
# first version that isn't. To change the tables: raise VERSION, add a step, and keep a store of the
# version before as `tests/fixtures/stores/version_N.sql`.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.durable.columns import CODED, Raw, key_of, long_name_of, original, whole
from lutumpy.durable.tables import INDEXES, SCHEMA, Operation, Query
from lutumpy.errors import StoreError

__all__ = ["VERSION", "prepare", "version_of"]

VERSION = 2
"""The version of the tables."""
OLDEST = 2
"""The oldest version whose programs may open them."""


def prepare() -> Operation[None]:
    """Make the tables where they are missing, and turn those of earlier versions into these.

    Raises:
        StoreError: `version`: they are of a later release, which this one can't use.
    """
    yield Query(SCHEMA[0])
    version = yield from version_of()
    if version > VERSION:
        return
    for number in range(version or VERSION, VERSION):
        yield from STEPS[number]()
    for statement in (*SCHEMA, *INDEXES):
        yield Query(statement)
    yield Query(
        "INSERT INTO {t}meta (name, value) VALUES ('fence', '0') ON CONFLICT (name) DO NOTHING"
    )
    for name, value in (("version", VERSION), ("oldest", OLDEST)):
        yield Query(
            "INSERT INTO {t}meta (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, str(value)),
        )


def version_of() -> Operation[int]:
    """The version of the tables; 0 where there are none yet.

    Raises:
        StoreError: `version`: this release can't use them. `damaged`: they have none.
    """
    rows = yield Query("SELECT name, value FROM {t}meta WHERE name IN ('version', 'oldest')")
    found = {name: _number(value) for name, value in rows}
    version = found.get("version", 0)
    if version > VERSION and found.get("oldest", version) > VERSION:
        raise StoreError(
            "version", f"the tables have the version {version}, this release has {VERSION}"
        )
    return version


def _number(text: Any) -> int:
    return whole(int(text) if isinstance(text, str) and text.isdecimal() else None)


def _from_1() -> Operation[None]:
    """Version 2 has keys of bounded length, leases that say how long they are, attempts, tasks,
    and past rounds.
    """
    reals = ("created", "status_since", "lease")
    new = {
        "sessions": (
            "long_name TEXT",
            *[f"{name} {{real}}" for name in reals],
            "ready_at {real} NOT NULL DEFAULT 0",
            "attempts BIGINT NOT NULL DEFAULT 0",
            "last_error TEXT",
            "task BIGINT NOT NULL DEFAULT 0",
            "task_round BIGINT NOT NULL DEFAULT 0",
        ),
        "records": ("long_name TEXT", "tries BIGINT"),
        "inbox": ("long_name TEXT",),
        "events": ("task BIGINT", "task_round BIGINT", "at {real}"),
    }
    for table, columns in new.items():
        for column in columns:
            yield Query(f"ALTER TABLE {{t}}{table} ADD COLUMN {column}")
    yield Query("UPDATE {t}sessions SET created = updated, status_since = updated")
    # Somebody resolved them for a release that told nobody; so somebody has to say it again.
    yield Query(
        "UPDATE {t}unresolved SET decision = NULL, forgotten_after = NULL "
        "WHERE forgotten_after IS NOT NULL"
    )
    for table, column in (("records", "name"), ("inbox", "id"), ("unresolved", "call_id")):
        yield from _shorten(table, column, keeps_name=table != "unresolved")
    for table in ("items", "records", "unresolved", "inbox", "events", "sessions"):
        yield from _shorten(table, "scope", keeps_name=table == "sessions")


_LENGTH_LOOKED_AT = 170
"""Every text that needs another key has this length at least; most others haven't."""


def _shorten(table: str, column: str, *, keeps_name: bool) -> Operation[None]:
    """Turn the texts of a column into keys."""
    rows = yield Query(
        f"SELECT DISTINCT {column} FROM {{t}}{table} "
        f"WHERE length({column}) >= ? OR substr({column}, 1, ?) = ?",
        (_LENGTH_LOOKED_AT, len(CODED), Raw(CODED)),
    )
    for (stored,) in rows:
        text = original(stored)
        key = key_of(text)
        if keeps_name:
            yield Query(
                f"UPDATE {{t}}{table} SET {column} = ?, long_name = ? WHERE {column} = ?",
                (key, long_name_of(text, key), Raw(stored)),
            )
        else:
            yield Query(
                f"UPDATE {{t}}{table} SET {column} = ? WHERE {column} = ?", (key, Raw(stored))
            )


STEPS: dict[int, Callable[[], Operation[None]]] = {1: _from_1}
"""What turns the tables of each version into those of the next."""
