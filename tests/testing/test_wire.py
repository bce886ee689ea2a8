"""The test server, through the real SDK clients: what it answers, what it refuses, what it
remembers.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from lutumpy.models import Api
from lutumpy.testing import Call, Failure, Reply, WireServer, serve

Json = Any
FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
MODEL = "gpt-5-mini"
CLAUDE = "claude-sonnet-5"
USER: Json = {"role": "user", "content": "Weather in Oslo?"}
REPLY = Reply(
    "I look it up.",
    calls=[Call("weather", {"city": "Oslo", "days": [1, 2]}), Call("clock")],
    reasoning="Two tools will do.",
    usage=(11, 7),
)
APIS: tuple[Api, ...] = ("openai_chat", "openai_responses", "anthropic_messages")


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as running:
        yield running


def openai_client(server: WireServer) -> Any:
    return openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0)


def anthropic_client(server: WireServer) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=server.anthropic_base_url, max_retries=0)


def plain(value: Any) -> Any:
    """An SDK object as the JSON that it was made of."""
    return json.loads(value.to_json(indent=None))


def without_numbers(value: Any) -> Any:
    """JSON with ids and times left out: two answers to two requests differ in these alone."""
    if isinstance(value, dict):
        skip = (
            "id",
            "call_id",
            "item_id",
            "created",
            "created_at",
            "completed_at",
            "signature",
            "encrypted_content",
        )
        return {key: without_numbers(item) for key, item in value.items() if key not in skip}
    return [without_numbers(item) for item in value] if isinstance(value, list) else value


# ----------------------------------------------------------------- answers


def test_chat_answers_and_streams_the_same(server: WireServer) -> None:
    server.play(REPLY, REPLY, REPLY)
    with openai_client(server) as client:
        answer = client.chat.completions.create(model=MODEL, messages=[USER])
        chunks = list(
            client.chat.completions.create(
                model=MODEL,
                messages=[USER],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        bare = list(client.chat.completions.create(model=MODEL, messages=[USER], stream=True))
    message = answer.choices[0].message
    assert (message.content, answer.choices[0].finish_reason) == ("I look it up.", "tool_calls")
    assert [
        call.function.arguments for call in message.tool_calls or () if call.type == "function"
    ] == [
        '{"city":"Oslo","days":[1,2]}',
        "{}",
    ]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "I look it up."
    arguments = ["", ""]
    for delta in deltas:
        for part in delta.tool_calls or ():
            assert part.function is not None
            arguments[part.index] += part.function.arguments or ""
    assert arguments == ['{"city":"Oslo","days":[1,2]}', "{}"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage == answer.usage
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert len(bare) == len(chunks) - 1
    assert all("usage" not in chunk.model_fields_set for chunk in bare)


def test_responses_answers_and_streams_the_same(server: WireServer) -> None:
    server.play(REPLY, REPLY)
    with openai_client(server) as client:
        answer = client.responses.create(model=MODEL, input="Weather?", instructions="Be brief.")
        with client.responses.stream(
            model=MODEL, input="Weather?", instructions="Be brief."
        ) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
    assert [item.type for item in answer.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert (answer.status, answer.output_text, answer.instructions) == (
        "completed",
        "I look it up.",
        "Be brief.",
    )
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    parsed = {"parsed", "parsed_arguments"}
    streamed = [{k: v for k, v in plain(item).items() if k not in parsed} for item in final.output]
    for item in streamed:
        for part in item.get("content") or ():
            part.pop("parsed", None)
    assert without_numbers(streamed) == without_numbers([plain(item) for item in answer.output])
    assert final.usage == answer.usage


def test_messages_answers_and_streams_the_same(server: WireServer) -> None:
    server.play(REPLY, REPLY)
    with anthropic_client(server) as client:
        answer = client.messages.create(model=CLAUDE, max_tokens=99, messages=[USER])
        with client.messages.stream(model=CLAUDE, max_tokens=99, messages=[USER]) as stream:
            final = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens) == (
        "tool_use",
        11,
        7,
    )
    assert answer.content[2].input == {"city": "Oslo", "days": [1, 2]}
    assert answer.content[3].input == {}
    assert without_numbers(plain(final)["content"]) == without_numbers(plain(answer)["content"])
    assert (final.stop_reason, final.usage.output_tokens) == ("tool_use", 7)


def test_async_clients_talk_to_a_server_entered_with_async_with() -> None:
    async def run() -> list[str | None]:
        async with serve(None) as server:
            said: list[str | None] = []
            async with openai.AsyncOpenAI(
                api_key="k", base_url=server.openai_base_url, max_retries=0
            ) as client:
                chat: Any = await client.chat.completions.create(model=MODEL, messages=[USER])
                said.append(chat.choices[0].message.content)
                said.append((await client.responses.create(model=MODEL, input="hi")).output_text)
                async with client.responses.stream(model=MODEL, input="hi") as stream:
                    said.append((await stream.get_final_response()).output_text)
                chunks: Any = await client.chat.completions.create(
                    model=MODEL,
                    messages=[USER],
                    stream=True,
                )
                said.append(
                    "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
                )
            async with anthropic.AsyncAnthropic(
                api_key="k", base_url=server.anthropic_base_url, max_retries=0
            ) as claude:
                message: Any = await claude.messages.create(
                    model=CLAUDE, max_tokens=9, messages=[USER]
                )
                said.append(message.content[0].text)
                async with claude.messages.stream(
                    model=CLAUDE, max_tokens=9, messages=[USER]
                ) as events:
                    said.append(await events.get_final_text())
            return said

    assert asyncio.run(run()) == ["OK"] * 6


# ---------------------------------------------------------------- failures


def test_a_broken_transcript_is_a_bad_request_with_the_providers_words(server: WireServer) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with openai_client(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=MODEL,
            messages=[USER, {"role": "assistant", "tool_calls": [call]}, USER],
        )
    error = caught.value
    assert isinstance(error.body, dict)
    assert error.body["message"] == (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_1"
    )
    assert (error.param, error.type, error.code) == (
        "messages.[2].role",
        "invalid_request_error",
        None,
    )
    assert error.request_id == "req_000000000000000000000001"


def test_responses_and_messages_refuse_too(server: WireServer) -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    with openai_client(server) as client, pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model=MODEL, input=[output])
    assert "No tool call found for function call output with call_id call_1." in str(refused.value)
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    with anthropic_client(server) as claude, pytest.raises(anthropic.BadRequestError) as bad:
        claude.messages.create(
            model=CLAUDE,
            max_tokens=9,
            messages=[USER, {"role": "assistant", "content": [use]}, USER],
        )
    assert isinstance(bad.value.body, dict)
    assert bad.value.body["error"] == {
        "type": "invalid_request_error",
        "message": "messages.1: `tool_use` ids were found without `tool_result` blocks immediately "
        "after: toolu_1. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    }
    assert bad.value.request_id == bad.value.body["request_id"]
    assert [(r.api, r.status, r.problems[0].rule) for r in server.requests] == [
        ("openai_responses", 400, "responses.call_for_output"),
        ("anthropic_messages", 400, "anthropic.results_after_uses"),
    ]


def test_scripted_failures_come_with_status_kind_and_headers(server: WireServer) -> None:
    server.play(Failure(429, "slow down", headers={"retry-after": "7"}), Failure(529, "busy"))
    with (
        openai_client(server) as client,
        pytest.raises(openai.RateLimitError, match="slow down") as limited,
    ):
        client.responses.create(model=MODEL, input="hi")
    assert limited.value.response.headers["retry-after"] == "7"
    with anthropic_client(server) as claude, pytest.raises(anthropic.APIStatusError) as busy:
        claude.messages.create(model=CLAUDE, max_tokens=9, messages=[USER])
    assert busy.value.status_code == 529
    assert isinstance(busy.value.body, dict)
    assert busy.value.body["error"]["type"] == "overloaded_error"


def test_a_script_that_ran_out_says_so_and_is_not_retried(server: WireServer) -> None:
    client: Any = openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=2)
    with client, pytest.raises(openai.InternalServerError, match="no answer left"):
        client.responses.create(model=MODEL, input="hi")
    assert len(server.requests) == 1


# --------------------------------------------------------------- raw wire


def post(server: WireServer, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        server.url + path, data, {"content-type": "application/json", **headers}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


BEARER = {"authorization": "Bearer k"}
CLAUDE_HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def test_a_key_is_needed_and_any_key_is_good(server: WireServer) -> None:
    body = {"model": MODEL, "messages": [USER]}
    status, error = post(server, "/v1/chat/completions", body)
    assert (status, error["error"]["type"]) == (401, "invalid_request_error")
    assert error["error"]["message"].startswith("You didn't provide an API key.")
    status, error = post(server, "/v1/messages", body)
    assert (status, error["error"]["type"]) == (401, "authentication_error")
    status, error = post(server, "/v1/messages", body, **{"x-api-key": "k"})
    assert (status, error["error"]["message"]) == (400, "anthropic-version: header is required")


@pytest.mark.parametrize("body", [b"{oops", b"\xff\xfe", b"", b"[" * 100_000])
def test_what_is_no_json_is_refused_as_such(server: WireServer, body: bytes) -> None:
    status, error = post(server, "/v1/responses", body, **BEARER)
    assert status == 400
    assert error["error"]["message"].startswith("We could not parse the JSON body of your request.")
    status, error = post(server, "/v1/messages", body, **CLAUDE_HEADERS)
    assert (status, error["type"], error["error"]["type"]) == (
        400,
        "error",
        "invalid_request_error",
    )


@pytest.mark.parametrize("body", [[], 7, None, "x"])
def test_json_that_is_no_object_is_refused(server: WireServer, body: Any) -> None:
    for path in ("/v1/responses", "/v1/chat/completions"):
        assert post(server, path, body, **BEARER)[0] == 400
    assert post(server, "/v1/messages", body, **CLAUDE_HEADERS)[0] == 400


def test_every_base_url_in_use_leads_to_its_api(server: WireServer) -> None:
    body = {"messages": [USER]}
    server.play(*["raw"] * 3)
    assert post(
        server, "/openai/deployments/gpt-4o/chat/completions", body, **{"api-key": "k"}
    ) == (200, b"raw")
    assert post(server, "/chat/completions", {**body, "model": "m"}, **BEARER) == (200, b"raw")
    assert post(server, "/openai/v1/responses", {"model": "m", "input": "x"}, **BEARER) == (
        200,
        b"raw",
    )
    assert (
        post(server, "/v1/nothing", body, **BEARER)[1]["error"]["message"]
        == "Invalid URL (POST /v1/nothing)"
    )


def test_dicts_bytes_and_functions_are_played_as_they_are(server: WireServer) -> None:
    def answer(api: str, body: Any) -> Json:
        return {"api": api, "model": body["model"]}

    def fail(api: str, body: Any) -> Json:
        raise ZeroDivisionError("no")

    server.play({"a": [1, None]}, b"\x00raw", answer, lambda api, body: Failure(503, "later"), fail)
    assert server.remaining == 5
    body = {"model": MODEL, "messages": [USER]}
    answers = [post(server, "/v1/chat/completions", body, **BEARER) for _ in range(5)]
    assert answers[0] == (200, b'{"a":[1,null]}')
    assert answers[1] == (200, b"\x00raw")
    assert json.loads(answers[2][1]) == {"api": "openai_chat", "model": MODEL}
    assert (answers[3][0], answers[3][1]["error"]["message"]) == (503, "later")
    assert answers[4][1]["error"]["message"] == "The script's function raised ZeroDivisionError: no"
    assert server.remaining == 0


def test_stream_events_are_named_and_end_as_the_real_ones_do(server: WireServer) -> None:
    server.play("", *[Reply("hi")] * 3)
    body = {"model": MODEL, "messages": [USER], "stream": True}
    assert post(server, "/v1/chat/completions", body, **BEARER) == (200, b"")
    raw = post(server, "/v1/chat/completions", body, **BEARER)[1].decode()
    assert raw.endswith("data: [DONE]\n\n")
    assert "event:" not in raw
    for path, headers, more in (
        ("/v1/responses", BEARER, {"input": "x"}),
        ("/v1/messages", CLAUDE_HEADERS, {"messages": [USER], "max_tokens": 9}),
    ):
        raw = post(server, path, {"model": MODEL, "stream": True, **more}, **headers)[1].decode()
        assert "[DONE]" not in raw
        for frame in raw.strip().split("\n\n"):
            name, data = frame.split("\n")
            assert name == f"event: {json.loads(data.removeprefix('data: '))['type']}"


def test_every_violation_is_refused_over_http_in_the_providers_words(server: WireServer) -> None:
    paths = dict(zip(APIS, ("/v1/chat/completions", "/v1/responses", "/v1/messages"), strict=True))
    valid = json.loads((FIXTURES / "valid_requests.json").read_text(encoding="utf-8"))
    lines = (FIXTURES / "violations.jsonl").read_text(encoding="utf-8").splitlines()
    first: dict[str, Json] = {}
    for row in map(json.loads, lines):
        first.setdefault(row["rule"], row)
    for row in first.values():
        if "value" not in row or "." in row["path"]:
            continue
        body = {**valid[row["api"]], **row.get("with", {}), row["path"]: row["value"]}
        status, error = post(server, paths[row["api"]], body, **BEARER, **CLAUDE_HEADERS)
        said = [
            problem.message
            for problem in server.requests[-1].problems
            if problem.certainty == "refused"
        ]
        assert (status, error["error"]["message"]) == (400, said[0])
        assert row["message"] in said
    for api in APIS:
        server.play(Reply("fine"))
        assert post(server, paths[api], valid[api], **BEARER, **CLAUDE_HEADERS)[0] == 200


def test_a_beta_header_allows_what_is_refused_without_it(server: WireServer) -> None:
    body = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 2048,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "messages": [{"role": "user", "content": "Hi"}],
    }
    with anthropic_client(server) as client:
        with pytest.raises(anthropic.BadRequestError, match="must be greater than"):
            client.messages.create(**body)
        server.play(Reply("Yes."))
        betas = "other-2025-01-01, interleaved-thinking-2025-05-14"
        client.messages.create(**body, extra_headers={"anthropic-beta": betas})


def test_requests_are_recorded_with_what_became_of_them(server: WireServer) -> None:
    server.play(Reply("x"))
    body = {"model": MODEL, "messages": [USER]}
    post(server, "/v1/chat/completions", body, **BEARER, **{"X-Mine": "1"})
    post(server, "/v1/chat/completions", {**body, "zzz": 1}, **BEARER)
    first, second = server.requests
    assert (first.api, first.path, first.body, first.status) == (
        "openai_chat",
        "/v1/chat/completions",
        body,
        200,
    )
    assert (first.headers["x-mine"], first.problems) == ("1", ())
    assert (second.status, second.problems[0].rule) == (400, "chat.unknown_parameter")
    assert server.remaining == 0


# ----------------------------------------------------------------- memory


def test_reasoning_that_is_left_out_is_missed(server: WireServer) -> None:
    server.play(Reply(calls=[Call("f")], reasoning="hm"), Reply("a"), Reply("b"))
    with openai_client(server) as client:
        first = client.responses.create(model=MODEL, input="x")
        reasoning, call = (plain(item) for item in first.output)
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}
        question = {"role": "user", "content": "x"}
        client.responses.create(model=MODEL, input=[question, reasoning, call, output])
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            client.responses.create(model=MODEL, input=[question, call, output])
        bare = {key: value for key, value in call.items() if key != "id"}
        client.responses.create(model=MODEL, input=[question, bare, output])


def test_thinking_that_was_changed_is_told(server: WireServer) -> None:
    server.play(Reply("a", reasoning="hm"), Reply("b"))
    with anthropic_client(server) as claude:
        first = plain(claude.messages.create(model=CLAUDE, max_tokens=9, messages=[USER]))
        history = [USER, {"role": "assistant", "content": first["content"]}, USER]
        claude.messages.create(model=CLAUDE, max_tokens=9, messages=history)
        first["content"][0]["thinking"] = "something else"
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            claude.messages.create(model=CLAUDE, max_tokens=9, messages=history)


def test_a_stored_response_is_continued_by_its_id(server: WireServer) -> None:
    server.play(Reply(calls=[Call("f")]), Reply("done"))
    with openai_client(server) as client:
        first = client.responses.create(model=MODEL, input="x")
        call_id = plain(first.output[0])["call_id"]
        with pytest.raises(
            openai.BadRequestError, match=f"No tool output found for function call {call_id}"
        ):
            client.responses.create(model=MODEL, input="go on", previous_response_id=first.id)
        with pytest.raises(
            openai.BadRequestError, match="Previous response with id 'resp_x' not found"
        ):
            client.responses.create(model=MODEL, input="go on", previous_response_id="resp_x")
        output = {"type": "function_call_output", "call_id": call_id, "output": "1"}
        second = client.responses.create(model=MODEL, input=[output], previous_response_id=first.id)
        assert (second.output_text, second.previous_response_id) == ("done", first.id)


# ------------------------------------------------------------------ server


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_was_paused_is_no_prefill(server: WireServer, streamed: bool) -> None:
    """Sent back as the last message, on a model that takes none of the user's (C10)."""
    server.play(Reply("So\n", finish="paused"), Reply("far."))
    request: Any = {"model": "claude-fable-5-1", "max_tokens": 9, "stream": streamed}
    asked = {"role": "user", "content": "go"}
    paused = {"role": "assistant", "content": [{"type": "text", "text": "So\n"}]}
    with anthropic_client(server) as client:
        answer = client.messages.create(**request, messages=[asked])
        if streamed:
            list(answer)
        client.messages.create(**request, messages=[asked, paused])
        other = {"role": "assistant", "content": "So"}
        with pytest.raises(anthropic.BadRequestError, match="prefill"):
            client.messages.create(**request, messages=[asked, other])


def test_many_threads_may_ask_at_once() -> None:
    with serve([Reply(str(n)) for n in range(24)]) as server:
        said: list[str | None] = []

        def ask() -> None:
            with openai_client(server) as client:
                for _ in range(4):
                    answer = client.chat.completions.create(model=MODEL, messages=[USER])
                    said.append(answer.choices[0].message.content)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(said, key=lambda text: int(text or -1)) == [str(n) for n in range(24)]
        assert (len(server.requests), server.remaining) == (24, 0)


def test_the_server_is_gone_after_its_block_and_can_be_entered_again() -> None:
    server = serve(None)
    with pytest.raises(RuntimeError, match="inside its `with` block"):
        _ = server.url
    for _ in range(2):
        with server:
            assert post(server, "/v1/responses", {"model": "m", "input": "x"}, **BEARER)[0] == 200
            with pytest.raises(RuntimeError, match="already"):
                server.__enter__()
    assert not any(thread.name == "lutumpy-wire" for thread in threading.enumerate())


def test_a_taken_port_is_an_error_on_entering() -> None:
    with serve(None) as server:
        taken = serve(None, port=int(server.url.rpartition(":")[2]))
        with pytest.raises(OSError, match=r"[Aa]ddress"):
            taken.__enter__()


def test_without_the_extra_the_error_names_it() -> None:
    code = (
        "import sys\nsys.modules['uvicorn'] = None\n"
        "try:\n    from lutumpy.testing import serve\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install ".[testing]"' in done.stdout
