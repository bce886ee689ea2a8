"""Answers of Converse: hand-made ones of each kind, hostile ones, streams in every form."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.errors import AdapterError, TranscriptError
from lutumpy.models import OpaqueBlock, ReasoningBlock, TextBlock
from lutumpy.streaming import CallDelta, CallDone, ReasoningDelta, Started, TextDelta

API = "bedrock_converse"


def response(*content: Any, stop: Any = "end_turn", **fields: Any) -> dict[str, Any]:
    return {"output": {"message": {"content": list(content)}}, "stopReason": stop, **fields}


def use(call_id: Any = "a", name: Any = "look", **fields: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {}, **fields}}


def native(turn: AssistantTurn) -> list[Any]:
    return json.loads(turn.native) if turn.native else []


@pytest.mark.parametrize(
    ("stop", "mine", "cut"),
    [
        ("end_turn", "stop", False),
        ("tool_use", "tool_calls", False),
        ("max_tokens", "length", True),
        ("model_context_window_exceeded", "length", True),
        ("guardrail_intervened", "content_filter", True),
        ("malformed_tool_use", "tool_calls", True),
        ("malformed_model_output", "length", True),
        ("content_filtered", "content_filter", True),
        ("something_new", "unknown", False),
        (None, "unknown", False),
        (5, "unknown", False),
    ],
)
def test_the_reason_for_the_end_in_other_words(stop: Any, mine: str, cut: bool) -> None:
    turn = BedrockConverse.response(response({"text": "x"}, stop=stop))
    assert (turn.finish_reason, turn.cut) == (mine, cut)


def test_every_kind_of_block_is_read_and_kept() -> None:
    cited = {
        "citationsContent": {"content": [{"text": "as "}, {"text": "told"}, 5], "citations": []}
    }
    hidden = {"reasoningContent": {"redactedContent": "eA=="}}
    server = use("s", "search", type="server_tool_use")
    told = {"toolResult": {"toolUseId": "s", "content": [], "type": "web"}}
    turn = BedrockConverse.response(
        response(
            {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
            {"reasoningContent": {"reasoningText": {"text": None, "signature": ""}}},
            hidden,
            cited,
            {"citationsContent": {"content": "odd"}},
            server,
            told,
            use(type="tool_use"),
        )
    )
    kinds = [type(block).__name__ for block in turn.blocks]
    assert kinds[:5] == ["ReasoningBlock"] * 3 + ["TextBlock"] * 2
    assert [block.text for block in turn.blocks if isinstance(block, TextBlock)] == ["as told", ""]
    signed = [block.signed for block in turn.blocks if isinstance(block, ReasoningBlock)]
    assert signed == [True, False, True]
    assert [b.kind for b in turn.blocks if isinstance(b, OpaqueBlock)] == ["toolUse", "toolResult"]
    assert [call.id for call in turn.calls] == ["a"]
    back = native(turn)
    assert back[1] == {"reasoningContent": {"reasoningText": {"text": ""}}}
    assert (back[2], back[3], back[5], back[6]) == (hidden, cited, server, told)
    # The type that answers give to calls is one that no request may hold.
    assert back[7] == use()


def test_what_no_request_takes_is_left_out_and_kept_beside() -> None:
    odd = [
        5,
        None,
        {},
        {"text": ""},
        {"text": 5},
        {"toolUse": "x"},
        {"SDK_UNKNOWN_MEMBER": {"name": "n"}},
    ]
    odd += [{"reasoningContent": {}}, {7: {"x": 1}}, {"text": None}]
    turn = BedrockConverse.response(response(*odd, {"text": "yes"}, more={"x": 1}))
    assert native(turn) == [{"text": "yes"}]
    assert json.loads(turn.residue)["more"] == {"x": 1}
    assert json.loads(turn.residue)["content"]["4"] == {"text": 5}


def test_calls_of_every_shape_are_calls() -> None:
    """Rules C1 and C2."""
    turn = BedrockConverse.response(
        response(
            use(None, None),
            use("b", "look", input=None),
            use("c", "look", input="[1]"),
            use("d", "look", input=[1]),
            use("e", "look", input={"x": float("nan")}),
            stop="tool_use",
        )
    )
    assert [(call.id, call.name) for call in turn.calls][:1] == [("", "")]
    assert [call.arguments for call in turn.calls][:4] == ["{}", "", '"[1]"', "[1]"]
    assert turn.calls[4].problem is not None
    assert [block["toolUse"]["input"] for block in native(turn)][1:4] == [
        {},
        {"INVALID_JSON": '"[1]"'},
        {"INVALID_JSON": "[1]"},
    ]


def test_a_tool_of_the_providers_without_its_result_does_not_go_back() -> None:
    """Wherever it stands in an answer that broke off; the calls of the client keep their places."""
    running = use("s1", "search", type="server_tool_use")
    done = use("s2", "search", type="server_tool_use")
    told = {"toolResult": {"toolUseId": "s2", "content": []}}
    signed = {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}}
    turn = BedrockConverse.response(
        response(running, use("a"), done, told, use("b"), signed, stop="max_tokens")
    )
    assert native(turn) == [use("a"), done, told, use("b")]
    assert [native(turn)[call.position]["toolUse"]["toolUseId"] for call in turn.calls] == [
        "a",
        "b",
    ]
    assert json.loads(turn.residue)["content"]["cut"] == [running, signed]
    assert [block for block in turn.blocks if block in turn.calls] == list(turn.calls)


def test_usage_counts_cached_tokens_beside_the_fresh_ones() -> None:
    usage = {
        "inputTokens": 2,
        "outputTokens": 3,
        "cacheReadInputTokens": 5,
        "cacheWriteInputTokens": 7,
    }
    turn = BedrockConverse.response(response({"text": "x"}, usage=usage))
    assert (turn.usage.total_tokens, turn.usage.cached_input_tokens) == (17, 5)
    older = {"inputTokens": 2, "outputTokens": 3, "cacheReadInputTokenCount": 5, "totalTokens": 10}
    assert BedrockConverse.response(response(usage=older)).usage.cached_input_tokens == 5
    for odd in (None, 5, {"inputTokens": "x", "outputTokens": -1}):
        assert BedrockConverse.response(response({"text": "x"}, usage=odd)).usage.total_tokens == 0


def test_the_model_that_a_router_chose_is_told() -> None:
    trace = {"promptRouter": {"invokedModelId": "m"}}
    assert BedrockConverse.response(response({"text": "x"}, trace=trace)).model == "m"
    for odd in (5, {"promptRouter": 5}, {"promptRouter": {"invokedModelId": 5}}):
        assert BedrockConverse.response(response({"text": "x"}, trace=odd)).model is None


def test_bytes_of_the_sdk_become_base64() -> None:
    turn = BedrockConverse.response(
        response(
            {"reasoningContent": {"redactedContent": b"x"}},
            {"image": {"format": "png", "source": {"bytes": memoryview(b"y")}}},
            ResponseMetadata={"RequestId": "r1"},
        )
    )
    assert native(turn)[0] == {"reasoningContent": {"redactedContent": "eA=="}}
    assert native(turn)[1]["image"]["source"]["bytes"] == "eQ=="
    assert turn.request_id == "r1"


def test_an_error_is_raised_with_what_it_says() -> None:
    with pytest.raises(AdapterError, match="answered with an error: No such model"):
        BedrockConverse.response({"message": "No such model"})
    with pytest.raises(AdapterError, match="neither output nor stopReason"):
        BedrockConverse.response({})
    for odd in (None, [], "x", b"\xff", 5):
        with pytest.raises(AdapterError):
            BedrockConverse.response(odd)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "citationsContent",
    "image",
    "document",
    "json",
]
FIELDS = [
    "toolUseId",
    "name",
    "input",
    "type",
    "reasoningText",
    "redactedContent",
    "text",
    "signature",
]
FIELDS += ["content", "citations", "source", "format", "status", "bytes"]
blocks = values | st.dictionaries(
    st.sampled_from(KEYS),
    values
    | st.dictionaries(
        st.sampled_from(FIELDS), values | st.sampled_from(["server_tool_use", {"text": "x"}])
    ),
    max_size=2,
)
stops = values | st.sampled_from(["end_turn", "tool_use", "max_tokens", "malformed_tool_use"])


@given(content=st.lists(blocks, max_size=5), stop=stops, usage=values, trace=values)
@settings(max_examples=examples(300))
def test_nothing_that_a_model_writes_raises(
    content: Any, stop: Any, usage: Any, trace: Any
) -> None:
    turn = BedrockConverse.response(response(*content, stop=stop, usage=usage, trace=trace))
    turn = Transcript().fresh_ids(turn)
    for call in turn.calls:
        (use,) = native(turn)[call.position].values()
        assert use["toolUseId"] == call.id
    transcript = Transcript()
    transcript.push_user("go")
    if not turn.calls:
        transcript.append_turn(turn, None)
        json.dumps(BedrockConverse.messages(transcript))


@given(
    messages=values
    | st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "assistant", "system", "x"]),
                "content": st.lists(blocks, max_size=3) | values,
            }
        )
    ),
    system=values,
)
@settings(max_examples=examples(300))
def test_a_hostile_history_is_read_or_refused(messages: Any, system: Any) -> None:
    try:
        transcript = Transcript.from_messages(API, messages, system)
    except TranscriptError:
        return
    BedrockConverse.messages(transcript)


# --- streams --------------------------------------------------------------------------------------


def start(index: int, **inner: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": inner}}


def delta(index: int, **inner: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": inner}}


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


def end(reason: str = "end_turn") -> list[dict[str, Any]]:
    return [{"messageStop": {"stopReason": reason}}, {"metadata": {"usage": {"totalTokens": 3}}}]


def streamed(*events: Any) -> tuple[AssistantTurn, list[Any]]:
    decoder, deltas = BedrockConverse.stream_decoder(), []
    for event in events:
        deltas += decoder.feed(event)
    turn = decoder.finish("r1")
    assert decoder.finish() is turn
    return turn, deltas


CALL = {"toolUseId": "a", "name": "look"}


def test_a_stream_reports_what_arrives_as_it_arrives() -> None:
    """Rules S1 and S2."""
    turn, deltas = streamed(
        {"messageStart": {"role": "assistant"}},
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"signature": "c2ln"}),
        stop(0),
        delta(1, text="I "),
        delta(1, text="look."),
        start(2, toolUse=CALL),
        delta(2, toolUse={"input": '{"n"'}),
        delta(2, toolUse={"input": ":1}"}),
        stop(2),
        start(3, toolUse={**CALL, "toolUseId": "b"}),
        *end("tool_use"),
    )
    kinds = [type(each) for each in deltas]
    assert kinds[0] is Started
    assert [each.text for each in deltas if isinstance(each, ReasoningDelta)] == ["Hm"]
    assert [each.text for each in deltas if isinstance(each, TextDelta)] == ["I ", "look."]
    assert len([each for each in deltas if isinstance(each, CallDelta)]) == 4
    assert len([each for each in deltas if isinstance(each, CallDone)]) == 2
    assert [call.arguments for call in turn.calls] == ['{"n":1}', "{}"]
    assert (turn.text, turn.reasoning, turn.request_id) == ("I look.", "Hm", "r1")
    whole = BedrockConverse.response(
        response(
            {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
            {"text": "I look."},
            use(input={"n": 1}),
            use("b"),
            stop="tool_use",
            usage={"totalTokens": 3},
        )
    )
    assert (turn.blocks, native(turn), turn.usage) == (whole.blocks, native(whole), whole.usage)


@pytest.mark.parametrize(("begun", "given"), [(0, 1), (1, 0), (1, 7)])
def test_arguments_under_a_wrong_index_are_those_of_the_open_call_S2(
    begun: int, given: int
) -> None:
    """They were dropped, and the call ran without them."""
    turn, deltas = streamed(
        {"messageStart": {"role": "assistant"}},
        delta(0, text="Hi"),
        stop(0),
        start(begun, toolUse=CALL),
        delta(given, toolUse={"input": '{"n"'}),
        delta(given, toolUse={"input": ":1}"}),
        start(begun, toolUse={**CALL, "toolUseId": "b"}),
        delta(given, toolUse={"input": '{"n":2}'}),
        *end("tool_use"),
    )
    assert [call.arguments for call in turn.calls] == ['{"n":1}', '{"n":2}']
    pieces = [(each.index, each.arguments) for each in deltas if isinstance(each, CallDelta)]
    assert pieces == [(0, ""), (0, '{"n"'), (0, ":1}"), (1, ""), (1, '{"n":2}')]


@pytest.mark.parametrize("before", ["nothing", "a call", "open text"])
def test_arguments_of_a_call_that_nothing_began_are_a_call_without_a_name_C8(before: str) -> None:
    """They were dropped, and the answer was finished or said less than the model did."""
    events = {
        "nothing": [],
        "a call": [start(0, toolUse=CALL), delta(0, toolUse={"input": '{"n":1}'}), stop(0)],
        "open text": [delta(0, text="Hi")],
    }[before]
    index = 1 if before == "a call" else 0
    turn, deltas = streamed(
        *events,
        delta(index, toolUse={"input": '{"n"'}),
        delta(index, toolUse={"input": ":2}"}),
        stop(index),
        # Behind the end of its block a call takes nothing more.
        delta(index, toolUse={"input": "}"}),
        *end("tool_use"),
    )
    lost = turn.calls[-1]
    assert (lost.id, lost.name, lost.arguments) == ("", "", '{"n":2}')
    assert len(turn.calls) == (2 if before == "a call" else 1)
    assert [each.call for each in deltas if isinstance(each, CallDone)] == [*turn.calls]


def test_the_last_call_of_an_answer_that_was_cut_is_never_done() -> None:
    """Rule S4."""
    events = [start(0, toolUse=CALL), delta(0, toolUse={"input": '{"n":1}'}), stop(0)]
    turn, deltas = streamed(*events, *end("max_tokens"))
    assert turn.cut
    assert not [each for each in deltas if isinstance(each, CallDone)]


def test_arguments_that_are_no_json_are_the_models_own_words() -> None:
    """Rule C2."""
    turn, _ = streamed(start(0, toolUse=CALL), delta(0, toolUse={"input": '{"n": 1'}), *end())
    assert turn.calls[0].arguments == '{"n": 1'
    assert native(turn)[0]["toolUse"]["input"] == {"INVALID_JSON": '{"n": 1'}


def test_half_a_character_waits_for_its_other_half() -> None:
    turn, deltas = streamed(delta(0, text="a\ud83d"), delta(0, text="\ude00"), *end())
    assert [each.text for each in deltas if isinstance(each, TextDelta)] == ["a", "\U0001f600"]
    assert turn.text == "a\U0001f600"
    _, deltas = streamed(delta(0, text="a\ud83d"), *end())
    assert [each.text for each in deltas if isinstance(each, TextDelta)] == ["a", "\ufffd"]


def test_citations_without_a_text_get_none_R1() -> None:
    source = {"title": "T"}
    for piece in ([], [delta(0, text="")]):
        turn, _ = streamed(*piece, delta(0, citation=source), delta(1, text="So."), *end())
        assert native(turn) == [{"citationsContent": {"citations": [source]}}, {"text": "So."}]
        assert turn.text == "So."


def test_blocks_of_other_kinds_are_put_together() -> None:
    server = {"toolUseId": "s", "name": "search", "type": "server_tool_use"}
    turn, deltas = streamed(
        delta(0, reasoningContent={"redactedContent": b"x"}),
        delta(0, reasoningContent={"redactedContent": base64.b64encode(b"y").decode()}),
        delta(1, text="as told"),
        delta(1, citation={"title": "T"}),
        start(2, toolUse=server),
        delta(2, toolUse={"input": '{"q":1}'}),
        stop(2),
        start(3, toolResult={"toolUseId": "s", "content": [{"text": "a"}]}),
        delta(3, toolResult=[{"text": "b"}]),
        start(4, image={"format": "png"}),
        delta(4, image={"source": {"bytes": b"y"}}),
        delta(4, image=7),
        *end(),
    )
    assert native(turn) == [
        {"reasoningContent": {"redactedContent": base64.b64encode(b"xy").decode()}},
        {"citationsContent": {"content": [{"text": "as told"}], "citations": [{"title": "T"}]}},
        {"toolUse": {**server, "input": {"q": 1}}},
        {"toolResult": {"toolUseId": "s", "content": [{"text": "a"}, {"text": "b"}]}},
        {"image": {"format": "png", "source": {"bytes": "eQ=="}}},
    ]
    assert not turn.calls
    assert not [each for each in deltas if isinstance(each, CallDelta)]


def test_what_says_nothing_is_ignored() -> None:
    turn, _ = streamed(
        5,
        {"messageStart": None},
        {"somethingNew": {"x": 1}},
        {"contentBlockStart": {"start": 5}},
        {"contentBlockStart": {"start": {"toolUse": 5}}},
        {"contentBlockStart": {"start": {}}},
        {"contentBlockDelta": {"delta": 5}},
        delta(0, toolUse={"input": "{}"}),
        delta(0, text=5),
        delta(0, reasoningContent=5),
        delta(0, text="yes"),
        {"contentBlockDelta": {"contentBlockIndex": "x", "delta": {"text": "!"}}},
        stop(7),
        *end(),
        {"messageStop": {"stopReason": "max_tokens"}},
    )
    assert "yes" in turn.text
    assert turn.finish_reason == "stop"


def test_a_stream_that_breaks_off_raises_with_what_had_arrived() -> None:
    decoder = BedrockConverse.stream_decoder()
    assert decoder.partial() is None
    with pytest.raises(AdapterError, match="ended before the answer did") as raised:
        decoder.finish()
    assert raised.value.partial is None
    decoder.feed(delta(0, text="half"))
    partial = decoder.partial()
    assert partial is not None
    assert (partial.text, partial.cut) == ("half", True)
    with pytest.raises(AdapterError) as raised:
        decoder.feed({"throttlingException": {"message": "Slow down."}})
    error = raised.value
    assert (error.status, error.retryable, error.code) == (429, True, "ThrottlingException")
    assert error.partial == partial
    with pytest.raises(AdapterError) as raised:
        decoder.feed(
            {"modelStreamErrorException": {"originalStatusCode": 418, "originalMessage": "no"}}
        )
    assert raised.value.status == 418
    with pytest.raises(AdapterError, match="ended before"):
        decoder.finish()


names = st.sampled_from(
    "messageStart contentBlockStart contentBlockDelta contentBlockStop messageStop metadata".split()
)
events = values | st.dictionaries(
    names,
    values
    | st.fixed_dictionaries(
        {},
        optional={
            "contentBlockIndex": st.integers(0, 3) | values,
            "start": values | st.dictionaries(st.sampled_from(KEYS), values),
            "delta": blocks,
            "stopReason": stops,
            "usage": values,
        },
    ),
    max_size=2,
)


@given(chunks=st.lists(events, max_size=8))
@settings(max_examples=examples(300))
def test_a_hostile_stream_ends_in_an_answer_or_an_error(chunks: list[Any]) -> None:
    decoder = BedrockConverse.stream_decoder()
    for chunk in chunks:
        decoder.feed(chunk)
        decoder.partial()
    try:
        turn = decoder.finish()
    except AdapterError:
        return
    json.dumps(native(turn))
