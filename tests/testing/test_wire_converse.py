"""Converse at the test server, through boto3 and byte by byte."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import openai
import pytest

from lutumpy.testing import Call, Failure, Reply, WireServer, render, render_stream, serve
from lutumpy.testing.event_frames import write_frame

API = "bedrock_converse"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
ARN = "arn:aws:bedrock:us-east-1:000000000000:application-inference-profile/mi1dadi0g15f"
ASK: list[Any] = [{"role": "user", "content": [{"text": "Weather in Oslo?"}]}]
REPLY = Reply(
    "I look it up.",
    calls=[Call("weather", {"city": "Oslo ü", "days": [1, 2]}), Call("clock")],
    reasoning="Two tools will do.",
    usage=(11, 7),
)
TOOLS = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as running:
        yield running


@pytest.fixture
def client(server: WireServer) -> Iterator[Any]:
    made = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )
    yield made
    made.close()


def events_of(client: Any) -> Iterator[Any]:
    """The events of a streamed answer; the connection is closed with them."""
    answer = client.converse_stream(modelId=CLAUDE, messages=ASK)
    with contextlib.closing(answer["stream"]) as stream:
        yield from stream


def error_of(raised: Any) -> tuple[str, str, int]:
    answer = raised.value.response
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return answer["Error"]["Code"], answer["Error"]["Message"], status


def gathered(events: list[Any]) -> Any:
    """The message that the events of a stream tell."""
    blocks: list[Any] = []
    for event in events:
        if "contentBlockStart" in event:
            blocks.append(
                {"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}}
            )
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        at = event.get("contentBlockDelta", {}).get("contentBlockIndex")
        if at == len(blocks):
            blocks.append({"text": ""} if "text" in delta else {})
        if "text" in delta:
            blocks[at]["text"] += delta["text"]
        elif "toolUse" in delta:
            blocks[at]["toolUse"]["input"] += delta["toolUse"]["input"]
        elif "reasoningContent" in delta:
            for key, value in delta["reasoningContent"].items():
                blocks[at][key] = blocks[at].get(key, "") + value
    for block in blocks:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
        elif "signature" in block:
            block.update({"reasoningContent": {"reasoningText": dict(block)}})
            del block["text"], block["signature"]
    return {"role": "assistant", "content": blocks}


# ----------------------------------------------------------------- answers


def test_an_answer_and_its_stream_say_the_same(server: WireServer, client: Any) -> None:
    server.play(REPLY, REPLY)
    whole = client.converse(modelId=CLAUDE, messages=ASK)
    events = list(events_of(client))
    assert whole["stopReason"] == "tool_use"
    assert whole["usage"] == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
    content = whole["output"]["message"]["content"]
    assert [next(iter(block)) for block in content] == [
        "reasoningContent",
        "text",
        "toolUse",
        "toolUse",
    ]
    assert content[2]["toolUse"]["type"] == "tool_use"
    again = json.loads(json.dumps(gathered(events)).replace("0000000002", "0000000001"))
    again["content"][0]["reasoningContent"]["reasoningText"]["signature"] = content[0][
        "reasoningContent"
    ]["reasoningText"]["signature"]
    assert again == whole["output"]["message"]
    assert [next(iter(event)) for event in events[-2:]] == ["messageStop", "metadata"]
    assert events[-1]["metadata"]["usage"] == whole["usage"]
    assert [(r.path, r.body["model"], r.status) for r in server.requests] == [
        (f"/model/{CLAUDE}/converse", CLAUDE, 200),
        (f"/model/{CLAUDE}/converse-stream", CLAUDE, 200),
    ]


def test_a_model_may_be_an_arn(server: WireServer, client: Any) -> None:
    server.play(Reply("Rain."))
    client.converse(modelId=ARN, messages=ASK)
    assert server.requests[0].body["model"] == ARN


def test_models_differ_in_the_type_of_a_call() -> None:
    for model, typed in ((CLAUDE, True), (NOVA, False), ("anthropic.claude-3-sonnet-v1", False)):
        answer = render(REPLY, API, number=1, model=model)
        assert ("type" in answer["output"]["message"]["content"][2]["toolUse"]) is typed


def test_what_has_no_words_and_what_is_broken_is_rendered_as_the_api_does() -> None:
    broken = Reply(calls=[Call("f", '{"a": '), Call("g", "[1]")], reasoning="", finish="length")
    answer = render(broken, API, number=1, model=CLAUDE)
    hidden, first, second = answer["output"]["message"]["content"]
    assert set(hidden["reasoningContent"]) == {"redactedContent"}
    assert first["toolUse"]["input"] == second["toolUse"]["input"] == {}
    assert answer["stopReason"] == "max_tokens"
    events = render_stream(broken, API, number=1, model=CLAUDE)
    deltas = [
        event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event
    ]
    assert set(deltas[0]["reasoningContent"]) == {"redactedContent"}
    assert deltas[2] == {"toolUse": {"input": '{"a": '}}
    wrong = render(Reply(calls=[Call("g", "[1]")]), API, number=1, model=NOVA)
    assert wrong["output"]["message"]["content"][0]["toolUse"]["input"] == {"INVALID_JSON": "[1]"}


def test_tokens_are_counted(server: WireServer, client: Any) -> None:
    counted = client.count_tokens(modelId=CLAUDE, input={"converse": {"messages": ASK}})
    assert counted["inputTokens"] > 5
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.count_tokens(modelId=CLAUDE, input={"converse": {"messages": []}})
    assert error_of(raised)[0] == "ValidationException"


# ---------------------------------------------------------------- refusals


def test_it_refuses_what_the_api_refuses_in_its_words(server: WireServer, client: Any) -> None:
    history = [
        *ASK,
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "weather", "input": {}}}],
        },
        {"role": "user", "content": [{"text": "Are you there?"}]},
    ]
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.converse(modelId=NOVA, messages=history, toolConfig=TOOLS)
    assert error_of(raised) == (
        "ValidationException",
        "Expected toolResult blocks at messages.2.content for the following Ids: a",
        400,
    )
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.converse_stream(modelId=NOVA, messages=history)
    assert error_of(raised)[2] == 400
    assert [p.rule for p in server.requests[0].problems] == ["converse.results_after_calls"]


def test_signed_reasoning_goes_back_as_it_was(server: WireServer, client: Any) -> None:
    server.play(Reply("Rain.", reasoning="Hm."), Reply("Sun."))
    said = client.converse(modelId=CLAUDE, messages=ASK)["output"]["message"]
    told = said["content"][0]["reasoningContent"]["reasoningText"]
    told["text"] = "Well."
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.converse(modelId=CLAUDE, messages=[*ASK, said, *ASK])
    assert "cannot be modified" in error_of(raised)[1]
    told["text"] = "Hm."
    client.converse(modelId=CLAUDE, messages=[*ASK, said, *ASK])
    assert server.remaining == 0


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Failure(429, "Too many requests."), "ThrottlingException"),
        (Failure(503, "Try again."), "ServiceUnavailableException"),
        (Failure(502, "?"), "InternalServerException"),
        (Failure(403, "No.", "ExpiredTokenException"), "ExpiredTokenException"),
    ],
)
def test_the_type_of_an_error_stands_in_a_header(
    server: WireServer, client: Any, failure: Failure, code: str
) -> None:
    server.play(failure)
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        client.converse(modelId=CLAUDE, messages=ASK)
    assert error_of(raised) == (code, failure.message, failure.status)


def send(server: WireServer, path: str, data: bytes, **headers: str) -> tuple[int, Any, Any]:
    request = urllib.request.Request(f"{server.url}{path}", data, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def test_other_requests_are_refused(server: WireServer) -> None:
    body = json.dumps({"messages": ASK}).encode()
    path = f"/model/{CLAUDE}/converse"
    kind = "x-amzn-ErrorType"
    status, said, headers = send(server, path, body)
    assert (status, headers[kind]) == (403, "MissingAuthenticationTokenException")
    assert json.loads(said) == {"message": "Missing Authentication Token"}
    assert send(server, path, b"{", authorization="Bearer k")[0] == 400
    assert send(server, "/model/x/other", body, authorization="Bearer k")[0] == 404
    request = urllib.request.Request(f"{server.url}{path}", method="PUT")
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)
    with raised.value as error:
        assert error.code == 405


# ----------------------------------------------------------------- streams


def test_a_stream_may_break_after_it_has_begun(server: WireServer, client: Any) -> None:
    begun = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Ra"}}},
    ]
    server.play([*begun, Failure(429, "Slow down."), {"messageStop": {"stopReason": "end_turn"}}])
    events = events_of(client)
    assert [next(events), next(events)] == begun
    with pytest.raises(botocore.exceptions.EventStreamError) as raised:
        next(events)
    assert error_of(raised)[:2] == ("throttlingException", "Slow down.")


def test_a_stream_of_another_api_breaks_in_its_way(server: WireServer) -> None:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "m",
        "created": 1,
        "choices": [],
    }
    server.play([chunk, Failure(500, "Oh.")])
    with (
        openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0) as made,
        pytest.raises(openai.APIError, match=r"Oh\."),
    ):
        list(
            made.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True
            )
        )


def frames(data: bytes) -> Iterator[tuple[dict[str, str], Any]]:
    """The frames of a stream, with their checksums looked at."""
    while data:
        total, length, checksum = struct.unpack(">III", data[:12])
        assert zlib.crc32(data[:8]) == checksum
        assert struct.pack(">I", zlib.crc32(data[: total - 4])) == data[total - 4 : total]
        written, headers = data[12 : 12 + length], {}
        while written:
            name = written[1 : 1 + written[0]]
            kind, size = struct.unpack(">BH", written[1 + len(name) : 4 + len(name)])
            assert kind == 7
            start = 4 + len(name)
            headers[name.decode()] = written[start : start + size].decode()
            written = written[start + size :]
        yield headers, json.loads(data[12 + length : total - 4])
        data = data[total:]


def test_frames_have_lengths_checksums_and_padding(server: WireServer) -> None:
    server.play(REPLY)
    body = json.dumps({"messages": ASK}).encode()
    path = f"/model/{CLAUDE.replace(':', '%3A')}/converse-stream"
    status, data, headers = send(server, path, body, authorization="Bearer k")
    assert (status, headers["content-type"]) == (200, "application/vnd.amazon.eventstream")
    found = list(frames(data))
    assert all("p" in payload for _, payload in found)
    assert found[0] == (
        {
            ":event-type": "messageStart",
            ":content-type": "application/json",
            ":message-type": "event",
        },
        {"role": "assistant", "p": found[0][1]["p"]},
    )


def test_a_recorded_frame_is_written_again_byte_for_byte() -> None:
    """From a recording of pydantic-ai: the first frame of an answer of Nova."""
    recorded = base64.b64decode(RECORDED_FRAME)
    ((headers, _),) = frames(recorded)
    length = struct.unpack(">I", recorded[4:8])[0]
    assert write_frame(headers, recorded[12 + length : -4]) == recorded


RECORDED_FRAME = (
    "AAAAqgAAAFLa0GiGCzpldmVudC10eXBlBwAMbWVzc2FnZVN0YXJ0DTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlv"
    "bi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsicCI6ImFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6QUJDREVG"
    "R0hJSktMTU5PUFFSUyIsInJvbGUiOiJhc3Npc3RhbnQifXIDPns="
)
