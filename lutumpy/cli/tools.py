"""`lutumpy tools check` and `lutumpy tools lock`: the tool doctor on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lutumpy.apis import api_names
from lutumpy.cli.addresses import FoundTools, HeaderOption, find_tools, report_failure
from lutumpy.cli.files import write_file
from lutumpy.cli.findings import counted
from lutumpy.cli.options import API_NAMES, JsonOption, check_api
from lutumpy.cli.terminal import Output, cut_text, styled
from lutumpy.plain import json_values
from lutumpy.tool_doctor import (
    LOCK_FILE,
    Difference,
    Drift,
    Finding,
    Lock,
    LockError,
    Severity,
    ToolListSize,
    ToolReport,
    check_tools,
    drift,
)

__all__ = ["print_findings", "print_skipped", "record_finding", "tools"]

tools: typer.Typer = typer.Typer(
    help="What becomes of a toolset at each provider, and a lock against changes unseen.",
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="TOOLS",
        help="package.module:AppTools; or an MCP server: https://..., 'stdio:COMMAND ARGUMENTS'.",
        show_default=False,
    ),
]
LockOption = Annotated[str, typer.Option("--lock", metavar="FILE", help="The lock file.")]
DirectoryOption = Annotated[
    str,
    typer.Option(
        "--app-dir", metavar="DIR", help="Where modules are looked for first.", show_default="here"
    ),
]

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_LONGEST = 300


@tools.command("check", short_help="Say what each API makes of every tool.")
def check(
    name: Name,
    api: Annotated[
        list[str] | None,
        typer.Option(
            "--api",
            metavar=API_NAMES,
            callback=check_api,
            help="Look at this API only; may be given again.",
            show_default=False,
        ),
    ] = None,
    adapter_strict: Annotated[
        bool | None,
        typer.Option(
            "--adapter-strict/--no-adapter-strict",
            help="What your adapters are given as strict; both ways are looked at when left out.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as well.")] = False,
    lock: LockOption = LOCK_FILE,
    directory: DirectoryOption = "",
    header: HeaderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile every tool for every API, and say what is lost, changed or refused.

    Exit code 0: nothing will be refused, and nothing has drifted from the lock. 1: something will
    be or has (with --strict: there is a warning). 2: there is no such toolset or server, or the
    lock file can't be used.
    """
    output = Output(as_json=as_json)
    found = find_tools(output, name, directory, header)
    name, toolset = found.name, found.toolset
    chosen = tuple(dict.fromkeys(api or ())) or api_names()
    report = check_tools(toolset, apis=chosen, strict=adapter_strict)
    try:
        locked = Lock.read(lock)
    except LockError as error:
        raise report_failure(output, str(error)) from error
    known = None if locked is None else locked.toolsets.get(name)
    drifted = drift(known, toolset) if known is not None else None
    # A toolset that was never locked has nothing to drift from.
    code = int(bool(report.errors or drifted or (strict and report.warnings)))
    state = _lock_state(locked is not None, drifted)
    if as_json:
        _record_report(output, found, report, lock, state, drifted, code)
    else:
        _print_report(output, found, report)
        _print_lock(output, name, lock, state, drifted)
    raise typer.Exit(code)


@tools.command("lock", short_help="Lock what the model is shown of each tool.")
def lock(
    name: Name,
    lock: LockOption = LOCK_FILE,
    directory: DirectoryOption = "",
    header: HeaderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write down what the model is shown of each tool, so that `tools check` fails when it changes.

    Exit code 0: the lock file has the tools as they are. 2: there is no such toolset or server, or
    the file can't be used.
    """
    output = Output(as_json=as_json)
    found = find_tools(output, name, directory, header)
    name, toolset = found.name, found.toolset
    try:
        before = Lock.read(lock) or Lock({})
        known = before.toolsets.get(name)
        drifted = drift(known if known is not None else {}, toolset)
        after = before.with_toolset(name, toolset)
        is_new = after.text() != before.text() or not Path(lock).exists()
        if is_new:
            write_file(lock, after.text())
    except LockError as error:
        raise report_failure(output, str(error)) from error
    except OSError as error:
        raise report_failure(
            output, f"{lock} can't be written: {error.strerror or error}"
        ) from error
    count = len(after.toolsets[name])
    if as_json:
        fields = _drift_fields(drifted)
        output.record(
            "locked",
            file=lock,
            toolset=name,
            tools=list(after.toolsets[name]),
            written=is_new,
            **fields,
        )
        return
    if known is not None:
        _print_drift(output, drifted)
    what = f"{counted(count, 'tool')} of {name}"
    output.print(
        f"{lock}: {what} locked"
        if is_new
        else f"{lock}: {what} were locked as they are, nothing to write"
    )


def _lock_state(exists: bool, drifted: Drift | None) -> str:
    if drifted is None:
        return "not locked" if exists else "no lock file"
    return "drifted" if drifted else "matches"


# --- for programs --------------------------------------------------------------------------------


def _record_report(
    output: Output,
    found: FoundTools,
    report: ToolReport,
    lock: str,
    state: str,
    drifted: Drift | None,
    code: int,
) -> None:
    name = found.name
    for original, reason in found.skipped.items():
        output.record("skipped", toolset=name, tool=original, reason=reason)
    for finding in report.findings:
        record_finding(output, name, finding)
    for size in report.sizes:
        fields = {key: getattr(size, key) for key in ToolListSize.__dataclass_fields__}
        output.record("size", toolset=name, **fields)
    fields = _drift_fields(drifted) if drifted is not None else {}
    output.record("lock", toolset=name, file=lock, state=state, **fields)
    counts = {severity: len(report.of(severity)) for severity in _STYLES}
    output.record(
        "summary",
        toolset=name,
        tools=len(report.tools),
        findings=counts,
        lock=state,
        exit_code=code,
    )


def record_finding(output: Output, name: str, finding: Finding) -> None:
    """A finding as a JSON line."""
    output.record(
        "finding",
        toolset=name,
        severity=finding.severity,
        rule=finding.rule,
        tool=finding.tool,
        apis=list(finding.apis),
        path=finding.path,
        strict=finding.strict,
        message=finding.message,
    )


def _drift_fields(drifted: Drift) -> dict[str, Any]:
    changed = {
        tool: [
            {"path": d.path, "kind": d.kind, "before": d.before, "after": d.after} for d in found
        ]
        for tool, found in drifted.changed.items()
    }
    return {"added": list(drifted.added), "removed": list(drifted.removed), "changed": changed}


# --- for people ----------------------------------------------------------------------------------


def _print_report(output: Output, found: FoundTools, report: ToolReport) -> None:
    output.print(styled((found.name, "bold"), f"  {counted(len(report.tools), 'tool')}"))
    print_findings(output, report)
    print_skipped(output, found)
    if report.sizes:
        output.print("", _make_size_table(report))
    counts = [
        counted(len(report.of(s)), s, s if s == "info" else f"{s}s")
        for s in _STYLES
        if report.of(s)
    ]
    output.print("", ", ".join(counts) or "nothing to say about the tools")


def print_findings(output: Output, report: ToolReport) -> None:
    """What was found, tool by tool."""
    looked_at = {size.api for size in report.sizes}
    # No tool has this name, and `None` stands for the list as a whole.
    shown: object = ()
    for finding in report.findings:
        if finding.tool != shown:
            shown = finding.tool
            output.print("", styled((finding.tool or "the list of tools", "bold")))
        _print_finding(output, finding, everywhere=looked_at <= set(finding.apis))


def print_skipped(output: Output, found: FoundTools) -> None:
    """The tools of a server that can't be offered, and why."""
    for original, reason in found.skipped.items():
        output.print("", styled((original, "bold"), ("  not offered", "bold red")))
        output.print(styled(f"  {reason}"))


def _print_finding(output: Output, finding: Finding, *, everywhere: bool) -> None:
    where = f" {finding.path}" if finding.path else ""
    apis = "" if everywhere else ", ".join(finding.apis)
    when = ", ".join(part for part in (apis, "strict" if finding.strict else "") if part)
    output.print(
        styled(
            "  ",
            (finding.severity, _STYLES[finding.severity]),
            where,
            f" {finding.message}",
            (f" [{when}]" * bool(when), "dim"),
        )
    )


def _make_size_table(report: ToolReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("every request of", "strict", "offer"):
        table.add_column(heading, no_wrap=True)
    for heading in ("tools", "bytes", "about tokens", "strict tools", "optional", "unions"):
        # The column that matters most isn't broken where the names of APIs are long.
        table.add_column(heading, justify="right", no_wrap=heading == "about tokens")
    for size in report.sizes:
        if size.strict and replace(size, strict=False) in report.sizes:
            continue  # the row without strict says the same
        numbers = (
            size.tools,
            size.bytes,
            size.tokens,
            size.strict_tools,
            size.optional_parameters,
            size.union_parameters,
        )
        cells = [
            size.api,
            "where it can" if size.strict else "as declared",
            size.offer,
            *map(str, numbers),
        ]
        table.add_row(*[styled(cell) for cell in cells])
    return table


def _print_lock(output: Output, name: str, lock: str, state: str, drifted: Drift | None) -> None:
    if drifted:
        output.print(styled((f"{name} has drifted from {lock}:", "bold red")))
        _print_drift(output, drifted)
        output.print(f"`lutumpy tools lock {name}` accepts the tools as they are now.")
    elif state == "matches":
        output.print(f"{lock}: every tool is as it was locked")
    elif state == "not locked":
        output.print(f"{lock} knows nothing of {name}: nothing was compared")
    else:
        output.print(f"there is no {lock}: nothing was compared")


def _print_drift(output: Output, drifted: Drift) -> None:
    for tool in drifted.added:
        output.print(styled(("+ ", "green"), (tool, "bold"), " is new"))
    for tool in drifted.removed:
        output.print(styled(("- ", "red"), (tool, "bold"), " is gone"))
    for tool, found in drifted.changed.items():
        output.print(styled(("~ ", "yellow"), (tool, "bold"), " changed"))
        for difference in found:
            _print_difference(output, difference)


def _print_difference(output: Output, difference: Difference) -> None:
    output.print(f"    {difference.path}")
    if difference.kind != "added":
        output.print(styled((f"    - {_show_value(difference.before)}", "red")))
    if difference.kind != "removed":
        output.print(styled((f"    + {_show_value(difference.after)}", "green")))


def _show_value(value: Any) -> str:
    return cut_text(json_values.encode_text(value), _LONGEST)
