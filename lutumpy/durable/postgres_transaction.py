"""One transaction of Postgres, in few round trips."""

# What a statement costs here is its message to the server and back, and what psycopg's cursors do
# around it: 40 microseconds of this process, where libpq alone takes 5. So operations go through
# `psycopg.pq`, its documented door to libpq; and one message carries everything up to the next
# statement whose rows somebody waits for. The first one goes with BEGIN, those that give no rows go
# with the next that does, and the last ones with COMMIT. An error of a statement that waited comes
# with the message that carried it, and undoes the transaction as any other.
#
# Several statements in one message need the simple protocol, which has no parameters: values are
# written into the text, quoted by libpq for this connection. So nothing is ever prepared in a
# session, which behind pgbouncer is another program's next.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.durable.codecs import Codec, decode_rows
from lutumpy.durable.tables import Query, Rows

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Transaction"]

_SECONDS_OF_PATIENCE = 30
"""How long a lock is waited for, and how long a transaction may do nothing: a process that is
stopped in the middle of one loses it, and the others go on."""
_BEGIN = (
    f"BEGIN; SET LOCAL lock_timeout = '{_SECONDS_OF_PATIENCE}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{_SECONDS_OF_PATIENCE}s'"
)
_MOST_ROWS = 1_000
"""How many rows one statement inserts."""
# Numbers of types (`pg_type.oid`) whose text isn't the value: int8, int2, int4, float4, float8.
_READERS: Mapping[int, Callable[[bytes], Any]] = {20: int, 21: int, 23: int, 700: float, 701: float}


class Transaction:
    """A transaction on a connection. Nothing is sent before the first statement that gives rows.

    Args:
        connection: A connection that nobody else uses meanwhile.
        statements: The texts of statements as Postgres takes them, cut where values belong, by
            their texts in `tables.py`; one that is missing is added.
        schema: Where the tables are.
        codec: What encodes content.
    """

    def __init__(
        self,
        connection: Connection[Any],
        statements: dict[str, list[str]],
        schema: str,
        codec: Codec | None = None,
    ) -> None:
        from psycopg.pq import Escaping

        self.connection: Connection[Any] = connection
        self._quote = Escaping(connection.pgconn).escape_literal
        self._encoding = connection.info.encoding
        self._statements = statements
        self._schema = schema
        self._codec = codec
        self._waiting: list[str] = [_BEGIN]

    def execute(self, query: Query) -> Rows:
        """The rows of a statement; where it has none, it may be sent with a later one."""
        pieces = self._spell(query.sql)
        if query.many:
            self._add_rows(pieces, query.values(self._codec))
            return ()
        self._waiting.append(self._fill(pieces, query.values(self._codec)))
        if not _gives_rows(query.sql):
            return ()
        rows = self._send()
        return rows if self._codec is None else decode_rows(rows, self._codec)

    def commit(self) -> None:
        """Send what waits, and commit."""
        self._waiting.append("COMMIT")
        self._send()

    def roll_back(self) -> None:
        """Undo it, with the connection where that can't be asked for."""
        import psycopg

        self._waiting = ["ROLLBACK"]
        try:
            if not self.connection.closed:
                self._send()
        except psycopg.Error:
            self.connection.close()

    def _send(self) -> Rows:
        """Send what waits; the rows of its last statement."""
        from psycopg.pq import ExecStatus

        message, self._waiting = "; ".join(self._waiting), []
        result = self.connection.pgconn.exec_(message.encode(self._encoding))
        if result.status == ExecStatus.COMMAND_OK:
            return ()
        if result.status != ExecStatus.TUPLES_OK:
            raise self._error_of(result)
        encoding = self._encoding
        readers = [_READERS.get(result.ftype(column)) for column in range(result.nfields)]

        def read(row: int, column: int) -> Any:
            value = result.get_value(row, column)
            if value is None:
                return None
            reader = readers[column]
            return value.decode(encoding) if reader is None else reader(value)

        columns = range(len(readers))
        return [tuple([read(row, column) for column in columns]) for row in range(result.ntuples)]

    def _error_of(self, result: Any) -> Exception:
        from psycopg import OperationalError
        from psycopg.errors import error_from_result

        error = error_from_result(result, self._encoding)
        if self.connection.closed and not isinstance(error, OperationalError):
            return OperationalError(str(error))  # the server is gone, and has given no reason
        return error

    def _add_rows(self, pieces: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        head, _, first_piece = pieces[0].partition(" VALUES ")
        row_pieces = [first_piece, *pieces[1:]]
        for first in range(0, len(rows), _MOST_ROWS):
            some = [self._fill(row_pieces, row) for row in rows[first : first + _MOST_ROWS]]
            self._waiting.append(f"{head} VALUES {', '.join(some)}")

    def _fill(self, pieces: Sequence[str], values: Sequence[Any]) -> str:
        """A statement with its values, each as a literal."""
        filled = [pieces[0]]
        for value, piece in zip(values, pieces[1:], strict=True):
            filled += (self._literal(value), piece)
        return "".join(filled)

    def _literal(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return bytes(self._quote(value.encode(self._encoding))).decode(self._encoding)
        if isinstance(value, int):
            return f"({int(value)})"
        return f"'{float(value)!r}'::float8"

    def _spell(self, sql: str) -> list[str]:
        """A statement as Postgres takes it, cut where its values belong."""
        pieces = self._statements.get(sql)
        if pieces is None:
            filled = sql.format(
                t=f"{self._schema}.",
                index="lutumpy_",
                real="DOUBLE PRECISION",
                key='TEXT COLLATE "C"',
                lock=" FOR UPDATE",
                skip=" FOR UPDATE SKIP LOCKED",
                notify=f"NOTIFY {self._schema}",
                now="extract(epoch from clock_timestamp())::float8",
            )
            pieces = self._statements[sql] = filled.split("?")
        return pieces


def _gives_rows(sql: str) -> bool:
    return sql.startswith("SELECT") or " RETURNING " in sql
