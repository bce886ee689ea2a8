"""The files of a command line as documents: opened, read and recognised.

What can't be read is reported with its place, and the documents around it are read all the same.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, BinaryIO

from lutumpy.apis import Api
from lutumpy.cli.documents import Document, DocumentError, Place, open_document
from lutumpy.cli.exchanges import join_exchanges
from lutumpy.cli.reading import BadValue, read_values
from lutumpy.cli.recognition import apis_of_address, is_message
from lutumpy.cli.terminal import FileProgress, Output, styled

__all__ = ["Unreadable", "documents", "report_unreadable"]

DEEPEST = 200
"""Levels of nesting that a document may have. No provider takes so many, and some of what walks it
needs the stack for each level.
"""

MOST_SHOWN = 100
"""Faults of one file that people are shown. A file that is something else altogether has one in
every line.
"""

_LINES = (".jsonl", ".ndjson", ".jsonlines")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file, or a part of one, that isn't a document.

    Attributes:
        file: The file's name as it was given; `-` for standard input.
        line: The line of the fault, from 1; `None` where the file as a whole is meant.
        column: Its column in characters, from 1; `None` where it isn't known.
        cause: What is wrong.
    """

    file: str
    line: int | None
    column: int | None
    cause: str

    def __str__(self) -> str:
        where = ":".join(
            str(part) for part in (self.file, self.line, self.column) if part is not None
        )
        return f"{where}: {self.cause}"


def documents(
    files: Sequence[str], output: Output, api: Api | None = None, host: str | None = None
) -> Iterator[Document | Unreadable]:
    """Every document of the files in order, each read when it is asked for.

    A fault is an entry of its own, and ends only what it breaks.

    Args:
        files: Names of files; `-` for standard input.
        output: Where faults are counted, and a bar is shown.
        api: Whose API they are for; recognised when left out.
        host: The host that they are for, as for `host_name`; seen from each document when left out.
    """
    for file in files:
        try:
            with _open_file(file) as stream, FileProgress(output, file, _size_of(stream)) as bar:
                yield from _read_documents(file, stream, bar, api, host)
        except OSError as error:
            # Nobody reads the output any more: no fault of the input, and the command ends.
            if isinstance(error, BrokenPipeError):
                raise
            yield Unreadable(file, None, None, f"can't be read: {error.strerror or error}")
        _report_hidden(output, file)


def _read_documents(
    file: str, stream: BinaryIO, bar: FileProgress, api: Api | None, host: str | None
) -> Iterator[Document | Unreadable]:
    lines = True if file.lower().endswith(_LINES) else None
    # The first element tells an array of documents from one conversation: a message is a part.
    found = read_values(stream, lines=lines, is_part=is_message, progress=bar.advance)
    for number, entry in enumerate(join_exchanges(found), 1):
        if isinstance(entry, BadValue):
            yield Unreadable(file, entry.line, entry.column, entry.cause)
            continue
        if _asks_no_model(entry.value):
            continue
        if _is_deeper(entry.value, DEEPEST):
            yield Unreadable(file, entry.line, None, f"nested more than {DEEPEST} levels deep")
            continue
        place = Place(file, entry.line, number, entry.form, entry.text)
        try:
            document = open_document(entry.value, place, api, host)
        except DocumentError as error:
            yield Unreadable(file, entry.line, None, str(error))
        else:
            yield document


def _asks_no_model(value: Any) -> bool:
    """Whether a value is a line of a cassette, with a request to an address where no model answers:
    a file that was uploaded, tokens that were counted.
    """
    is_line = isinstance(value, dict) and {"request", "url", "headers", "response"} <= value.keys()
    return is_line and "api" not in value and not apis_of_address(value)


def _is_deeper(value: Any, most: int) -> bool:
    """Whether a JSON value has more than `most` levels; without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _open_file(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    if os.path.isdir(file):
        raise IsADirectoryError(0, "it is a directory")
    try:
        return open(file, "rb")
    except ValueError as error:  # a name with a null character
        raise OSError(0, str(error)) from error


def _size_of(stream: BinaryIO) -> int | None:
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return None
    # A pipe or a terminal has no size that says anything.
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def report_unreadable(output: Output, fault: Unreadable) -> None:
    """Say what could not be read: all of it to programs, the first `MOST_SHOWN` faults of a file to
    people.
    """
    # Programs get every fault; people would lose sight of the first ones.
    if output.as_json:
        output.record(
            "unreadable", file=fault.file, line=fault.line, column=fault.column, cause=fault.cause
        )
        return
    output.faults[fault.file] += 1
    if output.faults[fault.file] <= MOST_SHOWN:
        output.complain(styled(("cannot read ", "bold red"), str(fault)))


def _report_hidden(output: Output, file: str) -> None:
    """Say how many faults of a file were not shown."""
    more = output.faults.pop(file, 0) - MOST_SHOWN
    if more > 0:
        places = "one more place" if more == 1 else f"{more} more places"
        output.complain(
            styled(("cannot read ", "bold red"), f"{file}: {places}; --json lists all of them")
        )
