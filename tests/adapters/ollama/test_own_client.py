"""A program whose own client is that of Ollama's package: bodies from `request`, its objects read
by `response` and by the decoder of streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ollama
import pytest

from lutumpy import NeedsTools, Session, Toolset, tool_fn
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.models import AssistantTurn
from lutumpy.testing import Call, Reply, serve


@tool_fn
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


class Sums(Toolset, tools=[add]): ...


SCRIPT = [
    Reply(
        calls=[Call("add", {"left": 1, "right": 2}), Call("add", {"left": "one"})],
        reasoning="A sum.",
    ),
    Reply(text="Three."),
]


@pytest.fixture
def url() -> Iterator[str]:
    with serve(SCRIPT) as server:
        yield server.url
        assert len(server.requests) == 2


def follow(session: Session, turn: AssistantTurn) -> str | None:
    """Commit the calls of an answer; the text, once there are none."""
    outcome = Sums.offer().read(turn, session)
    if not isinstance(outcome, NeedsTools):
        return outcome.result.text
    (call,) = outcome.round.calls
    (issue,) = outcome.round.issues
    assert issue.reason == "invalid_arguments"
    outcome.round.commit(session, [call.complete(call.call_sync())])
    return None


def body_of(session: Session, *, stream: bool) -> dict[str, Any]:
    return OllamaChat.request(session.transcript, Sums.offer(), stream=stream)


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_through_the_client(url: str, stream: bool) -> None:
    session, text = Session(), None
    session.push_user("1 + 2?")
    with ollama.Client(host=url) as client:
        while text is None:
            answer: Any = client.chat(model="m", **body_of(session, stream=stream))
            if not stream:
                text = follow(session, OllamaChat.response(answer))
                continue
            decoder = OllamaChat.stream_decoder()
            for chunk in answer:
                decoder.feed(chunk)
            text = follow(session, decoder.finish())
    assert text == "Three."
    assert session.transcript.turns()[0].reasoning == "A sum."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_round_through_the_async_client(url: str, stream: bool) -> None:
    session, text = Session(), None
    session.push_user("1 + 2?")
    async with ollama.AsyncClient(host=url) as client:
        while text is None:
            answer: Any = await client.chat(model="m", **body_of(session, stream=stream))
            if not stream:
                text = follow(session, OllamaChat.response(answer))
                continue
            decoder = OllamaChat.stream_decoder()
            async for chunk in answer:
                decoder.feed(chunk)
            text = follow(session, decoder.finish())
    assert text == "Three."
    assert session.transcript.turns()[0].reasoning == "A sum."
