"""`AnthropicMessages` through the real SDK, its HTTP transport replaced."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.errors import AdapterError, InvalidToolConstraints, TranscriptError
from lutumpy.models import ResultBlock, ToolOffering, ToolResults, ToolSpec, TurnOptions

httpx2 = pytest.importorskip("httpx2")

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-8",
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "x"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 7},
}
OFFER = ToolOffering(
    (ToolSpec("search", "Search.", {"type": "object", "properties": {"q": {"type": "string"}}}),)
)


class Wire:
    """Answers every request alike, and keeps what came."""

    def __init__(
        self, status: int = 200, body: Any = MESSAGE, headers: dict[str, str] | None = None
    ) -> None:
        self.requests: list[Any] = []
        self._status, self._headers = status, {"request-id": "req_1", **(headers or {})}
        self._content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        headers = {"content-type": "application/json", **self._headers}
        return httpx2.Response(self._status, content=self._content, headers=headers)


def respond_async(
    wire: Wire, transcript: Transcript, options: TurnOptions, offer: Any = OFFER, **settings: Any
) -> Any:
    async def run() -> Any:
        from anthropic import AsyncAnthropic

        transport = httpx2.MockTransport(wire)
        async with AsyncAnthropic(
            api_key="test", max_retries=0, http_client=httpx2.AsyncClient(transport=transport)
        ) as client:
            llm = AnthropicMessages("claude-opus-4-8", client, **settings)
            return await llm.respond(transcript, offer, options)

    return asyncio.run(run())


def respond_sync(
    wire: Wire, transcript: Transcript, options: TurnOptions, offer: Any = OFFER, **settings: Any
) -> Any:
    from anthropic import Anthropic

    transport = httpx2.MockTransport(wire)
    with Anthropic(
        api_key="test", max_retries=0, http_client=httpx2.Client(transport=transport)
    ) as client:
        return AnthropicMessages("claude-opus-4-8", client, **settings).respond_sync(
            transcript, offer, options
        )


both = pytest.mark.parametrize("respond", [respond_async, respond_sync])
Respond = Callable[..., Any]


def started() -> Transcript:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("hi ä")
    return transcript


@both
def test_one_request_and_its_answer(respond: Respond) -> None:
    wire = Wire()
    turn = respond(wire, started(), TurnOptions())
    assert turn == replace(AnthropicMessages.response(MESSAGE), request_id="req_1")
    assert [(c.id, c.name, c.arguments) for c in turn.calls] == [("toolu_1", "search", '{"q":"x"}')]
    (sent,) = wire.requests
    assert sent.url.path == "/v1/messages"
    assert "test" in (sent.headers.get("x-api-key") or sent.headers["authorization"])
    assert sent.headers["content-type"] == "application/json"
    body = json.loads(sent.content)
    assert body.pop("model") == "claude-opus-4-8"
    assert body == AnthropicMessages.request(started(), OFFER, cache="auto")
    assert list(body)[-1] == "messages"


@both
def test_options_of_the_turn_win_over_those_of_the_model(respond: Respond) -> None:
    wire = Wire()
    settings: dict[str, Any] = {
        "temperature": 0.1,
        "max_output_tokens": 11,
        "strict": True,
        "extra": {"top_k": 1, "service_tier": "auto"},
        "headers": {"anthropic-beta": "x-1"},
        "timeout": 3.0,
    }
    respond(wire, started(), TurnOptions(), **settings)
    respond(
        wire,
        started(),
        TurnOptions(temperature=0.2, max_output_tokens=22, extra={"top_k": 2}),
        **settings,
    )
    first, second = [json.loads(request.content) for request in wire.requests]
    assert (first["temperature"], first["max_tokens"], first["top_k"], first["service_tier"]) == (
        0.1,
        11,
        1,
        "auto",
    )
    assert (
        second["temperature"],
        second["max_tokens"],
        second["top_k"],
        second["service_tier"],
    ) == (
        0.2,
        22,
        2,
        "auto",
    )
    assert first["tools"][0]["strict"] is True
    assert wire.requests[0].headers["anthropic-beta"] == "x-1"
    assert wire.requests[0].extensions["timeout"]["read"] == 3.0


@both
def test_what_can_not_be_sent_is_refused_before_it_is(respond: Respond) -> None:
    wire = Wire()
    with pytest.raises(TranscriptError):
        respond(wire, Transcript(), TurnOptions())
    budget = TurnOptions(extra={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    with pytest.raises(InvalidToolConstraints):
        respond(wire, started(), budget, ToolOffering(OFFER.specs, "required"))
    assert wire.requests == []


@both
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request_error", False),
        (429, "rate_limit_error", True),
        (529, "overloaded_error", True),
    ],
)
def test_errors_of_the_provider(respond: Respond, status: int, kind: str, retryable: bool) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_1"}
    with pytest.raises(AdapterError, match=r"No\.") as caught:
        respond(Wire(status, body, {"retry-after": "7"}), started(), TurnOptions())
    error = caught.value
    assert (error.provider, error.status, error.retryable) == (
        "anthropic_messages",
        status,
        retryable,
    )
    assert (error.retry_after, error.request_id, error.code) == (7.0, "req_1", kind)
    assert error.__cause__ is not None
    assert type(error.__cause__).__module__.startswith("anthropic")


@both
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"id": "msg_1"}', b'"x"'])
def test_what_is_no_message_is_an_adapter_error(respond: Respond, body: bytes) -> None:
    with pytest.raises(AdapterError):
        respond(Wire(200, body), started(), TurnOptions())


@both
def test_an_error_body_with_status_200_is_an_adapter_error(respond: Respond) -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(AdapterError, match="Overloaded") as caught:
        respond(Wire(200, body), started(), TurnOptions())
    assert caught.value.retryable
    assert caught.value.request_id == "req_1"


def test_rounds_against_the_test_server_with_a_client_and_with_one_made_here() -> None:
    from anthropic import AsyncAnthropic

    from lutumpy.testing import Call, Reply, wire

    calls = (Call("search", {"q": "x"}), Call("search", {"q": "y"}))
    script = [Reply(text="Let me see.", calls=calls), Reply(text="Done.")]

    def add(transcript: Transcript, turn: AssistantTurn) -> None:
        results = ToolResults(tuple([ResultBlock(c.id, c.name, "found") for c in turn.calls]))
        transcript.append_turn(turn, results if turn.calls else None)

    async def rounds(transcript: Transcript, url: str) -> None:
        async with AsyncAnthropic(base_url=url, api_key="test") as client:
            llm = AnthropicMessages("claude-opus-4-8", client)
            for _ in script:
                add(transcript, await llm.respond(transcript, OFFER, TurnOptions()))

    def rounds_sync(transcript: Transcript, url: str) -> None:
        llm = AnthropicMessages("claude-opus-4-8", base_url=url, api_key="test")
        for _ in script:
            add(transcript, llm.respond_sync(transcript, OFFER, TurnOptions()))

    with wire.serve([*script, *script]) as server:
        first, second = started(), started()
        asyncio.run(rounds(first, server.anthropic_base_url))
        rounds_sync(second, server.anthropic_base_url)
        assert [(request.status, request.problems) for request in server.requests] == [
            (200, ())
        ] * 4
    for transcript in (first, second):
        assert [len(turn.calls) for turn in transcript.turns()] == [2, 0]
        assert transcript.turns()[-1].text == "Done."
        assert transcript.turns()[-1].request_id


def test_settings_of_a_client_go_to_the_client() -> None:
    with pytest.raises(TypeError, match="give them to the client"):
        AnthropicMessages("claude-opus-4-8", object(), api_key="x")  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_sdk_is_not_loaded_before_the_first_request() -> None:
    code = (
        "import sys; from lutumpy.adapters.anthropic import AnthropicMessages; "
        "AnthropicMessages('m', api_key='k');"
        "assert not {'anthropic', 'httpx', 'httpx2'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
