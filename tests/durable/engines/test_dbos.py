"""What holds on DBOS alone: what stands in its tables, its own process, SQLite."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import ANSWER, call, calls, results
from engines_toolkit import Site, skip

from lutumpy.durable import DbosRunner

pytestmark = pytest.mark.anyio

ALONE = Path(__file__).with_name("engines_alone.py")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def dbos(dbos_url: str, tmp_path: Path) -> Any:
    site = Site("dbos", dbos_url, tmp_path)
    yield site
    site.close()


async def test_calls_stand_in_the_database_as_json_with_a_marker_for_once(dbos: Site) -> None:
    import psycopg

    dbos.start_worker()
    await dbos.create()
    await dbos.run([calls(call("look", "l1", word="cat"), call("charge", "p1", amount=5)), ANSWER])
    with psycopg.connect(dbos.where) as connection:
        rows = connection.execute(
            "SELECT workflow_uuid, serialization, i.inputs, o.output FROM dbos.workflow_status"
            " JOIN dbos.workflow_input i USING (workflow_uuid)"
            " JOIN dbos.workflow_output o USING (workflow_uuid) WHERE queue_name = %s",
            (dbos.queue,),
        ).fetchall()
        steps = connection.execute(
            "SELECT function_id, function_name, serialization, output FROM dbos.operation_outputs"
            " WHERE workflow_uuid = ANY(%s) ORDER BY 1, 2",
            ([row[0] for row in rows],),
        ).fetchall()
    assert len(rows) == 2
    assert {(row[0][:5], row[1]) for row in rows} == {("call:", "portable_json")}
    tickets = [json.loads(row[2])["positionalArgs"][0] for row in rows]
    assert sorted(ticket["tool"] for ticket in tickets) == ["charge", "look"]
    outcomes = [json.loads(text) for text in [*[row[3] for row in rows], steps[1][3]]]
    assert [outcome["outcome"] for outcome in outcomes] == ["ok", "ok", "ok"]
    assert [step[1] for step in steps] == ["lutumpy.begin", "lutumpy.tool", "lutumpy.tool"]
    assert len({step[0] for step in steps}) == 2
    assert {step[2] for step in steps} == {"portable_json"}
    assert len(json.loads(steps[0][3])) == 32


async def test_a_call_that_somebody_cancels_there_ends_the_wait(dbos: Site) -> None:
    from dbos import DBOSClient

    dbos.start_worker(limit=1)
    await dbos.create()
    client = DBOSClient(system_database_url=dbos.where)
    script = [calls(call("charge", "p1", amount=20), call("charge", "p2", amount=21)), ANSWER]
    async with anyio.create_task_group() as group:
        group.start_soon(dbos.run, script)
        await dbos.notes.wait_for("charge")
        for each in await client.list_workflows_async(queue_name=dbos.queue, status="ENQUEUED"):
            await client.cancel_workflow_async(each.workflow_id)
    client.destroy()
    said = results(await dbos.store.session(dbos.scope))
    assert sorted(status for status, _ in said) == ["error", "ok"]
    assert "The tool was stopped before it gave an answer. The outcome is unknown" in str(said)


def test_arguments_that_don_t_fit_are_refused() -> None:
    pytest.importorskip("dbos", reason="the extra dbos isn't installed")
    with pytest.raises(TypeError, match="queue= is the name of a queue, not int"):
        DbosRunner(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="client= takes a DBOSClient, not str"):
        DbosRunner("q", "sqlite://")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="patience= is a number of seconds, not str"):
        DbosRunner("q", patience="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="patience=-1 is not"):
        DbosRunner("q", patience=-1)
    assert repr(DbosRunner("q")) == "<DbosRunner on the queue 'q'>"


def alone(url: str, folder: Path, *options: str) -> Any:
    """Loop and worker in one process, with its own DBOS; what it prints."""
    done = subprocess.run(
        [sys.executable, str(ALONE), url, str(folder), *options],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


async def test_the_process_s_own_dbos_runs_the_calls_of_a_loop_inside_a_workflow(
    dbos: Site,
) -> None:
    """One workflow for each round; what the loop asks is no step of it."""
    said = await anyio.to_thread.run_sync(alone, dbos.where, dbos.folder, "--workflow")
    assert said == {"said": [["ok", "charged 5"]], "steps": [], "charged": 1}


def test_dbos_runs_on_sqlite_where_that_is_new_enough(tmp_path: Path) -> None:
    if importlib.util.find_spec("dbos") is None:
        skip("the extra dbos isn't installed")
    options: list[str] = []
    if sqlite3.sqlite_version_info < (3, 42):
        if importlib.util.find_spec("pysqlite3") is None:
            pytest.skip(f"SQLite {sqlite3.sqlite_version} is too old, and there is no pysqlite3")
        options.append("--pysqlite3")
    said = alone(f"sqlite:///{tmp_path}/dbos.db", tmp_path, *options)
    assert said == {"said": [["ok", "charged 5"]], "steps": [], "charged": 1}


@pytest.mark.parametrize("wrong", ["no-dbos", "pickle"])
async def test_what_can_t_be_served_is_refused_before_it_is(dbos: Site, wrong: str) -> None:
    said = await anyio.to_thread.run_sync(alone, dbos.where, dbos.folder, f"--{wrong}")
    assert said["error"] == "EngineError"
    words = {"no-dbos": "comes after DBOS(config=...)", "pickle": "DBOSPortableJSONSerializer()"}
    assert words[wrong] in said["message"]
