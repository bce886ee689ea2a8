"""Requests of Converse: other APIs' turns, results, images, documents, tools and settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutumpy import FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.dumps import dump_transcript, load_transcript
from lutumpy.errors import DeclarationError, InvalidToolConstraints, TranscriptError
from lutumpy.models import (
    AssistantTurn,
    CallBlock,
    FoundTool,
    Message,
    OutputSpec,
    RawPart,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
)

API = "bedrock_converse"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
PNG = b"\x89PNG\r\n"
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LOOK = ToolSpec("look", "Look.", OBJECT)


def foreign(*calls: CallBlock, text: str = "") -> AssistantTurn:
    blocks = (*([TextBlock(text)] if text else []), *calls)
    return AssistantTurn("my_model", blocks, b"", calls)


def called(name: str, arguments: str, call_id: str, position: int = 0, **more: Any) -> CallBlock:
    return CallBlock(call_id, name, arguments, position=position, **more)


def asked(*turns: Any) -> Transcript:
    transcript = Transcript()
    transcript.push_user("Look.")
    for turn in turns:
        transcript.append_turn(*turn)
    return transcript


def own(*content: Any, stop: str = "end_turn") -> AssistantTurn:
    return BedrockConverse.response(
        {"output": {"message": {"content": list(content)}}, "stopReason": stop}
    )


def answered(turn: AssistantTurn, *contents: Any, status: Any = "ok") -> Transcript:
    transcript = asked()
    turn = transcript.fresh_ids(turn)
    results = [
        ResultBlock(call.id, call.name, content, status)
        for call, content in zip(turn.calls, contents, strict=True)
    ]
    transcript.append_turn(turn, ToolResults(tuple(results)))
    return transcript


def messages(transcript: Transcript, model: str | None = None) -> list[dict[str, Any]]:
    return BedrockConverse.messages(transcript, model=model)


def last(transcript: Transcript, model: str | None = None) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = messages(transcript, model)[-1]["content"]
    return content


# --- turns ----------------------------------------------------------------------------------------


def test_calls_of_others_keep_their_names_ids_and_arguments() -> None:
    """Rules R2 and R3."""
    turn = foreign(
        called("look", '{"n":1}', "a"),
        called("a name!", "[1]", "b c", 1),
        called("look", "{", "c", 2),
        called("patch", "*** Begin", "d", 3, kind="custom"),
        text="I look.",
    )
    content = messages(answered(turn, "1", "2", "3", "4"))[1]["content"]
    assert content[0] == {"text": "I look."}
    uses = [block["toolUse"] for block in content[1:]]
    assert [use["input"] for use in uses] == [
        {"n": 1},
        {"INVALID_JSON": "[1]"},
        {"INVALID_JSON": "{"},
        {"input": "*** Begin"},
    ]
    assert uses[0] == {"toolUseId": "a", "name": "look", "input": {"n": 1}}
    assert " " not in uses[1]["name"] + uses[1]["toolUseId"]


def test_a_refusal_is_text_and_an_empty_turn_is_left_out() -> None:
    refused = AssistantTurn("my_model", (RefusalBlock("No."),), b"", ())
    transcript = asked((refused, None))
    transcript.push_user("Why?")
    assert messages(transcript)[1] == {"role": "assistant", "content": [{"text": "No."}]}
    transcript = asked((foreign(), None))
    transcript.push_user("Again.")
    assert messages(transcript) == [
        {"role": "user", "content": [{"text": "Look."}, {"text": "Again."}]}
    ]


def test_own_calls_without_an_id_or_a_name_get_one_that_the_api_takes() -> None:
    turn = own({"toolUse": {"name": "a b", "input": {}}}, {"toolUse": {"toolUseId": "x"}})
    content = messages(answered(turn, "1", "2"))
    uses = [block["toolUse"] for block in content[1]["content"]]
    results = [block["toolResult"] for block in content[2]["content"]]
    assert [use["toolUseId"] for use in uses] == [result["toolUseId"] for result in results]
    assert all(use["toolUseId"] and use["name"] and " " not in use["name"] for use in uses)


def test_reasoning_goes_to_those_who_take_it() -> None:
    signed = {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}}
    unsigned = {"reasoningContent": {"reasoningText": {"text": "Hm"}}}
    use = {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}
    transcript = answered(own(signed, unsigned, {"text": " "}, use, stop="tool_use"), "done")
    # Claude takes white space as well, and no reasoning without its signature.
    assert messages(transcript, CLAUDE)[1]["content"] == [signed, {"text": " "}, use]
    nova = messages(transcript, "amazon.nova-pro-v1:0")[1]["content"]
    assert nova == [signed, unsigned, use]


def test_results_stand_alone_for_models_that_want_it() -> None:
    transcript = answered(foreign(called("look", "{}", "a")), "done")
    transcript.push_user("Thanks.")
    roles = [message["role"] for message in messages(transcript, LLAMA)]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [message["role"] for message in messages(transcript, CLAUDE)] == [
        "user",
        "assistant",
        "user",
    ]
    assert [*last(transcript, CLAUDE)[0]] == ["toolResult"]


# --- results and parts ----------------------------------------------------------------------------


def test_a_result_says_whether_it_failed_and_is_never_an_empty_error() -> None:
    call = foreign(called("look", "{}", "a"))
    assert last(answered(call, "sun")) == [
        {"toolResult": {"toolUseId": "a", "content": [{"text": "sun"}]}}
    ]
    assert last(answered(call, ""))[0]["toolResult"]["content"] == []
    failed = last(answered(call, "", status="failed"))[0]["toolResult"]
    assert (failed["status"], failed["content"]) == ("error", [{"text": "look: failed"}])


def test_images_and_documents_stand_in_results_and_messages() -> None:
    parts = (
        TextPart("see"),
        TextPart("  "),
        ImagePart(data=PNG, media_type="image/png"),
        FilePart(data=b"a,b", media_type="text/csv", filename="my table?.csv"),
        FilePart(data=b"zip", media_type="application/zip", filename="a.zip"),
        ImagePart(url="https://example.com/a.png"),
        FoundTool("find", "Find.", {}),
        RawPart(API, {"cachePoint": {"type": "default"}}),
        RawPart("openai_chat", {"x": 1}, text="instead"),
    )
    content = last(answered(foreign(called("look", "{}", "a")), parts))[0]["toolResult"]["content"]
    assert content[0] == {"text": "see"}
    assert content[1] == {"image": {"format": "png", "source": {"bytes": "iVBORw0K"}}}
    assert content[2]["document"]["name"] == "my table"
    assert content[2]["document"]["format"] == "csv"
    assert "a.zip" in content[3]["text"]
    assert "https://example.com/a.png" in content[4]["text"]
    assert "instead" in json.dumps(content)
    transcript = Transcript()
    transcript.append(Message("user", (FilePart(data=b"x", media_type="application/pdf"),)))
    content = last(transcript)
    assert content[0] == {"text": "The document:"}
    assert content[1]["document"]["name"] == "document"
    body = BedrockConverse.request(transcript, blobs="bytes")
    assert body["messages"][0]["content"][1]["document"]["source"]["bytes"] == b"x"


def test_leading_system_messages_are_the_system_and_later_ones_the_users() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("Hi")
    transcript.push_system("Be kind.")
    assert BedrockConverse.system(transcript) == [{"text": "Be brief."}]
    assert last(transcript) == [
        {"text": "Hi"},
        {"text": "<system>\nBe kind.\n</system>"},
    ]
    read = Transcript.from_messages(API, [], [{"text": "A."}, {"cachePoint": {"type": "default"}}])
    read.push_system("B.")
    system = BedrockConverse.system(read)
    assert system == [{"text": "A."}, {"cachePoint": {"type": "default"}}, {"text": "B."}]
    assert BedrockConverse.system(Transcript()) is None


def test_the_user_speaks_first_and_last() -> None:
    transcript = Transcript()
    with pytest.raises(TranscriptError, match="needs a user message"):
        BedrockConverse.request(transcript)
    transcript.append(Message("assistant", (TextPart("Hello."),)))
    assert [message["role"] for message in messages(transcript)] == ["user", "assistant"]
    with pytest.raises(TranscriptError, match="ends with the assistant"):
        BedrockConverse.request(transcript)


def test_a_copy_of_a_transcript_goes_on_by_itself() -> None:
    transcript = asked()
    before = messages(transcript)
    fork = transcript.fork()
    fork.push_user("More.")
    assert messages(transcript) == before
    assert len(last(fork)) == 2


def test_what_was_read_is_extended_and_keeps_what_it_had() -> None:
    history = [{"role": "user", "content": [{"text": "Hi"}, {"cachePoint": {"type": "default"}}]}]
    transcript = Transcript.from_messages(API, history)
    transcript.push_user("And?")
    assert last(transcript) == [*history[0]["content"], {"text": "And?"}]


def test_a_message_that_was_read_joins_a_summary_before_it() -> None:
    """Rule K5: the roles alternate, also in the window of a history."""
    history = [
        user({"text": "A?"}),
        assistant({"text": "A."}),
        user({"text": "B?"}),
        assistant(USE),
    ]
    history += [user(RESULT, {"text": "Well?"}), assistant({"text": "B."})]
    transcript = Transcript.from_messages(API, history)
    transcript.push_user("C?")
    for window in (
        transcript.window(max_rounds=2, summary="They asked A."),
        transcript.select(transcript.rounds()[-2:], summary="They asked A."),
    ):
        sent = messages(window)
        assert [message["role"] for message in sent] == ["user", "assistant"] * 2 + ["user"]
        assert sent[0]["content"] == [{"text": "They asked A."}, {"text": "B?"}]
        assert sent[1:] == [*history[3:], user({"text": "C?"})]
    for index, message in enumerate(messages(transcript)[:-1]):
        assert message == history[index]


def test_reasoning_that_is_no_longer_valid_is_left_out() -> None:
    """Rule R5."""
    signed = {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}}
    transcript = Transcript()
    for number in range(3):
        transcript.push_user(f"{number}")
        transcript.append_turn(own(signed, {"text": "A"}))
    transcript.push_user("End")
    kept = messages(transcript.window(max_rounds=2), CLAUDE)
    assert "Hm" not in json.dumps(kept)
    assert kept[1]["content"] == [{"text": "A"}]
    read = Transcript.from_messages(API, messages(transcript)).window(max_rounds=2)
    assert "Hm" not in json.dumps(messages(read))


# --- histories ------------------------------------------------------------------------------------

USE = {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "a", "content": [{"text": "sun"}]}}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


@pytest.mark.parametrize(
    ("history", "what"),
    [
        ([user({"text": "Hi"}), assistant(USE)], "has no result in the next message"),
        ([user({"text": "Hi"}), assistant(USE), user({"text": "x"})], "has no result"),
        ([user({"text": "Hi"}), assistant(USE), user(RESULT, RESULT)], "is the second one for 'a'"),
        (
            [user({"text": "Hi"}), assistant(USE), user({"text": "x"}, RESULT)],
            "after other content",
        ),
        ([user(RESULT)], "'a'"),
        ([{"role": "tool", "content": []}], "is none of this API"),
    ],
)
def test_what_cannot_be_paired_is_refused_with_its_place(history: list[Any], what: str) -> None:
    with pytest.raises(TranscriptError, match=what):
        Transcript.from_messages(API, history)


def test_what_is_no_history_is_refused() -> None:
    for history in ("x", 5, [5], None):
        with pytest.raises(TranscriptError):
            Transcript.from_messages(API, history)  # type: ignore[arg-type]
    with pytest.raises(TranscriptError, match="neither text nor blocks"):
        Transcript.from_messages(API, [], {"text": "x"})


def test_what_stands_behind_results_is_the_users_words() -> None:
    history = [user({"text": "Hi"}), assistant(USE), user(RESULT, {"text": "Thanks."})]
    transcript = Transcript.from_messages(API, history)
    assert messages(transcript) == history
    assert [type(item).__name__ for item in transcript] == [
        "Message",
        "AssistantTurn",
        "ToolResults",
        "Message",
    ]
    history = [*history[:2], user(RESULT), user({"text": "More."}), assistant({"text": "Yes."})]
    assert messages(Transcript.from_messages(API, history)) == history


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"text": "words"}, "words"),
        ({"json": {"n": 1}}, '{"n":1}'),
        ({"image": {"format": "png", "source": {"bytes": "iVBORw0K"}}}, None),
        ({"image": {"format": "png", "source": "s3://a"}}, None),
        ({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b"}}}}, None),
        ({"image": 5}, None),
        ({"document": {"format": "pdf", "name": "a", "source": {"bytes": "eA=="}}}, None),
        ({"document": {"format": "txt", "name": "a", "source": {"text": "x"}}}, None),
        ({"document": {"format": "odd", "source": 5}}, None),
        ({"video": {"format": "mp4", "source": {"bytes": "eA=="}}}, None),
        (
            {"searchResult": {"title": "T", "source": "s", "content": [{"text": "found"}]}},
            "T\ns",
        ),
        ({"5": "odd"}, None),
        (7, None),
    ],
)
def test_every_kind_of_content_is_read_and_goes_back(block: Any, shown: str | None) -> None:
    result = {"toolResult": {"toolUseId": "a", "content": [block]}}
    history = [user({"text": "Hi"}), assistant(USE), user(result)]
    transcript = Transcript.from_messages(API, history)
    again = load_transcript(dump_transcript(transcript))
    assert messages(again) == messages(transcript) == history
    if shown is not None:
        (results,) = [item for item in transcript if isinstance(item, ToolResults)]
        content = results.results[0].content
        texts = (
            [content]
            if isinstance(content, str)
            else [part.text for part in content if isinstance(part, TextPart)]
        )
        assert texts[0] == shown


def test_bytes_of_the_sdk_are_read_as_base64() -> None:
    block = {"image": {"format": "png", "source": {"bytes": PNG}}}
    transcript = Transcript.from_messages(API, [user(block, {"text": "What is it?"})])
    assert last(transcript)[0]["image"]["source"]["bytes"] == "iVBORw0K"
    other = Transcript.from_messages(
        API, [user({"image": {"format": "png", "source": {"bytes": bytearray(PNG)}}})]
    )
    assert last(other)[0]["image"]["source"]["bytes"] == "iVBORw0K"
    body = BedrockConverse.request(transcript, blobs="bytes")
    assert body["messages"][0]["content"][0] == block


def test_only_bytes_of_the_api_become_bytes_for_the_sdk() -> None:
    image = {"image": {"format": "png", "source": {"bytes": "no base64!"}}}
    own_words = {"toolUse": {"toolUseId": "a", "name": "look", "input": {"bytes": "eA=="}}}
    history = [user(image), assistant(own_words), user(RESULT)]
    body = BedrockConverse.request(Transcript.from_messages(API, history), blobs="bytes")
    assert body["messages"][0]["content"] == [image]
    assert body["messages"][1]["content"] == [own_words]


def test_a_system_message_within_a_history_is_read() -> None:
    history = [user({"text": "Hi"}), {"role": "system", "content": [{"text": "Be kind."}]}]
    transcript = Transcript.from_messages(API, history)
    assert [item.role for item in transcript if isinstance(item, Message)] == ["user", "system"]


# --- tools and settings ---------------------------------------------------------------------------


def test_tools_are_offered_with_their_schema_and_strict_where_wanted() -> None:
    offer = ToolOffering((LOOK, ToolSpec("plain", "", {"type": "object"})))
    tools = BedrockConverse.tools(offer)
    assert tools[0] == {
        "toolSpec": {"name": "look", "description": "Look.", "inputSchema": {"json": OBJECT}}
    }
    assert "description" not in tools[1]["toolSpec"]
    strict = BedrockConverse.tools(offer, strict=True)
    assert strict[0]["toolSpec"]["strict"] is True
    assert strict[0]["toolSpec"]["inputSchema"]["json"]["additionalProperties"] is False
    assert BedrockConverse.tools(offer, strict=True) == strict
    assert BedrockConverse.tools(offer) == tools


def test_a_schema_without_a_strict_form_is_refused_only_where_strict_was_asked_for() -> None:
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    tools = BedrockConverse.tools(ToolOffering((ToolSpec("free", "F.", free),)), strict=True)
    assert "strict" not in tools[0]["toolSpec"]
    wanted = ToolOffering((ToolSpec("free", "F.", free, strict=True),))
    with pytest.raises(DeclarationError):
        BedrockConverse.tools(wanted)


def test_an_offer_that_is_refused_is_not_sent() -> None:
    for spec in (ToolSpec("a b", "x", {"type": "object"}), ToolSpec("x" * 65, "x", {})):
        with pytest.raises(InvalidToolConstraints, match="Converse refuses"):
            BedrockConverse.request(asked(), ToolOffering((spec,)))


@pytest.mark.parametrize(
    ("offer", "choice"),
    [
        (ToolOffering((LOOK,)), None),
        (ToolOffering((LOOK,), "required"), {"any": {}}),
        (ToolOffering((LOOK,), "specific", "look"), {"tool": {"name": "look"}}),
    ],
)
def test_the_choice_of_tools(offer: ToolOffering, choice: Any) -> None:
    body = BedrockConverse.request(asked(), offer)
    assert body["toolConfig"].get("toolChoice") == choice
    own_choice = {"toolConfig": {"toolChoice": {"auto": {}}}}
    body = BedrockConverse.request(asked(), offer, extra=own_choice)
    assert body["toolConfig"]["toolChoice"] == {"auto": {}}


def test_a_choice_that_cannot_be_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidToolConstraints, match="not among the tools offered"):
        BedrockConverse.request(asked(), ToolOffering((LOOK,), "specific", "other"))
    with pytest.raises(InvalidToolConstraints, match="no tool is offered"):
        BedrockConverse.request(asked(), ToolOffering((), "required"))
    thinking = {
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1}}
    }
    offer = ToolOffering((LOOK,), "required")
    with pytest.raises(InvalidToolConstraints, match="thinking is enabled"):
        BedrockConverse.request(asked(), offer, model=CLAUDE, extra=thinking)
    assert not BedrockConverse(CLAUDE, extra=thinking).takes_forced_choice({})
    assert BedrockConverse(CLAUDE).takes_forced_choice({})
    assert BedrockConverse(LLAMA).takes_forced_choice(thinking)


def test_a_history_with_calls_has_tools_beside_it() -> None:
    """ "The toolConfig field must be defined when using toolUse and toolResult content blocks." """
    transcript = answered(foreign(called("look", "{}", "a")), "done")
    (tool,) = BedrockConverse.request(transcript)["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "no_tools"
    given = {"toolConfig": {"tools": [{"toolSpec": {"name": "mine"}}]}}
    (tool,) = BedrockConverse.request(transcript, extra=given)["toolConfig"]["tools"]
    assert tool == {"toolSpec": {"name": "mine"}}
    both = BedrockConverse.request(transcript, ToolOffering((LOOK,)), extra=given)
    names = [tool["toolSpec"]["name"] for tool in both["toolConfig"]["tools"]]
    assert names == ["look", "mine"]
    assert "toolConfig" not in BedrockConverse.request(asked())


def test_settings_of_the_user_stand_beside_ours_and_win() -> None:
    body = BedrockConverse.request(
        asked(),
        temperature=0.5,
        max_output_tokens=7,
        extra={"inferenceConfig": {"maxTokens": 9, "topP": 0.1}},
        guardrailConfig={"guardrailIdentifier": "g"},
    )
    assert body["inferenceConfig"] == {"temperature": 0.5, "maxTokens": 9, "topP": 0.1}
    assert body["guardrailConfig"] == {"guardrailIdentifier": "g"}
    odd = BedrockConverse.request(
        asked(), temperature=0.5, inferenceConfig=None, toolConfig="whatever"
    )
    assert odd["toolConfig"] == "whatever"
    assert BedrockConverse.request(asked(), toolConfig={"x": 1})["toolConfig"] == {"x": 1}


def test_a_typed_answer_is_asked_for_by_json_schema() -> None:
    output = OutputSpec("answer", OBJECT, "The answer.")
    form = BedrockConverse.request(asked(), output=output)["outputConfig"]["textFormat"]
    assert form["type"] == "json_schema"
    schema = form["structure"]["jsonSchema"]
    assert (schema["name"], schema["description"]) == ("answer", "The answer.")
    assert json.loads(schema["schema"]) == OBJECT
