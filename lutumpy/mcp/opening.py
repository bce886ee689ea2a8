"""From what a user names a server by to the SDK's client of it."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, Union, cast

from httpx2 import Timeout
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared._httpx_utils import (
    MCP_DEFAULT_SSE_READ_TIMEOUT,
    MCP_DEFAULT_TIMEOUT,
    create_mcp_http_client,
)

from lutumpy.mcp.connection import watch_transport
from lutumpy.mcp.errors import McpConnectionError
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "HttpOptions",
    "ServerAddress",
    "name_address",
    "open_client",
    "read_address",
    "read_server",
]

ServerAddress: TypeAlias = Union[
    str,
    StdioServerParameters,
    Server[Any],
    MCPServer,
    Callable[[], AbstractAsyncContextManager[Any]],
]
"""What names a server: an `http(s)://` address, a command to run, a server in this process, or a
function that opens a transport of the SDK.
"""

_SPARE_SECONDS = 60.0  # that a connection outlives the calls on it

STDIO = "stdio:"
"""What an address begins with that is a command."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What goes with every request to a server behind HTTP.

    Attributes:
        headers: Further headers.
        auth: The SDK's, such as an `OAuthClientProvider`, or any other of httpx2.
        client: A client to use in place of one made here; it stays open, and has its own of both.
        patience: Seconds that a call or a list may take.
    """

    headers: Mapping[str, str] | None
    auth: httpx2.Auth | None
    client: httpx2.AsyncClient | None
    patience: float = 0.0

    def __post_init__(self) -> None:
        if self.client is not None and (self.headers or self.auth is not None):
            raise ValueError(
                "give http_client its headers and auth itself: headers= and auth= are for a client "
                "that is made here"
            )


def read_address(text: str) -> str | StdioServerParameters:
    """What `https://...` or `stdio:command argument ...` names, as `McpTools` takes it.

    The command is split as a shell does it; no shell runs.

    Raises:
        McpConnectionError: It is neither.
    """
    if text.startswith(("http://", "https://")):
        return text
    if text.startswith(STDIO):
        try:
            command, *arguments = shlex.split(text.removeprefix(STDIO))
        except ValueError as error:
            raise McpConnectionError(f"{text!r} names no command: {error}") from None
        return StdioServerParameters(command=command, args=arguments)
    raise McpConnectionError(
        f"{text!r} is not a server's address: it begins with https://, http:// or stdio:, as in "
        "'stdio:npx -y some-server'"
    )


def name_address(server: ServerAddress) -> str | None:
    """The address as `read_address` takes it; `None` for what has none."""
    if isinstance(server, str):
        return server
    if isinstance(server, StdioServerParameters):
        return STDIO + shlex.join([server.command, *server.args])
    return None


def read_server(server: Any, env: Mapping[str, str] | None) -> ServerAddress:
    """What a user names a server by, as `open_client` takes it: an address of a command is its
    parameters, so that there is one way to write each.

    Args:
        server: What the user gave.
        env: Further environment variables of a command.

    Raises:
        McpConnectionError: It is a text that isn't an address.
        TypeError: It names no server.
    """
    found: ServerAddress = read_address(server) if isinstance(server, str) else server
    if isinstance(found, StdioServerParameters):
        return found.model_copy(update={"env": {**(found.env or {}), **env}}) if env else found
    if not isinstance(found, (str, Server, MCPServer)) and not callable(found):
        raise TypeError(
            "McpTools takes an https:// address, StdioServerParameters, a server in this process, "
            f"or a function that opens a transport, not {safe_repr(server)}"
        )
    return found


def open_client(
    server: ServerAddress,
    *,
    http: HttpOptions,
    errlog: TextIO | None,
    on_end: Callable[[], None],
    options: Mapping[str, Any],
) -> Client:
    """A client of the SDK, not yet entered.

    Args:
        server: The server, as `read_server` gives it.
        http: For one behind HTTP.
        errlog: Where a started command writes its errors; the terminal if left out.
        on_end: Called when the server's stream ends by itself.
        options: Further arguments of the client.
    """
    if isinstance(server, (Server, MCPServer)):
        return Client(server, **options)
    transport: AbstractAsyncContextManager[Any]
    if isinstance(server, str):
        transport = _open_http(server, http)
    elif isinstance(server, StdioServerParameters):
        transport = stdio_client(_lenient(server), find_error_log(errlog))
    else:
        transport = server()
    return Client(watch_transport(transport, on_end), **options)


def _lenient(server: StdioServerParameters) -> StdioServerParameters:
    """A command whose output may hold bytes that aren't UTF-8, as a stray line of a log does.

    The SDK stops reading at such a byte, and waits for the end of the command: no call would be
    answered any more, and nobody would see why.
    """
    if "encoding_error_handler" in server.model_fields_set:
        return server
    return server.model_copy(update={"encoding_error_handler": "replace"})


def find_error_log(errlog: TextIO | None) -> TextIO:
    """Where a started command writes its errors.

    What stands in for standard error in notebooks and tests isn't a file that a process could write
    to.
    """
    if errlog is not None:
        return errlog
    for stream in (sys.stderr, sys.__stderr__):
        try:
            if stream is not None and stream.fileno() >= 0:
                return stream
        except (AttributeError, OSError, ValueError):
            continue
    return cast("TextIO", subprocess.DEVNULL)


@asynccontextmanager
async def _open_http(url: str, http: HttpOptions) -> AsyncIterator[Any]:
    if http.client is not None:
        async with streamable_http_client(url, http_client=http.client) as streams:
            yield streams
        return
    headers = dict(http.headers) if http.headers else None
    # A server that is silent for longer than the SDK's client waits is an error there that ends the
    # connection, and every call with it. A call has a time of its own.
    longest = max(MCP_DEFAULT_SSE_READ_TIMEOUT, http.patience + _SPARE_SECONDS)
    times = Timeout(MCP_DEFAULT_TIMEOUT, read=longest if math.isfinite(longest) else None)
    async with (
        create_mcp_http_client(headers=headers, auth=http.auth, timeout=times) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
