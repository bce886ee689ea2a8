"""Lets the tests here import what they share, and runs each with every form of the loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from durable_toolkit import FORMS, Form
from every_api import APIS
from postgres_server import serve_postgres, why_not

from lutumpy.durable import MemoryStore, PostgresStore, SqliteStore

KINDS = ["memory", "sqlite", "postgres"]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    """`run` under asyncio and trio, and `run_sync`, all called alike."""
    return Form(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """An async library."""
    name: str = request.param
    return name


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """One API of the table."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with serve_postgres() as url:
        yield url


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens the store under test; each call opens the same conversations."""
    opened: list[Any] = []
    memory = MemoryStore()
    schema = f"s{uuid4().hex[:12]}"
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def open_store() -> Any:
        if request.param == "memory":
            return memory
        if request.param == "sqlite":
            store: Any = SqliteStore(tmp_path / "agent.db")
        else:
            store = PostgresStore(url, schema=schema)
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(make: Callable[[], Any]) -> Any:
    return make()
