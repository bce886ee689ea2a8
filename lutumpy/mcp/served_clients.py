"""What a server of ours remembers of each client: its log level, and what it subscribed to."""

# What is hard is to know a client again, and to forget it in time: the SDK makes a session for each
# request, and says nothing of an end. What lives as long as the client is the connection behind the
# session, which has a place for what handlers want to keep. So a client is kept there and nowhere
# else; the server only points at it. A stateless server has a connection for each request, and
# remembers nobody.

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import (
    EmptyResult,
    LoggingLevel,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

__all__ = ["ServedClients", "resource_updated", "takes_level"]

_LEVELS: tuple[str, ...] = get_args(LoggingLevel)  # from `debug` to `emergency`
_log = logging.getLogger("lutumpy.mcp")


@dataclass(eq=False)
class _Client:
    """A client.

    Attributes:
        session: One of its sessions: they all write to one connection.
        level: The least grave level that it wants to be told.
        addresses: The resources that it subscribed to.
    """

    session: Any
    level: str = "debug"
    addresses: set[str] = field(default_factory=set)


_PLACE = "lutumpy.mcp"
"""Where the state of a connection has the client."""
_SERVED: weakref.WeakKeyDictionary[Server[Any], ServedClients] = weakref.WeakKeyDictionary()


class ServedClients:
    """The clients of one server.

    Args:
        find: Raises the SDK's error for an address that the server hasn't.

    Attributes:
        present: The clients that have set or subscribed to something.
    """

    def __init__(self, find: Callable[[str], object]) -> None:
        self._find = find
        self.present: weakref.WeakSet[_Client] = weakref.WeakSet()

    def handlers(self, *, logs: bool, resources: bool) -> dict[str, Any]:
        """What the SDK's server calls; it says by these what it can do."""
        found: dict[str, Any] = {"on_set_logging_level": self._set_level} if logs else {}
        if resources:
            found |= {
                "on_subscribe_resource": self._subscribe,
                "on_unsubscribe_resource": self._unsubscribe,
            }
        return found

    def belong_to(self, server: Server[Any]) -> None:
        """Say whose clients they are, for `resource_updated`."""
        _SERVED[server] = self

    async def _set_level(
        self, request: ServerRequestContext[Any, Any], params: SetLevelRequestParams
    ) -> EmptyResult:
        self._client_of(request).level = params.level
        return EmptyResult()

    async def _subscribe(
        self, request: ServerRequestContext[Any, Any], params: SubscribeRequestParams
    ) -> EmptyResult:
        address = str(params.uri)
        self._find(address)
        self._client_of(request).addresses.add(address)
        return EmptyResult()

    async def _unsubscribe(
        self, request: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        self._client_of(request).addresses.discard(str(params.uri))
        return EmptyResult()

    def _client_of(self, request: ServerRequestContext[Any, Any]) -> _Client:
        client = _kept_client(request)
        if client is None:
            client = _Client(request.session)
            self.present.add(client)
            _state_of(request)[_PLACE] = client
        return client


def _state_of(request: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """What is kept of a connection; of an SDK that has no such place, nothing."""
    connection: Any = getattr(request.session, "_connection", None)
    state: Any = getattr(connection, "state", None)
    return state if isinstance(state, dict) else {}


def _kept_client(request: ServerRequestContext[Any, Any]) -> _Client | None:
    client: _Client | None = _state_of(request).get(_PLACE)
    return client


def takes_level(request: ServerRequestContext[Any, Any], level: str) -> bool:
    """Whether a client wants to be told what is as grave as this."""
    client = _kept_client(request)
    return client is None or _LEVELS.index(level) >= _LEVELS.index(client.level)


async def resource_updated(server: Server[Any], uri: str) -> None:
    """Tell the clients that subscribed to a resource that it is another one now.

    From the protocol of 2026-07-28 on clients listen in another way, and aren't told.

    Args:
        server: What `mcp_server` has made.
        uri: The address of the resource.

    Raises:
        ValueError: `mcp_server` hasn't made this server, or it has no resources.
    """
    served = _SERVED.get(server) if isinstance(server, Server) else None
    if served is None:
        raise ValueError("resource_updated takes a server of mcp_server() that has resources")
    for client in [*served.present]:
        if uri in client.addresses:
            try:
                await client.session.send_resource_updated(uri)
            except Exception:  # it has gone meanwhile; the others are told all the same
                _log.debug("a client could not be told of %r", uri, exc_info=True)
