"""Stores that an earlier version wrote are migrated, and their conversations go on.

`tests/fixtures/stores/version_N.sql` is the dump of a file of that version, as SQLite gives it. In
each of its conversations a process died or a person waits, at another place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from durable_toolkit import Ledger, Model, call, make_loop, results

from lutumpy.durable import Answered, PostgresStore, SqliteStore, StoreError, Waiting, migrations
from lutumpy.testing import Reply

STORES = Path(__file__).parents[1] / "fixtures" / "stores"
VERSIONS = [int(path.stem.partition("_")[2]) for path in sorted(STORES.glob("version_*.sql"))]
LONG_ID = "call_" + "0123456789abcdef" * 250
LONG_SCOPE = "long " + "x" * 300


def load_file(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / f"version_{version}.sql").read_text())


def load_schema(url: str, schema: str, version: int) -> None:
    """The same tables in Postgres, where keys are compared character by character."""
    import psycopg

    script = (STORES / f"version_{version}.sql").read_text()
    script = script.replace("BEGIN TRANSACTION;", f"CREATE SCHEMA {schema}; BEGIN;")
    for column in ("scope", "name", "id", "call_id"):
        script = script.replace(f" {column} TEXT ", f' {column} TEXT COLLATE "C" ')
    script = script.replace("CREATE INDEX ", "CREATE INDEX lutumpy_").replace(" REAL", " FLOAT8")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}")
        connection.execute(script)


@pytest.fixture(params=["sqlite", "postgres"])
def migrated(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Any]:
    """Opens the store of a version."""

    def open_store(version: int) -> Any:
        if request.param == "sqlite":
            load_file(tmp_path / "agent.db", version)
            return SqliteStore(tmp_path / "agent.db")
        url, schema = request.getfixturevalue("postgres_url"), f"v{uuid4().hex[:12]}"
        load_schema(url, schema, version)
        return PostgresStore(url, schema=schema)

    return open_store


def test_a_store_of_every_earlier_version_is_kept() -> None:
    assert [*range(1, migrations.VERSION)] == VERSIONS
    assert [*migrations.STEPS] == VERSIONS


async def _answer(store: Any, scope: str, script: list[Reply]) -> Ledger:
    """Go on with a conversation to its answer; what the tools did."""
    ledger = Ledger()
    answered = await make_loop(store, Model(script), ledger).run(scope)
    assert isinstance(answered, Answered)
    return ledger


@pytest.mark.parametrize("version", VERSIONS)
async def test_conversations_go_on_where_an_earlier_version_left_them(
    migrated: Callable[[int], Any], version: int
) -> None:
    async with migrated(version) as store:
        listed = await store.scopes()
        names = ["begun", "coded:z", "done", "held", LONG_SCOPE, "unresolved"]
        assert sorted([each.scope for each in listed]) == names
        assert all(each.created == each.since == each.updated for each in listed)
        # A process was killed in a `once` tool: it isn't run again.
        for scope, call_id in (("begun", "c1"), ("coded:z", LONG_ID), (LONG_SCOPE, LONG_ID)):
            ledger = await _answer(store, scope, [Reply(), Reply(text="done")])
            assert ledger.count("charge 7") == 0
            status, text = results(await store.session(scope))[0]
            assert (status, "outcome is unknown" in text) == ("error", True)
            unknown = await store.unresolved(scope)
            assert [each.metadata.id for each in unknown] == [call_id]
            await store.resolve(scope, call_id, "did_not_happen", by="ann")
        # A person had decided one of two calls.
        (held,) = await store.held()
        assert (held.scope, held.held) == ("held", ("c2",))
        waiting = await make_loop(store, Model([]), Ledger()).run("held")
        assert isinstance(waiting, Waiting)
        await store.decide("held", held.digest, {"c2": {"decision": "run"}}, by="ann")
        ledger = await _answer(store, "held", [Reply(), Reply(text="done")])
        assert ledger.done == ["charge 800"]
        # A message waits behind an answer.
        await _answer(store, "done", [*[Reply()] * 3, Reply(text="more")])
        assert [one.task for one in await store.history("done")] == [1, 1]
        # Nobody knows what became of a call; an equal one is refused until somebody says so.
        await store.push("unresolved", "again", idempotency_key="1")
        script = [*[Reply()] * 2, Reply(calls=[call("charge", "c2", amount=7)]), Reply(text="ok")]
        assert (await _answer(store, "unresolved", script)).done == []
        await store.resolve("unresolved", "c1", "happened", by="ann")
        assert [each.status for each in await store.scopes()] == ["done"] * 6
        with anyio.fail_after(10):
            async for event in store.events("done"):
                if event.event["event"] == "LoopEnded":
                    break


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    load_file(path, 1)

    def rows() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return [*connection.iterdump()]

    before = rows()
    with monkeypatch.context() as patch, SqliteStore(path) as store:
        patch.setattr(migrations, "INDEXES", ("CREATE INDEX broken ON {t}nothing (x)",))
        with pytest.raises(sqlite3.OperationalError, match="nothing"):
            anyio.run(store.scopes)
    assert rows() == before
    with SqliteStore(path) as store:
        assert len(anyio.run(store.scopes)) == 6


def test_a_later_version_says_which_releases_may_use_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"

    def use(version: str, oldest: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            for name, value in (("version", version), ("oldest", oldest)):
                connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))
        with SqliteStore(path) as store:
            anyio.run(store.scopes)

    with SqliteStore(path) as store:
        anyio.run(store.scopes)
    later = str(migrations.VERSION + 1)
    use(later, str(migrations.VERSION))
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    assert found == (later,)  # it isn't turned back
    for version, kind in ((later, "version"), ("many", "damaged")):
        with pytest.raises(StoreError) as raised:
            use(version, later)
        assert raised.value.kind == kind


async def test_who_may_not_migrate_tables_is_told_so(postgres_url: str) -> None:
    import psycopg

    load_schema(postgres_url, "old", 1)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in (
            "CREATE ROLE reader LOGIN",
            "GRANT USAGE ON SCHEMA old TO reader",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA old TO reader",
        ):
            connection.execute(statement)
    url = postgres_url.replace("tester@", "reader@")
    async with PostgresStore(url, schema="old") as store:
        with pytest.raises(StoreError, match="may not migrate") as raised:
            await store.scopes()
        assert raised.value.kind == "version"
        async with PostgresStore(postgres_url, schema="old") as owner:
            assert len(await owner.scopes()) == 6
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("GRANT SELECT ON old.rounds TO reader")
        assert len(await store.scopes()) == 6
