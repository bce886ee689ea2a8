"""Conversations in Postgres: `PostgresStore`."""

# psycopg's own async connections know asyncio only, and what is done here takes a few milliseconds:
# so operations run through its sync connections, in threads. The row lock that every operation
# begins with does the rest (`operations.py`).

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from typing_extensions import Self

from lutumpy.durable.database_store import DatabaseStore
from lutumpy.durable.forks import close_before_forks
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
_MOST_AT_ONCE = 40
"""How many operations of one event loop run at the same time, each in a thread."""
_MOST_ROWS = 1_000
"""How many rows one statement inserts; parameters are numbered with 16 bits."""
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
        with self._begun() as connection:
            result: T = self._drive(connection, operation)
        return result

    @contextmanager
    def _begun(self) -> Iterator[Connection[Any]]:
        """A connection in a transaction, which is committed at the end or rolled back."""
        with ExitStack() as stack:
            connection = self._begin(stack)
            try:
                yield connection
            except BaseException:
                _roll_back(connection)
                raise
            connection.execute("COMMIT", prepare=False)

    def _begin(self, stack: ExitStack) -> Connection[Any]:
        """Begin a transaction on a connection whose server is there.

        A connection that was idle may have lost its server. Nothing was asked of it yet, so another
        one is tried; a server that is away refuses that one with an error.
        """
        import psycopg

        for _ in range(_MOST_IDLE + 1):
            with ExitStack() as trying:
                connection = trying.enter_context(self._connection())
                self._prepare(connection)
                with suppress(psycopg.OperationalError):
                    _open_transaction(connection)
                    stack.push(trying.pop_all().__exit__)
                    return connection
                connection.close()
        connection = stack.enter_context(self._connection())
        _open_transaction(connection)
        return connection

    def _prepare(self, connection: Connection[Any]) -> None:
        if self._prepared:
            return
        with self._preparing:
            with connection.transaction():
                # Two programs that create the same tables at once would get in each other's way.
                connection.execute("SELECT pg_advisory_xact_lock(7281904)", prepare=False)
                # Creating what exists already asks for rights that a program needn't have.
                exists = bool(self._execute(connection, Query(_FIND, (f"{self._schema}.meta",))))
                if not exists:
                    schema: Any = f"CREATE SCHEMA IF NOT EXISTS {self._schema}"  # a checked name
                    connection.execute(schema, prepare=False)
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
            if not query.many:
                cursor.execute(statement, query.values(), prepare=False)
                return cursor.fetchall() if cursor.description is not None else ()
            # `executemany` prepares its statement.
            rows = query.values()
            head, values = statement.split(" VALUES ")
            for first in range(0, len(rows), _MOST_ROWS):
                some = rows[first : first + _MOST_ROWS]
                inserted: Any = f"{head} VALUES {', '.join([values] * len(some))}"
                cursor.execute(inserted, [each for row in some for each in row], prepare=False)
            return ()

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
        """An idle connection whose server hasn't said anything: what it says is a farewell."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not connection.closed and not _is_readable(connection):
                return connection
            connection.close()

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


def _roll_back(connection: Connection[Any]) -> None:
    """Undo the open transaction, with the connection where that can't be asked for."""
    import psycopg

    try:
        if not connection.closed:
            connection.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        connection.close()


def _open_transaction(connection: Connection[Any]) -> None:
    """Begin a transaction and say what holds in it, in one round trip.

    Behind pgbouncer in transaction mode the next one may have another session, and this session
    another program: so nothing is set for a session, and no statement is prepared in one.
    """
    settings = (
        f"SET LOCAL lock_timeout = '{_SECONDS_OF_PATIENCE}s'; "
        f"SET LOCAL idle_in_transaction_session_timeout = '{_SECONDS_OF_PATIENCE}s'"
    )
    # Without `autocommit`, as a pool of the user's may have it, psycopg sends its own BEGIN first.
    statements: Any = f"BEGIN; {settings}" if connection.autocommit else settings
    connection.execute(statements, prepare=False)


def _is_readable(connection: Connection[Any]) -> bool:
    """Whether its server has sent something, or the end; nothing is waited for."""
    with DefaultSelector() as selector:
        selector.register(connection.fileno(), EVENT_READ)
        return bool(selector.select(0))


def _plain_rows() -> Any:
    """Rows are tuples, whatever a pool's connections make of them."""
    from psycopg.rows import tuple_row

    return tuple_row
