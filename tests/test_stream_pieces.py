"""The short ways of reading a stream, whatever arrives (rules S1, S3).

They give the same turn, events and memory of a call as the long one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import anthropic._models
import openai._models
import pytest
from anthropic.types import RawMessageStreamEvent
from every_api import ADAPTERS
from google.genai.types import GenerateContentResponse
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from profiles import examples
from pydantic import field_validator
from toolkit import Files, Write

from lutumpy import (
    AdapterError,
    AssistantTurn,
    NeedsTools,
    RoundClosedError,
    Session,
    Started,
    StreamDecoder,
    ToolCallDelta,
    ToolCallReady,
    ToolInput,
    Toolset,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.short_way import ShortWayDecoder
from lutumpy.models import Api
from lutumpy.streaming import Reader
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render_stream


def chunk_of_gemini(type_: Any, value: Any) -> Any:
    """A chunk as google-genai makes it."""
    return type_._from_response(response=copy.deepcopy(value), kwargs={})


def plain_event(type_: Any, value: Any) -> Any:
    """boto3 and this library's own transport give events as dicts."""
    return type_(value)


SDK: dict[Api, tuple[Any, Any]] = {
    "openai_chat": (openai._models.construct_type, ChatCompletionChunk),
    "openai_responses": (openai._models.construct_type, ResponseStreamEvent),
    "anthropic_messages": (anthropic._models.construct_type, RawMessageStreamEvent),
    "gemini_generate_content": (chunk_of_gemini, GenerateContentResponse),
    "bedrock_converse": (plain_event, dict),
    "ollama_chat": (plain_event, dict),
}
WHOLE_CALLS = ("gemini_generate_content", "ollama_chat")
PIECEWISE = [api for api in ADAPTERS if api not in WHOLE_CALLS]
"""The APIs whose calls arrive in pieces; elsewhere they come whole, and there is no shorter way."""
every_api = pytest.mark.parametrize("api", ADAPTERS)
as_objects = pytest.mark.parametrize("objects", [False, True], ids=["dicts", "objects"])


class LongWay:
    """A decoder of which only the long way is to be seen."""

    def __init__(self, decoder: StreamDecoder) -> None:
        self._decoder = decoder

    def feed(self, chunk: Any) -> Sequence[Any]:
        return self._decoder.feed(chunk)

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        return self._decoder.finish(request_id)

    def partial(self) -> AssistantTurn | None:
        return self._decoder.partial()


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


def reader_of(decoder: StreamDecoder) -> Reader[Any, Any]:
    return Files.offer().reader(decoder, asked())


def stream(api: Api, reply: Reply, *, objects: bool = False) -> list[Any]:
    events: list[Any] = render_stream(reply, api, number=1, model="m")
    construct, kind = SDK[api]
    return [construct(type_=kind, value=event) for event in events] if objects else events


def turn_and_events(reader: Reader[Any, Any], events: Sequence[Any]) -> tuple[Any, Any, Any]:
    told = [one for event in events for one in reader.feed(event)]
    turn, outcome = reader.finish_with_outcome()
    calls = outcome.round.calls if isinstance(outcome, NeedsTools) else ()
    known = {call.metadata.id: reader.partial_input(call.metadata.id) for call in calls}
    drop(outcome)
    return turn, [repr(one) for one in told], known


def drop(outcome: Any) -> None:
    if isinstance(outcome, NeedsTools):
        outcome.round.discard()


def end_of(reader: Reader[Any, Any]) -> AssistantTurn:
    turn, outcome = reader.finish_with_outcome()
    drop(outcome)
    return turn


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    calls=st.lists(
        st.builds(
            Call,
            st.sampled_from(["write", "writ"]),
            st.dictionaries(st.sampled_from(["text", "x"]), TEXTS),
        ),
        max_size=3,
    ),
)


@every_api
@as_objects
@settings(max_examples=examples(25), deadline=None)
@given(reply=REPLIES)
def test_the_short_way_tells_what_the_long_one_tells_S1(
    api: Api, objects: bool, reply: Reply
) -> None:
    events = stream(api, reply, objects=objects)
    short = turn_and_events(reader_of(ADAPTERS[api].stream_decoder()), events)
    assert short == turn_and_events(reader_of(LongWay(ADAPTERS[api].stream_decoder())), events)


@every_api
@as_objects
@settings(max_examples=examples(25), deadline=None)
@given(reply=REPLIES, fed=st.integers(0, 12))
def test_collecting_ends_in_the_same_turn_S1(
    api: Api, objects: bool, reply: Reply, fed: int
) -> None:
    events = stream(api, reply, objects=objects)
    whole, _, _ = turn_and_events(reader_of(LongWay(ADAPTERS[api].stream_decoder())), events)
    for decoder in (ADAPTERS[api].stream_decoder(), LongWay(ADAPTERS[api].stream_decoder())):
        reader = reader_of(decoder)
        for event in events[:fed]:
            reader.feed(event)
        reader.gather(iter(events[fed:]))
        assert end_of(reader) == whole


# Events that may hold more than a piece, or none: each has to be read as the long way reads it.
ODD_VALUES: list[Any] = [
    None,
    "",
    0,
    1,
    True,
    0.0,
    [],
    {},
    ["x"],
    {"arguments": 1},
    "\ud83d",
    "\ude00",
    "é",
    "tool_calls",
]
ODD_FIELDS = (
    "usage",
    "error",
    "id",
    "content",
    "name",
    "type",
    "object",
    "message",
    "finish_reason",
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(inner, (*path, key))


def objects_in(event: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for path in places(event):
        value: Any = event
        for key in path:
            value = value[key]
        if isinstance(value, dict):
            yield path


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied: Any = value.copy()
    copied[path[0]] = changed(value[path[0]], path[1:], new) if len(path) > 1 else new
    return copied


def result(decoder: Any, events: Sequence[Any], *, collect: bool) -> Any:
    reader = reader_of(decoder)
    told: list[str] = []
    try:
        if collect:
            reader.gather(events)
        else:
            told = [repr(one) for event in events for one in reader.feed(event)]
        return end_of(reader), told
    except AdapterError as error:
        return str(error), error.partial, told


@pytest.mark.pure
@pytest.mark.slow
@every_api
def test_odd_pieces_are_taken_as_the_long_way_takes_them_C8(api: Api) -> None:
    events = stream(
        api, Reply(calls=[Call("write", {"text": "x" * 40}), Call("write", {"text": "y" * 20})])
    )
    middle = next(k for k, event in enumerate(events) if "xxxxxxxx" in str(event))
    found = [(path, odd) for path in places(events[middle]) for odd in ODD_VALUES]
    found += [
        ((*path, name), odd)
        for path in objects_in(events[middle])
        for name in ODD_FIELDS
        for odd in (None, "x", {"code": 1})
    ]
    for path, odd in found:
        odd_events = [*events[:middle], changed(events[middle], path, odd), *events[middle + 1 :]]
        long = result(LongWay(ADAPTERS[api].stream_decoder()), odd_events, collect=False)
        assert result(ADAPTERS[api].stream_decoder(), odd_events, collect=False) == long, (
            path,
            odd,
        )
        collected = result(ADAPTERS[api].stream_decoder(), odd_events, collect=True)
        assert collected[:-1] == long[:-1], (path, odd)


@pytest.mark.parametrize("api", PIECEWISE)
@as_objects
def test_plain_pieces_do_go_the_short_way_S3(api: Api, objects: bool) -> None:
    events = stream(api, Reply(calls=[Call("write", {"text": "x" * 800})]), objects=objects)
    decoder = ADAPTERS[api].stream_decoder()
    long = 0
    for event in events:
        if decoder.feed_arguments(event) is None:
            decoder.feed(event)
            long += 1
    assert len(events) > 100
    assert long < 12


@every_api
async def test_a_stream_is_collected_without_its_events_S1(api: Api) -> None:
    reply = Reply(text="So.", calls=[Call("write", {"text": "x" * 50})])
    llm = ScriptedModel([reply, reply], api=api)
    session = asked()
    async with session.text_turn(llm, tools=Files).stream() as events:
        async for _ in events:
            break
        outcome = await events.collect()
        assert await events.collect() is outcome
        with pytest.raises(StopAsyncIteration):
            await anext(events)
    assert events.outcome is outcome
    assert isinstance(outcome, NeedsTools)
    assert [call.input for call in outcome.round.calls] == [Write(text="x" * 50)]
    outcome.round.discard()

    with session.text_turn(llm, tools=Files).stream_sync() as same:
        outcome = same.collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()


async def test_collecting_raises_what_reading_raises_S3() -> None:
    events = stream("openai_chat", Reply(text="Here you are."))
    llm = ScriptedModel([[*events[:2], Failure(503, "Overloaded.")]])
    session = asked()
    opened = session.text_turn(llm, tools=Files).stream()
    with pytest.raises(RoundClosedError):
        await opened.collect()
    with pytest.raises(AdapterError) as failed:
        async with opened:
            await opened.collect()
    assert failed.value.partial is not None
    assert failed.value.partial.text == "Here you"
    assert len(session.transcript) == 1


def test_a_finished_reader_takes_nothing() -> None:
    events = stream("openai_chat", Reply(text="Done."))
    reader = reader_of(OpenAIChat.stream_decoder())
    reader.collect(events)
    for again in (
        lambda: reader.feed(events[0]),
        lambda: reader.gather(events),
        lambda: reader.collect(events),
    ):
        with pytest.raises(RoundClosedError):
            again()


@every_api
def test_the_arguments_so_far_are_known_of_what_was_only_gathered(api: Api) -> None:
    events = stream(api, Reply(calls=[Call("write", {"text": "x" * 40}, id="call_a")]))
    middle = next(k for k, event in enumerate(events) if "xxxxxxxx" in str(event))
    reader = reader_of(ADAPTERS[api].stream_decoder())
    reader.gather(events[: middle + 1])
    assert set(reader.partial_input("call_a")["text"]) == {"x"}
    with pytest.raises(KeyError):
        reader.partial_input("call_b")


@every_api
def test_what_is_told_after_gathering_has_its_call(api: Api) -> None:
    events = stream(api, Reply(calls=[Call("write", {"text": "x" * 40}, id="call_a")]))
    middle = next(k for k, event in enumerate(events) if "xxxxxxxx" in str(event))
    reader = reader_of(ADAPTERS[api].stream_decoder())
    reader.gather(events[:middle])
    told = next(t for t in reader.feed(events[middle]) if not isinstance(t, Started))
    assert isinstance(told, ToolCallDelta)
    assert (told.id, told.name) == ("call_a", "write")


VALIDATED: list[str] = []


@tool_input(name="note")
class Note(ToolInput[None]):
    """Take a note."""

    text: str

    @field_validator("text")
    @classmethod
    def seen(cls, text: str) -> str:
        VALIDATED.append(text)
        return text


class Notes(Toolset):
    note = tool(Note)


@every_api
@pytest.mark.parametrize("way", ["feed", "collect"])
def test_a_ready_call_is_validated_once_and_is_the_one_of_the_round(api: Api, way: str) -> None:
    VALIDATED.clear()
    events = stream(api, Reply(calls=[Call("note", {"text": "a"}), Call("note", {"text": "b"})]))
    reader = Notes.offer().reader(ADAPTERS[api].stream_decoder(), asked())
    if way == "collect":
        outcome = reader.collect(events)
    else:
        ready = [
            one.call
            for event in events
            for one in reader.feed(event)
            if isinstance(one, ToolCallReady)
        ]
        assert VALIDATED == ["a", "b"]
        outcome = reader.finish()
        assert isinstance(outcome, NeedsTools)
        assert [a is b for a, b in zip(ready, outcome.round.calls, strict=True)] == [True, True]
    drop(outcome)
    assert VALIDATED == ["a", "b"]


@pytest.mark.parametrize("api", ["openai_responses", "ollama_chat"])
def test_nothing_is_taken_behind_the_event_that_ends_an_answer(api: Api) -> None:
    """A call that was ready would be ready, and run, a second time."""
    calls = [Call("write", {"path": "a", "text": "b"}, id="call_1")]
    events = [*render_stream(Reply("I write.", calls=calls), api, number=1, model="m")]
    decoder = ADAPTERS[api].stream_decoder()
    for event in events:
        decoder.feed(event)
    turn = decoder.finish()
    again = copy.deepcopy(events)
    assert [delta for event in again for delta in decoder.feed(event)] == []
    if isinstance(decoder, ShortWayDecoder):
        assert [decoder.feed_arguments(event) for event in again] == [None] * len(again)
    assert decoder.finish() == turn
