"""The processes: workers, the web service, and a hotel with an MCP server that asks its guests."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field

from .desk import opened
from .service import make_service


class Guest(BaseModel):
    name: str = Field(min_length=2)


def ask_guest() -> Elicit[Guest]:
    return Elicit("In which name?", Guest)


def make_hotel() -> MCPServer:
    hotel = MCPServer("hotel", log_level="ERROR")

    @hotel.tool()
    async def reserve(nights: int, guest: Annotated[Guest, Resolve(ask_guest)]) -> str:
        """Reserve a room."""
        return f"{nights} nights for {guest.name}"

    return hotel


async def serve(app: Any) -> None:
    """Serve on a free port, and print the address."""
    config = uvicorn.Config(app, log_level="error", ws="none")
    with socket.create_server(("127.0.0.1", 0)) as door:
        print(f"http://127.0.0.1:{door.getsockname()[1]}", flush=True)
        await uvicorn.Server(config).serve(sockets=[door])


async def run_hotel() -> None:
    await serve(make_hotel().streamable_http_app())


async def run_service(file: Path, model: str, hotel: str) -> None:
    """The service is the visa office, too, so it has to know no address of one."""
    await serve(make_service(file, model, hotel, office=""))


async def run_worker(file: Path, model: str, hotel: str, office: str) -> None:
    """Go on with whatever waits for a process, for ever."""
    async with opened(file, model, hotel, office) as (store, loop):
        print("ready", flush=True)
        async for scope in store.watch(poll=0.1):
            await loop.run(scope)
