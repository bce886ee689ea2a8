"""Repairs of single mistakes that recorded histories seldom hold."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.doctor import apply_repairs, check_messages, propose_repairs

SURE = "refused"

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


# --- what random damage has found -----------------------------------------------------------------


def mended(api: Any, history: list[Any]) -> list[Any]:
    """The history after its repairs, which leaves nothing to propose."""
    after: list[Any] = apply_repairs(history, propose_repairs(api, history))
    assert propose_repairs(api, after) == []
    return after


def refused(api: Any, history: list[Any]) -> list[str]:
    return [problem.rule for problem in check_messages(api, history) if problem.certainty == SURE]


def test_calls_and_results_of_the_wrong_speakers_in_neighbouring_contents_are_parted() -> None:
    call, result = {"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f"}}
    history = [
        {"role": "user", "parts": [{"text": "Hm."}, call, call]},
        {"role": "model", "parts": [result]},
    ]
    after = mended("gemini_generate_content", history)
    assert refused("gemini_generate_content", after) == []
    roles = {
        content["role"] for content in after for part in content["parts"] if "functionCall" in part
    }
    assert roles == {"model"}


ROUND = [
    {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
]


@pytest.mark.parametrize(
    ("api", "history"),
    [
        ("anthropic_messages", [ASKED, {"content": ROUND}, ASKED]),
        ("anthropic_messages", [ASKED, [{"content": ROUND[:1]}]]),
        (
            "openai_chat",
            [
                ASKED,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": 17, "type": "function", "function": {"name": "f", "arguments": ""}}
                    ],
                },
                {"tool_call_id": 17, "content": "rain"},
            ],
        ),
        ("openai_chat", [ASKED, [{"tool_calls": EMPTY["tool_calls"]}]]),
        (
            "bedrock_converse",
            [
                {"role": "user", "content": [{"text": "Hi"}]},
                [{"content": [CONVERSE_USE]}],
            ],
        ),
        ("ollama_chat", [ASKED, [{"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]]),
    ],
)
def test_a_role_that_calls_or_results_show_is_found(api: Any, history: list[Any]) -> None:
    after = mended(api, history)
    assert refused(api, after) == []
    assert "assistant" in [message["role"] for message in after]


@pytest.mark.parametrize("nothing", [False, [], "", {}])
@pytest.mark.parametrize("key", ["toolUse", "toolResult"])
def test_a_block_of_converse_that_holds_nothing_goes(key: str, nothing: Any) -> None:
    asked = {"role": "user", "content": [{"text": "Hi"}]}
    odd = {"role": "assistant", "content": [{"text": "So."}, {key: nothing}]}
    after = mended("bedrock_converse", [asked, odd, asked])
    assert refused("bedrock_converse", after) == []


def test_a_first_system_message_that_changes_tools_is_left_to_the_program() -> None:
    change = {
        "type": "tool_addition",
        "tool": {"type": "tool_reference", "name": "f"},
    }
    history = [{"role": "system", "content": [change]}, ASKED]
    assert propose_repairs("anthropic_messages", history) == []


def test_blocks_in_a_message_of_an_unknown_role_are_not_said_to_stand_wrong() -> None:
    history = [ASKED, {"role": "somebody", "content": [USE]}]
    assert "anthropic.block_role" not in refused("anthropic_messages", history)


def test_a_reference_by_an_id_that_no_item_can_have_goes() -> None:
    history = [{"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "x" * 65}]
    assert refused("openai_responses", history) == ["responses.item_id"]
    assert mended("openai_responses", history) == history[:1]


@pytest.mark.parametrize("call_id", [[], {}, [1]])
def test_an_id_of_a_search_that_is_no_text_raises_nothing(call_id: Any) -> None:
    call = {"type": "function_call", "call_id": "c1"}
    history = [call, {"type": "tool_search_output", "call_id": call_id}, call]
    apply_repairs(history, propose_repairs("openai_responses", history))


@pytest.mark.parametrize(
    ("part", "role", "words"),
    [
        ({"functionResponse": {"name": "f", "response": {}}}, "user", "results"),
        ({"functionCall": {"name": "f", "args": {}}}, "model", "calls"),
        ({"text": "So.", "thoughtSignature": "c2ln"}, "model", "thoughts"),
    ],
)
def test_a_content_of_gemini_of_an_unknown_role_has_the_one_that_it_shows(
    part: Any, role: str, words: str
) -> None:
    asked = {"role": "user", "parts": [{"text": "Hi"}]}
    repairs = propose_repairs(
        "gemini_generate_content", [asked, {"role": "somebody", "parts": [part]}]
    )
    (repair,) = [repair for repair in repairs if repair.kind == "set_role"]
    assert repair.reason == (
        f"The role is missing or unknown; a message with {words} has the role {role!r}."
    )
