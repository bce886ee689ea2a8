"""What goes to the terminal: text made harmless, lines for people and JSON lines for programs, a
bar for long files.

Transcripts are written by others. Nothing of them may reach a terminal as it is: control characters
would move its cursor, change its colours or its title, or answer for the user. They are shown as
escapes, and so is what no encoding has.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from lutumpy.plain.preview import MARK, shorten

__all__ = ["FileProgress", "Output", "cut_text", "harmless", "styled"]

# Control characters but for the line feed and the tab, lone surrogates, line separators of Unicode,
# and the marks that turn the direction of a line around, so that it reads as something else.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_BAR_FROM = 2_000_000  # bytes: what is smaller is read before a bar could be seen
_BAR_EVERY = 0.2  # seconds


def harmless(text: str) -> str:
    """`text` as a terminal may be given it: control characters, marks of direction and lone
    surrogates as escapes.
    """
    return _HARMFUL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut_text(text: str, most: int) -> str:
    """The first `most` characters of `text`, with a note of how many are missing."""
    missing = len(text) - most
    if missing <= 0:
        return text
    # The mark comes after the characters that were asked for, and isn't one of them.
    return f"{shorten(text + MARK, most + len(MARK))} ({missing} more characters)"


def styled(*pieces: str | tuple[str, str]) -> Text:
    """A line of harmless text; a piece with a style is a pair."""
    line = Text()
    for piece in pieces:
        text, style = piece if isinstance(piece, tuple) else (piece, "")
        line.append(harmless(text), style or None)
    return line


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # whoever runs the command ends it; rich would end the program itself


class Output:
    """Where a command writes: results to standard output, complaints to standard error.

    Args:
        as_json: One JSON object a line instead of text for people.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        # A terminal of another encoding gets escapes for what it hasn't, and no exception.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        self.as_json: bool = as_json
        self.console: Console = _make_console(sys.stdout)
        self.errors: Console = _make_console(sys.stderr)
        self.bar: FileProgress | None = None
        self.faults: Counter[str] = Counter()  # how many parts of each file could not be read

    def record(self, name: str, /, **fields: Any) -> None:
        """One JSON line, of the type `name`; nothing but ASCII in it, so that it goes through every
        terminal and pipe.
        """
        self._pause_bar()
        sys.stdout.write(json.dumps({"type": name, **fields}, default=str) + "\n")

    def print(self, *lines: RenderableType) -> None:
        """Lines for people; strings are made harmless here."""
        self._pause_bar()
        for line in lines:
            self.console.print(styled(line) if isinstance(line, str) else line)

    def complain(self, *lines: RenderableType) -> None:
        """Lines for people, to standard error."""
        self._pause_bar()
        # Both streams may be one terminal: lines stay in the order in which they were printed.
        sys.stdout.flush()
        for line in lines:
            self.errors.print(styled(line) if isinstance(line, str) else line)

    def _pause_bar(self) -> None:
        if self.bar is not None:
            self.bar.pause()


def _make_console(stream: Any) -> Console:
    width = _size_from_environment("COLUMNS", 20, 80)
    # A file or a pipe has no width; the same one everywhere keeps what programs compare equal.
    if width is None and not stream.isatty():
        width = 100
    height = _size_from_environment("LINES", 5, 25)
    if width is not None or height is not None:
        # Given one of them, rich would read the other from the environment itself.
        width, height = width or shutil.get_terminal_size().columns or 80, height or 25
    return _Console(
        file=stream,
        width=width,
        height=height,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def _size_from_environment(name: str, fewest: int, usual: int) -> int | None:
    """A size of the terminal as the environment says it: `usual` for nonsense, `None` where it says
    nothing.

    rich takes whatever has digits: also 0, at which it prints nothing, and `²`, which Python can't
    read as a number.
    """
    text = os.environ.get(name)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    return number if number >= fewest else usual


class FileProgress:
    """A bar on standard error that says how much of a file was read; only on a terminal, only for
    long files.

    It goes away while something is printed and comes back when reading goes on.
    """

    def __init__(self, output: Output, name: str, total: int | None) -> None:
        self._output = output
        self._name = harmless(name)
        self._total = total
        self._done = 0
        self._shown: Progress | None = None
        self._task: Any = None
        self._next = 0.0
        self._wanted = (
            output.errors.is_terminal
            and not output.as_json
            and (total is None or total >= _BAR_FROM)
        )

    def __enter__(self) -> FileProgress:
        self._output.bar = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.pause()
        self._output.bar = None

    def advance(self, count: int) -> None:
        """So many bytes more were read."""
        self._done += count
        if (
            not self._wanted
            or (self._total is None and self._done < _BAR_FROM)
            or time.monotonic() < self._next
        ):
            return
        self._next = time.monotonic() + _BAR_EVERY
        if self._shown is None:
            columns: Iterable[Any] = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
            )
            self._shown = Progress(
                *columns,
                console=self._output.errors,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._shown.add_task(self._name, total=self._total)
            self._shown.start()
        self._shown.update(self._task, completed=self._done, refresh=True)

    def pause(self) -> None:
        """Take the bar away until reading goes on."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
            self._next = time.monotonic() + _BAR_EVERY
