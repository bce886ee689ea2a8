"""What a store with a codec writes, and what becomes of it without its key."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from durable_toolkit import Ledger, Model, asked, call, make_loop
from stores_toolkit import claimed

from lutumpy import Hold, RunNormally
from lutumpy.durable import Answered, PostgresStore, SqliteStore, StoreError
from lutumpy.testing import Reply

SECRET = "a word that nobody guesses"


class Shifted:
    """Adds a number to each byte, in place of a cipher; the number stands in front."""

    def __init__(self, *keys: int) -> None:
        self.keys = keys

    def encode(self, content: bytes) -> bytes:
        key = self.keys[0]
        return bytes([key, *[(byte + key) % 256 for byte in content]])

    def decode(self, data: bytes) -> bytes:
        key = data[0]
        if key not in self.keys:
            raise KeyError(key)
        return bytes([(byte - key) % 256 for byte in data[1:]])


Open = Any


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store with a codec, or without one; and reads all its texts."""
    if request.param == "sqlite":
        path = tmp_path / "agent.db"

        def read() -> str:
            with closing(sqlite3.connect(path)) as connection:
                return "\n".join(connection.iterdump())

        return lambda codec: SqliteStore(path, codec=codec), read
    url, schema = request.getfixturevalue("postgres_url"), f"c{uuid4().hex[:12]}"

    def read_postgres() -> str:
        import psycopg

        texts = []
        with psycopg.connect(url) as connection:
            for table in (
                "sessions",
                "items",
                "records",
                "rounds",
                "unresolved",
                "inbox",
                "events",
            ):
                query: Any = f"SELECT t::text FROM {schema}.{table} t"
                texts += [row[0] for row in connection.execute(query).fetchall()]
        return "\n".join(texts)

    return lambda codec: PostgresStore(url, schema=schema, codec=codec), read_postgres


def hold(found: Any) -> Any:
    return Hold(SECRET) if found.metadata.id == "c2" else RunNormally()


SCRIPT = [
    Reply(calls=[call("charge", "c1", amount=1, memo=SECRET)]),
    Reply(calls=[call("look", "c2", word=SECRET), call("save", "c3", title=SECRET)]),
    Reply(text=SECRET),
]


@pytest.mark.pure
@pytest.mark.slow
async def test_nothing_that_was_said_stands_in_a_store_with_a_codec(opened: Open) -> None:
    open_store, read = opened
    async with open_store(Shifted(7)) as store:
        await store.create("s", asked())
        loop = make_loop(store, Model(SCRIPT), Ledger(), hooks=hold, events=True)
        await loop.run("s")
        (held,) = await store.held()
        edited = {"decision": "run", "input": {"word": SECRET}}
        await store.decide("s", held.digest, {"c2": edited}, by="ann")
        await store.push("s", SECRET, idempotency_key="1")
        claim = await claimed(store)
        await store.fail(claim, SECRET)
        assert (await store.scopes())[0].last_error == SECRET
        assert SECRET not in read()
        assert isinstance(await loop.run("s"), Answered)
        assert SECRET not in read()
        assert SECRET in str((await store.session("s")).dump())
        await store.fork("s", at=(1, 1), to="fork")
        assert (await store.session("fork")).dump()["items"]


async def test_keys_are_rotated(opened: Open) -> None:
    open_store, read = opened
    async with open_store(None) as store:  # it had no codec once
        await store.create("plain", asked())
    async with open_store(Shifted(7)) as store:
        await store.create("s", asked())
        loop = make_loop(store, Model(SCRIPT), Ledger(), hooks=hold, events=True)
        await loop.run("s")
        before = (await store.session("s")).dump(), await store.held(), await store.history("s")
    async with open_store(Shifted(9, 7)) as store:  # writes with the new key, reads both
        assert (await store.session("s")).dump() == before[0]
        await store.create("new", asked())
        assert await store.recode(prefix="s") > 10
        assert await store.recode() > 10
    async with open_store(Shifted(9)) as store:  # the old one is gone
        assert (await store.session("s")).dump() == before[0]
        assert (await store.held(), await store.history("s")) == before[1:]
        assert len((await store.session("plain")).transcript) == 1
        async for event in store.events("s"):
            if event.event["event"] == "RoundPlanned":
                break
    assert "go" not in [line.strip() for line in read().split('"')]


async def test_what_cannot_be_decoded_is_named(opened: Open) -> None:
    open_store, _ = opened
    async with open_store(Shifted(7)) as store:
        await store.create("s", asked())
    for codec in (Shifted(8), None):
        async with open_store(codec) as store:
            for read in (store.session("s"), store.claim("s")):
                with pytest.raises(StoreError) as raised:
                    await read
                assert raised.value.kind == "codec"
            assert [each.scope for each in await store.scopes()] == ["s"]
    async with open_store(Shifted(7)) as store:
        assert len((await store.session("s")).transcript) == 1
