"""`lutumpy convert`: the same conversation for another API."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lutumpy import TranscriptError
from lutumpy.apis import Api
from lutumpy.cli.conversion import convert_tools, transcript_of
from lutumpy.cli.documents import Document, body_of, shape_of
from lutumpy.cli.findings import counted, document_fields
from lutumpy.cli.inputs import Unreadable, documents, report_unreadable
from lutumpy.cli.options import API_NAMES, ApiOption, JsonOption, OutOption, check_api
from lutumpy.cli.terminal import Output, styled
from lutumpy.cli.writing import Discarded, Writer, destination

__all__ = ["convert"]

_MOST_NOTES = 20


def convert(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON or JSON Lines file; - is standard input.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar=API_NAMES,
            callback=check_api,
            help="The API to write it for.",
            show_default=False,
        ),
    ],
    api: ApiOption = None,
    out: OutOption = "-",
    as_json: JsonOption = False,
) -> None:
    """Write conversations as another API spells them: messages, calls, results, system text and
    function tools.

    What another API can't be told is left out: reasoning, and the provider's own tools. Model and
    parameters are yours to set. With --json, each conversation is one line with its place around
    it, and --out says nothing.

    Exit code 0: everything was converted. 1: a conversation is not valid; `lutumpy repair` may mend
    it. 2: a file, or a part of one, can't be read or written.
    """
    output = Output(as_json=as_json)
    code = 0
    is_refused = False
    notes: Counter[str] = Counter()
    with destination(output, None if as_json else out) as writer:
        for entry in documents([file], output, api):
            if isinstance(entry, Unreadable):
                report_unreadable(output, entry)
                code = 2
                continue
            try:
                value, about = _convert(entry, to)
            except TranscriptError as error:
                code = max(code, 1)
                is_refused = True
                _report_refusal(output, entry, error)
                continue
            notes.update(about)
            if as_json:
                output.record(
                    "conversation", **document_fields(entry), to=to, body=value, notes=about
                )
            else:
                _write_document(writer, entry, value)
        # A file that would be empty replaces nothing.
        if code and not writer.count:
            raise Discarded
    if not as_json:
        _report_notes(output, file, notes)
        if is_refused:
            output.complain("`lutumpy repair FILE` may mend it.")
    raise typer.Exit(code)


def _report_refusal(output: Output, document: Document, error: TranscriptError) -> None:
    if output.as_json:
        output.record("failed", **document_fields(document), message=str(error))
    else:
        output.complain(styled((f"{document.place}: ", "bold red"), str(error)))


def _convert(document: Document, target: Api) -> tuple[Any, list[str]]:
    """The document's conversation for `target`, and what was left out of it.

    Raises:
        TranscriptError: It is not valid.
    """
    body = body_of(target, transcript_of(document))
    notes: list[str] = []
    if document.tools:
        tools, left_out = convert_tools(document.tools, document.api, target)
        body = {**body, **tools}
        if left_out:
            notes.append(f"left out, since they are the provider's own: {', '.join(left_out)}")
    others = _other_keys(document)
    if others:
        notes.append(f"left out: {', '.join(others)}")
    key = shape_of(target).messages_key
    # A bare list stays one, unless a system text or tools have to be beside it.
    is_bare = not isinstance(document.raw, Mapping) and body.keys() == {key}
    return (body[key] if is_bare else body), notes


def _other_keys(document: Document) -> list[str]:
    """What a request has beside its conversation and tools; a dump has no request around it."""
    if document.kind == "session":
        return []
    shape = shape_of(document.api)
    carried = {shape.messages_key, shape.system_key, *shape.other_system_keys, "tools"}
    return [key for key in document.body if key not in carried]


def _write_document(writer: Writer, document: Document, value: Any) -> None:
    place = document.place
    text = json.dumps(value, ensure_ascii=False, indent=2 if place.form == "alone" else None)
    writer.add(text, place.form)


def _report_notes(output: Output, file: str, notes: Counter[str]) -> None:
    """Each note once, however many documents it is about."""
    for note, count in notes.most_common(_MOST_NOTES):
        often = "" if count == 1 else f" (in {count} documents)"
        output.complain(styled((f"{file}: {note}{often}", "dim")))
    if len(notes) > _MOST_NOTES:
        more = counted(len(notes) - _MOST_NOTES, "more note")
        output.complain(styled((f"{file}: and {more}; --json has them all", "dim")))
