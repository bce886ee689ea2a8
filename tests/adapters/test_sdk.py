"""The transport that both SDK families share, and how their errors are told."""

from __future__ import annotations

import asyncio
import email.utils
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI, OpenAIError
from openai.types.chat import ChatCompletion

from lutumpy import AssistantTurn, Session, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.provider_errors import adapter_error
from lutumpy.adapters.sdk_body import join_body
from lutumpy.adapters.transport import SdkTransport
from lutumpy.adapters.writing import error_body, reply_object
from lutumpy.errors import AdapterError
from lutumpy.models import ToolOffering, ToolSpec, TurnOptions

REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-2026",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
    ],
}
Handler = Callable[[httpx2.Request], httpx2.Response]


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("héllo")
    return transcript


def client(handler: Handler, retries: int = 0) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    return AsyncOpenAI(
        api_key="k", base_url="http://api.invalid/v1", max_retries=retries, http_client=http
    )


def sync_client(handler: Handler) -> OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return OpenAI(api_key="k", base_url="http://api.invalid/v1", max_retries=0, http_client=http)


async def respond(
    model: OpenAIChat | OpenAIResponses, options: TurnOptions | None = None
) -> AssistantTurn:
    return await model.respond(asked(), None, options or TurnOptions())


async def failure(
    status: int, body: Any = None, headers: Mapping[str, str] | None = None
) -> AdapterError:
    def handler(request: httpx2.Request) -> httpx2.Response:
        content = (
            body
            if isinstance(body, bytes)
            else json.dumps(body or {"error": {"message": "m"}}).encode()
        )
        return httpx2.Response(
            status, content=content, headers={"content-type": "application/json", **(headers or {})}
        )

    with pytest.raises(AdapterError) as caught:
        await respond(OpenAIChat("m", client(handler)))
    return caught.value


# --- success --------------------------------------------------------------------------------------


async def test_the_ready_bytes_go_through_the_clients_own_post() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=REPLY, headers={"x-request-id": "req_1"})

    model = OpenAIChat(
        "m",
        client(handler),
        temperature=0.5,
        headers={"X-Team": "a"},
        extra={"seed": 1, "user": "u"},
    )
    turn = await respond(
        model, TurnOptions(temperature=0.1, max_output_tokens=5, extra={"seed": 2})
    )
    request = seen[0]
    assert (request.url.path, request.headers["authorization"]) == (
        "/v1/chat/completions",
        "Bearer k",
    )
    assert (request.headers["content-type"], request.headers["x-team"]) == ("application/json", "a")
    assert json.loads(request.content) == {
        "model": "m",
        "messages": [{"role": "user", "content": "héllo"}],
        "temperature": 0.1,
        "max_completion_tokens": 5,
        "seed": 2,
        "user": "u",
    }
    assert (turn.text, turn.request_id, turn.response_id) == ("hi", "req_1", "chatcmpl-1")


def test_a_sync_client_does_the_same() -> None:
    turn = OpenAIChat("m", sync_client(lambda _: httpx2.Response(200, json=REPLY))).respond_sync(
        asked(),
        ToolOffering((ToolSpec("f", "", {"type": "object", "properties": {}}),)),
        TurnOptions(),
    )
    assert turn.text == "hi"


async def test_a_passing_failure_is_retried_by_the_sdk() -> None:
    bodies: list[bytes] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(request.content)
        if len(bodies) < 3:
            return httpx2.Response(500, headers={"retry-after-ms": "1"})
        return httpx2.Response(200, json=REPLY)

    assert (await respond(OpenAIChat("m", client(handler, retries=2)))).text == "hi"
    assert len(bodies) == 3
    assert bodies[0] == bodies[2]


async def test_a_client_that_rewrites_the_body_is_given_an_object() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=REPLY)

    azure = AsyncAzureOpenAI(
        api_key="k",
        azure_endpoint="http://azure.invalid",
        api_version="2026-01-01",
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(handler)),
    )
    assert (await respond(OpenAIChat("my-deployment", azure))).text == "hi"
    assert seen[0].url.path == "/openai/deployments/my-deployment/chat/completions"
    assert seen[0].headers["api-key"] == "k"
    assert json.loads(seen[0].content)["messages"][0]["content"] == "héllo"


async def test_anthropics_clients_get_the_form_that_they_need() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"type": "message"}, headers={"request-id": "req_7"})

    def make() -> Any:
        raise AssertionError("a client was given")

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    bedrock = AsyncAnthropicBedrock(api_key="k", aws_region="us-east-1", http_client=http)
    vertex = AsyncAnthropicVertex(
        access_token="t", project_id="p", region="us-east5", http_client=http
    )
    for given, path in (
        (AsyncAnthropic(api_key="k", http_client=http), "/v1/messages"),
        (bedrock, "/model/m/invoke"),
        (vertex, "/v1/projects/p/locations/us-east5/publishers/anthropic/models/m:rawPredict"),
    ):
        transport = SdkTransport(
            "anthropic_messages", "/v1/messages", client=given, make_async=make, make_sync=make
        )
        reply = await transport.send(b'{"model":"m","messages":[],"x":1}')
        assert (reply.request_id, json.loads(reply.content)) == ("req_7", {"type": "message"})
        assert seen[-1].url.path == path
        assert json.loads(seen[-1].content)["x"] == 1
        assert seen[-1].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        json.dumps(REPLY),
        json.dumps(REPLY).encode(),
        httpx2.Response(200, json=REPLY),
        ChatCompletion.model_validate(REPLY),
    ],
    ids=["dict", "text", "bytes", "response", "object"],
)
async def test_a_replaced_post_may_give_a_reply_in_any_form(reply: Any) -> None:
    class Stub(AsyncOpenAI):
        async def post(self, path: str, **options: Any) -> Any:
            assert path == "/chat/completions"
            assert isinstance(options["content"], bytes)
            return reply

    assert (await respond(OpenAIChat("m", Stub(api_key="k")))).text == "hi"


# --- clients --------------------------------------------------------------------------------------


async def test_the_wrong_kind_of_client_is_told_which_method_to_call() -> None:
    def never(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError("nothing is sent")

    with pytest.raises(TypeError, match="collect_sync"):
        await respond(OpenAIChat("m", sync_client(never)))
    with pytest.raises(TypeError, match=r"collect\(\)"):
        OpenAIChat("m", client(never)).respond_sync(asked(), None, TurnOptions())
    with pytest.raises(TypeError, match="base_url"):
        OpenAIChat("m", client(never), base_url="http://x.invalid")


async def test_a_client_is_made_at_the_first_request_and_needs_a_key() -> None:
    model = OpenAIChat("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(AdapterError, match="OPENAI_API_KEY") as caught:
        await respond(model)
    assert not caught.value.retryable
    assert isinstance(caught.value.__cause__, OpenAIError)


def test_a_sync_client_is_made_at_the_first_request_as_well() -> None:
    for model, key in (
        (OpenAIChat("m", base_url="http://127.0.0.1:9/v1"), "OPENAI_API_KEY"),
        (AnthropicMessages("m", base_url="http://127.0.0.1:9"), "ANTHROPIC_API_KEY|auth"),
    ):
        with pytest.raises(AdapterError, match=key):
            model.respond_sync(asked(), None, TurnOptions())


def test_a_model_says_its_name() -> None:
    assert repr(OpenAIChat("gpt-x")) == "OpenAIChat('gpt-x')"
    assert repr(AnthropicMessages("claude-x")) == "AnthropicMessages('claude-x')"


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses, AnthropicMessages])
def test_a_byte_order_mark_before_a_reply_is_no_part_of_it(kind: Any) -> None:
    reply = {
        **REPLY,
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hi"}],
            }
        ],
        "content": [{"type": "text", "text": "hi"}],
    }
    text = "\ufeff" + json.dumps(reply)
    for given in (text, text.encode()):
        assert kind.response(given).text == "hi"


async def test_a_byte_order_mark_before_a_stream_keeps_its_first_event_S1() -> None:
    chunk = {
        "id": "c",
        "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}],
    }
    body = b"\xef\xbb\xbf" + b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode()

    def handle(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": "text/event-stream"})

    session = Session()
    session.push_user("hello")
    async with session.text_turn(OpenAIChat("m", client(handle))).stream() as stream:
        async for _ in stream:
            pass
    assert stream.outcome is not None
    assert stream.outcome.text == "hi"
    session.push_user("again")
    with session.text_turn(OpenAIChat("m", sync_client(handle))).stream_sync() as events:
        list(events)
    assert events.outcome is not None
    assert events.outcome.text == "hi"


def test_a_post_that_gives_no_answer_is_told() -> None:
    class Stub(OpenAI):
        def post(self, *_: Any, **__: Any) -> Any:
            return 5

    with pytest.raises(
        TypeError, match=r"post\(\) gave a int, which is not an answer of a provider"
    ):
        OpenAIChat("m", Stub(api_key="k")).respond_sync(asked(), None, TurnOptions())


def test_a_client_of_our_own_lives_as_long_as_its_event_loop() -> None:
    made: list[AsyncOpenAI] = []

    def make() -> AsyncOpenAI:
        made.append(client(lambda _: httpx2.Response(200, json=REPLY)))
        return made[-1]

    transport = SdkTransport(
        "openai_chat", "/chat/completions", client=None, make_async=make, make_sync=make
    )

    async def twice() -> None:
        await transport.send(b"{}")
        await transport.send(b"{}")

    asyncio.run(twice())
    asyncio.run(twice())
    assert len(made) == 2


@pytest.mark.slow
def test_importing_the_adapter_loads_no_sdk() -> None:
    code = (
        "import sys; from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses; "
        "OpenAIChat('m'); "
        "print([m for m in sys.modules if m.split('.')[0] in ('openai', 'anthropic', 'httpx', "
        "'httpx2')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *[(k, False) for k in (400, 401, 403, 404, 422)],
        *[(k, True) for k in (408, 409, 429, 500, 503, 529)],
    ],
)
async def test_each_status_is_an_adapter_error(status: int, retryable: bool) -> None:
    body = {"error": {"message": "the reason", "type": "t", "code": "c", "param": None}}
    error = await failure(status, body, {"x-request-id": "req_9"})
    assert (error.status, error.retryable, error.code, error.request_id) == (
        status,
        retryable,
        "c",
        "req_9",
    )
    assert str(error) == f"openai_chat: HTTP {status}: the reason"
    assert isinstance(error.__cause__, OpenAIError)


async def test_the_server_has_the_last_word_on_retrying() -> None:
    assert (await failure(400, headers={"x-should-retry": "true"})).retryable
    assert not (await failure(500, headers={"x-should-retry": "false"})).retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1.5"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
async def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert (await failure(400, headers=headers)).retry_after == seconds


async def test_retry_after_as_a_date_to_come() -> None:
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 50 < ((await failure(400, headers={"retry-after": date})).retry_after or 0) <= 60


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b'{"detail": "gone"}', b"[]"])
async def test_error_bodies_of_any_kind(body: bytes) -> None:
    error = await failure(502, body)
    assert error.status == 502
    assert "HTTP 502: " in str(error)


async def test_the_words_of_an_error_of_another_form_are_told() -> None:
    """Google's endpoint for OpenAI's clients gives errors in a list; gateways have other forms.
    OpenAI's SDK shows nothing of them.
    """
    error = await failure(429, [{"error": {"message": "over quota", "code": "quota"}}])
    assert str(error) == "openai_chat: HTTP 429: over quota"
    assert error.code == "quota"
    assert "over quota" in str(await failure(400, {"errors": [{"reason": "over quota"}]}))


@pytest.mark.parametrize("cause", [httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow")])
async def test_without_an_answer_there_is_no_status_and_it_may_succeed_later(
    cause: Exception,
) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        raise cause

    with pytest.raises(AdapterError) as caught:
        await respond(OpenAIResponses("m", client(handler)))
    assert (caught.value.status, caught.value.retryable) == (None, True)
    assert str(cause) in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b"{}", b'{"choices": null}'])
async def test_what_is_no_answer_is_told_with_its_text(body: bytes) -> None:
    error = await failure(200, body or b" ")
    assert (error.status, error.retryable) == (None, False)


async def test_an_error_with_status_200() -> None:
    error = await failure(200, {"error": {"message": "no capacity", "code": 503}})
    assert (error.status, error.retryable, str(error).endswith("no capacity")) == (503, True, True)


async def test_a_failed_response_is_an_error_on_the_wire() -> None:
    failed = {
        "status": "failed",
        "output": [],
        "error": {"code": "server_error", "message": "sorry"},
    }
    with pytest.raises(AdapterError, match="sorry") as caught:
        await respond(OpenAIResponses("m", client(lambda _: httpx2.Response(200, json=failed))))
    assert (caught.value.code, caught.value.retryable) == ("server_error", True)
    assert OpenAIResponses.response(failed).finish_reason == "unknown"


async def test_what_is_no_error_of_the_sdk_passes_through() -> None:
    class Broken(AsyncOpenAI):
        async def post(self, path: str, **options: Any) -> Any:
            raise self.problem

        problem: BaseException = RuntimeError("a bug")

    broken = Broken(api_key="k")
    for problem in (RuntimeError("a bug"), KeyboardInterrupt(), asyncio.CancelledError()):
        broken.problem = problem
        with pytest.raises(type(problem)):
            await respond(OpenAIChat("m", broken))


def test_an_error_without_attributes_is_still_told() -> None:
    error = adapter_error(OpenAIError(""), "openai_chat")
    assert (str(error), error.retryable, error.code) == ("openai_chat: OpenAIError", False, None)


# --- small pieces ---------------------------------------------------------------------------------


def test_join_body() -> None:
    assert join_body({}) == b"{}"
    assert json.loads(join_body({"a": b"[1]", 'od"d': b"null", "é": b"2"})) == {
        "a": [1],
        'od"d': None,
        "é": 2,
    }


def test_reply_object_takes_every_form_and_leaves_a_mapping_alone() -> None:
    assert reply_object(REPLY, "p") is REPLY
    assert reply_object(MappingProxyType(REPLY), "p") == REPLY
    assert (
        reply_object(ChatCompletion.model_validate(REPLY), "p")["choices"][0]["message"]["content"]
        == "hi"
    )
    assert reply_object(httpx2.Response(200, json=REPLY), "p") == REPLY
    with pytest.raises(AdapterError, match="not a JSON object"):
        reply_object(object(), "p")


def test_error_body_finds_errors_only() -> None:
    assert error_body(REPLY, "p") is None
    assert error_body({**REPLY, "error": None}, "p") is None
    overloaded = error_body(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "p"
    )
    assert overloaded is not None
    assert (overloaded.retryable, overloaded.code, overloaded.status) == (
        True,
        "overloaded_error",
        None,
    )


# --- closing --------------------------------------------------------------------------------------


class OwnClients:
    """Makes clients for a transport, and remembers them."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def make_async(self) -> AsyncOpenAI:
        self.made.append(client(lambda _: httpx2.Response(200, json=REPLY)))
        return self.made[-1]

    def make_sync(self) -> OpenAI:
        self.made.append(sync_client(lambda _: httpx2.Response(200, json=REPLY)))
        return self.made[-1]

    def model(self) -> OpenAIChat:
        model = OpenAIChat("m")
        model._transport = SdkTransport(
            "openai_chat",
            "/chat/completions",
            client=None,
            make_async=self.make_async,
            make_sync=self.make_sync,
        )
        return model


async def test_a_client_made_here_is_closed_with_the_adapter_and_made_again_when_needed() -> None:
    clients = OwnClients()
    async with clients.model() as model:
        await model.respond(asked(), None, TurnOptions())
        model.respond_sync(asked(), None, TurnOptions())
        assert [one.is_closed() for one in clients.made] == [False, False]
    assert [one.is_closed() for one in clients.made] == [True, True]
    await model.respond(asked(), None, TurnOptions())
    assert [one.is_closed() for one in clients.made] == [True, True, False]
    await model.aclose()
    await model.aclose()  # there is nothing left to close
    assert all(one.is_closed() for one in clients.made)


def test_a_sync_client_made_here_is_closed_without_an_event_loop() -> None:
    clients = OwnClients()
    with clients.model() as model:
        model.respond_sync(asked(), None, TurnOptions())
    assert [one.is_closed() for one in clients.made] == [True]


def test_a_client_made_here_is_closed_by_its_own_event_loop() -> None:
    clients = OwnClients()
    model = clients.model()

    async def once() -> None:
        await model.respond(asked(), None, TurnOptions())

    asyncio.run(once())
    assert [one.is_closed() for one in clients.made] == [True]
    asyncio.run(model.aclose())


def test_a_client_of_a_loop_that_ended_without_closing_it_is_let_go_and_not_touched() -> None:
    clients = OwnClients()
    model = clients.model()

    async def once() -> None:
        await model.respond(asked(), None, TurnOptions())

    loop = asyncio.new_event_loop()
    loop.run_until_complete(once())
    loop.close()
    asyncio.run(once())
    asyncio.run(model.aclose())
    assert [one.is_closed() for one in clients.made] == [False, True]


async def test_a_client_that_was_given_stays_open() -> None:
    theirs, sync = (
        client(lambda _: httpx2.Response(200, json=REPLY)),
        sync_client(lambda _: httpx2.Response(200, json=REPLY)),
    )
    async with OpenAIChat("m", theirs) as model:
        await model.respond(asked(), None, TurnOptions())
    with OpenAIChat("m", sync) as model:
        model.respond_sync(asked(), None, TurnOptions())
    assert not theirs.is_closed()
    assert not sync.is_closed()


# --- what is given by mistake ---------------------------------------------------------------------


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses, AnthropicMessages])
def test_a_session_in_place_of_its_transcript_is_told(adapter: Any) -> None:
    session = Session()
    session.push_user("hi")
    for call in (adapter.request, adapter.messages):
        with pytest.raises(
            TypeError, match=r"a Transcript is needed, not Session; use session\.transcript"
        ):
            call(session)
        with pytest.raises(TypeError, match=r"a Transcript is needed, not list$"):
            call([{"role": "user", "content": "hi"}])
        assert call(session.transcript)


@pytest.mark.parametrize(
    ("code", "retryable"), [("vector_store_timeout", True), ("invalid_prompt", False)]
)
def test_an_error_in_an_answer_may_pass_or_not_by_its_word(code: str, retryable: bool) -> None:
    found = error_body({"error": {"code": code, "message": "no"}}, "openai_responses")
    assert found is not None
    assert (found.code, found.retryable) == (code, retryable)
