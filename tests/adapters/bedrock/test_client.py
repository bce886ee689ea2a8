"""Converse through boto3 at the test server: whole and streamed, with and without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from lutumpy import Transcript
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.core.model import TurnOptions
from lutumpy.errors import AdapterError
from lutumpy.testing import Call, Failure, Reply
from lutumpy.testing.wire import WireServer, serve

NOVA = "amazon.nova-micro-v1:0"
REPLY = Reply("I look.", calls=[Call("weather", {"city": "Oslo"})], reasoning="Hm.", usage=(11, 7))


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as running:
        yield running


@pytest.fixture
def llm(server: WireServer) -> Iterator[BedrockConverse]:
    client: Any = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(retries={"max_attempts": 0}),
    )
    yield BedrockConverse(NOVA, client)
    client.close()


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("Weather in Oslo?")
    return transcript


def test_an_answer_and_its_stream_are_the_same(server: WireServer, llm: BedrockConverse) -> None:
    """Rule S1."""
    server.play(REPLY, REPLY, REPLY)
    whole = llm.respond_sync(asked(), None, TurnOptions())
    stream = llm.open_stream_sync(asked(), None, TurnOptions())
    with stream as events:
        for event in events:
            stream.decoder.feed(event)
    turn = stream.decoder.finish()
    in_loop = asyncio.run(llm.respond(asked(), None, TurnOptions()))
    for found in (whole, turn, in_loop):
        assert (found.text, found.reasoning) == ("I look.", "Hm.")
        assert [(call.name, call.arguments) for call in found.calls] == [
            ("weather", '{"city":"Oslo"}')
        ]
        assert (found.finish_reason, found.usage.total_tokens) == ("tool_calls", 18)
    assert whole.request_id
    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": [{"text": "Weather in Oslo?"}]}
    ]


def test_throttling_is_an_error_to_try_again(server: WireServer, llm: BedrockConverse) -> None:
    server.play(Failure(429, "Too many requests", "ThrottlingException"))
    with pytest.raises(AdapterError, match="Too many requests") as raised:
        llm.respond_sync(asked(), None, TurnOptions())
    assert (raised.value.retryable, raised.value.status) == (True, 429)
    assert raised.value.code == "ThrottlingException"
