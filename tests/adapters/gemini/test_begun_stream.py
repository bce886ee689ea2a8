"""A stream of google-genai sends its request when it begins, and has the headers of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

from lutumpy.adapters.gemini.begun_stream import BegunStream, BegunStreamSync


def chunk(number: int) -> Any:
    headers = {"X-Goog-Request-Id": "r1", "Content-Type": "application/json"}
    return SimpleNamespace(number=number, sdk_http_response=SimpleNamespace(headers=headers))


class Source:
    """What the SDK gives: a generator that begins when it is read."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.is_sent = self.is_closed = False

    def sync(self) -> Iterator[Any]:
        self.is_sent = True
        try:
            yield from map(chunk, range(self.count))
        finally:
            self.is_closed = True

    async def stream(self) -> AsyncIterator[Any]:
        self.is_sent = True
        try:
            for number in range(self.count):
                yield chunk(number)
        finally:
            self.is_closed = True


class Bare:
    """An iterator that can't be closed."""

    def __init__(self) -> None:
        self._chunks = iter([chunk(0)])

    def __iter__(self) -> Bare:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __aiter__(self) -> Bare:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self._chunks)
        except StopIteration:
            raise StopAsyncIteration from None


HEADERS = {
    "x-goog-request-id": "r1",
    "x-request-id": "r1",
    "content-type": "application/json",
}


async def test_the_request_is_sent_when_the_stream_begins() -> None:
    for count in (0, 1, 3):
        source = Source(count)
        begun = await BegunStream.begin(source.stream())
        assert source.is_sent
        assert begun.response.headers == (HEADERS if count else {})
        assert [each.number async for each in begun] == list(range(count))
        await begun.aclose()
        assert source.is_closed


def test_the_request_is_sent_when_the_stream_begins_without_an_event_loop() -> None:
    for count in (0, 1, 3):
        source = Source(count)
        begun = BegunStreamSync.begin(source.sync())
        assert source.is_sent
        assert begun.response.headers == (HEADERS if count else {})
        assert [each.number for each in begun] == list(range(count))
        begun.close()
        assert source.is_closed


async def test_a_stream_that_was_left_is_closed() -> None:
    source = Source(3)
    begun = await BegunStream.begin(source.stream())
    await begun.aclose()
    assert source.is_closed
    again = Source(3)
    BegunStreamSync.begin(again.sync()).close()
    assert again.is_closed


async def test_what_can_not_be_closed_is_left_alone() -> None:
    begun = await BegunStream.begin(Bare())
    await begun.aclose()
    assert [each.number async for each in begun] == [0]
    sync = BegunStreamSync.begin(Bare())
    sync.close()
    assert [each.number for each in sync] == [0]
