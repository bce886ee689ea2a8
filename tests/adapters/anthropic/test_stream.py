"""Streams of the Messages API: recorded ones, re-cut ones, broken ones, and what is told while they
run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from counting import calls_made
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    AssistantTurn,
    ReasoningDelta,
    RefusalDelta,
    Started,
    StreamDecoder,
    TextDelta,
    Transcript,
    Usage,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.anthropic.decode import decode_message
from lutumpy.adapters.anthropic.stream import MessagesStreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.models import CallBlock, RefusalBlock, TurnOptions
from lutumpy.streaming import CallDelta, CallDone, Delta

FIXTURES = Path(__file__).parents[2] / "fixtures"
Event = dict[str, Any]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


STREAMED = rows("anthropic_messages_sse.jsonl")
WHOLE = rows("anthropic_messages.jsonl")
by_source: Any = {"ids": lambda row: row["source"].rsplit("/", 1)[-1]}


def events_of(text: str) -> list[Event]:
    chunks = text.replace("\r\n", "\n").split("\n\n")
    data = [
        "\n".join([line[5:] for line in chunk.split("\n") if line.startswith("data:")])
        for chunk in chunks
    ]
    return [json.loads(found) for found in data if found.strip()]


def feed(decoder: StreamDecoder, events: Iterable[Any]) -> list[Delta]:
    return [delta for event in events for delta in decoder.feed(event)]


def run(events: Iterable[Any]) -> tuple[AssistantTurn, list[Delta]]:
    decoder = AnthropicMessages.stream_decoder()
    deltas = feed(decoder, events)
    return decoder.finish(), deltas


def check_deltas(turn: AssistantTurn, deltas: list[Delta]) -> None:
    """What was told while the stream ran is what the turn says at its end."""
    assert "".join([d.text for d in deltas if isinstance(d, TextDelta)]) == turn.text
    assert "".join([d.text for d in deltas if isinstance(d, ReasoningDelta)]) == (
        turn.reasoning or ""
    )
    assert "".join([d.text for d in deltas if isinstance(d, RefusalDelta)]) == (turn.refusal or "")
    done = [(d.index, d.call) for d in deltas if isinstance(d, CallDone)]
    assert done == list(enumerate(turn.calls))[: len(done)]
    assert len(turn.calls) - len(done) == (1 if turn.cut and turn.calls else 0)
    for index, call in enumerate(turn.calls):
        pieces = [d for d in deltas if isinstance(d, CallDelta) and d.index == index]
        assert {(d.id, d.name) for d in pieces} == {(call.id, call.name)}
        text = "".join([d.arguments for d in pieces])
        try:
            told = json.loads(text or "{}")
        except ValueError:
            assert text == call.arguments
        else:
            assert told == json.loads(call.arguments or "{}")


# --- recorded -------------------------------------------------------------------------------------


def recorded_calls(events: list[Event]) -> list[tuple[str, str, Any]]:
    starts = {e["index"]: e["content_block"] for e in events if e["type"] == "content_block_start"}
    found = []
    for index, block in starts.items():
        if block["type"] == "tool_use":
            pieces = [
                e["delta"]["partial_json"]
                for e in events
                if e["type"] == "content_block_delta"
                and e["index"] == index
                and "partial_json" in e["delta"]
            ]
            found.append((block["id"], block["name"], json.loads("".join(pieces) or "{}")))
    return found


@pytest.mark.parametrize("row", STREAMED, **by_source)
def test_a_recorded_stream_gives_exactly_its_calls(row: dict[str, Any]) -> None:
    events = events_of(row["response"])
    before = json.dumps(events)
    turn, deltas = run(events)
    assert [(c.id, c.name, json.loads(c.arguments)) for c in turn.calls] == recorded_calls(events)
    check_deltas(turn, deltas)
    message = events[0]["message"]
    assert deltas[0] == Started(message["model"], message["id"])
    assert (turn.model, turn.response_id) == (message["model"], message["id"])
    ending = next(e for e in events if e["type"] == "message_delta")
    assert turn.provider_finish_reason == ending["delta"]["stop_reason"]
    assert turn.usage.output_tokens == ending["usage"]["output_tokens"]
    assert json.dumps(events) == before


@pytest.mark.parametrize("row", STREAMED, **by_source)
def test_objects_of_the_sdk_give_the_same_turn(row: dict[str, Any]) -> None:
    from anthropic._models import construct_type_unchecked
    from anthropic.types.beta import BetaRawMessageStreamEvent

    events = events_of(row["response"])
    kind: Any = BetaRawMessageStreamEvent
    objects: list[Any] = [construct_type_unchecked(type_=kind, value=event) for event in events]
    assert {type(event).__name__ for event in objects} - {"dict"} > {"BetaRawMessageStartEvent"}
    turn, deltas = run(events)
    again, told = run(objects)
    assert told == deltas
    assert replace(again, native=b"", residue=b"") == replace(turn, native=b"", residue=b"")
    assert [block["type"] for block in json.loads(again.native)] == [
        b["type"] for b in json.loads(turn.native)
    ]


def comparable(content: Any) -> Any:
    """Content blocks without the note of who called, which one of the recorded clients left out."""
    return [{key: value for key, value in block.items() if key != "caller"} for block in content]


def ids_of(content: Any) -> set[str]:
    blocks = content if isinstance(content, list) else []
    return {block["id"] for block in blocks if "id" in block}


def test_streamed_turns_are_what_recorded_clients_sent_back() -> None:
    """Follow-up requests of the recorded conversations hold the turns that were streamed before,
    value for value.
    """
    compared = 0
    for row in STREAMED:
        content = json.loads(run(events_of(row["response"]))[0].native)
        for later in STREAMED:
            sent = [m["content"] for m in later["request"]["messages"] if m["role"] == "assistant"]
            for found in [back for back in sent if ids_of(back) & ids_of(content)]:
                assert comparable(found) == comparable(content)
                compared += 1
    assert compared >= 6


# --- as good as unstreamed ------------------------------------------------------------------------


class Cutter:
    """Makes the events of a streamed answer from an unstreamed one, cut at random places."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def flip(self) -> bool:
        return self._data.draw(st.booleans())

    def cut(self, text: str) -> list[str]:
        places = sorted(self._data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
        pieces = [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]
        return pieces if self.flip() else [piece for piece in pieces if piece]

    def input(self, value: Any) -> list[str]:
        if value == {} and self.flip():
            return [""] * self._data.draw(st.integers(0, 2))
        separators = self._data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]))
        return self.cut(json.dumps(value, ensure_ascii=self.flip(), separators=separators))

    def block(self, block: Any) -> tuple[Any, list[Any]]:
        start, deltas = dict(block), []
        if block["type"] == "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in self.cut(block["text"])]
            if isinstance(block.get("citations"), list):
                start["citations"] = []
                deltas += [
                    {"type": "citations_delta", "citation": citation}
                    for citation in block["citations"]
                ]
        elif block["type"] == "thinking":
            start.update(thinking="", signature="")
            deltas = [
                {"type": "thinking_delta", "thinking": piece}
                for piece in self.cut(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] in ("tool_use", "server_tool_use", "mcp_tool_use"):
            start["input"] = {}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in self.input(block["input"])
            ]
        return start, deltas

    def events(self, reply: Any) -> Iterator[Event]:
        ending = {
            key: reply.get(key)
            for key in ("stop_reason", "stop_sequence", "stop_details", "container")
        }
        usage = {"input_tokens": reply["usage"].get("input_tokens"), "output_tokens": 1}
        start = {**reply, **dict.fromkeys(ending), "content": [], "usage": usage}
        start.pop("context_management", None)
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(reply["content"]):
            start, deltas = self.block(block)
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                if self.flip():
                    yield self._data.draw(st.sampled_from(NOISE))
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        final = {**reply["usage"], "input_tokens": None if self.flip() else usage["input_tokens"]}
        end: Event = {"type": "message_delta", "delta": ending, "usage": final}
        if "context_management" in reply:
            end["context_management"] = reply["context_management"]
        yield end
        yield {"type": "message_stop"}


NOISE: list[Event] = [
    {"type": "ping"},
    {"type": "brand_new_event", "index": 0, "delta": {"type": "text_delta", "text": "no"}},
    {
        "type": "content_block_delta",
        "index": 99,
        "delta": {"type": "brand_new_delta", "text": "no"},
    },
    {
        "type": "message_delta",
        "delta": {"stop_reason": None},
        "usage": {"input_tokens": None, "output_tokens": 3},
    },
]

texts = st.text(max_size=12)
names = st.sampled_from(["search", "read_file", "ä b"])
arguments = st.dictionaries(
    texts,
    st.recursive(st.none() | st.booleans() | st.integers() | texts, st.lists, max_leaves=4),
    max_size=3,
)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(
        lambda text: {"type": "text", "text": text, "citations": [{"type": "x", "file_id": None}]},
        texts,
    ),
    st.builds(
        lambda text, sig: {"type": "thinking", "thinking": text, "signature": sig}, texts, texts
    ),
    st.just({"type": "redacted_thinking", "data": "xx"}),
    st.builds(
        lambda i, n, a: {"type": "tool_use", "id": f"t{i}", "name": n, "input": a},
        st.integers(0, 3),
        names,
        arguments,
    ),
    st.builds(
        lambda a: {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": a},
        arguments,
    ),
    st.just(
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"encrypted_content": "e"}],
        }
    ),
    st.just({"type": "brand_new_block", "payload": None}),
)
STOPS = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "new",
    None,
]


@st.composite
def replies(draw: st.DrawFn) -> dict[str, Any]:
    stop = draw(st.sampled_from(STOPS))
    return {
        "id": "msg_1",
        "model": "claude-opus-4-8",
        "content": draw(st.lists(blocks, max_size=6)),
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "explanation": draw(texts)}
        if stop == "refusal"
        else None,
        "container": draw(st.sampled_from([None, {"id": "container_1"}])),
        "context_management": {"applied_edits": []},
        "usage": {
            "input_tokens": 5,
            "output_tokens": 7,
            "server_tool_use": {"web_search_requests": 1},
        },
    }


@given(replies(), st.data())
def test_a_stream_gives_the_turn_of_the_same_answer_unstreamed(
    reply: dict[str, Any], data: st.DataObject
) -> None:
    turn, deltas = run(Cutter(data).events(reply))
    assert turn == decode_message(reply)
    check_deltas(turn, deltas)


@pytest.mark.sweep
@pytest.mark.parametrize("row", WHOLE, **by_source)
@settings(max_examples=examples(5))
@given(data=st.data())
def test_a_recorded_answer_gives_the_same_turn_streamed(
    row: dict[str, Any], data: st.DataObject
) -> None:
    turn, deltas = run(Cutter(data).events(row["response"]))
    assert turn == AnthropicMessages.response(row["response"])
    check_deltas(turn, deltas)


# --- each kind ------------------------------------------------------------------------------------


def started(**fields: Any) -> Event:
    message = {
        "id": "msg_1",
        "model": "claude-opus-4-8",
        "content": [],
        "usage": {"input_tokens": 5},
        **fields,
    }
    return {"type": "message_start", "message": message}


def block_start(index: Any, **block: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def call_start(index: Any, call_id: str, **fields: Any) -> Event:
    return block_start(index, type="tool_use", id=call_id, name="search", **{"input": {}, **fields})


def delta(index: Any, kind: str, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def piece(index: Any, text: str) -> Event:
    return delta(index, "input_json_delta", partial_json=text)


def block_stop(index: Any) -> Event:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: Any = "tool_use", **fields: Any) -> Event:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 7},
        **fields,
    }


END: Event = {"type": "message_stop"}


def call(call_id: str, arguments: str, position: int = 0) -> CallBlock:
    return CallBlock(call_id, "search", arguments, as_object=True, position=position)


def test_a_call_is_done_when_the_next_one_begins_or_the_answer_is_known_to_be_whole() -> None:
    decoder = MessagesStreamDecoder()
    assert feed(
        decoder, [started(), call_start(0, "a"), piece(0, ""), piece(0, '{"q": 1}'), block_stop(0)]
    )[1:] == [
        CallDelta(0, "a", "search", ""),
        CallDelta(0, "a", "search", '{"q": 1}'),
    ]
    assert decoder.feed(block_start(1, type="text", text="")) == []
    assert decoder.feed(block_stop(1)) == []
    assert decoder.feed(call_start(2, "b")) == [
        CallDone(0, call("a", '{"q":1}')),
        CallDelta(1, "b", "search", ""),
    ]
    assert decoder.feed(block_stop(2)) == []
    assert decoder.feed(stopped()) == [CallDone(1, call("b", "{}", 1))]
    assert decoder.feed(END) == []
    assert decoder.finish("req_1").request_id == "req_1"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_the_last_call_of_a_cut_answer_is_never_done(reason: str) -> None:
    events = [
        started(),
        call_start(0, "a"),
        block_stop(0),
        call_start(1, "b"),
        piece(1, '{"q": 1}'),
        block_stop(1),
    ]
    turn, deltas = run([*events, stopped(reason), END])
    assert [d for d in deltas if isinstance(d, CallDone)] == [CallDone(0, call("a", "{}"))]
    assert turn.cut
    assert turn.calls[1] == call("b", '{"q":1}', 1)


@pytest.mark.parametrize(
    ("text", "arguments", "sent"),
    [
        ("", "{}", {}),
        (" ", "{}", {}),
        ("null", "", {}),
        ('{"q": "x', '{"q": "x', {"INVALID_JSON": '{"q": "x'}),
        ('{"q": 1}}', '{"q": 1}}', {"INVALID_JSON": '{"q": 1}}'}),
        ("[1,2]", "[1,2]", {"INVALID_JSON": "[1,2]"}),
        ('{"q": "\\ud83d\\ude00"}', '{"q":"\U0001f600"}', {"q": "\U0001f600"}),
        ('{"q": "\\ud83d"}', '{"q":"\ufffd"}', {"q": "\ufffd"}),
        ("[" * 100_000, "[" * 100_000, {"INVALID_JSON": "[" * 100_000}),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_the_models_own_text(
    text: str, arguments: str, sent: Any
) -> None:
    turn, _ = run([started(), call_start(0, "a"), piece(0, text), block_stop(0), stopped(), END])
    assert turn.calls == (call("a", arguments),)
    assert json.loads(turn.native)[0]["input"] == sent


def test_an_input_that_stands_in_the_first_event_is_the_input() -> None:
    turn, deltas = run(
        [started(), call_start(0, "a", input={"q": 1}), block_stop(0), stopped(), END]
    )
    assert turn.calls == (call("a", '{"q":1}'),)
    check_deltas(turn, deltas)


def test_input_of_a_call_that_the_provider_runs_is_an_object_however_it_was_cut() -> None:
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    events = [
        started(),
        block_start(0, **server),
        piece(0, '{"q'),
        block_stop(0),
        call_start(1, "a"),
        block_stop(1),
    ]
    turn, _ = run([*events, stopped(), END])
    assert json.loads(turn.native)[0]["input"] == {"INVALID_JSON": '{"q'}
    assert turn.results_only


def test_a_refusal_without_text_is_told_by_its_explanation() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    event = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    turn, deltas = run([started(), event, END])
    assert turn.blocks == (RefusalBlock("No."),)
    check_deltas(turn, deltas)


def test_unknown_deltas_of_unknown_blocks_are_kept() -> None:
    events = [
        started(),
        block_start(0, type="compaction", content=""),
        delta(0, "compaction_delta", content="Once ", encrypted_content="e"),
        delta(0, "compaction_delta", content="upon", more=1, none=None),
        block_stop(0),
        stopped("end_turn"),
        END,
    ]
    block = {
        "type": "compaction",
        "content": "Once upon",
        "encrypted_content": "e",
        "more": 1,
        "none": None,
    }
    assert json.loads(run(events)[0].native) == [block]


def test_a_fallback_names_the_model_that_answered() -> None:
    fallback = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
    assert (
        run([started(), block_start(0, **fallback), block_stop(0), stopped("end_turn"), END])[
            0
        ].model
        == "b"
    )


def test_counts_are_totals_and_null_erases_nothing() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1}
    later = {"input_tokens": 6, "cache_read_input_tokens": None, "output_tokens": 9}
    turn, _ = run(
        [started(usage=usage), stopped(None, usage=later), stopped("end_turn", usage={}), END]
    )
    assert turn.usage == Usage(6, 9, 18, 3)


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("stops", [True, False])
def test_calls_with_reused_or_missing_indexes_stay_apart(index: int | None, stops: bool) -> None:
    events = [started()]
    for number in range(3):
        events += [call_start(index, f"c{number}"), piece(index, f'{{"q":{number}}}')]
        events += [block_stop(index)] if stops else []
    turn, deltas = run([*events, stopped(), END])
    assert turn.calls == tuple([call(f"c{n}", f'{{"q":{n}}}', n) for n in range(3)])
    check_deltas(turn, deltas)


@pytest.mark.parametrize(("begun", "given"), [(None, 1), (1, 0), (1, 7), (0, 1)])
def test_arguments_under_a_wrong_index_are_those_of_the_open_call_S2(
    begun: int | None, given: int
) -> None:
    """They were dropped, and the call ran without them."""
    events = [started(), block_start(0, type="text", text="Hi"), block_stop(0)]
    events += [call_start(begun, "a"), piece(given, '{"q"'), piece(given, ":1}")]
    events += [call_start(begun, "b"), piece(given, '{"q":2}'), stopped(), END]
    turn, deltas = run(events)
    assert turn.calls == (call("a", '{"q":1}', 1), call("b", '{"q":2}', 2))
    check_deltas(turn, deltas)
    # Behind the end of its block a call takes nothing more.
    turn, _ = run([started(), call_start(0, "a"), block_stop(0), piece(1, "{}"), stopped(), END])
    assert turn.calls == (call("a", "{}", 0),)


@pytest.mark.parametrize("before", ["nothing", "a call", "a call without arguments", "open text"])
@pytest.mark.parametrize("pieces", [("", '{"q"', ":1}"), ("",)])
def test_arguments_of_a_call_that_nothing_began_are_a_call_without_a_name_C8(
    before: str, pieces: tuple[str, ...]
) -> None:
    """They were dropped, and the answer was finished or said less than the model did."""
    events: list[Any] = [started()]
    if before == "open text":
        events.append(block_start(0, type="text", text="Hi"))
    elif before != "nothing":
        arguments = [piece(0, '{"q":2}')] if before == "a call" else []
        events += [call_start(0, "a"), *arguments, block_stop(0)]
    index = 0 if before == "open text" else 1
    events += [*[piece(index, part) for part in pieces], block_stop(index), stopped(), END]
    turn, deltas = run(events)
    lost = turn.calls[-1]
    assert (lost.id, lost.name, lost.arguments) == ("", "", "".join(pieces) or "{}")
    assert [each.id for each in turn.calls[:-1]] == (["a"] if before[:1] == "a" else [])
    check_deltas(turn, deltas)


def test_a_block_of_no_known_kind_has_its_own_arguments_C8() -> None:
    """Also where it began without any."""
    begun = block_start(0, type="strange_use", id="a", name="look")
    turn, _ = run([started(), begun, piece(0, '{"q"'), piece(0, ":1}"), stopped(), END])
    (found,) = turn.calls
    assert (found.id, found.name, found.arguments) == ("a", "look", '{"q":1}')


def test_interleaved_blocks() -> None:
    events = [
        started(),
        call_start(0, "a"),
        call_start(1, "b"),
        piece(1, '{"q"'),
        piece(0, '{"q":1}'),
        block_stop(0),
    ]
    turn, deltas = run([*events, piece(1, ":2}"), block_stop(1), stopped(), END])
    assert turn.calls == (call("a", '{"q":1}'), call("b", '{"q":2}', 1))
    check_deltas(turn, deltas)


def test_text_without_its_first_event_is_text() -> None:
    turn, deltas = run(
        [
            started(),
            delta(0, "text_delta", text="a"),
            delta(0, "text_delta", text="b"),
            stopped(None),
            END,
        ]
    )
    assert turn.text == "ab"
    check_deltas(turn, deltas)


def test_what_the_first_events_hold_already_comes_first() -> None:
    content = [{"type": "text", "text": "a"}]
    thinking = block_start(1, type="thinking", thinking="b", signature="s")
    events = [started(content=content), delta(0, "text_delta", text="c"), block_stop(0), thinking]
    turn, deltas = run(
        [*events, delta(1, "thinking_delta", thinking="d"), block_stop(1), stopped("new"), END]
    )
    assert (turn.text, turn.reasoning) == ("ac", "bd")
    check_deltas(turn, deltas)


def test_the_first_stop_reason_holds() -> None:
    turn, deltas = run(
        [started(), call_start(0, "a"), block_stop(0), stopped(), stopped("max_tokens"), END]
    )
    assert turn.provider_finish_reason == "tool_use"
    check_deltas(turn, deltas)


def test_a_character_cut_in_two_is_told_whole() -> None:
    events = [
        block_start(0, type="text", text=""),
        *[delta(0, "text_delta", text=t) for t in ("a\ud83d", "\ude00\ud83d")],
    ]
    turn, deltas = run([started(), *events, block_stop(0), stopped("end_turn"), END])
    assert turn.text == "a\U0001f600\ufffd"
    check_deltas(turn, deltas)


# --- what fails -----------------------------------------------------------------------------------

BEGUN = [
    started(),
    block_start(0, type="text", text=""),
    delta(0, "text_delta", text="Let me"),
    block_stop(0),
    call_start(1, "a"),
    block_stop(1),
    call_start(2, "b"),
    piece(2, '{"q": "x'),
]


def check_partial(turn: AssistantTurn | None) -> None:
    assert turn is not None
    assert turn.cut
    assert turn.text == "Let me"
    assert [c.arguments for c in turn.calls] == ["{}", '{"q": "x']
    assert turn.usage.input_tokens == 5


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("overloaded_error", True),
        ("api_error", True),
        ("rate_limit_error", True),
        ("invalid_request_error", False),
        ("authentication_error", False),
    ],
)
def test_an_error_event_raises_with_what_had_arrived(kind: str, retryable: bool) -> None:
    decoder = MessagesStreamDecoder()
    feed(decoder, BEGUN)
    event = {"type": "error", "error": {"type": kind, "message": "Sorry."}, "request_id": "req_1"}
    with pytest.raises(AdapterError, match=r"Sorry\.") as caught:
        decoder.feed(event)
    error = caught.value
    assert (error.provider, error.code, error.retryable) == ("anthropic_messages", kind, retryable)
    assert error.request_id == "req_1"
    check_partial(error.partial)


def test_a_stream_that_ends_early_raises_with_what_had_arrived() -> None:
    decoder = MessagesStreamDecoder()
    feed(decoder, BEGUN)
    check_partial(decoder.partial())
    with pytest.raises(AdapterError, match="ended before") as caught:
        decoder.finish("req_1")
    assert caught.value.retryable
    assert caught.value.request_id == "req_1"
    check_partial(caught.value.partial)


@pytest.mark.parametrize("events", [[], [{"type": "ping"}], [END]])
def test_a_stream_of_nothing_is_no_answer(events: list[Event]) -> None:
    decoder = MessagesStreamDecoder()
    assert feed(decoder, events) == []
    assert decoder.partial() is None
    with pytest.raises(AdapterError) as caught:
        decoder.finish()
    assert caught.value.partial is None


def test_a_stop_reason_is_enough() -> None:
    assert run([*BEGUN, piece(2, '"}'), stopped()])[0].calls[1].arguments == '{"q":"x"}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
EVENTS = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "error",
]
KINDS = [
    "text",
    "thinking",
    "tool_use",
    "server_tool_use",
    "fallback",
    "redacted_thinking",
    "tool_result",
]
DELTAS = [
    "text_delta",
    "input_json_delta",
    "thinking_delta",
    "signature_delta",
    "citations_delta",
    "compaction_delta",
]


def hostile(types: list[str], *keys: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.sampled_from(types) | json_values},
        optional=dict.fromkeys(keys, texts | json_values),
    )


hostile_events = st.fixed_dictionaries(
    {"type": st.sampled_from([*EVENTS, "message_stop"])},
    optional={
        "index": st.integers(0, 2) | json_values,
        "message": json_values
        | st.fixed_dictionaries({"content": st.lists(hostile(KINDS, "text")), "id": json_values}),
        "content_block": json_values
        | hostile(KINDS, "text", "id", "name", "input", "citations", "thinking", "to"),
        "delta": json_values
        | hostile(
            DELTAS, "text", "partial_json", "thinking", "citation", "stop_reason", "stop_details"
        ),
        "usage": json_values,
        "error": json_values,
    },
)


@given(st.lists(json_values | hostile_events, max_size=12))
def test_no_event_raises_but_errors_do(events: list[Any]) -> None:
    decoder = MessagesStreamDecoder()
    deltas: list[Delta] = []
    for event in events:
        try:
            deltas += decoder.feed(event)
        except AdapterError:
            assert event["type"] == "error"
        else:
            assert not isinstance(event, dict) or event.get("type") != "error"
    partial = decoder.partial()
    assert partial is None or partial.cut
    if partial is None or not any(
        isinstance(e, dict) and e.get("type") in ("message_stop", "message_delta") for e in events
    ):
        with pytest.raises(AdapterError) as caught:
            decoder.finish()
        assert caught.value.partial == partial
        return
    try:
        turn = decoder.finish()
    except AdapterError:
        return
    assert decoder.finish() is turn
    done = [d.call for d in deltas if isinstance(d, CallDone)]
    assert done == list(turn.calls[: len(done)])


# --- cost -----------------------------------------------------------------------------------------


def calls_to_read(count: int) -> int:
    pieces = [piece(1, '"xxxxxxxx"' if n == 0 else "        ") for n in range(count)]
    opening = [started(), block_start(0, type="text", text="")]
    events = [
        *opening,
        *[delta(0, "text_delta", text="abcd")] * count,
        block_stop(0),
        call_start(1, "a"),
        *pieces,
    ]
    return calls_made(lambda: run([*events, block_stop(1), stopped(), END]))


def test_the_work_is_linear_in_what_arrives() -> None:
    few, many = calls_to_read(200), calls_to_read(2000)
    assert many < 11 * few


# --- through the SDK ------------------------------------------------------------------------------


def test_streamed_requests_against_the_test_server() -> None:
    from anthropic import AsyncAnthropic

    from lutumpy.testing import Call, Reply, wire

    script = [Reply(text="Let me see.", calls=(Call("search", {"q": "x"}), Call("search", {})))] * 2
    transcript = Transcript()
    transcript.push_user("hi")

    async def streamed(url: str) -> tuple[AssistantTurn, list[Delta]]:
        async with AsyncAnthropic(base_url=url, api_key="test") as client:
            stream = AnthropicMessages("claude-opus-4-8", client).open_stream(
                transcript, None, TurnOptions()
            )
            deltas: list[Delta] = []
            async with stream as chunks:
                async for chunk in chunks:
                    deltas += stream.decoder.feed(chunk)
            return stream.decoder.finish(stream.request_id), deltas

    def streamed_sync(url: str) -> tuple[AssistantTurn, list[Delta]]:
        llm = AnthropicMessages("claude-opus-4-8", base_url=url, api_key="test")
        stream = llm.open_stream_sync(transcript, None, TurnOptions())
        with stream as chunks:
            deltas = feed(stream.decoder, chunks)
        return stream.decoder.finish(stream.request_id), deltas

    with wire.serve(script) as server:
        for turn, deltas in (
            asyncio.run(streamed(server.anthropic_base_url)),
            streamed_sync(server.anthropic_base_url),
        ):
            assert [(c.name, c.arguments) for c in turn.calls] == [
                ("search", '{"q":"x"}'),
                ("search", "{}"),
            ]
            assert turn.text == "Let me see."
            assert turn.request_id
            check_deltas(turn, deltas)
        assert [(request.status, request.body["stream"]) for request in server.requests] == [
            (200, True)
        ] * 2
