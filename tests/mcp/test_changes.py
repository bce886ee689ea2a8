"""A server says that its list has changed, on both protocols."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.server import Server
from mcp.types import INTERNAL_ERROR, ListToolsResult
from mcp_toolkit import SECONDS, FakeServer, make_tool, run_call, text_result

from lutumpy.mcp import McpConnectionError, McpTools


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_change_is_noted_and_nothing_happens_by_itself(mode: str, backend: str) -> None:
    server = FakeServer(make_tool("a"))
    async with McpTools(server.server, client_options={"mode": mode}) as source:
        assert not source.changed
        before = source.toolset
        server.tools.append(make_tool("b"))
        with anyio.fail_after(SECONDS):
            while not source.changed:
                await server.tell_change()
                await anyio.sleep(0.01)
        assert source.toolset is before
        assert server.pages == 1
        await source.refresh()
        assert [tool.name for tool in source.tools] == ["a", "b"]
        assert not source.changed


async def test_a_message_handler_of_the_program_is_called_as_well() -> None:
    met: list[Any] = []

    async def handler(message: Any) -> None:
        met.append(type(message).__name__)

    server = FakeServer(make_tool("a"))
    options = {"mode": "legacy", "message_handler": handler}
    async with McpTools(server.server, client_options=options) as source:
        with anyio.fail_after(SECONDS):
            while not source.changed:
                await server.tell_change()
                await anyio.sleep(0.01)
        assert "ToolListChangedNotification" in met
        assert (await run_call(source, "a")).outcome == "ok"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("why", ["refused", "endless"])
async def test_a_list_that_cannot_be_had_again_costs_no_call_that_runs(
    mode: str, why: str, backend: str
) -> None:
    let_go = anyio.Event()

    async def answer() -> Any:
        await let_go.wait()
        return text_result("done")

    server = FakeServer(make_tool("slow"), answer=lambda name, arguments: answer())
    async with McpTools(server.server, client_options={"mode": mode}) as source:
        outcomes: list[Any] = []

        async def call() -> None:
            outcomes.append((await run_call(source, "slow")).content)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            with anyio.fail_after(SECONDS):
                while not server.calls:
                    await anyio.sleep(0.01)
            server.refuses = why
            with pytest.raises(McpConnectionError, match="doesn't"):
                await source.refresh()
            assert source.connected
            let_go.set()
        assert outcomes == ["done"]
        server.refuses = ""
        assert await source.refresh() is source.toolset


async def test_a_connection_on_which_nothing_is_answered_is_made_anew(backend: str) -> None:
    lists = 0

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        nonlocal lists
        lists += 1
        if lists == 2:
            raise MCPError(INTERNAL_ERROR, "no such session")
        return ListToolsResult(tools=[make_tool("a")])

    async def refuse(context: Any, params: Any) -> Any:
        raise MCPError(INTERNAL_ERROR, "no such session")

    server: Server[Any] = Server("s", on_list_tools=list_tools, on_ping=refuse)
    async with McpTools(server, client_options={"mode": "legacy"}) as source:
        client = source.client
        await source.refresh()
        assert source.client is not client
        assert lists == 3
