"""generateContent at the test server: through google-genai and plain HTTP, what it answers, what it
refuses, what it remembers.
"""

from __future__ import annotations

import copy
import json
import pathlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from lutumpy.testing import Call, Failure, Reply, WireServer, render, render_stream, serve
from lutumpy.testing.render_gemini import signature

Json = Any
API = "gemini_generate_content"
MODEL = "gemini-3-flash-preview"
FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
VALID: Json = json.loads((FIXTURES / "valid_requests.json").read_text(encoding="utf-8"))[API]
USER: Json = {"role": "user", "parts": [{"text": "Weather in Oslo?"}]}
KEY = {"x-goog-api-key": "k"}
REPLY = Reply(
    "I look it up.",
    calls=[Call("weather", {"city": "Oslo"}), Call("clock")],
    reasoning="Two tools will do.",
    usage=(11, 7),
)
PARENTS = (
    "/v1beta",
    "/v1",
    "/v1beta1/projects/p/locations/us-central1/publishers/google",
    "/v1beta1/publishers/google",
)


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as running:
        yield running


def post(
    server: WireServer, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Status, media type and text of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        server.url + path,
        data,
        {"content-type": "application/json", **(KEY if headers is None else headers)},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["content-type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["content-type"], error.read().decode()


def error_of(answer: tuple[int, str, str]) -> Json:
    return json.loads(answer[2])["error"]


@pytest.fixture
def client(server: WireServer) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=server.url)
    with genai.Client(api_key="k", http_options=options) as made:
        yield made


def test_the_sdk_reads_answers_and_streams(server: WireServer, client: genai.Client) -> None:
    server.play(REPLY, REPLY)
    answer = client.models.generate_content(model=MODEL, contents="Weather?")
    calls = answer.function_calls
    assert calls is not None
    assert [(call.name, call.args) for call in calls] == [
        ("weather", {"city": "Oslo"}),
        ("clock", {}),
    ]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.total_token_count == 18
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="Weather?"))
    text = "".join(
        part.text
        for chunk in chunks
        for part in chunk.parts or ()
        if part.text and not part.thought
    )
    assert text == REPLY.text
    assert [call.name for chunk in chunks for call in chunk.function_calls or ()] == [
        "weather",
        "clock",
    ]
    first, second = server.requests
    assert (first.api, first.body["model"], second.path) == (
        API,
        MODEL,
        second.path.partition("/models")[0] + f"/models/{MODEL}:streamGenerateContent",
    )


def test_the_sdk_raises_what_the_server_refuses(server: WireServer, client: genai.Client) -> None:
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(
            model=MODEL, contents=[types.Content(role="assistant", parts=[types.Part(text="x")])]
        )
    assert (caught.value.code, caught.value.status, caught.value.message) == (
        400,
        "INVALID_ARGUMENT",
        "Please use a valid role: user, model.",
    )
    server.play(Failure(429, "Slow down."), Failure(503, "Overloaded."))
    with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
        client.models.generate_content(model=MODEL, contents="x")
    with pytest.raises(errors.ServerError, match="UNAVAILABLE"):
        client.models.generate_content(model=MODEL, contents="x")


def test_tokens_are_counted_and_models_listed(server: WireServer, client: genai.Client) -> None:
    few = client.models.count_tokens(model=MODEL, contents="x").total_tokens
    many = client.models.count_tokens(model=MODEL, contents="x" * 400).total_tokens
    assert few is not None
    assert many is not None
    assert 0 < few < many
    assert [model.name for model in client.models.list()] == [f"models/{MODEL}"]
    assert client.models.get(model="gemini-2.5-pro").name == "models/gemini-2.5-pro"
    path = f"/v1beta/models/{MODEL}:countTokens"
    whole = {"generateContentRequest": {"contents": [USER], "model": f"models/{MODEL}"}}
    assert json.loads(post(server, path, whole)[2])["totalTokens"] > 0
    assert error_of(post(server, path, {"contents": []}))["code"] == 400
    assert error_of(post(server, path, [1]))["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("parent", PARENTS)
def test_it_listens_wherever_the_api_and_vertex_do(server: WireServer, parent: str) -> None:
    server.play(Reply("hi"), Reply("hi there, you"), Reply("hi there, you"))
    path = f"{parent}/models/{MODEL}"
    status, kind, text = post(server, f"{path}:generateContent", {"contents": [USER]})
    assert (status, kind) == (200, "application/json")
    assert json.loads(text)["candidates"][0]["content"]["parts"] == [{"text": "hi"}]
    status, kind, text = post(server, f"{path}:streamGenerateContent?alt=sse", {"contents": [USER]})
    assert kind == "text/event-stream; charset=utf-8"
    frames = text.split("\r\n\r\n")
    assert frames.pop() == ""
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames]
    status, kind, text = post(server, f"{path}:streamGenerateContent", {"contents": [USER]})
    assert kind == "application/json; charset=UTF-8"
    assert [c["candidates"] for c in json.loads(text)] == [c["candidates"] for c in chunks]
    assert [request.api for request in server.requests] == [API] * 3


def test_a_key_is_wanted_and_may_stand_in_the_address(server: WireServer) -> None:
    server.play(*[Reply("x")] * 2)
    path, body = f"/v1beta/models/{MODEL}:generateContent", {"contents": [USER]}
    answer = post(server, path, body, {})
    assert (answer[0], error_of(answer)["status"]) == (403, "PERMISSION_DENIED")
    assert "unregistered callers" in error_of(answer)["message"]
    assert post(server, f"{path}?key=k", body, {})[0] == 200
    assert post(server, path, body, {"authorization": "Bearer token"})[0] == 200


def test_odd_requests_get_errors_in_its_envelope(server: WireServer) -> None:
    path = f"/v1beta/models/{MODEL}:generateContent"
    answer = post(server, path, b"{")
    assert error_of(answer)["message"].startswith("Invalid JSON payload received.")
    assert error_of(post(server, "/v1beta/nothing", {}))["status"] == "NOT_FOUND"
    assert error_of(post(server, path, [1]))["status"] == "INVALID_ARGUMENT"
    answer = post(server, "/v1beta/models", {})
    assert answer[0] == 405


def test_every_violation_is_refused_over_http_in_the_apis_words(server: WireServer) -> None:
    path = f"/v1beta/models/{MODEL}:generateContent"
    lines = (FIXTURES / "violations_gemini.jsonl").read_text(encoding="utf-8").splitlines()
    sent = 0
    for row in map(json.loads, lines):
        if "value" not in row or "." in row["path"]:
            continue
        body = {**copy.deepcopy(VALID), row["path"]: row["value"]}
        answer = post(server, path, body)
        said = [p.message for p in server.requests[-1].problems if p.certainty == "refused"]
        assert (answer[0], error_of(answer)["message"]) == (400, said[0])
        assert row["message"] in said
        sent += 1
    assert sent >= 7
    server.play(Reply("fine"))
    assert post(server, path, VALID)[0] == 200


def follow_up(part: Json, **changed: Any) -> Json:
    """The request after an answer with one call, its part changed."""
    part = copy.deepcopy(part)
    part["functionCall"].update(changed)
    name = part["functionCall"]["name"]
    result = {"name": name, "response": {"output": "rain"}, "id": part["functionCall"]["id"]}
    return {
        "contents": [
            USER,
            {"role": "model", "parts": [part]},
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
    }


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent"])
def test_a_signature_comes_back_with_the_call_that_it_came_with(
    server: WireServer, method: str
) -> None:
    server.play(Reply(calls=[Call("weather", {"city": "Oslo"})]), Reply("Rain."))
    path = f"/v1beta/models/{MODEL}:"
    answer = json.loads(post(server, path + method, {"contents": [USER]})[2])
    chunk = answer if isinstance(answer, dict) else answer[-1]
    (part,) = chunk["candidates"][0]["content"]["parts"]
    refused = post(server, f"{path}generateContent", follow_up(part, args={"city": "Rome"}))
    assert error_of(refused)["message"] == "Corrupted thought signature."
    unsigned = follow_up(part)
    del unsigned["contents"][1]["parts"][0]["thoughtSignature"]
    refused = post(server, f"{path}generateContent", unsigned)
    assert "is missing a thought_signature" in error_of(refused)["message"]
    assert post(server, f"{path}generateContent", follow_up(part))[0] == 200


# --------------------------------------------------------------- renderings


def parts_of(answer: Json) -> list[Json]:
    return [
        part for candidate in answer["candidates"] for part in candidate["content"].get("parts", ())
    ]


@pytest.mark.parametrize("finish", [None, "length", "content_filter", "paused", "refusal"])
def test_every_rendering_has_the_shape_that_the_sdk_declares(finish: str | None) -> None:
    for text in ("", "hi there, you"):
        for calls in ((), (Call("f", {"a": 1}), Call("g", "oops"))):
            for reasoning in (None, "", "hm"):
                reply = Reply(text, calls, finish, reasoning, "no" if finish == "refusal" else None)
                whole = render(reply, API, number=1, model=MODEL)
                assert types.GenerateContentResponse.model_validate(whole).candidates
                chunks = render_stream(reply, API, number=1, model=MODEL)
                for chunk in chunks:
                    types.GenerateContentResponse.model_validate(chunk)
                called = [part for part in parts_of(whole) if "functionCall" in part]
                assert called == [
                    part for c in chunks for part in parts_of(c) if "functionCall" in part
                ]
                ends = [c["candidates"][0].get("finishReason") for c in chunks]
                assert set(ends[:-1]) <= {None}
                assert ends[-1] == whole["candidates"][0]["finishReason"]
                assert chunks[-1]["usageMetadata"] == whole["usageMetadata"]


@pytest.mark.parametrize(
    ("model", "has_id", "is_signed"),
    [
        ("gemini-3-flash-preview", True, True),
        ("gemini-2.5-flash", False, True),
        ("gemini-2.0-flash", False, False),
        ("scripted", True, True),
    ],
)
def test_ids_and_signatures_go_by_the_model(model: str, has_id: bool, is_signed: bool) -> None:
    first, second = parts_of(render(REPLY, API, number=1, model=model))[2:]
    assert ("id" in first["functionCall"], "thoughtSignature" in first) == (has_id, is_signed)
    assert "thoughtSignature" not in second
    if has_id:
        ids = [first["functionCall"]["id"], second["functionCall"]["id"]]
        assert len(set(ids)) == 2
        assert all(len(call_id) == 8 for call_id in ids)
    named = render(Reply(calls=[Call("f", id="mine")]), API, number=1, model=model)
    assert parts_of(named)[0]["functionCall"]["id"] == "mine"


def test_arguments_are_always_an_object() -> None:
    def args(call: Call, finish: str | None = None) -> Json:
        answer = render(Reply(calls=[call], finish=finish), API, number=1, model=MODEL)
        return parts_of(answer)[0]["functionCall"]["args"]

    assert args(Call("f", "oops")) == {"INVALID_JSON": "oops"}
    assert args(Call("f", '{"x":48151'), "length") == {}
    assert args(Call("f", " ")) == {}
    assert args(Call.of_text("f", "ls")) == {"input": "ls"}


def test_what_a_model_thought_is_counted_apart() -> None:
    usage = render(Reply("x", reasoning="y" * 8, usage=(3, 9)), API, number=1, model=MODEL)[
        "usageMetadata"
    ]
    assert (usage["thoughtsTokenCount"], usage["candidatesTokenCount"]) == (2, 7)
    assert usage["totalTokenCount"] == 12


def test_signatures_differ_by_what_they_sign() -> None:
    assert signature("a", 1) == signature("a", 1)
    assert len({signature("a", 1), signature("a", 2), signature("b", 1)}) == 3


def test_a_code_is_the_reason_of_an_error() -> None:
    from lutumpy.testing.script import render_failure

    error = render_failure(API, 400, "API key not valid.", code="API_KEY_INVALID")["error"]
    assert error["details"][0]["reason"] == "API_KEY_INVALID"
    assert render_failure(API, 418, "?", kind="invalid_request_error")["error"]["status"] == (
        "INVALID_ARGUMENT"
    )
    assert render_failure(API, 599, "?")["error"]["status"] == "INTERNAL"
