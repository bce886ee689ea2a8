"""The reader of streams knows the short ways of the decoders by their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from toolkit import Files

from lutumpy import NeedsTools, Session
from lutumpy.adapters.openai.chat.stream import ChatStreamDecoder
from lutumpy.adapters.openai.responses.stream import ResponsesStreamDecoder
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, render_stream


def counting(base: type[Any]) -> Any:
    """A decoder that counts what it took the short ways."""

    class Counting(base):  # type: ignore[misc]
        arguments = streams = 0

        def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
            found: tuple[int, str] | None = super().feed_arguments(chunk)
            self.arguments += found is not None
            return found

        def feed_all(self, chunks: Iterable[Any]) -> None:
            self.streams += 1
            super().feed_all(chunks)

    return Counting()


DECODERS: dict[Api, type[Any]] = {
    "openai_chat": ChatStreamDecoder,
    "openai_responses": ResponsesStreamDecoder,
}


@pytest.mark.parametrize("api", DECODERS)
def test_the_reader_takes_deltas_of_arguments_and_whole_streams_the_short_way(api: Api) -> None:
    reply = Reply(calls=[Call("write", {"text": "x" * 400}, id="call_a")])
    events = list(render_stream(reply, api, number=1, model="m"))
    session = Session()
    session.push_user("go")
    told, collected = counting(DECODERS[api]), counting(DECODERS[api])
    reader = Files.offer().reader(told, session)
    for event in events:
        reader.feed(event)
    assert told.arguments > 10
    outcome = Files.offer().reader(collected, session).collect(events)
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    assert collected.streams == 1
    assert collected.arguments == told.arguments
