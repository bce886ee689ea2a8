"""Chat Completions requests: messages, turns of this wire and others, results, tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lutumpy import AssistantTurn, FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.openai.chat.encode import ChatEncoder
from lutumpy.adapters.openai.chat.request import chat_fields
from lutumpy.adapters.sdk_body import join_body
from lutumpy.adapters.writing import RequestRecord
from lutumpy.errors import DeclarationError, InvalidToolConstraints, TranscriptError
from lutumpy.models import (
    CallBlock,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
)
from lutumpy.rules.openai.chat import messages as rules

SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"q": {"type": "object", "additionalProperties": True}}}
PNG = ImagePart(b"png", "image/png")


def spec(
    name: str = "search", strict: bool | None = None, schema: dict[str, Any] = SCHEMA
) -> ToolSpec:
    return ToolSpec(name, "Search.", schema, strict)


def asked(text: str = "hi") -> Transcript:
    transcript = Transcript()
    transcript.push_user(text)
    return transcript


def foreign(*blocks: Any) -> AssistantTurn:
    calls = tuple(b for b in blocks if isinstance(b, CallBlock))
    return AssistantTurn(api="anthropic_messages", blocks=blocks, native=b"[1]", calls=calls)


def answered(turn: AssistantTurn, *contents: Any) -> Transcript:
    transcript = asked()
    calls = [c for c in turn.calls if c.answerable]
    given = contents or ("ok",) * len(calls)
    results = [ResultBlock(c.id, c.name, v, kind=c.kind) for c, v in zip(calls, given, strict=True)]
    transcript.append_turn(turn, ToolResults(tuple(results)))
    return transcript


def own(*entries: Any, **fields: Any) -> AssistantTurn:
    message = {"role": "assistant", "content": None, "tool_calls": list(entries), **fields}
    return OpenAIChat.response({"choices": [{"finish_reason": "tool_calls", "message": message}]})


def call(call_id: str = "call_1", name: str = "search", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def messages(transcript: Transcript) -> list[dict[str, Any]]:
    body = OpenAIChat.request(transcript)
    assert [
        p for p in rules.check_request({"model": "m", **body}) if p.certainty == "refused"
    ] == []
    found: list[dict[str, Any]] = body["messages"]
    return found


# --- messages -------------------------------------------------------------------------------------


def test_messages_keep_their_roles_and_a_single_text_is_a_string() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_developer("Answer in English.")
    transcript.push_user("hi")
    transcript.push_assistant("Well,")
    assert messages(transcript) == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Answer in English."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Well,"},
    ]


def test_parts_of_a_user_message() -> None:
    transcript = Transcript()
    transcript.push_user(
        [
            "look",
            PNG,
            ImagePart(url="https://x.test/a.png", detail="low"),
            FilePart(b"%PDF", "application/pdf", filename="a.pdf"),
            FilePart(url="https://x.test/b.pdf"),
        ]
    )
    assert messages(transcript)[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        },
        {"type": "text", "text": "[file left out: https://x.test/b.pdf]"},
    ]


def test_a_copy_of_the_encoder_leaves_the_original_alone() -> None:
    transcript = asked()
    encoder = transcript.encoded("openai_chat", ChatEncoder)
    transcript.push_ephemeral_system("It is noon.")
    assert [m["role"] for m in messages(transcript)] == ["user", "system"]
    assert len(encoder.entries) == 1


# --- nothing to answer ----------------------------------------------------------------------------


def test_a_transcript_with_nothing_to_answer_is_refused() -> None:
    empty = Transcript()
    instructed = Transcript()
    instructed.push_system("Be brief.")
    instructed.push_developer("Really.")
    done = answered(foreign(TextBlock("done")))
    for transcript in (empty, instructed, done):
        with pytest.raises(TranscriptError, match="nothing to answer"):
            OpenAIChat.request(transcript)
    done.push_user("more")
    assert len(messages(done)) == 3


def test_a_turn_without_content_is_left_out_and_is_no_answer() -> None:
    transcript = asked()
    transcript.append_turn(OpenAIChat.response({"choices": [{"message": {"content": ""}}]}))
    transcript.append_turn(foreign(ReasoningBlock("hm", signed=True), TextBlock("  ")))
    assert messages(transcript) == [{"role": "user", "content": "hi"}]


# --- turns ----------------------------------------------------------------------------------------


def test_a_turn_of_this_wire_goes_back_byte_for_byte() -> None:
    turn = own(
        call(arguments='{"q" : "x"}'),
        reasoning_content="hm",
        extra_content={"google": {"thought": True}},
    )
    encoder = ChatEncoder()
    encoder.add(turn)
    assert encoder.entries == [turn.native]


def test_names_that_the_wire_refuses_are_replaced_the_same_way_each_time() -> None:
    turn = own(
        call("a", "functions.x"), call("b", "ok"), call("c", "functions.x"), call("d", "é" * 70)
    )
    names = [entry["function"]["name"] for entry in messages(answered(turn))[1]["tool_calls"]]
    assert names[1] == "ok"
    assert names[0] == names[2] != names[3]


def test_a_turn_of_another_wire_is_told_as_text_and_calls() -> None:
    long_id = "toolu_" + "x" * 60
    turn = foreign(
        ReasoningBlock("secret", signed=True),
        TextBlock("Let me "),
        TextBlock("look."),
        OpaqueBlock("server_tool_use"),
        RefusalBlock("Not that."),
        CallBlock(long_id, "mcp.search", '{"q": 1}', position=3),
        CallBlock("t2", "", "", position=4),
        CallBlock("t3", "f", '{"q', position=5),
        CallBlock("t4", "f", "null", position=6),
        CallBlock("t5", "f", "[1]", position=7),
        CallBlock("t6", "sh", "ls -l", kind="bash", position=8),
        CallBlock("t7", "screen", "{}", kind="computer", position=-1),
    )
    found = messages(answered(turn))
    sent = found[1]
    assert sent["content"] == "Let me look.\n\nNot that."
    first = sent["tool_calls"][0]
    assert len(first["id"]) <= 40
    assert first["function"]["name"].startswith("tool_")
    assert [entry["function"]["arguments"] for entry in sent["tool_calls"]] == [
        '{"q": 1}',
        "{}",
        '{"INVALID_JSON":"{\\"q"}',
        "{}",
        '{"INVALID_JSON":"[1]"}',
        '{"input":"ls -l"}',
    ]
    assert [m["tool_call_id"] for m in found[2:]] == [entry["id"] for entry in sent["tool_calls"]]
    assert "secret" not in json.dumps(found)


def test_dropped_reasoning_stays_out() -> None:
    turn = replace(
        own(
            call(),
            reasoning_content="hm",
            reasoning_details=[{"text": "hm"}],
            thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "s"}],
        ),
        reasoning_dropped=True,
    )
    assert set(messages(answered(turn))[1]) == {"role", "content", "tool_calls"}


# --- results --------------------------------------------------------------------------------------


def test_results_follow_their_calls_in_order_and_what_is_no_text_comes_after_all_of_them() -> None:
    turn = own(call("a"), call("b"), call("c"))
    found = messages(answered(turn, (TextPart("here"), PNG), "plain", (TextPart("only text"),)))
    assert [m["role"] for m in found[2:]] == ["tool", "tool", "tool", "user"]
    first = found[2]["content"]
    assert first[0] == {"type": "text", "text": "here"}
    assert "call a" in first[1]["text"]
    assert [m["content"] for m in found[3:5]] == ["plain", "only text"]
    shown = found[5]["content"]
    assert "call a" in shown[0]["text"]
    assert shown[1]["type"] == "image_url"


def test_a_file_by_url_in_a_result_is_told_as_text() -> None:
    found = messages(answered(own(call()), (FilePart(url="https://x.test/b.pdf"),)))
    assert found[2]["content"] == "[file left out: https://x.test/b.pdf]"


# --- tools ----------------------------------------------------------------------------------------


def test_tools_and_choices() -> None:
    transcript = asked()
    body = OpenAIChat.request(transcript, ToolOffering((spec(),)))
    assert set(body) == {"messages", "tools"}
    function = {"name": "search", "parameters": SCHEMA, "description": "Search."}
    assert body["tools"] == [{"type": "function", "function": function}]
    required = OpenAIChat.request(transcript, ToolOffering((spec(),), "required", parallel=False))
    assert (required["tool_choice"], required["parallel_tool_calls"]) == ("required", False)
    forced = OpenAIChat.request(transcript, ToolOffering((spec(),), "specific", "search"))
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "search"}}
    for body in (required, forced):
        assert rules.check_request({"model": "m", **body}) == []


def test_without_tools_nothing_is_said_of_them() -> None:
    for offer in (None, ToolOffering(), ToolOffering(parallel=False)):
        assert set(OpenAIChat.request(asked(), offer)) == {"messages"}


def test_strict_is_asked_for_by_tool_or_by_adapter() -> None:
    def sent(tool: ToolSpec, strict: bool | None = None) -> Any:
        return OpenAIChat.request(asked(), ToolOffering((tool,)), strict=strict)["tools"][0][
            "function"
        ].get("strict")

    assert sent(spec()) is None
    assert sent(spec(), True) is True
    assert sent(spec(strict=True)) is True
    assert sent(spec(strict=False), True) is None
    assert sent(spec(schema=OPEN), True) is None
    with pytest.raises(DeclarationError):
        sent(spec(strict=True, schema=OPEN))


def test_one_spec_is_rendered_for_each_meaning_of_strict() -> None:
    tool = spec()
    offer = ToolOffering((tool,))
    loose = OpenAIChat.request(asked(), offer)["tools"]
    strict = OpenAIChat.request(asked(), offer, strict=True)["tools"]
    assert loose != strict
    assert OpenAIChat.request(asked(), offer)["tools"] == loose


@pytest.mark.parametrize(
    "offer",
    [
        ToolOffering((spec("a b"),)),
        ToolOffering((spec("x" * 65),)),
        ToolOffering((spec("search\n"),)),
        ToolOffering(tuple(spec(f"t{k}") for k in range(129))),
        ToolOffering((), "required"),
        ToolOffering((spec(),), "specific", "other"),
    ],
)
def test_offers_that_openai_refuses_are_refused_here(offer: ToolOffering) -> None:
    with pytest.raises(InvalidToolConstraints):
        OpenAIChat.request(asked(), offer)


def test_models_known_to_take_no_tools_here_are_told_so() -> None:
    offer = ToolOffering((spec(),))
    with pytest.raises(InvalidToolConstraints, match="OpenAIResponses"):
        OpenAIChat.request(asked(), offer, model="gpt-6-astra")
    with pytest.raises(InvalidToolConstraints, match="reasoning_effort"):
        OpenAIChat.request(asked(), offer, model="gpt-5.6")
    body = OpenAIChat.request(asked(), offer, model="gpt-5.6", reasoning_effort="none")
    assert body["reasoning_effort"] == "none"
    assert "model" not in body
    assert "tools" not in OpenAIChat.request(asked(), model="gpt-6-astra")


# --- options and bytes ----------------------------------------------------------------------------


def test_options() -> None:
    body = OpenAIChat.request(
        asked(),
        stream=True,
        temperature=0.5,
        max_output_tokens=9,
        seed=3,
        extra={"user": "u", "temperature": 1},
    )
    assert {k: v for k, v in body.items() if k != "messages"} == {
        "temperature": 1,
        "max_completion_tokens": 9,
        "seed": 3,
        "user": "u",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_the_dict_is_fresh_and_says_what_the_bytes_say() -> None:
    transcript = answered(own(call(arguments='{"q": 1e3, "big": 123456789012345678901234567890}')))
    offer = ToolOffering((spec(),))
    first = OpenAIChat.request(transcript, offer)
    assert first == json.loads(join_body(chat_fields(transcript, offer, record=RequestRecord())))
    first["messages"].clear()
    first["tools"][0].clear()
    assert OpenAIChat.request(transcript, offer) == json.loads(
        join_body(chat_fields(transcript, offer, record=RequestRecord()))
    )


def fields_of(transcript: Transcript) -> dict[str, Any]:
    return {**chat_fields(transcript, None, record=RequestRecord())}


def test_an_unchanged_beginning_keeps_its_bytes() -> None:
    transcript = asked()
    before = fields_of(transcript)["messages"]
    transcript.push_user("more")
    assert fields_of(transcript)["messages"][: len(before)] == before
    assert fields_of(transcript.fork()) == chat_fields(transcript, None, record=RequestRecord())
