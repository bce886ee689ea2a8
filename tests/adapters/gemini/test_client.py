"""`Gemini` through google-genai: at the test server, with clients of users, and without any."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import _api_client, types

from lutumpy import NeedsTools, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.gemini.errors import sdk_error
from lutumpy.errors import AdapterError
from lutumpy.models import ToolOffering, ToolSpec, TurnOptions
from lutumpy.testing import Call, Reply, WireServer, serve

MODEL = "gemini-3-flash-preview"
OFFER = ToolOffering((ToolSpec("look", "Look.", {"type": "object"}),), "required")
OPTIONS = TurnOptions()
REPLIES = [
    Reply("Hello."),
    Reply(reasoning="Hm", calls=[Call("look", {"n": 1}), Call("look", {"n": 2})]),
]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve(REPLIES) as running:
        yield running


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "k")


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("Hi")
    return transcript


def client_of(server: WireServer, **options: Any) -> genai.Client:
    return genai.Client(api_key="k", http_options={"base_url": server.url}, **options)


async def test_a_request_and_a_stream_with_a_client_made_here(server: WireServer) -> None:
    async with Gemini(MODEL, base_url=server.url, headers={"X-A": "b"}, timeout=20) as llm:
        turn = await llm.respond(asked(), None, OPTIONS)
        assert (turn.text, turn.model) == ("Hello.", MODEL)
        assert turn.request_id
        stream = llm.open_stream(asked(), OFFER, OPTIONS)
        async with stream as chunks:
            async for chunk in chunks:
                stream.decoder.feed(chunk)
        streamed = stream.decoder.finish()
        assert [call.arguments for call in streamed.calls] == ['{"n":1}', '{"n":2}']
        assert b'"thoughtSignature":"bHV0' in streamed.native
    assert server.requests[1].body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}


def test_the_same_without_an_event_loop(server: WireServer) -> None:
    with Gemini(MODEL, base_url=server.url) as llm:
        assert llm.respond_sync(asked(), None, OPTIONS).text == "Hello."
        stream = llm.open_stream_sync(asked(), OFFER, OPTIONS)
        with stream as chunks:
            for chunk in chunks:
                stream.decoder.feed(chunk)
        assert len(stream.decoder.finish().calls) == 2


async def test_one_client_of_the_users_serves_both_ways(server: WireServer) -> None:
    with client_of(server) as client:
        async with client.aio:
            llm = Gemini(MODEL, client)
            whole = await llm.respond(asked(), OFFER, OPTIONS)
            assert whole.text == "Hello."
            assert len(llm.respond_sync(asked(), OFFER, OPTIONS).calls) == 2
            assert llm._transport.client() is client
            await llm.aclose()
            assert await llm.count_tokens(asked(), OFFER) > 0
            assert llm.count_tokens_sync(asked()) > 0


async def test_the_half_for_event_loops_is_taken_too(server: WireServer) -> None:
    with client_of(server) as client:
        async with client.aio as half:
            llm = Gemini(MODEL, half)
            assert (await llm.respond(asked(), None, OPTIONS)).text == "Hello."
            assert await llm.count_tokens(asked()) > 0
            with pytest.raises(TypeError, match="async client"):
                llm.respond_sync(asked(), None, OPTIONS)


async def test_an_answer_of_the_sdk_is_read_as_it_came(server: WireServer) -> None:
    with client_of(server) as client:
        client.models.generate_content(model=MODEL, contents="Hi")
        answer = client.models.generate_content(model=MODEL, contents="Hi")
        await client.aio.aclose()
    turn = Gemini.response(answer)
    assert [call.name for call in turn.calls] == ["look", "look"]
    assert b'"thoughtSignature":"bHV0' in turn.native


async def test_an_error_is_told_with_its_status(server: WireServer) -> None:
    async with Gemini(MODEL, base_url=server.url, extra={"wrong": 1}) as llm:
        with pytest.raises(AdapterError, match='Unknown name "wrong"') as caught:
            await llm.respond(asked(), None, OPTIONS)
        assert (caught.value.status, caught.value.code) == (400, "INVALID_ARGUMENT")
        with pytest.raises(AdapterError, match="Unknown name"):
            llm.respond_sync(asked(), None, OPTIONS)
        with pytest.raises(AdapterError, match="Unknown name"):
            async with llm.open_stream(asked(), None, OPTIONS):
                pytest.fail("it was entered")
        with (
            pytest.raises(AdapterError, match="Unknown name"),
            llm.open_stream_sync(asked(), None, OPTIONS),
        ):
            pytest.fail("it was entered")


async def test_a_server_that_is_not_there_may_come_back() -> None:
    async with Gemini(MODEL, base_url="http://127.0.0.1:9") as llm:
        for answer in (
            lambda: llm.respond_sync(asked(), None, OPTIONS),
            lambda: llm.count_tokens_sync(asked()),
        ):
            with pytest.raises(AdapterError) as caught:
                answer()
            assert caught.value.retryable
            assert not caught.value.sent
        with pytest.raises(AdapterError):
            await llm.count_tokens(asked())


async def test_missing_credentials_are_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY")
    llm = Gemini(MODEL)
    with pytest.raises(AdapterError, match="GOOGLE_API_KEY") as caught:
        await llm.respond(asked(), None, OPTIONS)
    assert "\n" not in str(caught.value)
    assert not caught.value.sent
    with pytest.raises(AdapterError, match="GOOGLE_API_KEY"):
        llm.respond_sync(asked(), None, OPTIONS)
    with pytest.raises(AdapterError, match="GOOGLE_API_KEY"):
        async with llm.open_stream(asked(), None, OPTIONS):
            pass


async def test_a_missing_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    monkeypatch.delattr(sys.modules["google"], "genai")
    llm = Gemini(MODEL)
    with pytest.raises(AdapterError, match=r"pip install \"\.\[gemini\]\"") as caught:
        await llm.respond(asked(), None, OPTIONS)
    assert not caught.value.sent
    with pytest.raises(AdapterError, match="pip install"):
        llm.respond_sync(asked(), None, OPTIONS)


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(TypeError, match=r"genai\.Client"):
        Gemini(MODEL, object())
    with pytest.raises(TypeError, match="make one"):
        Gemini(MODEL, genai.Client)
    with pytest.raises(TypeError, match="for a client made here"):
        Gemini(MODEL, object(), api_key="k")
    with genai.Client(api_key="k") as client, pytest.raises(TypeError, match="Gemini speaks"):
        AnthropicMessages("claude", client)  # type: ignore[arg-type]
    assert Gemini(MODEL).takes_forced_choice({})


class Own:
    """A client of a user's own, as in tests."""

    def __init__(self, answer: Any) -> None:
        self.models = self
        self.answer = answer

    def generate_content(self, **arguments: Any) -> Any:
        return self._give()

    def generate_content_stream(self, **arguments: Any) -> Iterator[Any]:
        yield self._give()

    def count_tokens(self, **arguments: Any) -> Any:
        return self._give()

    def _give(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_a_client_of_ones_own_answers_in_any_form() -> None:
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    llm = Gemini(MODEL, Own({"candidates": [candidate]}))
    assert llm.respond_sync(asked(), None, OPTIONS).text == "Hi"
    with pytest.raises(TypeError, match="has no `aio`"):
        await llm.respond(asked(), None, OPTIONS)
    with pytest.raises(AdapterError, match="no number of tokens"):
        llm.count_tokens_sync(asked())
    with pytest.raises(AdapterError, match="no response"):
        Gemini(MODEL, Own({})).respond_sync(asked(), None, OPTIONS)


def test_bugs_pass_and_unreadable_chunks_are_told() -> None:
    with pytest.raises(KeyError):
        Gemini(MODEL, Own(KeyError("x"))).respond_sync(asked(), None, OPTIONS)
    with pytest.raises(KeyError):
        Gemini(MODEL, Own(KeyError("x"))).count_tokens_sync(asked())
    stream = Gemini(MODEL, Own(ValueError("Expecting value"))).open_stream_sync(
        asked(), None, OPTIONS
    )
    with pytest.raises(AdapterError, match="can't be read"), stream:
        pytest.fail("it was entered")


FIRST = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}


@pytest.mark.parametrize(
    "chunk",
    ["5", '{"error":"busy"}', '{"error":[1]}', '{"error":{"message":"over"}}',
     '{"candidates":[{"finishReason":5}]}', "{oops"],
)  # fmt: skip
def test_a_chunk_on_which_the_sdk_fails_is_told_with_what_had_come(chunk: str) -> None:
    """What a proxy says has another shape than the API's; the SDK raises a `TypeError` for it."""
    content = f"data: {json.dumps(FIRST)}\n\ndata: {chunk}\n\n".encode()

    # Releases of the SDK have this or the other HTTP library below them.
    below: Any = _api_client.SyncHttpxClient.__base__
    stack: Any = sys.modules[below.__module__.partition(".")[0]]

    def answer(request: Any) -> Any:
        return stack.Response(200, content=content, headers={"content-type": "text/event-stream"})

    arguments = {"transport": stack.MockTransport(answer)}
    options = types.HttpOptions(client_args=arguments, async_client_args=arguments)
    session = Session(asked())

    def stream_sync(llm: Gemini) -> None:
        with session.text_turn(llm).stream_sync() as events:
            events.collect()

    async def stream(llm: Gemini) -> None:
        async with session.text_turn(llm).stream() as events:
            await events.collect()

    with genai.Client(api_key="k", http_options=options) as client:
        llm = Gemini(MODEL, client)
        for ask in (stream_sync, lambda llm: asyncio.run(stream(llm))):
            with pytest.raises(AdapterError, match="can't be read") as raised:
                ask(llm)
            assert raised.value.retryable
            assert raised.value.partial is not None
            assert raised.value.partial.text == "Hi"
    assert len(session.unsettled) == 2  # rule U1


def test_errors_of_the_stack_are_known_by_their_packages() -> None:
    timeout = type("ServerTimeoutError", (Exception,), {"__module__": "aiohttp.client"})
    found = sdk_error(timeout("late"))
    assert found is not None
    assert found.retryable
    refresh = type("RefreshError", (Exception,), {"__module__": "google.auth.exceptions"})
    lost = sdk_error(refresh("expired\nnow"))
    assert lost is not None
    assert "expired now" in str(lost)
    quota = type(
        "ClientError", (type("APIError", (Exception,), {"__module__": "google.genai.errors"}),), {}
    )
    error = quota("429")
    error.code = 429
    error.details = [
        {
            "error": {
                "code": 429,
                "message": "Wait.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"retryDelay": "2s"}],
            }
        }
    ]
    told = sdk_error(error)
    assert told is not None
    assert (told.status, told.code, told.retry_after) == (429, "RESOURCE_EXHAUSTED", 2.0)


class Vertex(Own):
    """A client for Vertex AI."""

    vertexai = True

    def count_tokens(self, **arguments: Any) -> Any:
        self.body = arguments["config"]["http_options"]["extra_body"]
        return type("Count", (), {"total_tokens": 3})()


def test_tokens_are_counted_as_each_host_wants_it() -> None:
    client = Vertex(None)
    assert Gemini(MODEL, client).count_tokens_sync(asked(), OFFER) == 3
    assert set(client.body) == {"contents", "tools"}
    client.vertexai = False
    assert Gemini(MODEL, client).count_tokens_sync(asked()) == 3
    assert client.body["generateContentRequest"]["model"] == f"models/{MODEL}"


@tool_fn
def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


class Tools(Toolset):
    look = tool(look)


async def test_a_loop_of_tools_goes_through_the_servers_rules() -> None:
    """Rule R1: the server refuses a signature that didn't come back on its part."""
    script = [
        Reply(calls=[Call("look", {"n": 1}), Call("look", {"n": 2})]),
        Reply(calls=[Call("look", {"n": 3})]),
        Reply("Done."),
    ]
    with serve(script) as server:
        async with Gemini(MODEL, base_url=server.url) as llm:
            session = Session()
            session.push_user("Look.")
            for _ in range(2):
                session = Session.load(session.dump())
                outcome = await session.text_turn(llm, tools=Tools).collect()
                assert isinstance(outcome, NeedsTools)
                done = [found.complete(f"saw {found.input.n}") for found in outcome.round.calls]
                outcome.round.commit(session, done)
            await session.text_turn(llm, tools=Tools).collect()
        sent = server.requests[2].body["contents"]
    signed = ["thoughtSignature" in part for part in sent[1]["parts"] + sent[3]["parts"]]
    assert signed == [True, False, True]
    assert [len(content["parts"]) for content in sent] == [1, 2, 2, 1, 1]
