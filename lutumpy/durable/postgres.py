"""Conversations in Postgres: `PostgresStore`."""

# psycopg's own async connections know asyncio only, and what is done here takes a few milliseconds:
# so operations run through its sync connections, in threads. The row lock that every operation
# begins with does the rest (`operations.py`).

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from lutumpy.durable.codecs import Codec
from lutumpy.durable.database_store import DatabaseStore
from lutumpy.durable.forks import close_before_forks
from lutumpy.durable.listening import Listener
from lutumpy.durable.migrations import VERSION, prepare, version_of
from lutumpy.durable.postgres_transaction import Transaction
from lutumpy.durable.tables import Operation, Query, Rows
from lutumpy.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresStore"]

T = TypeVar("T")

_MOST_IDLE = 8
_FIND = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass(?)"
_MOST_AT_ONCE = 40
"""How many operations of one event loop run at the same time, each in a thread."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


class PostgresStore(DatabaseStore):
    """Conversations in a Postgres database, for any number of processes and machines.

    Needs the `postgres` extra. The tables are created when the store is first used, in a schema of
    their own. It may be behind pgbouncer in any of its modes. A committed round survives power loss
    where the server has `synchronous_commit` on, its default.

    Args:
        url_or_pool: Where the database is, as `postgresql://user@host/name`; or a
            `psycopg_pool.ConnectionPool` of yours, which stays open when the store is closed. A
            program that forks passes a URL: the store opens new connections behind a fork, and a
            pool doesn't.
        schema: The name of the schema: lower-case letters, digits and underscores.
        codec: Encodes what conversations consist of; see `Codec`.

    Raises:
        ImportError: psycopg is not installed.
        TypeError: `url_or_pool` is neither; an async pool isn't one. `ValueError` for the schema.
    """

    def __init__(
        self, url_or_pool: Any, *, schema: str = "lutumpy", codec: Codec | None = None
    ) -> None:
        try:
            import psycopg  # noqa: F401  # so that the error comes now
        except ImportError as error:
            raise ImportError(
                'PostgresStore needs psycopg; install it with: python -m pip install ".[postgres]" '
                "(in a clone)"
            ) from error
        if not isinstance(schema, str) or _NAME.match(schema) is None:
            raise ValueError(f"schema={schema!r} is no name of lower-case letters and digits")
        self._url: str | None = url_or_pool if isinstance(url_or_pool, str) else None
        self._pool: Any = None
        if self._url is None:
            if not hasattr(url_or_pool, "connection") or hasattr(url_or_pool, "__aenter__"):
                kind = type(url_or_pool).__name__
                raise TypeError(f"PostgresStore takes a URL or a ConnectionPool, not {kind}")
            self._pool = url_or_pool
        self._schema = schema
        self._codec = codec
        self._idle: list[Connection[Any]] = []
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._prepared = False
        self._closed = False
        self._statements: dict[str, list[str]] = {}
        # Its own: behind the default one, tools that are plain functions would starve a lease. One
        # for each event loop, as anyio wants it.
        self._limiters: RunVar[anyio.CapacityLimiter] = RunVar("lutumpy.durable.postgres")
        close_before_forks(self)

    async def _run(self, operation: Operation[T]) -> T:
        if self._closed:
            raise RuntimeError("the store is closed; nothing was written")
        # A cancellation waits for the end, so that nobody is left in doubt.
        outcome: list[T] = []
        with anyio.CancelScope(shield=True):
            work = partial(self._do, operation)
            outcome.append(await anyio.to_thread.run_sync(work, limiter=self._limiter()))
        return outcome[0]

    def _limiter(self) -> anyio.CapacityLimiter:
        found = self._limiters.get(None)
        if found is None:
            found = anyio.CapacityLimiter(_MOST_AT_ONCE)
            self._limiters.set(found)
        return found

    def _do(self, operation: Operation[T]) -> T:
        with ExitStack() as stack:
            transaction, rows = self._begin(stack, next(operation))
            with _committed_or_undone(transaction):
                result: T = _drive(transaction, operation, rows)
        return result

    def _begin(self, stack: ExitStack, query: Query) -> tuple[Transaction, Rows]:
        """A transaction on a connection whose server is there, and the rows of its first statement.

        A connection that was idle may have lost its server. Nothing of this transaction was
        committed then, so another one is tried; a server that is away refuses that one with an
        error.
        """
        import psycopg

        for _ in range(_MOST_IDLE + 1):
            with ExitStack() as trying:
                connection = trying.enter_context(self._connection())
                self._prepare(connection)
                transaction = self._transaction(connection)
                try:
                    rows = transaction.execute(query)
                except BaseException as error:
                    transaction.roll_back()
                    if connection.closed and isinstance(error, psycopg.OperationalError):
                        continue
                    raise
                stack.push(trying.pop_all().__exit__)
                return transaction, rows
        connection = stack.enter_context(self._connection())
        transaction = self._transaction(connection)
        return transaction, transaction.execute(query)

    def _transaction(self, connection: Connection[Any]) -> Transaction:
        return Transaction(connection, self._statements, self._schema, self._codec)

    def _prepare(self, connection: Connection[Any]) -> None:
        if self._prepared:
            return
        with self._preparing:
            transaction = self._transaction(connection)
            with _committed_or_undone(transaction):
                # Two programs that create the same tables at once would get in each other's way.
                transaction.execute(Query("SELECT pg_advisory_xact_lock(7281904)"))
                self._make_tables(transaction)
            self._prepared = True

    def _make_tables(self, transaction: Transaction) -> None:
        """Make the tables, or migrate them. What is up to date asks for no right to do so."""
        import psycopg

        version = 0
        if transaction.execute(Query(_FIND, (f"{self._schema}.meta",))):
            version = _drive(transaction, version_of(), None)
        else:  # the name of the schema was checked
            transaction.execute(Query(f"CREATE SCHEMA IF NOT EXISTS {self._schema}"))
        if version >= VERSION:
            return
        try:
            _drive(transaction, prepare(), None)
            transaction.execute(Query("SELECT 1"))  # so that all of it is sent
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                "version",
                f"the tables have the version {version}, this release has {VERSION}, and may not "
                "migrate them: open the store once as the role that owns them",
            ) from error

    async def _listen(self) -> tuple[Callable[[float], Awaitable[None]], Callable[[], None]]:
        # A pool's connection would be lost to it for as long as somebody watches.
        if self._url is None:
            return await super()._listen()
        listener = Listener(self._url, self._schema)
        await listener.open()
        return listener.wait, listener.close

    # --- connections -------------------------------------------------------------------------

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """A connection that nobody else uses meanwhile."""
        if self._pool is not None:
            with self._pool.connection() as connection:
                yield connection
            return
        import psycopg

        connection = self._take_idle()
        if connection is None:
            assert self._url is not None
            connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None)
        try:
            yield connection
        except psycopg.OperationalError:
            # It may have lost its server; whether its last transaction was committed isn't known.
            connection.close()
            raise
        finally:
            self._give_back(connection)

    def _take_idle(self) -> Connection[Any] | None:
        """A connection that was idle; its server may be gone meanwhile."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not connection.closed:
                return connection

    def _give_back(self, connection: Connection[Any]) -> None:
        with self._lock:
            if not connection.closed and not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections; not a pool that was passed in. Closing again changes nothing."""
        with self._lock:
            self._closed = True
            self._close_idle()

    def _close_idle(self) -> None:
        """Close what nobody uses; the lock is held."""
        while self._idle:
            self._idle.pop().close()

    def pause(self) -> None:
        """For forks; see `forks.py`. A connection in use stays with the thread that uses it."""
        self._preparing.acquire()
        self._lock.acquire()
        self._close_idle()

    def go_on(self) -> None:
        """For forks; see `forks.py`."""
        self._lock.release()
        self._preparing.release()

    def __repr__(self) -> str:
        # Not the URL: it may hold a password.
        return f"<PostgresStore, schema {self._schema}>"


@contextmanager
def _committed_or_undone(transaction: Transaction) -> Iterator[None]:
    """Commit at the end of the block, or roll back where it raises."""
    try:
        yield
        transaction.commit()
    except BaseException:
        transaction.roll_back()
        raise


def _drive(transaction: Transaction, operation: Operation[Any], rows: Any) -> Any:
    """What an operation gives.

    Args:
        transaction: Where its statements go.
        operation: The operation.
        rows: What its last statement gave; `None` where it hasn't begun.
    """
    try:
        while True:
            rows = transaction.execute(operation.send(rows))
    except StopIteration as done:
        return done.value
