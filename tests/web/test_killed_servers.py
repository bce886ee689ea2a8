"""Servers killed with SIGKILL while they are watched: watchers of other processes end equal (W4).

The servers are processes of `killed_server.py`, over one file of SQLite. The first one kills itself
before or after a numbered write; the second one has watchers all the time, and nobody tells it that
the first one is gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from profiles import PROFILE
from test_starlette import answered, said
from web_toolkit import ChatClient

if sys.platform == "win32":
    pytest.skip("processes are stopped by signals", allow_module_level=True)

SCRIPT = Path(__file__).with_name("killed_server.py")
SCOPE = "c1"
POINTS = range(3, 60) if PROFILE == "thorough" else (12, 42)
"""The writes at which a server is killed: all that there are, and more, in the session `kills`;
before and at the question in the suite, since a trial starts two interpreters.
"""
SECONDS = 60.0


class Killed(Exception):
    """The server is gone, or was when it was asked."""


class Server:
    """A server process."""

    def __init__(self, folder: Path, at: int) -> None:
        arguments = [str(SCRIPT), str(folder / "chats.db"), str(folder / "trail"), str(at)]
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=SCRIPT.parent,
        )
        assert self.process.stdout is not None
        self.address = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def was_killed(self) -> bool:
        return self.process.poll() is not None

    async def post(self, body: Any) -> bytes:
        async with httpx2.AsyncClient(base_url=self.address, timeout=SECONDS) as client:
            try:
                response = await client.post("/chat", content=json.dumps(body))
            except httpx2.TransportError as error:
                raise Killed from error
        assert response.status_code == 200, response.text
        return response.content

    async def get(self, path: str) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=self.address, timeout=SECONDS) as client:
            return await client.get(path)


@asynccontextmanager
async def two_servers(folder: Path, at: int) -> AsyncIterator[tuple[Server, Server]]:
    first = await anyio.to_thread.run_sync(Server, folder, at)
    second = await anyio.to_thread.run_sync(Server, folder, 0)
    try:
        yield first, second
    finally:
        first.close()
        second.close()


async def watch(server: Server, ended: Callable[[ChatClient], bool]) -> ChatClient:
    """What a browser has that comes again until something has come."""
    client = ChatClient()
    while not ended(client):
        response = await server.get(f"/chat/{SCOPE}/stream")
        if response.status_code == 204:
            await anyio.sleep(0.05)
            continue
        client.read(response.content, replay=True)
        await anyio.sleep(0.05)
    return client


async def watch_events(server: Server, names: list[str]) -> None:
    """The log, from its beginning on, until the conversation has ended."""
    async with httpx2.AsyncClient(base_url=server.address, timeout=SECONDS) as client:
        while True:
            async with client.stream("GET", f"/events/{SCOPE}") as response:
                if response.status_code == 404:  # nobody has said anything yet
                    await anyio.sleep(0.05)
                    continue
                async for line in response.aiter_lines():
                    if line.startswith("event: "):
                        names.append(line.removeprefix("event: "))
                    if names and names[-1] == "LoopEnded":
                        return


def is_held(client: ChatClient) -> bool:
    return "approval-requested" in json.dumps(client.message) and client.finished is not None


def is_done(client: ChatClient) -> bool:
    return "a longer answer" in json.dumps(client.message) and client.finished is not None


async def attempt(folder: Path, at: int) -> bool:
    """A conversation whose first server is killed at a point; gives whether it was."""
    names: list[str] = []
    watching: list[ChatClient] = []
    async with two_servers(folder, at) as (first, second):

        async def watch_all() -> None:
            watching.append(await watch(second, is_done))

        async with anyio.create_task_group() as group:
            group.start_soon(watch_events, second, names)
            group.start_soon(watch_all)
            mine = await talk(first, second)
        late = await watch(second, is_done)
        shown = (await second.get(f"/chat/{SCOPE}/messages")).json()
        was_killed = first.was_killed
    assert mine.message == late.message == watching[0].message == shown[-1]
    assert len(shown) == 2
    assert names.count("CallHeld") == 1
    # What may run again may have begun twice, where its server was killed meanwhile.
    ran = (folder / "trail").read_text(encoding="utf-8").split()
    assert {*ran} == {"look", "pay"}
    assert ran.count("pay") <= 2
    return was_killed


async def talk(first: Server, second: Server) -> ChatClient:
    """A message and an approval, sent to the first server as long as there is one."""
    mine = ChatClient()
    try:
        mine.read(await first.post(said()))
    except Killed:
        # Whether it came, a client can't know: it sends it again, with the same id.
        mine.read(await second.post(said()))
    assert is_held(mine)
    try:
        mine.read(await first.post(answered(mine, True)))
    except Killed:
        mine = await watch(second, lambda client: is_held(client) or is_done(client))
        if is_held(mine):  # the answer was lost
            mine.read(await second.post(answered(mine, True)))
    return mine


@pytest.mark.parametrize("at", POINTS)
async def test_watchers_of_another_process_end_equal_when_a_server_is_killed_W4_W11(
    at: int, tmp_path: Path
) -> None:
    with anyio.fail_after(3 * SECONDS):
        was_killed = await attempt(tmp_path, at)
    assert was_killed or at > 25


async def test_without_a_kill_the_same_is_seen(tmp_path: Path) -> None:
    with anyio.fail_after(3 * SECONDS):
        assert not await attempt(tmp_path, 0)
