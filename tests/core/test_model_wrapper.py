"""`ModelWrapper`: exactly one end of each request is told, once, however the request ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest

from lutumpy import AdapterError, AssistantTurn, RoundClosedError, Session
from lutumpy.models import ModelRequest, ModelWrapper, RequestWatch, TextBlock


class Decoder:
    """Reads chunks that are texts; `bad` is an event that says the answer failed."""

    def __init__(self, *, short_ways: bool) -> None:
        self.got: list[str] = []
        if short_ways:
            self.feed_all = self._feed_all
            self.feed_arguments = lambda chunk: None

    def feed(self, chunk: Any) -> list[Any]:
        if chunk == "bad":
            raise AdapterError("failed", provider="x")
        self.got.append(chunk)
        return []

    def _feed_all(self, chunks: Iterable[Any]) -> None:
        for chunk in chunks:
            self.feed(chunk)

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        if "end" not in self.got:
            raise AdapterError("it broke off", provider="x", partial=self.partial())
        return AssistantTurn("x", (TextBlock("hi"),), b"{}", request_id=request_id)

    def partial(self) -> AssistantTurn | None:
        return AssistantTurn("x", (), b"{}", cut=True) if self.got else None


class Chunks:
    """The chunks of a stream, one by one or in batches; an exception among them is raised."""

    def __init__(self, chunks: list[Any], *, batches: bool) -> None:
        self.left = list(chunks)
        if batches:
            self.batch = self._batch

    def take(self) -> Any:
        chunk = self.left.pop(0)
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        return self.take()

    def _batch(self) -> list[Any]:
        return [next(self)]


class AsyncChunks(Chunks):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if not self.left:
            raise StopAsyncIteration
        return self.take()

    async def _batch(self) -> list[Any]:  # type: ignore[override]
        return [await self.__anext__()]


class Stream:
    """A stream whose opening may fail."""

    def __init__(self, chunks: list[Any], *, batches: bool) -> None:
        self.chunks, self.batches = chunks, batches
        self.decoder = Decoder(short_ways=batches)
        self.request_id: str | None = None

    def open(self, kind: type[Chunks]) -> Any:
        self.request_id = "req_1"
        if self.chunks and self.chunks[0] == "closed":
            raise AdapterError("refused", provider="x", sent=False)
        return kind(self.chunks, batches=self.batches)

    async def __aenter__(self) -> Any:
        return self.open(AsyncChunks)

    async def __aexit__(self, *exc: object) -> None: ...

    def __enter__(self) -> Any:
        return self.open(Chunks)

    def __exit__(self, *exc: object) -> None: ...


class Model:
    """A model that streams these chunks."""

    def __init__(self, chunks: list[Any], *, batches: bool) -> None:
        self.stream = Stream(chunks, batches=batches)

    def open_stream(self, *arguments: Any) -> Stream:
        return self.stream

    open_stream_sync = open_stream


class Log(RequestWatch):
    def __init__(self) -> None:
        self.said: list[str] = []

    def first_chunk(self) -> None:
        self.said.append("first")

    def answered(self, turn: AssistantTurn) -> None:
        self.said.append(f"answered {turn.request_id}")

    def failed(self, error: BaseException) -> None:
        self.said.append(f"failed {type(error).__name__}")

    def left(self, partial: AssistantTurn | None, request_id: str | None) -> None:
        self.said.append(f"left {partial is not None} {request_id}")


class Watched(ModelWrapper):
    def __init__(self, model: Any, *, watch: bool = True) -> None:
        super().__init__(model)
        self.log = Log()
        self._watches = watch

    def begin_sync(self, request: ModelRequest) -> RequestWatch | None:
        assert request.stream
        return self.log if self._watches else None


# The chunks; what is told, read by events and gathered.
CASES: list[tuple[list[Any], list[str]]] = [
    (["a", "end"], ["first", "answered req_1"]),
    (["a", "bad", "end"], ["first", "failed AdapterError"]),
    (["a"], ["first", "failed AdapterError"]),
    ([AdapterError("lost", provider="x")], ["failed AdapterError"]),
    (["a", AdapterError("lost", provider="x")], ["first", "failed AdapterError"]),
    (["closed"], ["failed AdapterError"]),
    (["a", KeyboardInterrupt()], ["first", "failed KeyboardInterrupt"]),
]


def session() -> Session:
    made = Session()
    made.push_user("hi")
    return made


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("gathers", [False, True])
async def test_one_end_is_told_once(batches: bool, gathers: bool) -> None:
    for chunks, expected in CASES:
        llm: Any = Watched(Model(chunks, batches=batches))
        try:
            async with session().text_turn(llm).stream() as stream:
                if gathers:
                    await stream.collect()
                async for _ in stream:
                    pass
        except (AdapterError, KeyboardInterrupt):
            pass
        assert llm.log.said == expected, chunks
        llm = Watched(Model(chunks, batches=batches))
        try:
            with session().text_turn(llm).stream_sync() as sync_stream:
                if gathers:
                    sync_stream.collect()
                for _ in sync_stream:
                    pass
        except (AdapterError, KeyboardInterrupt):
            pass
        assert llm.log.said == expected, chunks


async def test_a_stream_that_is_left_says_what_had_arrived() -> None:
    llm: Any = Watched(Model(["a", "end"], batches=False))
    with session().text_turn(llm).stream_sync() as stream:
        assert stream.partial is None
    assert llm.log.said == ["left False req_1"]
    llm = Watched(Model(["a", "b", AdapterError("lost", provider="x")], batches=True))
    with pytest.raises(ZeroDivisionError):
        async with session().text_turn(llm).stream():
            _ = 1 / 0
    assert llm.log.said == ["left False req_1"]


async def test_unwatched_streams_go_on_as_they_are() -> None:
    for batches in (False, True):
        llm: Any = Watched(Model(["a", "end"], batches=batches), watch=False)
        async with session().text_turn(llm).stream() as stream:
            assert (await stream.collect()).text == "hi"
        llm = Watched(Model(["a", "end"], batches=batches), watch=False)
        with session().text_turn(llm).stream_sync() as sync_stream:
            assert [type(event).__name__ for event in sync_stream] == ["Completed"]
        with pytest.raises(RoundClosedError):
            _ = session().text_turn(Watched(Model([], batches=batches))).stream().outcome  # type: ignore[arg-type]
        assert llm.log.said == []
