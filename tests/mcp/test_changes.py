"""A server says that its list has changed, on both protocols."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp_toolkit import SECONDS, FakeServer, make_tool, run_call

from lutumpy.mcp import McpTools


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
