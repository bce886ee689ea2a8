"""Documents written in the form in which they were read: one value, lines, or an array."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from lutumpy.cli.files import open_output
from lutumpy.cli.reading import Form
from lutumpy.cli.terminal import Output, styled

__all__ = ["Discarded", "Writer", "destination"]


class Discarded(Exception):
    """Raised inside `destination` when there is nothing to write after all; it ends the block, and
    the file stays.
    """


class Writer:
    """Writes values one after another; `None` as the stream writes nothing.

    Attributes:
        count: How many were written.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._form: Form | None = None
        self.count: int = 0

    def add(self, text: str, form: Form) -> None:
        """The next value, as JSON text."""
        if self._stream is None:
            return
        # The bracket and the commas belong to what is between elements, which the first one begins.
        if form == "element":
            self._stream.write("[\n" if self._form is None else ",\n")
        self._stream.write(_escape_halves(text))
        if form != "element":
            self._stream.write("\n")
        self._form = form
        self.count += 1

    def end(self) -> None:
        """Nothing follows."""
        if self._stream is not None and self._form == "element":
            self._stream.write("\n]\n")


def _escape_halves(text: str) -> str:
    """JSON text with each half of a character, which UTF-8 has no form for, as its escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join([f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text])
    return text


@contextmanager
def destination(output: Output, path: str | None) -> Iterator[Writer]:
    """A writer into the file `path` (`-`: standard output; `None`: nowhere): it is written as a
    whole or stays as it was.

    Raises:
        typer.Exit: The file can't be written; it was said, and the file is as it was.
    """
    try:
        if path is None:
            yield Writer(None)
            return
        with open_output(path) as stream:
            writer = Writer(stream)
            yield writer
            writer.end()
            if stream is sys.stdout:
                stream.flush()
    except Discarded:
        return
    except OSError as error:
        # A pipe that nobody reads ends the command quietly, and isn't a file that can't be written.
        if isinstance(error, BrokenPipeError):
            raise
        output.complain(
            styled(("lutumpy: ", "bold red"), f"{path} can't be written: {error.strerror or error}")
        )
        raise typer.Exit(2) from error
