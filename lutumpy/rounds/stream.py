"""A turn that is answered piece by piece: the events while they arrive, the outcome at the end."""

#   made --enter--> open --the last event--> ended: `outcome` is there
#    |                |
#    |                +--leave the block---> left: the request is cancelled, nothing is committed
#    |                +--AdapterError------> failed: nothing is committed
#    +--enter raises-----------------------> failed
#
# It is entered once: what it reads with holds the answer, and another request would be counted by
# nobody.
#
# In each of these ends the cost of the request is counted once: by the outcome, or by
# `UnfinishedRequest`. The async and the sync stream share everything but the waiting:
# `_RunningStream` holds the events and what waits to be fed, and each twin fetches the next batch
# in its own way.

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

__all__ = ["TurnStream", "TurnStreamSync"]

C = TypeVar("C", bound=BaseToolCall)
R = TypeVar("R")

_UNSET: Any = object()
_NOT_OPEN = "the stream is read inside its `with` block"
_ENTERED = "the stream was entered before and is one request; make another one with `stream()`"

FinishReading = Callable[[Reader[Any, Any], "str | None"], tuple[AssistantTurn, Any]]
MakeReader = Callable[[StreamDecoder], Reader[Any, Any]]


class _RunningStream(Generic[C, R]):
    """What both streams share.

    Args:
        make_reader: Makes the reader, when the stream is entered.
        finish: Takes the outcome from the reader, when the stream has ended.
        unfinished: Counts what the request cost, if the stream doesn't end well.
    """

    __slots__ = (
        "_chunks",
        "_events",
        "_finish",
        "_make_reader",
        "_outcome",
        "_reader",
        "_unfinished",
        "_waiting",
    )

    def __init__(
        self, make_reader: MakeReader, finish: FinishReading, unfinished: UnfinishedRequest
    ) -> None:
        self._make_reader = make_reader
        self._finish = finish
        # The chunks of the source; `None` outside the block.
        self._chunks: Any = None
        self._reader: Reader[Any, Any] | None = None
        # Events that were read, and are not returned yet.
        self._events: deque[Event] = deque()
        # Chunks of the source that came together, and are not fed yet.
        self._waiting: Iterator[Any] = iter(())
        self._outcome: Any = _UNSET
        # `None` once the cost is counted.
        self._unfinished: UnfinishedRequest | None = unfinished

    def __repr__(self) -> str:
        if self._reader is None:
            state = "not entered"
        elif self._outcome is _UNSET:
            state = "open" if self._unfinished is not None else "left early"
        else:
            state = "read to its end"
        return f"<{type(self).__name__} {state}>"

    @property
    def outcome(self) -> R:
        """What `collect()` would have returned; there when the stream was read to its end.

        Raises:
            RoundClosedError: the stream was not read to its end. Nothing is committed then, and the
                session is as it was.
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
        """The arguments of a call so far, parsed as far as they go.

        Raises:
            KeyError: no call with this id has begun.
        """
        if self._reader is None:
            raise KeyError(call_id)
        return self._reader.partial_input(call_id)

    def _feed_waiting(self, reader: Reader[Any, Any]) -> bool:
        """Feed waiting chunks until there is an event; `False` if none is left to be fed."""
        for chunk in self._waiting:
            self._events.extend(reader.feed(chunk))
            if self._events:
                return True
        return False

    def _end(self, request_id: str | None) -> Completed:
        turn, self._outcome = self._finish(self._open_reader(), request_id)
        return Completed(turn)

    def _open_reader(self) -> Reader[Any, Any]:
        if self._reader is None or self._chunks is None:
            raise RoundClosedError(_NOT_OPEN)
        return self._reader

    def _count_failed(self, error: BaseException) -> None:
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            unfinished.count_failed(error)

    def _count_left(self, request_id: str | None) -> None:
        """Count an answer that was not read to its end; one that was is counted by its outcome."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None and self._reader is not None and not self._reader.ended:
            unfinished.count_left(self._reader.partial(), request_id)


class TurnStream(_RunningStream[C, R]):
    """A streamed turn: enter it, iterate over its events, then take the `outcome`. It is entered
    once; to enter it again raises `RoundClosedError`, and sends nothing.

    If the block is left early, the request is cancelled and nothing is committed. An error in the
    middle (`AdapterError`, with what had arrived in `.partial`) commits nothing either. The session
    is as it was then, apart from what the request cost.
    """

    __slots__ = ("_source",)

    def __init__(
        self,
        source: ChunkStream,
        make_reader: MakeReader,
        finish: FinishReading,
        unfinished: UnfinishedRequest,
    ) -> None:
        super().__init__(make_reader, finish, unfinished)
        self._source = source

    async def __aenter__(self) -> Self:
        if self._reader is not None:
            raise RoundClosedError(_ENTERED)
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
                if self._outcome is not _UNSET:
                    raise StopAsyncIteration
                # As `_open_reader`, without entering it for each event.
                if self._reader is None or self._chunks is None:
                    raise RoundClosedError(_NOT_OPEN)
                if self._feed_waiting(self._reader):
                    break
                try:
                    self._waiting = iter(await self._fetch_batch())
                except StopAsyncIteration:
                    return self._end(self._source.request_id)
            return self._events.popleft()
        except AdapterError as error:
            self._count_failed(error)
            raise

    async def collect(self) -> R:
        """Read the rest of the stream without giving events, and give the `outcome`.

        Raises:
            RoundClosedError: the stream is not open.
            AdapterError: as reading the events raises it.
        """
        try:
            if self._outcome is _UNSET:
                reader = self._open_reader()
                self._events.clear()
                while True:
                    reader.gather(self._waiting)
                    try:
                        self._waiting = iter(await self._fetch_batch())
                    except StopAsyncIteration:
                        break
                self._end(self._source.request_id)
        except AdapterError as error:
            self._count_failed(error)
            raise
        return self.outcome

    async def _fetch_batch(self) -> Iterable[Any]:
        """The next chunks of the source: as many as it has, if it can say so."""
        batch = getattr(self._chunks, "batch", None)
        if batch is not None:
            chunks: Iterable[Any] = await batch()
            return chunks
        return (await self._chunks.__anext__(),)


class TurnStreamSync(_RunningStream[C, R]):
    """As `TurnStream`, with `with` and `for`."""

    __slots__ = ("_source",)

    def __init__(
        self,
        source: ChunkStreamSync,
        make_reader: MakeReader,
        finish: FinishReading,
        unfinished: UnfinishedRequest,
    ) -> None:
        super().__init__(make_reader, finish, unfinished)
        self._source = source

    def __enter__(self) -> Self:
        if self._reader is not None:
            raise RoundClosedError(_ENTERED)
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
                if self._outcome is not _UNSET:
                    raise StopIteration
                # As `_open_reader`, without entering it for each event.
                if self._reader is None or self._chunks is None:
                    raise RoundClosedError(_NOT_OPEN)
                if self._feed_waiting(self._reader):
                    break
                try:
                    self._waiting = iter(self._fetch_batch())
                except StopIteration:
                    return self._end(self._source.request_id)
            return self._events.popleft()
        except AdapterError as error:
            self._count_failed(error)
            raise

    def collect(self) -> R:
        """Read the rest of the stream without giving events, and give the `outcome`.

        Raises:
            RoundClosedError: the stream is not open.
            AdapterError: as reading the events raises it.
        """
        try:
            if self._outcome is _UNSET:
                reader = self._open_reader()
                self._events.clear()
                while True:
                    reader.gather(self._waiting)
                    try:
                        self._waiting = iter(self._fetch_batch())
                    except StopIteration:
                        break
                self._end(self._source.request_id)
        except AdapterError as error:
            self._count_failed(error)
            raise
        return self.outcome

    def _fetch_batch(self) -> Iterable[Any]:
        """The next chunks of the source: as many as it has, if it can say so."""
        batch = getattr(self._chunks, "batch", None)
        if batch is not None:
            chunks: Iterable[Any] = batch()
            return chunks
        return (next(self._chunks),)
