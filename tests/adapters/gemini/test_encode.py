"""Requests of generateContent: other APIs' turns, results, images, tools and settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutumpy import FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.gemini import Gemini
from lutumpy.errors import InvalidToolConstraints, TranscriptError
from lutumpy.models import (
    AssistantTurn,
    CallBlock,
    FoundTool,
    OutputSpec,
    RawPart,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
)

API = "gemini_generate_content"
PLACEHOLDER = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
PNG = b"\x89PNG\r\n"


def foreign(*calls: CallBlock, text: str = "") -> AssistantTurn:
    blocks = (*([TextBlock(text)] if text else []), *calls)
    return AssistantTurn("my_model", blocks, b"", calls)


def called(name: str, arguments: str, call_id: str, position: int = 0) -> CallBlock:
    return CallBlock(call_id, name, arguments, position=position)


def asked(*turns: Any) -> Transcript:
    transcript = Transcript()
    transcript.push_user("Look.")
    for turn in turns:
        transcript.append_turn(*turn)
    return transcript


def own(*parts: Any, model: str = "gemini-3-pro") -> AssistantTurn:
    candidate = {"content": {"parts": list(parts)}, "finishReason": "STOP"}
    return Gemini.response({"candidates": [candidate], "modelVersion": model})


def answered(turn: AssistantTurn, *contents: Any, status: Any = "ok") -> Transcript:
    transcript = asked()
    turn = transcript.fresh_ids(turn)
    results = [
        ResultBlock(call.id, call.name, content, status)
        for call, content in zip(turn.calls, contents, strict=True)
    ]
    transcript.append_turn(turn, ToolResults(tuple(results)))
    return transcript


def last(transcript: Transcript, model: str | None = None) -> dict[str, Any]:
    return Gemini.messages(transcript, model=model)[-1]


# --- turns ----------------------------------------------------------------------------------------


def test_calls_of_others_are_marked_on_the_first_one_only() -> None:
    """Rule R2."""
    turn = foreign(called("a", '{"n":1}', "x"), called("b", "", "y", 1), text="I look.")
    transcript = answered(turn, "1", "2")
    content = Gemini.messages(transcript)[1]
    assert content == {
        "role": "model",
        "parts": [
            {"text": "I look."},
            {
                "functionCall": {"id": "x", "name": "a", "args": {"n": 1}},
                "thoughtSignature": PLACEHOLDER,
            },
            {"functionCall": {"id": "y", "name": "b", "args": {}}},
        ],
    }
    old = Gemini.messages(transcript, model="gemini-2.5-flash")[1]
    assert "thoughtSignature" not in json.dumps(old)


def test_a_call_that_an_older_model_did_not_sign_is_marked_for_a_newer_one() -> None:
    transcript = answered(own({"functionCall": {"name": "a", "args": {}}}), "1")
    assert Gemini.messages(transcript)[1]["parts"] == [{"functionCall": {"name": "a", "args": {}}}]
    newer = Gemini.messages(transcript, model="models/gemini-3.5-flash")[1]["parts"]
    assert newer[0]["thoughtSignature"] == PLACEHOLDER


def test_arguments_that_are_no_object_are_wrapped() -> None:
    """Rule R3."""
    for text in ("[1]", '{"a": NaN}', "{", '{"a": 1e999}'):
        args = Gemini.messages(answered(foreign(called("a", text, "x")), "1"))[1]["parts"][0]
        assert args["functionCall"]["args"] == {"INVALID_JSON": text}
    custom = CallBlock("x", "a", "select 1", "custom", position=0)
    args = Gemini.messages(answered(foreign(custom), "1"))[1]["parts"][0]
    assert args["functionCall"]["args"] == {"input": "select 1"}


def test_names_that_no_function_has_are_replaced_in_call_and_result() -> None:
    transcript = answered(foreign(called("not a name!", "{}", "x")), "1")
    made = Gemini.messages(transcript)
    name = made[1]["parts"][0]["functionCall"]["name"]
    assert name.startswith("tool_")
    assert made[2]["parts"][0]["functionResponse"]["name"] == name
    nameless = Gemini.messages(answered(own({"functionCall": {"args": {}}}), "1"))
    name = nameless[1]["parts"][0]["functionCall"]["name"]
    assert name
    assert nameless[2]["parts"][0]["functionResponse"]["name"] == name


def test_a_refusal_is_text_and_an_empty_turn_is_left_out() -> None:
    transcript = asked()
    transcript.append_turn(AssistantTurn("my_model", (RefusalBlock("No."),), b""))
    transcript.append_turn(own())
    assert Gemini.messages(transcript)[1:] == [{"role": "model", "parts": [{"text": "No."}]}]


# --- ids and results ------------------------------------------------------------------------------


def test_results_have_the_ids_of_the_wire_and_none_where_there_is_none() -> None:
    """Rule C6: ids of the transcript are its own."""
    parts = [
        {"functionCall": {"name": "a", "args": {}, "id": "dup"}},
        {"functionCall": {"name": "a"}},
    ]
    transcript = asked()
    for _ in range(2):
        turn = transcript.fresh_ids(own(*parts))
        assert len({call.id for call in turn.calls}) == 2
        assert all(call.id for call in turn.calls)
        results = [ResultBlock(call.id, "a", "1") for call in turn.calls]
        transcript.append_turn(turn, ToolResults(tuple(results)))
    contents = Gemini.messages(transcript)
    for model, user in ((1, 2), (3, 4)):
        assert contents[model]["parts"] == parts
        ids = [part["functionResponse"].get("id") for part in contents[user]["parts"]]
        assert ids == ["dup", None]


@pytest.mark.parametrize(
    ("content", "status", "response"),
    [
        ('{"n": 12345678901234567890}', "ok", {"output": '{"n": 12345678901234567890}'}),
        ("", "ok", {}),
        ("It broke.", "error", {"error": "It broke."}),
        (" ", "error", {"error": "a: failed"}),
        ("Tool call rejected: no", "rejected", {"error": "Tool call rejected: no"}),
        ((TextPart("A"), TextPart("B")), "ok", {"output": "A\nB"}),
    ],
)
def test_a_result_is_an_object_and_says_whether_it_failed(
    content: Any, status: Any, response: Any
) -> None:
    transcript = answered(own({"functionCall": {"name": "a"}}), content, status=status)
    assert last(transcript)["parts"] == [{"functionResponse": {"name": "a", "response": response}}]


def test_images_stand_in_a_result_or_behind_it_for_older_models() -> None:
    turn = own({"functionCall": {"name": "a"}})
    movie = FilePart(b"x", "video/mp4", filename="m.mp4")
    transcript = answered(turn, (TextPart("See"), ImagePart(PNG, "image/png"), movie))
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0K"}}
    text = "See\n[file left out: m.mp4, video/mp4, 1 bytes]"
    body = {"name": "a", "response": {"output": text}}
    assert last(transcript)["parts"] == [{"functionResponse": {**body, "parts": [image]}}]
    older = Gemini.messages(transcript, model="gemini-2.5-pro")[-2:]
    assert older[0]["parts"] == [{"functionResponse": body}]
    assert older[1]["parts"] == [{"text": "[shown by the result of a:]"}, image]


def test_parts_of_a_message_and_texts_in_place_of_what_is_not_taken() -> None:
    """Rule K7."""
    transcript = Transcript()
    transcript.push_user(
        [
            "Look",
            " ",
            ImagePart(url="https://example.org/a.webp?x"),
            ImagePart(url="https://example.org/a"),
            FilePart(url="https://example.org/a"),
            FilePart(b"x", "application/zip", filename="a.zip"),
            FilePart(b"a,b", "text/csv"),
            ImagePart(b"", "image/png"),
            RawPart(API, {"fileData": {"fileUri": "gs://a/b", "mimeType": "video/mp4"}}),
            RawPart("anthropic_messages", {"type": "text", "text": "Theirs."}),
        ]
    )
    parts = last(transcript)["parts"]
    assert parts[:3] == [
        {"text": "Look"},
        {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.org/a.webp?x"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a"}},
    ]
    assert parts[3]["text"].startswith("[file left out")
    assert "a.zip" in parts[4]["text"]
    assert parts[5] == {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}
    assert parts[7] == {"fileData": {"fileUri": "gs://a/b", "mimeType": "video/mp4"}}
    assert "Theirs." in parts[8]["text"]


# --- messages -------------------------------------------------------------------------------------


def test_leading_system_messages_are_the_instruction_and_later_ones_the_users() -> None:
    transcript = Transcript()
    transcript.push_system("Be kind.")
    transcript.push_developer("Be short.")
    assert Gemini.system(transcript) == {"parts": [{"text": "Be kind."}, {"text": "Be short."}]}
    with pytest.raises(TranscriptError, match="nothing to answer"):
        Gemini.request(transcript)
    transcript.push_user("Hi")
    transcript.push_system("Now longer.")
    assert last(transcript)["parts"] == [{"text": "<system>\nNow longer.\n</system>"}]
    read = Transcript.from_messages(API, [{"parts": [{"text": "Hi"}]}], {"parts": [{"text": "A"}]})
    assert Gemini.system(read) == {"parts": [{"text": "A"}]}


def test_what_is_said_beside_an_instruction_that_was_read_is_added_to_it() -> None:
    read = Transcript.from_messages(API, [], {"role": "user", "parts": [{"text": "A"}]})
    read.push_system("B")
    assert Gemini.system(read) == {"role": "user", "parts": [{"text": "A"}, {"text": "B"}]}
    plain = Transcript.from_messages(API, [], "A")
    assert Gemini.system(plain) == {"parts": [{"text": "A"}]}


def test_what_a_result_shows_for_one_api_alone() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
    content = (RawPart(API, image), FoundTool("look", "Look.", {"type": "object"}), TextPart(""))
    transcript = answered(own({"functionCall": {"name": "a"}}), content)
    (part,) = last(transcript)["parts"]
    assert part["functionResponse"]["parts"] == [image]
    assert "look" in part["functionResponse"]["response"]["output"].lower()
    transcript.push_user([FoundTool("look", "Look.", {"type": "object"})])
    assert "look" in last(transcript)["parts"][0]["text"].lower()


def test_the_user_speaks_first_and_last() -> None:
    transcript = Transcript()
    transcript.push_assistant("Hello.")
    with pytest.raises(TranscriptError, match="nothing to answer"):
        Gemini.request(transcript)
    transcript.push_user("Hi")
    assert [content["role"] for content in Gemini.request(transcript)["contents"]] == [
        "user",
        "model",
        "user",
    ]


def test_a_copy_of_a_transcript_goes_on_by_itself() -> None:
    transcript = answered(own({"functionCall": {"name": "a", "id": "q"}}), "1")
    Gemini.request(transcript)
    fork = transcript.fork()
    fork.push_user("On.")
    assert len(Gemini.request(fork)["contents"]) == len(Gemini.request(transcript)["contents"]) + 1


def test_thoughts_that_are_no_longer_valid_are_left_out() -> None:
    """Rule R5."""
    transcript = Transcript()
    for number in range(3):
        transcript.push_user(f"{number}")
        thought = {"text": "Hm", "thought": True, "thoughtSignature": "eA=="}
        transcript.append_turn(own(thought, {"text": "A"}))
    transcript.push_user("End")
    kept = Gemini.messages(transcript.window(max_rounds=2))
    assert "Hm" not in json.dumps(kept)
    assert kept[1]["parts"] == [{"text": "A"}]
    read = Transcript.from_messages(API, Gemini.messages(transcript)).window(max_rounds=2)
    assert "Hm" not in json.dumps(Gemini.messages(read))


# --- reading --------------------------------------------------------------------------------------


def exchange(results: list[Any], *, ids: bool = False) -> list[Any]:
    names = {"id": "1"} if ids else {}
    calls = [{"functionCall": {"name": "a", **names}}, {"functionCall": {"name": "b"}}]
    return [
        {"parts": [{"text": "Hi"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": results},
    ]


def result(name: str, value: Any, **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": value, **fields}}


def read_results(contents: list[Any]) -> list[tuple[str, str, str]]:
    transcript = Transcript.from_messages(API, contents)
    assert Gemini.messages(transcript) == contents
    (found,) = [item for item in transcript if isinstance(item, ToolResults)]
    return [(entry.name, entry.text, entry.status) for entry in found.results]


def test_results_are_told_by_id_name_and_order() -> None:
    two = [result("b", {"output": "2"}), result("a", {"error": "no"})]
    assert read_results(exchange(two)) == [("a", "no", "error"), ("b", "2", "ok")]
    named = [result("z", {"x": 1}), result("a", {"output": {"y": 2}}, id="1")]
    assert read_results(exchange(named, ids=True)) == [
        ("a", '{"y":2}', "ok"),
        ("b", '{"x":1}', "ok"),
    ]
    empty = [result("a", {}), {"function_response": {"name": "b", "response": {"error": ""}}}]
    assert read_results(exchange(empty)) == [("a", "", "ok"), ("b", "b: failed", "error")]


def test_parts_behind_results_are_the_users_words() -> None:
    shown = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
    contents = exchange([result("a", {}, parts=[shown]), result("b", {}), {"text": "And now?"}])
    contents.append(
        {"role": "user", "parts": [{"fileData": {"fileUri": "gs://a/b"}}, {"videoMetadata": {}}]}
    )
    transcript = Transcript.from_messages(API, contents)
    assert Gemini.messages(transcript) == contents
    assert [item.text for item in transcript if hasattr(item, "role")][1] == "And now?"


@pytest.mark.parametrize(
    ("results", "what"),
    [
        ([result("a", {})], "call 'b' has no result"),
        ([result("a", {}), result("b", {}), result("c", {})], "'c' is of no call"),
        ([{"text": "Wait"}, result("a", {}), result("b", {})], "stands after other content"),
    ],
)
def test_what_cannot_be_paired_is_refused_with_its_place(results: list[Any], what: str) -> None:
    with pytest.raises(TranscriptError, match=what):
        Transcript.from_messages(API, exchange(results))


def test_what_is_no_history_is_refused() -> None:
    for contents, what in (
        ([{"role": "tool", "parts": []}], "is none of this API"),
        ([{"role": "user", "parts": [result("a", {})]}], "of no call"),
        (exchange([])[:2], "no result"),
    ):
        with pytest.raises(TranscriptError, match=what):
            Transcript.from_messages(API, contents)
    with pytest.raises(TranscriptError, match="neither text"):
        Transcript.from_messages(API, [], [1])


# --- tools and settings ---------------------------------------------------------------------------

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"n": {"type": "integer"}}})
ADD = ToolSpec("add", "", {"type": "object"}, strict=True)


def body(offer: ToolOffering | None = None, **options: Any) -> dict[str, Any]:
    return Gemini.request(asked(), offer, **options)


def test_functions_stand_in_one_entry_with_json_schema() -> None:
    declared = [
        {"name": "look", "description": "Look.", "parametersJsonSchema": LOOK.schema},
        {"name": "add", "parametersJsonSchema": ADD.schema},
    ]
    offer = ToolOffering((LOOK, ADD))
    assert body(offer)["tools"] == [{"functionDeclarations": declared}] == Gemini.tools(offer)
    assert Gemini.tools(ToolOffering()) == []
    more = body(offer, tools=[{"googleSearch": {}}, {"function_declarations": [{"name": "x"}]}])
    assert more["tools"] == [
        {"functionDeclarations": [*declared, {"name": "x"}]},
        {"googleSearch": {}},
    ]
    assert body(tools={"googleSearch": {}})["tools"] == [{"googleSearch": {}}]
    assert body(tools="x")["tools"] == "x"


@pytest.mark.parametrize(
    ("offer", "config"),
    [
        (ToolOffering((LOOK,)), None),
        (ToolOffering((LOOK, ADD)), {"mode": "VALIDATED"}),
        (ToolOffering((LOOK,), "required"), {"mode": "ANY"}),
        (
            ToolOffering((LOOK,), "specific", "look"),
            {"mode": "ANY", "allowedFunctionNames": ["look"]},
        ),
        (
            ToolOffering((LOOK,), stable_specs=(LOOK, ADD)),
            {"mode": "VALIDATED", "allowedFunctionNames": ["look"]},
        ),
        (
            ToolOffering((LOOK,), "required", stable_specs=(LOOK, ADD)),
            {"mode": "ANY", "allowedFunctionNames": ["look"]},
        ),
        (ToolOffering((), stable_specs=(LOOK,)), {"mode": "NONE"}),
        (ToolOffering(()), None),
    ],
)
def test_the_choice_of_tools(offer: ToolOffering, config: Any) -> None:
    expected = None if config is None else {"functionCallingConfig": config}
    assert body(offer).get("toolConfig") == expected


def test_strict_is_a_mode_and_offers_that_are_refused_are_not_sent() -> None:
    assert body(ToolOffering((LOOK,)), strict=True)["toolConfig"] == {
        "functionCallingConfig": {"mode": "VALIDATED"}
    }
    for offer in (
        ToolOffering((), "required"),
        ToolOffering((LOOK,), "specific", "add"),
        ToolOffering((LOOK, LOOK)),
        ToolOffering((ToolSpec("no name", "", {"type": "object"}),)),
    ):
        with pytest.raises(InvalidToolConstraints):
            body(offer)


def test_settings_of_the_user_stand_beside_ours_and_win() -> None:
    thinking = {"thinkingConfig": {"includeThoughts": True}, "temperature": 1}
    made = body(
        ToolOffering((LOOK,), "required"),
        temperature=0.5,
        max_output_tokens=10,
        generation_config=thinking,
        toolConfig={"includeServerSideToolInvocations": True},
        system_instruction={"parts": [{"text": "B"}]},
        extra={"safetySettings": []},
    )
    assert made["generationConfig"] == {**thinking, "maxOutputTokens": 10}
    assert made["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY"},
        "includeServerSideToolInvocations": True,
    }
    assert made["safetySettings"] == []
    assert "systemInstruction" not in made
    assert body(generationConfig=5)["generationConfig"] == 5


def test_a_typed_answer_is_asked_for_by_json_schema() -> None:
    spec = OutputSpec("Answer", {"type": "object"}, "What it is.")
    made = body(output=spec, generationConfig={"topK": 3})
    assert made["generationConfig"] == {
        "topK": 3,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "description": "What it is."},
    }
    offer = ToolOffering((LOOK,))
    assert body(offer, output=spec, model="gemini-3-pro")["tools"]
    with pytest.raises(InvalidToolConstraints, match="structured"):
        body(offer, output=spec, model="gemini-2.5-pro")
