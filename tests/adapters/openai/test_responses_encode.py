"""Responses requests: messages, turns of this wire and others, outputs, tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lutumpy import AssistantTurn, FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.adapters.openai.responses.encode import ResponsesEncoder
from lutumpy.adapters.openai.responses.request import responses_fields
from lutumpy.adapters.sdk_body import join_body
from lutumpy.adapters.writing import RequestRecord
from lutumpy.errors import TranscriptError
from lutumpy.models import (
    CallBlock,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
)
from lutumpy.rules.openai.responses import items as rules

SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("hi")
    return transcript


def own(*output: Any) -> AssistantTurn:
    return OpenAIResponses.response({"status": "completed", "output": list(output)})


def call(
    call_id: str = "call_1", name: str = "f", arguments: str = "{}", **fields: Any
) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }
    return {**item, **fields}


def answered(turn: AssistantTurn, *contents: Any, status: ResultStatus = "ok") -> Transcript:
    transcript = asked()
    calls = [c for c in turn.calls if c.answerable]
    given = contents or ("done",) * len(calls)
    results = [
        ResultBlock(c.id, c.name, v, status, c.kind) for c, v in zip(calls, given, strict=True)
    ]
    transcript.append_turn(turn, ToolResults(tuple(results)))
    return transcript


def entries(transcript: Transcript) -> list[dict[str, Any]]:
    body = OpenAIResponses.request(transcript)
    assert [
        p for p in rules.check_request({"model": "m", **body}) if p.certainty == "refused"
    ] == []
    found: list[dict[str, Any]] = body["input"]
    return found


def test_messages_keep_their_roles() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_developer(["Answer", "in English."])
    transcript.push_assistant(["One.", "Two."])
    transcript.push_user("hi")
    texts: list[dict[str, Any]] = [
        {"type": "output_text", "text": t, "annotations": []} for t in ("One.", "Two.")
    ]
    assert entries(transcript) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "developer",
            "content": [
                {"type": "input_text", "text": "Answer"},
                {"type": "input_text", "text": "in English."},
            ],
        },
        {"type": "message", "role": "assistant", "status": "completed", "content": texts},
        {"role": "user", "content": "hi"},
    ]


def test_what_an_assistant_said_names_its_type_for_hosts_that_ask_for_it() -> None:
    transcript = Transcript()
    transcript.push_assistant("One.")
    transcript.push_user("hi")
    assert entries(transcript)[0] == {"type": "message", "role": "assistant", "content": "One."}


def test_parts_of_a_user_message_and_of_a_result() -> None:
    parts = (
        TextPart("look"),
        ImagePart(b"png", "image/png", detail="low"),
        ImagePart(url="https://x.test/a.png"),
        FilePart(b"%PDF", "application/pdf"),
        FilePart(url="https://x.test/b.pdf"),
    )
    expected = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "low"},
        {"type": "input_image", "image_url": "https://x.test/a.png", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "file",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {"type": "input_file", "file_url": "https://x.test/b.pdf"},
    ]
    transcript = answered(own(call()), parts)
    transcript.push_user(parts)
    found = entries(transcript)
    assert found[2] == {"type": "function_call_output", "call_id": "call_1", "output": expected}
    assert found[3] == {"role": "user", "content": expected}


def test_a_turn_of_this_wire_goes_back_byte_for_byte() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    turn = own(reasoning, call(arguments='{"q" : 1}', namespace="crm"))
    encoder = ResponsesEncoder()
    encoder.add(turn)
    assert encoder.entries == [turn.native[1:-1]]
    assert entries(answered(turn))[1:3] == [reasoning, call(arguments='{"q" : 1}', namespace="crm")]


def test_an_id_inside_the_arguments_is_no_item_id() -> None:
    turn = own(call("a", arguments='{"id":"fc_b"}'), call("b"))
    encoder = ResponsesEncoder()
    encoder.add(turn)
    assert encoder.entries == [turn.native[1:-1]]


def test_names_that_the_wire_refuses_are_replaced() -> None:
    found = entries(
        answered(own(call("a", "functions.x"), call("b", "ok"), call("c", "functions.x")))
    )
    names = [item["name"] for item in found[1:4]]
    assert names[0] == names[2] != "functions.x"
    assert names[1] == "ok"


def test_a_call_made_by_a_program_is_answered_to_it() -> None:
    caller = {"type": "program", "caller_id": "prog_1"}
    found = entries(answered(own(call("a", caller=caller), call("b"))))
    assert found[3] == {
        "type": "function_call_output",
        "call_id": "a",
        "output": "done",
        "caller": caller,
    }
    assert "caller" not in found[4]


def test_a_turn_of_another_wire_is_told_as_messages_and_calls_in_order() -> None:
    blocks = (
        ReasoningBlock("secret", signed=True),
        TextBlock("Let me look."),
        CallBlock("toolu_" + "x" * 70, "mcp.search", '{"q": 1}', position=1),
        CallBlock("t2", "sql", "SELECT 1", kind="custom", position=2),
        TextBlock("Wait."),
    )
    calls = tuple(b for b in blocks if isinstance(b, CallBlock))
    turn = AssistantTurn(api="openai_chat", blocks=blocks, native=b"{}", calls=calls)
    found = entries(answered(turn))
    first = found[2]
    assert len(first["call_id"]) <= 64
    assert found[1:] == [
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {
            "type": "function_call",
            "call_id": first["call_id"],
            "name": first["name"],
            "arguments": '{"q": 1}',
        },
        {
            "type": "function_call",
            "call_id": "t2",
            "name": "sql",
            "arguments": '{"input":"SELECT 1"}',
        },
        {"type": "message", "role": "assistant", "content": "Wait."},
        {"type": "function_call_output", "call_id": first["call_id"], "output": "done"},
        {"type": "function_call_output", "call_id": "t2", "output": "done"},
    ]


def test_dropped_reasoning_goes_with_the_ids_that_ask_for_it() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    turn = replace(own(call("a"), reasoning, call("b")), reasoning_dropped=True)
    found = entries(answered(turn))
    assert [(i["type"], i.get("id")) for i in found[1:3]] == [
        ("function_call", "fc_a"),
        ("function_call", None),
    ]


@pytest.mark.parametrize(
    ("item", "key", "value"),
    [
        ({"type": "apply_patch_call", "call_id": "a", "operation": {}}, "status", "failed"),
        (
            {"type": "shell_call", "call_id": "a", "action": {}},
            "output",
            [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}}],
        ),
        (
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
            "approve",
            False,
        ),
    ],
)
def test_failures_are_told_in_the_words_of_each_kind(item: Any, key: str, value: Any) -> None:
    assert entries(answered(own(item), "no", status="error"))[2][key] == value


def test_a_transcript_with_nothing_to_answer_is_refused() -> None:
    instructed = Transcript()
    instructed.push_system("Be brief.")
    message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x"}],
    }
    for transcript in (Transcript(), instructed, answered(own(message))):
        with pytest.raises(TranscriptError, match="nothing to answer"):
            OpenAIResponses.request(transcript)


def test_tools_say_always_whether_they_are_strict() -> None:
    spec = ToolSpec("f", "", SCHEMA)
    for strict in (None, False, True):
        body = OpenAIResponses.request(
            asked(), ToolOffering((spec,), "specific", "f", parallel=False), strict=strict
        )
        assert body["tools"] == [
            {"type": "function", "name": "f", "parameters": SCHEMA, "strict": bool(strict)}
        ]
        assert body["tool_choice"] == {"type": "function", "name": "f"}
        assert body["parallel_tool_calls"] is False
        assert rules.check_request({"model": "m", **body}) == []
    assert set(OpenAIResponses.request(asked(), ToolOffering(parallel=False))) == {"input"}


def test_options() -> None:
    body = OpenAIResponses.request(
        asked(), stream=True, model="m", temperature=0, max_output_tokens=9, store=False
    )
    expected = {"stream": True, "temperature": 0, "max_output_tokens": 9, "store": False}
    assert {k: v for k, v in body.items() if k != "input"} == expected


def test_the_dict_says_what_the_bytes_say_and_forks_are_independent() -> None:
    transcript = answered(own(call("a")))
    fork = transcript.fork()
    assert OpenAIResponses.request(transcript) == json.loads(
        join_body(responses_fields(transcript, None, record=RequestRecord()))
    )
    repeated = own(call("b", id="fc_a"))
    fork.append_turn(repeated, ToolResults((ResultBlock("b", "f", "x"),)))
    assert "id" not in entries(fork)[3]
    assert len(entries(transcript)) == 3
