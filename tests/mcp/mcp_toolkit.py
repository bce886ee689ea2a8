"""Servers for these tests: in this process, and as processes of their own that can be killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from mcp import MCPError, StdioServerParameters
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import (
    INTERNAL_ERROR,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from lutumpy import ToolMetadata
from lutumpy.execution import Dispatcher, ExecutionResult, ToolExecutor
from lutumpy.mcp import McpTools

SCRIPT = Path(__file__).parent / "server_script.py"
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
SECONDS = 30.0  # no test comes near it, unless something hangs


def make_tool(
    name: str,
    description: str = "",
    schema: dict[str, Any] | None = None,
    *,
    read_only: bool | None = None,
    idempotent: bool | None = None,
    **fields: Any,
) -> Tool:
    hints = None
    if read_only is not None or idempotent is not None:
        hints = ToolAnnotations(read_only_hint=read_only, idempotent_hint=idempotent)
    return Tool(
        name=name,
        description=description,
        input_schema=OBJECT if schema is None else schema,
        annotations=hints,
        **fields,
    )


def text_result(*texts: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=t) for t in texts], is_error=is_error)


class FakeServer:
    """A server in this process whose list may change, and that tells what it was asked.

    Args:
        tools: Its list.
        answer: What it answers to `(name, arguments)`; the arguments as text if left out.
        page: Tools in a page of the list.
    """

    def __init__(
        self,
        *tools: Tool,
        answer: Callable[[str, dict[str, Any]], Any] | None = None,
        page: int = 1000,
        instructions: str | None = None,
    ) -> None:
        self.tools = list(tools)
        self.page = page
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.pages = 0
        self.refuses = ""  # its list: "refused", or "endless"
        self.cancelled = 0
        self._answer = answer
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[Any] = []
        self.server: Server[Any] = Server(
            "fake",
            instructions=instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        # Servers of the older protocol declare it in their handshake.
        make = self.server.create_initialization_options
        self.server.create_initialization_options = lambda: make(  # type: ignore[method-assign]
            NotificationOptions(tools_changed=True)
        )

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        self.pages += 1
        self._sessions.append(context.session)
        if self.refuses == "refused":
            raise MCPError(INTERNAL_ERROR, "busy")
        if self.refuses == "endless":
            return ListToolsResult(tools=[], next_cursor="0")
        begin = int(params.cursor) if params is not None and params.cursor else 0
        end = begin + self.page
        more = str(end) if end < len(self.tools) else None
        return ListToolsResult(tools=self.tools[begin:end], next_cursor=more)

    async def _call(self, context: Any, params: Any) -> Any:
        arguments = dict(params.arguments or {})
        self.calls.append((params.name, arguments))
        if self._answer is None:
            return text_result(f"{params.name} {arguments}")
        answer = self._answer(params.name, arguments)
        if isinstance(answer, Awaitable):
            import anyio

            try:
                return await answer
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        return answer

    async def tell_change(self) -> None:
        """Say on both protocols that the list has changed."""
        await self._bus.publish(ToolsListChanged())
        with contextlib.suppress(Exception):
            await self._sessions[-1].send_tool_list_changed()


async def run_call(
    source: McpTools,
    name: str,
    arguments: str = "{}",
    *,
    executor: ToolExecutor | None = None,
    id: str = "c1",
) -> ExecutionResult:
    """One call as a program makes it: read, and run by an executor."""
    call = source.toolset.parse(ToolMetadata(id, name, arguments))
    runs = executor or ToolExecutor()
    (result,) = await runs.run([call], Dispatcher(source.toolset))
    return result


def stdio_server(*arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[str(SCRIPT), *arguments])


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def http_server(port: int, *arguments: str) -> Iterator[str]:
    """A server behind HTTP as a process of its own; gives its address."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--http", str(port), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def wait_for_port(port: int, process: subprocess.Popen[Any]) -> None:
    for _ in range(int(SECONDS / 0.02)):
        assert process.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("the server doesn't listen")


def node() -> str:
    return shutil.which("node") or "node"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
