"""Questions and tasks over HTTP: the SDK's own server and its sealed states, restarts of each side
(LR25, LR28, LR32).
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import pytest
import uvicorn
from durable_toolkit import Model
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel
from tasks_toolkit import Farm

from lutumpy import Session
from lutumpy.durable import Answered, DurableLoop, MemoryStore, Waiting
from lutumpy.mcp import McpTools
from lutumpy.models import ResultBlock, ToolResults
from lutumpy.testing import Call, Reply

SCOPE = "s"
KEY = b"k" * 32
ADA = {"action": "accept", "content": {"name": "Ada"}}


class Guest(BaseModel):
    name: str


def who() -> Elicit[Guest]:
    return Elicit("Who?", Guest)


class Hotel:
    """A server that asks; each `serve` is a process of it that was started anew."""

    def __init__(self) -> None:
        self.port = 0
        self.bodies: list[str] = []
        self.headers: list[tuple[str, str | None]] = []

    def make(self, security: RequestStateSecurity) -> MCPServer:
        server = MCPServer("hotel", request_state_security=security)

        @server.tool()
        async def reserve(room: int, guest: Annotated[Guest, Resolve(who)]) -> str:
            """Reserve a room."""
            self.bodies.append(guest.name)
            return f"room {room} for {guest.name}"

        return server

    @asynccontextmanager
    async def serve(self, server: MCPServer) -> AsyncIterator[str]:
        app: Any = server.streamable_http_app()

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.headers.append((headers.get("mcp-method", ""), headers.get("mcp-name")))
            await app(scope, receive, send)

        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        uvicorn_server = uvicorn.Server(uvicorn.Config(noting, log_level="error", ws="none"))
        async with anyio.create_task_group() as group:
            group.start_soon(uvicorn_server.serve, [listener])
            for _ in range(1000):
                if uvicorn_server.started:
                    break
                await anyio.sleep(0.01)
            yield f"http://127.0.0.1:{self.port}/mcp"
            uvicorn_server.should_exit = True
        listener.close()


def loop_of(store: Any, source: McpTools, call: Call) -> DurableLoop[Any, Any]:
    script = [Reply(calls=[call]), Reply(text="There.")]
    return DurableLoop(store, Model(script), tools=source.toolset)


RESERVE = Call("reserve", {"room": 7}, id="c1")


async def new_store() -> MemoryStore:
    store = MemoryStore()
    session = Session()
    session.push_user("Please.")
    await store.create(SCOPE, session)
    return store


async def run_once(store: Any, url: str, call: Call = RESERVE, **options: Any) -> Any:
    async with McpTools(url, ask="hold", **options) as source:
        return await loop_of(store, source, call).run(SCOPE)


async def give_answer(store: Any, url: str, key: str) -> None:
    async with McpTools(url, ask="hold") as source:
        await loop_of(store, source, RESERVE).answer(SCOPE, "c1", {key: ADA}, by="ann")


def results(session: Session) -> list[ResultBlock]:
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [result for item in items for result in item.results]


@pytest.mark.slow
def test_both_sides_may_restart_between_question_and_answer_LR23_LR25() -> None:
    async def scenario() -> None:
        hotel, store = Hotel(), await new_store()
        async with hotel.serve(hotel.make(RequestStateSecurity(keys=[KEY]))) as url:
            waiting = await run_once(store, url)
            assert isinstance(waiting, Waiting)
            await give_answer(store, url, waiting.questions[0].key)
        async with hotel.serve(hotel.make(RequestStateSecurity(keys=[KEY]))) as url:
            assert isinstance(await run_once(store, url), Answered)
        assert hotel.bodies == ["Ada"]
        (result,) = results(await store.session(SCOPE))
        assert result.content == "room 7 for Ada"
        assert await store.unresolved(SCOPE) == []

    anyio.run(scenario)


@pytest.mark.slow
def test_states_of_a_server_that_lost_its_key_are_too_old_LR28() -> None:
    async def scenario() -> None:
        hotel, store = Hotel(), await new_store()
        async with hotel.serve(hotel.make(RequestStateSecurity.ephemeral())) as url:
            waiting = await run_once(store, url)
            await give_answer(store, url, waiting.questions[0].key)
        async with hotel.serve(hotel.make(RequestStateSecurity.ephemeral())) as url:
            assert isinstance(await run_once(store, url), Answered)
        assert hotel.bodies == []
        (call,) = await store.unresolved(SCOPE)
        assert call.metadata.id == "c1"

    anyio.run(scenario)


@pytest.mark.slow
def test_an_expired_state_is_too_old_and_the_call_is_not_begun_anew_LR28() -> None:
    async def scenario() -> None:
        hotel, store = Hotel(), await new_store()
        async with hotel.serve(hotel.make(RequestStateSecurity(keys=[KEY], ttl=0.001))) as url:
            waiting = await run_once(store, url)
            await give_answer(store, url, waiting.questions[0].key)
            await anyio.sleep(1.1)  # the SDK counts whole seconds
            assert isinstance(await run_once(store, url), Answered)
        assert hotel.bodies == []
        assert len(await store.unresolved(SCOPE)) == 1
        (result,) = results(await store.session(SCOPE))
        assert "may have taken effect" in str(result.content)

    anyio.run(scenario)


@pytest.mark.slow
def test_over_http_the_name_of_a_request_about_a_task_is_its_id_LR32() -> None:
    async def scenario() -> None:
        hotel, farm, store = Hotel(), Farm(interval_ms=3000), await new_store()
        render = Call("render", {"scene": "beach"}, id="c1")
        async with hotel.serve(farm.server) as url:
            assert isinstance(await run_once(store, url, render, tasks=True), Waiting)
            await anyio.sleep(3.1)
            assert isinstance(await run_once(store, url, render, tasks=True), Answered)
        assert ("tasks/get", "task 1") in hotel.headers
        assert ("tools/call", "render") in hotel.headers

    anyio.run(scenario)
