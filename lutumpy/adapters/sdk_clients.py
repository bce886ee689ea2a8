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
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

__all__ = ["OwnClients", "OwnSyncClient"]

# Held while a sync client is made, whoever makes it: boto3 makes all of them from one session,
# which isn't made for several threads.
_MAKING = threading.RLock()


class _Kept(NamedTuple):
    client: Any
    guard: AsyncGenerator[None, None]


class OwnClients:
    """The clients of one adapter, by event loop.

    Args:
        make: Makes an async client.
    """

    __slots__ = ("__weakref__", "_kept", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._kept: dict[Any, _Kept] = {}

    async def current(self) -> Any:
        """The client of the loop that runs here; made at the first request in it."""
        loop = _running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            self._forget_ended_loops()
            client = self._make()
            guard = _until_the_loop_ends(weakref.ref(self), loop, client)
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


async def _until_the_loop_ends(
    owner: weakref.ref[OwnClients], loop: Any, client: Any
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
            await client.close()


def _running_loop() -> Any:
    """What tells the loop that runs here from others: the loop of asyncio, or for other libraries
    the thread.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return threading.get_ident()
