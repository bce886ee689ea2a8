"""Answers of generateContent: hand-made ones of each kind, hostile ones, streams in every form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.gemini import Gemini
from lutumpy.errors import AdapterError
from lutumpy.models import OpaqueBlock, ReasoningBlock, ResultBlock, TextBlock, ToolResults
from lutumpy.streaming import CallDelta, CallDone, ReasoningDelta, Started, TextDelta


def response(*parts: Any, finish: Any = "STOP", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", **fields}


def call(name: Any = "look", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **fields}}


def native(turn: AssistantTurn) -> list[Any]:
    parts: list[Any] = json.loads(turn.native)["parts"] if turn.native else []
    return parts


@pytest.mark.parametrize(
    ("finish", "mine", "cut"),
    [
        ("STOP", "stop", False),
        (1, "stop", False),
        ("MAX_TOKENS", "length", True),
        (2, "length", True),
        (8, "content_filter", True),
        ("SAFETY", "content_filter", True),
        ("MODEL_ARMOR", "content_filter", True),
        ("CONTINUATION", "paused", False),
        ("MALFORMED_FUNCTION_CALL", "tool_calls", True),
        ("MALFORMED_RESPONSE", "length", True),
        ("TOO_MANY_TOOL_CALLS", "length", True),
        ("MISSING_THOUGHT_SIGNATURE", "content_filter", True),
        ("ESCALATION", "content_filter", True),
        ("NO_IMAGE", "refusal", True),
        ("OTHER", "unknown", True),
        (5, "unknown", True),
        ("IMAGE_OTHER", "unknown", True),
        ("SOMETHING_NEW", "unknown", False),
        ("UNEXPECTED_TOOL_CALL", "tool_calls", True),
        ("unexpected_tool_call", "tool_calls", True),
        (None, "unknown", False),
    ],
)
def test_the_reason_for_the_end_in_other_words(finish: Any, mine: str, cut: bool) -> None:
    """Rule C9a."""
    turn = Gemini.response(response({"text": "Hi"}, finish=finish))
    assert (turn.finish_reason, turn.cut) == (mine, cut)


@pytest.mark.parametrize("finish", ["STOP", "UNEXPECTED_TOOL_CALL"])
def test_calls_are_told_by_themselves_and_not_by_the_reason(finish: str) -> None:
    turn = Gemini.response(response(call(args={"a": 1}), finish=finish))
    assert (turn.finish_reason, len(turn.calls), turn.cut) == ("tool_calls", 1, False)


def test_a_blocked_prompt_is_an_answer_without_content() -> None:
    turn = Gemini.response({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert (turn.finish_reason, turn.provider_finish_reason, turn.cut, turn.empty) == (
        "content_filter",
        "PROHIBITED_CONTENT",
        True,
        True,
    )


def test_every_kind_of_part_is_read_and_kept() -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "I look.", "thoughtSignature": "c2ln"},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        {
            "functionCall": {"name": "look", "args": {"n": 1.5}, "id": "ab"},
            "thoughtSignature": "eA==",
        },
        {"text": "", "thoughtSignature": "eQ=="},
    ]
    turn = Gemini.response(response(*parts))
    assert turn.blocks[:4] == (
        ReasoningBlock("Hm."),
        TextBlock("I look."),
        OpaqueBlock("executableCode"),
        OpaqueBlock("inlineData"),
    )
    assert (turn.calls[0].id, turn.calls[0].position, turn.text) == ("ab", 4, "I look.")
    assert native(turn) == parts


def test_what_no_request_takes_is_left_out_and_kept_beside() -> None:
    turn = Gemini.response(
        response(
            {"text": ""},
            {},
            "text",
            {"functionResponse": {"name": "look", "response": {}}},
            {"text": "Hi", "thought": None},
            {"functionCall": {"name": None, "args": None, "id": None}},
            {"functionCall": {"name": "look", "args": [1], "id": 7}},
        )
    )
    assert native(turn) == [
        {"text": "Hi"},
        {"functionCall": {"name": ""}},
        {"functionCall": {"name": "look", "args": {"INVALID_JSON": "[1]"}}},
    ]
    assert [c.arguments for c in turn.calls] == ["", "[1]"]
    assert set(json.loads(turn.residue)["parts"]) == {"2", "3"}


@pytest.mark.parametrize("odd", [5, [], {}, ["a"], {"a": 1}])
def test_a_field_of_another_type_does_not_go_back_K5(odd: Any) -> None:
    """The API refuses it, and so every later request."""
    code = {"executableCode": {"code": "1", "language": [], "id": odd}, "thoughtSignature": odd}
    turn = Gemini.response(
        response(
            {"text": "Hm", "thought": odd, "thoughtSignature": odd},
            {**call(), "thought_signature": odd},
            {**code, "more": odd},
            {"toolResponse": {"id": "t", "toolType": "NEW", "response": 5}},
        )
    )
    assert native(turn) == [
        {"text": "Hm"},
        call(),
        {"executableCode": {"code": "1"}, "more": odd},
        {"toolResponse": {"id": "t", "toolType": "NEW"}},
    ]


def test_numbers_that_are_none_are_never_run() -> None:
    """Rules C2b and R3."""
    turn = Gemini.response(response(call(args={"n": float("nan")})))
    assert turn.calls[0].problem is not None
    json.loads(turn.native, parse_constant=lambda name: pytest.fail(name))


def test_only_the_first_candidate_is_read() -> None:
    other = {"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"}
    first = {"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}
    assert Gemini.response({"candidates": [other, first]}).text == "A"
    assert Gemini.response({"candidates": [other]}).text == ""


def test_usage_counts_thoughts_and_the_prompts_of_tools() -> None:
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 20,
    }
    found = Gemini.response(response({"text": "A"}, usageMetadata=usage)).usage
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (15, 5, 20)
    assert (found.cached_input_tokens, found.reasoning_tokens) == (4, 2)
    assert found.all_input_tokens == 15


def test_an_error_is_raised_with_what_it_says() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    body = {
        "error": {
            "code": 429,
            "message": "Quota.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [detail],
        }
    }
    with pytest.raises(AdapterError, match="Quota") as caught:
        Gemini.response(body)
    error = caught.value
    assert (error.status, error.code, error.retryable) == (429, "RESOURCE_EXHAUSTED", True)
    assert error.retry_after == 34.5
    with pytest.raises(AdapterError, match="Quota"):
        Gemini.stream_decoder().feed([body])
    for wrong in ({}, {"choices": []}, [], "no"):
        with pytest.raises(AdapterError):
            Gemini.response(wrong)


@pytest.mark.parametrize("delay", ["soon", "-1s", "nans", 5, None])
def test_a_delay_that_is_none_is_ignored(delay: Any) -> None:
    body = {"error": {"code": 503, "message": "Busy.", "details": [{"retryDelay": delay}]}}
    with pytest.raises(AdapterError) as caught:
        Gemini.response(body)
    assert caught.value.retry_after is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "text thought functionCall name args id partialArgs jsonPath stringValue parts "
                "willContinue content candidates finishReason usageMetadata index".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(parts=st.lists(JSON, max_size=4), finish=JSON, usage=JSON)
@settings(max_examples=examples(150))
def test_nothing_that_a_model_writes_raises(parts: list[Any], finish: Any, usage: Any) -> None:
    """Rule C8."""
    reply = response(*parts, finish=finish, usageMetadata=usage)
    turn = Gemini.response(reply)
    transcript = Transcript()
    transcript.push_user("Hi")
    fresh = transcript.fresh_ids(turn)
    results = tuple([ResultBlock(found.id, found.name, "1") for found in fresh.calls])
    transcript.append_turn(fresh, ToolResults(results) if results else None)
    transcript.push_user("On")
    Gemini.request(transcript, model="gemini-3-pro")
    decoder = Gemini.stream_decoder()
    for part in parts:
        decoder.feed(response(part, finish=None))
        decoder.partial()
    decoder.feed(response(finish="STOP"))
    decoder.finish()


@given(chunks=st.lists(JSON, max_size=4))
@settings(max_examples=examples(100))
def test_a_hostile_stream_ends_in_an_answer_or_an_error(chunks: list[Any]) -> None:
    decoder = Gemini.stream_decoder()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        decoder.finish()
    except AdapterError:
        pass
    decoder.partial()


def test_a_signed_thought_without_a_text_goes_back_R1() -> None:
    thought = {"thought": True, "thoughtSignature": "eA=="}
    whole = Gemini.response(response(thought, {"text": "So."}))
    decoder = Gemini.stream_decoder()
    decoder.feed(chunk(thought))
    decoder.feed(chunk({"text": "So."}, finish="STOP"))
    history = Transcript.from_messages(
        "gemini_generate_content",
        [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [thought, {"text": "So."}]},
        ],
    )
    turns = [item for item in history if isinstance(item, AssistantTurn)]
    for turn in (whole, decoder.finish(), turns[0]):
        assert turn.blocks[0] == ReasoningBlock("", signed=True)
        if turn is not turns[0]:  # which has its entries
            assert native(turn) == [thought, {"text": "So."}]
    history.push_user("On.")
    assert Gemini.request(history)["contents"][1]["parts"][0] == thought
    assert not json.loads(whole.residue or b"{}").get("parts")
    # Alone it is a turn, too.
    assert native(Gemini.response(response(thought))) == [thought]


# --- streams --------------------------------------------------------------------------------------


def chunk(*parts: Any, finish: Any = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **fields}


def test_a_stream_reports_what_arrives_as_it_arrives() -> None:
    decoder = Gemini.stream_decoder()
    assert decoder.feed(
        chunk({"text": "Hm", "thought": True}, modelVersion="m", responseId="r")
    ) == [
        Started("m", "r"),
        ReasoningDelta("Hm"),
    ]
    assert decoder.feed(chunk({"text": "A"})) == [TextDelta("A")]
    assert decoder.feed(chunk({"text": "B\ud83d"})) == [TextDelta("B")]
    assert decoder.feed(chunk({"text": "\ude00"})) == [TextDelta("\U0001f600")]
    first, second = decoder.feed(chunk(call("a", args={"n": 1}), call("b")))[:2]
    assert isinstance(first, CallDelta)
    assert (first.index, first.arguments) == (0, '{"n":1}')
    assert isinstance(second, CallDelta)
    assert second.index == 1
    done = decoder.feed(chunk({"text": "", "thoughtSignature": "eA=="}, finish="STOP"))
    turn = decoder.finish("req")
    assert [d.call for d in done if isinstance(d, CallDone)] == [turn.calls[1]]
    assert (turn.text, turn.request_id, turn.finish_reason) == ("AB\U0001f600", "req", "tool_calls")
    assert native(turn)[-1] == {"text": "", "thoughtSignature": "eA=="}
    assert decoder.finish() is turn


def test_half_a_character_at_the_end_becomes_a_mark() -> None:
    decoder = Gemini.stream_decoder()
    decoder.feed(chunk({"text": "A\ud83d"}))
    assert decoder.feed(chunk({"executableCode": {"code": "1"}}, finish="STOP")) == [
        TextDelta("\ufffd")
    ]
    assert decoder.finish().text == "A\ufffd"


def test_the_last_call_of_an_answer_that_was_cut_is_never_done() -> None:
    """Rule C2a."""
    decoder = Gemini.stream_decoder()
    deltas = [*decoder.feed(chunk(call("a"), call("b"))), *decoder.feed(chunk(finish="MAX_TOKENS"))]
    assert [d.index for d in deltas if isinstance(d, CallDone)] == [0]
    assert decoder.finish().cut


def test_a_stream_that_breaks_off_raises_with_what_had_arrived() -> None:
    decoder = Gemini.stream_decoder()
    assert decoder.partial() is None
    with pytest.raises(AdapterError, match="finishReason"):
        Gemini.stream_decoder().finish()
    decoder.feed(chunk({"text": "A"}, call("a", args={})))
    decoder.feed(chunk(call("b", willContinue=True)))
    with pytest.raises(AdapterError) as caught:
        decoder.finish()
    partial = caught.value.partial
    assert partial is not None
    assert partial.text == "A"
    assert [c.name for c in getattr(partial, "calls", ())] == ["a", "b"]


def arguments_of(*pieces: dict[str, Any], closed: bool = True) -> Any:
    decoder = Gemini.stream_decoder()
    begin = {"functionCall": {"name": "look", "willContinue": True}, "thoughtSignature": "eA=="}
    decoder.feed(chunk(begin))
    for piece in pieces:
        decoder.feed(chunk({"functionCall": {"partialArgs": [piece], "willContinue": True}}))
    if closed:
        decoder.feed(chunk({"functionCall": {}}))
    deltas = decoder.feed(chunk({"text": ""}, finish="STOP"))
    turn = decoder.finish()
    assert native(turn)[0]["thoughtSignature"] == "eA=="
    assert any(isinstance(d, CallDone) for d in deltas)
    assert len(turn.calls) == 1
    return json.loads(turn.calls[0].arguments)


@pytest.mark.parametrize("closed", [True, False])
def test_arguments_that_arrive_value_by_value_are_put_together(closed: bool) -> None:
    found = arguments_of(
        {"jsonPath": "$.city", "stringValue": "Ro", "willContinue": True},
        {"jsonPath": "$.city", "stringValue": "me", "willContinue": True},
        {"jsonPath": "$.city", "stringValue": ""},
        {"jsonPath": "$.at.days[0]", "numberValue": 3.0},
        {"jsonPath": "$.at.days[1]", "numberValue": 1.5},
        {"jsonPath": "$['a b'][\"c\"]", "boolValue": False},
        {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
        {"jsonPath": "$.late", "willContinue": True},
        {"jsonPath": "$.late", "stringValue": "x"},
        closed=closed,
    )
    assert found == {
        "city": "Rome",
        "at": {"days": [3, 1.5]},
        "a b": {"c": False},
        "none": None,
        "late": "x",
    }


def test_calls_that_arrive_in_pieces_do_not_mix() -> None:
    decoder = Gemini.stream_decoder()
    decoder.feed(chunk(call("a", willContinue=True)))
    decoder.feed(
        chunk(
            {
                "functionCall": {
                    "partialArgs": [{"jsonPath": "$.n", "numberValue": 1}],
                    "willContinue": True,
                }
            }
        )
    )
    decoder.feed(chunk(call("b")))
    decoder.feed(chunk({"functionCall": {}}))
    decoder.feed(chunk(call("c", partialArgs=[{"jsonPath": "$.n", "numberValue": 2}])))
    decoder.feed(chunk(finish="STOP"))
    turn = decoder.finish()
    assert [(c.name, c.arguments) for c in turn.calls] == [
        ("a", '{"n":1}'),
        ("b", ""),
        ("c", '{"n":2}'),
    ]


def test_the_body_that_was_received_counts_before_what_the_sdk_made_of_it() -> None:
    class Reply:
        sdk_http_response = type("Response", (), {"body": json.dumps(response({"text": "hi"}))})()

        def model_dump(self, **options: Any) -> dict[str, Any]:
            return response({"text": "something else"})

    turn = Gemini.response(Reply())
    assert [block.text for block in turn.blocks if isinstance(block, TextBlock)] == ["hi"]
