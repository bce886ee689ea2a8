"""Conversations in one file: `SqliteStore`."""

# One connection, in one thread, for all tasks and threads of the program:
#
#   task --operation--> queue --> the thread: BEGIN IMMEDIATE; each operation that waits, in a
#     ^                           savepoint of its own; COMMIT; only then are they notified
#     +------- its result --------+
#
# So operations that come while the disk is busy share the next transaction, and its one fsync:
# three markers of one round, or three results, cost what one costs. An operation that raises rolls
# its savepoint back, and the others are committed. If the commit itself fails, each of them
# fails, and nothing of any is there.
#
# A caller who is cancelled while the thread works waits for the end all the same: it is a matter of
# milliseconds, and whoever can't say whether a marker was written would have to guess.

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import anyio

from lutumpy.durable.codecs import Codec, decode_rows
from lutumpy.durable.database_store import DatabaseStore
from lutumpy.durable.forks import close_before_forks
from lutumpy.durable.migrations import prepare
from lutumpy.durable.tables import Operation, Query, Rows
from lutumpy.durable.waking import Waker

__all__ = ["SqliteStore"]

T = TypeVar("T")

_SECONDS_OF_PATIENCE = 30.0
"""How long a transaction of another process is waited for."""
_SECONDS_BETWEEN_ATTEMPTS = 0.02

_FILL = {
    "t": "",
    "index": "",
    "real": "REAL",
    "key": "TEXT",
    "lock": "",
    "skip": "",
    "notify": "SELECT 1",
    "now": "((julianday('now') - 2440587.5) * 86400.0)",
}


class _Job(NamedTuple):
    """An operation that waits for the thread, and whom to tell."""

    operation: Operation[Any]
    tell: Callable[[Any, BaseException | None], None]


class SqliteStore(DatabaseStore):
    """Conversations in a file of SQLite, for any number of processes on one machine.

    Not for network file systems: SQLite needs locks that most of them don't keep.

    The file is opened when the store is first used. Close the store by `close()`, or use it as
    `with` or `async with`.

    Args:
        path: The file; it is created, with its tables, where there is none.
        synchronous: `FULL`: what was committed survives power loss, as far as the disk tells the
            truth. `NORMAL`: it survives `kill -9`, and is faster; after power loss the last rounds
            may be missing, and with them the markers of calls that ran (rule P21).
        codec: Encodes what conversations consist of; see `Codec`.

    Raises:
        ValueError: `synchronous` is neither.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        codec: Codec | None = None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ValueError(f"synchronous= is 'FULL' or 'NORMAL', not {synchronous!r}")
        self.path: str = os.fspath(path)
        self._synchronous = synchronous
        self._codec = codec
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        # A store that is dropped open ends its thread.
        weakref.finalize(self, self._jobs.put, None)
        close_before_forks(self)

    async def _run(self, operation: Operation[T]) -> T:
        waker = Waker()
        outcome: list[tuple[Any, BaseException | None]] = []

        def tell(value: Any, error: BaseException | None) -> None:
            outcome.append((value, error))
            waker.wake()

        self._submit(_Job(operation, tell))
        with anyio.CancelScope(shield=True):
            await waker.wait()
        ((value, error),) = outcome
        if error is not None:
            raise error
        result: T = value
        return result

    def _submit(self, job: _Job) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the store {self.path} is closed; nothing was written")
            if self._thread is None:
                work = _Worker(self.path, self._synchronous, self._jobs, self._codec)
                self._thread = threading.Thread(target=work.run, name="lutumpy-sqlite", daemon=True)
                self._thread.start()
            self._jobs.put(job)

    def close(self) -> None:
        """Finish what waits and close the file. Closing again changes nothing."""
        with self._lock:
            self._closed = True
            self._end_thread()

    def _end_thread(self) -> None:
        """Finish what waits and close the file; the lock is held."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()

    def pause(self) -> None:
        """For forks; see `forks.py`."""
        self._lock.acquire()
        self._end_thread()

    def go_on(self) -> None:
        """For forks; see `forks.py`."""
        self._lock.release()

    def __del__(self) -> None:
        if getattr(self, "_thread", None) is not None:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"


class _Worker:
    """What the thread does. It doesn't know the store, so that a dropped store can end it."""

    def __init__(
        self,
        path: str,
        synchronous: str,
        jobs: queue.SimpleQueue[_Job | None],
        codec: Codec | None = None,
    ) -> None:
        self._path = path
        self._codec = codec
        self._synchronous = synchronous
        self._jobs = jobs
        self._connection: sqlite3.Connection | None = None
        self._statements: dict[str, str] = {}

    def run(self) -> None:
        """Do what comes, until the store is closed."""
        try:
            open_ = True
            while open_:
                jobs = [self._jobs.get()]
                while not self._jobs.empty():
                    jobs.append(self._jobs.get())
                open_ = None not in jobs
                waiting = [job for job in jobs if job is not None]
                if waiting:
                    self._do(waiting)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _do(self, jobs: list[_Job]) -> None:
        """Do several operations in one transaction, and tell each what came of it."""
        done: list[tuple[_Job, Any, BaseException | None]] = []
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                if len(jobs) == 1:  # as mostly: it needs no savepoint beside the transaction
                    done.append((jobs[0], *self._try(connection, jobs[0].operation)))
                else:
                    done += [(job, *self._do_one(connection, job.operation)) for job in jobs]
            finally:
                # An operation's own error is among `done`; another one undoes all of them.
                failed = len(done) < len(jobs) or (len(jobs) == 1 and done[0][2] is not None)
                connection.execute("ROLLBACK" if failed else "COMMIT")
        except BaseException as error:
            done = [(job, None, error) for job in jobs]
            self._forget_connection()
        for job, value, raised in done:
            job.tell(value, raised)

    def _do_one(
        self, connection: sqlite3.Connection, operation: Operation[Any]
    ) -> tuple[Any, BaseException | None]:
        """Do one of several operations, and undo it alone if it raises."""
        connection.execute("SAVEPOINT operation")
        value, raised = self._try(connection, operation)
        if raised is not None:
            connection.execute("ROLLBACK TO operation")
        connection.execute("RELEASE operation")
        return value, raised

    def _try(
        self, connection: sqlite3.Connection, operation: Operation[Any]
    ) -> tuple[Any, BaseException | None]:
        """What an operation gives, or what it raises of its own."""
        try:
            return self._drive(connection, operation), None
        except sqlite3.Error:
            raise  # of the database itself: nothing of this transaction is sure
        except Exception as error:
            return None, error

    def _drive(self, connection: sqlite3.Connection, operation: Operation[Any]) -> Any:
        try:
            query = next(operation)
            while True:
                query = operation.send(self._execute(connection, query))
        except StopIteration as done:
            return done.value

    def _execute(self, connection: sqlite3.Connection, query: Query) -> Rows:
        statement = self._statements.get(query.sql)
        if statement is None:
            statement = self._statements[query.sql] = query.sql.format(**_FILL)
        values = query.values(self._codec)
        if query.many:
            connection.executemany(statement, values)
            return ()
        rows = connection.execute(statement, values).fetchall()
        return rows if self._codec is None else decode_rows(rows, self._codec)

    def _connect(self) -> sqlite3.Connection:
        """The connection, opened when it is first needed."""
        if self._connection is None:
            connection = sqlite3.connect(
                self._path, timeout=_SECONDS_OF_PATIENCE, isolation_level=None
            )
            try:
                _turn_to_wal(connection)
                connection.execute(f"PRAGMA synchronous = {self._synchronous}")
                connection.execute("BEGIN IMMEDIATE")
                self._drive(connection, prepare())
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _forget_connection(self) -> None:
        """Close a connection whose last transaction failed: the next operation opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _turn_to_wal(connection: sqlite3.Connection) -> None:
    """Turn a new file to WAL.

    While another process does the same, SQLite says at once that the file is locked.
    """
    end = time.monotonic() + _SECONDS_OF_PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
