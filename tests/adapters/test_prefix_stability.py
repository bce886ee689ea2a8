"""What was sent stays as it is: each request's tools and messages begin with those of the request
before (rules A4, R5).

Prompt caches live on it, and newer models sign their reasoning over it. Left aside are breakpoints
of a cache and ephemeral messages, which leave; so is an offer that changes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ResultBlock, ToolOffering, ToolResults, ToolSpec

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "additionalProperties": False,
}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NAMES = ("search", "read_file", "delete_file")
EPHEMERAL = "left aside: "
BETWEEN = "(The results are noted.)"
"""What keeps an ephemeral message from the results before it, for models that want it."""

texts = st.text('ab\n ä"', min_size=1, max_size=8).filter(str.strip)
arguments = st.dictionaries(
    st.sampled_from(["q", "n"]), texts | st.integers() | st.floats(0, 9), max_size=2
)
calls = st.lists(st.tuples(st.sampled_from(NAMES), arguments), max_size=3)


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, str, Any]:
    return draw(st.sampled_from(list(ANSWERS))), draw(texts), draw(calls)


def chat_answer(number: int, text: str, called: list[tuple[str, Any]]) -> AssistantTurn:
    entries = [
        {
            "id": f"c{number}_{k}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for k, (name, given) in enumerate(called)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": entries} if entries else {})}
    return OpenAIChat.response({"choices": [{"message": message, "finish_reason": "stop"}]})


def responses_answer(number: int, text: str, called: list[tuple[str, Any]]) -> AssistantTurn:
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "e"},
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        },
    ]
    output += [
        {
            "type": "function_call",
            "id": f"fc_{number}_{k}",
            "call_id": f"c{number}_{k}",
            "name": n,
            "arguments": json.dumps(a),
        }
        for k, (n, a) in enumerate(called)
    ]
    return OpenAIResponses.response({"status": "completed", "output": output})


def messages_answer(number: int, text: str, called: list[tuple[str, Any]]) -> AssistantTurn:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "", "signature": f"s{number}"},
        {"type": "text", "text": text},
    ]
    content += [
        {"type": "tool_use", "id": f"c{number}_{k}", "name": n, "input": a}
        for k, (n, a) in enumerate(called)
    ]
    return AnthropicMessages.response(
        {"content": content, "stop_reason": "tool_use" if called else "end_turn"}
    )


def gemini_answer(number: int, text: str, called: list[tuple[str, Any]]) -> AssistantTurn:
    parts: list[dict[str, Any]] = [
        {"text": "hm", "thought": True},
        {"text": text},
        *(
            {"functionCall": {"id": f"c{number}_{k}", "name": n, "args": a}}
            for k, (n, a) in enumerate(called)
        ),
    ]
    parts[-1]["thoughtSignature"] = f"s{number}AA"
    content = {"role": "model", "parts": parts}
    return Gemini.response({"candidates": [{"content": content, "finishReason": "STOP"}]})


def converse_answer(number: int, text: str, called: list[tuple[str, Any]]) -> AssistantTurn:
    content: list[dict[str, Any]] = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": f"s{number}"}}},
        {"text": text},
    ]
    content += [
        {"toolUse": {"toolUseId": f"c{number}_{k}", "name": n, "input": a}}
        for k, (n, a) in enumerate(called)
    ]
    message = {"role": "assistant", "content": content}
    stop = "tool_use" if called else "end_turn"
    return BedrockConverse.response({"output": {"message": message}, "stopReason": stop})


ANSWERS = {
    "chat": chat_answer,
    "responses": responses_answer,
    "messages": messages_answer,
    "gemini": gemini_answer,
    "converse": converse_answer,
}

# (adapter, the key of its conversation, options of its requests)
REQUESTS: list[tuple[Any, str, dict[str, Any]]] = [
    (OpenAIChat, "messages", {}),
    (OpenAIResponses, "input", {}),
    (AnthropicMessages, "messages", {}),
    (AnthropicMessages, "messages", {"cache": "auto"}),
    (AnthropicMessages, "messages", {"cache": "auto", "model": "claude-opus-4-8"}),
    (Gemini, "contents", {}),
    (Gemini, "contents", {"model": "gemini-3-flash-preview"}),
    (BedrockConverse, "messages", {}),
    (BedrockConverse, "messages", {"cache": "auto", "model": CLAUDE}),
    (BedrockConverse, "messages", {"cache": "auto", "model": "us.amazon.nova-lite-v1:0"}),
    (BedrockConverse, "messages", {"model": "us.meta.llama3-1-70b-instruct-v1:0"}),
]
POINT: dict[str, Any] = {"cachePoint": {"type": "default"}}


def without_breakpoints(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_breakpoints(inner)
            for key, inner in value.items()
            if key != "cache_control"
        }
    if not isinstance(value, list):
        return value
    return [without_breakpoints(inner) for inner in value if inner != POINT]


def offering(strict: bool) -> ToolOffering:
    """A new offer each time, as applications make them: equal ones give equal bytes."""
    return ToolOffering(tuple([ToolSpec(name, f"Does {name}.", SCHEMA, strict) for name in NAMES]))


def rendered(
    adapter: Any, key: str, options: dict[str, Any], transcript: Transcript, strict: bool
) -> tuple[str, list[str]]:
    """The request's tools and each of its messages as JSON text, ephemeral ones left out."""
    body = without_breakpoints(adapter.request(transcript, offering(strict), **options))
    entries = [
        json.dumps(block, ensure_ascii=False) for entry in body[key] for block in blocks_of(entry)
    ]
    tools = body["toolConfig"] if adapter is BedrockConverse else body["tools"]
    return json.dumps(tools), [
        entry for entry in entries if EPHEMERAL not in entry and BETWEEN not in entry
    ]


def blocks_of(entry: dict[str, Any]) -> list[Any]:
    """A message; or the blocks of one, where what the user says in a row is one message."""
    for name in ("parts", "content"):
        blocks = entry.get(name)
        if isinstance(blocks, list) and "type" not in blocks[0]:
            return [[entry["role"], block] for block in blocks]
    return [entry]


@pytest.mark.parametrize(("adapter", "key", "options"), REQUESTS)
@given(
    system=st.lists(texts, max_size=2),
    turns=st.lists(st.tuples(texts, st.booleans(), answers()), min_size=2, max_size=5),
    strict=st.booleans(),
)
def test_a_request_begins_with_the_one_before(
    adapter: Any,
    key: str,
    options: dict[str, Any],
    system: list[str],
    turns: list[Any],
    strict: bool,
) -> None:
    transcript = Transcript()
    for text in system:
        transcript.push_system(text)
    before: tuple[str, list[str]] | None = None
    last_results = False
    for number, (text, ephemeral, (api, said, called)) in enumerate(turns):
        if not last_results:
            transcript.push_user(text)
        if ephemeral:
            transcript.push_ephemeral_user(EPHEMERAL + text)
        now = rendered(adapter, key, options, transcript, strict)
        if before is not None:
            assert now[0] == before[0]
            assert now[1][: len(before[1])] == before[1]
            assert len(now[1]) > len(before[1])
        before = now
        turn = ANSWERS[api](number, said, called)
        # No reasoning that is signed over an ephemeral message: it would leave together with that.
        if ephemeral and turn.signed:
            turn = chat_answer(number, said, called)
        transcript.request_succeeded(turn, len(transcript))
        results = [ResultBlock(call.id, call.name, "found") for call in turn.calls]
        transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
        last_results = bool(results)
