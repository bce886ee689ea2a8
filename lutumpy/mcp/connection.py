"""One connection to a server, held by a task of its own."""

# What is hard here
# -----------------
# A connection breaks in two ways. A server at the end of a pipe that dies closes its streams, and
# the SDK answers every call with "Connection closed". A server behind HTTP that dies lets the
# transport's task group fail, which cancels whatever is inside of `async with Client(...)`.
# So nobody but a task of ours is there (`hold`):
#
#     calls of the executor                  the task that holds the client
#     -------------------------------------  ------------------------------------------------------
#     `send` marks a scope around each call  enters the client, then waits until it is told to stop
#     and awaits the SDK inside of it        when the client fails, in whatever way, it notes why,
#                                            cancels the scope of every call, and ends
#
# A third way is quiet. A server of the older protocol that was started anew, or that ends sessions
# which nobody uses, refuses whatever comes in the old one, and the SDK goes on sending. It refuses
# a ping in the same words then, which tells it from a server that refuses a single call. Nothing of
# what was refused so has been run.
#
# The code of "Connection closed" says little by itself: it is the first of those that JSON-RPC
# leaves to servers, many of which refuse a call by it, and the SDK gives it to a call whose own
# stream broke off over HTTP. So the connection is over only where a ping ends in the same way.
#
# A call whose scope was cancelled so is a call of unknown outcome, and not a cancelled one: the
# task that made it goes on. Calls run in their callers' tasks, so that a cancelled caller cancels
# the SDK's request, which tells the server, and so that the SDK's spans are children of the
# caller's.
#
#   state      means                                        leaves it
#   ---------  -------------------------------------------  -------------------------------------
#   new        nothing was tried                            `hold`
#   open       calls are sent                               the client fails, the server knows the
#                                                           session no more, or `close`
#   closed     calls are refused without being sent         never: `refresh` makes a new connection
#
# The stream that the SDK reads from is watched (`_Watched`), so that the end of a pipe is noticed
# at once and not by the next call: then it is known that nothing of that call was sent.

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.types import ServerNotification, ToolListChangedNotification

from lutumpy.mcp.errors import McpConnectionError, McpConnectionLost

__all__ = ["Connection", "MakeClient", "watch_transport"]

T = TypeVar("T")
MakeClient: TypeAlias = "Callable[[Callable[[Any], Any], Callable[[], None]], Client]"
"""Makes a client; takes its message handler, and what is called when its stream has ended."""

_CONNECTION_CLOSED = -32000
# By these, servers refuse a session that they don't know: those of this SDK, those of TypeScript's.
_REFUSES_SESSION = (-32600, -32001)
_LOST = "Connection closed while the call was running"
_FORGOTTEN = "Connection closed: the server knows the session no more"
_PING_SECONDS = 5.0
_CLOSING_SECONDS = 5.0  # for taking leave of a server, before the connection is cut
_LISTEN_AGAIN = (1.0, 60.0)  # seconds before the stream of changes is opened again: first, most


class Connection:
    """One connection to a server.

    Args:
        make_client: Makes the SDK's client.
        on_change: Called when the server says that its tools have changed.

    Attributes:
        state: `new`, `open` or `closed`.
        cause: Why it ended, where that is known.
    """

    def __init__(self, make_client: MakeClient, on_change: Callable[[], None]) -> None:
        self.state: Literal["new", "open", "closed"] = "new"
        self.cause: BaseException | None = None
        self._make_client = make_client
        self._on_change = on_change
        self._client: Client | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._scope = anyio.CancelScope()
        self._stop = anyio.Event()
        self._ended = anyio.Event()

    @property
    def client(self) -> Client:
        """The SDK's client; raises `McpConnectionError` where the connection isn't open."""
        if self._client is None or self.state != "open":
            raise McpConnectionError("Connection closed") from self.cause
        return self._client

    async def hold(self, *, task_status: TaskStatus[None]) -> None:
        """Be the task that holds the client; says that it started when that is open or failed."""
        client = self._make_client(self._receive, self._lose)
        was_open = False
        try:
            with self._scope:
                async with client:
                    self._client, self.state, was_open = client, "open", True
                    task_status.started()
                    await self._wait_and_listen(client)
        except Exception as error:
            self.cause = error
        finally:
            self._lose()
            self._ended.set()
        if not was_open:
            task_status.started()

    def _lose(self) -> None:
        """Refuse further calls from now on, end those that run, and let the client go."""
        self._client, self.state = None, "closed"
        for scope in list(self._calls):
            scope.cancel()
        self._scope.cancel()

    async def send(self, request: Callable[[Client], Any]) -> Any:
        """What awaiting `request(client)` gives.

        Raises:
            McpConnectionError: The connection is closed, or the server knows the session no more:
                nothing was run.
            McpConnectionLost: It ended meanwhile.
            MCPError: The server refused the request.
        """
        client = self.client
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                return await request(client)
            except MCPError as error:
                if error.code == _CONNECTION_CLOSED and not await self._still_answers(client):
                    self._lose()
                    raise McpConnectionLost(_LOST) from error
                if error.code in _REFUSES_SESSION and await _is_forgotten(client, error):
                    self._lose()
                    raise McpConnectionError(_FORGOTTEN) from error
                raise
            finally:
                self._calls.discard(scope)
        raise McpConnectionLost(_LOST) from self.cause

    async def answers(self) -> bool:
        """Whether the server still answers here, whatever it refused."""
        with anyio.move_on_after(_PING_SECONDS):
            try:
                await self.send(_ping)
            except Exception:
                return False
            return True
        return False

    async def _still_answers(self, client: Client) -> bool:
        """Whether the connection goes on, though a call ended as if it were closed."""
        if self.state != "open":
            return False
        with anyio.move_on_after(_PING_SECONDS):
            try:
                await _ping(client)
            except MCPError as error:
                return error.code != _CONNECTION_CLOSED
            return True
        return False

    async def close(self) -> None:
        """End it; returns when the client is gone. A server that doesn't let go is cut off."""
        self._stop.set()
        if self.state == "new":
            return
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_CLOSING_SECONDS):
                await self._ended.wait()
            self._scope.cancel()
            await self._ended.wait()

    # --- changes of the list of tools -----------------------------------------------------------

    async def _receive(self, message: Any) -> None:
        """What servers of the older protocol send: notifications of all kinds."""
        if isinstance(message, ServerNotification) and isinstance(
            message, ToolListChangedNotification
        ):
            self._on_change()

    async def _wait_and_listen(self, client: Client) -> None:
        """Wait to be told to stop; meanwhile listen, where the newer protocol has a stream."""
        async with anyio.create_task_group() as group:
            tools = client.server_capabilities.tools
            if _is_newer(client) and tools is not None and tools.list_changed:
                group.start_soon(self._listen, client)
            await self._stop.wait()
            group.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Note changes of the list. Those of a time without a stream are assumed."""
        seconds, most = _LISTEN_AGAIN
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._on_change()
            except Exception as error:
                if _refuses_listening(error):
                    return
            await anyio.sleep(seconds)
            seconds = min(2 * seconds, most)
            self._on_change()


def _is_newer(client: Client) -> bool:
    """Whether the protocol is one that has no sessions, and a stream of changes to listen to."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _ping(client: Client) -> None:
    """Ask for what every server has; the newer protocol has no `ping`."""
    if _is_newer(client):
        await client.session.send_discover(client.protocol_version)
    else:
        await client.session.send_ping()


async def _is_forgotten(client: Client, refusal: MCPError) -> bool:
    """Whether a refusal is one of the session: then a ping is refused in the same words."""
    if _is_newer(client):
        return False
    with anyio.move_on_after(_PING_SECONDS):
        try:
            await _ping(client)
        except MCPError as error:
            return (error.code, error.message) == (refusal.code, refusal.message)
    return False


def _refuses_listening(error: Exception) -> bool:
    """Whether a server will never open a stream of changes, whatever it declared."""
    return isinstance(error, MCPError) and error.code in (-32601, -32602)


@asynccontextmanager
async def watch_transport(
    transport: AbstractAsyncContextManager[Any], on_end: Callable[[], None]
) -> AsyncIterator[Any]:
    """A transport of the SDK that calls `on_end` when the server's stream ends by itself."""
    async with transport as (read_stream, write_stream):
        yield _Watched(read_stream, on_end), write_stream


class _Watched:
    """A stream of the SDK, read as before; `on_end` is called at its end."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except anyio.EndOfStream:
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Watched:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
