"""What a type checker refuses of MCP; each marked line."""

from __future__ import annotations

from lutumpy import Toolset, tool, tool_fn
from lutumpy.mcp import McpTools, mcp_server


@tool_fn
def look(where: str) -> str:
    return where


class App(Toolset):
    look = tool(look)


class Other(Toolset):
    look = tool(look)


mcp_server(App, hooks=Other.hooks())  # refused
mcp_server(look)  # refused
McpTools(3)  # refused
McpTools("https://example.com", timeout="3")  # refused
