"""The way of a request through httpx or httpx2, into a cassette or out of it.

Both libraries have the same classes under different names; which one an SDK uses is known by the
SDK, so the module is handed in.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.sdk_clients import OwnClients, close_httpx
from lutumpy.errors import CassetteError
from lutumpy.testing.cassettes.tape import Playback, Recording, Tape

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncCassetteTransport", "CassetteTransport"]

_NO_TIMEOUT = None
"""The timeouts of a request come with it, from the client that was asked for it."""


class CassetteTransport:
    """A transport for a sync client.

    Args:
        tape: Where recordings come from, and go.
        stack: The module `httpx`, or `httpx2`.
    """

    def __init__(self, tape: Tape, stack: Any) -> None:
        self._tape = tape
        self._stack = stack
        self._live: Any = None

    def handle_request(self, request: Any) -> Any:
        """Answer one request."""
        found = _begin(self._tape, request, request.read())
        if isinstance(found, Playback):
            return _response(self._stack, found, self._stack.SyncByteStream, {})
        if self._live is None:
            self._live = self._stack.Client(timeout=_NO_TIMEOUT)
            self._tape.close_with(self.close)
        _ask_plainly(request)
        live = self._live.send(request, stream=True)
        return _recorded(self._stack, live, found, self._stack.SyncByteStream)

    def close(self) -> None:
        """Close the connections that recording has opened."""
        live, self._live = self._live, None
        if live is not None:
            live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.close()


class AsyncCassetteTransport:
    """The same for an async client. Its connections are closed with their event loop."""

    def __init__(self, tape: Tape, stack: Any) -> None:
        self._tape = tape
        self._stack = stack
        self._live = OwnClients(partial(stack.AsyncClient, timeout=_NO_TIMEOUT), close_httpx)
        tape.aclose_with(self.aclose)

    async def handle_async_request(self, request: Any) -> Any:
        """Answer one request."""
        found = _begin(self._tape, request, await request.aread())
        if isinstance(found, Playback):
            return _response(self._stack, found, self._stack.AsyncByteStream, {})
        _ask_plainly(request)
        live = await (await self._live.current()).send(request, stream=True)
        return _recorded(self._stack, live, found, self._stack.AsyncByteStream)

    async def aclose(self) -> None:
        """Close the connections of this event loop that recording has opened."""
        await self._live.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.aclose()


def _begin(tape: Tape, request: Any, body: bytes) -> Playback | Recording:
    return tape.begin(request.method, str(request.url), request.headers, body)


def _ask_plainly(request: Any) -> None:
    """Ask for an answer that isn't compressed: what comes at once can be read at once."""
    request.headers["accept-encoding"] = "identity"


def _recorded(stack: Any, live: Any, recording: Recording, kind: Any) -> Any:
    """The answer that came, whose bytes are kept while they are read."""
    headers = [(k, v) for k, v in live.headers.multi_items() if k != "content-encoding"]
    recording.begin(live.status_code, live.headers)
    pieces = _Pieces(live.stream, recording, live.headers.get("content-encoding"))
    extensions = dict(live.extensions)
    return stack.Response(
        live.status_code, headers=headers, stream=_stream(kind, pieces), extensions=extensions
    )


def _response(stack: Any, played: Playback, kind: Any, extensions: dict[str, Any]) -> Any:
    """A recorded answer."""
    pieces = _PlayedPieces(played.pieces, stack.RemoteProtocolError if played.is_broken else None)
    return stack.Response(
        played.status,
        headers=dict(played.headers),
        stream=_stream(kind, pieces),
        extensions={"http_version": b"HTTP/1.1", **extensions},
    )


def _stream(kind: Any, pieces: Any) -> Any:
    """A stream of bytes, of the class that a library wants to see."""
    names = ("__iter__", "close", "__aiter__", "aclose")
    stream_class = type("CassetteStream", (kind,), {name: _delegate(name) for name in names})
    stream = stream_class()
    stream.pieces = pieces
    return stream


def _delegate(name: str) -> Any:
    def call(self: Any) -> Any:
        return getattr(self.pieces, name)()

    return call


class _PlayedPieces:
    """The pieces of a recorded answer."""

    def __init__(self, pieces: Sequence[bytes], error: Any) -> None:
        self._pieces = pieces
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._error is not None:
            raise self._error("the connection was lost here when it was recorded")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""


class _Pieces:
    """The pieces of an answer that is being recorded."""

    def __init__(self, inner: Any, recording: Recording, encoding: str | None) -> None:
        self._inner = inner
        self._recording = recording
        self._unpack = _unpacker(encoding)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for packed in self._inner:
                yield from self._take(packed)
        except GeneratorExit:
            raise
        except BaseException:
            self._recording.end("broken")
            raise
        self._recording.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for packed in self._inner:
                for piece in self._take(packed):
                    yield piece
        except GeneratorExit:
            raise
        except BaseException:
            self._recording.end("broken")
            raise
        self._recording.end()

    def _take(self, packed: bytes) -> Iterator[bytes]:
        piece = packed if self._unpack is None else self._unpack.decompress(packed)
        self._recording.take(piece)
        yield piece

    def close(self) -> None:
        """Nobody reads on."""
        self._recording.end("left")
        self._inner.close()

    async def aclose(self) -> None:
        """Nobody reads on."""
        self._recording.end("left")
        await self._inner.aclose()


def _unpacker(encoding: str | None) -> Any:
    """What unpacks an answer that is compressed all the same."""
    if encoding in (None, "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32)  # whichever of the two it is
    raise CassetteError(f"an answer in the encoding {encoding!r} can't be recorded")
