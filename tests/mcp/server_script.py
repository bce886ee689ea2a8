"""A server as a process of its own, over stdio or `--http PORT`.

`pid` gives the number of its process, `wait` never answers and leaves a file when it was cancelled,
`big` answers with a megabyte, `stray` writes a line of a log that isn't UTF-8 first (over stdio).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

OBJECT: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "string"}}}


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    names = ["pid", "wait", "big", "stray", *sys.argv[3:]]
    return ListToolsResult(tools=[Tool(name=name, input_schema=OBJECT) for name in names])


async def call_tool(context: Any, params: Any) -> CallToolResult:
    text = str(os.getpid())
    if params.name == "big":
        text = "x" * 1_000_000
    if params.name == "stray":
        os.write(1, b"caf\xe9\n")
    if params.name == "wait":
        file = Path(params.arguments["file"])
        file.with_suffix(".began").touch()
        try:
            await anyio.sleep(3600)
        except anyio.get_cancelled_exc_class():
            file.with_suffix(".cancelled").touch()
            raise
    return CallToolResult(content=[TextContent(text=text)])


server: Server[Any] = Server("script", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        import uvicorn

        app = server.streamable_http_app()
        uvicorn.run(app, port=int(sys.argv[2]), log_level="error", ws="none")
    else:
        anyio.run(serve_stdio)
