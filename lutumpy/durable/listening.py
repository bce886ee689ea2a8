"""Being woken by Postgres: one connection that listens, as long as somebody watches a store."""

# Behind pgbouncer in transaction mode nothing can listen: the session belongs to whoever asks next,
# who would be woken in our place. Such a connection is known by its server's process: pgbouncer
# names one of its own making, and the server another. Then the watcher looks from time to time, as
# it does anyway, since nobody is woken when a lease runs out.

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Listener"]


class Listener:
    """Waits for what is said on a channel, or for some time.

    Args:
        url: Where the database is.
        channel: The name of the channel; lower-case letters, digits and underscores.
    """

    def __init__(self, url: str, channel: str) -> None:
        self._url = url
        self._channel = channel
        self._connection: Connection[Any] | None = None
        self._can_listen = True

    async def open(self) -> None:
        """Begin to listen, where that is possible."""
        import psycopg

        if self._connection is None and self._can_listen:
            # A server that is away now may be back when it is waited for again.
            with suppress(psycopg.OperationalError):
                with anyio.CancelScope(shield=True):
                    self._connection = await anyio.to_thread.run_sync(self._connect)

    def _connect(self) -> Connection[Any] | None:
        import psycopg

        connection = psycopg.connect(
            self._url, autocommit=True, prepare_threshold=None, connect_timeout=10
        )
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        if found is None or found[0] != connection.info.backend_pid:
            self._can_listen = False
            connection.close()
            return None
        statement: Any = f"LISTEN {self._channel}"  # a checked name
        connection.execute(statement)
        return connection

    async def wait(self, seconds: float) -> None:
        """Wait until something was said, for so many seconds at most."""
        import psycopg

        await self.open()
        connection = self._connection
        if connection is None:
            await anyio.sleep(seconds)
            return
        try:
            with anyio.move_on_after(seconds):
                await anyio.wait_readable(connection.fileno())
            for _ in connection.notifies(timeout=0):
                pass
        except (psycopg.OperationalError, OSError):
            self.close()  # the next wait opens another one

    def close(self) -> None:
        """Stop listening."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
