"""The command line: `lutumpy check`, `repair`, `convert`, `show`, `tools`, `mcp`, `rounds`, `demo`.

Needs the `cli` extra (typer, rich, jinja2); `demo` and `--version` work without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from lutumpy import __version__
from lutumpy.cli.exit_codes import quiet_code, unwritable_code
from lutumpy.errors import UnknownApiError

__all__ = ["main"]

_EXTRA = ("typer", "rich", "jinja2")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code.

    0: all is well. 1: problems were found, or a provider failed. 2: the command can't run as it was
    given, or a file can't be read. 130 and 141: it was interrupted, or nobody reads on.
    """
    _open_closed_streams()
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        # Here, where it can be caught: a pipe that nobody reads fails when the buffer is written.
        sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError) as error:
        return quiet_code(error)
    except OSError as error:
        return unwritable_code(error)
    return code


def _open_closed_streams() -> None:
    """Let standard streams that are closed be empty: Python has `None` in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _run(arguments: list[str]) -> int:
    # These two work without the extra: they are what a newcomer tries first.
    if arguments[:1] == ["demo"]:
        from lutumpy.cli import demo

        return demo.main(arguments[1:])
    if arguments == ["--version"]:
        print(f"lutumpy {__version__}")
        return 0
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        print(
            f"lutumpy: the command line needs {' and '.join(missing)}; install it with: "
            'python -m pip install ".[cli]" (in a clone)',
            file=sys.stderr,
        )
        return 2
    try:
        from lutumpy.cli.app import run
    except UnknownApiError as error:  # help texts list the APIs, those of installed packages too
        print(f"lutumpy: {error}", file=sys.stderr)
        return 2
    return run(arguments)
