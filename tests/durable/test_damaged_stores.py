"""A column that holds something else than was written there: whoever reads it is told so."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import Ledger, Model, asked, call, make_loop
from stores_toolkit import claimed, result_of

from lutumpy import Hold, LutumpyError, RunNormally
from lutumpy.durable import SqliteStore, StoreError
from lutumpy.testing import Reply

TEXTS = ["{", "[7]", '{"a": 1}']
NUMBERS = ["junk"]
COLUMNS = {
    "sessions": ["state", "counts", "last_error", "digest"],
    "items": ["item"],
    "records": ["value"],
    "rounds": ["state", "counts", "effects", "digest"],
    "unresolved": ["call"],
    "inbox": ["value"],
    "events": ["event"],
}
NUMERIC = {
    "sessions": [
        *("items", "round", "fence", "lease_until", "lease", "waiting_since", "next_event"),
        *("updated", "created", "status_since", "attempts", "task", "task_round"),
    ],
    "records": ["tries"],
    "rounds": ["task", "items", "at"],
    "meta": ["value"],
}


async def _write_store(path: Path) -> None:
    """A conversation that has something in every table and column."""
    async with SqliteStore(path) as store:
        await store.create("s", asked())
        script = [
            Reply(calls=[call("charge", "c1", amount=1)]),
            Reply(calls=[call("charge", "c2", amount=2), call("charge", "c3", amount=3)]),
        ]
        loop = make_loop(
            store,
            Model(script),
            Ledger(),
            hooks=lambda found: Hold() if found.arguments["amount"] > 1 else RunNormally(),
            events=True,
        )
        await loop.run("s")
        (held,) = await store.held()
        await store.decide("s", held.digest, {"c2": {"decision": "run"}}, by="ann")
        await store.push("s", "hello", idempotency_key="x" * 300)
        claim = await claimed(store)
        await store.record(claim, "call:x", result_of("x"))
        await store.begin(claim, "call:" + "y" * 300)
        await store.count_try(claim, "call:z")
        await store.fail(claim, "no")


def _uses(store: SqliteStore) -> Sequence[Callable[[], Awaitable[Any]]]:
    before = datetime(2000, 1, 1, tzinfo=timezone.utc)

    async def follow() -> None:
        with anyio.move_on_after(0.01):
            async for _ in store.events("s"):
                pass

    return [
        lambda: store.session("s"),
        lambda: store.scopes(),
        lambda: store.held(),
        lambda: store.inbox("s"),
        lambda: store.unresolved("s"),
        lambda: store.unresolved(),
        lambda: store.history("s"),
        lambda: store.fork("s", at=(1, 1), to="fork"),
        lambda: store.next(),
        lambda: store.prune(before=before),
        lambda: store.resolve("s", "x", "happened", by="ann"),
        lambda: store.push("s", "more", idempotency_key="2"),
        lambda: store.decide("s", "sha256:0", {}, by="ann"),
        follow,
        lambda: make_loop(store, Model([Reply()] * 3), Ledger()).run("s"),
        lambda: store.break_lease("s", by="ann"),
        lambda: store.delete("s"),
    ]


@pytest.mark.pure
@pytest.mark.slow
def test_what_is_no_content_is_a_named_error_whoever_reads_it(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "agent.db"
    anyio.run(_write_store, whole)
    found: dict[str, set[str]] = {}

    async def use(where: str) -> None:
        async with SqliteStore(path, synchronous="NORMAL") as store:
            for each in _uses(store):
                try:
                    await each()
                except LutumpyError as error:
                    kind = error.kind if isinstance(error, StoreError) else type(error).__name__
                    found.setdefault(where, set()).add(str(kind))

    cases = [
        (table, column, value)
        for tables, values in ((COLUMNS, TEXTS), (NUMERIC, NUMBERS))
        for table, columns in tables.items()
        for column in columns
        for value in values
    ]
    for table, column, value in cases:
        shutil.copy(whole, path)
        with closing(sqlite3.connect(path)) as connection, connection:
            changed = connection.execute(f"UPDATE {table} SET {column} = ?", (value,)).rowcount
        assert changed, (table, column)
        anyio.run(use, f"{table}.{column}")
    named = {where for where, kinds in found.items() if "damaged" in kinds}
    assert named >= {f"{table}.{column}" for table in COLUMNS for column in COLUMNS[table]} - {
        "sessions.digest",  # any text is one: the commit finds that it isn't its own
        "rounds.digest",
        "items.item",  # the session says it
    }
    assert found["items.item"]


@pytest.mark.parametrize("junk", [{"calls": [7]}, {"digest": "x"}, {"digest": 7, "calls": []}])
async def test_a_plan_that_is_none_is_named_in_every_list(tmp_path: Path, junk: Any) -> None:
    await _write_store(tmp_path / "agent.db")
    with closing(sqlite3.connect(tmp_path / "agent.db")) as connection, connection:
        connection.execute("UPDATE records SET value = ? WHERE name = 'plan'", (json.dumps(junk),))
    async with SqliteStore(tmp_path / "agent.db") as store:
        for read in (store.held(), store.inbox("s"), store.claim("s")):
            with pytest.raises(StoreError) as raised:
                await read
            assert raised.value.kind == "damaged"
