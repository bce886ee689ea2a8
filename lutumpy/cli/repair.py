"""`lutumpy repair`: edits that make a history acceptable, shown before anything is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

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
from lutumpy.core import json_values
from lutumpy.doctor import Repair, apply_repairs, propose_repairs
from lutumpy.doctor.editor import copied
from lutumpy.doctor.json_patch import PatchError, apply_operations, resolve
from lutumpy.errors import Problem

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
    tally: Counter[str] = Counter()
    # What would go to standard output twice goes to standard error: the diff, beside the repaired
    # history.
    shown = _Shown(output, full=full, aside=out == "-")
    for file in files:
        path = out if out is not None else file if apply else None
        _repair_file(documents([file], output, api, host), file, path, shown, tally)
    code = 2 if tally["unreadable"] else int(bool(tally["left"]))
    shown.summary(tally, code, written=apply or out is not None)
    raise typer.Exit(code)


def _repair_file(
    entries: Iterable[Document | Unreadable],
    file: str,
    path: str | None,
    shown: _Shown,
    tally: Counter[str],
) -> None:
    before = tally["unreadable"], tally["edits"]
    with destination(shown.output, path) as writer:
        for entry in entries:
            if isinstance(entry, Unreadable):
                tally["unreadable"] += 1
                report_unreadable(shown.output, entry)
                continue
            mended = _mend(entry)
            tally["documents"] += 1
            tally["edits"] += len(mended.repairs)
            tally["left"] += len(mended.left) if path is not None else len(mended.refused)
            shown.document(mended, written=path is not None)
            place = entry.place
            writer.add(
                place.text if place.text and not mended.repairs else _text(mended.after), place.form
            )
        if path is not None and tally["unreadable"] > before[0]:
            shown.aside(f"{path} was not written: a part of {file} can't be read")
            raise Discarded
        if path == file and tally["edits"] == before[1]:
            raise Discarded  # nothing changed: the file keeps its time, too
    is_changed = path != file or tally["edits"] > before[1]
    if path is not None and path != "-" and is_changed and tally["unreadable"] == before[0]:
        shown.written(path)


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


def _mend(document: Document) -> _Mended:
    refused = _refused(document)
    messages = conversation(document)
    if document.kind == "session" or not isinstance(messages, list):
        return _Mended(document, document, [], refused, refused)
    repairs = propose_repairs(document.api, messages, **doctor_options(document))
    if not repairs:
        return _Mended(document, document, [], refused, refused)
    after = document.with_messages(apply_repairs(messages, repairs))
    return _Mended(document, after, repairs, refused, _refused(after))


def _refused(document: Document) -> list[Problem]:
    return [problem for problem in problems_of(document) if problem.certainty == "refused"]


def _text(document: Document) -> str:
    is_pretty = document.place.form == "alone" and "\n" in document.place.text.strip()
    return json.dumps(
        document.raw, ensure_ascii=False, indent=2 if is_pretty or not document.place.text else None
    )


class _Shown:
    """What is said while files are repaired."""

    def __init__(self, output: Output, *, full: bool, aside: bool) -> None:
        self.output = output
        self._full = full
        self._print = output.complain if aside else output.print

    def aside(self, text: str) -> None:
        self.output.complain(styled(("lutumpy: ", "bold red"), text))

    def written(self, path: str) -> None:
        if not self.output.as_json:
            self._print(f"{path}: written")

    def document(self, mended: _Mended, *, written: bool) -> None:
        document, repairs = mended.document, mended.repairs
        if self.output.as_json:
            self._records(mended, written)
            return
        if not repairs and not mended.left:
            if document.place.form == "alone":
                self._print(styled((str(document.place), "bold"), "  nothing to repair"))
            return
        self._print(
            styled(
                (str(document.place), "bold"), f"  {document.api}: {counted(len(repairs), 'edit')}"
            )
        )
        messages: Any = (
            copied(document.messages) if repairs else None
        )  # as they are before each edit
        for number, repair in enumerate(repairs, 1):
            calls = f"  {', '.join(repair.call_ids)}" if repair.call_ids else ""
            about = f"  {repair.rule}{calls}"
            self._print(
                styled(
                    f"  {number}. ", (repair.kind, "bold"), f"  {repair.position}", (about, "dim")
                )
            )
            self._print(styled("     ", repair.reason))
            for operation in repair.patch:
                self._print(*self._operation(operation, messages, f"/{document.messages_key}"))
                messages = apply_operations(messages, [operation])
        if mended.left:
            self._print(styled(("  no edit mends:", "bold red")))
            for problem in mended.left:
                self._print(*problem_lines(problem, full=self._full))

    def _operation(self, operation: dict[str, Any], messages: Any, head: str) -> Iterator[Text]:
        kind, path = operation["op"], operation["path"]
        if kind == "test":  # what it says stands in the line after it
            return
        if kind in ("move", "copy"):
            yield styled(("     > ", "yellow"), f"{head}{operation['from']} to {head}{path}")
            return
        if kind in ("remove", "replace"):
            yield styled((f"     - {head}{path}  {self._value(_at(messages, path))}", "red"))
        if kind in ("add", "replace"):
            yield styled((f"     + {head}{path}  {self._value(operation['value'])}", "green"))

    def _value(self, value: Any) -> str:
        text = json_values.encode_text(value)
        return text if self._full else cut_text(text, _LONGEST)

    def _records(self, mended: _Mended, written: bool) -> None:
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
            )
        self.output.record(
            "document",
            **about,
            repairs=len(mended.repairs),
            refused=len(mended.refused),
            left=len(mended.left),
            written=written,
        )

    def summary(self, tally: Counter[str], code: int, *, written: bool) -> None:
        if self.output.as_json:
            names = ("documents", "edits", "left", "unreadable")
            self.output.record("summary", **{name: tally[name] for name in names}, exit_code=code)
        elif tally["edits"] and not written:
            self._print("Nothing was written. --apply writes it into FILE, --out OUT elsewhere.")


def _at(messages: Any, path: str) -> Any:
    try:
        return resolve(messages, path)
    except PatchError:
        return None
