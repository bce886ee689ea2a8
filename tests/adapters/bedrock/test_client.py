"""Converse through boto3 at the test server: whole and streamed, with and without a loop."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from lutumpy import NeedsTools, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.bedrock.errors import sdk_error
from lutumpy.errors import AdapterError
from lutumpy.models import TurnOptions
from lutumpy.testing import Call, Failure, Reply, WireServer, serve
from lutumpy.testing.event_frames import write_frame
from lutumpy.testing.render_bedrock_frames import write_event_frame

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


OPTIONS = TurnOptions()
ANSWER = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
    "ResponseMetadata": {"RequestId": "r1"},
}
EVENTS: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}},
]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps what it has found


@pytest.mark.usefixtures("keys")
async def test_a_client_made_here_sends_headers_and_is_closed(server: WireServer) -> None:
    server.play(REPLY, REPLY, REPLY)
    llm = BedrockConverse(NOVA, base_url=server.url, headers={"X-A": "b"}, timeout=20)
    async with llm:
        assert llm._transport.client() is None
        turn = await llm.respond(asked(), None, OPTIONS)
        assert turn.text == "I look."
        stream = llm.open_stream(asked(), None, OPTIONS)
        async with stream as events:
            async for event in events:
                stream.decoder.feed(event)
        assert stream.decoder.finish().text == "I look."
        assert llm._transport.client() is not None
    assert llm._transport.client() is None
    with llm:
        assert llm.respond_sync(asked(), None, OPTIONS).text == "I look."
    assert {request.headers.get("x-a") for request in server.requests} == {"b"}


async def test_headers_of_one_request_are_sent_each_way(
    server: WireServer, llm: BedrockConverse
) -> None:
    server.play(REPLY, REPLY)
    body = json.dumps({"model": NOVA, "messages": [{"role": "user", "content": [{"text": "Hi"}]}]})
    llm._transport.send_sync(body.encode(), {"X-One": "1"})
    await llm._transport.send(body.encode(), {"X-One": "1"})
    assert [request.headers.get("x-one") for request in server.requests] == ["1", "1"]


@pytest.mark.usefixtures("keys")
async def test_a_stream_in_threads_may_be_given_up(server: WireServer) -> None:
    server.play(REPLY)
    async with BedrockConverse(NOVA, base_url=server.url) as llm:
        stream = llm.open_stream(asked(), None, OPTIONS)
        async with stream as events:
            stream.decoder.feed(await anext(events))
        assert stream.decoder.partial() is not None


@pytest.mark.usefixtures("keys")
async def test_errors_are_told_with_their_status_and_words(server: WireServer) -> None:
    server.play(
        Failure(400, "Wrong.", "ValidationException"),
        Failure(403, "No.", "AccessDeniedException"),
        Failure(400, "Wrong.", "ValidationException"),
        Failure(400, "Wrong.", "ValidationException"),
    )
    async with BedrockConverse(NOVA, base_url=server.url) as llm:
        with pytest.raises(AdapterError, match="Wrong") as caught:
            await llm.respond(asked(), None, OPTIONS)
        assert (caught.value.status, caught.value.code) == (400, "ValidationException")
        assert not caught.value.retryable
        with pytest.raises(AdapterError, match="No") as caught:
            llm.respond_sync(asked(), None, OPTIONS)
        assert caught.value.status == 403
        with pytest.raises(AdapterError, match="Wrong"):
            async with llm.open_stream(asked(), None, OPTIONS) as events:
                await anext(events)
        stream = llm.open_stream_sync(asked(), None, OPTIONS)
        with pytest.raises(AdapterError, match="Wrong"), stream as found:
            next(found)


@pytest.mark.usefixtures("keys")
async def test_a_server_that_is_not_there_may_come_back() -> None:
    async with BedrockConverse(NOVA, base_url="http://127.0.0.1:9") as llm:
        with pytest.raises(AdapterError) as caught:
            await llm.respond(asked(), None, OPTIONS)
    assert caught.value.retryable


async def test_missing_credentials_and_regions_are_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, server: WireServer
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps what it has found
    with pytest.raises(AdapterError, match="no region is set: give BedrockConverse region") as told:
        await BedrockConverse(NOVA).respond(asked(), None, OPTIONS)
    assert not told.value.sent
    llm = BedrockConverse(NOVA, region="us-east-1", base_url=server.url)
    with llm, pytest.raises(AdapterError, match="AWS_ACCESS_KEY_ID") as told:
        llm.respond_sync(asked(), None, OPTIONS)
    assert "\n" not in str(told.value)
    assert not told.value.sent
    assert server.requests == []


def test_the_host_of_a_client_to_come_is_the_one_that_the_sdk_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(region: str | None) -> str | None:
        return BedrockConverse("m", region=region).host

    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert found(None) is None
    elsewhere = ["cn-north-1", "us-iso-east-1", "eusc-de-east-1", "nowhere"]
    for region in ["us-east-1", "eu-central-2", "ap-southeast-2", "us-gov-west-1", *elsewhere]:
        sdk = boto3.client("bedrock-runtime", region_name=region)
        expected = sdk.meta.endpoint_url.removeprefix("https://")
        assert found(region) == (None if region in elsewhere else expected)
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        assert found(None) == found(region)
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    assert found("us-east-1") is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://proxy.example:8443/bedrock")
    assert found("us-east-1") == "proxy.example:8443"
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert found("us-east-1") is None


async def test_a_missing_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    llm = BedrockConverse(NOVA)
    with pytest.raises(AdapterError, match=r"pip install \"\.\[bedrock\]\"") as caught:
        await llm.respond(asked(), None, OPTIONS)
    assert not caught.value.sent
    with pytest.raises(AdapterError, match="pip install"):
        llm.respond_sync(asked(), None, OPTIONS)


def test_what_is_no_client_is_refused(llm: BedrockConverse) -> None:
    with pytest.raises(TypeError, match="bedrock-runtime"):
        BedrockConverse(NOVA, object())
    with pytest.raises(TypeError, match="for a client made here"):
        BedrockConverse(NOVA, object(), region="us-east-1")
    with pytest.raises(TypeError, match="timeout is for a client made here"):
        BedrockConverse(NOVA, Own(ANSWER), timeout=3)
    with pytest.raises(TypeError, match="BedrockConverse speaks"):
        AnthropicMessages("claude", llm._transport.client())


class Own:
    """A client of a user's own, as in tests."""

    def __init__(self, answer: Any, events: Any = EVENTS) -> None:
        self.answer = answer
        self.events = events
        self.models: list[str] = []

    def converse(self, *, modelId: str, messages: Any) -> Any:
        self.models.append(modelId)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def converse_stream(self, *, modelId: str, messages: Any) -> Any:
        return {"stream": Stream(self.events)}


class Stream:
    def __init__(self, events: Any) -> None:
        self.events = events
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.events)

    def close(self) -> None:
        self.closed = True


def test_a_client_of_ones_own_answers_in_any_form() -> None:
    client = Own(ANSWER)
    llm = BedrockConverse(NOVA, client)
    turn = llm.respond_sync(asked(), None, OPTIONS)
    assert (turn.text, turn.request_id, client.models) == ("Hi", "r1", [NOVA])
    stream = llm.open_stream_sync(asked(), None, OPTIONS)
    with stream as events:
        for event in events:
            stream.decoder.feed(event)
    assert stream.decoder.finish().text == "Hi"
    with pytest.raises(AdapterError, match="no response"):
        BedrockConverse(NOVA, Own({})).respond_sync(asked(), None, OPTIONS)
    with pytest.raises(KeyError):
        BedrockConverse(NOVA, Own(KeyError("x"))).respond_sync(asked(), None, OPTIONS)


class AsyncOwn:
    """A client as aiobotocore has them: awaited, with streams for `async for`."""

    def __init__(self, answer: Any = ANSWER) -> None:
        self.answer = answer

    async def converse(self, *, modelId: str, messages: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def converse_stream(self, *, modelId: str, messages: Any) -> Any:
        return {"stream": AsyncStream(), "ResponseMetadata": {"RequestId": "r2"}}


class AsyncStream:
    async def __aiter__(self) -> AsyncIterator[Any]:
        for event in EVENTS:
            yield event

    async def close(self) -> None:
        pass


async def test_an_async_client_is_awaited() -> None:
    llm = BedrockConverse(NOVA, AsyncOwn())
    turn = await llm.respond(asked(), None, OPTIONS)
    assert (turn.text, turn.request_id) == ("Hi", "r1")
    stream = llm.open_stream(asked(), None, OPTIONS)
    async with stream as events:
        async for event in events:
            stream.decoder.feed(event)
    assert stream.decoder.finish().text == "Hi"
    with pytest.raises(TypeError, match="is an async client"):
        llm.respond_sync(asked(), None, OPTIONS)
    with pytest.raises(KeyError):
        await BedrockConverse(NOVA, AsyncOwn(KeyError("x"))).respond(asked(), None, OPTIONS)
    refused = type("ReadTimeoutError", (Exception,), {"__module__": "botocore.exceptions"})
    with pytest.raises(AdapterError) as caught:
        await BedrockConverse(NOVA, AsyncOwn(refused("late"))).respond(asked(), None, OPTIONS)
    assert caught.value.retryable


def test_errors_of_the_stack_are_known_by_their_packages() -> None:
    plain = type("ParamValidationError", (Exception,), {"__module__": "botocore.exceptions"})
    found = sdk_error(plain("a\nb"))
    assert found is not None
    assert "a b" in str(found)
    assert not found.retryable
    assert sdk_error(ValueError("mine")) is None
    refused = type("ClientError", (Exception,), {"__module__": "botocore.exceptions"})
    error = refused("odd")
    error.response = {"Error": {"Code": "modelNotReadyException", "Message": "Wait."}}  # type: ignore[attr-defined]
    told = sdk_error(error)
    assert told is not None
    assert (told.status, told.code, told.retryable) == (429, "ModelNotReadyException", True)
    error.response = None  # type: ignore[attr-defined]
    assert sdk_error(error) is not None


# --- answers that botocore can't read -------------------------------------------------------------


class Body:
    """The body of an HTTP response, as urllib3 has it."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self) -> Iterator[bytes]:
        yield self.content

    def close(self) -> None:
        pass


def answer_with(
    llm: BedrockConverse, status: int, content: bytes, headers: dict[str, str] | None = None
) -> None:
    """Let the client of `llm` be answered so, whatever it asks."""

    def answer(request: Any, **_: Any) -> Any:
        return AWSResponse(request.url, status, headers or {}, Body(content))

    events = llm._transport.client().meta.events
    events.unregister("before-send.bedrock-runtime", unique_id="answer")
    events.register("before-send.bedrock-runtime", answer, unique_id="answer")


def ways_to_fail(session: Session, llm: BedrockConverse) -> Iterator[AdapterError]:
    """What is raised whole and streamed, with and without a loop; nothing came into the session."""

    async def stream() -> None:
        async with session.text_turn(llm).stream() as events:
            await events.collect()

    def stream_sync() -> None:
        with session.text_turn(llm).stream_sync() as events:
            events.collect()

    for ask in (
        session.text_turn(llm).collect_sync,
        lambda: asyncio.run(session.text_turn(llm).collect()),
        stream_sync,
        lambda: asyncio.run(stream()),
    ):
        with pytest.raises(AdapterError) as raised:
            ask()
        yield raised.value
    assert len(session.transcript) == 1


def test_an_error_that_botocore_cannot_read_is_told_with_its_status(llm: BedrockConverse) -> None:
    """What a proxy says is no object of the service; rule U1 goes by the status."""
    for status, listed in ((429, 0), (500, 4)):
        for content in (b"null", b"[]", b'"busy"', b"5", b"\xff\xfe", b"[" * 100_000):
            session = Session(asked())
            answer_with(llm, status, content, {"x-amzn-requestid": "r1", "retry-after": "3"})
            for error in ways_to_fail(session, llm):
                assert (error.status, error.retryable, error.code) == (status, True, str(status))
                assert (error.request_id, error.retry_after) == ("r1", 3)
                assert content[:4].decode("utf-8", "replace") in str(error)
            assert len(session.unsettled) == listed, (status, content)
    answer_with(llm, 400, b"null", {"x-amzn-errortype": "ModelNotReadyException:http://x"})
    error = next(ways_to_fail(Session(asked()), llm))
    assert (error.code, error.retryable) == ("ModelNotReadyException", True)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"error": {"message": "over quota", "code": "quota"}}, "quota", "HTTP 429: over quota"),
        ({"error": {"message": "over quota", "code": None}}, "429", "HTTP 429: over quota"),
        ({"error": "over quota"}, "429", "HTTP 429: over quota"),
        ({"detail": "over quota"}, "429", "HTTP 429: over quota"),
        ({"errors": [{"reason": "over quota"}]}, "429", '{"errors": [{"reason": "over quota"}]}'),
        ({"message": None, "error": "over quota"}, "429", "HTTP 429: over quota"),
        ({"__type": "a#ThrottlingException", "error": "b"}, "ThrottlingException", "HTTP 429: b"),
        ({"__type": "a#ThrottlingException"}, "ThrottlingException", "HTTP 429: An error occurred"),
        ({"__type": "a#ThrottlingException", "message": "b"}, "ThrottlingException", "HTTP 429: b"),
    ],
    ids=json.dumps,
)
def test_the_words_of_a_gateway_are_told(
    body: dict[str, Any], code: str, words: str, llm: BedrockConverse
) -> None:
    """botocore finds the service's own words alone: those of other errors were lost."""
    answer_with(llm, 429, json.dumps(body).encode(), {"x-amzn-requestid": "r1"})
    for error in ways_to_fail(Session(asked()), llm):
        assert words in str(error)
        assert (error.code, error.status, error.retryable) == (code, 429, True)
        assert error.request_id == "r1"


@pytest.mark.parametrize(
    "changed",
    [
        {"usage": [1]},
        {"metrics": [1]},
        {"metrics": {"latencyMs": "soon"}},
        {"trace": "none"},
        {"output": {"message": {"role": "assistant", "content": [{}, {"text": "Hi"}]}}},
    ],
    ids=lambda changed: json.dumps(changed)[:30],
)
async def test_an_answer_on_which_botocore_fails_is_read_all_the_same(
    changed: dict[str, Any], llm: BedrockConverse
) -> None:
    answer_with(llm, 200, json.dumps({**ANSWER, **changed}).encode(), {"x-amzn-requestid": "r1"})
    for turn in (
        llm.respond_sync(asked(), None, OPTIONS),
        await llm.respond(asked(), None, OPTIONS),
    ):
        assert (turn.text, turn.finish_reason, turn.request_id) == ("Hi", "stop", "r1")


async def test_what_is_no_answer_is_told_where_botocore_fails(llm: BedrockConverse) -> None:
    for content in (b"null", b"[]", b"5", b"\xff", b"[" * 100_000):
        answer_with(llm, 200, content)
        session = Session(asked())
        with pytest.raises(AdapterError, match=r"not a JSON object|not JSON"):
            session.text_turn(llm).collect_sync()
        with pytest.raises(AdapterError, match=r"not a JSON object|not JSON"):
            await session.text_turn(llm).collect()
        assert len(session.unsettled) == 2


def test_a_connection_that_is_lost_in_a_whole_answer_may_come_back(llm: BedrockConverse) -> None:
    """botocore compares no lengths: what had come was taken for an answer that is no JSON."""
    content = json.dumps(ANSWER).encode()
    for cut in (b"", content[:-1]):
        answer_with(llm, 200, cut, {"content-length": str(len(content))})
        with pytest.raises(AdapterError, match=f"{len(cut)} of its {len(content)}") as raised:
            llm.respond_sync(asked(), None, OPTIONS)
        assert raised.value.retryable
    answer_with(llm, 200, content, {"content-length": str(len(content))})
    assert llm.respond_sync(asked(), None, OPTIONS).text == "Hi"


def test_an_event_that_botocore_cannot_read_is_told_with_what_had_come(
    llm: BedrockConverse,
) -> None:
    begun = b"".join(write_event_frame(*next(iter(event.items()))) for event in EVENTS[:2])
    names = {":event-type": "contentBlockDelta", ":message-type": "event"}
    for content in (b"null", b"5", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"delta":"x"}'):
        answer_with(llm, 200, begun + write_frame(names, content))
        *_, error, in_loop = ways_to_fail(Session(asked()), llm)
        for found in (error, in_loop):
            assert "an event that can't be read" in str(found)
            assert found.retryable
            assert found.partial is not None
            assert found.partial.text == "Hi"


def test_what_a_handler_of_the_users_raises_passes(llm: BedrockConverse) -> None:
    def fail(**_: Any) -> None:
        raise AttributeError("mine")

    answer_with(llm, 200, json.dumps(ANSWER).encode())
    llm._transport.client().meta.events.register("after-call.bedrock-runtime", fail)
    with pytest.raises(AttributeError, match="mine"):
        llm.respond_sync(asked(), None, OPTIONS)


@tool_fn
def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


class Tools(Toolset):
    look = tool(look)


async def test_a_loop_of_tools_goes_through_the_servers_rules(
    server: WireServer, llm: BedrockConverse
) -> None:
    """Rule R1."""
    server.play(
        Reply(reasoning="Hm.", calls=[Call("look", {"n": 1}), Call("look", {"n": 2})]),
        Reply(calls=[Call("look", {"n": 3})]),
        Reply("Done."),
    )
    session = Session()
    session.push_user("Look.")
    for _ in range(2):
        session = Session.load(session.dump())
        outcome = await session.text_turn(llm, tools=Tools).collect()
        assert isinstance(outcome, NeedsTools)
        done = [found.complete(f"saw {found.input.n}") for found in outcome.round.calls]
        outcome.round.commit(session, done)
    await session.text_turn(llm, tools=Tools).collect()
    sent = server.requests[2].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant"] * 2 + ["user"]
    assert "reasoningContent" in sent[1]["content"][0]
    assert json.dumps(sent[2]).count("toolResult") == 2
