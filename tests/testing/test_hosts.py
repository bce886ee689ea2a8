"""The test server stands for hosts, and refuses what each refuses, in its words (OR7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from lutumpy.testing import Call, Reply, WireServer, serve

Json = dict[str, Any]
TOOL: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
ANY: list[Any] = []


def client_at(server: WireServer, host: str = "") -> openai.OpenAI:
    at = server.at(host) if host else server
    client = openai.OpenAI(base_url=at.openai_base_url, api_key="k", max_retries=0)
    OPEN.append(client)
    return client


OPEN: list[openai.OpenAI] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def conversation(**more: Any) -> list[Any]:
    """A user's word, an assistant's answer with further fields, and a user's word."""
    said: Json = {"role": "assistant", "content": "Hm.", **more}
    return [{"role": "user", "content": "Go."}, said, {"role": "user", "content": "On."}]


def called(**more: Any) -> list[Any]:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said: Json = {"role": "assistant", "content": None, "tool_calls": [call], **more}
    result = {"role": "tool", "tool_call_id": "abcdefghi", "content": "ok"}
    return [{"role": "user", "content": "Go."}, said, result]


def refusal(server: WireServer, host: str, messages: list[Any], **more: Any) -> tuple[int, str]:
    """Status and words of a refusal; 200 and nothing for an answer."""
    try:
        client_at(server, host).chat.completions.create(model="m", messages=messages, **more)
    except openai.APIStatusError as error:
        return error.status_code, error.message
    return 200, ""


REFUSED: list[tuple[str, list[Any], Json, int, str]] = [
    (
        "groq",
        conversation(reasoning_content="Hm."),
        {},
        400,
        "'messages.1' : for 'role:assistant' the following must be satisfied"
        "[('messages.1' : property 'reasoning_content' is unsupported)]",
    ),
    (
        "cerebras",
        conversation(reasoning_content="Hm."),
        {},
        400,
        "messages.1.assistant.reasoning_content: property "
        "'messages.1.assistant.reasoning_content' is unsupported",
    ),
    (
        "mistral",
        conversation(reasoning_content="Hm."),
        {},
        422,
        "body.messages.1.assistant.reasoning_content: Extra inputs are not permitted",
    ),
    (
        "mistral",
        conversation(),
        {"max_completion_tokens": 5},
        422,
        "body.max_completion_tokens: Extra inputs are not permitted",
    ),
    (
        "mistral",
        conversation(),
        {"stream": True, "stream_options": {"include_usage": True}},
        422,
        "body.stream_options: Extra inputs are not permitted",
    ),
    (
        "deepseek",
        called(),
        {"tools": [TOOL]},
        400,
        "Missing `reasoning_content` field in the assistant message at message index 1. For more "
        "information, please refer to "
        "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    ),
    (
        "moonshot",
        called(),
        {"tools": [TOOL]},
        400,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 1",
    ),
    (
        "groq",
        conversation(content=[{"type": "thinking", "thinking": []}]),
        {},
        400,
        "Invalid value: 'thinking'",
    ),
]
TAKEN: list[tuple[str, list[Any], Json]] = [
    ("groq", conversation(reasoning="Hm."), {}),
    ("cerebras", conversation(reasoning="Hm."), {}),
    ("mistral", conversation(content=[{"type": "thinking", "thinking": []}], prefix=False), {}),
    ("mistral", conversation(), {"max_tokens": 5, "stream": True}),
    ("deepseek", called(reasoning_content=""), {"tools": [TOOL]}),
    ("moonshot", called(reasoning_content="Hm."), {"tools": [TOOL]}),
    ("deepseek", conversation(), {"thinking": {"type": "enabled"}}),
    ("api.example.com", conversation(whatever=1), {}),
]


def test_each_host_refuses_in_its_words_and_takes_its_own_OR7() -> None:
    hosts = {host for host, *_ in [*REFUSED, *TAKEN]}
    with serve(None, hosts=hosts) as server:
        for host, messages, more, status, words in REFUSED:
            found = refusal(server, host, messages, **more)
            assert found[0] == status, (host, words, found)
            assert words in found[1]
        for host, messages, more in TAKEN:
            extra = {key: more.pop(key) for key in [*more] if key == "thinking"}
            assert refusal(server, host, messages, **more, extra_body=extra) == (200, ""), host
        assert {request.host for request in server.requests} == hosts


def test_a_host_shows_reasoning_in_its_own_field_OR7() -> None:
    reply = Reply("Four.", reasoning="Two and two make four.")
    with serve([reply] * 4, hosts=["deepseek", "groq"]) as server:
        for host, field in (("deepseek", "reasoning_content"), ("groq", "reasoning")):
            chat = client_at(server, host).chat.completions
            ask: Json = {"model": "m", "messages": [{"role": "user", "content": "2+2"}]}
            whole = chat.create(**ask).choices[0].message.to_dict()
            assert (whole["content"], whole[field]) == ("Four.", "Two and two make four.")
            with chat.create(**ask, stream=True) as stream:
                deltas = [chunk.choices[0].delta.to_dict() for chunk in stream if chunk.choices]
            assert "".join([str(delta.get(field, "")) for delta in deltas]) == whole[field]


def test_what_one_has_sealed_no_other_opens_OR7() -> None:
    thinking = Reply(reasoning="Hm.", calls=[Call("look")])
    with serve(
        [thinking, Reply("Done."), thinking, Reply("Done.")], hosts=["azure", "vertex"]
    ) as s:
        ask: Json = {
            "model": "gpt-5.4",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "tools": [{"type": "function", "strict": False, **TOOL["function"]}],
        }
        items: list[Any] = [{"role": "user", "content": "Go."}]
        answer = client_at(s).responses.create(**ask, input=items).to_dict()
        output: list[Any] = answer["output"]  # type: ignore[assignment]
        result = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": "ok"}
        items += [*output, result]
        with pytest.raises(openai.BadRequestError, match="could not be verified") as refused:
            client_at(s, "azure").responses.create(**ask, input=items)
        assert refused.value.code == "invalid_encrypted_content"
        client_at(s).responses.create(**ask, input=items)

        body: Json = {
            "model": "claude-sonnet-5",
            "max_tokens": 10,
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": "Go."}],
        }
        theirs = anthropic.Anthropic(base_url=s.at("vertex").anthropic_base_url, api_key="k")
        message = theirs.messages.create(**body).to_dict()
        content: list[Any] = message["content"]  # type: ignore[assignment]
        done = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok"}
        body["messages"] += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": [done]},
        ]
        vendor = anthropic.Anthropic(base_url=s.anthropic_base_url, api_key="k")
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            vendor.messages.create(**body)
        vendor.close()
        theirs.messages.create(**body)
        theirs.close()


def test_a_host_that_is_not_served_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown host 'grok'"):
        serve(hosts=["grok"])
    with serve(hosts=["groq"]) as server:
        with pytest.raises(KeyError, match="'xai' is none of the hosts"):
            server.at("xai")
        assert server.at("groq").url == f"{server.url}/at/groq"
