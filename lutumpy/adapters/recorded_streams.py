"""Streams whose answer gets the record of its request, and which may be opened a second time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, Delta, StreamDecoder
from lutumpy.errors import AdapterError

__all__ = ["RecordingDecoder", "RepeatedStream", "RepeatedStreamSync"]


class RecordingDecoder:
    """A decoder whose turn gets the record of its request. All else is the other decoder's.

    Args:
        decoder: Decodes the stream.
        record: Of the request that the stream answers.

    Attributes:
        record: As given; another one where the request was repeated.
    """

    __slots__ = ("_decoder", "_feed", "feed_all", "feed_arguments", "record")

    def __init__(self, decoder: StreamDecoder, record: RequestRecord) -> None:
        self._decoder = decoder
        self._feed = decoder.feed
        self.record: RequestRecord = record
        # Not every decoder has the short ways, which stand for most of the events.
        for name in ("feed_arguments", "feed_all"):
            method = getattr(decoder, name, None)
            if method is not None:
                setattr(self, name, method)

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event. Raises as the decoder does."""
        return self._feed(chunk)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, as the decoder has it."""
        return self._decoder.partial()

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, with its record. Raises as the decoder does."""
        return self.record.stamp(self._decoder.finish(request_id))


class RepeatedStream:
    """A `ChunkStream` that is opened once more, if opening it fails for a reason that another
    request hasn't.

    Args:
        stream: What is opened first.
        again: Gives what is opened after an error; `None` if the error is to be raised.
    """

    __slots__ = ("_again", "_stream", "decoder", "request_id")

    def __init__(
        self, stream: ChunkStream, again: Callable[[AdapterError], ChunkStream | None]
    ) -> None:
        self._stream = stream
        self._again = again
        # The reader of the stream has it before the stream is opened, so it stays the same one.
        self.decoder: StreamDecoder = stream.decoder
        self.request_id: str | None = None

    async def __aenter__(self) -> AsyncIterator[Any]:
        try:
            chunks = await self._stream.__aenter__()
        except AdapterError as error:
            again = self._again(error)
            if again is None:
                raise
            self._stream = again
            chunks = await again.__aenter__()
        self.request_id = self._stream.request_id
        return chunks

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.__aexit__(*exc)


class RepeatedStreamSync:
    """The same for a `ChunkStreamSync`."""

    __slots__ = ("_again", "_stream", "decoder", "request_id")

    def __init__(
        self, stream: ChunkStreamSync, again: Callable[[AdapterError], ChunkStreamSync | None]
    ) -> None:
        self._stream = stream
        self._again = again
        # The reader of the stream has it before the stream is opened, so it stays the same one.
        self.decoder: StreamDecoder = stream.decoder
        self.request_id: str | None = None

    def __enter__(self) -> Iterator[Any]:
        try:
            chunks = self._stream.__enter__()
        except AdapterError as error:
            again = self._again(error)
            if again is None:
                raise
            self._stream = again
            chunks = again.__enter__()
        self.request_id = self._stream.request_id
        return chunks

    def __exit__(self, *exc: object) -> None:
        self._stream.__exit__(*exc)
