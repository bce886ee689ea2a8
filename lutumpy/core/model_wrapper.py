"""A model that asks another one, and is told how each request goes: for traces, budgets, logs."""

# One request has one of three ends, and its watch is told of exactly one, once:
#
#   begin --> sending --> first_chunk (of a stream) --> answered(turn)
#                 |             |
#                 |             +--the stream is left early--> left(partial)
#                 +-------------+--an error, a cancellation--> failed(error)
#
# Without a watch (`begin` gave `None`) the other model is asked as if there were no wrapper.

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import Model, StructuredMode, TurnOptions, check_model
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, Delta, StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript

__all__ = ["ModelRequest", "ModelWrapper", "RequestWatch"]

W = TypeVar("W", bound="ModelWrapper")

_NOTHING: AbstractContextManager[None] = nullcontext()

# Wrappers hold the model that they wrap as `model`; at most so many are looked into.
_DEEPEST_WRAPPING = 10


class ModelRequest(NamedTuple):
    """One request, before it is sent.

    Attributes:
        model: The model that is asked.
        transcript: What it is to answer.
        offering: The tools that go with it; `None` for none.
        options: Options of the request.
        stream: Whether the answer is streamed.
    """

    model: Model
    transcript: Transcript
    offering: ToolOffering | None
    options: TurnOptions
    stream: bool


class RequestWatch:
    """Is told how one request goes. Derive from it; the methods do nothing here.

    Exactly one of `answered`, `failed` and `left` is called, once.
    """

    __slots__ = ()

    def sending(self) -> AbstractContextManager[Any]:
        """What is entered while the request is sent; for a stream, until it is open."""
        return _NOTHING

    def first_chunk(self) -> None:
        """The first piece of a streamed answer has arrived."""

    def answered(self, turn: AssistantTurn) -> None:
        """The whole answer is there."""

    def failed(self, error: BaseException) -> None:
        """The request ended in an error, which also is a cancellation or an interrupt."""

    def left(self, partial: AssistantTurn | None, request_id: str | None) -> None:
        """The stream was left early.

        Args:
            partial: What had arrived; `None` when nothing had.
            request_id: The provider's id of the request, where known.
        """


class ModelWrapper:
    """A model that passes every request on to another one. Derive from it to watch or refuse them.

    `begin` is called before each request. What it raises reaches the caller, and nothing is sent.
    The wrapper is used like the model; what else the model has, such as `host`, can be asked of the
    wrapper too.

    Args:
        model: An adapter, or any other model, also another wrapper.

    Attributes:
        model: As given.
    """

    def __init__(self, model: Model) -> None:
        check_model(model)
        self.model: Model = model

    @classmethod
    def around(cls: type[W], model: Any) -> Iterator[W]:
        """The wrappers of this class around a model, from the outside in, also within others."""
        for _ in range(_DEEPEST_WRAPPING):
            if isinstance(model, cls):
                yield model
            model = getattr(model, "model", None)

    async def begin(self, request: ModelRequest) -> RequestWatch | None:
        """What is told of a request that is about to be sent; `None` if nothing is.

        Calls `begin_sync`, unless it is overridden.
        """
        return self.begin_sync(request)

    def begin_sync(self, request: ModelRequest) -> RequestWatch | None:
        """The same without an event loop."""
        return None

    @property
    def structured(self) -> StructuredMode:
        """How a structured turn asks the model for its value."""
        mode: StructuredMode = getattr(self.model, "structured", "native")
        return mode

    @property
    def defers_tools(self) -> bool:
        """Whether the model's API keeps tools out of the prompt until a search has found them."""
        return bool(getattr(self.model, "defers_tools", False))

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether the model can be forced to call a tool."""
        ask = getattr(self.model, "takes_forced_choice", None)
        return ask is None or bool(ask(extra))

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request and its answer. Raises what `begin` and the model raise."""
        model = self.model
        watch = await self.begin(ModelRequest(model, transcript, offering, options, False))
        if watch is None:
            return await model.respond(transcript, offering, options)
        try:
            with watch.sending():
                turn = await model.respond(transcript, offering, options)
        except BaseException as error:
            watch.failed(error)
            raise
        watch.answered(turn)
        return turn

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        model = self.model
        watch = self.begin_sync(ModelRequest(model, transcript, offering, options, False))
        if watch is None:
            return model.respond_sync(transcript, offering, options)
        try:
            with watch.sending():
                turn = model.respond_sync(transcript, offering, options)
        except BaseException as error:
            watch.failed(error)
            raise
        watch.answered(turn)
        return turn

    if TYPE_CHECKING:

        def open_stream(
            self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
        ) -> ChunkStream:
            """One streamed request; `begin` is called when it is entered."""
            ...

        def open_stream_sync(
            self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
        ) -> ChunkStreamSync:
            """The same without an event loop."""
            ...

    else:
        # Whether a model can stream is asked by `hasattr`, so a wrapper has these two only where
        # the model has them.
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name == "model":
                raise AttributeError(name)
            found = getattr(self.model, name)
            if name == "open_stream":
                return self._open_stream
            if name == "open_stream_sync":
                return self._open_stream_sync
            return found

    def _open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStream:
        model: Any = self.model
        stream = model.open_stream(transcript, offering, options)
        return _WatchedStream(
            stream, self.begin, ModelRequest(model, transcript, offering, options, True)
        )

    def _open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        model: Any = self.model
        stream = model.open_stream_sync(transcript, offering, options)
        return _WatchedStreamSync(
            stream, self.begin_sync, ModelRequest(model, transcript, offering, options, True)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


class _Progress:
    """How far a stream is, and whom to tell of it; shared by its decoder and its chunks."""

    __slots__ = ("_has_begun", "_watch")

    def __init__(self) -> None:
        # `None` before the stream is entered, and once its end was told.
        self._watch: RequestWatch | None = None
        self._has_begun = False

    def begin(self, watch: RequestWatch | None) -> None:
        self._watch = watch

    def note_chunk(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            if self._watch is not None:
                self._watch.first_chunk()

    def _take(self) -> RequestWatch | None:
        watch, self._watch = self._watch, None
        return watch

    def answer(self, turn: AssistantTurn) -> None:
        if (watch := self._take()) is not None:
            watch.answered(turn)

    def fail(self, error: BaseException) -> None:
        if (watch := self._take()) is not None:
            watch.failed(error)

    def leave(self, decoder: StreamDecoder, request_id: str | None) -> None:
        if (watch := self._take()) is not None:
            watch.left(decoder.partial(), request_id)


class _WatchedDecoder:
    """A decoder that tells how the answer ends. All else is the other decoder's."""

    __slots__ = ("_decoder", "_progress", "feed_all", "feed_arguments")

    def __init__(self, decoder: StreamDecoder, progress: _Progress) -> None:
        self._decoder = decoder
        self._progress = progress
        # Not every decoder has the short ways.
        feed_arguments = getattr(decoder, "feed_arguments", None)
        if feed_arguments is not None:
            self.feed_arguments: Callable[[Any], tuple[int, str] | None] = feed_arguments
        feed_all = getattr(decoder, "feed_all", None)
        if feed_all is not None:

            def feed_all_watched(chunks: Iterable[Any]) -> None:
                try:
                    feed_all(chunks)
                except BaseException as error:
                    progress.fail(error)
                    raise

            self.feed_all: Callable[[Iterable[Any]], None] = feed_all_watched

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event. Raises as the decoder does."""
        try:
            return self._decoder.feed(chunk)
        except BaseException as error:
            self._progress.fail(error)
            raise

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer. Raises as the decoder does."""
        try:
            turn = self._decoder.finish(request_id)
        except BaseException as error:
            self._progress.fail(error)
            raise
        self._progress.answer(turn)
        return turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, as the decoder has it."""
        return self._decoder.partial()


class _WatchedStream:
    """A `ChunkStream` that tells how its request goes."""

    __slots__ = ("_begin", "_progress", "_request", "_stream", "decoder", "request_id")

    def __init__(self, stream: ChunkStream, begin: Callable[..., Any], request: Any) -> None:
        self._stream = stream
        self._begin = begin
        self._request = request
        self._progress = _Progress()
        self.decoder: StreamDecoder = _WatchedDecoder(stream.decoder, self._progress)
        self.request_id: str | None = None

    async def __aenter__(self) -> AsyncIterator[Any]:
        watch = await self._begin(self._request)
        if watch is None:
            chunks = await self._stream.__aenter__()
            self.request_id = self._stream.request_id
            return chunks
        self._progress.begin(watch)
        try:
            with watch.sending():
                chunks = await self._stream.__aenter__()
        except BaseException as error:
            self._progress.fail(error)
            raise
        self.request_id = self._stream.request_id
        return _WatchedChunks(chunks, self._progress)

    async def __aexit__(self, *exc: object) -> None:
        self._progress.leave(self.decoder, self.request_id)
        await self._stream.__aexit__(*exc)


class _WatchedChunks:
    __slots__ = ("_fetch", "_progress", "batch")

    def __init__(self, chunks: AsyncIterator[Any], progress: _Progress) -> None:
        self._fetch = chunks.__anext__
        self._progress = progress
        batch = getattr(chunks, "batch", None)
        if batch is not None:
            self.batch: Callable[[], Any] = partial(_fetch_watched, batch, progress)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await _fetch_watched(self._fetch, self._progress)


async def _fetch_watched(fetch: Callable[[], Any], progress: _Progress) -> Any:
    try:
        fetched = await fetch()
    except StopAsyncIteration:
        raise
    except BaseException as error:
        progress.fail(error)
        raise
    progress.note_chunk()
    return fetched


class _WatchedStreamSync:
    """The same without an event loop."""

    __slots__ = ("_begin", "_progress", "_request", "_stream", "decoder", "request_id")

    def __init__(self, stream: ChunkStreamSync, begin: Callable[..., Any], request: Any) -> None:
        self._stream = stream
        self._begin = begin
        self._request = request
        self._progress = _Progress()
        self.decoder: StreamDecoder = _WatchedDecoder(stream.decoder, self._progress)
        self.request_id: str | None = None

    def __enter__(self) -> Iterator[Any]:
        watch = self._begin(self._request)
        if watch is None:
            chunks = self._stream.__enter__()
            self.request_id = self._stream.request_id
            return chunks
        self._progress.begin(watch)
        try:
            with watch.sending():
                chunks = self._stream.__enter__()
        except BaseException as error:
            self._progress.fail(error)
            raise
        self.request_id = self._stream.request_id
        return _WatchedChunksSync(chunks, self._progress)

    def __exit__(self, *exc: object) -> None:
        self._progress.leave(self.decoder, self.request_id)
        self._stream.__exit__(*exc)


class _WatchedChunksSync:
    __slots__ = ("_fetch", "_progress", "batch")

    def __init__(self, chunks: Iterator[Any], progress: _Progress) -> None:
        self._fetch = chunks.__next__
        self._progress = progress
        batch = getattr(chunks, "batch", None)
        if batch is not None:
            self.batch: Callable[[], Any] = partial(_fetch_watched_sync, batch, progress)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return _fetch_watched_sync(self._fetch, self._progress)


def _fetch_watched_sync(fetch: Callable[[], Any], progress: _Progress) -> Any:
    try:
        fetched = fetch()
    except StopIteration:
        raise
    except BaseException as error:
        progress.fail(error)
        raise
    progress.note_chunk()
    return fetched
