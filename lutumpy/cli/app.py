"""The commands put together: what `lutumpy` understands, and how it ends."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from lutumpy import __version__

try:
    import rich  # noqa: F401  # typer can be installed without it
    import typer
    from typer.core import TyperGroup
    from typer.main import get_command
except ImportError as _error:
    raise ImportError(
        "lutumpy.cli needs typer and rich; install them with: "
        'python -m pip install ".[cli]" (in a clone)'
    ) from _error

from lutumpy.cli.check import check
from lutumpy.cli.convert import convert
from lutumpy.cli.exit_codes import quiet_code
from lutumpy.cli.mcp import mcp
from lutumpy.cli.operators import rounds
from lutumpy.cli.repair import repair
from lutumpy.cli.replay import replay
from lutumpy.cli.show import show
from lutumpy.cli.text_formats import text_formats
from lutumpy.cli.tools import tools

__all__ = ["app", "run"]


class _Commands(TyperGroup):
    """The commands, ended quietly by Ctrl-C and by a pipe that nobody reads."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (KeyboardInterrupt, BrokenPipeError) as error:
            raise SystemExit(quiet_code(error)) from None
        return result


app: typer.Typer = typer.Typer(
    name="lutumpy",
    cls=_Commands,
    help="Transcripts and tools of language models: checked, mended, converted, shown.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# In the list of commands each has one line, which is given here where its first sentence is longer.
app.command("check")(check)
app.command("repair", short_help="Propose edits for what a provider would refuse.")(repair)
app.command("convert", short_help="Write a conversation as another API spells it.")(convert)
app.command("show", short_help="Show conversations in the terminal or as a page.")(show)
app.command("replay", short_help="Say what other tools and policies would change.")(replay)
app.command("text-formats", short_help="List the formats of calls of open models.")(text_formats)
app.add_typer(tools, name="tools", short_help="Check your tools at each provider, and lock them.")
app.add_typer(mcp, name="mcp", short_help="Show a server of MCP, or serve a toolset.")
app.add_typer(rounds, name="rounds", short_help="Work with the conversations of a store.")


# Typer calls it while it reads the options, so that `--version` needs no command.
def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lutumpy {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Transcripts and tools of language models: checked, mended, converted, shown."""


# The demo reads its own arguments, since it also runs where typer isn't installed.
@app.command(
    "demo",
    add_help_option=False,
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
)
def _demo(context: typer.Context) -> None:
    """A conversation with several rounds, each one explained."""
    from lutumpy.cli import demo

    raise typer.Exit(demo.main(context.args))


# Typer would make it of the functions again in each call: 25 ms.
@functools.cache
def _command() -> Callable[..., object]:
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code."""
    try:
        _command()(args=list(arguments), prog_name="lutumpy")
    except SystemExit as ended:
        # typer ends the program itself, and so do its errors; whoever called `main` goes on.
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return 0
