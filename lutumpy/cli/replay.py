"""`lutumpy replay`: would the calls of a recorded conversation fare otherwise now?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lutumpy import Session
from lutumpy.cli.findings import counted
from lutumpy.cli.options import JsonOption
from lutumpy.cli.passwords import hide_passwords
from lutumpy.cli.stores import with_store
from lutumpy.cli.terminal import Output, styled
from lutumpy.errors import LutumpyError
from lutumpy.plain import json_values
from lutumpy.tool_doctor import load_object, load_toolset

if TYPE_CHECKING:
    from lutumpy.testing import CallDifference, PastConversation

__all__ = ["replay"]


def replay(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A cassette, or a dump of a session. With --scope a store: the file of a "
            "SqliteStore, postgresql://..., or package.module:name of any store.",
            show_default=False,
        ),
    ],
    tools: Annotated[
        str,
        typer.Option(
            "--with", metavar="TOOLS", help="The toolset: package.module:Tools.", show_default=False
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Hooks of that toolset, or a function that decides calls: package.module:hooks.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        int, typer.Option("--at", metavar="ROUND", min=1, help="The first round to look at.")
    ] = 1,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", metavar="SCOPE", help="A conversation of a store.", show_default=False
        ),
    ] = None,
    directory: Annotated[
        str,
        typer.Option(
            "--app-dir",
            metavar="DIR",
            help="Where modules are looked for first.",
            show_default="here",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Say which calls of recorded conversations would fare otherwise with these tools and policies.

    No model is asked and no tool is run; hooks are asked.

    Exit code 0: none would. 1: some would. 2: there is no such toolset or conversation, a file
    can't be read, or a hook failed.
    """
    output = Output(as_json=as_json)
    here = directory or os.curdir
    total = 0
    try:
        toolset = load_toolset(tools, directory=here)
        hooks: Any = None if policy is None else load_object(policy, directory=here)
        for number, conversation in enumerate(_conversations(output, file, scope), 1):
            found = _judge(conversation, toolset, hooks, at)
            total += len(found)
            _print_differences(output, number, conversation, found)
    except (LutumpyError, OSError, UnicodeDecodeError) as error:
        output.complain(f"lutumpy: {hide_passwords(str(error), file)}")
        raise typer.Exit(2) from error
    raise typer.Exit(int(total > 0))


def _conversations(output: Output, file: str, scope: str | None) -> list[PastConversation]:
    from lutumpy.testing import PastConversation

    if scope is not None:
        return [with_store(output, file, lambda store: PastConversation.from_store(store, scope))]
    try:
        data = json_values.decode(Path(file).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # several lines
        data = None
    if isinstance(data, dict) and data.get("format") == "lutumpy.session":
        return [PastConversation(Session.load(data))]
    return PastConversation.from_cassette(file)


def _judge(
    conversation: PastConversation, toolset: Any, hooks: Any, at: int
) -> list[CallDifference]:
    import asyncio  # hooks may be async

    return asyncio.run(conversation.judge(toolset, hooks, at=at))


def _print_differences(
    output: Output, number: int, conversation: PastConversation, found: list[CallDifference]
) -> None:
    rounds = len(conversation.rounds)
    if output.as_json:
        for one in found:
            output.record(
                "difference",
                conversation=number,
                round=one.round,
                tool=one.name,
                arguments=one.arguments,
                was=one.was,
                now=one.now,
                detail=one.detail,
            )
        output.record("conversation", number=number, rounds=rounds, differences=len(found))
        return
    verdict = f"{counted(len(found), 'call')} would fare otherwise" if found else "nothing differs"
    output.print(f"conversation {number}, {counted(rounds, 'round')}: {verdict}")
    for one in found:
        output.print(styled(f"  {one}"))
