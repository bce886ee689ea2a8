"""The lists of commands: every line is whole, and a file is named once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from lutumpy.cli.app import app

WIDTH = 78
"""Characters of a line, on a terminal of 80."""


def commands_of(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield f"{path} {name}", inner
        yield from commands_of(inner, f"{path} {name}")


def test_no_summary_of_a_command_is_cut() -> None:
    root = typer.main.get_command(app)
    groups = [root, *[inner for _, inner in commands_of(root, "lutumpy")]]
    shown = 0
    for group in groups:
        commands = getattr(group, "commands", {})
        room = WIDTH - 6 - max(map(len, commands), default=0)
        for name, inner in commands.items():
            summary = inner.get_short_help_str(room)
            assert summary, name
            assert not summary.endswith("..."), f"{name}: {summary}"
            shown += 1
    assert shown > 15


def test_a_file_is_named_once() -> None:
    root = typer.main.get_command(app)
    for path, inner in commands_of(root, "lutumpy"):
        usage = " ".join(inner.collect_usage_pieces(typer.Context(inner)))
        assert "......" not in usage.replace("}", ""), path
