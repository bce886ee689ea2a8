"""Histories that mix APIs: what another API spelled is written in this one's spelling."""

# It is the usual accident when a provider is switched. Recognized are calls and results wherever
# another API puts them (items of Responses among messages, `tool_calls` and messages of the role
# `tool`, blocks of Messages, old functions of Chat Completions), what is said or shown beside
# `content` (the parts of generateContent, the images of Ollama), and parts of content of another
# API. How each API spells them is in its folder; see `spelling.py`.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import Stage, drop_entry, placed
from lutumpy.doctor.mixed_reader import MixedReader, ResultLookup, reader_for
from lutumpy.doctor.pieces import (
    Call,
    Media,
    Opaque,
    OwnPart,
    Piece,
    Reasoning,
    Result,
    type_of,
)
from lutumpy.doctor.repair import RepairKind
from lutumpy.doctor.spelling import Json, Spelling
from lutumpy.errors import Problem

__all__ = ["conversion_to", "mend_foreign_part", "write_entry"]

# Parts of text differ in their names alone. Repairs of contents mend them, with other reasons.
_TEXT_PARTS = ("text", "input_text", "output_text")


def conversion_to(spelling: Spelling) -> Stage:
    """The stage that writes messages as this API does in which another API's calls or results are,
    or what is said stands where another API has it.
    """

    def convert(editor: Editor, problems: list[Problem]) -> None:
        reader = reader_for(spelling)
        first_problems: dict[int, Problem] = {}
        for problem, index in placed(problems):
            if index in first_problems:
                continue
            entry = editor.get((index,))
            if reader.holds_foreign_calls(entry) or reader.says_elsewhere(entry):
                first_problems[index] = problem
        if not first_problems:
            return
        results = reader.look_up_results(editor.document)
        for run in _find_runs(reader, editor, sorted(first_problems)):
            _convert_run(reader, editor, first_problems[run[0]], run, results)

    return convert


def _find_runs(reader: MixedReader, editor: Editor, indices: list[int]) -> Iterator[list[int]]:
    """Neighbours that another API writes apart and this one as one message.

    These are parallel calls, and where messages of one role are joined their results.
    """
    run: list[int] = []
    side: str | None = None
    for index in indices:
        previous = side
        side = _side_of(reader, editor.get((index,)))
        if run and (index != run[-1] + 1 or side is None or side != previous):
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _side_of(reader: MixedReader, entry: Mapping[str, Any]) -> str | None:
    """Which message an entry could share with its neighbours; `None` for one of its own."""
    if reader.is_result(entry):
        return "results" if reader.own.joins_messages else None
    if reader.role_of(entry) is None and reader.own.takes_calls_in_messages:
        return "model"
    return None


def _convert_run(
    reader: MixedReader,
    editor: Editor,
    problem: Problem,
    run: list[int],
    results: ResultLookup,
) -> None:
    pieces: list[Piece] = []
    role = "assistant"
    for index in run:
        role, read = reader.read_entry(editor.get((index,)), index, results.ids.get(index))
        pieces += [
            replace(piece, is_custom=True)
            if isinstance(piece, Result) and results.is_custom(index, piece.call_id)
            else piece
            for piece in read
        ]
    entries = write_entry(reader.own, role, pieces)
    if not entries:
        reason = (
            "Only the API that wrote this can read it, and that is another API; it is left out."
        )
        for index in run:
            drop_entry(editor, (index,), problem, "drop_reasoning", reason)
        return
    # One edit for the whole run: half of it would leave calls apart from their results.
    for index in run:
        editor.expect((index,))
    editor.set_entry((run[0],), entries[0])
    for entry in entries[1:]:
        editor.insert((run[0] + 1,), entry)
    for index in run[1:]:
        editor.remove((index,))
    what = "These calls or results are" if _has_calls(pieces) else "What is said here is"
    reason = f"{what} spelled as another API does; this API's spelling is used."
    if any(isinstance(piece, Reasoning) for piece in pieces):
        reason += " Reasoning beside them is left out: only the API that wrote it can read it."
    kind: RepairKind = "convert_message"
    if len(run) == len(entries) == 1 and _became_a_result(entries[0], pieces):
        kind = "set_role"
    editor.done(kind, problem, reason, *_find_ids_and_tools(pieces))


def _has_calls(pieces: Sequence[Piece]) -> bool:
    return any(
        isinstance(piece, (Call, Result))
        or (isinstance(piece, OwnPart) and piece.call_id is not None)
        for piece in pieces
    )


def _became_a_result(entry: Json, pieces: Sequence[Piece]) -> bool:
    """Whether a message became a result that has no role: only its frame has changed."""
    return "role" not in entry and any(isinstance(piece, Result) for piece in pieces)


def _find_ids_and_tools(pieces: Sequence[Piece]) -> tuple[list[str], list[str]]:
    """The ids of the calls and results, and the names of the tools, each once."""
    ids: dict[str, None] = {}
    names: dict[str, None] = {}
    for piece in pieces:
        if isinstance(piece, (Call, Result)) and isinstance(piece.call_id, str):
            ids[piece.call_id] = None
        if isinstance(piece, Call) and isinstance(piece.name, str):
            names[piece.name] = None
    return list(ids), list(names)


def write_entry(spelling: Spelling, role: str, pieces: Sequence[Piece]) -> list[Json]:
    """The messages or items that say the same; none when nothing is left to say.

    Pieces are written in runs of one speaker: results are nobody's, calls are the model's. Media
    that the model showed go into a user message after them, because models show nothing.
    """
    written: list[Json] = []
    shown: list[Piece] = []
    group: list[Piece] = []
    speaker = role
    for piece in pieces:
        if isinstance(piece, Reasoning):
            continue
        next_speaker = role
        if isinstance(piece, Result):
            next_speaker = "results"
        elif isinstance(piece, Call):
            next_speaker = "assistant"
        if next_speaker == "assistant" and isinstance(piece, Media):
            shown.append(piece)
            continue
        if next_speaker != speaker and group:
            written += spelling.write_group(speaker, group)
            group = []
        speaker = next_speaker
        group.append(piece)
    if group:
        written += spelling.write_group(speaker, group)
    if shown:
        written += spelling.write_group("user", shown)
    return _join_neighbours(written, spelling.content_key) if spelling.joins_messages else written


def _join_neighbours(messages: Sequence[Json], key: str) -> list[Json]:
    """Neighbouring messages of one role as one."""
    found: list[Json] = []
    for message in messages:
        if found and found[-1]["role"] == message["role"]:
            found[-1][key] += message[key]
        else:
            found.append(message)
    return found


def mend_foreign_part(
    spelling: Spelling, editor: Editor, problem: Problem, path: Path, *, by_model: bool
) -> bool:
    """Write a part of another API in this one's spelling, in its place.

    An image or a file keeps what it shows, reasoning is left out, and what only its own API has
    becomes its JSON text.

    Args:
        spelling: This API's.
        editor: The messages.
        problem: The problem with the part.
        path: Its place.
        by_model: It is in a message of the model.

    Returns:
        Whether it was a part of another API, and is mended.
    """
    part = editor.get(path)
    reader = reader_for(spelling)
    kind = reader.kind_of(part)
    if kind not in reader.any_parts or kind in spelling.parts or kind in _TEXT_PARTS:
        return False
    piece = reader.read_part(part)
    if isinstance(piece, Reasoning):
        reason = "This is reasoning of another API, which only that API can read; it is left out."
        drop_entry(editor, path, problem, "drop_reasoning", reason)
        return True
    written = spelling.write_part(piece, by_model=by_model)
    if written is None:
        return False
    if isinstance(piece, Opaque) and kind in reader.readable:
        return False  # it lacks what it should show: nobody can tell what that was
    editor.expect(path)
    editor.set_entry(path, written)
    name = type_of(written) or next(iter(written))
    reason = f"This is a part of another API; it becomes one of this API's, {name!r}."
    editor.done("set_content", problem, reason)
    return True
