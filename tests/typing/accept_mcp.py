"""Tools of MCP servers and served toolsets, as a type checker sees them. Accepted."""

from __future__ import annotations

from typing import Any

from mcp import StdioServerParameters
from mcp.server import Server
from mcp.types import Tool
from typing_extensions import assert_type

from lutumpy import (
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    ToolAvailability,
    ToolCall,
    ToolMetadata,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.execution import Dispatcher
from lutumpy.mcp import McpTools, mcp_server
from lutumpy.tool_doctor import LockedToolset


@tool_fn
def look(where: str) -> str:
    return where


class App(Toolset):
    look = tool(look)


class Place(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
    more = dynamic()


def note(call: ToolMetadata | None, done: float, total: float | None, word: str | None) -> None:
    pass


def is_reading(listed: Tool) -> bool:
    return listed.name.startswith("read")


async def use() -> None:
    source = McpTools(
        StdioServerParameters(command="server"),
        name="Files",
        allow=is_reading,
        lock="lutumpy.lock.json",
        on_progress=note,
    )
    async with source as files:
        assert_type(files, McpTools)
        assert_type(files.toolset, type[Toolset[ToolCall[DynamicInput, DynamicOutput]]])
        assert_type(files.tools, tuple[DynamicTool, ...])
        assert_type(files.locked(), LockedToolset)
        assert_type(Place.with_dynamic_tools({Place.more: files.tools}), type[Place])
        assert_type(await files.refresh(), type[Toolset[ToolCall[DynamicInput, DynamicOutput]]])


def serve() -> None:
    hooks = App.hooks()
    only = ToolAvailability.only(App.look)
    server = mcp_server(App, hooks=hooks, dispatch=Dispatcher(App), available=only)
    assert_type(server, Server[Any])
    McpTools(server)
