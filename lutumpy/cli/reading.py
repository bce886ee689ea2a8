"""Values of JSON and JSON Lines files, one at a time, with the place of whatever can't be read."""

# What is hard: a broken file must not hide what comes before the fault or beside it, and the fault
# needs its line and column, which `json` counts only in a text that it is given as a whole. So
# there are two ways to read:
#
#     JSON Lines    line by line; one line is in memory. A broken line is one fault, and the next
#                   one is read.
#     JSON          the text as a whole. Of an array, element by element, so that one value at a
#                   time is built, and those before a fault are given. Place and line are carried
#                   from value to value: counting from the beginning would be quadratic.
#
# The first lines show which of both a file is (`_looks_like_lines`), unless its name says so. A
# first line of more than a megabyte isn't looked through; if it holds a whole value, and the next
# line another one, these are lines all the same. Streaming an array of any size was dropped: it
# took a decoder that asks for more text in the middle of a value, for files that have a line
# format anyway.
#
# Recorders also write the answer of a stream as it came: lines of an event stream, whose data are
# JSON, or lines of JSON with `[DONE]` as the last one. What is around the data there is written
# over with spaces, so that the places of faults stay right. No line of JSON can begin like that.

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from lutumpy.plain.json_values import refuse_constant

__all__ = ["BadValue", "Form", "Value", "read_text", "read_values"]

Form = Literal["alone", "line", "element"]

CHUNK = 1 << 18
"""Bytes that are read at once."""

# Bytes of a file in which its first lines are looked for.
_PEEK = 1 << 20
_SOLID = re.compile(r"[^ \t\r\n]")
_BOMS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
)
_ALL_BOMS = (*_BOMS, (codecs.BOM_UTF16_BE, "UTF-16"))

_MARK = "\ufeff"
_DATA_LINE = re.compile(rf"^{_MARK}?data:", re.M)
# What a line has before its value: a byte order mark, the name of the field, and the end's word.
_FRAME = re.compile(rf"^{_MARK}?(?:data:)?(?:[ \t]*\[DONE\][ \t\r]*$)?", re.M)
# The other fields of an event, and comments.
_FIELD_LINE = re.compile(rf"^{_MARK}?(?:event|id|retry)?:.*", re.M)
# Fields that may come before the first data of a stream. More of them aren't a stream's.
_MOST_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value of a file.

    Attributes:
        value: The value.
        line: The line on which it begins, from 1.
        form: What it is in its file: all of it, one of its lines, or an element of its array.
        text: How it was written.
    """

    value: Any
    line: int
    form: Form
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class BadValue:
    """Something in a file that isn't JSON.

    Attributes:
        line: The line of the fault, from 1.
        column: Its column in characters, from 1; `None` where only the line is known.
        cause: What is wrong.
    """

    line: int
    column: int | None
    cause: str


def read_values(
    stream: BinaryIO,
    *,
    lines: bool | None = None,
    is_part: Callable[[Any], bool] = lambda value: False,
    progress: Callable[[int], None] = lambda count: None,
) -> Iterator[Value | BadValue]:
    """The values of a file: one, those of an array one by one, or one for each line.

    Args:
        stream: The file, read once from where it stands.
        lines: Whether it is JSON Lines; seen from the content when left out.
        is_part: Whether an array's first element is a part of one value, so that the array is to be
            read as a whole.
        progress: Called with the number of bytes that were read, again and again.

    Raises:
        OSError: The file can't be read.
    """
    source = _Source(stream, progress)
    head = source.peek(4)
    for bom, name in _ALL_BOMS:
        if head.startswith(bom):
            yield BadValue(1, 1, f"the file is {name}; JSON is UTF-8")
            return
    if head.startswith(codecs.BOM_UTF8):
        source.skip(len(codecs.BOM_UTF8))
    if lines is None:
        lines = _looks_like_lines(source)
    if lines:
        yield from _read_lines(source)
    else:
        yield from _read_all(source).values(is_part)


def read_text(text: str) -> Iterator[Value | BadValue]:
    """The values in a text: a JSON value, several on lines of their own, or the data of an event
    stream. A fault ends them.
    """
    # An event stream may end its lines with a carriage return alone, which JSON has nowhere else.
    lines = text.replace("\r\n", " \n").replace("\r", "\n")
    return _JsonText(_blank_frames(lines), is_whole=True).values(lambda value: False)


def _blank_frames(text: str) -> str:
    """A text with spaces for what an event stream has around its data; the same text where nothing
    of that is in it.
    """
    if "data:" in text and _DATA_LINE.search(text):
        text = _FIELD_LINE.sub(_spaces, text)
    elif "[DONE]" not in text and _MARK not in text:
        return text
    return _FRAME.sub(_spaces, text)


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


class _Source:
    """The bytes of a file, with some of them looked at before they are taken."""

    def __init__(self, stream: BinaryIO, progress: Callable[[int], None]) -> None:
        self._stream = stream
        self._progress = progress
        self._ahead = b""
        self.ended = False

    def peek(self, size: int) -> bytes:
        """The next bytes, up to `size`; fewer at the end of the file."""
        while len(self._ahead) < size and not self.ended:
            self._ahead += self._more(max(CHUNK, size - len(self._ahead)))
        return self._ahead[:size]

    def skip(self, size: int) -> None:
        self._ahead = self._ahead[size:]

    def read(self) -> bytes:
        """Whatever comes next; empty at the end of the file."""
        taken, self._ahead = self._ahead, b""
        return taken or self._more(CHUNK)

    def read_all(self) -> bytes:
        """Everything that comes."""
        pieces: list[bytes] = []
        while data := self.read():
            pieces.append(data)
        return b"".join(pieces)

    def _more(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.ended = not data
        self._progress(len(data))
        return data


# --- JSON Lines ----------------------------------------------------------------------------------


def _looks_like_lines(source: _Source) -> bool:
    """Whether the first lines are complete values of their own, as no single JSON text has them."""
    size = 1 << 12
    while True:
        head = source.peek(size)
        # A pretty-printed text begins with a bracket on a line of its own.
        first, *others = [line for line in head.split(b"\n") if line.strip()] or [b""]
        if first.strip() in (b"[", b"{"):
            return False
        if others and _is_container(first):
            return True
        is_all = source.ended or size >= _PEEK
        if is_all or len(others) > 1:
            break
        size *= 4
    # A first line may be broken: then the next one tells.
    return bool(others) and _is_container(others[0])


def _is_container(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


def _read_lines(source: _Source) -> Iterator[Value | BadValue]:
    # Fields that come before the data of an event, until it is known that data follow.
    fields: list[BadValue] = []
    in_stream = False
    for number, data in _split_lines(source):
        line = data.strip().removeprefix(codecs.BOM_UTF8)
        entry = _read_line(data, number)
        if isinstance(entry, BadValue) and line.startswith((b"event:", b"id:", b"retry:", b":")):
            if not in_stream:
                fields.append(entry)
            if len(fields) > _MOST_FIELDS:
                yield from fields
                fields.clear()
            continue
        if line.startswith(b"data:"):
            in_stream = True
            fields.clear()
        elif line:
            in_stream = False
            yield from fields
            fields.clear()
        if entry is not None:
            yield entry
    yield from fields


def _split_lines(source: _Source) -> Iterator[tuple[int, bytes]]:
    """The lines, numbered from 1."""
    number = 0
    # Pieces of a line that a chunk ended in: joined once, since a long line spans many chunks.
    rest: list[bytes] = []
    while data := source.read():
        pieces = data.split(b"\n")
        rest.append(pieces[0])
        for piece in pieces[1:]:
            number += 1
            yield number, b"".join(rest)
            rest = [piece]
    yield number + 1, b"".join(rest)


def _read_line(data: bytes, number: int) -> Value | BadValue | None:
    """The value of a line; `None` where it holds none."""
    if not data.strip():
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode(errors="replace")) + 1
        return BadValue(number, column, f"byte {error.start + 1} of the line is not UTF-8")
    text = _blank_frames(text)
    if text.isspace():
        return None
    try:
        return Value(_DECODER.decode(text), number, "line", text.strip())
    except json.JSONDecodeError as error:
        return BadValue(number, error.colno, _cause(error.msg))
    except (ValueError, RecursionError) as error:
        return BadValue(number, None, _other_cause(error))


# `json` reads NaN and Infinity, which no provider takes.
_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def _cause(message: str) -> str:
    return f"not JSON: {message[:1].lower()}{message[1:]}"


def _other_cause(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error).partition(";")[0]
    return f"not JSON: {text[:1].lower()}{text[1:]}" if "JSON" not in text else text


# --- One JSON text --------------------------------------------------------------------------------


class _JsonText:
    """One JSON text, taken apart from left to right. Everything before `_at` was taken.

    Args:
        text: The text.
        is_whole: Whether it ends where the file does, and not before a byte that isn't UTF-8.
    """

    def __init__(self, text: str, *, is_whole: bool) -> None:
        self._text = text
        self._is_whole = is_whole
        self._at = 0
        self._line = 1
        self._column = 1

    def values(self, is_part: Callable[[Any], bool]) -> Iterator[Value | BadValue]:
        """The one value, or the elements of an array; a fault ends it."""
        try:
            if self._next_character() == "[":
                yield from self._elements(is_part)
            else:
                yield from self._values()
            if self._next_character():
                raise self._fault("Extra data after the value")
        except json.JSONDecodeError as error:
            if self._is_whole:
                yield BadValue(*self._place_of(error.pos), _cause(error.msg))
            else:
                yield BadValue(*self._place_of(len(self._text)), "the byte here is not UTF-8")
        except (ValueError, RecursionError) as error:
            yield BadValue(self._line, None, _other_cause(error))

    def _values(self) -> Iterator[Value]:
        """The value; further ones where each begins on a line of its own."""
        if not self._next_character():
            raise self._fault("The file is empty")
        line = self._line
        value, text = self._take_value()
        ended = self._line
        is_alone = not self._next_character()
        yield Value(value, line, "alone" if is_alone else "line", text)
        while self._next_character() and self._line > ended:
            line = self._line
            value, text = self._take_value()
            ended = self._line
            yield Value(value, line, "line", text)

    def _elements(self, is_part: Callable[[Any], bool]) -> Iterator[Value]:
        """The elements of an array; the array, when its first element is a part of one value."""
        begun = self._line
        self._take(1)
        if self._next_character() == "]":
            self._take(1)
            yield Value([], begun, "alone")
            return
        parts: list[Any] | None = None
        is_first = True
        mark = ","
        while mark == ",":
            if not self._next_character():
                raise self._fault("The file ends inside an array")
            line = self._line
            value, text = self._take_value()
            if is_first and is_part(value):
                parts = []
            is_first = False
            if parts is None:
                yield Value(value, line, "element", text)
            else:
                parts.append(value)
            mark = self._next_character()
            if mark not in ("]", ","):
                raise self._fault(
                    "Expecting ',' delimiter" if mark else "The file ends inside an array"
                )
            self._take(1)
        if parts is not None:
            yield Value(parts, begun, "alone")

    def _take_value(self) -> tuple[Any, str]:
        """The value that begins here, and how it is written."""
        value, end = _DECODER.raw_decode(self._text, self._at)
        text = self._text[self._at : end]
        self._take(end - self._at)
        return value, text

    def _next_character(self) -> str:
        """The next character that isn't white space; empty at the end."""
        found = _SOLID.search(self._text, self._at)
        end = found.start() if found else len(self._text)
        self._take(end - self._at)
        return found[0] if found else ""

    def _take(self, count: int) -> None:
        """Leave `count` characters behind."""
        end = self._at + count
        self._line, self._column = self._place_of(end)
        self._at = end

    def _place_of(self, end: int) -> tuple[int, int]:
        """Line and column of a place that wasn't taken yet, counted from where this is now."""
        breaks = self._text.count("\n", self._at, end)
        if not breaks:
            return self._line, self._column + end - self._at
        return self._line + breaks, end - self._text.rindex("\n", self._at, end)

    def _fault(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self._text, self._at)


def _read_all(source: _Source) -> _JsonText:
    data = source.read_all()
    try:
        return _JsonText(_blank_frames(data.decode()), is_whole=True)
    except UnicodeDecodeError as error:
        return _JsonText(_blank_frames(data[: error.start].decode()), is_whole=False)
