"""`lutumpy repair`: edits that make a history acceptable, shown before anything is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

from lutumpy.cli.comparing import (
    BeforeOption,
    OriginModelOption,
    OriginOption,
    compared,
    read_before,
)
from lutumpy.cli.documents import Document
from lutumpy.cli.findings import (
    conversation,
    counted,
    doctor_options,
    document_fields,
    problem_lines,
    problems_of,
)
from lutumpy.cli.inputs import Unreadable, documents, report_unreadable
from lutumpy.cli.options import ApiOption, Files, HostOption, JsonOption
from lutumpy.cli.terminal import Output, cut_text, styled
from lutumpy.cli.writing import Discarded, destination
from lutumpy.doctor import Problem, Repair, apply_repairs, propose_repairs
from lutumpy.doctor.json_patch import PatchError, apply_operations, resolve
from lutumpy.plain import json_values

__all__ = ["repair"]

_LONGEST = 300


def repair(
    files: Files,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the repaired histories into the files.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="OUT", help="Write into this file instead; - is standard output."
        ),
    ] = None,
    api: ApiOption = None,
    host: HostOption = None,
    close_open: Annotated[
        bool,
        typer.Option(
            "--close-open", help="Close calls that may stay open and have no result yet, too."
        ),
    ] = False,
    before: BeforeOption = None,
    origin: OriginOption = None,
    origin_model: OriginModelOption = None,
    full: Annotated[bool, typer.Option("--full", help="Show long values whole.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Propose edits for what a provider would refuse, each with its reason.

    Nothing is written without --apply or --out, and no file of which a part can't be read.
    Documents without edits are written as they stood.

    Exit code 0: nothing is refused for sure, or no longer. 1: edits are proposed and not written,
    or something is left that no edit mends. 2: a file, or a part of one, can't be read or written.
    """
    output = Output(as_json=as_json)
    _refuse_options(files, apply=apply, out=out, as_json=as_json)
    tally: Counter[str] = Counter()
    # The repaired history goes to standard output alone: the edits beside it go to standard error.
    report = _Report(output, full=full, to_errors=out == "-")
    earlier = read_before(before, output, api, host)
    for file in files:
        path = file if apply else out
        read = documents([file], output, api, host)
        entries = compared(read, earlier, origin, origin_model)
        _repair_file(entries, file, path, report, tally, close_open=close_open)
    code = 2 if tally["unreadable"] else int(bool(tally["left"]))
    report.print_summary(tally, code, is_written=apply or out is not None)
    raise typer.Exit(code)


def _refuse_options(files: list[str], *, apply: bool, out: str | None, as_json: bool) -> None:
    """Raises `typer.BadParameter` for options that don't go together, before anything is read."""
    if apply and out is not None:
        raise typer.BadParameter(
            "--apply writes into FILE, --out into another file: give one of them"
        )
    if apply and "-" in files:
        raise typer.BadParameter("standard input can't be written into: give --out")
    if out == "-" and as_json:
        raise typer.BadParameter("--json and --out - would both write to standard output")
    if out is not None and len(files) > 1:
        raise typer.BadParameter("--out takes what was made of one FILE")


def _repair_file(
    entries: Iterable[Document | Unreadable],
    file: str,
    path: str | None,
    report: _Report,
    tally: Counter[str],
    *,
    close_open: bool,
) -> None:
    """Repair the documents of a file, and write them to `path`; `None` writes nothing.

    The file at `path` is as it was if a part of `file` can't be read: a repaired file that lacks
    some of its documents would be worse than none.
    """
    before = tally["unreadable"], tally["edits"]
    with destination(report.output, path) as writer:
        for entry in entries:
            if isinstance(entry, Unreadable):
                tally["unreadable"] += 1
                report_unreadable(report.output, entry)
                continue
            mended = _mend(entry, close_open=close_open)
            tally["documents"] += 1
            tally["edits"] += len(mended.repairs)
            # What isn't written mends nothing yet.
            tally["left"] += len(mended.left if path is not None else mended.refused)
            report.print_document(mended, is_written=path is not None)
            writer.add(_write_text(mended), entry.place.form)
        if path is not None and tally["unreadable"] > before[0]:
            report.complain(f"{path} was not written: a part of {file} can't be read")
            raise Discarded
        if path == file and tally["edits"] == before[1]:
            raise Discarded  # nothing changed: the file keeps its time, too
    is_changed = path != file or tally["edits"] > before[1]
    if path is not None and path != "-" and is_changed and tally["unreadable"] == before[0]:
        report.print_written(path)


@dataclass(frozen=True, slots=True)
class _Mended:
    """A document before and after its repairs.

    Attributes:
        document: As it was.
        after: As it is with all repairs.
        repairs: The repairs, in order.
        refused: What was refused for sure.
        left: What still is.
    """

    document: Document
    after: Document
    repairs: list[Repair]
    refused: list[Problem]
    left: list[Problem]


def _mend(document: Document, *, close_open: bool) -> _Mended:
    """Propose repairs and apply them to a copy; a dump, and what isn't a list, stay as they are."""
    refused = _find_refused(document)
    messages = conversation(document)
    if document.kind == "session" or not isinstance(messages, list):
        return _Mended(document, document, [], refused, refused)
    options = doctor_options(document)
    repairs = propose_repairs(document.api, messages, close_open=close_open, **options)
    if not repairs:
        return _Mended(document, document, [], refused, refused)
    after = document.with_messages(apply_repairs(messages, repairs))
    return _Mended(document, after, repairs, refused, _find_refused(after))


def _find_refused(document: Document) -> list[Problem]:
    return [problem for problem in problems_of(document) if problem.certainty == "refused"]


def _write_text(mended: _Mended) -> str:
    """The document as it is written: the very text of one that has no edits."""
    place = mended.document.place
    if place.text and not mended.repairs:
        return place.text
    # An array that is one conversation is read without its text; people look at such files.
    was_pretty = place.form == "alone" and "\n" in place.text.strip()
    indent = 2 if was_pretty or not place.text else None
    return json.dumps(mended.after.raw, ensure_ascii=False, indent=indent)


class _Report:
    """What the command prints while files are repaired.

    Args:
        output: Where it goes.
        full: Whether long values are shown whole.
        to_errors: Whether lines for people go to standard error.
    """

    def __init__(self, output: Output, *, full: bool, to_errors: bool) -> None:
        self.output = output
        self._full = full
        self._print = output.complain if to_errors else output.print

    def complain(self, text: str) -> None:
        self.output.complain(styled(("lutumpy: ", "bold red"), text))

    def print_written(self, path: str) -> None:
        if not self.output.as_json:
            self._print(f"{path}: written")

    def print_document(self, mended: _Mended, *, is_written: bool) -> None:
        document, repairs = mended.document, mended.repairs
        if self.output.as_json:
            self._record_document(mended, is_written)
            return
        if not repairs and not mended.left:
            if document.place.form == "alone":
                self._print(styled((str(document.place), "bold"), "  nothing to repair"))
            return
        count = counted(len(repairs), "edit")
        self._print(styled((str(document.place), "bold"), f"  {document.api}: {count}"))
        self._print_repairs(document, repairs)
        if mended.left:
            self._print(styled(("  no edit mends:", "bold red")))
            for problem in mended.left:
                self._print(*problem_lines(problem, full=self._full))

    def _print_repairs(self, document: Document, repairs: list[Repair]) -> None:
        if not repairs:
            return
        # As they are before each edit: an edit shows the value that it takes away.
        messages: Any = json_values.copied(document.messages)
        for number, repair in enumerate(repairs, 1):
            calls = f"  {', '.join(repair.call_ids)}" if repair.call_ids else ""
            about = f"  {repair.rule}{calls}"
            kind = (repair.kind, "bold")
            self._print(styled(f"  {number}. ", kind, f"  {repair.position}", (about, "dim")))
            self._print(styled("     ", repair.reason))
            for operation in repair.patch:
                self._print(*self._show_operation(operation, messages, document.messages_key))
                messages = apply_operations(messages, [operation])

    def _show_operation(self, operation: dict[str, Any], messages: Any, key: str) -> Iterator[Text]:
        kind, path, head = operation["op"], operation["path"], f"/{key}"
        if kind == "test":  # what it says is in the line after it
            return
        if kind in ("move", "copy"):
            yield styled(("     > ", "yellow"), f"{head}{operation['from']} to {head}{path}")
            return
        if kind in ("remove", "replace"):
            yield styled(
                (f"     - {head}{path}  {self._show_value(_value_at(messages, path))}", "red")
            )
        if kind in ("add", "replace"):
            yield styled((f"     + {head}{path}  {self._show_value(operation['value'])}", "green"))

    def _show_value(self, value: Any) -> str:
        text = json_values.encode_text(value)
        return text if self._full else cut_text(text, _LONGEST)

    def _record_document(self, mended: _Mended, is_written: bool) -> None:
        about = document_fields(mended.document)
        for repair in mended.repairs:
            self.output.record(
                "repair",
                **about,
                kind=repair.kind,
                rule=repair.rule,
                reason=repair.reason,
                position=repair.position,
                call_ids=list(repair.call_ids),
                tools=list(repair.tools),
                patch=repair.patch,
                drops_reasoning=list(repair.drops_reasoning),
            )
        self.output.record(
            "document",
            **about,
            repairs=len(mended.repairs),
            refused=len(mended.refused),
            left=len(mended.left),
            written=is_written,
        )

    def print_summary(self, tally: Counter[str], code: int, *, is_written: bool) -> None:
        if self.output.as_json:
            names = ("documents", "edits", "left", "unreadable")
            self.output.record("summary", **{name: tally[name] for name in names}, exit_code=code)
        elif tally["edits"] and not is_written:
            self._print("Nothing was written. --apply writes it into FILE, --out OUT elsewhere.")


def _value_at(messages: Any, path: str) -> Any:
    try:
        return resolve(messages, path)
    except PatchError:
        return None
