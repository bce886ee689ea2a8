"""The clients that an adapter makes itself: an async one for each event loop, closed when that loop
ends, and a sync one for all threads.

Connections belong to the loop that they were opened on. Once that has ended they can neither be
used nor closed any more: whoever tries, the SDK's own finalizer among them, prints a traceback for
each and leaves the descriptors open. So each client is closed by its own loop, as the last thing
that this does: an async generator that waits is closed by `asyncio.run` (and by trio), and closes
the client in turn. A loop that is ended without that (`loop.close()` alone) leaves a client behind,
which is let go untouched.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

__all__ = ["ClientHolder", "OwnClients", "OwnSyncClient", "close_httpx", "close_sdk"]

# Held while a sync client is made, whoever makes it: boto3 makes all of them from one session,
# which isn't made for several threads.
_MAKING = threading.RLock()


class _Kept(NamedTuple):
    client: Any
    guard: AsyncGenerator[None, None]


CloseClient: TypeAlias = "Callable[[Any], Awaitable[object]]"
"""Closes an async client."""


async def close_sdk(client: Any) -> None:
    """Close an async client of OpenAI's or Anthropic's SDK."""
    await client.close()


async def close_httpx(client: Any) -> None:
    """Close an async client of httpx, which calls it `aclose`."""
    await client.aclose()


class OwnClients:
    """The clients of one adapter, by event loop.

    Args:
        make: Makes an async client.
        close: Closes one.
    """

    __slots__ = ("__weakref__", "_close", "_kept", "_make")

    def __init__(self, make: Callable[[], Any], close: CloseClient = close_sdk) -> None:
        self._make = make
        self._close = close
        self._kept: dict[Any, _Kept] = {}

    async def current(self) -> Any:
        """The client of the loop that runs here; made at the first request in it."""
        loop = _running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            self._forget_ended_loops()
            client = self._make()
            guard = _until_the_loop_ends(weakref.ref(self), loop, client, self._close)
            await anext(guard)
            kept = self._kept[loop] = _Kept(client, guard)
        return kept.client

    async def aclose(self) -> None:
        """Close the client of the loop that runs here. Those of other running loops are closed by
        these.
        """
        self._forget_ended_loops()
        kept = self._kept.pop(_running_loop(), None)
        if kept is not None:
            await kept.guard.aclose()

    def forget(self, loop: Any, client: Any) -> None:
        """The client is being closed with its loop; for the guard."""
        kept = self._kept.get(loop)
        if kept is not None and kept.client is client:
            del self._kept[loop]

    def _forget_ended_loops(self) -> None:
        """Forget the clients of loops that ended without closing them."""
        for loop in list(self._kept):
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed():
                self._kept.pop(loop, None)


class OwnSyncClient:
    """The sync client of one adapter, for requests of any thread.

    Several threads may need it at once, and none of them may be left with another client: nobody
    would close that one.

    Args:
        make: Makes the client.

    Attributes:
        known: The client; `None` while none is made.
    """

    __slots__ = ("_make", "known")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.known: Any = None

    def current(self) -> Any:
        """The client; made at the first request."""
        client = self.known
        if client is None:
            with _MAKING:
                client = self.known
                if client is None:
                    client = self.known = self._make()
        return client

    def close(self) -> None:
        """Close the client; the next request makes another."""
        with _MAKING:
            client, self.known = self.known, None
        if client is not None:
            client.close()


class ClientHolder:
    """Has the client that was given, for requests with an event loop or for those without; or makes
    one of either kind when it is first needed.

    Args:
        given: The user's client; `None` if clients are made here.
        is_async: Whether that needs an event loop.
        make_async: Makes a client for an event loop.
        make_sync: The same for requests without one.
        close: Closes a client that `make_async` made.
    """

    __slots__ = ("_async_client", "_own", "_own_sync", "_sync_client")

    def __init__(
        self,
        given: Any | None,
        is_async: Callable[[Any], bool],
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        close: CloseClient = close_sdk,
    ) -> None:
        self._async_client: Any = None
        self._sync_client: Any = None
        self._own: OwnClients | None = None
        self._own_sync: OwnSyncClient | None = None
        if given is None:
            self._own, self._own_sync = OwnClients(make_async, close), OwnSyncClient(make_sync)
        elif is_async(given):
            self._async_client = given
        else:
            self._sync_client = given

    def client(self) -> Any:
        """The client that was given, or the sync one that was made here; `None` before that."""
        if self._own_sync is not None:
            return self._own_sync.known
        return self._async_client if self._async_client is not None else self._sync_client

    async def aclose(self) -> None:
        """Close the clients that were made here, also the sync one; the next request makes another.

        An async one that belongs to another event loop is closed when that ends.
        """
        if self._own is not None:
            await self._own.aclose()
        self.close()

    def close(self) -> None:
        """Close the sync client that was made here; the next request makes another."""
        if self._own_sync is not None:
            self._own_sync.close()

    async def _async_client_here(self) -> Any:
        if self._own is not None:
            return await self._own.current()
        if self._async_client is None:
            raise TypeError(
                f"{type(self._sync_client).__name__} is a sync client: use collect_sync() or "
                "respond_sync(), or give the adapter an async client"
            )
        return self._async_client

    def _sync_client_here(self) -> Any:
        if self._own_sync is not None:
            return self._own_sync.current()
        if self._sync_client is None:
            raise TypeError(
                f"{type(self._async_client).__name__} is an async client: use collect() or "
                "respond(), or give the adapter a sync client"
            )
        return self._sync_client


async def _until_the_loop_ends(
    owner: weakref.ref[OwnClients], loop: Any, client: Any, close: CloseClient
) -> AsyncGenerator[None, None]:
    """Waits until the loop, or whoever owns the client, is done with it; then closes the client.

    The owner is known weakly: an adapter that nobody holds any more takes its clients with it.
    """
    try:
        yield
    finally:
        clients = owner()
        if clients is not None:
            clients.forget(loop, client)
        # Nobody waits for the outcome. A connection that the other side has dropped is closed all
        # the same.
        with contextlib.suppress(Exception):
            await close(client)


def _running_loop() -> Any:
    """What tells the loop that runs here from others: the loop of asyncio, or for other libraries
    the thread.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return threading.get_ident()
