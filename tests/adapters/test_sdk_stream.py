"""Streams through both SDKs: what they give, how they fail, and that leaving one closes its
connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.openai.chat.stream import ChatStreamDecoder
from lutumpy.adapters.transport import SdkTransport
from lutumpy.adapters.writing import event_object
from lutumpy.errors import AdapterError
from lutumpy.models import TurnOptions
from lutumpy.testing import Reply, render_stream

Part = bytes | BaseException


def data(value: Any) -> bytes:
    return f"event: e\ndata: {json.dumps(value)}\n\n".encode()


def text(piece: str, finish: str | None = None) -> bytes:
    return data(
        {
            "id": "c",
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": finish}],
        }
    )


HELLO = [text("Hel"), text("lo", "stop"), b"data: [DONE]\n\n"]


class Body(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A body that comes in parts; a part may be an error, and `None` never comes."""

    def __init__(self, parts: Sequence[Part | None]) -> None:
        self.parts = parts
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            if part is None:
                await asyncio.sleep(60)
            elif isinstance(part, BaseException):
                raise part
            else:
                yield part

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            if isinstance(part, BaseException):
                raise part
            if part is not None:
                yield part

    async def aclose(self) -> None:
        self.closed += 1

    def close(self) -> None:
        self.closed += 1


class Host:
    """Answers every request with one body."""

    def __init__(self, parts: Sequence[Part | None], status: int = 200) -> None:
        self.body = Body(parts)
        self.status = status
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        headers = {"content-type": "text/event-stream", "x-request-id": "req_1"}
        return httpx2.Response(self.status, stream=self.body, headers=headers)

    def transport(self, sdk: str, *, sync: bool = False) -> SdkTransport:
        mock = httpx2.MockTransport(self)
        http: Any = httpx2.Client(transport=mock) if sync else httpx2.AsyncClient(transport=mock)
        kinds: dict[tuple[str, bool], Any] = {
            ("openai", False): AsyncOpenAI,
            ("openai", True): OpenAI,
            ("anthropic", False): AsyncAnthropic,
            ("anthropic", True): Anthropic,
        }
        client = kinds[sdk, sync](
            api_key="k", base_url="http://api.invalid", max_retries=0, http_client=http
        )
        return SdkTransport(
            "p", "/v1/x", client=client, make_async=lambda: None, make_sync=lambda: None
        )


async def read(host: Host, sdk: str = "openai", *, sync: bool = False, take: int = 99) -> list[Any]:
    """Up to `take` events, fed to the decoder as they come."""
    decoder = ChatStreamDecoder()
    found: list[Any] = []
    if sync:
        opened = host.transport(sdk, sync=True).stream_sync(b'{"stream":true}', decoder)
        with opened as events:
            for event in events:
                found.append(event)
                decoder.feed(event)
                if len(found) == take:
                    break
    else:
        stream = host.transport(sdk).stream(b'{"stream":true}', decoder)
        async with stream as async_events:
            async for event in async_events:
                found.append(event)
                decoder.feed(event)
                if len(found) == take:
                    break
        assert stream.request_id == "req_1"
    return found


BOTH = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
SDKS = pytest.mark.parametrize("sdk", ["openai", "anthropic"])


@BOTH
@SDKS
async def test_events_come_as_plain_objects_however_the_bytes_are_cut(sdk: str, sync: bool) -> None:
    body = b"".join(HELLO[:2])
    for size in (1, 7, len(body)):
        host = Host([body[k : k + size] for k in range(0, len(body), size)])
        events = await read(host, sdk, sync=sync)
        assert [type(event) for event in events] == [dict, dict]
        assert host.body.closed == 1
        assert host.requests[0].content == b'{"stream":true}'


@BOTH
@SDKS
@pytest.mark.parametrize("take", [0, 1])
async def test_leaving_early_closes_the_response(sdk: str, sync: bool, take: int) -> None:
    host = Host([*HELLO[:1], text("never read"), text("nor this", "stop")])
    if take:
        assert len(await read(host, sdk, sync=sync, take=take)) == take
    elif sync:
        with host.transport(sdk, sync=True).stream_sync(b"{}", ChatStreamDecoder()):
            assert host.body.closed == 0
    else:
        async with host.transport(sdk).stream(b"{}", ChatStreamDecoder()):
            assert host.body.closed == 0
    assert host.body.closed == 1


@SDKS
async def test_a_cancelled_reader_closes_the_response(sdk: str) -> None:
    host = Host([text("Hel"), None])
    reading = asyncio.ensure_future(read(host, sdk))
    await asyncio.sleep(0.05)
    assert host.body.closed == 0
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert host.body.closed == 1


async def left_by(error: BaseException, host: Host, *, sync: bool) -> None:
    transport = host.transport("openai", sync=sync)
    if sync:
        with transport.stream_sync(b"{}", ChatStreamDecoder()):
            raise error
    async with transport.stream(b"{}", ChatStreamDecoder()):
        raise error


@BOTH
@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), ValueError("mine")])
async def test_what_is_raised_in_the_block_passes_and_closes_the_response(
    error: BaseException, sync: bool
) -> None:
    host = Host(HELLO)
    with pytest.raises(type(error)) as caught:
        await left_by(error, host, sync=sync)
    assert caught.value is error
    assert host.body.closed == 1


async def failure(host: Host, sdk: str, sync: bool) -> AdapterError:
    with pytest.raises(AdapterError) as caught:
        await read(host, sdk, sync=sync)
    assert host.body.closed >= 1
    return caught.value


@BOTH
@SDKS
@pytest.mark.parametrize(
    "lost",
    [
        httpx2.ReadError("gone"),
        httpx2.RemoteProtocolError("peer closed"),
        httpx2.ReadTimeout("slow"),
    ],
)
async def test_a_connection_that_breaks_leaves_what_had_arrived(
    sdk: str, sync: bool, lost: Exception
) -> None:
    error = await failure(Host([text("Hel"), lost]), sdk, sync)
    assert error.partial is not None
    assert (error.partial.text, error.partial.cut) == ("Hel", True)
    assert (error.status, error.retryable, error.request_id) == (None, True, "req_1")
    assert error.__cause__ is not None


@BOTH
@SDKS
@pytest.mark.parametrize(
    "broken", [b'event: e\ndata: {"choices": [\n\n', b"event: e\ndata: " + b"[" * 100_000 + b"\n\n"]
)
async def test_an_event_that_is_no_json_leaves_what_had_arrived(
    sdk: str, sync: bool, broken: bytes
) -> None:
    error = await failure(Host([text("Hel"), broken]), sdk, sync)
    assert "not JSON" in str(error)
    assert error.partial is not None
    assert error.partial.text == "Hel"
    assert (error.request_id, error.provider) == ("req_1", "p")


@BOTH
@pytest.mark.parametrize(
    ("sdk", "event", "code", "status"),
    [
        ("openai", {"error": {"message": "boo", "code": "server_error"}}, "server_error", None),
        ("openai", {"error": {"message": "boo", "code": 502}}, "502", 502),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "boo"}},
            "overloaded_error",
            None,
        ),
    ],
)
async def test_an_error_event_leaves_what_had_arrived(
    sdk: str, sync: bool, event: Any, code: str, status: int | None
) -> None:
    error = await failure(
        Host([text("Hel"), data(event).replace(b"event: e", b"event: error")]), sdk, sync
    )
    assert "boo" in str(error)
    assert error.partial is not None
    assert error.partial.text == "Hel"
    assert (error.code, error.status, error.retryable) == (code, status, True)


@BOTH
@SDKS
async def test_a_request_that_is_refused_has_nothing_partial(sdk: str, sync: bool) -> None:
    error = await failure(Host([b'{"error": {"message": "slow down"}}'], status=429), sdk, sync)
    assert (error.status, error.retryable, error.partial, error.request_id) == (
        429,
        True,
        None,
        "req_1",
    )


async def test_a_stream_is_opened_once() -> None:
    stream = Host(HELLO).transport("openai").stream(b"{}", ChatStreamDecoder())
    async with stream as events:
        pass
    assert [event async for event in events] == []
    with pytest.raises(RuntimeError, match="opened before"):
        async with stream:
            pass
    sync = Host(HELLO).transport("openai", sync=True).stream_sync(b"{}", ChatStreamDecoder())
    with sync as plain:
        pass
    assert list(plain) == []
    with pytest.raises(RuntimeError, match="opened before"), sync:
        pass


@pytest.mark.parametrize("sync", [False, True])
async def test_what_the_sdk_did_not_raise_passes_as_it_is(sync: bool) -> None:
    class Odd(Exception):
        pass

    transport = Host([HELLO[0], Odd("odd")]).transport("openai", sync=sync)

    async def read() -> None:
        if sync:
            with transport.stream_sync(b"{}", ChatStreamDecoder()) as plain:
                list(plain)
        else:
            async with transport.stream(b"{}", ChatStreamDecoder()) as events:
                [event async for event in events]

    with pytest.raises(Odd):
        await read()


def test_an_event_of_any_kind_is_an_object_C8() -> None:
    event = {"type": "x"}
    assert event_object(event) is event
    assert event_object(MappingProxyType(event)) == event
    for nothing in (None, "x", 5, [event], ChatStreamDecoder):
        assert event_object(nothing) == {}


async def test_the_wrong_kind_of_client_is_told_when_it_is_used() -> None:
    with pytest.raises(TypeError, match="is a sync client"):
        async with Host(HELLO).transport("openai", sync=True).stream(b"{}", ChatStreamDecoder()):
            pass
    with (
        pytest.raises(TypeError, match="is an async client"),
        Host(HELLO).transport("openai").stream_sync(b"{}", ChatStreamDecoder()),
    ):
        pass


async def test_a_client_that_rewrites_the_body_is_given_an_object() -> None:
    host = Host(HELLO)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(host))
    client = AsyncAzureOpenAI(
        api_key="k", api_version="1", azure_endpoint="http://api.invalid", http_client=http
    )
    turn = await answer(OpenAIChat("deployed", client))
    assert turn.text == "Hello"
    assert host.requests[0].url.path == "/openai/deployments/deployed/chat/completions"


# --- the adapters ---------------------------------------------------------------------------------


async def answer(model: OpenAIChat | OpenAIResponses) -> AssistantTurn:
    transcript = Transcript()
    transcript.push_user("hi")
    stream = model.open_stream(transcript, None, TurnOptions())
    async with stream as events:
        async for event in events:
            stream.decoder.feed(event)
    return stream.decoder.finish(stream.request_id)


def openai_client(host: Host) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(host))
    return AsyncOpenAI(
        api_key="k", base_url="http://api.invalid/v1", max_retries=0, http_client=http
    )


async def test_chat_asks_for_a_stream_with_usage() -> None:
    host = Host(HELLO)
    turn = await answer(OpenAIChat("m", openai_client(host)))
    assert (turn.text, turn.request_id) == ("Hello", "req_1")
    body = json.loads(host.requests[0].content)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_responses_asks_for_a_stream() -> None:
    host = Host(
        [
            data(event)
            for event in render_stream(Reply(text="Hello"), "openai_responses", number=1, model="m")
        ]
    )
    turn = await answer(OpenAIResponses("m", openai_client(host)))
    assert (turn.text, turn.request_id) == ("Hello", "req_1")
    assert json.loads(host.requests[0].content)["stream"] is True


def test_a_sync_client_streams_without_an_event_loop() -> None:
    host = Host(HELLO)
    http = httpx2.Client(transport=httpx2.MockTransport(host))
    model = OpenAIChat("m", OpenAI(api_key="k", base_url="http://api.invalid/v1", http_client=http))
    transcript = Transcript()
    transcript.push_user("hi")
    stream = model.open_stream_sync(transcript, None, TurnOptions())
    assert host.requests == []
    with stream as events:
        for event in events:
            stream.decoder.feed(event)
    assert stream.decoder.finish(stream.request_id).text == "Hello"
