"""Conversations in Postgres: `PostgresStore`."""

# psycopg's own async connections know asyncio only, and what is done here takes a few milliseconds:
# so operations run through its sync connections, in threads. The row lock that every operation
# begins with does the rest (`operations.py`).

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from typing_extensions import Self

from lutumpy.durable.database_store import DatabaseStore
from lutumpy.durable.tables import Operation, Query, Rows, check_version, prepare

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresStore"]

T = TypeVar("T")

_MOST_IDLE = 8
_SECONDS_OF_PATIENCE = 30
"""How long a lock is waited for, and how long a transaction may do nothing: a process that is
stopped in the middle of one loses it, and the others go on."""
_FIND = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass(?)"
_SETTINGS = """SELECT set_config(name, %s, false) FROM
    (VALUES ('lock_timeout'), ('idle_in_transaction_session_timeout')) AS settings (name)"""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


class PostgresStore(DatabaseStore):
    """Conversations in a Postgres database, for any number of processes and machines.

    Needs the `postgres` extra. The tables are created when the store is first used, in a schema of
    their own. A committed round survives power loss where the server has `synchronous_commit` on,
    its default.

    Args:
        url_or_pool: Where the database is, as `postgresql://user@host/name`; or a
            `psycopg_pool.ConnectionPool` of yours, which stays open when the store is closed.
        schema: The name of the schema: lower-case letters, digits and underscores.

    Raises:
        ImportError: psycopg is not installed.
        TypeError: `url_or_pool` is neither; an async pool isn't one. `ValueError` for the schema.
    """

    def __init__(self, url_or_pool: Any, *, schema: str = "lutumpy") -> None:
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
        self._idle: list[Connection[Any]] = []
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._prepared = False
        self._closed = False
        self._statements: dict[str, str] = {}

    async def _run(self, operation: Operation[T]) -> T:
        if self._closed:
            raise RuntimeError("the store is closed; nothing was written")
        # A cancellation waits for the end, so that nobody is left in doubt.
        outcome: list[T] = []
        with anyio.CancelScope(shield=True):
            outcome.append(await anyio.to_thread.run_sync(self._do, operation))
        return outcome[0]

    def _do(self, operation: Operation[T]) -> T:
        with self._connection() as connection:
            self._prepare(connection)
            with connection.transaction():
                result: T = self._drive(connection, operation)
        return result

    def _prepare(self, connection: Connection[Any]) -> None:
        if self._prepared:
            return
        with self._preparing:
            with connection.transaction():
                # Two programs that create the same tables at once would get in each other's way.
                connection.execute("SELECT pg_advisory_xact_lock(7281904)")
                # Creating what exists already asks for rights that a program needn't have.
                exists = bool(self._execute(connection, Query(_FIND, (f"{self._schema}.meta",))))
                if not exists:
                    schema: Any = f"CREATE SCHEMA IF NOT EXISTS {self._schema}"  # a checked name
                    connection.execute(schema)
                self._drive(connection, check_version() if exists else prepare())
            self._prepared = True

    def _drive(self, connection: Connection[Any], operation: Operation[Any]) -> Any:
        try:
            query = next(operation)
            while True:
                query = operation.send(self._execute(connection, query))
        except StopIteration as done:
            return done.value

    def _execute(self, connection: Connection[Any], query: Query) -> Rows:
        with connection.cursor(row_factory=_plain_rows()) as cursor:
            statement: Any = self._spell(query.sql)
            if query.many:
                if query.parameters:
                    cursor.executemany(statement, query.values())
                return ()
            cursor.execute(statement, query.values())
            return cursor.fetchall() if cursor.description is not None else ()

    def _spell(self, sql: str) -> str:
        """A statement as Postgres takes it."""
        statement = self._statements.get(sql)
        if statement is None:
            filled = sql.format(
                t=f"{self._schema}.",
                index="lutumpy_",
                real="DOUBLE PRECISION",
                key='TEXT COLLATE "C"',
                lock=" FOR UPDATE",
                now="extract(epoch from clock_timestamp())::float8",
            )
            statement = self._statements[sql] = filled.replace("?", "%s")
        return statement

    # --- connections -------------------------------------------------------------------------

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """A connection that nobody else uses meanwhile."""
        if self._pool is not None:
            with self._pool.connection() as connection:
                yield connection
            return
        import psycopg

        with self._lock:
            connection = self._idle.pop() if self._idle else None
        is_new = connection is None or connection.closed
        if connection is None or connection.closed:
            assert self._url is not None
            connection = psycopg.connect(self._url, autocommit=True)
        try:
            if is_new:
                connection.execute(_SETTINGS, [f"{_SECONDS_OF_PATIENCE}s"])
            yield connection
        except psycopg.OperationalError:
            # It may have lost its server; whether its last transaction was committed isn't known.
            connection.close()
            raise
        finally:
            self._give_back(connection)

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
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def aclose(self) -> None:
        """As `close`."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        # Not the URL: it may hold a password.
        return f"<PostgresStore, schema {self._schema}>"


def _plain_rows() -> Any:
    """Rows are tuples, whatever a pool's connections make of them."""
    from psycopg.rows import tuple_row

    return tuple_row
