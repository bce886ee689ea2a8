"""Streamed Responses replies: recorded, rendered with parts left out, and as other hosts do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from counting import calls_made
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from profiles import examples
from pydantic import TypeAdapter

from lutumpy import AssistantTurn, ReasoningDelta, RefusalDelta, Started, TextDelta
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.adapters.openai.responses.stream import ResponsesStreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.streaming import CallDelta, CallDone, Delta
from lutumpy.testing import Call, Reply, render, render_stream

FIXTURES = Path(__file__).parents[2] / "fixtures"
API: Any = "openai_responses"
STREAMS: list[list[dict[str, Any]]] = [
    [
        json.loads(data.removeprefix("data: "))
        for data in json.loads(line)["response"].splitlines()
        if data[:5] == "data:"
    ]
    for name in ("openai_responses_sse", "compat_openai_responses_sse")
    for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]


def run(stream: Iterable[Any]) -> tuple[AssistantTurn, list[Delta]]:
    decoder = ResponsesStreamDecoder()
    told: list[Delta] = []
    for event in stream:
        told += decoder.feed(event)
    turn = decoder.finish()
    agree(turn, told)
    return turn, told


def agree(turn: AssistantTurn, told: Sequence[Delta]) -> None:
    """What was told while the stream ran is what the finished turn holds."""
    assert "".join([d.text for d in told if type(d) is TextDelta]) == turn.text
    assert "".join([d.text for d in told if type(d) is ReasoningDelta]) == (turn.reasoning or "")
    assert "".join([d.text for d in told if type(d) is RefusalDelta]) == (turn.refusal or "")
    for index, call in enumerate(turn.calls):
        pieces = [d for d in told if type(d) is CallDelta and d.index == index]
        assert "".join([d.arguments for d in pieces]) == call.arguments
        assert {(d.id, d.name) for d in pieces} == {(call.id, call.name)}
    assert {d.index for d in told if type(d) is CallDelta} == set(range(len(turn.calls)))
    done = [d for d in told if type(d) is CallDone]
    assert [d.call for d in done] == [turn.calls[d.index] for d in done]
    assert len({d.index for d in done}) == len(done)
    assert type(told[0]) is Started
    assert [type(d) for d in told].count(Started) == 1


def without_output(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same stream from a host whose last event holds no items."""
    return [*stream[:-1], {**stream[-1], "response": {**stream[-1]["response"], "output": []}}]


# --- recorded streams -----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_a_recorded_stream_ends_in_the_turn_of_its_whole_answer(
    stream: list[dict[str, Any]],
) -> None:
    turn, told = run(stream)
    assert turn == OpenAIResponses.response(stream[-1]["response"])
    # The functions, said independently of the decoder.
    items = [e["item"] for e in stream if e["type"] == "response.output_item.done"]
    wanted = [
        (i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call"
    ]
    assert [(c.id, c.name, c.arguments) for c in turn.calls if c.kind == "function"] == wanted
    assert sum(type(d) is CallDone for d in told) == len(turn.calls)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_last_event_without_items_is_made_whole_from_the_ones_before(
    stream: list[dict[str, Any]],
) -> None:
    turn, _ = run(stream)
    gathered, _ = run(without_output(stream))
    assert (gathered.calls, gathered.text, gathered.usage) == (turn.calls, turn.text, turn.usage)


@pytest.mark.parametrize("stream", STREAMS)
def test_objects_of_the_sdk_decode_as_dicts_do(stream: list[dict[str, Any]]) -> None:
    if any(event["type"] == "keepalive" for event in stream):
        return
    make: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    try:
        objects = [make.validate_python(event) for event in stream]
    except ValueError:  # a host's own shape, which the SDK hands out unvalidated
        return
    turn, plain = run(objects)[0], run(stream)[0]
    assert (turn.calls, turn.text, turn.reasoning) == (plain.calls, plain.text, plain.reasoning)


@pytest.mark.sweep
@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_that_ends_anywhere_before_its_last_event_is_an_error(
    stream: list[dict[str, Any]],
) -> None:
    whole, _ = run(stream)
    decoder = ResponsesStreamDecoder()
    for event in stream[:-1]:
        decoder.feed(event)
        partial = decoder.partial()
        assert partial is not None
        assert partial.cut
        assert whole.text.startswith(partial.text)
    with pytest.raises(AdapterError, match="ended before its last event") as caught:
        decoder.finish("req")
    assert caught.value.partial == decoder.partial()
    assert (caught.value.request_id, caught.value.retryable) == ("req", True)


# --- the same answer, streamed and not ------------------------------------------------------------

TEXT = st.text(max_size=12)
CALLS = st.builds(
    Call,
    st.sampled_from(["f", "g"]),
    st.sampled_from(["", "{}", '{"a": ', "nonsense", "[1]"])
    | st.dictionaries(TEXT, TEXT, max_size=2),
)
SCRIPTS = st.builds(
    Reply,
    text=TEXT,
    calls=st.lists(CALLS, max_size=3),
    finish=st.sampled_from([None, "length", "content_filter"]),
    reasoning=st.none() | TEXT,
    refusal=st.none() | TEXT.filter(bool),
)


@settings(max_examples=examples(300))
@given(SCRIPTS, st.data())
def test_a_stream_ends_in_the_turn_of_the_same_answer_unstreamed(
    script: Reply, data: st.DataObject
) -> None:
    stream = render_stream(script, API, number=1, model="m")
    left_out = data.draw(
        st.sampled_from(["", "delta", "added", "item_id", "output_index", "created"])
    )
    if left_out in ("item_id", "output_index"):
        stream = [{k: v for k, v in event.items() if k != left_out} for event in stream]
    elif left_out:
        stream = [event for event in stream if not event["type"].endswith(left_out)]
    stream = (
        [e for event in stream for e in ({"type": "keepalive"}, event)]
        if data.draw(st.booleans())
        else stream
    )
    turn, told = run(stream)
    whole = OpenAIResponses.response(render(script, API, number=1, model="m"))
    assert turn == whole
    done = {d.index for d in told if type(d) is CallDone}
    last = len(whole.calls) - 1
    wanted = {k for k, c in enumerate(whole.calls) if not c.incomplete}
    # The last call of a cut reply is reported only if its arguments are whole: then it counts.
    assert wanted - {last} <= done <= wanted
    if not whole.cut:
        assert done == wanted


@given(SCRIPTS.filter(lambda s: bool(s.text)))
def test_only_the_last_event_is_enough(script: Reply) -> None:
    turn, _ = run(render_stream(script, API, number=1, model="m")[-1:])
    assert turn == OpenAIResponses.response(render(script, API, number=1, model="m"))


# --- calls ----------------------------------------------------------------------------------------


def answer(
    *items: dict[str, Any], status: str = "completed", done: bool = True, **fields: Any
) -> list[dict[str, Any]]:
    stream: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}
    ]
    for k, item in enumerate(items):
        stream.append({"type": "response.output_item.added", "output_index": k, "item": item})
        stream.append({"type": "response.output_item.done", "output_index": k, "item": item})
    response = {"id": "r", "model": "m", "status": status, "output": list(items), **fields}
    return [*stream, {"type": f"response.{status}", "response": response}]


def function(name: str = "f", arguments: str = "{}", **fields: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": f"call_{name}",
        "name": name,
        "arguments": arguments,
        **fields,
    }


def test_a_call_of_which_only_the_last_event_says_nothing_is_a_call_C1() -> None:
    stream = [event for event in answer(function("f", "")) if not event["type"].endswith("done")]
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    stream.insert(-1, delta)
    stream[-1]["response"]["output"] = []
    turn, told = run(stream)
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", "{}")]
    assert [type(each) for each in told] == [Started, CallDelta, CallDelta, CallDone]


def test_a_call_is_done_with_its_item() -> None:
    decoder = ResponsesStreamDecoder()
    told = [list(map(type, decoder.feed(event))) for event in answer(function("f"), function("g"))]
    assert told == [[Started], [CallDelta], [CallDone], [CallDelta], [CallDone], []]


def test_a_call_whose_item_is_incomplete_is_never_done() -> None:
    items = [function("f"), function("g", '{"x', status="incomplete")]
    turn, told = run(
        answer(*items, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert turn.finish_reason == "length"
    assert [d.index for d in told if type(d) is CallDone] == [0]


def test_a_call_without_whole_arguments_waits_for_the_end_since_a_cut_answer_cuts_it() -> None:
    details = {"reason": "max_output_tokens"}
    assert CallDone not in map(
        type, run(answer(function("f", ""), status="incomplete", incomplete_details=details))[1]
    )
    assert CallDone in map(type, run(answer(function("f", "")))[1])


def test_a_message_whose_content_is_one_text_is_told_when_it_is_there() -> None:
    turn, told = run(answer({"type": "message", "role": "assistant", "content": "hello"}))
    assert turn.text == "hello"
    assert [d.text for d in told if type(d) is TextDelta] == ["hello"]


def test_custom_calls_stream_their_input() -> None:
    item = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "c",
        "name": "grep",
        "input": "xy",
    }
    stream = answer(item)
    stream[1]["item"] = {**item, "input": ""}
    piece = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1"}
    stream[2:2] = [{**piece, "delta": "x"}, {**piece, "delta": "y"}]
    turn, told = run(stream)
    assert [(c.kind, c.arguments) for c in turn.calls] == [("custom", "xy")]
    assert [d.arguments for d in told if type(d) is CallDelta] == ["", "x", "y"]


def test_a_call_that_the_provider_ran_has_no_number() -> None:
    ran = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "s",
        "action": {"commands": ["ls"]},
        "status": "completed",
    }
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "s", "output": []}
    decoder = ResponsesStreamDecoder()
    told = [d for event in answer(ran, output, function("f"))[:-1] for d in decoder.feed(event)]
    assert [(type(d), d.index) for d in told if isinstance(d, (CallDelta, CallDone))] == [
        (CallDelta, 0),
        (CallDone, 0),
    ]
    run(answer(ran, output, function("f")))


def test_calls_after_one_that_may_still_be_the_providers_wait_for_the_end() -> None:
    ours = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "s",
        "action": {"commands": ["ls"]},
        "status": "completed",
    }
    turn, told = run(answer(ours, function("f")))
    assert [c.kind for c in turn.calls] == ["shell_call", "function"]
    assert [d.index for d in told if type(d) is CallDone] == [0, 1]


def test_a_host_that_gives_all_items_one_index() -> None:
    stream = answer(function("f", '{"a":1}', id="fc_1"), function("g", '{"b":2}', id="fc_2"))
    stream = [
        {**event, "output_index": 0} if "output_index" in event else event for event in stream
    ]
    turn, _ = run(stream)
    assert (
        turn
        == run(answer(function("f", '{"a":1}', id="fc_1"), function("g", '{"b":2}', id="fc_2")))[0]
    )
    assert [c.name for c in run(without_output(stream))[0].calls] == ["f", "g"]


def test_a_host_that_changes_the_ids_of_items_on_the_way() -> None:
    stream = answer(function("f", '{"a":1}', id="fc_1"))
    stream[1]["item"] = {**function("f", ""), "id": "fc_other"}
    piece = {
        "type": "response.function_call_arguments.delta",
        "output_index": 0,
        "item_id": "fc_third",
    }
    stream.insert(2, {**piece, "delta": '{"a":1}'})
    assert [c.arguments for c in run(stream)[0].calls] == ['{"a":1}']


def test_ids_that_do_not_fit_leave_the_calls_where_the_whole_answer_has_them() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    message = {
        "type": "message",
        "id": "rs_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x"}],
    }
    run(answer(reasoning, message, function("f"), function("g")))


def test_summaries_are_told_with_the_blank_line_that_stands_between_them() -> None:
    parts = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    item = {"type": "reasoning", "id": "rs_1", "summary": parts}
    stream = answer(item, function("f"))
    piece = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs_1"}
    stream[1]["item"] = {**item, "summary": []}
    stream[2:2] = [
        {**piece, "summary_index": 0, "delta": "a"},
        {**piece, "summary_index": 1, "delta": "b"},
    ]
    assert run(stream)[0].reasoning == "a\n\nb"
    assert run(answer(item, function("f")))[0].reasoning == "a\n\nb"


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "response.failed",
            "response": {"error": {"code": "server_error", "message": "boo"}, "output": []},
        },
        {"type": "error", "code": "server_error", "message": "boo", "param": None},
        {
            "type": "error",
            "error": {"type": "server_error", "code": "server_error", "message": "boo"},
        },
        {"error": {"code": "server_error", "message": "boo"}},
    ],
)
def test_a_failure_in_the_middle_carries_what_had_arrived(event: dict[str, Any]) -> None:
    decoder = ResponsesStreamDecoder()
    stream = render_stream(
        Reply(text="half of it", calls=[Call("f", '{"x": 1}')]), API, number=1, model="m"
    )
    cut = next(
        k for k, e in enumerate(stream) if e["type"] == "response.function_call_arguments.done"
    )
    for before in stream[: cut - 1]:
        decoder.feed(before)
    with pytest.raises(AdapterError, match="boo") as caught:
        decoder.feed(event)
    error = caught.value
    assert (error.code, error.retryable) == ("server_error", True)
    assert error.partial is not None
    assert (error.partial.text, error.partial.cut, error.partial.model) == ("half of it", True, "m")
    assert error.partial.calls[0].name == "f"


def test_the_adapter_hands_out_a_decoder_and_nothing_is_partial_at_first() -> None:
    decoder = OpenAIResponses.stream_decoder()
    assert decoder.partial() is None
    assert list(decoder.feed(None)) == list(decoder.feed({"type": "response.something_new"})) == []
    assert decoder.partial() is None


def test_the_request_id_is_that_of_the_stream() -> None:
    decoder = ResponsesStreamDecoder()
    for event in answer(function()):
        decoder.feed(event)
    assert decoder.finish("req_1") == replace(decoder.finish(), request_id="req_1")


KINDS = [
    *(
        f"response.{name}"
        for name in ("created", "completed", "incomplete", "output_item.added", "output_item.done")
    ),
    *(
        f"response.{name}.delta"
        for name in ("output_text", "refusal", "reasoning_text", "reasoning_summary_text")
    ),
    *(f"response.{name}.delta" for name in ("function_call_arguments", "custom_tool_call_input")),
    *(
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "shell_call",
        "output_text",
        "summary_text",
        "c",
    ),
]
FIELDS = (
    "type item response output output_index item_id content_index summary_index delta id call_id "
    "name arguments input "
    "content summary text refusal status usage action"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(KINDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)}, optional={name: JSON for name in FIELDS if name != "type"}
)


@settings(max_examples=examples(200))
@given(st.lists(JSON | EVENTS, max_size=6))
def test_nothing_in_an_event_raises(stream: list[Any]) -> None:
    decoder = ResponsesStreamDecoder()
    for event in stream:
        decoder.feed(event)
        decoder.partial()
    decoder.feed({"type": "response.completed"})
    decoder.finish()


def decode(stream: list[dict[str, Any]]) -> None:
    decoder = ResponsesStreamDecoder()
    for event in stream:
        decoder.feed(event)
    decoder.finish()


@pytest.mark.parametrize(
    "make",
    [
        lambda n: render_stream(Reply(text="word " * n), API, number=1, model="m"),
        lambda n: render_stream(
            Reply(calls=[Call("f", {"x": "word " * n})]), API, number=1, model="m"
        ),
        lambda n: render_stream(Reply(calls=[Call("f", {})] * n), API, number=1, model="m"),
        lambda n: without_output(
            render_stream(Reply(calls=[Call("f", {})] * n), API, number=1, model="m")
        ),
        lambda n: render_stream(Reply(reasoning="word " * n), API, number=1, model="m"),
    ],
)
def test_the_work_is_linear_in_what_arrives(make: Any) -> None:
    few, many = (calls_made(partial(decode, make(n))) for n in (100, 1000))
    assert many < 11 * few


CREATED = {
    "id": "resp_7",
    "model": "m",
    "status": "queued",
    "background": True,
    "output": [],
    "usage": None,
}


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_background_stream_that_ends_before_the_answer_names_the_response(status: str) -> None:
    decoder = ResponsesStreamDecoder()
    decoder.feed({"type": "response.created", "response": CREATED})
    decoder.feed({"type": f"response.{status}", "response": {**CREATED, "status": status}})
    with pytest.raises(AdapterError, match=f"response resp_7 is {status}") as caught:
        decoder.finish("req_1")
    assert (caught.value.response_id, caught.value.request_id, caught.value.retryable) == (
        "resp_7",
        "req_1",
        False,
    )


def test_a_foreground_stream_that_ends_early_may_be_asked_again_and_names_the_response() -> None:
    decoder = ResponsesStreamDecoder()
    decoder.feed({"type": "response.created", "response": {**CREATED, "background": False}})
    with pytest.raises(AdapterError, match="before its last event") as caught:
        decoder.finish()
    assert (caught.value.response_id, caught.value.retryable) == ("resp_7", True)


def test_a_background_stream_that_goes_on_ends_in_its_answer() -> None:
    decoder = ResponsesStreamDecoder()
    decoder.feed({"type": "response.queued", "response": CREATED})
    message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Yes."}],
    }
    # The event says that it is the last one, whatever a host leaves in the status.
    for left in ("completed", "in_progress"):
        decoder.feed(
            {
                "type": "response.completed",
                "response": {**CREATED, "status": left, "output": [message]},
            }
        )
        turn = decoder.finish()
        assert (turn.text, turn.finish_reason, turn.cut) == ("Yes.", "stop", False)


@pytest.mark.parametrize("kind", ["response.steer.failed", "response.inject.failed"])
def test_an_error_of_what_the_application_sent_meanwhile_is_none_of_the_reply(kind: str) -> None:
    decoder = ResponsesStreamDecoder()
    error = {"type": kind, "error": {"code": "response_not_found", "message": "Too late."}}
    reply = {"id": "resp_1", "status": "completed", "output": []}
    assert not decoder.feed(error)
    decoder.feed({"type": "response.completed", "response": reply})
    assert decoder.finish().finish_reason == "stop"
