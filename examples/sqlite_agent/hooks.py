"""What is checked before a call runs.

A hook that fails stops the round: nothing runs that was not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pydantic import BaseModel

from lutumpy import Reject, RunNormally, ToolDecision, ToolMetadata, hook_impl
from lutumpy.hooks import BaseToolCall

from .database import Database, Rows, StatementError
from .tools import Change, Changed

Consent = Callable[[Change, int], bool]
"""Asks the user about a change of so many rows."""


@dataclass
class Checks:
    """The hooks of one agent.

    Attributes:
        database: What the calls are checked against.
        consent: Who decides about changes.
        private: Columns that no query may read, as `table.column`.
        most_rows: How many rows one change may have.
    """

    database: Database
    consent: Consent
    private: Collection[str] = ()
    most_rows: int = 10

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> ToolDecision:
        """Holds for tools that are added one day, too."""
        if call.selector.definition.options.effect != "read" and not self.database.writable:
            return Reject("the database is open for reading only")
        return RunNormally(call.input)

    @hook_impl
    def query_hook(self, metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, Rows]:
        try:
            read = self.database.columns_read(input.model_dump()["sql"])
        except StatementError as error:
            return Reject(str(error))
        refused = sorted(read.intersection(self.private))
        return Reject(f"private: {', '.join(refused)}") if refused else RunNormally(input)

    @hook_impl
    def change_hook(self, metadata: ToolMetadata, input: Change) -> ToolDecision[Change, Changed]:
        """Tries the change first, and takes it back: what a statement does is better known from
        SQLite than from its text.
        """
        try:
            rows = self.database.change(input.sql, dry_run=True)
        except StatementError as error:
            return Reject(str(error))
        if rows > self.most_rows:
            return Reject(
                f"it would change {rows} rows, and {self.most_rows} are allowed; was a condition "
                "forgotten?"
            )
        if not self.consent(input, rows):
            return Reject("the user does not want this change")
        return RunNormally(input)
