"""Streams of a text model end in what `collect()` gives, with no event too early (S1, T4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples
from text_toolkit import Tools, answers, asked, call, every_api

from lutumpy import (
    AdapterError,
    Completed,
    Finished,
    NeedsTools,
    ReasoningDelta,
    RefusalDelta,
    Session,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
)
from lutumpy.models import Api
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render_stream
from lutumpy.text_tools import TagToolParser, TextTools

OSLO = call("weather", {"city": "Oslo"})
FRAGMENTS = [
    OSLO,
    call("weather", '{"city": "a\nb"}'),
    call("write", {"text": "[/TOOL_CALL]"}),
    call("nope"),
    call("weather", "oops"),
    "[TOOL_CALL]",
    "[/TOOL_CALL]",
    '[TOOL_CALL]{"name": "weather", "args": {"ci',
    "text ",
    "```\n",
    "\n",
    "<think>",
    "</think>",
    "[TOOL_",
    "é😀",
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join)
GUIDED = ["<think>", "</think>", "hm ", '{"answer": ', '"hi \\u00e9"', "[", ",", "]", "}", "{", "x"]
guided_texts = st.lists(
    st.sampled_from([*GUIDED, '{"name": "weather", "args": {"city": "Oslo"}}']),
    max_size=8,
).map("".join)


def chunks(text: str, sizes: Sequence[int], finish: str | None) -> list[Any]:
    """The text as a stream of Chat Completions."""
    pieces: list[str] = []
    pos = 0
    for size in sizes:
        pieces.append(text[pos : pos + size])
        pos += size
    pieces.append(text[pos:])
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [
        {
            **head,
            "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            ],
        }
    ]
    events += [
        {**head, "choices": [{"index": 0, "delta": {"content": p}, "finish_reason": None}]}
        for p in pieces
    ]
    if finish is not None:
        events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return events


def shape(session: Session, outcome: Any) -> Any:
    """What an outcome says, for comparing."""
    if isinstance(outcome, Finished):
        turn = outcome.result.turn
        return "finished", turn.text, turn.finish_reason, turn.cut, turn.blocks, turn.native
    round = outcome.round
    found = (
        [(c.metadata, c.input) for c in round.calls],
        [(i.metadata, i.reason, i.detail) for i in round.issues],
    )
    round.commit(session, answers(round))
    turn = session.turns()[-1]
    return found, turn.text, turn.finish_reason, turn.cut, turn.blocks


def streamed(llm: TextTools) -> tuple[Session, list[Any], Any]:
    session = asked()
    with session.text_turn(llm, tools=Tools).stream_sync() as stream:
        events = list(stream)
    return session, events, stream.outcome


def check(text: str, sizes: Sequence[int], finish: str, *, guided: bool) -> None:
    """Rule S1: however the text is cut, the outcome is that of the whole answer; events fit it."""
    inner = ScriptedModel([Reply(text=text, finish=finish), chunks(text, sizes, finish)])
    llm = TextTools(inner, guided=guided)
    session = asked()
    whole = shape(session, session.text_turn(llm, tools=Tools).collect_sync())
    twin, events, outcome = streamed(llm)
    ready = [event.call for event in events if isinstance(event, ToolCallReady)]
    found = [event.issue for event in events if isinstance(event, ToolCallIssueFound)]
    deltas = [event for event in events if not isinstance(event, (Started, Completed))]
    if isinstance(outcome, NeedsTools):
        assert [
            one for one in outcome.round.calls if not any(one is other for other in ready)
        ] == []
        assert [one for one in found if one not in outcome.round.issues] == []
        ids = [c.metadata.id for c in (*outcome.round.calls, *outcome.round.issues)]
        assert {e.id for e in deltas if isinstance(e, ToolCallDelta)} <= set(ids)
    result = shape(twin, outcome)
    assert result == whole
    assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == whole[1]
    thought = "".join([event.text for event in events if isinstance(event, ReasoningDelta)])
    assert (thought or None) == (
        twin.turns()[-1] if isinstance(outcome, NeedsTools) else outcome.result.turn
    ).reasoning


@given(
    text=texts,
    sizes=st.lists(st.integers(0, 9), max_size=40),
    finish=st.sampled_from(["stop", "length"]),
)
@settings(max_examples=examples(120))
@example(text="[TOOL_CALL]", sizes=[], finish="stop")
@example(text=call("weather", '"x"'), sizes=[], finish="length")
def test_s1_a_stream_ends_in_what_collect_gives(text: str, sizes: list[int], finish: str) -> None:
    check(text, sizes, finish, guided=False)


@given(
    text=guided_texts,
    sizes=st.lists(st.integers(0, 9), max_size=40),
    finish=st.sampled_from(["stop", "length"]),
)
@settings(max_examples=examples(80))
def test_s1_a_guided_stream_ends_in_what_collect_gives(
    text: str, sizes: list[int], finish: str
) -> None:
    check(text, sizes, finish, guided=True)


@every_api
@pytest.mark.parametrize(
    "reply",
    [
        Reply(text=f"Let me see. {OSLO} Done.", reasoning="Hm."),
        Reply(text=OSLO + call("weather", "oops") + OSLO),
        Reply(text="Only text, with a [TOOL_CA", finish="length"),
        Reply(refusal="I can't."),
        Reply(text=OSLO, calls=[Call("weather", {"city": "Rome"})]),
        Reply(),
    ],
    ids=["call", "calls", "cut", "refusal", "native", "empty"],
)
async def test_s1_on_every_api_in_both_ways(api: Api, reply: Reply) -> None:
    llm = TextTools(ScriptedModel([reply, reply, reply], api=api))
    session = asked()
    whole = shape(session, await session.text_turn(llm, tools=Tools).collect())
    twin = asked()
    async with twin.text_turn(llm, tools=Tools).stream() as stream:
        events = [event async for event in stream]
    assert shape(twin, stream.outcome)[:-1] == whole[:-1]
    assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == whole[1]
    if reply.reasoning and api != "openai_chat":
        assert any(isinstance(event, ReasoningDelta) for event in events)
    if reply.refusal and api in ("openai_chat", "openai_responses"):  # the others have a text
        assert any(isinstance(event, RefusalDelta) for event in events)
    third, _, outcome = streamed(llm)
    assert shape(third, outcome)[:-1] == whole[:-1]


def test_t4_a_call_is_told_when_its_block_is_complete_and_not_before() -> None:
    text = f"See.{OSLO} and {OSLO}"
    llm = TextTools(ScriptedModel([chunks(text, [1] * len(text), "stop")]))
    session = asked()
    shown = ""
    at: list[int] = []
    with session.text_turn(llm, tools=Tools).stream_sync() as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                shown += event.text
            elif isinstance(event, ToolCallReady):
                at.append(len(shown))
                assert stream.partial_input(event.call.metadata.id) == {"city": "Oslo"}
    assert shown == "See. and "
    assert at == [4, 9]
    assert isinstance(stream.outcome, NeedsTools)
    stream.outcome.round.discard()


def test_t4_what_was_held_back_is_told_at_the_end() -> None:
    _, events, _ = streamed(TextTools(ScriptedModel([chunks("I mean [TOOL_CALL", [9], "stop")])))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "I mean ",
        "[TOOL_CALL",
    ]
    assert isinstance(events[-1], Completed)


def test_mistrals_calls_end_with_the_stream() -> None:
    text = '[TOOL_CALLS]weather[ARGS]{"city": "Oslo"}'
    llm = TextTools(ScriptedModel([chunks(text, [3] * 20, "stop")]), parser=TagToolParser.mistral())
    _, events, outcome = streamed(llm)
    assert sum([isinstance(event, ToolCallReady) for event in events]) == 1
    outcome.round.discard()


def test_a_character_cut_in_two_is_one_in_a_call() -> None:
    text = call("weather", '{"city": "😀"}')
    whole = chunks(text, [], "stop")
    half = text.index("😀")
    whole[1:2] = [
        {**whole[1], "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in (text[:half] + "\ud83d", "\ude00" + text[half + 1 :])
    ]
    _, events, outcome = streamed(TextTools(ScriptedModel([whole])))
    (ready,) = [event.call for event in events if isinstance(event, ToolCallReady)]
    assert ready.input.city == "😀"
    assert outcome.round.calls[0] is ready
    outcome.round.discard()


def test_half_a_character_at_the_end_is_shown() -> None:
    for tools in (True, False):
        llm = TextTools(ScriptedModel([chunks("so \ud83d", [], "stop")]))
        session = asked()
        turn: Any = session.text_turn(llm, tools=Tools) if tools else session.text_turn(llm)
        with turn.stream_sync() as stream:
            shown = [event.text for event in stream if isinstance(event, TextDelta)]
        assert shown == ["so ", "\ud83d"]


@pytest.mark.parametrize("breaks", ["early", "failure", "error"])
@pytest.mark.parametrize("way", ["async", "sync"])
async def test_s3_a_stream_that_breaks_off_commits_nothing_and_gives_what_had_arrived(
    breaks: str, way: str
) -> None:
    events = chunks(f"See.{OSLO}[TOOL_CALL]" + '{"name": "wea', [7] * 30, None)
    if breaks == "failure":
        events.append(Failure(500, "gone"))
    elif breaks == "error":
        events.append({"error": {"message": "gone", "type": "server_error"}})
    session = asked()
    before = session.dump()
    turn = session.text_turn(TextTools(ScriptedModel([events])), tools=Tools)
    partials: list[Any] = []

    async def read() -> None:
        if way == "sync":
            with turn.stream_sync() as stream:
                for _ in stream:
                    partials[:] = [stream.partial]
        else:
            async with turn.stream() as stream:
                async for _ in stream:
                    partials[:] = [stream.partial]

    with pytest.raises(AdapterError) as raised:
        await read()
    assert {**session.dump(), "unsettled": []} == before
    assert [(request.api, request.response_id) for request in session.unsettled] == [
        ("openai_chat", "c1")
    ]
    assert [partial.cut for partial in partials] == [True]
    arrived = raised.value.partial
    assert arrived is not None
    assert arrived.cut
    assert arrived.text == "See."
    assert [c.name for c in arrived.calls] == ["weather", ""]


async def test_leaving_early_closes_the_inner_stream() -> None:
    closed: list[bool] = []

    class Noting(ScriptedModel):
        def open_stream(self, *args: Any) -> Any:
            stream = super().open_stream(*args)
            streams.append(stream)
            return stream

    streams: list[Any] = []
    llm = TextTools(Noting([Reply(text="a long answer " * 20)]))
    session = asked()
    async with session.text_turn(llm, tools=Tools).stream() as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    closed.append(streams[0].closed)
    assert closed == [True]
    assert session.turns() == []


def test_a_turn_without_tools_streams_too() -> None:
    llm = TextTools(ScriptedModel([Reply(text=f"Sunny.{OSLO}")]))
    session = asked()
    with session.text_turn(llm).stream_sync() as stream:
        shown = "".join([event.text for event in stream if isinstance(event, TextDelta)])
    assert shown == stream.outcome.text == "Sunny."


def test_the_readers_own_decoder_needs_no_event_behind_the_last() -> None:
    """A decoder that is fed by hand, without the stream around it, gives the same turn."""
    from lutumpy.models import TurnOptions

    llm = TextTools(ScriptedModel([Reply(text=OSLO)]))
    source = llm.open_stream_sync(asked().transcript, Tools.offer(), TurnOptions())
    assert source.decoder.partial() is None
    for event in render_stream(Reply(text=OSLO), "openai_chat", number=1, model="m"):
        source.decoder.feed(event)
    turn = source.decoder.finish("req_1")
    assert turn.request_id == "req_1"
    assert [c.name for c in turn.calls] == ["weather"]
    assert source.request_id is None
