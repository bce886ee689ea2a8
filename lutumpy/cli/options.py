"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lutumpy.apis import api_names
from lutumpy.doctor import host_name

__all__ = [
    "API_NAMES",
    "ApiOption",
    "Files",
    "HostOption",
    "JsonOption",
    "OutOption",
    "check_api",
    "check_host",
]

API_NAMES = f"[{'|'.join(api_names())}]"
"""The APIs as help texts show them. What is added after this module was imported is missing here,
and taken all the same.
"""


def check_api(value: Any) -> Any:
    """What `--api` or `--to` was given: a name, several names, or `None`; the table is asked each
    time.

    Raises:
        typer.BadParameter: there is no such API.
    """
    known = api_names()
    for name in [value] if isinstance(value, str) else value or []:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, known))}.")
    return value


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="JSON or JSON Lines files; - is standard input.", show_default=False
    ),
]
ApiOption = Annotated[
    str | None,
    typer.Option(
        "--api",
        metavar=API_NAMES,
        callback=check_api,
        help="Whose API the files are for; recognised when left out.",
        show_default=False,
    ),
]


def check_host(value: str | None) -> str | None:
    """A host as `--host` was given it.

    Raises:
        typer.BadParameter: It is neither a known name nor an address.
    """
    if value is not None:
        try:
            host_name(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="HOST",
        callback=check_host,
        help="The host that the requests are for: its address or name, or compatible. What only "
        "OpenAI or Anthropic is known to refuse may pass elsewhere. If omitted, the file decides.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
OutOption = Annotated[
    str, typer.Option("--out", "-o", metavar="OUT", help="The file to write; - is standard output.")
]
