"""A SQLite file: what it holds, queries, and changes. Nothing here knows of models."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Union

Value = Union[str, int, float, None]

READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
WRITING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
BETWEEN_STATEMENTS = frozenset({sqlite3.SQLITE_TRANSACTION})


class StatementError(Exception):
    """SQLite did not carry a statement out, and says why. Nothing was changed."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query, and whether there are more rows than were asked for."""

    columns: list[str]
    rows: list[list[Value]]
    more: bool


class Database:
    """A database file that exists, opened for reading only unless it is `writable`; to be used in a
    `with` block.

    A statement is one SELECT, or one INSERT, UPDATE or DELETE in `change`. SQLite itself refuses
    everything else: other files, pragmas, transactions, changes of the schema. One that takes more
    than `max_steps` of its machine is ended.
    """

    def __init__(self, path: Path, *, writable: bool = False, max_steps: int = 50_000_000) -> None:
        uri = f"{path.resolve().as_uri()}?mode={'rw' if writable else 'ro'}"
        self.writable: bool = writable
        self._max_steps = max_steps
        self._allowed = BETWEEN_STATEMENTS
        self._seen: list[tuple[int, str | None, str | None]] = []
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def schema(self) -> list[str]:
        """The statements that made its tables, indexes and views."""
        sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        with self._statement(READING):
            return [text for (text,) in self._connection.execute(sql)]

    def columns_read(self, sql: str) -> set[str]:
        """What a SELECT would read, as `table.column`; nothing is read."""
        with self._statement(READING):
            self._connection.execute(f"EXPLAIN {sql}").close()
        return {
            f"{table}.{column}"
            for action, table, column in self._seen
            if action == sqlite3.SQLITE_READ
        }

    def query(self, sql: str, at_most: int) -> Rows:
        """The first rows that a SELECT gives."""
        with self._statement(READING):
            cursor = self._connection.execute(sql)
            columns = [name for name, *_ in cursor.description or ()]
            rows = [[_plain(value) for value in row] for row in cursor.fetchmany(at_most + 1)]
            cursor.close()
        return Rows(columns, rows[:at_most], len(rows) > at_most)

    def change(self, sql: str, *, dry_run: bool = False) -> int:
        """Carry an INSERT, UPDATE or DELETE out and give the number of its rows; with `dry_run` it
        is taken back.
        """
        if not self.writable:
            raise StatementError("the database is open for reading only")
        with self._statement(BETWEEN_STATEMENTS):
            self._connection.execute("BEGIN IMMEDIATE")  # fails where somebody else is writing
        try:
            with self._statement(READING | WRITING):
                rows = self._connection.execute(sql).rowcount
                if not any(action in WRITING for action, *_ in self._seen):
                    raise StatementError("this is neither INSERT, UPDATE nor DELETE")
            with self._statement(BETWEEN_STATEMENTS):
                self._connection.execute("ROLLBACK" if dry_run else "COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return rows

    @contextmanager
    def _statement(self, allowed: frozenset[int]) -> Iterator[None]:
        """SQLite holds what runs inside to these actions, and to the limit of steps."""
        self._allowed, self._seen = allowed, []
        # Set anew each time: that ends what is prepared, and a statement that Python keeps is
        # authorized again.
        self._connection.set_authorizer(self._authorize)
        steps = iter(range(0, self._max_steps, 1000))
        self._connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise StatementError(f"SQLite: {error}") from error
        finally:
            self._connection.set_progress_handler(None, 0)
            self._allowed = BETWEEN_STATEMENTS

    def _authorize(
        self, action: int, first: str | None, second: str | None, *where: str | None
    ) -> int:
        self._seen.append((action, first, second))
        return sqlite3.SQLITE_OK if action in self._allowed else sqlite3.SQLITE_DENY


def _plain(value: Value | bytes) -> Value:
    return f"({len(value)} bytes)" if isinstance(value, bytes) else value
