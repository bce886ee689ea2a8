"""`lutumpy rounds list`, `show`, `decide` and `resolve`: what waits in a store, for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.table import Table

from lutumpy.cli.findings import counted
from lutumpy.cli.options import JsonOption, OutOption
from lutumpy.cli.stores import (
    ByOption,
    CallArgument,
    PrefixOption,
    ScopeArgument,
    StoreArgument,
    add_row,
    make_table,
    with_store,
)
from lutumpy.cli.terminal import Output, cut_text, styled
from lutumpy.errors import StoreError

if TYPE_CHECKING:
    from lutumpy.durable import HeldPlan, OperatorStore, Status

__all__ = ["rounds"]

rounds: typer.Typer = typer.Typer(
    help="Conversations of a store: what waits for a person, and what nobody knows the end of.",
    rich_markup_mode=None,
)

_LONGEST = 60  # characters of an input in a table
_STATUSES = ("open", "waiting", "done", "stuck")
_DIGEST_SHOWN = 12


@rounds.command("list")
def list_rounds(
    store: StoreArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Every conversation, not only those that wait.")
    ] = False,
    status: Annotated[
        str, typer.Option("--status", metavar="STATUS", help="With --all: only these.")
    ] = "",
    prefix: PrefixOption = "",
    after: Annotated[
        str, typer.Option("--after", metavar="SCOPE", help="With --all: those behind this id.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most to list.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """List the plans that wait for a person, oldest first.

    Exit code 0: nothing waits. 1: something does. 2: the store can't be read.
    """
    output = Output(as_json=as_json)
    if status not in ("", *_STATUSES):
        raise typer.BadParameter(f"{status!r} is not one of {', '.join(_STATUSES)}.")
    if everything:
        kind = cast("Status", status) if status else None
        _list_scopes(output, store, limit, kind, prefix, after)
        return
    if status or after:
        raise typer.BadParameter("--status and --after go with --all.")
    held = with_store(output, store, lambda opened: opened.held(limit=limit, prefix=prefix))
    for plan in held if as_json else ():
        output.record("held", **_describe_held(plan))
    if not as_json:
        output.print(styled(f"{counted(len(held), 'plan')} waiting for a person"))
        if held:
            output.print("", _make_held_table(held))
    raise typer.Exit(1 if held else 0)


def _list_scopes(
    output: Output, store: str, limit: int, status: Status | None, prefix: str, after: str
) -> None:
    found = with_store(
        output,
        store,
        lambda opened: opened.scopes(
            limit=limit, status=status, prefix=prefix, after=after or None
        ),
    )
    if output.as_json:
        for each in found:
            output.record("conversation", **asdict(each))
        return
    table = make_table("conversation", "status", "for", "items", "round", "attempts", "last error")
    for each in found:
        error = cut_text(each.last_error or "", _LONGEST)
        numbers = (str(each.items), str(each.round), str(each.attempts))
        add_row(table, each.scope, each.status, _shown_age(each.age), *numbers, error)
    output.print(styled(counted(len(found), "conversation")), "", table)


def _shown_age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _describe_held(held: HeldPlan) -> dict[str, Any]:
    return {
        "scope": held.scope,
        "digest": held.digest,
        "since": held.since,
        "calls": [call for call in _calls_of(held.plan) if call.get("call_id") in held.held],
    }


def _calls_of(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", plan["calls"])


def _make_held_table(plans: list[HeldPlan]) -> Table:
    table = make_table("conversation", "call", "tool", "input", "why", "since")
    for held in plans:
        for call in _describe_held(held)["calls"]:
            add_row(
                table,
                held.scope,
                call["call_id"],
                call["tool"],
                cut_text(_shown_input(call), _LONGEST),
                str(call.get("reason", "")),
                held.since.isoformat(timespec="seconds"),
            )
    return table


def _shown_input(call: Mapping[str, Any]) -> str:
    # A request for approval has the arguments alone.
    return json.dumps(call["input"], ensure_ascii=False) if "input" in call else call["arguments"]


@rounds.command("show", short_help="Show what a conversation waits for.")
def show(
    store: StoreArgument,
    scope: ScopeArgument,
    out: OutOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show what a conversation waits for: the calls of its plan, and calls of unknown outcome.

    With --out, the whole conversation is drawn as a page, the waiting plan at its end.

    Exit code 0: it was shown. 2: there is no such conversation.
    """
    output = Output(as_json=as_json)

    async def look(opened: OperatorStore) -> tuple[Any, list[HeldPlan], Any]:
        session = await opened.session(scope)
        plans = await opened.held(scope=scope)
        return session, plans, await opened.unresolved(scope)

    session, plans, unresolved = with_store(output, store, look)
    if as_json:
        for plan in plans:
            output.record("held", **_describe_held(plan), plan=plan.plan)
        for call in unresolved:
            output.record("unresolved", scope=scope, **_describe_unresolved(call))
    else:
        _print_conversation(output, scope, session, plans, unresolved)
    if out:
        from lutumpy.page import render

        page = render(
            session, decisions=[plan.plan for plan in plans], title=f"Conversation {scope}"
        )
        _write_page(output, out, page)


def _write_page(output: Output, out: str, page: str) -> None:
    if out == "-":
        sys.stdout.write(page)
        return
    try:
        Path(out).write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        output.complain(f"lutumpy: {out} can't be written: {error.strerror or error}")
        raise typer.Exit(2) from error


def _describe_unresolved(call: Any) -> dict[str, str]:
    metadata = call.metadata
    return {"call_id": metadata.id, "tool": metadata.name, "arguments": call.arguments}


def _print_conversation(
    output: Output, scope: str, session: Any, plans: list[HeldPlan], unresolved: Any
) -> None:
    output.print(styled((scope, "bold"), f"  {counted(len(session.transcript), 'item')}"))
    for plan in plans:
        digest = plan.digest.removeprefix("sha256:")[:_DIGEST_SHOWN]
        output.print("", styled(("waiting for a person", "bold"), f"  plan {digest}"))
        table = make_table("call", "tool", "standing", "input", "why")
        for call in _calls_of(plan.plan):
            standing = str(call["standing"])
            if standing == "held" and call["call_id"] not in plan.held:
                standing = "decided"
            shown = cut_text(_shown_input(call), 10 * _LONGEST)
            cells = (call["call_id"], call["tool"], standing, shown, str(call.get("reason", "")))
            add_row(table, *cells)
        output.print(table)
    if unresolved:
        output.print("", styled(("perhaps executed: nobody knows", "bold")))
        table = make_table("call", "tool", "arguments")
        for call in unresolved:
            add_row(table, *_describe_unresolved(call).values())
        output.print(table)
    if not plans and not unresolved:
        output.print(styled("nothing waits for a person"))


@rounds.command("decide")
def decide(
    store: StoreArgument,
    scope: ScopeArgument,
    call: CallArgument,
    decision: Annotated[
        str, typer.Argument(metavar="run|complete|reject", help="What becomes of the call.")
    ],
    by: ByOption,
    given_input: Annotated[
        str, typer.Option("--input", metavar="JSON", help="For run: another input.")
    ] = "",
    output_value: Annotated[
        str, typer.Option("--output", metavar="JSON", help="For complete: the answer.")
    ] = "",
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="For reject: what the model is told.")
    ] = "",
    plan: Annotated[
        str,
        typer.Option(
            "--plan",
            metavar="DIGEST",
            help="Decide only if the waiting plan has this digest, or begins with it.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Decide a call that is held. The program that runs the conversation goes on with it then.

    Exit code 0: it was decided. 1: somebody had decided it before. 2: there is no such call, or the
    decision has another form.
    """
    output = Output(as_json=as_json)
    verdict = _make_decision(decision, given_input, output_value, reason)

    async def take(opened: OperatorStore) -> bool:
        plans = await opened.held(scope=scope)
        wanted = plan.removeprefix("sha256:")
        for each in plans:
            if each.digest.removeprefix("sha256:").startswith(wanted):
                return await opened.decide(scope, each.digest, {call: verdict}, by=by)
        # What was decided wholly doesn't wait any more.
        for entry in await opened.inbox(scope):
            if entry.kind == "decision" and entry.value["call_id"] == call:
                return False
        raise StoreError("plan", f"no such plan of {scope!r} waits for a person")

    taken = with_store(output, store, take)
    if as_json:
        output.record("decided", scope=scope, call_id=call, taken=taken, **verdict)
    elif taken:
        output.print(f"{call} of {scope}: {decision}, by {by}")
    else:
        output.complain(f"{call} of {scope} was decided before; that decision stands")
    raise typer.Exit(0 if taken else 1)


def _make_decision(
    decision: str, given_input: str, output_value: str, reason: str
) -> dict[str, Any]:
    options = {"run": ("input", given_input), "complete": ("output", output_value)}
    if decision == "reject":
        if given_input or output_value:
            raise typer.BadParameter("reject takes --reason alone.")
        return {"decision": "reject", "reason": reason}
    if decision not in options:
        raise typer.BadParameter(f"{decision!r} is not one of run, complete, reject.")
    name, text = options[decision]
    if reason or any(value for other, value in options.values() if other != name):
        raise typer.BadParameter(f"{decision} takes --{name} alone.")
    if not text:
        if decision == "complete":
            raise typer.BadParameter("complete needs --output.")
        return {"decision": decision}
    return {"decision": decision, name: _read_json(name, text)}


def _read_json(name: str, text: str) -> Any:
    """The value of an option; ends the command with 2 where it isn't JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--{name} is not JSON: {error}") from None


@rounds.command("resolve", short_help="Say what became of a call.")
def resolve(
    store: StoreArgument,
    scope: ScopeArgument,
    call: CallArgument,
    decision: Annotated[
        str,
        typer.Argument(metavar="happened|did_not_happen", help="What became of the call."),
    ],
    by: ByOption,
    output_value: Annotated[
        str,
        typer.Option(
            "--output", metavar="JSON", help="For happened: what the call gave, if known."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Say what became of a call whose outcome was not known, so that equal ones may run again.

    That it happened is told to the model before its next answer.

    Exit code 0: it was resolved. 2: no such call is unresolved.
    """
    output = Output(as_json=as_json)
    if decision not in ("happened", "did_not_happen"):
        raise typer.BadParameter(f"{decision!r} is not one of happened, did_not_happen.")
    if output_value and decision != "happened":
        raise typer.BadParameter("a call that did not happen has no --output.")
    word = cast("Literal['happened', 'did_not_happen']", decision)
    gave = _read_json("output", output_value) if output_value else None

    async def take(opened: OperatorStore) -> None:
        await opened.resolve(scope, call, word, by=by, output=gave)

    with_store(output, store, take)
    if as_json:
        more = {} if gave is None else {"output": gave}
        output.record("resolved", scope=scope, call_id=call, decision=decision, by=by, **more)
    else:
        output.print(f"{call} of {scope}: {decision}, by {by}")
