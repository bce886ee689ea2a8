"""The test server answers Claude's paths at the clouds, through the vendor's clients for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest

from lutumpy.rules.anthropic.models import BINDING_CONTROLS
from lutumpy.testing import Call, Failure, Reply, WireServer, serve

Json = dict[str, Any]
BODY: Json = {
    "max_tokens": 100,
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": "Go."}],
}
MODELS = {
    "vertex": "claude-fable-5-2@20261001",
    "bedrock": "us.anthropic.claude-fable-5-2-v1:0",
    "foundry": "claude-fable-5-2",
}
KEY: Json = {"max_retries": 0}


@contextmanager
def client_of(cloud: str, url: str) -> Iterator[Any]:
    """The vendor's client for a cloud."""
    if cloud == "vertex":
        client: Any = anthropic.AnthropicVertex(
            region="europe-west1", project_id="p", access_token="t", base_url=f"{url}/v1", **KEY
        )
    elif cloud == "bedrock":
        client = anthropic.AnthropicBedrock(
            aws_access_key="a", aws_secret_key="s", aws_region="eu-west-1", base_url=url, **KEY
        )
    else:
        client = anthropic.AnthropicFoundry(api_key="k", base_url=f"{url}/anthropic", **KEY)
    with client:
        yield client


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as made:
        yield made


def test_each_cloud_answers_and_streams_through_the_vendors_client(server: WireServer) -> None:
    for cloud, model in MODELS.items():
        reply = Reply("I look.", calls=[Call("look", {"key": "ü"})], reasoning="Hm.")
        server.play(reply, reply, Reply("Done."))
        with client_of(cloud, server.url) as client:
            message = client.messages.create(model=model, **BODY)
            assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
            assert message.content[2].input == {"key": "ü"}
            assert message.model == model
            with client.messages.stream(model=model, **BODY) as stream:
                streamed = stream.get_final_message()
            assert streamed.content[1].text == message.content[1].text == "I look."
            assert streamed.content[2].input == {"key": "ü"}
            result = {
                "type": "tool_result",
                "tool_use_id": message.content[2].id,
                "content": "ok",
            }
            grown = [
                *BODY["messages"],
                {"role": "assistant", "content": message.to_dict()["content"]},
                {"role": "user", "content": [result]},
            ]
            # Reasoning is bound here as at the vendor.
            told = client.beta.messages.create(
                model=model, **{**BODY, "messages": grown}, betas=[BINDING_CONTROLS]
            )
            assert told.to_dict()["input_transformations"] == [], cloud
            with pytest.raises(anthropic.BadRequestError, match="different conversation"):
                client.messages.create(model=model, **{**BODY, "messages": grown}, system="No.")
    paths = {request.path for request in server.requests}
    start = "/v1/projects/p/locations/europe-west1/publishers/anthropic/models"
    assert paths == {
        f"{start}/{MODELS['vertex']}:rawPredict",
        f"{start}/{MODELS['vertex']}:streamRawPredict",
        f"/model/{MODELS['bedrock']}/invoke",
        f"/model/{MODELS['bedrock']}/invoke-with-response-stream",
        "/anthropic/v1/messages",
    }
    assert {request.api for request in server.requests} == {"anthropic_messages"}


def test_each_cloud_refuses_in_its_own_words(server: WireServer) -> None:
    for cloud, model in MODELS.items():
        with client_of(cloud, server.url) as client:
            with pytest.raises(anthropic.BadRequestError, match="messages: at least one message"):
                client.messages.create(model=model, max_tokens=1, messages=[])
            server.play(Failure(429, "Too many requests"))
            with pytest.raises(anthropic.RateLimitError, match="Too many requests"):
                client.messages.create(model=model, **BODY)
            # An error after the stream has begun.
            events: Any = [{"type": "ping"}, Failure(529, "Overloaded")]
            server.play(events)
            with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
                client.messages.create(model=model, **BODY, stream=True).__next__()
    with client_of("vertex", server.url) as client:
        counted = client.messages.count_tokens(model=MODELS["vertex"], messages=BODY["messages"])
        assert counted.input_tokens > 0


def test_a_cloud_wants_a_key(server: WireServer) -> None:
    import httpx2

    start = "/v1/projects/p/locations/europe-west1/publishers/anthropic/models"
    with httpx2.Client(base_url=server.url) as client:
        for path, status in (
            (f"{start}/m:rawPredict", 401),
            ("/model/m/invoke", 403),
            ("/anthropic/v1/messages", 401),
        ):
            assert client.post(path, json=BODY).status_code == status
