"""Batches at the test server, through the vendors' own SDKs, with requests that an adapter has made
and answers that it reads (issue 27, point 5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from lutumpy import Finished, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.testing import Call, Failure, Reply, WireServer, serve

Json = dict[str, Any]
HAIKU, GPT = "claude-haiku-4-5", "gpt-5.4"


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    look = tool(look)


OFFER = Tools.offer()
SCRIPT = [Reply("Sunny."), Reply(calls=[Call("look", {"key": "Oslo"})]), Failure(529, "Overloaded")]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve(SCRIPT) as made:
        yield made


def asked(*texts: str) -> list[Session]:
    sessions = [Session() for _ in texts]
    for session, text in zip(sessions, texts, strict=True):
        session.push_user(text)
    return sessions


# ------------------------------------------------------------------ Messages


@pytest.fixture
def claude(server: WireServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


def test_a_batch_of_messages_is_read_by_the_adapter_and_goes_on(
    server: WireServer, claude: anthropic.Anthropic
) -> None:
    sessions = asked("Bergen?", "Oslo?", "Rome?")
    requests: Any = [
        {
            "custom_id": f"talk-{number}",
            "params": {
                "model": HAIKU,
                **AnthropicMessages.request(session.transcript, OFFER, model=HAIKU),
            },
        }
        for number, session in enumerate(sessions)
    ]
    made = claude.messages.batches.create(requests=requests)
    assert (made.processing_status, made.request_counts.processing) == ("in_progress", 3)
    assert made.results_url is None
    ended = claude.messages.batches.retrieve(made.id)
    assert ended.processing_status == "ended"
    assert (ended.request_counts.succeeded, ended.request_counts.errored) == (2, 1)
    results = {one.custom_id: one.result for one in claude.messages.batches.results(made.id)}
    assert [result.type for result in results.values()] == ["succeeded", "succeeded", "errored"]
    outcomes = [
        OFFER.read(AnthropicMessages.response(results[f"talk-{number}"].message), sessions[number])  # type: ignore[union-attr]
        for number in range(2)
    ]
    first, second = outcomes
    assert isinstance(first, Finished)
    assert first.result.text == "Sunny."
    assert isinstance(second, NeedsTools)
    second.round.commit(sessions[1], [call.complete("ok") for call in second.round.calls])
    assert [turn.calls[0].name for turn in sessions[1].turns()] == ["look"]
    error: Any = results["talk-2"]
    assert error.error.error.message == "Overloaded"
    assert [page.id for page in claude.messages.batches.list()] == [made.id]
    assert claude.messages.batches.cancel(made.id).processing_status == "ended"
    assert claude.messages.batches.delete(made.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.batches.retrieve(made.id)


def test_a_broken_request_of_a_batch_is_an_error_of_its_own(
    server: WireServer, claude: anthropic.Anthropic
) -> None:
    good: Json = {"model": HAIKU, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    wrong = {**good, "messages": [{"role": "user", "content": ""}]}
    made = claude.messages.batches.create(
        requests=[{"custom_id": "a", "params": wrong}, {"custom_id": "b", "params": good}]  # type: ignore[typeddict-item, list-item]
    )
    results: list[Any] = [one.result for one in claude.messages.batches.results(made.id)]
    assert [one.type for one in results] == ["errored", "succeeded"]
    assert results[0].error.error.type == "invalid_request_error"
    assert results[1].message.content[0].text == "Sunny."  # the first takes no answer of the script
    assert [problem.rule for problem in server.requests[0].problems] == ["anthropic.empty_user"]
    refused: list[Any] = [
        {},
        {"requests": []},
        {"requests": [{"custom_id": "not one", "params": good}]},
        {"requests": [{"custom_id": "a"}]},
        {"requests": [{"custom_id": "a", "params": good}, {"custom_id": "a", "params": good}]},
        {"requests": [{"custom_id": "a", "params": {**good, "stream": True}}]},
    ]
    for body in refused:
        with pytest.raises(anthropic.BadRequestError, match="requests"):
            claude.post("/v1/messages/batches", body=body, cast_to=object)


# ------------------------------------------------------------------ OpenAI


@pytest.fixture
def gpt(server: WireServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.openai_base_url, api_key="k", max_retries=0) as client:
        yield client


def lines_of(url: str, bodies: list[Json]) -> bytes:
    """The file of a batch."""
    lines = [
        json.dumps({"custom_id": f"talk-{number}", "method": "POST", "url": url, "body": body})
        for number, body in enumerate(bodies)
    ]
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    ("kind", "endpoint"), [(OpenAIChat, "/v1/chat/completions"), (OpenAIResponses, "/v1/responses")]
)
def test_a_batch_of_openai_is_read_by_the_adapter(
    server: WireServer, gpt: openai.OpenAI, kind: Any, endpoint: Any
) -> None:
    sessions = asked("Bergen?", "Oslo?", "Rome?")
    bodies = [{"model": GPT, **kind.request(one.transcript, OFFER, model=GPT)} for one in sessions]
    file = ("talks.jsonl", lines_of(endpoint, bodies))
    sent = gpt.files.create(file=file, purpose="batch")
    assert (sent.filename, sent.bytes) == ("talks.jsonl", len(file[1]))
    assert gpt.files.content(sent.id).content == file[1]
    made = gpt.batches.create(
        input_file_id=sent.id, endpoint=endpoint, completion_window="24h", metadata={"a": "b"}
    )
    assert (made.status, made.output_file_id) == ("in_progress", None)
    ended = gpt.batches.retrieve(made.id)
    assert ended.status == "completed"
    assert ended.request_counts is not None
    assert (ended.request_counts.completed, ended.request_counts.failed) == (2, 1)
    assert ended.output_file_id is not None
    assert ended.error_file_id is not None
    output = gpt.files.content(ended.output_file_id).text.splitlines()
    answers = [json.loads(line) for line in output]
    assert [answer["custom_id"] for answer in answers] == ["talk-0", "talk-1"]
    turns = [kind.response(answer["response"]["body"]) for answer in answers]
    outcome = OFFER.read(turns[1], sessions[1])
    assert turns[0].text == "Sunny."
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(sessions[1], [call.complete("ok") for call in outcome.round.calls])
    (failed,) = gpt.files.content(ended.error_file_id).text.splitlines()
    assert json.loads(failed)["response"]["status_code"] == 529
    assert [batch.id for batch in gpt.batches.list()] == [made.id]
    assert gpt.batches.cancel(made.id).status == "completed"
    assert gpt.files.retrieve(sent.id).purpose == "batch"
    assert gpt.files.delete(sent.id).deleted


def test_a_batch_that_openai_can_not_read_is_refused(
    server: WireServer, gpt: openai.OpenAI
) -> None:
    body = {"model": GPT, "messages": [{"role": "user", "content": "Hi"}], "stream": False}
    good = gpt.files.create(file=lines_of("/v1/chat/completions", [body]), purpose="batch")
    bad = gpt.files.create(file=b"no JSON\n", purpose="batch")
    options: Json = {"completion_window": "24h", "endpoint": "/v1/chat/completions"}
    refused: list[Json] = [
        {},
        {"input_file_id": good.id, **options, "endpoint": "/v1/nothing"},
        {"input_file_id": "file-0", **options},
        {"input_file_id": bad.id, **options},
        {"input_file_id": good.id, **options, "endpoint": "/v1/responses"},
    ]
    for asked_for in refused:
        with pytest.raises(openai.BadRequestError):
            gpt.post("/batches", body=asked_for, cast_to=object)
    for call in (gpt.batches.retrieve, gpt.files.retrieve):
        with pytest.raises(openai.NotFoundError):
            call("nothing")
    with pytest.raises(openai.BadRequestError, match="purpose"):
        gpt.post("/files", body={"file": "x"}, cast_to=object)
    made = gpt.batches.create(input_file_id=good.id, **options)
    ended = gpt.batches.retrieve(made.id)
    assert ended.error_file_id is None
    # An answer that is no JSON is one that could not be read.
    for _ in range(2):
        gpt.batches.create(input_file_id=good.id, **options)
    server.play(b"<html>")
    made = gpt.batches.create(input_file_id=good.id, **options)
    shown = gpt.files.content(str(gpt.batches.retrieve(made.id).output_file_id)).text
    assert json.loads(shown)["response"]["body"] == {"raw": "<html>"}
    # A body that is neither JSON nor a form is refused as before.
    with pytest.raises(openai.BadRequestError, match="could not parse"):
        gpt.post("/batches", content=b"{", cast_to=object)
