"""What a model may ask of the database."""

from __future__ import annotations

from typing import Annotated, TypeAlias, Union

from pydantic import BaseModel, Field

from lutumpy import Skip, ToolCall, ToolError, ToolInput, Toolset, tool, tool_fn, tool_input

from .database import Database, Rows, StatementError


@tool_fn(effect="read")
def schema(*, database: Skip[Database]) -> list[str]:
    """The statements that made the tables. Read them before you write a statement of your own."""
    return database.schema()


@tool_fn(effect="read")
def query(
    sql: str, at_most: Annotated[int, Field(ge=1, le=100)] = 20, *, database: Skip[Database]
) -> Rows:
    """Ask the database.

    Args:
        sql: One SELECT, in SQLite's dialect.
        at_most: How many rows to return.
    """
    try:
        return database.query(sql, at_most)
    except StatementError as error:
        raise ToolError(str(error)) from error


class Changed(BaseModel):
    rows: int


@tool_input(name="change")
class Change(ToolInput[Changed]):
    """Change rows of the database."""

    sql: str
    """One INSERT, UPDATE or DELETE, in SQLite's dialect."""
    why: str
    """What it is for, in one sentence for the user."""


def change(input: Change, database: Database) -> Changed:
    """What carries a `Change` out."""
    try:
        return Changed(rows=database.change(input.sql))
    except StatementError as error:
        raise ToolError(str(error)) from error


SqlCall: TypeAlias = Union[
    ToolCall[BaseModel, list[str]], ToolCall[BaseModel, Rows], ToolCall[Change, Changed]
]


class SqlTools(Toolset[SqlCall]):
    schema = tool(schema)
    query = tool(query)
    change = tool(Change, off=True)  # offered where the database is writable
