"""What McpTools adds to a call of an MCP server: beside the bare SDK, in this process and over
streamable HTTP without a socket.

The bare side calls the tool by the SDK's client. Ours reads the call as a model wrote it, runs it
through McpTools, and makes the result; with the executor between them in the last row. Both take
turns in one run; the best time of each counts.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from lutumpy import ToolMetadata
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpTools

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}
ARGUMENTS = '{"path": "some/file", "limit": 3}'


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="read", input_schema=SCHEMA)])


async def call_tool(context: Any, params: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="the text of the file")])


def make_server() -> Server[Any]:
    return Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)


Ways = dict[str, Callable[[], Coroutine[Any, Any, Any]]]


async def best_times(ways: Ways, rounds: int, calls: int) -> dict[str, float]:
    """The best seconds for one call in each way; the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            gc.collect(0)
            began = time.perf_counter()
            for _ in range(calls):
                await way()
            times[name].append((time.perf_counter() - began) / calls)
    return {name: min(found) for name, found in times.items()}


async def measure(client: Client, source: McpTools, rounds: int, calls: int) -> dict[str, float]:
    """The bare client, McpTools, and McpTools with an executor."""
    await client.list_tools()
    dispatch = Dispatcher(source.toolset)
    executor = ToolExecutor()
    arguments = {"path": "some/file", "limit": 3}

    async def bare() -> Any:
        return await client.call_tool("read", arguments)

    async def ours() -> Any:
        call = source.toolset.parse(ToolMetadata("c1", "read", ARGUMENTS))
        return call.complete(await call.call())

    async def executed() -> Any:
        call = source.toolset.parse(ToolMetadata("c1", "read", ARGUMENTS))
        return await executor.run([call], dispatch)

    return await best_times({"bare": bare, "ours": ours, "executed": executed}, rounds, calls)


async def measure_in_process(rounds: int, calls: int) -> dict[str, float]:
    server = make_server()
    async with Client(server, cache=None) as client, McpTools(server) as source:
        return await measure(client, source, rounds, calls)


async def measure_http(rounds: int, calls: int) -> dict[str, float]:
    server = make_server()
    app = server.streamable_http_app()

    def client_of_app() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app))

    async with server.session_manager.run(), client_of_app() as one, client_of_app() as other:
        transport = streamable_http_client("http://127.0.0.1:1/mcp", http_client=one)
        source = McpTools("http://127.0.0.1:1/mcp", http_client=other)
        async with Client(transport, cache=None) as client, source:
            return await measure(client, source, rounds, calls)


def main() -> None:
    logging.disable(logging.INFO)
    print(f"{'':12}{'bare SDK':>12}{'McpTools':>12}{'ratio':>8}{'executor':>12}{'ratio':>8}")
    rows = [("in process", measure_in_process, 40, 100), ("HTTP", measure_http, 20, 20)]
    for name, way, rounds, calls in rows:
        found = anyio.run(way, rounds, calls)
        bare, ours, executed = (found[key] * 1e6 for key in ("bare", "ours", "executed"))
        print(
            f"{name:12}{bare:10.0f}us{ours:10.0f}us{ours / bare:8.2f}"
            f"{executed:10.0f}us{executed / bare:8.2f}"
        )


if __name__ == "__main__":
    main()
