"""Streams of a client that gives no server-sent bytes: its own objects are the events."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync

EVENTS = [{"choices": []}, {"choices": [], "usage": None}]


class Plain:
    """An iterator of events, async and sync, that can be closed."""

    def __init__(self) -> None:
        self.left = iter(EVENTS)
        self.closed = False

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self.left)

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self.left)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self) -> None:
        self.closed = True


def told(error: Exception, reading: bool) -> None:
    return None


async def test_the_events_of_a_plain_async_stream_are_given_as_they_are_and_it_is_closed() -> None:
    plain = Plain()

    async def opened() -> Any:
        return plain

    stream = SdkStream(opened, OpenAIChat.stream_decoder(), told)
    async with stream as events:
        assert [event async for event in events] == EVENTS
    assert plain.closed
    assert not stream.is_open
    with pytest.raises(StopAsyncIteration):
        await stream.batch()


def test_the_events_of_a_plain_stream_are_given_as_they_are_and_it_is_closed() -> None:
    plain = Plain()
    stream = SdkStreamSync(lambda: plain, OpenAIChat.stream_decoder(), told)
    with stream as events:
        assert list(events) == EVENTS
    assert plain.closed
    assert not stream.is_open
    with pytest.raises(StopIteration):
        stream.batch()
