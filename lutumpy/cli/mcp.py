"""`lutumpy mcp show` and `lutumpy mcp serve`: MCP servers on the command line."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from lutumpy import DynamicTool
from lutumpy.cli.addresses import FoundTools, HeaderOption, list_server, report_failure
from lutumpy.cli.exit_codes import INTERRUPTED
from lutumpy.cli.findings import counted
from lutumpy.cli.options import JsonOption
from lutumpy.cli.terminal import Output, cut_text, styled
from lutumpy.cli.tools import DirectoryOption, print_findings, print_skipped, record_finding
from lutumpy.errors import DeclarationError
from lutumpy.tool_doctor import ToolsetNotLoadedError, check_tools, load_object

if TYPE_CHECKING:
    from mcp.server import Server

__all__ = ["mcp"]

mcp: typer.Typer = typer.Typer(
    help="Servers of the Model Context Protocol: what one offers, and a toolset as one.",
    rich_markup_mode=None,
)

_LONGEST = 100  # characters of a description in the table


@mcp.command("show")
def show(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="https://..., or 'stdio:COMMAND ARGUMENTS'.", show_default=False
        ),
    ],
    header: HeaderOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tools of a server, with what the tool doctor says of them.

    A stdio server is started for it, and ended. Nothing is called.

    Exit code 0: the tools were listed. 2: the server can't be reached.
    """
    output = Output(as_json=as_json)
    found = list_server(output, address, header)
    report = check_tools(found.toolset)
    if as_json:
        for tool in found.tools:
            output.record("tool", toolset=found.name, **_describe_tool(tool))
        for original, reason in found.skipped.items():
            output.record("skipped", toolset=found.name, tool=original, reason=reason)
        for finding in report.findings:
            record_finding(output, found.name, finding)
        output.record(
            "server",
            toolset=found.name,
            tools=len(found.tools),
            skipped=len(found.skipped),
            instructions=found.instructions,
        )
        return
    output.print(styled((found.name, "bold"), f"  {counted(len(found.tools), 'tool')}"))
    if found.tools:
        output.print("", _make_table(found))
    print_skipped(output, found)
    print_findings(output, report)
    if found.instructions:
        output.print("", styled(("what the server says of itself", "bold")))
        output.print(styled(cut_text(found.instructions, 1000)))


def _describe_tool(tool: DynamicTool) -> dict[str, Any]:
    definition = tool.definition
    return {
        "name": tool.name,
        "original_name": tool.original_name,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "annotations": definition.options.annotations,
    }


def _make_table(found: FoundTools) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("tool", "parameters", "it says", "description"):
        table.add_column(heading, no_wrap=heading != "description")
    for tool in found.tools:
        schema = tool.definition.input_schema
        required = schema.get("required", [])
        names = [name if name in required else f"{name}?" for name in schema.get("properties", {})]
        name = tool.name
        if tool.original_name != name:
            name += f" ({tool.original_name})"
        first_line = tool.definition.description.strip().partition("\n")[0]
        cells = (
            name,
            cut_text(", ".join(names), 40),
            _show_hints(tool),
            cut_text(first_line, _LONGEST),
        )
        table.add_row(*[styled(cell) for cell in cells])
    return table


def _show_hints(tool: DynamicTool) -> str:
    hints = tool.definition.options.annotations or {}
    words = {
        "readOnlyHint": "reads",
        "idempotentHint": "idempotent",
        "destructiveHint": "destroys",
        "openWorldHint": "open world",
    }
    return ", ".join([word for hint, word in words.items() if hints.get(hint) is True])


@mcp.command("serve")
def serve(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            help="A toolset, as in package.module:AppTools, or what mcp_server() gave.",
            show_default=False,
        ),
    ],
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve streamable HTTP at /mcp there, in place of stdio.",
            show_default=False,
        ),
    ] = None,
    directory: DirectoryOption = "",
) -> None:
    """Serve a toolset to clients of MCP, over stdio or streamable HTTP.

    Hooks, a dispatcher and a context are given in code: name a server that mcp_server() made.

    Exit code 0: the client has gone. 2: there is no such toolset, nothing runs its tools, or it
    can't be served at HOST:PORT. 130: it was ended by Ctrl-C.
    """
    output = Output()
    place = None if http is None else _read_place(http)
    if place is not None:
        _serve_http(_load_server(output, name, directory), *place)
        return
    # Standard output is the client's, and what a module prints as it is imported isn't for it. The
    # SDK's transport sees to what tools print.
    with redirect_stdout(sys.stderr):
        server = _load_server(output, name, directory)
    _serve_stdio(server)


def _load_server(output: Output, name: str, directory: str) -> Server[Any]:
    try:
        from mcp.server import Server as McpServer

        from lutumpy.mcp import mcp_server
    except ImportError as error:
        raise report_failure(output, str(error)) from error
    try:
        found = load_object(name, directory=directory or os.curdir)
        if isinstance(found, McpServer):
            return found
        return mcp_server(found)
    except (ToolsetNotLoadedError, DeclarationError) as error:
        raise report_failure(output, str(error)) from error


def _read_place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"{text!r} is not HOST:PORT, as 127.0.0.1:8000.")
    return host.strip("[]"), int(port)


def _serve_stdio(server: Server[Any]) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    # A thread of the SDK is in a read of standard input that nothing can end, and the interpreter
    # would wait for it: in a terminal Ctrl-C had to be pressed three times.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        anyio.run(run)
    finally:
        signal.signal(signal.SIGINT, before)


def _serve_http(server: Server[Any], host: str, port: int) -> None:
    import uvicorn

    class Announced(uvicorn.Server):
        """Says where it serves once it does."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            for listening in self.servers[:1]:
                bound = listening.sockets[0].getsockname()[1]  # port 0 is any free one
                address = f"[{host}]" if ":" in host else host
                at = f"http://{address}:{bound}/mcp"
                print(f"lutumpy: serving {at}", file=sys.stderr, flush=True)

    app = server.streamable_http_app(host=host)
    # Without `ws`, it imports what it finds installed for WebSockets, which MCP has no use for.
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", ws="none")
    serving = Announced(config)
    try:
        serving.run()
    except SystemExit as error:
        if serving.started:
            raise
        raise typer.Exit(2) from error  # it has said why it can't serve there
