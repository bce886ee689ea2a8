"""Values of JSON and JSON Lines files, one at a time, with the place of everything that can't be read.

Only one document is held in memory: a line of JSON Lines, an element of an array. What is no JSON is named with line,
column and cause; a broken line or a broken file doesn't hide what comes after or stands beside it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

__all__ = ["BadValue", "Form", "Value", "read_values"]

Form = Literal["alone", "line", "element"]

CHUNK = 1 << 18
"""Bytes that are read at once."""

_PEEK = 1 << 20
_TAIL = 64  # how near to the end of what was read an error may be and only mean that more has to be read
_SPACE = " \t\r\n"
_SOLID = re.compile(r"[^ \t\r\n]")
_BOMS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
)
_ALL_BOMS = (*_BOMS, (codecs.BOM_UTF16_BE, "UTF-16"))


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
    """Something in a file that is no JSON.

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
        is_part: Whether an array's first element is a part of one value, so that the array is to be read as a whole.
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
        yield from _lines(source)
    else:
        yield from _Json(source, is_part).values()


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

    def _more(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.ended = not data
        self._progress(len(data))
        return data


# --- JSON Lines ----------------------------------------------------------------------------------------------------------


def _looks_like_lines(source: _Source) -> bool:
    """Whether the first lines are complete values of their own, as no single JSON text has them."""
    size = 1 << 12
    while True:
        head = source.peek(size)
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


def _lines(source: _Source) -> Iterator[Value | BadValue]:
    number = 0
    rest: list[bytes] = []
    while data := source.read():
        pieces = data.split(b"\n")
        rest.append(pieces[0])
        for piece in pieces[1:]:
            number += 1
            yield from _line(b"".join(rest), number)
            rest = [piece]
    yield from _line(b"".join(rest), number + 1)


def _line(data: bytes, number: int) -> Iterator[Value | BadValue]:
    if not data.strip():
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode(errors="replace")) + 1
        yield BadValue(number, column, f"byte {error.start + 1} of the line is not UTF-8")
        return
    try:
        yield Value(_DECODER.decode(text), number, "line", text.strip())
    except json.JSONDecodeError as error:
        yield BadValue(number, error.colno, _cause(error.msg))
    except (ValueError, RecursionError) as error:
        yield BadValue(number, None, _other_cause(error))


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _cause(message: str) -> str:
    return f"not JSON: {message[:1].lower()}{message[1:]}"


def _other_cause(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error).partition(";")[0]
    return f"not JSON: {text[:1].lower()}{text[1:]}" if "JSON" not in text else text


# --- one JSON text -------------------------------------------------------------------------------------------------------


class _Json:
    """One JSON text; an array is taken apart while it is read."""

    def __init__(self, source: _Source, is_part: Callable[[Any], bool]) -> None:
        self.source = source
        self.is_part = is_part
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.text = ""
        self.at = 0
        self.line = 1
        self.column = 1
        self.ended = False
        self.undecodable = False
        self.taken = ""  # the text of the value that was read last

    def values(self) -> Iterator[Value | BadValue]:
        try:
            yield from self._values()
        except json.JSONDecodeError as error:
            if self.undecodable:
                yield BadValue(*self._after(len(self.text)), "the byte here is not UTF-8")
            else:
                yield BadValue(*self._after(error.pos), _cause(error.msg))
        except (ValueError, RecursionError) as error:
            yield BadValue(self.line, None, _other_cause(error))

    def _values(self) -> Iterator[Value]:
        first = self._next()
        if not first:
            raise self._fault("The file is empty")
        if first == "[":
            yield from self._elements()
        else:
            line = self.line
            value = self._value()
            text = self.taken
            ended = self.line
            # Lines too long to be seen as such: what follows on a line of its own is a value of its own.
            alone = not self._next()
            yield Value(value, line, "alone" if alone else "line", text)
            while not alone and self._next() and self.line > ended:
                line = self.line
                value = self._value()
                yield Value(value, line, "line", self.taken)
                ended = self.line
        if self._next():
            raise self._fault("Extra data after the value")

    def _elements(self) -> Iterator[Value]:
        begun = self.line
        self._take(1)
        if self._next() == "]":
            self._take(1)
            yield Value([], begun, "alone")
            return
        parts: list[Any] | None = None
        is_first = True
        while True:
            if not self._next():
                raise self._fault("The file ends inside an array")
            line = self.line
            value = self._value()
            text = "" if parts is not None else self.taken
            if is_first and self.is_part(value):
                parts = []
            is_first = False
            if parts is None:
                yield Value(value, line, "element", text)
            else:
                parts.append(value)
            mark = self._next()
            if mark not in ("]", ","):
                raise self._fault(
                    "Expecting ',' delimiter" if mark else "The file ends inside an array"
                )
            self._take(1)
            if mark == "]":
                break
        if parts is not None:
            yield Value(parts, begun, "alone")

    def _fault(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self.text, self.at)

    def _value(self) -> Any:
        """The value that begins here; as much is read as it needs."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                near = len(self.text.rstrip(_SPACE)) - _TAIL
                is_cut = error.pos >= near or error.msg.startswith("Unterminated string")
                if self.ended or not is_cut:
                    raise
            else:
                if end < len(self.text) or self.ended:
                    self.taken = self.text[self.at : end]
                    self._take(end - self.at)
                    return value
            self._grow(max(CHUNK, len(self.text) - self.at))

    def _next(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            found = _SOLID.search(self.text, self.at)
            self._take((found.start() if found else len(self.text)) - self.at)
            if found:
                return found[0]
            if self.ended:
                return ""
            self._grow(CHUNK)

    def _take(self, count: int) -> None:
        """Leave `count` characters behind."""
        end = self.at + count
        self.line, self.column = self._after(end)
        self.at = end

    def _after(self, end: int) -> tuple[int, int]:
        """Line and column of the place `end` in what was read and not left behind yet."""
        breaks = self.text.count("\n", self.at, end)
        if not breaks:
            return self.line, self.column + end - self.at
        return self.line + breaks, end - self.text.rindex("\n", self.at, end)

    def _grow(self, size: int) -> None:
        """Read more, at least `size` bytes where there are so many."""
        pieces = [self.text[self.at :]]
        while size > 0 and not self.ended:
            data = self.source.read()
            size -= len(data)
            self.ended = not data
            try:
                pieces.append(self.decoder.decode(data, final=not data))
            except UnicodeDecodeError as error:
                pieces.append(error.object[: error.start].decode())
                self.ended = self.undecodable = True
        self.text, self.at = "".join(pieces), 0
