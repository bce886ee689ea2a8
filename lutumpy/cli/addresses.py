"""The tools that a command is about: a toolset's in a module, or an MCP server's at an address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lutumpy import Toolset
from lutumpy.cli.passwords import hide_passwords
from lutumpy.cli.terminal import Output, styled
from lutumpy.tool_doctor import ToolsetNotLoadedError, load_toolset

if TYPE_CHECKING:
    from lutumpy import DynamicTool

__all__ = [
    "FoundTools",
    "HeaderOption",
    "find_tools",
    "is_address",
    "list_server",
    "report_failure",
]

_SCHEMES = ("http://", "https://", "stdio:")

HeaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="NAME:VALUE",
        help="Send this header to a server behind HTTP; may be given again.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class FoundTools:
    """The tools that a command is about.

    Attributes:
        name: What they are locked under.
        toolset: The tools.
        skipped: Why other tools of a server can't be offered, by name.
        tools: Those of a server, as they were listed.
        instructions: What the server says about itself.
    """

    name: str
    toolset: type[Toolset[Any]]
    skipped: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[DynamicTool, ...] = ()
    instructions: str | None = None


def is_address(name: str) -> bool:
    """Whether this names a server and not a toolset in a module."""
    return name.startswith(_SCHEMES)


def find_tools(
    output: Output, name: str, directory: str, headers: list[str] | None = None
) -> FoundTools:
    """The tools that `name` leads to; ends the command where it leads to none."""
    if is_address(name):
        return list_server(output, name, headers)
    # The current directory first, as `python -m` has it: a toolset mostly isn't installed.
    try:
        return FoundTools(name, load_toolset(name, directory=directory or os.curdir))
    except ToolsetNotLoadedError as error:
        raise report_failure(output, str(error)) from error


def list_server(output: Output, address: str, headers: list[str] | None) -> FoundTools:
    """The tools of the server at this address; ends the command where it can't be reached."""
    sent = dict(_read_header(header) for header in headers or ())
    try:
        import anyio

        from lutumpy.mcp import McpConnectionError, McpTools, read_address
    except ImportError as error:
        raise report_failure(output, str(error)) from error

    async def list_tools() -> FoundTools:
        async with McpTools(read_address(address), name=address, headers=sent or None) as server:
            return FoundTools(
                server.address or address,
                server.toolset,
                dict(server.skipped),
                server.tools,
                server.instructions,
            )

    try:
        return anyio.run(list_tools)
    except McpConnectionError as error:
        raise report_failure(output, hide_passwords(str(error), address)) from error


def report_failure(output: Output, message: str) -> typer.Exit:
    """Say why the command can't run; gives what ends it."""
    if output.as_json:
        output.record("failed", message=message, exit_code=2)
    else:
        output.complain(styled(("lutumpy: ", "bold red"), message))
    return typer.Exit(2)


def _read_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"{text!r} is not a header: write NAME:VALUE.")
    return name.strip(), value.strip()
