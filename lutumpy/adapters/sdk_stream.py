"""An open event stream of an SDK client: its events as plain objects, its errors in our words, its
connection closed at once.

The events are read from the bytes of the SDK's response, many at a time. Where that isn't known to
be the same (a client of another kind, an observer), the SDK's own stream class gives them; asked
for plain objects it builds no models of them.
"""

# What is hard here
# -----------------
# A stream may end in several ways, and the connection must be given back in each of them:
#
#   | state   | `_source` | left by                                                        |
#   |---------|-----------|----------------------------------------------------------------|
#   | new     | None      | entering -> open; an error while connecting -> closed          |
#   | open    | set       | the provider's last event -> drained; leaving -> closed;       |
#   |         |           | the end of the bytes or an error in them is raised, still open |
#   | drained | None      | leaving -> closed                                              |
#   | closed  | None      | nothing: a new request needs a new stream                      |
#
# Draining: behind the provider's last event (`[DONE]`) the HTTP response still has an end of its
# own, some bytes that often come in a packet of their own. A response that is closed before them
# takes its connection with it, and the next request pays for another one. So they are read, but for
# a tenth of a second at most: some servers leave the connection open, and the answer is complete
# already. A blocking read can't be given up after a moment, so the sync twin doesn't drain.
#
# Tried and dropped: handing the SDK a stream class of our own (`stream_cls` of its `post`). It must
# derive from the SDK's `Stream`, and whether a host's events are server-sent ones is known by
# nothing but that class's private decoder.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from lutumpy.adapters.sdk_events import Splitter, event_splitter
from lutumpy.core.sdk_retries import note_retries_of
from lutumpy.core.streaming import StreamDecoder
from lutumpy.errors import AdapterError

__all__ = ["SdkStream", "SdkStreamSync", "event_object"]

_DRAIN_SECONDS = 0.1
_NONE: Any = object()

ErrorReader: TypeAlias = Callable[[Exception, bool], "AdapterError | None"]
"""Gives an exception in this library's words, and `None` for a bug, or something of the caller's.
It is told whether the exception came while events were read."""


class _OpenStream:
    """What the async and the sync stream share: the state of one request.

    Args:
        open_response: Sends the request, and gives the SDK's stream.
        decoder: What decodes the events; asked here only for what had arrived when an error came.
        read_error: Gives an exception in this library's words.
    """

    __slots__ = (
        "_entered",
        "_open",
        "_read_error",
        "_source",
        "_splitter",
        "_stream",
        "decoder",
        "request_id",
    )

    def __init__(
        self, open_response: Callable[[], Any], decoder: StreamDecoder, read_error: ErrorReader
    ) -> None:
        self.decoder: StreamDecoder = decoder
        self.request_id: str | None = None
        self._open = open_response
        self._read_error = read_error
        self._entered = False
        # The SDK's stream, and what its bytes or events come from.
        self._stream: Any = None
        self._source: Any = None
        # `None` when the SDK's stream has to give the events itself.
        self._splitter: Splitter | None = None

    @property
    def is_open(self) -> bool:
        """Whether there may be more events."""
        return self._source is not None

    def _enter_once(self) -> None:
        if self._entered:
            raise RuntimeError("this stream was opened before; a new request needs a new one")
        self._entered = True

    def _take_stream(self, stream: Any) -> None:
        self._stream = stream
        self.request_id = _request_id(stream)
        note_retries_of(stream)
        self._splitter = event_splitter(stream)

    def _raise_in_our_words(self, error: Exception, *, reading: bool) -> NoReturn:
        """Raise what the SDK raised as an `AdapterError` with what had arrived; everything else
        passes unchanged.
        """
        found = self._read_error(error, reading)
        if found is None:
            raise error
        found.partial = self.decoder.partial()
        found.request_id = found.request_id or self.request_id
        raise found from error


class SdkStream(_OpenStream):
    """A `ChunkStream` of an async client."""

    __slots__ = ()

    _open: Callable[[], Awaitable[Any]]

    async def __aenter__(self) -> AsyncIterator[Any]:
        """Send the request; the events can be read as they come.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is a sync one.
            RuntimeError: it was entered before.
        """
        self._enter_once()
        try:
            self._take_stream(await self._open())
            if self._splitter is not None:
                self._source = self._stream.response.aiter_bytes()
            else:
                # The SDK's `__aiter__` is a generator around `__anext__`, one more that would wait
                # for its collector.
                self._source = (
                    self._stream if hasattr(self._stream, "__anext__") else aiter(self._stream)
                )
        except Exception as error:
            await self.__aexit__()
            self._raise_in_our_words(error, reading=False)
        return _Events(self)

    async def __aexit__(self, *exc: object) -> None:
        """Close the response: whatever the provider has not sent yet is cancelled."""
        stream, source = self._stream, self._source
        self._stream = self._source = None
        if self._splitter is not None and source is not None:
            await source.aclose()
        close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
        if close is not None:
            closing = close()
            if closing is not None:
                await closing

    async def batch(self) -> Iterable[Any]:
        """The events that come next; `StopAsyncIteration` at the end, and when the stream is
        closed.
        """
        splitter, source = self._splitter, self._source
        if source is None:
            raise StopAsyncIteration
        try:
            if splitter is None:
                return (await anext(source),)
            if splitter.error is not None:
                raise splitter.error
            if splitter.ended:
                await self._drain(source)
                raise StopAsyncIteration
            return splitter.feed(await anext(source))
        except StopAsyncIteration:
            if splitter is not None and (rest := splitter.rest()):
                return rest
            raise
        except Exception as error:
            self._raise_in_our_words(error, reading=True)

    async def _drain(self, source: Any) -> None:
        """Read what comes after the last event, for a moment: only then can the connection be
        used again.
        """
        self._source = None

        async def read() -> None:
            async for _ in source:
                pass

        try:
            await asyncio.wait_for(read(), _DRAIN_SECONDS)
        except Exception:
            return  # the answer is whole; the response is closed on leaving
        finally:
            await source.aclose()


class _Events:
    """The events of an open stream; nothing when it is closed."""

    __slots__ = ("_owner", "_waiting")

    def __init__(self, owner: SdkStream) -> None:
        self._owner = owner
        self._waiting: Iterator[Any] = iter(())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while self._owner.is_open:
            if (event := next(self._waiting, _NONE)) is not _NONE:
                return event
            self._waiting = iter(await self._owner.batch())
        raise StopAsyncIteration

    async def batch(self) -> Iterable[Any]:
        """See `BatchedChunks`."""
        return await self._owner.batch()


class SdkStreamSync(_OpenStream):
    """A `ChunkStreamSync` of a sync client."""

    __slots__ = ()

    def __enter__(self) -> Iterator[Any]:
        """Send the request; the events can be read as they come. Raises as `SdkStream` does,
        without an event loop.
        """
        self._enter_once()
        try:
            self._take_stream(self._open())
            if self._splitter is not None:
                self._source = self._stream.response.iter_bytes()
            else:
                self._source = (
                    self._stream if hasattr(self._stream, "__next__") else iter(self._stream)
                )
        except Exception as error:
            self.__exit__()
            self._raise_in_our_words(error, reading=False)
        return _EventsSync(self)

    def __exit__(self, *exc: object) -> None:
        """Close the response: whatever the provider has not sent yet is cancelled."""
        stream = self._stream
        self._stream = self._source = None
        if (close := getattr(stream, "close", None)) is not None:
            close()

    def batch(self) -> Iterable[Any]:
        """The events that come next; `StopIteration` at the end, and when the stream is closed."""
        splitter, source = self._splitter, self._source
        if source is None:
            raise StopIteration
        try:
            if splitter is None:
                return (next(source),)
            if splitter.error is not None:
                raise splitter.error
            if splitter.ended:
                raise StopIteration
            return splitter.feed(next(source))
        except StopIteration:
            if splitter is not None and (rest := splitter.rest()):
                return rest
            raise
        except Exception as error:
            self._raise_in_our_words(error, reading=True)


class _EventsSync:
    __slots__ = ("_owner", "_waiting")

    def __init__(self, owner: SdkStreamSync) -> None:
        self._owner = owner
        self._waiting: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._owner.is_open:
            if (event := next(self._waiting, _NONE)) is not _NONE:
                return event
            self._waiting = iter(self._owner.batch())
        raise StopIteration

    def batch(self) -> Iterable[Any]:
        """See `BatchedChunksSync`."""
        return self._owner.batch()


def event_object(chunk: Any) -> dict[str, Any]:
    """A stream event as a dict: one already, or an object of an SDK; anything else is an empty one
    (rule C8).
    """
    if type(chunk) is dict:
        return chunk
    if isinstance(chunk, Mapping):
        return dict(chunk)
    dump = getattr(chunk, "model_dump", None)
    if dump is None or isinstance(chunk, type):
        return {}
    value = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return value if isinstance(value, dict) else {}


def _request_id(stream: Any) -> str | None:
    headers: Mapping[str, str] = getattr(getattr(stream, "response", None), "headers", None) or {}
    return headers.get("x-request-id") or headers.get("request-id")


if TYPE_CHECKING:
    from lutumpy.core.streaming import (
        BatchedChunks,
        BatchedChunksSync,
        ChunkStream,
        ChunkStreamSync,
    )

    _STREAMS: tuple[type[ChunkStream], type[ChunkStreamSync]] = (SdkStream, SdkStreamSync)
    _BATCHES: tuple[type[BatchedChunks], type[BatchedChunksSync]] = (_Events, _EventsSync)
