"""Call ids that a host refuses are replaced, always the same way, in call and result alike (R2)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from lutumpy import Session, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ResultBlock, ToolResults, TurnOptions

NINE = re.compile(r"[a-zA-Z0-9]{9}")


def chat_turn(*ids: str) -> Any:
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return OpenAIChat.response(
        {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    )


def messages_turn(*ids: str) -> Any:
    blocks = [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]
    return AnthropicMessages.response(
        {"role": "assistant", "stop_reason": "tool_use", "content": blocks}
    )


def responses_turn(*ids: str) -> Any:
    items = [{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in ids]
    return OpenAIResponses.response({"status": "completed", "output": items})


def talk(*turns: Any) -> Transcript:
    transcript = Transcript()
    transcript.push_user("hi")
    for turn in turns:
        results = [ResultBlock(call.id, "f", f"said to {call.id}") for call in turn.calls]
        transcript.append_turn(turn, ToolResults(tuple(results)))
    return transcript


def ids_of(messages: list[dict[str, Any]]) -> list[str]:
    """The ids of the calls, which are those of the results in the same order."""
    calls = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    return calls


TURNS = (
    chat_turn("call_" + "a" * 24, "abc123DEF"),
    messages_turn("toolu_01A", "toolu_01B"),
    responses_turn("call_" + "b" * 24),
    chat_turn("call00001", "x" * 41, "ünïcödé!!"),
)


def test_r2_every_id_for_mistral_is_nine_letters_and_digits_and_no_two_are_one() -> None:
    transcript = talk(*TURNS)
    found = ids_of(OpenAIChat.request(transcript, call_ids="mistral")["messages"])
    assert all(NINE.fullmatch(call_id) for call_id in found)
    assert len(set(found)) == len(found) == 8
    assert found[1] == "abc123DEF"
    assert found[5] == "call00001"
    assert found == ids_of(OpenAIChat.messages(transcript, call_ids="mistral"))
    assert found == ids_of(OpenAIChat.request(transcript.fork(), call_ids="mistral")["messages"])
    # What a later request begins with is what this one was.
    before = OpenAIChat.request(transcript, call_ids="mistral")["messages"]
    transcript.push_user("more")
    assert OpenAIChat.request(transcript, call_ids="mistral")["messages"][:-1] == before


def test_r2_an_id_that_looks_like_a_replacement_is_replaced_itself() -> None:
    first = ids_of(OpenAIChat.request(talk(TURNS[1]), call_ids="mistral")["messages"])
    found = ids_of(
        OpenAIChat.request(talk(TURNS[1], chat_turn(first[0])), call_ids="mistral")["messages"]
    )
    assert found[:2] == first
    assert len(set(found)) == 3


def test_r2_openai_itself_gets_no_id_over_40_characters_another_host_its_own_back() -> None:
    transcript = talk(*TURNS)
    strict = ids_of(OpenAIChat.request(transcript, call_ids="openai")["messages"])
    assert max(map(len, strict)) <= 40
    assert len(set(strict)) == 8
    assert strict[:2] == ["call_" + "a" * 24, "abc123DEF"]
    assert ids_of(OpenAIChat.request(transcript)["messages"])[6] == "x" * 41


def test_r2_responses_takes_no_id_over_64_characters_from_anybody() -> None:
    long = "c" * 65
    found = OpenAIResponses.request(talk(responses_turn(long, "d" * 64)))["input"]
    calls = [i["call_id"] for i in found if i.get("type") == "function_call"]
    assert calls == [i["call_id"] for i in found if i.get("type") == "function_call_output"]
    assert len(calls[0]) <= 64
    assert calls[1] == "d" * 64


def test_r2_a_history_that_was_read_is_held_to_the_hosts_rule_too() -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": '"tool_call_id"'},
    ]
    transcript = Transcript.from_messages("openai_chat", history)
    assert OpenAIChat.request(transcript)["messages"] == history
    assert NINE.fullmatch(ids_of(OpenAIChat.request(transcript, call_ids="mistral")["messages"])[0])


HOSTS = [
    ("https://api.mistral.ai/v1", "mistral"),
    ("https://API.MISTRAL.AI/v1/", "mistral"),
    ("https://api.openai.com/v1", "openai"),
    ("https://eu.api.openai.com/v1", "openai"),
    ("https://us.openai.azure.com/openai", "openai"),
    ("http://127.0.0.1:8000/v1", None),
    ("https://api.mistral.ai.example.org/v1", None),
    ("https://notmistral.ai/v1", None),
]


def sent(llm: OpenAIChat, transcript: Transcript) -> list[str]:
    import json

    return ids_of(
        json.loads(llm._body(transcript, None, TurnOptions()))["messages"]
    )  # what goes out, without a host


@pytest.mark.sweep
@pytest.mark.parametrize(("url", "rule"), HOSTS)
@pytest.mark.parametrize(
    "how", ["async", "sync", "base_url", "environment", "client from the environment"]
)
def test_r2_the_host_decides_by_itself(
    url: str, rule: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = talk(*TURNS)
    if "environment" in how:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    llm = {
        "async": lambda: OpenAIChat("m", AsyncOpenAI(api_key="k", base_url=url)),
        "sync": lambda: OpenAIChat("m", OpenAI(api_key="k", base_url=url)),
        "base_url": lambda: OpenAIChat("m", base_url=url, api_key="k"),
        "environment": lambda: OpenAIChat("m", api_key="k"),
        "client from the environment": lambda: OpenAIChat("m", OpenAI(api_key="k")),
    }[how]()
    assert sent(llm, transcript) == ids_of(
        OpenAIChat.request(transcript, call_ids=rule)["messages"]
    )


def test_r2_what_the_program_says_wins_over_the_address() -> None:
    transcript = talk(*TURNS)
    llm = OpenAIChat("m", base_url="http://127.0.0.1:1/v1", api_key="k", call_ids="mistral")
    assert all(NINE.fullmatch(call_id) for call_id in sent(llm, transcript))
    plain = OpenAIChat("m", api_key="k")
    assert max(map(len, sent(plain, transcript))) <= 40


def test_a_client_that_names_no_address_is_nobodys() -> None:
    class Client:
        async def post(self, path: str, **options: Any) -> Any: ...

    transcript = talk(*TURNS)
    odd: Any = Client()
    assert sent(OpenAIChat("m", odd), transcript) == ids_of(
        OpenAIChat.request(transcript)["messages"]
    )
    odd.base_url = "http://[::1"
    assert sent(OpenAIChat("m", odd), transcript) == ids_of(
        OpenAIChat.request(transcript)["messages"]
    )


def test_no_other_rule_is_known() -> None:
    wrong: Any = "gemini"
    with pytest.raises(ValueError, match="'openai', 'mistral', not 'gemini'"):
        OpenAIChat("m", call_ids=wrong)
    with pytest.raises(ValueError, match="not 'gemini'"):
        OpenAIChat.request(talk(), call_ids=wrong)


def test_a_session_from_elsewhere_goes_on_at_mistral_after_a_dump() -> None:
    session = Session()
    session.push_user("hi")
    session.transcript.append_turn(
        TURNS[1], ToolResults(tuple(ResultBlock(c.id, "f", "x") for c in TURNS[1].calls))
    )
    again = Session.load(session.dump())
    first = ids_of(OpenAIChat.request(session.transcript, call_ids="mistral")["messages"])
    assert first == ids_of(OpenAIChat.request(again.transcript, call_ids="mistral")["messages"])
