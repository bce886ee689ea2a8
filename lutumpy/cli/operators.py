"""`lutumpy rounds` for operators and workers: what is stuck, unknown or old, and what is next."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lutumpy.cli.findings import counted
from lutumpy.cli.options import JsonOption
from lutumpy.cli.rounds import rounds
from lutumpy.cli.stores import (
    ByOption,
    PrefixOption,
    ScopeArgument,
    StoreArgument,
    add_row,
    make_table,
    with_store,
)
from lutumpy.cli.terminal import Output, styled

if TYPE_CHECKING:
    from lutumpy.durable import OperatorStore, Prunable

__all__ = ["rounds"]

LimitOption = Annotated[int, typer.Option("--limit", min=1, help="The most to list.")]


@rounds.command("unresolved", short_help="List calls whose outcome nobody knows.")
def unresolved(
    store: StoreArgument,
    prefix: PrefixOption = "",
    limit: LimitOption = 100,
    as_json: JsonOption = False,
) -> None:
    """List the calls of all conversations whose outcome nobody knows, oldest first.

    Exit code 0: there are none. 1: there are some. 2: the store can't be read.
    """
    output = Output(as_json=as_json)
    calls = with_store(output, store, lambda opened: opened.unresolved(prefix=prefix, limit=limit))
    table = make_table("conversation", "call", "tool", "arguments")
    for call in calls:
        metadata = call.metadata
        cells = {
            "scope": call.scope,
            "call_id": metadata.id,
            "tool": metadata.name,
            "arguments": metadata.arguments,
        }
        if as_json:
            output.record("unresolved", **cells)
        add_row(table, *cells.values())
    if not as_json:
        output.print(styled(f"{counted(len(calls), 'call')} of unknown outcome"))
        if calls:
            output.print("", table)
    raise typer.Exit(1 if calls else 0)


@rounds.command("next", short_help="Print the conversation that has waited longest.")
def next_scope(
    store: StoreArgument,
    prefix: PrefixOption = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until there is one.")] = False,
    reserve: Annotated[
        float, typer.Option("--reserve", metavar="SECONDS", help="Nobody else gets it meanwhile.")
    ] = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Print the id of the conversation that has waited longest for a process to go on with it.

    Exit code 0: there is one. 1: there is none. 2: the store can't be read.
    """
    output = Output(as_json=as_json)

    async def look(opened: OperatorStore) -> str | None:
        found = await opened.next(prefix=prefix, reserve=reserve)
        if found is None and wait:
            async for scope in opened.watch(prefix=prefix):
                return scope
        return found

    scope = with_store(output, store, look)
    if scope is None:
        output.complain("there is nothing to go on with")
        raise typer.Exit(1)
    if as_json:
        output.record("next", scope=scope)
    else:
        output.print(styled(scope))


@rounds.command("retry")
def retry(
    store: StoreArgument, scope: ScopeArgument, by: ByOption, as_json: JsonOption = False
) -> None:
    """Let a conversation that is stuck be tried again.

    Exit code 0: it will be. 1: it wasn't stuck. 2: there is no such conversation.
    """
    output = Output(as_json=as_json)
    done = with_store(output, store, lambda opened: opened.retry(scope, by=by))
    _tell(output, "retried", scope, by, done=done, otherwise="is not stuck")


@rounds.command("break")
def break_lease(
    store: StoreArgument,
    scope: ScopeArgument,
    by: ByOption,
    stop: Annotated[
        bool, typer.Option("--stop", help="No worker goes on before something comes in.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """End the lease of a conversation, or stop its run.

    For a process that doesn't answer: it can write nothing to the conversation any more.

    Exit code 0: it is ended. 1: there was none. 2: there is no such conversation.
    """
    output = Output(as_json=as_json)
    done = with_store(output, store, lambda opened: opened.break_lease(scope, by=by, stop=stop))
    _tell(output, "broken", scope, by, done=done, otherwise="is nobody's")


def _tell(output: Output, kind: str, scope: str, by: str, *, done: bool, otherwise: str) -> None:
    if output.as_json:
        output.record(kind, scope=scope, by=by, done=done)
    elif done:
        output.print(styled(f"{scope}: {kind}, by {by}"))
    else:
        output.complain(f"{scope} {otherwise}")
    raise typer.Exit(0 if done else 1)


@rounds.command("history", short_help="List the rounds of a conversation.")
def history(store: StoreArgument, scope: ScopeArgument, as_json: JsonOption = False) -> None:
    """List the rounds of a conversation that were committed, oldest first.

    Exit code 0: they were listed. 2: there is no such conversation.
    """
    output = Output(as_json=as_json)
    rows = with_store(output, store, lambda opened: opened.history(scope))
    table = make_table("at", "round", "items", "committed", "calls with effects")
    for row in rows:
        calls = [f"{call.metadata.name} {call.metadata.id}" for call in row.effects]
        place = f"{row.task}.{row.round}"
        when = row.at.isoformat(timespec="seconds")
        if as_json:
            output.record(
                "round", at=place, number=row.number, items=row.items, committed=row.at, calls=calls
            )
        add_row(table, place, str(row.number), str(row.items), when, ", ".join(calls))
    if not as_json:
        output.print(styled(counted(len(rows), "past round")), "", table)


@rounds.command("fork", short_help="Make a new conversation from an old round.")
def fork(
    store: StoreArgument,
    scope: ScopeArgument,
    at: Annotated[
        str,
        typer.Option("--at", metavar="TASK.ROUND", help="As history shows it.", show_default=False),
    ],
    to: Annotated[
        str,
        typer.Option("--to", metavar="SCOPE", help="The new id.", show_default=False),
    ],
    as_json: JsonOption = False,
) -> None:
    """Make a new conversation of an old one, as that stood behind an earlier round.

    What the old one did later is not done again: equal calls are refused in the new one.

    Exit code 0: it was made. 2: there is no such round, or the new id is taken.
    """
    output = Output(as_json=as_json)
    task, dot, number = at.partition(".")
    if not (dot and task.isdecimal() and number.isdecimal()):
        raise typer.BadParameter(f"--at is two numbers as in 2.0, not {at!r}.")
    if to == scope:
        raise typer.BadParameter("--to is another id: the old conversation stays as it is.")
    place = int(task), int(number)
    with_store(output, store, lambda opened: opened.fork(scope, at=place, to=to))
    if as_json:
        output.record("forked", scope=scope, at=at, to=to)
    else:
        output.print(styled(f"{to}: {scope} as it stood at {at}"))


@rounds.command("prune", short_help="Remove what is older than a moment.")
def prune(
    store: StoreArgument,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="MOMENT",
            help="As 2026-11-25T12:00:00+00:00, or how long ago: 30d, 12h.",
            show_default=False,
        ),
    ],
    what: Annotated[
        list[str] | None,
        typer.Option("--what", metavar="records|events|conversations", help="Several times."),
    ] = None,
    prefix: PrefixOption = "",
    as_json: JsonOption = False,
) -> None:
    """Remove what is older than a moment: by default records of past rounds, and their events.

    Whole conversations go only where they are done, and nobody has anything to find out.

    Exit code 0: it is removed. 2: the store can't be written to.
    """
    output = Output(as_json=as_json)
    moment, kinds = _read_moment(before), what or ["records", "events"]
    for kind in kinds:
        if kind not in ("records", "events", "conversations"):
            raise typer.BadParameter(f"{kind!r} is not one of records, events, conversations.")
    chosen = cast("list[Prunable]", kinds)
    pruned = with_store(
        output, store, lambda opened: opened.prune(before=moment, what=chosen, prefix=prefix)
    )
    counts = (
        counted(pruned.records, "record"),
        counted(pruned.events, "event"),
        counted(pruned.conversations, "conversation"),
    )
    if as_json:
        output.record(
            "pruned",
            records=pruned.records,
            events=pruned.events,
            conversations=pruned.conversations,
        )
    else:
        output.print(styled(f"removed: {', '.join(counts)}"))


def _read_moment(text: str) -> datetime:
    """A moment, or how long ago it is.

    Raises:
        typer.BadParameter: it is neither, or has no time zone.
    """
    number, unit = text[:-1], text[-1:]
    try:
        if number.isdecimal() and unit in ("d", "h"):
            ago = timedelta(days=int(number)) if unit == "d" else timedelta(hours=int(number))
            return datetime.now(timezone.utc) - ago
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):  # or it is before the first year
        message = f"{text!r} is not a moment, as 30d or 2026-11-25T12:00:00+00:00."
        raise typer.BadParameter(message) from None
    if moment.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone, as +00:00.")
    return moment
