"""Repairs of single mistakes that recorded histories seldom hold."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.doctor import apply_repairs, check_messages, propose_repairs

MARK = {"cache_control": {"type": "ephemeral"}}
ASKED = {"role": "user", "content": "Hi"}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, **MARK}


RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text("x"), "odd", text("y")]}
CALLS = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g")]
RESULTS = [{"functionResponse": {"name": name, "response": {"a": 1}}} for name in ("f", "g")]
EMPTY = {
    "role": "assistant",
    "content": [],
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ],
}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "content": "x"}
CONVERSE_USE = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}


def gemini(*parts: Any) -> list[Any]:
    asked = {"role": "user", "parts": [{"text": "Hi"}]}
    called = [{**CALLS[0], "thoughtSignature": "c2ln"}, CALLS[1]]
    return [asked, {"role": "model", "parts": called}, {"role": "user", "parts": list(parts)}]


def converse(status: Any) -> list[Any]:
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}], "status": status}}
    return [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [CONVERSE_USE]},
        {"role": "user", "content": [result]},
    ]


@pytest.mark.parametrize(
    ("api", "history", "rule"),
    [
        (
            "anthropic_messages",
            [
                ASKED,
                {"role": "assistant", "content": [USE]},
                {"role": "user", "content": [RESULT, text("a"), text("b"), text("c")]},
            ],
            "anthropic.cache_control",
        ),
        ("gemini_generate_content", gemini(*RESULTS, {"text": "beside"}), "gemini.results_alone"),
        ("gemini_generate_content", gemini(*RESULTS[::-1]), "gemini.result_order"),
        ("openai_chat", [ASKED, EMPTY, ANSWERED], "chat.content"),
        ("bedrock_converse", converse("Failed"), "converse.result_status"),
        ("bedrock_converse", converse("odd"), "converse.result_status"),
    ],
)
def test_it_is_found_mended_and_found_no_more(api: Any, history: list[Any], rule: str) -> None:
    def found(messages: Any) -> list[str]:
        return [problem.rule for problem in check_messages(api, messages)]

    assert rule in found(history)
    mended = apply_repairs(history, propose_repairs(api, history, thorough=True))
    assert rule not in found(mended)
    assert len(mended) >= len(history)
