"""Chat Completions answers: recorded ones, odd ones of compatible hosts, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import AssistantTurn, Transcript, Usage
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.errors import AdapterError
from lutumpy.models import (
    CallBlock,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
)
from lutumpy.rules.openai.chat import messages as rules

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("openai_chat", "compat_openai_chat")
    for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]


def answer(message: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        **fields,
    }


def decode(message: Any, finish: Any = "stop", **fields: Any) -> AssistantTurn:
    return OpenAIChat.response(answer(message, finish, **fields))


def native(turn: AssistantTurn) -> Any:
    return json.loads(turn.native)


def call(
    call_id: Any = "call_1", name: Any = "search", arguments: Any = "{}", **fields: Any
) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **fields,
    }


def commit(turn: AssistantTurn) -> dict[str, Any]:
    """The next request after `turn`, its calls answered."""
    transcript = Transcript()
    transcript.push_user("hi")
    turn = transcript.fresh_ids(turn)
    results = tuple(
        ResultBlock(c.id, c.name, "ok", kind=c.kind) for c in turn.calls if c.answerable
    )
    transcript.append_turn(turn, ToolResults(results))
    transcript.push_user("and now?")
    return OpenAIChat.request(transcript)


def refused(body: dict[str, Any]) -> list[str]:
    return [
        p.message for p in rules.check_request({"model": "m", **body}) if p.certainty == "refused"
    ]


def without_answer_only(message: dict[str, Any]) -> dict[str, Any]:
    """What goes back of a message, said independently of the decoder."""
    sent = {k: v for k, v in message.items() if v is not None or k == "content"}
    for key in ("annotations", "refusal", "function_call", "tool_calls", "audio"):
        value = sent.get(key)
        if (
            key == "annotations"
            or not value
            or (isinstance(value, dict) and not any(value.values()))
        ):
            sent.pop(key, None)
    for entry in sent.get("tool_calls", ()):
        entry.setdefault("type", "function")
        entry["function"].setdefault("arguments", "{}")
    return sent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].split(":", 1)[1][-60:])
def test_a_recorded_answer_gives_its_calls_and_goes_back_as_it_came(row: dict[str, Any]) -> None:
    message = row["response"]["choices"][0]["message"]
    turn = OpenAIChat.response(row["response"])
    given = message.get("tool_calls") or []
    assert [(c.id, c.name, c.arguments) for c in turn.calls] == [
        (e["id"], e["function"]["name"], e["function"].get("arguments", "")) for e in given
    ]
    assert turn.text == (message.get("content") or "")
    body = commit(turn)
    sent = body["messages"][1]
    if any(not entry["id"] for entry in given):
        for entry, fresh in zip(given, sent["tool_calls"], strict=True):
            entry["id"] = entry["id"] or fresh["id"]
    assert sent == without_answer_only(message)
    assert [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"] == [
        e["id"] for e in given
    ]


def test_usage_model_and_ids_are_read() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": None},
    }
    turn = decode({"role": "assistant", "content": "hi"}, usage=usage)
    assert turn.usage == Usage(9, 4, 13, 3, 0, 2)
    assert (turn.model, turn.response_id, turn.text) == ("m", "c", "hi")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"prompt_tokens": None, "completion_tokens": "3"}, Usage()),
        ({"prompt_tokens": 2, "completion_tokens": 3}, Usage(2, 3, 5)),
        (
            {"prompt_tokens": 8, "prompt_cache_hit_tokens": 6, "prompt_tokens_details": None},
            Usage(8, 0, 8, 6),
        ),
    ],
)
def test_usage_with_gaps(usage: Any, expected: Usage) -> None:
    assert decode({"content": "x"}, usage=usage).usage == expected


@pytest.mark.parametrize(
    ("word", "finish", "cut"),
    [
        ("stop", "stop", False),
        ("tool_calls", "tool_calls", False),
        ("function_call", "tool_calls", False),
        ("length", "length", True),
        ("content_filter", "content_filter", True),
        ("", "unknown", False),
        (None, "unknown", False),
        ("error", "unknown", True),
        (["odd"], "unknown", False),
    ],
)
def test_finish_reasons(word: Any, finish: str, cut: bool) -> None:
    turn = decode({"content": "x"}, word)
    assert (turn.finish_reason, turn.cut) == (finish, cut)
    assert turn.provider_finish_reason == (word if isinstance(word, str) and word else None)


def test_a_refusal_ends_a_turn_as_refused_and_goes_back() -> None:
    turn = decode({"role": "assistant", "content": None, "refusal": "I can't."})
    assert (turn.finish_reason, turn.cut, turn.refusal) == ("refusal", True, "I can't.")
    assert turn.blocks == (RefusalBlock("I can't."),)
    assert native(turn) == {"role": "assistant", "content": None, "refusal": "I can't."}


@pytest.mark.parametrize(
    ("entry", "block", "sent"),
    [
        (
            {"id": None, "function": {"name": "f", "arguments": None}},
            CallBlock("", "f", "", position=0),
            {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ),
        (
            {"id": "a", "index": 0, "function": {"name": "f", "arguments": {"x": [1]}}},
            CallBlock("a", "f", '{"x":[1]}', position=0),
            {
                "id": "a",
                "index": 0,
                "type": "function",
                "function": {"name": "f", "arguments": '{"x":[1]}'},
            },
        ),
        (
            {"id": "a", "type": "function"},
            CallBlock("a", "", "", position=0),
            {
                "id": "a",
                "type": "function",
                "function": {"name": "unknown_tool", "arguments": "{}"},
            },
        ),
        (
            {
                "id": "a",
                "type": "function",
                "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}},
            },
            CallBlock("a", "f", "{}", position=0),
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ),
        (
            {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
            CallBlock("a", "sql", "SELECT 1", kind="custom", position=0),
            {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
        ),
        (
            {"id": 7, "type": "function", "function": {"name": "f", "arguments": "{"}},
            CallBlock("7", "f", "{", position=0),
            {"id": "7", "type": "function", "function": {"name": "f", "arguments": "{"}},
        ),
    ],
)
def test_odd_calls_are_read_and_only_what_openai_refuses_is_repaired(
    entry: Any, block: CallBlock, sent: Any
) -> None:
    turn = decode({"role": "assistant", "content": None, "tool_calls": [entry]}, "tool_calls")
    assert turn.calls == (block,)
    assert native(turn)["tool_calls"] == [sent]
    assert not refused(commit(turn))


def test_what_is_no_call_at_all_is_kept_aside() -> None:
    turn = decode({"content": None, "tool_calls": [None, "noise", call("a")]}, "tool_calls")
    assert [c.id for c in turn.calls] == ["a"]
    assert turn.calls[0].position == 0
    assert json.loads(turn.residue) == {"tool_calls": ["noise"]}


def test_calls_stay_calls_whatever_the_finish_reason() -> None:
    assert decode({"content": None, "tool_calls": [call()]}, "stop").calls


def test_the_older_form_of_a_call_is_answered_by_its_own_kind_of_message() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": '{"x": 1}'},
    }
    turn = decode(message, "function_call")
    assert [(c.name, c.arguments, c.kind, c.answerable) for c in turn.calls] == [
        ("f", '{"x": 1}', "function_call", True)
    ]
    body = commit(turn)
    assert body["messages"][1:3] == [message, {"role": "function", "name": "f", "content": "ok"}]
    assert not refused(body)


def test_the_older_form_beside_calls_is_answered_as_one_of_them_C8() -> None:
    message = {
        "content": None,
        "tool_calls": [call("a", "f", "{}")],
        "function_call": {"name": "g", "arguments": '{"x": 1}'},
    }
    turn = decode(message)
    assert [(c.name, c.kind, c.answerable) for c in turn.calls] == [
        ("f", "function", True),
        ("g", "function_call", True),
    ]
    same = decode({**message, "function_call": {"name": "f", "arguments": "{}"}})
    assert [c.name for c in same.calls] == ["f"]
    body = commit(turn)
    assert not refused(body)
    said, *answers = body["messages"][1:4]
    assert [entry["function"]["name"] for entry in said["tool_calls"]] == ["f", "g"]
    assert [entry["id"] for entry in said["tool_calls"]] == [a["tool_call_id"] for a in answers]


def test_a_call_of_an_unknown_type_says_what_it_wants_C8() -> None:
    entry = {"id": "a", "type": "shell", "shell": {"name": "run", "action": {"commands": ["ls"]}}}
    turn = decode({"content": None, "tool_calls": [entry]})
    (found,) = turn.calls
    assert (found.kind, found.name, found.arguments) == ("shell", "run", '{"commands":["ls"]}')
    assert commit(turn)["messages"][1]["tool_calls"] == [entry]


def test_answer_only_fields_are_kept_aside() -> None:
    turn = decode(
        {
            "role": "assistant",
            "content": "see [1]",
            "annotations": [{"type": "url_citation"}],
            "parsed": None,
            "refusal": None,
            "function_call": None,
            "tool_calls": None,
            "audio": {"id": "", "data": ""},
        }
    )
    assert native(turn) == {"role": "assistant", "content": "see [1]"}
    assert json.loads(turn.residue) == {"annotations": [{"type": "url_citation"}]}


def test_audio_goes_back_by_its_id() -> None:
    turn = decode(
        {
            "content": None,
            "audio": {"id": "audio_1", "data": "AAAA", "transcript": "Hello", "expires_at": 1},
        }
    )
    assert native(turn) == {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    assert turn.text == "Hello"
    assert not refused(commit(turn))


def test_reasoning_of_compatible_hosts_is_read_and_goes_back() -> None:
    for fields, read in (
        ({"reasoning_content": "hm"}, "hm"),
        (
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "other"}]},
            "hm",
        ),
        ({"reasoning_details": [{"text": "a"}, {"summary": "b"}, {"data": "x"}, 5]}, "ab"),
    ):
        turn = decode({"role": "assistant", "content": "yes", **fields})
        assert turn.blocks == (ReasoningBlock(read), TextBlock("yes"))
        assert native(turn) == {"role": "assistant", "content": "yes", **fields}


def test_content_as_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
        {"type": "reference", "reference_ids": [1]},
    ]
    turn = decode({"role": "assistant", "content": parts})
    assert turn.blocks == (ReasoningBlock("hm"), TextBlock("yes"), OpaqueBlock("reference"))
    assert native(turn)["content"] == parts


@pytest.mark.parametrize(
    "message", [{}, {"role": "assistant", "content": None}, {"content": ""}, {"content": []}, None]
)
def test_an_answer_without_content_is_an_empty_turn(message: Any) -> None:
    turn = decode(message)
    assert (turn.empty, turn.blocks) == (True, ())
    assert len(commit(turn)["messages"]) == 2


def test_reasoning_alone_goes_back_with_an_empty_text() -> None:
    turn = decode({"role": "assistant", "content": None, "reasoning_content": "hm"}, "length")
    assert native(turn) == {"role": "assistant", "content": "", "reasoning_content": "hm"}


def test_lone_surrogates_and_deep_nesting_are_survived() -> None:
    turn = OpenAIChat.response('{"choices":[{"message":{"content":"a\\ud800b"}}]}')
    assert commit(turn)["messages"][1]["content"] == "a�b"
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert not decode({"content": "x", "tool_calls": [call(arguments=deep)]}).empty


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "<html>",
        "[1]",
        b"\xff",
        '{"choices": []}',
        '{"object": "chat.completion"}',
        5,
        '{"error": "overloaded"}',
    ],
)
def test_what_is_no_answer_is_an_adapter_error(reply: Any) -> None:
    with pytest.raises(AdapterError) as caught:
        OpenAIChat.response(reply)
    assert caught.value.provider == "openai_chat"


def test_an_error_with_status_200_is_told_with_its_text() -> None:
    with pytest.raises(AdapterError, match="upstream is busy") as caught:
        OpenAIChat.response({"error": {"message": "upstream is busy", "code": 429}, "user_id": "u"})
    assert (caught.value.status, caught.value.retryable, caught.value.code) == (429, True, "429")


def test_objects_of_the_sdk_and_text_are_read_alike() -> None:
    from openai.types.chat import ChatCompletion

    reply = {
        **answer(
            {"role": "assistant", "content": None, "tool_calls": [call("a", "f", '{"x":1}')]},
            "tool_calls",
        ),
        "object": "chat.completion",
        "created": 1,
    }
    expected = OpenAIChat.response(reply)
    for spelling in (
        ChatCompletion.model_validate(reply),
        ChatCompletion.construct(**reply),
        json.dumps(reply),
    ):
        turn = OpenAIChat.response(spelling)
        assert (turn.blocks, turn.usage, native(turn)) == (
            expected.blocks,
            expected.usage,
            native(expected),
        )
    assert OpenAIChat.response(json.dumps(reply).encode()) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
IDS = st.none() | st.sampled_from(["", "a", "b", "call_1"]) | st.text(max_size=40)
NAMES = st.sampled_from(["f", "get_x", "", "functions.f", "a b"]) | JSON
FUNCTIONS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES,
        "arguments": st.sampled_from(["", "{}", "{", '{"x":1}', "null"]) | JSON,
    },
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS,
        "type": st.sampled_from(["function", "custom", None]),
        "function": FUNCTIONS | st.none(),
        "custom": st.fixed_dictionaries({}, optional={"name": NAMES, "input": JSON}) | st.none(),
        "index": st.integers(0, 3),
    },
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": JSON,
        "content": st.none()
        | st.text(max_size=5)
        | st.lists(st.text(max_size=3) | st.none(), max_size=3),
        "tool_calls": st.none() | st.lists(CALLS, max_size=4) | CALLS,
        "function_call": st.none() | FUNCTIONS,
        "refusal": st.none() | st.text(max_size=5),
        "reasoning_content": st.none() | st.text(max_size=5),
        "audio": JSON,
        "annotations": JSON,
    },
)


@given(st.dictionaries(st.sampled_from(["choices", "usage", "id", "model", "error"]), JSON))
def test_no_json_object_makes_the_decoder_raise(reply: dict[str, Any]) -> None:
    assert isinstance(decode_chat(reply), AssistantTurn)


@given(JSON, JSON)
def test_no_message_makes_the_decoder_raise(message: Any, finish: Any) -> None:
    decode_chat(answer(message, finish))


@given(
    st.lists(MESSAGES, min_size=1, max_size=3),
    st.sampled_from(["stop", "tool_calls", "length", "", None]),
)
def test_whatever_was_decoded_can_be_sent_again(
    messages: list[dict[str, Any]], finish: Any
) -> None:
    transcript = Transcript()
    transcript.push_user("hi")
    for message in messages:
        turn = transcript.fresh_ids(decode_chat(answer(message, finish)))
        results = tuple(
            ResultBlock(c.id, c.name, "ok", kind=c.kind) for c in turn.calls if c.answerable
        )
        transcript.append_turn(turn, ToolResults(results))
    transcript.push_user("and now?")
    assert refused(OpenAIChat.request(transcript)) == []


def test_of_several_choices_the_one_with_the_index_0_is_read_as_in_a_stream_S1() -> None:
    def choice(index: int) -> dict[str, Any]:
        message = {"role": "assistant", "content": str(index)}
        return {"index": index, "message": message, "finish_reason": "stop"}

    for listed in ([choice(0), choice(1)], [choice(1), choice(0)]):
        decoder = OpenAIChat.stream_decoder()
        decoder.feed({"choices": listed})
        assert OpenAIChat.response({"choices": listed}).text == decoder.finish().text == "0"
    assert OpenAIChat.response({"choices": [choice(1)]}).text == "1"
