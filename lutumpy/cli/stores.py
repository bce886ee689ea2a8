"""What the commands about stores share: opening one, and lists of what is in it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Table

from lutumpy.cli.passwords import hide_passwords
from lutumpy.cli.terminal import Output, styled
from lutumpy.errors import LutumpyError

if TYPE_CHECKING:
    from lutumpy.durable import OperatorStore

__all__ = [
    "ByOption",
    "CallArgument",
    "PrefixOption",
    "ScopeArgument",
    "StoreArgument",
    "add_row",
    "make_table",
    "with_store",
]

T = TypeVar("T")

StoreArgument = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="The file of a SqliteStore, postgresql://... of a PostgresStore, or "
        "package.module:name of any store.",
        show_default=False,
    ),
]
ScopeArgument = Annotated[
    str, typer.Argument(metavar="SCOPE", help="The conversation's id.", show_default=False)
]
CallArgument = Annotated[
    str, typer.Argument(metavar="CALL", help="The id of the call.", show_default=False)
]
ByOption = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Who decides.", show_default=False)
]
PrefixOption = Annotated[
    str,
    typer.Option("--prefix", metavar="TEXT", help="Only conversations whose ids begin with it."),
]


def make_table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    table.add_row(*[styled(cell) for cell in cells])


def with_store(output: Output, place: str, use: Callable[[OperatorStore], Awaitable[T]]) -> T:
    """What `use` gives for the store at a place; ends the command with 2 where it can't be used."""
    try:
        import anyio

        opened = open_store(place)

        async def run() -> T:
            async with opened as store:
                return await use(store)

        return anyio.run(run)
    except (ImportError, LutumpyError, OSError) as error:
        output.complain(f"lutumpy: {hide_passwords(str(error), place)}")
    except Exception as error:  # of the database's own library
        if type(error).__module__.partition(".")[0] not in ("sqlite3", "psycopg"):
            raise
        said = f"lutumpy: {place} can't be used: {error}"
        output.complain(hide_passwords(said, place))
    raise typer.Exit(2)


def open_store(place: str) -> AbstractAsyncContextManager[OperatorStore]:
    if place.startswith(("postgresql://", "postgres://")):
        from lutumpy.durable import PostgresStore

        return PostgresStore(place)
    from lutumpy.durable import SqliteStore

    module, colon, name = place.partition(":")
    if colon and name.isidentifier() and all(map(str.isidentifier, module.split("."))):
        return _import_store(module, name)
    # A new file would hold nothing, and be left behind.
    if not Path(place).is_file():
        raise FileNotFoundError(f"there is no file {place}")
    return SqliteStore(place)


def _import_store(module: str, name: str) -> AbstractAsyncContextManager[OperatorStore]:
    """The store of a module, which is looked for here first: one with a codec, or of your own."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found: Any = getattr(importlib.import_module(module), name, None)
    if found is None:
        raise ImportError(f"the module {module} has no {name}")
    store: AbstractAsyncContextManager[OperatorStore] = found
    return store
