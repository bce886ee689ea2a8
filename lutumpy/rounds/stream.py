"""A turn that is answered piece by piece: the events while they arrive, the outcome at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic

from typing_extensions import Self, TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError, RoundClosedError
from lutumpy.rounds.events import Completed, Event, StreamEvent
from lutumpy.rounds.reader import Reader
from lutumpy.rounds.unfinished import UnfinishedRequest
from lutumpy.tools.calls import BaseToolCall

C = TypeVar("C", bound=BaseToolCall)
R = TypeVar("R")

_UNSET: Any = object()

Finish = Callable[[Reader[Any, Any], "str | None"], Any]
TO_OUTCOME: Finish = Reader.end
TO_RESULT: Finish = Reader.end_text
MakeReader = Callable[[StreamDecoder], Reader[Any, Any]]


class _Running(Generic[C, R]):
    """What both streams share."""

    __slots__ = (
        "_events",
        "_finish",
        "_make_reader",
        "_outcome",
        "_reader",
        "_unfinished",
        "_waiting",
    )

    def __init__(
        self, make_reader: MakeReader, finish: Finish, unfinished: UnfinishedRequest
    ) -> None:
        self._make_reader = make_reader
        self._finish = finish
        self._reader: Reader[Any, Any] | None = None
        self._events: deque[Event] = deque()
        # What the source gave together, and was not fed yet.
        self._waiting: Iterator[Any] = iter(())
        self._outcome: Any = _UNSET
        # Counts what the request cost; `None` once that is done.
        self._unfinished: UnfinishedRequest | None = unfinished

    @property
    def outcome(self) -> R:
        """What `collect()` would have returned; there when the stream was read to its end.

        Raises:
            RoundClosedError: it was not: nothing is committed then, and the session is as it was.
        """
        if self._outcome is _UNSET:
            raise RoundClosedError(
                "the stream was not read to its end: there is no outcome, and nothing was committed"
            )
        outcome: R = self._outcome
        return outcome

    @property
    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return self._reader.partial() if self._reader is not None else None

    def partial_input(self, call_id: str) -> Any:
        """The arguments of a call so far, parsed as far as they go; raises `KeyError` when no such call has begun."""
        if self._reader is None:
            raise KeyError(call_id)
        return self._reader.partial_input(call_id)

    def _count_failed(self, error: BaseException) -> None:
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            unfinished.failed(error)

    def _count_left(self, request_id: str | None) -> None:
        """Count an answer that was not read to its end; one that was is counted with what came of it."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None and self._reader is not None and not self._reader.ended:
            unfinished.left(self._reader.partial(), request_id)

    def _end(self, request_id: str | None) -> Completed:
        if self._reader is None:
            raise RoundClosedError("the stream is read inside its `with` block")
        turn, self._outcome = self._finish(self._reader, request_id)
        return Completed(turn)


class TurnStream(_Running[C, R]):
    """A streamed turn: enter it, iterate over its events, then take the `outcome`.

    Leaving the block early cancels the request and commits nothing. An error in the middle (`AdapterError`, with what had
    arrived in `.partial`) commits nothing either, and the session is as it was, but for what the request cost.
    """

    __slots__ = ("_chunks", "_source")

    def __init__(
        self,
        source: ChunkStream,
        make_reader: MakeReader,
        finish: Finish,
        unfinished: UnfinishedRequest,
    ) -> None:
        super().__init__(make_reader, finish, unfinished)
        self._source = source
        self._chunks: AsyncIterator[Any] | None = None

    async def __aenter__(self) -> Self:
        self._reader = self._make_reader(self._source.decoder)
        try:
            self._chunks = await self._source.__aenter__()
        except BaseException as error:
            self._count_failed(error)
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._chunks = None
        try:
            self._count_left(self._source.request_id)
        finally:
            await self._source.__aexit__(*exc)

    def __aiter__(self) -> AsyncIterator[StreamEvent[C]]:
        return self

    async def __anext__(self) -> StreamEvent[C]:
        try:
            while not self._events:
                if self._outcome is not _UNSET or self._chunks is None or self._reader is None:
                    raise StopAsyncIteration
                chunk = next(self._waiting, _UNSET)
                if chunk is not _UNSET:
                    self._events.extend(self._reader.feed(chunk))
                    continue
                try:
                    self._waiting = iter(await self._batch())
                except StopAsyncIteration:
                    return self._end(self._source.request_id)
            return self._events.popleft()
        except AdapterError as error:
            self._count_failed(error)
            raise

    async def collect(self) -> R:
        """Read the rest of the stream, with no event told, and give the `outcome`. Raises as reading the events does.

        Raises:
            RoundClosedError: the stream is not open.
        """
        try:
            if self._outcome is _UNSET:
                if self._chunks is None or self._reader is None:
                    raise RoundClosedError("the stream is read inside its `with` block")
                self._events.clear()
                while True:
                    self._reader.gather(self._waiting)
                    try:
                        self._waiting = iter(await self._batch())
                    except StopAsyncIteration:
                        break
                self._end(self._source.request_id)
        except AdapterError as error:
            self._count_failed(error)
            raise
        return self.outcome

    async def _batch(self) -> Iterable[Any]:
        """The next events of the source."""
        batch = getattr(self._chunks, "batch", None)
        if batch is not None:
            events: Iterable[Any] = await batch()
            return events
        assert self._chunks is not None
        return (await self._chunks.__anext__(),)


class TurnStreamSync(_Running[C, R]):
    """As `TurnStream`, with `with` and `for`."""

    __slots__ = ("_chunks", "_source")

    def __init__(
        self,
        source: ChunkStreamSync,
        make_reader: MakeReader,
        finish: Finish,
        unfinished: UnfinishedRequest,
    ) -> None:
        super().__init__(make_reader, finish, unfinished)
        self._source = source
        self._chunks: Iterator[Any] | None = None

    def __enter__(self) -> Self:
        self._reader = self._make_reader(self._source.decoder)
        try:
            self._chunks = self._source.__enter__()
        except BaseException as error:
            self._count_failed(error)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._chunks = None
        try:
            self._count_left(self._source.request_id)
        finally:
            self._source.__exit__(*exc)

    def __iter__(self) -> Iterator[StreamEvent[C]]:
        return self

    def __next__(self) -> StreamEvent[C]:
        try:
            while not self._events:
                if self._outcome is not _UNSET or self._chunks is None or self._reader is None:
                    raise StopIteration
                chunk = next(self._waiting, _UNSET)
                if chunk is not _UNSET:
                    self._events.extend(self._reader.feed(chunk))
                    continue
                try:
                    self._waiting = iter(self._batch())
                except StopIteration:
                    return self._end(self._source.request_id)
            return self._events.popleft()
        except AdapterError as error:
            self._count_failed(error)
            raise

    def collect(self) -> R:
        """Read the rest of the stream, with no event told, and give the `outcome`. Raises as reading the events does.

        Raises:
            RoundClosedError: the stream is not open.
        """
        try:
            if self._outcome is _UNSET:
                if self._chunks is None or self._reader is None:
                    raise RoundClosedError("the stream is read inside its `with` block")
                self._events.clear()
                while True:
                    self._reader.gather(self._waiting)
                    try:
                        self._waiting = iter(self._batch())
                    except StopIteration:
                        break
                self._end(self._source.request_id)
        except AdapterError as error:
            self._count_failed(error)
            raise
        return self.outcome

    def _batch(self) -> Iterable[Any]:
        """The next events of the source."""
        batch = getattr(self._chunks, "batch", None)
        if batch is not None:
            events: Iterable[Any] = batch()
            return events
        assert self._chunks is not None
        return (next(self._chunks),)
