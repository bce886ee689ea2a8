"""`lutumpy check`: are these histories what their provider takes?"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from lutumpy.cli.comparing import (
    BeforeOption,
    OriginModelOption,
    OriginOption,
    compared,
    read_before,
)
from lutumpy.cli.documents import Document
from lutumpy.cli.findings import (
    CERTAINTIES,
    conversation,
    counted,
    document_fields,
    problem_fields,
    problem_lines,
    problems_of,
)
from lutumpy.cli.inputs import Unreadable, documents, report_unreadable
from lutumpy.cli.options import ApiOption, Files, HostOption, JsonOption
from lutumpy.cli.terminal import Output, styled
from lutumpy.doctor import open_calls
from lutumpy.errors import Problem

__all__ = ["check"]


def check(
    files: Files,
    api: ApiOption = None,
    host: HostOption = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="What only some hosts refuse, and what is discouraged, counts as well."
        ),
    ] = False,
    before: BeforeOption = None,
    origin: OriginOption = None,
    origin_model: OriginModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what a provider would refuse.

    Exit code 0: nothing that is refused for sure (with --strict: no problem at all). 1: something
    is. 2: a file, or a part of one, can't be read.
    """
    output = Output(as_json=as_json)
    tally: Counter[str] = Counter()
    earlier = read_before(before, output, api, host)
    for entry in compared(documents(files, output, api, host), earlier, origin, origin_model):
        if isinstance(entry, Unreadable):
            tally["unreadable"] += 1
            report_unreadable(output, entry)
            continue
        problems = problems_of(entry)
        tally["documents"] += 1
        tally["broken"] += any(problem.certainty == "refused" for problem in problems)
        tally.update(problem.certainty for problem in problems)
        _print_problems(output, entry, problems)
    # A doubtful problem is shown but lets a history pass, unless --strict says otherwise.
    counting = list(CERTAINTIES) if strict else ["refused"]
    # What can't be read outweighs what is refused: nobody knows what is in it.
    code = 2 if tally["unreadable"] else int(any(tally[certainty] for certainty in counting))
    _print_summary(output, tally, code)
    raise typer.Exit(code)


def _print_problems(output: Output, document: Document, problems: list[Problem]) -> None:
    still_open = len(open_calls(document.api, conversation(document)))
    if output.as_json:
        about = document_fields(document)
        for problem in problems:
            output.record("problem", **about, **problem_fields(problem))
        counts = Counter(problem.certainty for problem in problems)
        summary = {certainty: counts[certainty] for certainty in ("refused", "some", "discouraged")}
        output.record(
            "document",
            **about,
            kind=document.kind,
            messages=len(document.messages),
            problems=summary,
            **({"open_calls": still_open} if still_open else {}),
        )
        return
    if not problems and document.place.form != "alone":
        return  # of many documents only those that have something are shown
    what = f"{document.api}, {counted(len(document.messages), 'message')}"
    verdict = (counted(len(problems), "problem"), "bold") if problems else ("no problem", "green")
    output.print(styled((str(document.place), "bold"), f"  {what}: ", verdict))
    for problem in problems:
        output.print(*problem_lines(problem))
    if still_open:
        note = f"  note: {counted(still_open, 'call')} may stay open, and no result has come yet"
        output.print(note)


def _print_summary(output: Output, tally: Counter[str], code: int) -> None:
    if output.as_json:
        names = ("documents", "refused", "some", "discouraged", "unreadable")
        output.record("summary", **{name: tally[name] for name in names}, exit_code=code)
        return
    if not tally["documents"]:
        if not tally["unreadable"]:
            output.print("0 documents checked: there is none in what was given")
        return
    parts = [f"{tally[name]} {word}" for name, (word, _) in CERTAINTIES.items() if tally[name]]
    found = ", ".join(parts) or "no problem"
    output.print(f"{counted(tally['documents'], 'document')} checked: {found}")
    if tally["refused"]:
        output.print("`lutumpy repair FILE` proposes edits that mend what is refused.")
