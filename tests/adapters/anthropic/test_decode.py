"""Answers of the Messages API: recorded ones, hand-made ones of each kind, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, Usage
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.errors import AdapterError
from lutumpy.models import CallBlock, OpaqueBlock, ReasoningBlock, RefusalBlock, TextBlock

FIXTURES = Path(__file__).parents[2] / "fixtures" / "anthropic_messages.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in FIXTURES.read_text(encoding="utf-8").splitlines()
]


def message(*content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 7},
        **fields,
    }


def tool_use(call_id: Any = "toolu_1", name: Any = "search", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}, **fields}


def decode(*content: Any, **fields: Any) -> AssistantTurn:
    return AnthropicMessages.response(message(*content, **fields))


def native(turn: AssistantTurn) -> Any:
    return json.loads(turn.native)


# --- recorded -------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].rsplit("/", 1)[-1])
def test_a_recorded_answer_gives_exactly_its_calls_and_is_left_as_it_was(
    row: dict[str, Any],
) -> None:
    reply = row["response"]
    before = json.dumps(reply)
    turn = AnthropicMessages.response(reply)
    expected = [
        (b["id"], b["name"], b["input"]) for b in reply["content"] if b["type"] == "tool_use"
    ]
    assert [(c.id, c.name, json.loads(c.arguments)) for c in turn.calls] == expected
    assert turn.text == "".join(b["text"] for b in reply["content"] if b["type"] == "text")
    assert turn.model == reply["model"]
    assert turn.response_id == reply["id"]
    assert json.dumps(reply) == before


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].rsplit("/", 1)[-1])
def test_a_recorded_answer_is_kept_as_it_came_but_for_nulls_that_requests_refuse(
    row: dict[str, Any],
) -> None:
    def without_refused_nulls(block: dict[str, Any]) -> dict[str, Any]:
        content = block.get("content")
        if isinstance(content, dict):
            content = {k: v for k, v in content.items() if (k, v) != ("abort_reason", None)}
        return {**block, "content": content} if "content" in block else block

    content = row["response"]["content"]
    assert native(AnthropicMessages.response(row["response"])) == [
        without_refused_nulls(block) for block in content
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].rsplit("/", 1)[-1])
def test_bytes_text_and_objects_of_the_sdk_give_the_same_turn(row: dict[str, Any]) -> None:
    from anthropic.types.beta import BetaMessage

    turn = AnthropicMessages.response(row["response"])
    text = json.dumps(row["response"])
    assert AnthropicMessages.response(text) == turn
    assert AnthropicMessages.response(text.encode()) == turn
    reply = BetaMessage.construct(**row["response"])
    reply._request_id = "req_1"
    read = AnthropicMessages.response(reply)
    assert read.request_id == "req_1"
    assert [(c.id, c.name, json.loads(c.arguments)) for c in read.calls] == [
        (c.id, c.name, json.loads(c.arguments)) for c in turn.calls
    ]
    assert [type(block) for block in read.blocks] == [type(block) for block in turn.blocks]


# --- each kind ------------------------------------------------------------------------------------


def test_text_and_calls() -> None:
    turn = decode(
        {"type": "text", "text": "Let me see."}, tool_use(input={"q": "ä"}), stop_reason="tool_use"
    )
    assert turn.api == "anthropic_messages"
    assert turn.blocks == (
        TextBlock("Let me see."),
        CallBlock("toolu_1", "search", '{"q":"ä"}', as_object=True, position=1),
    )
    assert turn.finish_reason == "tool_calls"
    assert turn.provider_finish_reason == "tool_use"


@pytest.mark.parametrize(
    ("given", "arguments", "sent"),
    [
        ({}, "{}", {}),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        (None, "", {}),
        ("  ", "", {}),
        ('{"a', '"{\\"a"', {"INVALID_JSON": '"{\\"a"'}),
        ([1, 2], "[1,2]", {"INVALID_JSON": "[1,2]"}),
        (False, "false", {"INVALID_JSON": "false"}),
    ],
)
def test_an_input_that_is_no_object_is_kept_as_text_and_wrapped_for_replay(
    given: Any, arguments: str, sent: Any
) -> None:
    turn = decode(tool_use(input=given))
    assert turn.calls[0].arguments == arguments
    assert native(turn)[0]["input"] == sent


def test_a_call_without_input_id_or_name_is_a_call() -> None:
    turn = decode({"type": "tool_use"}, {"type": "tool_use", "id": 5, "name": [], "input": {}})
    assert [(c.id, c.name, c.arguments, c.position) for c in turn.calls] == [
        ("", "", "", 0),
        ("", "", "{}", 1),
    ]
    assert [(b["id"], b["name"], b["input"]) for b in native(turn)] == [("", "", {}), ("", "", {})]


def test_ids_are_replaced_in_the_call_and_in_the_native_form_alike() -> None:
    turn = decode(
        {"type": "text", "text": ""}, {"type": "text", "text": "x"}, tool_use("a"), tool_use("a")
    )
    again = turn.with_ids({1: "b"})
    assert [c.id for c in again.calls] == ["a", "b"]
    assert [b.get("id") for b in native(again)] == [None, "a", "b"]


def test_thinking_is_kept_with_its_signature_also_when_empty() -> None:
    content = (
        {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
        {"type": "thinking", "thinking": "", "signature": "s2"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "Done."},
    )
    turn = decode(*content)
    assert turn.blocks[:3] == (
        ReasoningBlock("Hm.", True),
        ReasoningBlock("", True),
        ReasoningBlock("", True),
    )
    assert turn.signed
    assert native(turn) == list(content)


def test_thinking_without_a_signature_is_unsigned() -> None:
    turn = decode({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "x"})
    assert not turn.signed
    assert turn.reasoning == "Hm."
    assert native(turn)[0] == {"type": "thinking", "thinking": "Hm.", "signature": ""}


def test_thinking_at_the_end_of_an_answer_is_read_but_not_replayed() -> None:
    """ "The final block in an assistant message cannot be `thinking`." """
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    turn = decode(thinking, stop_reason="max_tokens")
    assert turn.reasoning == "Hm."
    assert turn.empty
    assert json.loads(turn.residue) == {"content": {"cut": [thinking]}}
    assert native(
        decode({"type": "text", "text": "x"}, thinking, {"type": "text", "text": ""})
    ) == [{"type": "text", "text": "x"}]


def test_a_call_of_a_client_toolset_is_no_function() -> None:
    turn = decode(tool_use(name="left_click", toolset_name="computer"))
    assert turn.calls[0].kind == "toolset"
    assert turn.calls[0].answerable
    assert native(turn)[0]["toolset_name"] == "computer"


def test_provider_executed_tools_are_no_calls_and_are_replayed() -> None:
    content = (
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"encrypted_content": "e"}],
        },
        {"type": "brand_new_block", "payload": None},
    )
    turn = decode(*content)
    assert turn.calls == ()
    assert turn.blocks == (
        OpaqueBlock("server_tool_use"),
        OpaqueBlock("web_search_tool_result"),
        OpaqueBlock("brand_new_block"),
    )
    assert native(turn) == list(content)
    assert not turn.results_only


RUNNING = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}


def test_a_server_tool_still_running_beside_calls_takes_results_only() -> None:
    assert decode(RUNNING, tool_use(), stop_reason="tool_use").results_only
    assert decode(
        {**RUNNING, "type": "mcp_tool_use"}, tool_use(), stop_reason="tool_use"
    ).results_only


def test_a_paused_turn_is_paused_and_results_only_while_a_server_tool_runs() -> None:
    turn = decode(RUNNING, stop_reason="pause_turn")
    assert turn.finish_reason == "paused"
    assert turn.results_only
    assert not decode({"type": "text", "text": "x"}, stop_reason="pause_turn").results_only


def test_a_server_tool_that_was_cut_off_is_not_replayed() -> None:
    turn = decode({"type": "text", "text": "x"}, RUNNING, stop_reason="max_tokens")
    assert native(turn) == [{"type": "text", "text": "x"}]
    assert not turn.results_only
    assert json.loads(turn.residue)["content"]["cut"] == [RUNNING]


def test_what_stands_in_answers_only_is_kept_aside() -> None:
    citation = {
        "type": "char_location",
        "cited_text": "x",
        "document_index": 0,
        "file_id": "file_1",
    }
    turn = decode(
        {"type": "text", "text": "a", "citations": None, "parsed_output": {"n": 1}},
        {"type": "text", "text": "b", "citations": [citation]},
        tool_use(caller=None, toolset_name=None, caller_note="kept"),
        container={"id": "container_1"},
    )
    assert native(turn) == [
        {"type": "text", "text": "a"},
        {
            "type": "text",
            "text": "b",
            "citations": [{k: v for k, v in citation.items() if k != "file_id"}],
        },
        tool_use(caller_note="kept"),
    ]
    assert json.loads(turn.residue) == {
        "container": {"id": "container_1"},
        "content": {"0": {"parsed_output": {"n": 1}}, "1": {"citations": [citation]}},
    }


def test_an_answer_without_content_is_an_empty_turn() -> None:
    for turn in (decode(), decode({"type": "text", "text": ""}), AnthropicMessages.response({})):
        assert turn.native == b""
        assert turn.empty
        assert turn.blocks == ()


def test_a_refusal_is_told_by_its_explanation_where_there_is_no_text() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not that."}
    turn = decode(stop_reason="refusal", stop_details=details)
    assert turn.blocks == (RefusalBlock("Not that."),)
    assert turn.finish_reason == "refusal"
    assert turn.cut
    assert turn.native == b""
    assert decode(
        {"type": "text", "text": "I"}, stop_reason="refusal", stop_details=None
    ).blocks == (TextBlock("I"),)
    assert decode(stop_reason="refusal").refusal == ""


@pytest.mark.parametrize(
    ("stop_reason", "finish", "cut"),
    [
        ("end_turn", "stop", False),
        ("stop_sequence", "stop", False),
        ("tool_use", "tool_calls", False),
        ("max_tokens", "length", True),
        ("model_context_window_exceeded", "length", True),
        ("pause_turn", "paused", False),
        ("refusal", "refusal", True),
        ("compaction", "paused", False),
        (None, "unknown", False),
        (3, "unknown", False),
    ],
)
def test_stop_reasons(stop_reason: Any, finish: str, cut: bool) -> None:
    turn = decode({"type": "text", "text": "x"}, stop_reason=stop_reason)
    assert (turn.finish_reason, turn.cut) == (finish, cut)
    assert turn.provider_finish_reason == (stop_reason if isinstance(stop_reason, str) else None)


def test_usage_counts_cached_tokens_beside_the_input() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 3},
    }
    assert decode(usage=usage).usage == Usage(5, 7, 132, 100, 20, 3)
    nulls = {
        "input_tokens": 5,
        "output_tokens": None,
        "cache_read_input_tokens": None,
        "output_tokens_details": None,
    }
    assert decode(usage=nulls).usage == Usage(5, 0, 5)


def test_an_error_body_and_what_is_no_object_are_errors_of_the_provider() -> None:
    with pytest.raises(AdapterError, match="Overloaded") as caught:
        AnthropicMessages.response(
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        )
    assert caught.value.retryable
    for reply in (b"<html>", "[]", "1"):
        with pytest.raises(AdapterError):
            AnthropicMessages.response(reply)


def test_lone_surrogates_and_numbers_that_json_lacks_can_be_replayed() -> None:
    turn = AnthropicMessages.response(
        '{"content":[{"type":"text","text":"\\ud800"},'
        '{"type":"tool_use","id":"a","name":"n\\udc00","input":{"x":"\\ud83d"}}]}'
    )
    assert turn.text == "\ufffd"
    assert turn.calls[0].name == "n\ufffd"
    assert json.loads(turn.calls[0].arguments) == native(turn)[1]["input"] == {"x": "\ufffd"}
    assert json.loads(decode(tool_use(input={"x": float("nan")})).calls[0].arguments) == {
        "x": "NaN"
    }


# --- hostile --------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    "type",
    "id",
    "name",
    "input",
    "text",
    "thinking",
    "signature",
    "data",
    "toolset_name",
    "caller",
    "tool_use_id",
)
KINDS = st.sampled_from(
    (
        "text",
        "tool_use",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "mcp_tool_use",
        "x_tool_result",
        "tool_result",
    )
)
BLOCKS = st.dictionaries(st.sampled_from(KEYS), VALUES | KINDS, max_size=6) | st.builds(
    lambda kind, rest: {**rest, "type": kind},
    KINDS,
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)
FIELDS = ("id", "model", "stop_reason", "stop_details", "usage", "container", "role", "type")
STOPS = st.sampled_from(("end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(BLOCKS | VALUES, max_size=5) | VALUES,
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5),
    STOPS,
)
def test_no_json_object_breaks_the_decoder(content: Any, fields: dict[str, Any], stop: str) -> None:
    turn = AnthropicMessages.response(
        {"stop_reason": stop, **fields, "content": content, "type": "message"}
    )
    assert [c for c in turn.blocks if isinstance(c, CallBlock)] == list(turn.calls)
    expected = (
        [b for b in content if isinstance(b, dict) and b.get("type") == "tool_use"]
        if isinstance(content, list)
        else []
    )
    # Beside these, what has an id and a name is a call of a kind that nobody knows (rule C8).
    sent = native(turn) if turn.native else []
    known = [call for call in turn.calls if sent[call.position]["type"] == "tool_use"]
    assert len(known) == len(expected)
    for call in known:
        assert sent[call.position]["id"] == call.id
        assert sent[call.position]["name"] == call.name
        assert isinstance(sent[call.position]["input"], dict)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_no_damage_to_a_recorded_answer_breaks_the_decoder(data: st.DataObject) -> None:
    reply = json.loads(json.dumps(data.draw(st.sampled_from(ROWS))["response"]))
    for _ in range(data.draw(st.integers(1, 4))):
        spot: Any = reply
        while isinstance(spot, (dict, list)) and spot:
            key = data.draw(
                st.sampled_from(list(spot) if isinstance(spot, dict) else range(len(spot)))
            )
            below = spot[key]
            if not isinstance(below, (dict, list)) or not below or data.draw(st.booleans()):
                if spot is not reply and data.draw(st.booleans()):
                    del spot[key]
                else:
                    spot[key] = data.draw(VALUES)
                break
            spot = below
    reply.pop("error", None)
    reply["type"] = "message"
    AnthropicMessages.response(reply)
