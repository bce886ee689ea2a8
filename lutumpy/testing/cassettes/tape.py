"""What becomes of each request that goes through a cassette."""

# What is hard here
# -----------------
# A request is asked for by a transport, below the SDK, and several may be under way at once. Each
# is decided about when it begins, under the lock:
#
#     mode          the request                          becomes
#     record        any                                  a `Recording`: sent, and kept
#     replay        the next one that was recorded       a `Playback`
#                   any other, or one more               a `CassetteMismatch` (rules V1, V2)
#     record-new    the next one that was recorded       a `Playback`
#                   any other, or one more               a `Recording`; what was recorded from there
#                                                        on is dropped (V8)
#
# A `Recording` has its place in the file from the moment at which it began, and is written when its
# answer has ended. The file is written anew each time, so that what was paid for survives whatever
# comes after it.

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import urlsplit

from lutumpy.errors import CassetteError, CassetteMismatch
from lutumpy.testing.cassettes.answers import (
    cut,
    events_of,
    keep_answer,
    written_answer,
)
from lutumpy.testing.cassettes.differences import ABSENT, first_difference
from lutumpy.testing.cassettes.file import (
    Exchange,
    Sent,
    place_of,
    read_exchanges,
    write_lines,
)
from lutumpy.testing.cassettes.outputs import without_outputs
from lutumpy.testing.cassettes.secrets import KEPT_HEADERS, Secrets

__all__ = ["CassetteMatch", "CassetteMode", "Playback", "Recording", "Tape"]

CassetteMode: TypeAlias = Literal["replay", "record", "record-new"]
"""`replay` asks nobody, `record` asks for everything anew, `record-new` asks for what is behind the
first request that differs.
"""

CassetteMatch: TypeAlias = Literal["order", "any"]
"""Whether requests are to come in the order in which they were recorded, or in any order."""


class Playback(NamedTuple):
    """A recorded answer.

    Attributes:
        status: HTTP status.
        headers: Its headers.
        pieces: Its bytes, as they came.
        is_broken: Whether the connection is lost behind them.
    """

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[bytes]
    is_broken: bool


class Recording:
    """An answer on its way into a cassette.

    Args:
        tape: Is told when it has ended.
        sent: The request, as it is: masked when it is written.
    """

    def __init__(self, tape: Tape, sent: Sent) -> None:
        self._tape = tape
        self.sent: Sent = sent
        self.status: int = 0
        self.headers: Mapping[str, str] = {}
        self.sizes: list[int] = []
        self.ended: str | None = None
        self.has_ended: bool = False
        self._pieces: list[bytes] = []

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the answer has come."""
        self.status = status
        lower = {name.lower(): value for name, value in headers.items()}
        self.headers = {name: lower[name] for name in sorted(KEPT_HEADERS & lower.keys())}

    def take(self, piece: bytes) -> None:
        """A piece of its body has come."""
        if piece:
            self._pieces.append(piece)
            self.sizes.append(len(piece))

    def end(self, how: str | None = None) -> None:
        """It has ended; only the first time counts.

        Args:
            how: `broken` or `left`, where it isn't whole.
        """
        if not self.has_ended:
            self.has_ended = True
            self.ended = how
            self._tape.save()

    def exchange(self, secrets: Secrets) -> Exchange:
        """What is written of it."""
        kind = self.headers.get("content-type", "")
        response, chunks = keep_answer(b"".join(self._pieces), kind, self.sizes, secrets)
        headers = {name: secrets.mask_text(value) for name, value in self.headers.items()}
        sent = self._tape.masked(self.sent)
        return Exchange(sent, self.status, headers, response, chunks, self.ended)


class Tape:
    """The recordings of a cassette, and what has become of them; arguments as of `Cassette`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: CassetteMode = "replay",
        *,
        match: CassetteMatch = "order",
        ignore: Iterable[str] = (),
        redact: Callable[[str], str] | None = None,
        outputs: bool = True,
    ) -> None:
        if mode not in get_args(CassetteMode):
            raise ValueError(
                f"a cassette has no mode {mode!r}: {', '.join(get_args(CassetteMode))}"
            )
        if match not in get_args(CassetteMatch):
            raise ValueError(f"requests match in 'order' or in 'any' order, not {match!r}")
        self.path: Path = Path(path)
        self.mode: CassetteMode = mode
        self._match: CassetteMatch = match
        self._ignore: tuple[str, ...] = (ignore,) if isinstance(ignore, str) else tuple(ignore)
        self._secrets = Secrets(redact)
        self._keeps_outputs = outputs
        self._lock = threading.RLock()
        is_read = mode == "replay" or (mode == "record-new" and self.path.exists())
        self._recorded: list[Exchange] = read_exchanges(self.path) if is_read else []
        self._is_played = [False] * len(self._recorded)
        self._new: list[Recording] = []
        # Lines by the identity of their exchange, with the number of keys that were masked in them.
        self._lines: dict[int, tuple[int, str | None]] = {}
        self._asked = 0
        self._mismatch: CassetteMismatch | None = None
        self._refusal: str | None = None
        self._closers: list[Callable[[], None]] = []
        # Held here, what closes connections with their event loop lives as long as that does.
        self._async_closers: list[Callable[[], Awaitable[None]]] = []

    def __len__(self) -> int:
        """How many exchanges it holds."""
        return len(self._recorded) + len(self._new)

    @property
    def unused(self) -> tuple[int, ...]:
        """Which recordings nobody has asked for yet, counted from 1."""
        return tuple([i for i, played in enumerate(self._is_played, 1) if not played])

    def add_key(self, value: Any) -> None:
        """Take a text as a key, which is never written; for clients that send it in no request."""
        if isinstance(value, str):
            self._secrets.add(value)

    def masked(self, sent: Sent) -> Sent:
        """A request as it is written and compared: without secrets, and perhaps without what tools
        gave.
        """
        body = self._secrets.mask_body(sent.body)
        return Sent(
            sent.method,
            self._secrets.mask_text(sent.host),
            self._secrets.mask_url(sent.url),
            body if self._keeps_outputs else without_outputs(body),
        )

    # --- one request ------------------------------------------------------------------------------

    def begin(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Playback | Recording:
        """A request is about to be sent; for transports.

        Raises:
            CassetteMismatch: it isn't what was recorded.
        """
        with self._lock:
            self._asked += 1
            self._secrets.add_of_request(url, headers)
            raw = Sent(method.upper(), _host_of(url), url, _read_body(body, headers))
            self._secrets.add_of_body(raw.body)
            if self.mode == "record":
                return self._record(raw)
            sent = self.masked(raw)
            index = self._find(sent)
            if index is not None:
                self._is_played[index] = True
                return self._play(index)
            if self.mode == "record-new":
                self._drop_tail()
                return self._record(raw)
            self._mismatch = self._explain(sent)
            raise self._mismatch

    def _record(self, sent: Sent) -> Recording:
        recording = Recording(self, sent)
        self._new.append(recording)
        return recording

    def _find(self, sent: Sent) -> int | None:
        """Which recording answers a request."""
        waiting = [index for index, played in enumerate(self._is_played) if not played]
        if self._match == "order":
            waiting = waiting[:1] if not self._new else []
        for index in waiting:
            if self._difference(self._recorded[index].sent, sent) is None:
                return index
        return None

    def _difference(self, recorded: Sent, sent: Sent) -> tuple[str, CassetteMismatch | None] | None:
        """In which words a request differs from a recorded one."""
        options: dict[str, Any] = {"path": str(self.path), "request": self._asked}
        if recorded.method != sent.method:
            return f"{recorded.method} was recorded, {sent.method} is sent", None
        if recorded.url and recorded.url != sent.url:
            place, now = place_of(recorded.url), place_of(sent.url)
            if place != now:
                return f"{place} was recorded, {now} is sent", None
        found = first_difference(recorded.body, sent.body, self._ignore)
        if found is not None:
            # What is a key on this machine may have been a word on the one that recorded it.
            masked = self._secrets.keys_alone().mask_body(recorded.body)
            found = first_difference(masked, sent.body, self._ignore)
        if found is None:
            return None
        options |= {
            "pointer": found.pointer,
            "recorded": None if found.recorded is ABSENT else found.recorded,
            "sent": None if found.sent is ABSENT else found.sent,
        }
        text = f"request {self._asked} of {self.path}: {found}"
        return str(found), CassetteMismatch(text, **options)

    def _explain(self, sent: Sent) -> CassetteMismatch:
        waiting = [index for index, played in enumerate(self._is_played) if not played]
        about = f"request {self._asked} of {self.path}"
        options: dict[str, Any] = {"path": str(self.path), "request": self._asked}
        if not waiting:
            count = len(self._recorded)
            return CassetteMismatch(f"{about}: only {count} were recorded", **options)
        found = self._difference(self._recorded[waiting[0]].sent, sent)
        assert found is not None, "an equal one would have been played"
        text, mismatch = found
        if mismatch is None:
            mismatch = CassetteMismatch(f"{about}: {text}", **options)
        if self._match == "any" and len(waiting) > 1:
            mismatch.args = (f"{mismatch}; {len(waiting) - 1} more recordings differ, too",)
        return mismatch

    def _drop_tail(self) -> None:
        """Drop what was recorded from here on; in any order, nothing can be said to be behind."""
        if self._match == "order":
            kept = self._is_played.index(False) if False in self._is_played else len(self)
            del self._recorded[kept:], self._is_played[kept:]

    def _play(self, index: int) -> Playback:
        found = self._recorded[index]
        data = written_answer(found.response, _media_type(found))
        headers = dict(found.headers)
        if found.status >= 400 and self._is_repeated(index):
            # The SDK asked again then, and does now; there is nobody to spare by waiting.
            headers["retry-after-ms"] = "1"
        pieces = list(cut(data, found.chunks))
        # An SDK that asks again doesn't read the error first: its status and headers are whole.
        is_whole = found.ended is None or (found.ended == "left" and found.status >= 400)
        return Playback(found.status, headers, pieces, not is_whole)

    def _is_repeated(self, index: int) -> bool:
        following = self._recorded[index + 1 : index + 2]
        return bool(following) and following[0].sent == self._recorded[index].sent

    # --- the file ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Write what has been recorded up to now; for recordings."""
        with self._lock:
            new = [recording for recording in self._new if recording.has_ended]
            entries: list[Exchange | Recording] = [*self._recorded, *new]
            lines = [self._line_of(entry) for entry in entries]
            for number, line in enumerate(lines, 1):
                if line is None:
                    self._refusal = (
                        f"{self.path} wasn't written: exchange {number} still holds a key that is "
                        "in use; take it out with redact="
                    )
                    return
            write_lines(self.path, [line for line in lines if line is not None])

    def _line_of(self, entry: Exchange | Recording) -> str | None:
        """The line of an exchange; `None` where it would hold a key."""
        known = self._lines.get(id(entry))
        if known is None or known[0] != self._secrets.version:
            line = self._safe_line(self._written(entry))
            if line is None and isinstance(entry, Exchange):  # written where that wasn't a key
                line = self._safe_line(_masked_anew(entry, self._secrets.keys_alone()))
            known = self._lines[id(entry)] = (self._secrets.version, line)
        return known[1]

    def _written(self, entry: Exchange | Recording) -> Exchange:
        return entry.exchange(self._secrets) if isinstance(entry, Recording) else entry

    def _safe_line(self, exchange: Exchange) -> str | None:
        events = events_of(exchange.response) if exchange.chunks is not None else ()
        line = exchange.line()
        return None if self._secrets.found_in(line, events) else line

    def check(self) -> None:
        """Say what is wrong at the end.

        In mode `record-new`, recordings behind the last request are dropped as those behind one
        that differs are: they would be left over in every replay.

        Raises:
            CassetteError: recordings were left over, or the file wasn't written, since it would
                have held a key.
            CassetteMismatch: a request differed, and nobody has heard of it.
        """
        if self.mode == "record-new" and self.unused:
            with self._lock:
                self._drop_tail()
                self.save()
        if self._refusal is not None:
            raise CassetteError(self._refusal)
        if self._mismatch is not None:
            raise self._mismatch
        unused = self.unused
        if unused and self.mode == "replay":
            numbers = ", ".join(map(str, unused[:10])) + (", ..." if len(unused) > 10 else "")
            raise CassetteError(
                f"{len(unused)} of {len(self)} recordings of {self.path} were left over: {numbers}"
            )

    def close_connections(self) -> None:
        """Close the connections for recording."""
        closers, self._closers = self._closers, []
        for close in closers:
            close()

    async def aclose_connections(self) -> None:
        """Close the connections for recording, also those of the event loop that runs here."""
        self.close_connections()
        closers, self._async_closers = self._async_closers, []
        for close in closers:
            await close()

    def aclose_with(self, close: Callable[[], Awaitable[None]]) -> None:
        """The same as `close_with`, for what has to be awaited."""
        self._async_closers.append(close)

    def close_with(self, close: Callable[[], None]) -> None:
        """Have something closed with the cassette; for transports."""
        self._closers.append(close)


def _masked_anew(recorded: Exchange, secrets: Secrets) -> Exchange:
    """An exchange of the file, without what is a key by now."""
    sent, kind = recorded.sent, _media_type(recorded)
    data = written_answer(recorded.response, kind)
    response, chunks = keep_answer(data, kind, recorded.chunks or [len(data)], secrets)
    if recorded.chunks is None:
        chunks = None
    host, url = secrets.mask_text(sent.host), secrets.mask_url(sent.url)
    masked = Sent(sent.method, host, url, secrets.mask_body(sent.body))
    return replace(recorded, sent=masked, response=response, chunks=chunks)


def _media_type(recorded: Exchange) -> str:
    found = (value for name, value in recorded.headers.items() if name.lower() == "content-type")
    return next(found, "")


def _host_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _read_body(body: bytes, headers: Mapping[str, str]) -> Any:
    """The JSON of a body; a digest of anything else, as of a file that is uploaded."""
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {"sha256": hashlib.sha256(body).hexdigest()}
