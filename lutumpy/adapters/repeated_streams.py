"""Streams that are opened a second time, where opening them fails and another request may not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError

__all__ = ["RepeatedStream", "RepeatedStreamSync"]


class RepeatedStream:
    """A `ChunkStream` that is opened once more, if opening it fails for a reason that another
    request doesn't have.

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
