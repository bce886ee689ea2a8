"""`lutumpy text-formats`: the ways in which open models write calls, by name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lutumpy.cli.options import JsonOption
from lutumpy.cli.terminal import Output

__all__ = ["text_formats"]


def text_formats(
    model: Annotated[
        str,
        typer.Option("--model", metavar="NAME", help="Only the format of this model, by its name."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List the formats that TagToolParser.named() reads, and what servers call them.

    Exit code 0: formats are listed. 1: no format of the model is known.
    """
    # Imported here: no other command needs it.
    from lutumpy.text_tools import TextFormat, recognize_format
    from lutumpy.text_tools import text_formats as all_formats

    found: tuple[TextFormat, ...] = all_formats()
    if model:
        one = recognize_format(model)
        found = () if one is None else (one,)
    output = Output(as_json=as_json)
    table = Table("format", "servers call it", "a call", box=None, pad_edge=False)
    for one in found:
        call = one.syntaxes[0].spelled("tool_name", '{"parameter": "value"}')
        if as_json:
            output.record(
                "format", format=one.name, aliases=list(one.aliases), call=call, source=one.source
            )
        table.add_row(one.name, ", ".join(one.aliases), Text(call.replace("\n", "\\n")))
    if found and not as_json:
        output.print(table)
    raise typer.Exit(0 if found else 1)
