"""Streamed Chat Completions replies: recorded, cut in every way, and as other hosts send them."""

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
from openai.types.chat import ChatCompletionChunk
from profiles import examples

from lutumpy import AssistantTurn, ReasoningDelta, RefusalDelta, Started, TextDelta
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.adapters.openai.chat.stream import ChatStreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.streaming import CallDelta, CallDone, Delta

FIXTURES = Path(__file__).parents[2] / "fixtures"


def rows(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def events(stream: str) -> list[dict[str, Any]]:
    lines = [
        line.removeprefix("data:").strip()
        for line in stream.splitlines()
        if line.startswith("data:")
    ]
    return [json.loads(line) for line in lines if line != "[DONE]"]


STREAMS = [
    events(row["response"])
    for name in ("openai_chat_sse", "compat_openai_chat_sse")
    for row in rows(name)
]
GOOD = [stream for stream in STREAMS if not any("error" in event for event in stream)]
FAILED = [stream for stream in STREAMS if any("error" in event for event in stream)]
REPLIES = [
    row["response"]
    for name in ("openai_chat", "compat_openai_chat")
    for row in rows(name)
    if isinstance(row.get("response"), dict) and row["response"].get("choices")
]


def run(stream: Iterable[Any]) -> tuple[AssistantTurn, list[Delta]]:
    decoder = ChatStreamDecoder()
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
    pieces: dict[int, list[str]] = {}
    for delta in told:
        if type(delta) is CallDelta:
            pieces.setdefault(delta.index, []).append(delta.arguments)
            assert delta.name in ("", turn.calls[delta.index].name)
            assert delta.id in ("", turn.calls[delta.index].id)
    assert ["".join(pieces[k]) for k in range(len(turn.calls))] == [c.arguments for c in turn.calls]
    assert len(pieces) == len(turn.calls)
    done = [d for d in told if type(d) is CallDone]
    assert [d.call for d in done] == [turn.calls[d.index] for d in done]
    assert len({d.index for d in done}) == len(done)
    assert [type(d) for d in told].count(Started) == 1
    assert type(told[0]) is Started


def same(left: AssistantTurn, right: AssistantTurn) -> None:
    """Equal, but for the order of keys in the message."""
    assert json.loads(left.native or b"0") == json.loads(right.native or b"0")
    assert json.loads(left.residue or b"0") == json.loads(right.residue or b"0")
    assert replace(left, native=b"", residue=b"") == replace(right, native=b"", residue=b"")


def chunk(delta: Any = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": "c",
        "model": "m",
        "object": "chat.completion.chunk",
        "choices": choices,
        **fields,
    }


def call(
    index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None, **fields: Any
) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    entry = {"index": index, "id": call_id, "function": function, **fields}
    return chunk({"tool_calls": [{k: v for k, v in entry.items() if v is not None}]})


DONE = chunk({}, "tool_calls")


def called(*stream: Any, end: Any = DONE) -> list[tuple[str, str, str]]:
    turn, _ = run([*stream, end])
    return [(c.id, c.name, c.arguments) for c in turn.calls]


# --- recorded streams -----------------------------------------------------------------------------


def expected_calls(stream: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Found without the decoder: the recorded hosts all give each call an index of its own."""
    calls: dict[int, list[str]] = {}
    for event in stream:
        for choice in event["choices"]:
            for piece in choice["delta"].get("tool_calls", ()):
                entry = calls.setdefault(piece["index"], ["", "", ""])
                entry[0] = entry[0] or piece.get("id", "")
                entry[1] = entry[1] or piece["function"].get("name", "")
                entry[2] += piece["function"]["arguments"]
    return [(c[0], c[1], c[2]) for _, c in sorted(calls.items())]


@pytest.mark.parametrize("stream", GOOD)
def test_a_recorded_stream_decodes_to_the_calls_it_holds(stream: list[dict[str, Any]]) -> None:
    turn, told = run(stream)
    assert [(c.id, c.name, c.arguments) for c in turn.calls] == expected_calls(stream)
    assert sum(type(d) is CallDone for d in told) == len(turn.calls)
    assert turn.usage.output_tokens > 0
    assert turn.finish_reason in ("stop", "tool_calls")


@pytest.mark.parametrize("stream", GOOD)
def test_objects_of_the_sdk_decode_as_dicts_do(stream: list[dict[str, Any]]) -> None:
    same(run([ChatCompletionChunk.construct(**event) for event in stream])[0], run(stream)[0])


@pytest.mark.parametrize("stream", FAILED)
def test_a_recorded_error_in_the_middle_carries_what_had_arrived(
    stream: list[dict[str, Any]],
) -> None:
    decoder = ChatStreamDecoder()
    for event in stream[:-1]:
        decoder.feed(event)
    with pytest.raises(AdapterError) as caught:
        decoder.feed(stream[-1])
    partial = caught.value.partial
    assert partial is not None
    assert partial.cut
    assert partial.reasoning


@pytest.mark.parametrize("stream", GOOD)
def test_a_stream_that_ends_anywhere_before_its_last_event_is_an_error(
    stream: list[dict[str, Any]],
) -> None:
    first = next(
        k for k, e in enumerate(stream) if any(c.get("finish_reason") for c in e["choices"])
    )
    for length in range(first + 1):
        decoder = ChatStreamDecoder()
        for event in stream[:length]:
            decoder.feed(event)
        with pytest.raises(AdapterError, match="ended before its last event") as caught:
            decoder.finish("req")
        assert (caught.value.partial is None) == (length == 0)
        assert caught.value.retryable
        assert caught.value.request_id == "req"


# --- the same answer, streamed and not ------------------------------------------------------------


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def call_pieces(
    draw: st.DrawFn, index: int, entry: dict[str, Any], *, indexed: bool
) -> list[dict[str, Any]]:
    """The deltas of one call, in one of the ways in which hosts send them."""
    function = entry["function"]
    arguments = draw(cuts(function["arguments"])) if "arguments" in function else []
    repeat_id = draw(st.booleans()) and bool(entry.get("id"))
    repeat_name = draw(st.booleans()) and indexed
    whole_first = draw(st.booleans())
    extra = {k: v for k, v in entry.items() if k not in ("function", "index")}
    place = {"index": index} if indexed else {}
    opening = arguments.pop(0) if whole_first and arguments else draw(st.sampled_from(["", None]))
    if "arguments" not in function:
        opening = None
    first = {**place, **extra, "function": {**function, "arguments": opening}}
    pieces = [first]
    for piece in arguments:
        delta: dict[str, Any] = {**place, "function": {"arguments": piece}}
        if repeat_id or not indexed:
            delta["id"] = entry["id"]
        elif draw(st.booleans()):
            delta["id"] = draw(st.sampled_from(["", None]))
        # A name that is repeated without an id may begin another call if "{" follows; with the id
        # it is the same one.
        if repeat_name and repeat_id:
            delta["function"]["name"] = function["name"]
        pieces.append(delta)
    return pieces


@st.composite
def streamed(draw: st.DrawFn, reply: dict[str, Any]) -> list[dict[str, Any]]:
    """A whole answer as a stream."""
    message: dict[str, Any] = reply["choices"][0]["message"]
    deltas: list[dict[str, Any]] = []
    first: dict[str, Any] = {}
    for name, value in message.items():
        if name in ("content", "refusal", "reasoning", "reasoning_content") and isinstance(
            value, str
        ):
            deltas += [{name: piece} for piece in draw(cuts(value))]
        elif name not in ("tool_calls", "function_call"):
            first[name] = value
    calls = message.get("tool_calls") or []
    with_ids = all(c.get("id") for c in calls) and len({c["id"] for c in calls}) == len(calls)
    indexed = not with_ids or draw(st.booleans())
    queues = [draw(call_pieces(k, entry, indexed=indexed)) for k, entry in enumerate(calls)]
    opened = 0
    while any(queues):
        waiting = [k for k, queue in enumerate(queues) if queue and k <= opened]
        k = draw(st.sampled_from(waiting)) if draw(st.booleans()) else waiting[0]
        opened = max(opened, k + 1)
        count = draw(st.integers(1, 2))
        taken, queues[k] = queues[k][:count], queues[k][count:]
        deltas.append({"tool_calls": taken})
    if message.get("function_call"):
        deltas.append({"function_call": message["function_call"]})
    head = {"id": reply.get("id"), "model": reply.get("model")}
    finish = reply["choices"][0].get("finish_reason")

    def event(delta: dict[str, Any], finish: Any = None, **fields: Any) -> dict[str, Any]:
        return {
            **head,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **fields,
        }

    stream = [event(first), *[event(delta) for delta in deltas]]
    if draw(st.booleans()):
        return [*stream, event({}, finish, usage=reply.get("usage"), obfuscation="x")]
    return [
        *stream,
        event({}, finish, usage=None),
        {**head, "choices": [], "usage": reply.get("usage")},
    ]


def unstreamed(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply without the index that some hosts also put into whole answers."""
    copy: dict[str, Any] = json.loads(json.dumps(reply))
    for entry in copy["choices"][0]["message"].get("tool_calls") or ():
        entry.pop("index", None)
    return copy


@settings(max_examples=examples(300))
@given(st.data())
def test_a_stream_ends_in_the_turn_of_the_same_answer_unstreamed(data: st.DataObject) -> None:
    reply = unstreamed(
        data.draw(st.sampled_from([r for r in REPLIES if r["choices"][0].get("finish_reason")]))
    )
    turn, _ = run(data.draw(streamed(reply)))
    same(turn, decode_chat(reply))


ARGUMENTS = st.one_of(
    st.dictionaries(st.text(max_size=3), st.text(max_size=9) | st.integers(), max_size=3).map(
        json.dumps
    ),
    st.sampled_from(
        ["", "{}", '{"a": ', "not json", "[1]", '{"a": "}{"}', '{"a": {"b": {}}}', "null"]
    ),
)


@pytest.mark.pure
@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.data())
def test_mixed_calls_of_any_kind_end_as_they_would_unstreamed(data: st.DataObject) -> None:
    texts = data.draw(st.lists(ARGUMENTS, min_size=1, max_size=4))
    calls = [
        {
            "id": f"call_{k}",
            "type": "function",
            "function": {"name": data.draw(st.sampled_from(["a", "b"])), "arguments": arguments},
        }
        for k, arguments in enumerate(texts)
    ]
    finish = data.draw(st.sampled_from(["stop", "tool_calls", "length", "content_filter"]))
    message = {
        "role": "assistant",
        "content": data.draw(st.sampled_from([None, "", "hi"])),
        "tool_calls": calls,
    }
    reply = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
    }
    turn, told = run(data.draw(streamed(reply)))
    whole = decode_chat(reply)
    assert [(c.id, c.name, c.arguments) for c in turn.calls] == [
        (c.id, c.name, c.arguments) for c in whole.calls
    ]
    assert (turn.text, turn.finish_reason, turn.cut) == (whole.text, whole.finish_reason, whole.cut)
    done = {d.index for d in told if type(d) is CallDone}
    assert done == set(range(len(calls) - 1 if turn.cut else len(calls)))


# --- calls told apart -----------------------------------------------------------------------------


def test_an_index_that_is_used_again_with_a_new_id_is_another_call() -> None:
    assert called(call(0, "a", "f", '{"x":1}'), call(0, "b", "f", '{"x":2}')) == [
        ("a", "f", '{"x":1}'),
        ("b", "f", '{"x":2}'),
    ]


def test_an_index_that_is_used_again_with_a_new_name_is_another_call() -> None:
    assert called(call(0, None, "f", "{}"), call(0, None, "g", "{}")) == [
        ("", "f", "{}"),
        ("", "g", "{}"),
    ]


def test_calls_without_index_and_id_are_told_apart_by_their_names() -> None:
    assert called(
        call(None, None, "f", "{}"), call(None, None, "g", '{"a'), call(None, None, None, '":1}')
    ) == [
        ("", "f", "{}"),
        ("", "g", '{"a":1}'),
    ]


def test_the_same_name_with_other_whole_arguments_is_another_call() -> None:
    assert called(call(0, None, "f", '{"a":1}'), call(0, None, "f", '{"a":2}')) == [
        ("", "f", '{"a":1}'),
        ("", "f", '{"a":2}'),
    ]


def test_calls_without_index_are_told_apart_by_their_ids() -> None:
    assert called(
        call(None, "a", "f", "{"),
        call(None, "b", "f", "{"),
        call(None, "a", None, "}"),
        call(None, "b", None, "}"),
    ) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


def test_an_id_that_comes_late_belongs_to_the_call_before_it() -> None:
    assert called(call(0, None, "f", "{"), call(0, "a", None, "}")) == [("a", "f", "{}")]
    assert called(call(0, "a"), call(0, None, "f", "{}")) == [("a", "f", "{}")]


def test_a_fresh_id_with_every_piece_is_one_call() -> None:
    assert called(
        call(0, "a", "f", '{"x":'), call(0, "b", None, '{"y":1}'), call(0, "c", None, "}")
    ) == [("a", "f", '{"x":{"y":1}}')]


def test_ids_and_names_repeated_with_every_piece_are_not_appended() -> None:
    assert called(call(0, "a", "f", ""), call(0, "a", "f", '{"x":'), call(0, "a", "f", "1}")) == [
        ("a", "f", '{"x":1}')
    ]


def test_empty_names_and_ids_in_later_pieces_change_nothing() -> None:
    assert called(call(0, "a", "f", "{"), call(0, "", "", "}")) == [("a", "f", "{}")]


def test_several_calls_in_one_delta() -> None:
    entries = [
        {"index": k, "id": f"c{k}", "function": {"name": "f", "arguments": "{}"}} for k in range(3)
    ]
    assert called(chunk({"tool_calls": entries})) == [
        ("c0", "f", "{}"),
        ("c1", "f", "{}"),
        ("c2", "f", "{}"),
    ]


def test_arguments_that_come_as_an_object_are_their_json() -> None:
    assert called(call(0, "a", "f", {"x": 1})) == [("a", "f", '{"x":1}')]


def test_missing_and_null_arguments_are_none() -> None:
    assert called(call(0, "a", "f")) == [("a", "f", "")]
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}
    assert called(chunk({"tool_calls": [piece]})) == [("a", "f", "")]


def test_a_piece_that_says_nothing_begins_no_call() -> None:
    assert (
        called(call(0, None, None, ""), chunk({"tool_calls": [{"index": 1, "type": "function"}]}))
        == []
    )


def test_a_call_is_done_when_the_next_one_begins() -> None:
    decoder = ChatStreamDecoder()
    decoder.feed(call(0, "a", "f", '{"x":1}'))
    assert [type(d) for d in decoder.feed(call(1, "b", "g", ""))] == [CallDone, CallDelta]
    assert [type(d) for d in decoder.feed(DONE)] == [CallDone]


@pytest.mark.parametrize("finish", ["length", "content_filter", "max_tokens", "error"])
def test_the_last_call_of_a_cut_answer_is_never_done(finish: str) -> None:
    stream = [call(0, "a", "f", "{}"), call(1, "b", "g", '{"x":'), chunk({}, finish)]
    assert [d.index for d in run(stream)[1] if type(d) is CallDone] == [0]


@pytest.mark.parametrize(
    "late",
    [
        call(0, None, None, " "),
        call(0, "a", "f", '{"x":2}'),
        call(1, None, None, "}"),
        call(None, None, None, "}"),
        call(1, "b", None, "}", type="custom"),
        chunk({}, "length"),
        chunk({"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]}, "tool_calls"),
    ],
)
def test_a_call_that_was_told_as_done_is_changed_by_nothing(late: Any) -> None:
    """It may run already; the committed turn had other arguments, or called it truncated."""
    turn, told = run([call(0, "a", "f", '{"x":1}'), call(1, "b", "g", "{}"), DONE, late])
    done = [d.call for d in told if type(d) is CallDone]
    assert [(c.name, c.arguments) for c in done] == [("f", '{"x":1}'), ("g", "{}")]
    assert (turn.calls, turn.cut) == (tuple(done), False)
    decoder = ChatStreamDecoder()
    for event in (call(0, "a", "f", "{}"), DONE):
        decoder.feed(event)
    assert decoder.feed_arguments(call(0, None, None, "}")) is None


def test_a_call_of_the_older_form_is_told_once_and_changed_by_nothing() -> None:
    begun = chunk({"function_call": {"name": "f", "arguments": "{}"}}, "function_call")
    turn, told = run([begun, chunk({"function_call": {"arguments": "}"}}, "function_call")])
    assert [d.call for d in told if type(d) is CallDone] == list(turn.calls)
    assert [c.arguments for c in turn.calls] == ["{}"]


def test_custom_calls_stream_their_input() -> None:
    def custom(**body: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": body}]})

    turn, told = run([custom(name="grep", input="x "), custom(input="y"), DONE])
    assert [(c.kind, c.name, c.arguments) for c in turn.calls] == [("custom", "grep", "x y")]
    assert [d.arguments for d in told if type(d) is CallDelta] == ["x ", "y"]


def test_the_older_form_of_a_call_is_told_at_the_end() -> None:
    stream = [
        chunk({"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({}, "function_call"),
    ]
    turn, told = run(stream)
    assert [(c.kind, c.name, c.arguments) for c in turn.calls] == [
        ("function_call", "f", '{"a":1}')
    ]
    assert [type(d) for d in told] == [Started, CallDelta, CallDone]


def test_what_a_host_adds_to_a_call_goes_back() -> None:
    extra = {"google": {"thought_signature": "s"}}
    turn, _ = run(
        [
            call(0, "a", "f", "{}", type="function", extra_content=extra),
            call(0, None, None, ""),
            DONE,
        ]
    )
    assert json.loads(turn.native)["tool_calls"][0]["extra_content"] == extra
    assert "index" not in json.loads(turn.native)["tool_calls"][0]


# --- the rest of a message ------------------------------------------------------------------------


def test_only_the_first_choice_is_read() -> None:
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    turn, _ = run(
        [
            {
                **chunk({"content": "yes"}),
                "choices": [other, chunk({"content": "yes"})["choices"][0]],
            },
            chunk({}, "stop"),
        ]
    )
    assert (turn.text, turn.finish_reason) == ("yes", "stop")


def test_pieces_of_openrouters_reasoning_details_are_put_together() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return chunk(
            {
                "reasoning": fields.get("text"),
                "reasoning_details": [{"type": "reasoning.text", "index": 0, **fields}],
            }
        )

    sealed = {"type": "reasoning.encrypted", "index": 1, "data": "xyz"}
    turn, _ = run(
        [
            detail(text="We "),
            detail(text="think"),
            detail(signature="sig"),
            chunk({"reasoning_details": [sealed]}),
            chunk({"content": "hi"}, "stop"),
        ]
    )
    assert turn.reasoning == "We think"
    assert json.loads(turn.native)["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "We think", "signature": "sig"},
        sealed,
    ]


@pytest.mark.parametrize("last", ["", "Step 1. Step 2."])
def test_litellms_thinking_blocks_are_put_together_S1(last: str) -> None:
    """The signature comes with an empty text, or (newer proxies) with all of it once more."""

    def block(thinking: str, signature: str | None = "") -> dict[str, Any]:
        return {"type": "thinking", "thinking": thinking, "signature": signature}

    redacted = {"type": "redacted_thinking", "data": "sealed"}
    lists: list[list[dict[str, Any]]] = [
        [block("Step 1. ")],
        [block("Step 2.", None)],
        [block(last, "one")],
        [block("Another.", "two")],
        [redacted],
        [block("More")],
        [redacted, block("Whole."), block("And another.", "three")],
        [block("Open")],
        [block(" end.")],
    ]
    turn, _ = run([*[chunk({"thinking_blocks": blocks}) for blocks in lists], DONE])
    assert json.loads(turn.native)["thinking_blocks"] == [
        block("Step 1. Step 2.", "one"),
        block("Another.", "two"),
        redacted,
        block("More"),
        redacted,
        block("Whole."),
        block("And another.", "three"),
        block("Open end."),
    ]


def test_content_that_turns_from_text_to_parts_loses_nothing() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x"}}
    turn, told = run(
        [
            chunk({"content": "a"}),
            chunk({"content": ""}),
            chunk({"content": [{"type": "text", "text": "b"}, {"type": "text", "text": ""}, "c"]}),
            chunk({"content": "d"}),
            chunk({"content": ""}),
            chunk({"content": None}),
            chunk({"content": [image, 5]}),
            chunk(
                {
                    "content": [
                        {"type": "thinking", "thinking": []},
                        {"type": "thinking", "thinking": "hm"},
                    ]
                },
                "stop",
            ),
        ]
    )
    assert [delta.text for delta in told if isinstance(delta, TextDelta)] == ["a", "b", "c", "d"]
    assert (turn.text, turn.reasoning) == ("abcd", "hm")


def test_parts_alone_are_content_too() -> None:
    turn, told = run(
        [chunk({"content": ""}), chunk({"content": [{"type": "text", "text": "a"}]}, "stop")]
    )
    assert turn.text == "a"
    assert [delta.text for delta in told if isinstance(delta, TextDelta)] == ["a"]


def test_a_tool_that_groq_ran_is_one_tool_S1() -> None:
    """It comes with its arguments, and once more with its output."""
    begun = {"index": 0, "type": "search", "arguments": '{"query": "Oslo"}', "output": None}
    more = {**begun, "index": 1, "search_results": {"results": []}}
    other = {"type": "python", "arguments": "{}"}
    lists = [[begun], [{**begun, "output": "rain"}, more, other], [{**more, "output": "sun"}]]
    stream = [chunk({"executed_tools": tools}) for tools in lists]
    turn, _ = run([*stream, chunk({"content": "Rain."}, "stop")])
    assert not turn.calls
    assert json.loads(turn.native)["executed_tools"] == [
        {**begun, "output": "rain"},
        {**more, "output": "sun"},
        other,
    ]
    assert begun["output"] is None


def test_databricks_reasoning_parts_are_put_together_S1() -> None:
    """A signature comes behind its text, in a part of its own; the text of the answer may be a
    part, or not."""

    def part(text: str, **signature: str) -> dict[str, Any]:
        summary = {"type": "summary_text", "text": text, **signature}
        return {"type": "reasoning", "summary": [summary]}

    content = [
        part("We think.", signature="s1"),
        part("", signature="s2"),
        {"type": "text", "text": "Hi 🙂"},
        part("More."),
        {"type": "reasoning", "summary": "no list"},
    ]
    whole = decode_chat(
        {
            "id": "c",
            "model": "m",
            "choices": [{"finish_reason": "stop", "message": {"content": content}}],
        }
    )
    assert (whole.reasoning, whole.text) == ("We think.More.", "Hi 🙂")
    pieces = [
        [part("We ")],
        [part("think.")],
        [part("", signature="s1")],
        [part("", signature="s2")],
        "Hi",
        " 🙂",
        "",
        [part("Mo")],
        [part("re."), content[-1]],
    ]
    turn, _ = run([*[chunk({"content": piece}) for piece in pieces], chunk({}, "stop")])
    assert turn == whole
    assert json.loads(turn.native)["content"] == content


def test_mistrals_thinking_parts_are_put_together() -> None:
    def thinking(text: str) -> dict[str, Any]:
        return chunk(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}
        )

    turn, _ = run(
        [thinking("a"), thinking("b"), chunk({"content": "c"}), chunk({"content": "d"}, "stop")]
    )
    assert (turn.reasoning, turn.text) == ("ab", "cd")
    assert json.loads(turn.native)["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]},
        {"type": "text", "text": "cd"},
    ]


def test_refusals_and_spoken_words_are_told() -> None:
    turn, _ = run([chunk({"refusal": "I "}), chunk({"refusal": "won't"}), chunk({}, "stop")])
    assert (turn.refusal, turn.finish_reason, turn.cut) == ("I won't", "refusal", True)
    turn, _ = run(
        [
            chunk({"audio": {"id": "a", "transcript": "so "}}),
            chunk({"audio": {"transcript": "it is"}}, "stop"),
        ]
    )
    assert turn.text == "so it is"


def test_a_character_that_is_cut_in_its_middle_is_whole_again() -> None:
    decoder = ChatStreamDecoder()
    for event in (chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}, "stop")):
        decoder.feed(event)
    assert decoder.finish().text == "\U0001f600"


def test_usage_after_the_answer_is_its_end_when_no_finish_reason_comes() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    turn, told = run([call(0, "a", "f", "{}"), chunk({"content": ""}, usage=usage)])
    assert (turn.finish_reason, turn.usage.output_tokens) == ("unknown", 2)
    assert CallDone not in [type(d) for d in told]
    decoder = ChatStreamDecoder()
    decoder.feed(chunk({"content": "counted along"}, usage=usage))
    with pytest.raises(AdapterError):
        decoder.finish()


@pytest.mark.parametrize("choices", [{"choices": []}, {"choices": None}, {}])
@pytest.mark.parametrize("finish", ["stop", None])
def test_a_count_is_read_whatever_a_host_writes_for_no_choices(
    choices: dict[str, Any], finish: str | None
) -> None:
    """Rules S1 and U1."""
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    last = {**chunk(usage=usage), **choices}
    if not choices:
        del last["choices"]
    turn, _ = run([chunk({"content": "Hi"}, finish), last])
    assert (turn.text, turn.usage.input_tokens, turn.usage.output_tokens) == ("Hi", 9, 2)
    decoder = ChatStreamDecoder()
    decoder.feed(chunk({"content": "Hi"}))
    decoder.feed({**last, "usage": None})
    with pytest.raises(AdapterError, match="ended before its last event"):
        decoder.finish()


COUNTED_ALONG: list[list[dict[str, Any]]] = [
    # A part of a kind that is never told.
    [{"content": [{"type": "sealed", "data": "xyz"}]}],
    [{"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}]}],
    # vLLM holds the first tokens of a character back, and counts them.
    [{"content": "Hello"}, {"content": " wor"}, {"content": ""}],
    [{"reasoning_text": "Hm"}],
    [{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]}, {}],
    [{"function_call": {"name": "f", "arguments": "{"}}],
]


@pytest.mark.parametrize("deltas", COUNTED_ALONG)
def test_a_count_in_every_event_ends_no_stream(deltas: list[dict[str, Any]]) -> None:
    """Rules S3 and C2a."""

    def usage(tokens: int) -> dict[str, int]:
        return {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}

    decoder = ChatStreamDecoder()
    stream = [chunk({"role": "assistant", "content": ""}, usage=usage(0))]
    stream += [chunk(delta, usage=usage(n)) for n, delta in enumerate(deltas, 1)]
    other_choice = chunk({"content": "b"}, usage=usage(9))
    other_choice["choices"][0]["index"] = 1
    stream.append(other_choice)
    for event in stream:
        decoder.feed(event)
        with pytest.raises(AdapterError, match="ended before its last event") as caught:
            decoder.finish()
        assert caught.value.partial is not None
        assert caught.value.partial.cut
    # What ends it is a count that belongs to no choice.
    decoder.feed(chunk(usage=usage(10)))
    assert decoder.finish().usage.output_tokens == 10


def test_an_error_event_says_what_went_wrong_and_what_had_arrived() -> None:
    decoder = ChatStreamDecoder()
    decoder.feed(chunk({"content": "half"}))
    with pytest.raises(AdapterError, match="Upstream") as caught:
        decoder.feed({"error": {"message": "Upstream is gone", "code": 502}, "choices": []})
    error = caught.value
    assert (error.status, error.retryable, error.partial and error.partial.text) == (
        502,
        True,
        "half",
    )


def test_the_adapter_hands_out_a_decoder_and_nothing_is_partial_at_first() -> None:
    decoder = OpenAIChat.stream_decoder()
    assert decoder.partial() is None
    assert (
        list(decoder.feed(None))
        == list(decoder.feed("[DONE]"))
        == list(decoder.feed({"object": "ping"}))
        == []
    )
    assert decoder.partial() is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "id index type function custom name arguments input text thinking data transcript "
                "summary content refusal reasoning tool_calls function_call audio "
                "reasoning_details thinking_blocks usage completion_tokens other".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(400))
@given(
    st.lists(
        JSON | st.builds(chunk, JSON, st.sampled_from([None, "stop", "length", 3])), max_size=6
    ),
    JSON,
)
def test_nothing_in_an_event_raises(stream: list[Any], usage: Any) -> None:
    decoder = ChatStreamDecoder()
    for event in stream:
        decoder.feed(event)
        decoder.partial()
    decoder.feed({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage})
    decoder.finish()


def decode(stream: list[dict[str, Any]]) -> None:
    decoder = ChatStreamDecoder()
    for event in stream:
        decoder.feed(event)
    decoder.finish()


@pytest.mark.parametrize(
    "make",
    [
        lambda n: [
            call(0, "a", "f", '{"x":"'),
            *[call(0, None, None, "}{xx")] * n,
            call(0, None, None, '"}'),
        ],
        lambda n: [call(k, f"c{k}", "f", "{}") for k in range(n)],
        lambda n: [call(0, f"c{k}", "f", "{}") for k in range(n)],
        lambda n: [chunk({"content": "word ", "reasoning_content": "hm "})] * n,
        lambda n: (
            [chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "x"}]})]
            * n
        ),
        lambda n: [chunk({"content": [{"type": "text", "text": "x"}]})] * n,
        lambda n: [chunk({"thinking_blocks": [{"type": "thinking", "thinking": "x"}]})] * n,
    ],
)
def test_the_work_is_linear_in_what_arrives(make: Any) -> None:
    few, many = (calls_made(partial(decode, [*make(n), DONE])) for n in (60, 600))
    assert many < 11 * few
