"""The events in the bytes of an open response, split and parsed many at a time.

The SDKs' own stream classes take each line and each event through several generators, which is most
of what reading a long stream costs. What is an event, the end, or an error is as they have it:
`openai._streaming`, `anthropic._streaming`.
"""

# What is hard here
# -----------------
# Events arrive in bytes that are cut anywhere, between the two bytes of a line's end too. What is
# kept between two calls of `feed`:
#
#   | kept             | why                                                                   |
#   |------------------|-----------------------------------------------------------------------|
#   | `_start`         | the first bytes may be a byte order mark, which may come in parts     |
#   | `_after_return`  | a "\r" at the end may be the first half of "\r\n"                     |
#   | `_held`          | an event that isn't complete; joined once, when its end is there, so  |
#   |                  | that a long event in small parts isn't copied for each of them        |
#
# Most events of a long answer have the same few bytes before their data (`_usual`). Those are
# recognised as a whole; every other shape goes through the rules of the format, line by line.
#
# Parsing all events of a network chunk at once was tried and dropped: it touches the memory twice
# and took three times as long. So `feed` gives an iterator that parses an event when it is taken.

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from lutumpy.plain import json_values

_NEWLINE = ord("\n")
_LONG_ANSWERS = b"event: content_block_delta\ndata: "

__all__ = ["EventError", "EventSplitter", "Splitter", "event_splitter"]


class Splitter(Protocol):
    """Takes the bytes of a stream as they come, cut anywhere, and gives its events.

    Attributes:
        ended: Whether the last event has come, where an event says so.
        error: What the events end in, if they do. Nothing is taken after it.
    """

    ended: bool
    error: Exception | None

    def feed(self, data: bytes) -> Iterator[Any]:
        """The events that are complete with `data`."""
        ...

    def rest(self) -> Sequence[Any]:
        """What is left at the end of the bytes, if that is an event."""
        ...


class EventError(Exception):
    """The provider reports in the stream that the answer failed; has what the SDKs' errors have.

    Attributes:
        body: What the event holds.
        response: The response that it came with.
    """

    def __init__(self, message: str, body: Any, response: Any) -> None:
        super().__init__(message)
        self.body: Any = body
        self.response: Any = response


class EventSplitter:
    """Takes the bytes of one response as they come, cut anywhere, and gives its events. The work is
    linear in the bytes.

    Args:
        response: The response, for errors.
        named: Events are known by their names, as in the Messages API; else by their data.

    Attributes:
        ended: Whether the last event has come: `[DONE]`.
        error: What the events end in: the provider's error, or what is wrong with an event. Nothing
            is taken after it.
    """

    __slots__ = (
        "_after_return",
        "_data_at",
        "_held",
        "_named",
        "_response",
        "_start",
        "_usual",
        "ended",
        "error",
    )

    def __init__(self, response: Any, *, named: bool) -> None:
        self._response = response
        self._named = named
        # What has come of an event that isn't complete.
        self._held: list[bytes] = []
        self._after_return = False
        # The first bytes, as long as they may be a byte order mark; `None` once that is known.
        self._start: bytes | None = b""
        # What most events of a long answer begin with, and where their data begin.
        self._usual = _LONG_ANSWERS if named else b"data: {"
        self._data_at = len(_LONG_ANSWERS) if named else len(b"data: ")
        self.ended: bool = False
        self.error: Exception | None = None

    def feed(self, data: bytes) -> Iterator[Any]:
        """The events that are complete with `data`; each is parsed when it is taken, so that they
        need no memory together.
        """
        if self._start is not None:
            data = self._drop_mark(self._start + data)
        if b"\r" in data or self._after_return:
            data = self._normalize_newlines(data)
        held = self._held
        if b"\n\n" not in data and not (data[:1] == b"\n" and held and held[-1][-1:] == b"\n"):
            if data:
                held.append(data)
            return iter(())
        if held:
            data = b"".join([*held, data])
            held.clear()
        last = data.rindex(b"\n\n")
        if last + 2 < len(data):
            held.append(data[last + 2 :])
        return self._split(data, last)

    def rest(self) -> Sequence[Any]:
        """Nothing: an event ends with a blank line [HTML, 9.2.6]."""
        return ()

    def _split(self, data: bytes, last: int) -> Iterator[Any]:
        named = self._named
        at = end = 0
        try:
            while at <= last:
                found = b""
                if data.startswith(self._usual, at):
                    begin = at + self._data_at
                    end = data.index(b"\n", begin)
                    if data[end + 1] == _NEWLINE:
                        found = data[begin:end]
                if not found:
                    end = data.index(b"\n\n", at)
                    found = self._read_data(data[at:end])
                at = end + 2
                if found:
                    event = json_values.decode(found)
                    if not named and type(event) is dict and event.get("error"):
                        raise self._make_openai_error(event["error"])
                    yield event
                elif self.ended:
                    return
        except (ValueError, RecursionError, EventError) as error:
            self.error = error

    def _drop_mark(self, data: bytes) -> bytes:
        """The first bytes without the byte order mark that a stream may begin with [HTML, 9.2.6];
        it may come in parts.
        """
        if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(BOM_UTF8)

    def _normalize_newlines(self, data: bytes) -> bytes:
        """`data` with every end of a line as `\\n`; the two bytes of one may come apart."""
        if self._after_return and data[:1] == b"\n":
            data = data[1:]
            self._after_return = False
        if data:
            self._after_return = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_data(self, block: bytes) -> bytes:
        """The data of an event of any shape; empty when it is none to read, and at the end."""
        name, data = _split_fields(block)
        if not self._named:
            if data[:6] != b"[DONE]":
                return data
            self.ended = True
            return b""
        if name == b"error":
            raise self._make_anthropic_error(data)
        if not name or name == b"ping":
            return b""
        return data

    def _make_openai_error(self, error: Any) -> EventError:
        message = error.get("message") if isinstance(error, Mapping) else None
        shown = (
            message
            if isinstance(message, str) and message
            else "An error occurred during streaming"
        )
        return EventError(shown, error, self._response)

    def _make_anthropic_error(self, data: bytes) -> EventError:
        try:
            body = json_values.decode(data)
        except (ValueError, RecursionError):
            text = data.decode("utf-8", "replace")
            return EventError(text or "the stream ended in an error", text, self._response)
        return EventError(str(body), body, self._response)


def event_splitter(stream: Any) -> Splitter | None:
    """A splitter for the bytes of an open stream, its own or one for an SDK's; `None` when only the
    stream itself knows how to read them.
    """
    own: Splitter | None = getattr(stream, "splitter", None)
    if own is not None:
        return own
    kind = type(stream)
    sdk = kind.__module__.partition(".")[0]
    if sdk not in ("anthropic", "openai"):
        return None
    package: Any = sys.modules.get(sdk)
    if kind not in (getattr(package, "AsyncStream", None), getattr(package, "Stream", None)):
        return None
    # Another decoder is that of a host with another format; an observer wants to be told of the
    # events.
    if (
        type(getattr(stream, "_decoder", None)).__name__ != "SSEDecoder"
        or getattr(stream, "_observer", None) is not None
    ):
        return None
    return EventSplitter(stream.response, named=sdk == "anthropic")


def _split_fields(block: bytes) -> tuple[bytes, bytes]:
    """Name and data of an event of any shape, by the rules of the format."""
    name, data = b"", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return name, b"\n".join(data)
