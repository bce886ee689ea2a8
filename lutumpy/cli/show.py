"""`lutumpy show`: a conversation to read, in the terminal or as a page."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lutumpy import AssistantTurn
from lutumpy.cli.answers import read_answer
from lutumpy.cli.conversion import tool_name
from lutumpy.cli.documents import Document
from lutumpy.cli.files import write_file
from lutumpy.cli.findings import (
    CERTAINTIES,
    conversation,
    counted,
    doctor_options,
    document_fields,
    problems_of,
)
from lutumpy.cli.inputs import Unreadable, documents, report_unreadable
from lutumpy.cli.options import ApiOption, Files, JsonOption
from lutumpy.cli.terminal import Output, cut_text, styled
from lutumpy.plain.preview import MARK

if TYPE_CHECKING:
    from lutumpy.page.model import CallView, Piece, ProblemView, ResultView, Step
    from lutumpy.page.text import Value
    from lutumpy.page.timeline import Timeline

__all__ = ["show"]

_LONGEST = 2_000
_ROLES = {
    "system": "magenta",
    "developer": "magenta",
    "user": "green",
    "assistant": "blue",
    "tool": "yellow",
}
_STATUSES = {"ok": "green", "error": "red", "rejected": "yellow", "promised": "yellow"}
# The page marks values up; in a terminal only their text is shown.
_TAG = re.compile("<[^>]*>")


def show(
    files: Files,
    api: ApiOption = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", min=1, help="Only the document with this number in its file."
        ),
    ] = None,
    page: Annotated[
        str | None,
        typer.Option("--html", metavar="OUT", help="Write one document as a page for the browser."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show long values whole.")] = False,
    pager: Annotated[bool, typer.Option("--pager", help="Show it in a pager.")] = False,
    cost: Annotated[
        bool, typer.Option("--cost", help="Say what each conversation cost (extra `cost`).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show conversations: turns, calls with arguments, results, decisions of hooks, and problems
    where they are.

    Exit code 0: everything was shown, problems or not. 2: a file, or a part of one, can't be read,
    or there is nothing to show.
    """
    output = Output(as_json=as_json)
    if page is not None:
        _refuse_overwriting(files, page)
    paging: AbstractContextManager[Any] = nullcontext()
    if pager and not as_json and page is None:
        paging = output.console.pager(styles=False)
    shown = failed = 0
    # A page is of one document. It is written when no second one has come.
    chosen: Document | None = None
    with paging:
        for entry in documents(files, output, api):
            if isinstance(entry, Unreadable):
                failed += 1
                report_unreadable(output, entry)
                continue
            if number is not None and entry.place.number != number:
                continue
            shown += 1
            if page is not None and shown > 1:
                raise typer.BadParameter(
                    "--html makes a page of one document: choose it with --number"
                )
            if page is not None:
                chosen = entry
            elif as_json:
                _record_document(output, entry, cost=cost)
            else:
                _print_document(output, entry, full=full, cost=cost)
    if chosen is not None and page is not None:
        _write_page(output, chosen, page, cost=cost)
    if not shown and not failed:
        output.complain(styled(("lutumpy: ", "bold red"), "there is no such document"))
    raise typer.Exit(2 if failed or not shown else 0)


def _refuse_overwriting(files: list[str], page: str) -> None:
    """Raises `typer.BadParameter` if the page would replace a file that it is made of."""
    for file in files:
        if "-" not in (file, page) and _is_same_file(file, page):
            raise typer.BadParameter(
                f"--html would write the page over {page}, the file it is made of: name another one"
            )


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one of them isn't there, or can't be
        return False


def _write_page(output: Output, document: Document, path: str, *, cost: bool) -> None:
    from lutumpy.page import render

    options = _page_options(document)
    if cost and cost_in_dollars(document) is not None:
        from lutumpy.budget import Prices

        options["prices"] = Prices.genai()
    try:
        write_file(path, render(**options))
    except OSError as error:
        output.complain(
            styled(("lutumpy: ", "bold red"), f"{path} can't be written: {error.strerror or error}")
        )
        raise typer.Exit(2) from error
    if path != "-":
        output.complain(f"{path}: the page of {document.place}")


# Everything of the page is imported when it is needed: its templates take longer than a check.
def _page_options(document: Document) -> dict[str, Any]:
    from lutumpy.doctor import propose_repairs

    options: dict[str, Any] = {
        "title": str(document.place),
        "tools": document.tools or (),
        "decisions": document.decisions,
        "answer": answer_of(document),
    }
    if document.session is not None:
        return {**options, "source": document.session}
    return {
        **options,
        "source": conversation(document),
        "api": document.api,
        "system": document.system,
        "problems": problems_of(document),
        "repairs": propose_repairs(
            document.api, conversation(document), **doctor_options(document)
        ),
    }


def answer_of(document: Document) -> AssistantTurn | None:
    """The answer in an exchange; `None` where there is none, or none that can be read."""
    answer = document.answer
    if answer is None or (document.status is not None and document.status >= 400):
        return None
    return read_answer(document.api, answer)


def cost_in_dollars(document: Document) -> Decimal | None:
    """What a conversation has cost, as far as it says so; `None` where nobody knows."""
    from lutumpy.budget import ModelName, Prices, cost_of
    from lutumpy.errors import UnknownPriceError

    prices = Prices.genai()
    try:
        if document.session is not None:
            return cost_of(document.session, prices)
        answer = answer_of(document)
        if answer is None or not answer.usage.total_tokens:
            return None
        names = [ModelName(document.api, each) for each in (answer.model, document.model) if each]
        return prices.of(answer.usage, *names)
    except UnknownPriceError:
        return None
    except ImportError as error:
        raise typer.BadParameter(str(error)) from error


# --- what there is to show -----------------------------------------------------------------------


def timeline_of(document: Document) -> tuple[Timeline, list[ProblemView]]:
    """The document's steps, with problems and decisions in place; and all problems."""
    from lutumpy.page.notes import place_decisions, place_problems
    from lutumpy.page.readers import read_messages, read_transcript, read_turn
    from lutumpy.page.text import LIMIT

    if document.session is not None:
        # What is in a session was valid when it was committed.
        timeline = read_transcript(document.session.transcript, LIMIT)
        problems: list[ProblemView] = []
    else:
        timeline = read_messages(document.api, conversation(document), document.system, LIMIT)
        problems = place_problems(timeline, problems_of(document))
    answer = answer_of(document)
    if answer is not None:
        read_turn(timeline, "answer", answer)
    place_decisions(timeline, document.decisions, LIMIT)
    return timeline, problems


def _text_of(value: Value | None) -> str:
    """What a value says; its body is markup, in which everything but its own tags is escaped."""
    return "" if value is None else html.unescape(_TAG.sub("", str(value.body)))


def _text_of_piece(piece: Piece) -> str:
    # The page folds long prose away behind its head.
    return _text_of(piece.value) if piece.prose is None else piece.prose.head + piece.prose.rest


# --- for people ----------------------------------------------------------------------------------


def _print_document(output: Output, document: Document, *, full: bool, cost: bool) -> None:
    timeline, problems = timeline_of(document)
    facts = [
        document.kind,
        document.api,
        document.model or "",
        counted(len(document.messages), "message"),
    ]
    if document.status is not None:
        facts.append(f"answered with status {document.status}")
    output.print(
        styled((str(document.place), "bold"), f"  {', '.join(fact for fact in facts if fact)}")
    )
    names = _tool_names(document)
    if names:
        output.print(styled(("tools  ", "dim"), ", ".join(names)))
    for step in timeline.steps:
        output.print("")
        for line in _step_lines(step):
            output.print(_cut_line(line, full))
    # A problem of the request, or of a place that isn't there, stands at no step.
    placeless = [problem for problem in problems if problem.target is None]
    if placeless:
        output.print("")
        for problem in placeless:
            output.print(_problem_line(problem, ""))
    if cost:
        dollars = cost_in_dollars(document)
        amount = "not known" if dollars is None else f"{dollars.normalize():f} dollars"
        output.print("")
        output.print(styled(("cost  ", "dim"), amount))
    output.print("")


def _cut_line(line: Text, full: bool) -> Text:
    if full or len(line) <= _LONGEST:
        return line
    kept = line[:_LONGEST]
    missing = len(line) - _LONGEST
    kept.append(f"{MARK} ({missing} more characters, --full shows them)", "dim")
    return kept


def _tool_names(document: Document) -> list[str]:
    return [tool_name(tool, document.api) for tool in document.tools or ()]


def _step_lines(step: Step) -> Iterator[Text]:
    style = _ROLES.get(step.style, "white")
    tags = f"  {', '.join(step.tags)}" if step.tags else ""
    tokens = (
        f"  {step.usage.all_input_tokens} tokens in, {step.usage.output_tokens} out"
        if step.usage
        else ""
    )
    yield styled(
        (f"{step.number:>3} {step.title}", f"bold {style}"),
        (f"  {step.place}{tags}{tokens}", "dim"),
    )
    for piece in step.pieces:
        yield from _piece_lines(piece, "    ")
    yield from _problem_lines(step.problems, "    ")
    for call in step.calls:
        yield from _call_lines(call)
    for result in step.strays:
        yield from _result_lines(result, "    ")


def _piece_lines(piece: Piece, margin: str) -> Iterator[Text]:
    label = f"[{piece.label}] " if piece.label else ""
    text = _text_of_piece(piece)
    style = "dim" if piece.kind == "reasoning" else ""
    yield styled((_indent(f"{label}{text}", margin), style))


def _call_lines(call: CallView) -> Iterator[Text]:
    kind = "" if call.kind == "function" else f" ({call.kind})"
    yield styled(
        "    ",
        ("call ", "dim"),
        (call.name or "without a name", "bold"),
        kind,
        (f"  {call.call_id}", "dim"),
    )
    arguments = _text_of(call.arguments)
    if arguments:
        yield styled(_indent(arguments, "      "))
    if call.arguments is not None and call.arguments.remark:
        yield styled((f"      {call.arguments.remark}", "yellow"))
    decision = call.decision
    if decision is not None:
        by = f" by {decision.by}" if decision.by else ""
        reason = f": {decision.reason}" if decision.reason else ""
        yield styled("      ", (f"decided: {decision.kind}{by}{reason}", "bold yellow"))
        if decision.asked:
            yield styled(f"        asked in this order: {', '.join(decision.asked)}")
        for change in (*decision.changes, *decision.additions):
            before = "nothing" if change.before is None else change.before
            after = "nothing" if change.after is None else change.after
            yield styled(
                ("        ", ""), change.path, ("  ", ""), (before, "red"), " -> ", (after, "green")
            )
    yield from _problem_lines(call.problems, "      ")
    for result in call.results:
        yield from _result_lines(result, "      ")
    if call.elsewhere is not None:
        yield styled((f"      its result stands at {call.elsewhere.place}", "yellow"))


def _result_lines(result: ResultView, margin: str) -> Iterator[Text]:
    about = f"  {result.call_id}  {result.astray}" if result.astray else ""
    yield styled(
        margin,
        ("result ", "dim"),
        (
            result.word.lower() if result.status == "promised" else result.status,
            _STATUSES.get(result.status, ""),
        ),
        (about, "yellow"),
    )
    text = _text_of(result.value)
    if text:
        yield styled(_indent(text, margin + "  "))
    for piece in result.pieces:
        yield from _piece_lines(piece, margin + "  ")
    yield from _problem_lines(result.problems, margin + "  ")


def _problem_lines(problems: list[ProblemView], margin: str) -> Iterator[Text]:
    for problem in problems:
        yield _problem_line(problem, margin)


def _problem_line(problem: ProblemView, margin: str) -> Text:
    style = CERTAINTIES.get(problem.certainty, ("", ""))[1]
    message = cut_text(problem.message.replace("\n", " "), _LONGEST // 2)
    return styled(
        margin,
        (f"! {problem.word.lower()}: ", style),
        (f"{message}  ", style),
        (problem.rule, "dim"),
    )


def _indent(text: str, margin: str) -> str:
    return "\n".join([margin + line for line in text.split("\n")])


# --- for programs --------------------------------------------------------------------------------


def _record_document(output: Output, document: Document, *, cost: bool) -> None:
    timeline, problems = timeline_of(document)
    about = document_fields(document)
    for step in timeline.steps:
        output.record("step", **about, **_step_fields(step))
    placeless = [problem for problem in problems if problem.target is None]
    if cost:
        dollars = cost_in_dollars(document)
        about["cost_usd"] = None if dollars is None else f"{dollars.normalize():f}"
    output.record(
        "document",
        **about,
        kind=document.kind,
        model=document.model,
        status=document.status,
        tools=_tool_names(document),
        steps=len(timeline.steps),
        problems=[_problem_fields(problem) for problem in placeless],
    )


def _step_fields(step: Step) -> dict[str, Any]:
    return {
        "step": step.number,
        "role": step.role,
        "position": step.place,
        "pieces": [_piece_fields(piece) for piece in step.pieces],
        "calls": [_call_fields(call) for call in step.calls],
        "results": [_result_fields(result) for result in step.strays],
        "problems": [_problem_fields(problem) for problem in step.problems],
    }


def _piece_fields(piece: Piece) -> dict[str, Any]:
    text = _text_of_piece(piece)
    return {"kind": piece.kind, "label": piece.label, "text": text}


def _call_fields(call: CallView) -> dict[str, Any]:
    decision = call.decision
    return {
        "call_id": call.call_id,
        "name": call.name,
        "kind": call.kind,
        "position": call.place,
        "arguments": call.asked,
        "decision": None
        if decision is None
        else {"kind": decision.kind, "by": decision.by, "reason": decision.reason},
        "results": [_result_fields(result) for result in call.results],
        "problems": [_problem_fields(problem) for problem in call.problems],
    }


def _result_fields(result: ResultView) -> dict[str, Any]:
    text = _text_of(result.value) if result.value is not None else None
    return {
        "call_id": result.call_id,
        "position": result.place,
        "status": result.status,
        **({"since": result.since} if result.since else {}),
        "astray": result.astray,
        "text": text,
        "pieces": [_piece_fields(piece) for piece in result.pieces],
        "problems": [_problem_fields(problem) for problem in result.problems],
    }


def _problem_fields(problem: ProblemView) -> dict[str, Any]:
    return {
        "rule": problem.rule,
        "certainty": problem.certainty,
        "position": problem.position,
        "message": problem.message,
    }
