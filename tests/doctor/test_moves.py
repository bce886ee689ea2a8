"""What a history may hold at a host: the doctor reads the facts that adapters and server read,
finds what an adapter leaves out, and takes just that away (OR2, OR3, OR4, OR7).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from each_case import each

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import HostFacts, OpenAIChat, OpenAIResponses
from lutumpy.doctor import Problem, Repair, apply_repairs, check_messages, propose_repairs
from lutumpy.models import TurnOrigin
from lutumpy.rules.host_facts import HOST_FACTS

Json = dict[str, Any]
CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
CONVERSE, GEMINI = "bedrock_converse", "gemini_generate_content"
OF_HOSTS = ("host_field", "host_reasoning", "sealed")
FIXTURES = Path(__file__).parents[1] / "fixtures"


def by(api: str, host: str | None, model: str | None = "m") -> TurnOrigin:
    return TurnOrigin(api, host, model)


def of_hosts(found: list[Any]) -> list[Any]:
    """The problems or repairs that are about hosts."""
    return [one for one in found if one.rule.partition(".")[2] in OF_HOSTS]


def found(api: str, history: Any, **options: Any) -> list[tuple[str, str, tuple[Any, ...]]]:
    problems: list[Problem] = of_hosts(check_messages(api, history, **options))
    return [(p.rule.partition(".")[2], p.certainty, p.path) for p in problems]


def mended(api: str, history: list[Any], **options: Any) -> list[Any]:
    """The repaired history, of which nothing is left to say about hosts."""
    repairs: list[Repair] = propose_repairs(api, history, **options)
    after = apply_repairs(history, repairs)
    assert of_hosts(check_messages(api, after, **options)) == []
    assert propose_repairs(api, after, **options) == []
    return after


def thought(**more: Any) -> list[Json]:
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes.", **more},
        {"role": "user", "content": "On."},
    ]


# ------------------------------------------------------------------ Chat Completions


def test_a_host_says_what_it_refuses_in_its_own_words_OR7() -> None:
    history = thought(reasoning_content="Hm.")
    (problem,) = check_messages(CHAT, history, host="groq")
    assert (problem.rule, problem.certainty, problem.status) == ("chat.host_field", "refused", 400)
    assert "property 'reasoning_content' is unsupported" in problem.message
    assert problem.path == (1, "reasoning_content")
    (problem,) = check_messages(CHAT, history, host="https://api.mistral.ai/v1")
    assert (problem.status, problem.code) == (422, "extra_forbidden")
    # The readable text goes where the host takes it, and nowhere else.
    assert mended(CHAT, history, host="groq")[1] == {**thought()[1], "reasoning": "Hm."}
    assert mended(CHAT, history, host="mistral")[1] == thought()[1]
    # Nothing is claimed of a host that takes any field, nor where no host was named.
    for host in (None, "xai", "compatible", "deepseek"):
        assert check_messages(CHAT, history, host=host) == []


def test_facts_of_ones_own_stand_for_a_host_OR7() -> None:
    groq = HOST_FACTS["groq"]
    proxied = HostFacts(unknown_field=groq.unknown_field, reasoning_field="thoughts")
    history = thought(reasoning="Hm.")
    assert found(CHAT, history, host=groq) == []
    assert found(CHAT, history, host=proxied) == [("host_field", "refused", (1, "reasoning"))]
    assert mended(CHAT, history, host=proxied)[1] == {**thought()[1], "thoughts": "Hm."}
    assert found(CHAT, history, host=HostFacts()) == []


def test_a_host_that_wants_its_reasoning_gets_an_empty_text_OR4() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    history = [*thought(tool_calls=[call])[:2], result, {"role": "user", "content": "On."}]
    for host in ("deepseek", "moonshot"):
        assert found(CHAT, history, host=host) == [("host_reasoning", "some", (1,))]
        assert mended(CHAT, history, host=host)[1]["reasoning_content"] == ""
    history[1]["reasoning"] = "Hm."
    after = mended(CHAT, history, host="deepseek", origin=by(CHAT, "groq"))
    assert after[1]["reasoning_content"] == "Hm."
    assert "reasoning" not in after[1]


def test_what_another_host_said_is_found_where_its_origin_is_told_OR2() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "sealed"}},
        "index": 0,
    }
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    text = {"type": "text", "text": "Yes."}
    history = [
        *thought(content=[thinking, text], tool_calls=[call], padding="x")[:2],
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]
    there: Json = {"host": "xai", "origin": by(CHAT, "mistral")}
    assert found(CHAT, history, **there) == [
        ("host_field", "some", (1, "padding")),
        ("host_field", "some", (1, "tool_calls", 0, "extra_content")),
        ("host_field", "some", (1, "content", 0)),
    ]
    after = mended(CHAT, history, **there)
    plain = {key: value for key, value in call.items() if key != "extra_content"}
    assert after[1] == {"role": "assistant", "content": [text], "tool_calls": [plain]}
    # Its own host takes all of it, parts of its own among them.
    assert check_messages(CHAT, history, host="mistral", origin=by(CHAT, "mistral")) != []
    assert "chat.parts" not in [p.rule for p in check_messages(CHAT, history, host="mistral")]
    assert found(CHAT, history, host="xai", origin=by(CHAT, "api.x.ai")) == []
    assert found(CHAT, history, host="xai", origin=by(CHAT, None), model="m-2026-01-01") == []
    assert found(CHAT, history, origin=by(CHAT, "xai", "other"), model="m") != []


def test_what_is_sealed_in_a_part_is_found_and_left_out_OR3() -> None:
    summary = [{"type": "summary_text", "text": "Hm.", "signature": "sealed"}]
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sealed"}
    parts = [{"type": "reasoning", "summary": summary}, {"type": "text", "text": "Yes."}, thinking]
    history = [*thought(content=parts)[:2], {"role": "user", "content": "On."}]
    options: Json = {"host": "databricks", "origin": by(CHAT, "databricks", "a")}
    assert found(CHAT, history, model="a", **options) == []
    assert found(CHAT, history, model="c", **options) == [
        ("sealed", "some", (1, "content", 0)),
        ("sealed", "some", (1, "content", 2)),
    ]
    assert mended(CHAT, history, model="c", **options)[1]["content"] == [parts[1]]


def test_of_many_makers_one_opens_nothing_of_another_OR3() -> None:
    sealed = {"type": "reasoning.text", "text": "Hm.", "signature": "sealed"}
    details = [sealed, {"type": "reasoning.encrypted", "data": "sealed"}]
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
        {"type": "redacted_thinking", "data": "sealed"},
    ]
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "sealed"}},
    }
    history = [
        *thought(
            reasoning="Hm.", reasoning_details=details, thinking_blocks=blocks, tool_calls=[call]
        )[:2],
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]
    options: Json = {"host": "openrouter", "origin": by(CHAT, "openrouter", "a/b")}
    assert found(CHAT, history, model="a/b", **options) == []
    assert found(CHAT, history, model="c/d", **options) == [
        ("sealed", "some", (1, "reasoning_details", 0, "signature")),
        ("sealed", "some", (1, "reasoning_details", 1, "data")),
        ("sealed", "some", (1, "thinking_blocks", 0, "signature")),
        ("sealed", "some", (1, "thinking_blocks", 1, "data")),
        ("sealed", "some", (1, "tool_calls", 0, "extra_content")),
    ]
    after = mended(CHAT, history, model="c/d", **options)
    assert {*after[1]} == {"role", "content", "reasoning", "tool_calls"}
    assert {*after[1]["tool_calls"][0]} == {"id", "type", "function"}


NAMED = {"api.inference.crusoecloud.com": "together", "ollama.com": "ollama"}


def plain_message(message: Mapping[str, Any]) -> Json:
    """A message without ids and what says nothing."""
    told = {key: value for key, value in message.items() if value and key != "refusal"}
    if message.get("tool_calls"):
        told["tool_calls"] = [call.get("function") for call in message["tool_calls"]]
    return told


@pytest.mark.pure
@pytest.mark.slow
def test_a_repaired_history_is_what_the_adapter_sends_OR7() -> None:
    """Each recorded answer of a compatible host, moved to each host with facts."""
    moves = 0
    for line in (FIXTURES / "compat_openai_chat.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        choices = row["response"].get("choices") or [{}]
        message = choices[0].get("message")
        if row["status"] != 200 or not message or message.get("function_call"):
            continue
        home, model = NAMED.get(row["host"], row["host"]), row["response"]["model"]
        history = [{"role": "user", "content": "Go."}, message]
        calls = message.get("tool_calls") or []
        history += [{"role": "tool", "tool_call_id": c.get("id"), "content": "ok"} for c in calls]
        history.append({"role": "user", "content": "On."})
        if any(problem.certainty == "refused" for problem in check_messages(CHAT, history)):
            continue
        known = Transcript.from_messages(CHAT, history, host=home, model=model)
        for host, facts in HOST_FACTS.items():
            told: Json = {"host": host, "model": model, "origin": by(CHAT, home, model)}
            after = mended(CHAT, history, **told)
            sent = OpenAIChat.request(known, model=model, host=facts)["messages"]
            assert plain_message(after[1]) == plain_message(sent[1]), (row["source"], host)
            moves += after[1] != message
    assert moves > 200


# ------------------------------------------------------------------ the other APIs


RESPONSES_HISTORY: list[Json] = [
    {"role": "user", "content": "Go."},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed-for-one"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}],
    },
    {"role": "user", "content": "On."},
]
MESSAGES_HISTORY: list[Json] = [
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {
                "type": "text",
                "text": "Found.",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "https://a.example",
                        "title": "A",
                        "encrypted_index": "sealed",
                        "cited_text": "a",
                    }
                ],
            },
        ],
    },
    {"role": "user", "content": "On."},
]


def test_items_of_another_host_of_responses_OR2_OR3() -> None:
    there: Json = {"host": "xai", "origin": by(RESPONSES, "openai")}
    assert found(RESPONSES, RESPONSES_HISTORY, **there) == [
        ("sealed", "some", (1,)),
        ("host_field", "some", (2,)),
        ("host_field", "some", (3, "id")),
        ("host_field", "some", (5, "id")),
        ("host_field", "some", (5, "content", 0, "logprobs")),
    ]
    after = mended(RESPONSES, RESPONSES_HISTORY, **there)
    known = Transcript.from_messages(RESPONSES, RESPONSES_HISTORY, host="openai", model="m")
    assert after == OpenAIResponses.request(known, model="m", host=HOST_FACTS["xai"])["input"]
    # OpenAI's own refusal is sure; and at home nothing is found.
    home = check_messages(RESPONSES, RESPONSES_HISTORY, host="openai", origin=by(RESPONSES, "xai"))
    refused = [p for p in home if p.rule == "responses.sealed"]
    assert [(p.certainty, p.code) for p in refused] == [("refused", "invalid_encrypted_content")]
    assert "seal...-one" in refused[0].message
    assert of_hosts(check_messages(RESPONSES, RESPONSES_HISTORY, host="openai")) == []


def test_ids_stay_where_the_host_is_the_same_and_the_model_another_OR3() -> None:
    model: Json = {"host": "openrouter", "origin": by(RESPONSES, "openrouter", "a/b")}
    assert found(RESPONSES, RESPONSES_HISTORY, model="c/d", **model) == [("sealed", "some", (1,))]
    shell = {"type": "shell_call", "id": "sh_1", "call_id": "s1", "action": {"commands": ["ls"]}}
    # Only the program knows how to tell a call of another host's tool.
    assert found(RESPONSES, [shell], host="xai", origin=by(RESPONSES, "openai")) == []


def test_blocks_of_another_host_of_messages_OR2_OR3() -> None:
    there: Json = {"host": "deepseek", "origin": by(MESSAGES, "anthropic")}
    assert found(MESSAGES, MESSAGES_HISTORY, **there) == [
        ("sealed", "some", (1, "content", 0)),
        ("host_field", "some", (1, "content", 1)),
        ("host_field", "some", (1, "content", 2)),
        ("host_field", "some", (1, "content", 3, "citations")),
    ]
    after = mended(MESSAGES, MESSAGES_HISTORY, **there)
    known = Transcript.from_messages(MESSAGES, MESSAGES_HISTORY, host="anthropic", model="m")
    sent = AnthropicMessages.request(known, model="m", host=HOST_FACTS["deepseek"])["messages"]
    assert after == sent
    assert after[1]["content"] == [{"type": "text", "text": "Found."}]
    home = check_messages(MESSAGES, MESSAGES_HISTORY, host="anthropic", origin=by(MESSAGES, "zai"))
    (refused,) = [problem for problem in home if problem.certainty == "refused"]
    assert refused.message == "messages.1.content.0: Invalid `signature` in `thinking` block"
    assert of_hosts(check_messages(MESSAGES, MESSAGES_HISTORY, host="deepseek")) == []


SIGNED_PARTS = [
    {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2VhbGVk"},
    {"text": "Yes.", "thought_signature": "c2VhbGVk"},
]


def test_signatures_of_gemini_are_opened_by_their_host_alone_OR3() -> None:
    answered = {"functionResponse": {"name": "look", "response": {"output": "ok"}}}
    history = [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": SIGNED_PARTS},
        {"role": "user", "parts": [answered]},
    ]
    vertex: Json = {"host": "vertex", "origin": by(GEMINI, "gemini"), "model": "gemini-3-pro"}
    assert found(GEMINI, history, **vertex) == [
        ("sealed", "refused", (1, "parts", 0, "thoughtSignature")),
        ("sealed", "refused", (1, "parts", 1, "thought_signature")),
    ]
    after = mended(GEMINI, history, **vertex)
    assert after[1]["parts"][0]["thoughtSignature"] != "c2VhbGVk"
    assert after[1]["parts"][1] == {"text": "Yes."}
    at_home: Json = {"host": "gemini", "origin": by(GEMINI, "gemini", "gemini-3-pro")}
    assert found(GEMINI, history, **at_home, model="gemini-3-pro") == []
    # A signature is good for the model that issued it, too.
    assert len(found(GEMINI, history, **at_home, model="gemini-3-flash-preview")) == 2
    region = by(GEMINI, "europe-west4-aiplatform.googleapis.com", "gemini-3-pro")
    assert found(GEMINI, history, host="vertex", origin=region, model="gemini-3-pro") == []


def test_reasoning_of_converse_is_opened_by_its_host_alone_OR3() -> None:
    text = {"text": "Hm.", "signature": "sealed"}
    history = [
        {"role": "user", "content": [{"text": "Go."}]},
        {
            "role": "assistant",
            "content": [{"reasoningContent": {"reasoningText": text}}, {"text": "Yes."}],
        },
        {"role": "user", "content": [{"text": "On."}]},
    ]
    there: Json = {"host": "https://gateway.example", "origin": by(CONVERSE, "bedrock")}
    assert found(CONVERSE, history, **there) == [("sealed", "some", (1, "content", 0))]
    assert mended(CONVERSE, history, **there)[1]["content"] == [{"text": "Yes."}]
    here = "bedrock-runtime.eu-west-1.amazonaws.com"
    assert found(CONVERSE, history, host=here, origin=by(CONVERSE, here)) == []


@each("origin", [by(CHAT, "grok"), by(MESSAGES, "my host.example")])
def test_an_origin_of_nobody_is_an_error_OR7(origin: TurnOrigin) -> None:
    for call in (check_messages, propose_repairs):
        with pytest.raises(ValueError, match="unknown host"):
            call(CHAT, thought(), origin=origin)


def test_broken_values_are_no_trouble_to_the_rules_of_hosts() -> None:
    odd = [None, 1, {"role": "assistant", "tool_calls": [1, {"x": 1}], "content": [1, {"type": 2}]}]
    for host in ("groq", replace(HOST_FACTS["mistral"], address="")):
        assert check_messages(CHAT, odd, host=host, origin=by(CHAT, "zai"))
    for api in (RESPONSES, MESSAGES, CONVERSE, GEMINI):
        assert check_messages(api, odd, host="groq", origin=by(api, "zai"))
