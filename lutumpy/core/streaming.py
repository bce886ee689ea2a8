"""What a stream reports while it runs, and what decodes it: one decoder for each API, fed with
events, no I/O.

A decoder builds the answer that the API would have sent in one piece and gives it to the decoder of
whole answers, so a stream ends in what `collect()` returns for the same answer (rule S1). In
between it reports what arrives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.plain.values import dataclass


@dataclass(frozen=True, slots=True)
class Started:
    """The answer began.

    Attributes:
        model: The model's name as answered, where the first event says it.
        response_id: The provider's id of the answer, where the first event says it.
    """

    model: str | None = None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; together they are `TurnResult.text`."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the readable reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of the model's refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a call's arguments; the first one of a call may be empty.

    Attributes:
        index: Which call of the answer, counted from 0 in the order of `AssistantTurn.calls`.
        id: The call id as the provider gave it; empty when it gave none.
        name: The tool's name as far as it is known.
        arguments: The piece.
        kind: The kind of the call, as in `CallBlock`.
    """

    index: int
    id: str
    name: str
    arguments: str
    kind: str = "function"


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call is complete: nothing that still arrives can change it or cut it off (rule C2a).

    Attributes:
        index: Which call, as in `CallDelta`.
        call: The call that the finished turn will have at this index.
    """

    index: int
    call: CallBlock


Delta: TypeAlias = "Started | TextDelta | ReasoningDelta | RefusalDelta | CallDelta | CallDone"
"""What `StreamDecoder.feed` reports."""


class StreamDecoder(Protocol):
    """Decodes the events of one streamed answer. The work is linear in what arrives (rule S3).

    After `finish`, or an error of `feed`, the decoder is used up.
    """

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: an object of the SDK, or a dict.

        Unknown events are ignored (rule C8).

        Raises:
            AdapterError: the event says that the answer failed; `.partial` is what had arrived.
        """
        ...

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, when the stream has ended.

        Raises:
            AdapterError: it ended before its last event; `.partial` is what had arrived.
        """
        ...

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut off; `None` if nothing has. Never raises."""
        ...


class ArgumentsDecoder(StreamDecoder, Protocol):
    """A decoder with shortcuts for the events that most of a long call consists of."""

    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take the next event, if it is nothing but a piece of the arguments of a call that began
        before.

        Never raises. What is taken counts as fed.

        Returns:
            The index of the call and the piece, which `feed` would have reported as one
            `CallDelta`. `None` for every
            other event: nothing was taken then, and the event must be fed.
        """
        ...

    def feed_all(self, chunks: Iterable[Any]) -> None:
        """Feed all `chunks` without reporting anything. Raises what `feed` raises."""
        ...


class BatchedChunks(Protocol):
    """An optional method of a `ChunkStream`'s iterator, if the network delivers many events at a
    time.
    """

    async def batch(self) -> Iterable[Any]:
        """The next events, to be read before the next call.

        Raises `StopAsyncIteration` at the end.
        """
        ...


class BatchedChunksSync(Protocol):
    """The same without an event loop."""

    def batch(self) -> Iterable[Any]:
        """The next events, to be read before the next call. Raises `StopIteration` at the end."""
        ...


class ChunkStream(Protocol):
    """An open stream of a request: entered once, iterated once; leaving it early cancels the
    request.
    """

    decoder: StreamDecoder
    request_id: str | None

    async def __aenter__(self) -> AsyncIterator[Any]: ...

    async def __aexit__(self, *exc: object) -> None: ...


class ChunkStreamSync(Protocol):
    """The same without an event loop."""

    decoder: StreamDecoder
    request_id: str | None

    def __enter__(self) -> Iterator[Any]: ...

    def __exit__(self, *exc: object) -> None: ...
