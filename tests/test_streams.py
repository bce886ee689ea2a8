"""Streamed turns (rules S1 to S4): events, outcomes, errors in the middle.

For every API, through the scripted model.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from every_api import ADAPTERS
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from toolkit import Weather
from toolkit import WeatherTools as Tools

from lutumpy import (
    AdapterError,
    Completed,
    Finished,
    InvalidToolCallDelta,
    NeedsTools,
    RoundClosedError,
    Session,
    StaleRoundError,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
)
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render, render_stream

every_api = pytest.mark.parametrize("api", ADAPTERS)
OBJECTS = ("anthropic_messages", "bedrock_converse")
"""The APIs that stream arguments as text and answer with an object."""


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


CALLS = Reply(
    text="Let me look.",
    calls=[
        Call("weather", {"city": "Oslo", "days": 2}),
        Call("wether", {"a": 1}),
        Call("weather", {"town": "x"}),
        Call("weather", {"city": "Rome"}),
    ],
)


@every_api
async def test_events_and_outcome_of_a_stream_S1(api: str) -> None:
    session = asked()
    llm = ScriptedModel([CALLS, Reply(text="Sunny.")], api=api)  # type: ignore[arg-type]
    async with session.text_turn(llm, tools=Tools).stream() as stream:
        events = [event async for event in stream]
    outcome = stream.outcome
    assert isinstance(outcome, NeedsTools)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Completed)
    assert "".join([e.text for e in events if isinstance(e, TextDelta)]) == "Let me look."
    ready = [e.call for e in events if isinstance(e, ToolCallReady)]
    found = [e.issue for e in events if isinstance(e, ToolCallIssueFound)]
    # The very objects: nothing is decoded twice.
    assert [id(call) for call in ready] == [id(call) for call in outcome.round.calls]
    assert [id(issue) for issue in found] == [id(issue) for issue in outcome.round.issues]
    assert [i.reason for i in found] == ["unknown_tool", "invalid_arguments"]
    assert {e.name for e in events if isinstance(e, InvalidToolCallDelta)} == {"wether"}
    for call in outcome.round.calls:
        pieces = [
            e.arguments for e in events if isinstance(e, ToolCallDelta) and e.id == call.metadata.id
        ]
        assert Weather.model_validate_json("".join(pieces)) == call.input
    assert events.index(next(e for e in events if isinstance(e, ToolCallReady))) < len(events) - 3
    assert len(session.turns()) == 0
    outcome.round.commit(session, [c.complete("x") for c in outcome.round.calls])
    with session.text_turn(llm).stream_sync() as plain:
        assert "".join([e.text for e in plain if isinstance(e, TextDelta)]) == "Sunny."
    assert plain.outcome.text == "Sunny."
    assert session.turns()[-1].text == "Sunny."


@every_api
def test_a_stream_ends_in_what_collect_gives_S1(api: str) -> None:
    for reply in (
        CALLS,
        Reply(text="x"),
        Reply(text="cut", finish="length"),
        Reply(refusal="no"),
        Reply(calls=[Call("weather", '{"city": "Os')], finish="length"),
        Reply(
            reasoning="hm",
            calls=[
                Call("weather", {"city": "x"}, id="same"),
                Call("weather", {"city": "y"}, id="same"),
            ],
        ),
    ):
        streamed, whole = asked(), asked()
        with streamed.text_turn(
            ScriptedModel([reply], api=api), tools=Tools
        ).stream_sync() as stream:  # type: ignore[arg-type]
            for _ in stream:
                pass
        collected = whole.text_turn(ScriptedModel([reply], api=api), tools=Tools).collect_sync()  # type: ignore[arg-type]
        for outcome, session in ((stream.outcome, streamed), (collected, whole)):
            if isinstance(outcome, NeedsTools):
                outcome.round.commit(session, [c.complete("x") for c in outcome.round.calls])
        assert type(stream.outcome) is type(collected)
        # Where arguments are an object, the script writes broken ones differently.
        if api not in OBJECTS or reply.finish != "length":
            assert streamed.dump() == whole.dump()


@every_api
async def test_leaving_early_commits_nothing_S3(api: str) -> None:
    session = asked()
    session.push_ephemeral_user("hint")
    before = list(session.transcript)
    async with session.text_turn(ScriptedModel([CALLS], api=api), tools=Tools).stream() as stream:  # type: ignore[arg-type]
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    with pytest.raises(RoundClosedError, match="not read to its end"):
        _ = stream.outcome
    assert list(session.transcript) == before


async def test_a_stream_that_is_read_outside_of_its_block_says_so_S1() -> None:
    session = asked()
    llm = ScriptedModel([Reply("Hello"), Reply("Hello")])
    waiting, plain = session.text_turn(llm).stream(), session.text_turn(llm).stream_sync()
    with pytest.raises(RoundClosedError, match="inside its `with` block"):
        _ = [event async for event in waiting]
    with pytest.raises(RoundClosedError, match="inside its `with` block"):
        _ = list(plain)
    assert llm.requests == []
    async with session.text_turn(llm).stream() as left:
        await left.__anext__()
    with plain:
        next(plain)
    # What had been read before may be taken still.
    with pytest.raises(RoundClosedError, match="inside its `with` block"):
        _ = [event async for event in left]
    with pytest.raises(RoundClosedError, match="inside its `with` block"):
        _ = list(plain)
    assert list(session.transcript) == list(asked().transcript)


@pytest.mark.parametrize("tools", [None, Tools])
async def test_a_stream_is_one_request_and_entered_once_U1(tools: Any) -> None:
    """A second request was counted by nobody, and read into what the first one had given."""
    session = asked()
    llm = ScriptedModel([Reply("Hello"), Reply("Hello"), Failure(500, "no"), Reply("Hi")])
    turn = session.text_turn(llm, tools=tools)
    waiting, plain, failed = turn.stream(), turn.stream_sync(), turn.stream_sync()
    async with waiting:
        await waiting.__anext__()
        with pytest.raises(RoundClosedError, match="entered before"):
            await waiting.__aenter__()
    with plain:
        next(plain)
    with pytest.raises(AdapterError):
        failed.__enter__()
    for again in (plain, failed):
        with pytest.raises(RoundClosedError, match="entered before"):
            again.__enter__()
    assert len(llm.requests) == 3
    assert turn.collect_sync() is not None


@every_api
@pytest.mark.parametrize("kind", ["failure", "end"])
async def test_an_error_in_the_middle_has_what_arrived_and_changes_nothing_S3(
    api: str, kind: str
) -> None:
    session = asked()
    session.push_ephemeral_user("hint")
    before = list(session.transcript)
    events = render_stream(CALLS, api, number=1, model="m")  # type: ignore[arg-type]
    cut: list[Any] = events[: len(events) // 2]
    if kind == "failure":
        cut.append(Failure(529, "overloaded"))

    async def read() -> None:
        async with session.text_turn(ScriptedModel([cut], api=api), tools=Tools).stream() as stream:  # type: ignore[arg-type]
            async for _ in stream:
                pass

    with pytest.raises(AdapterError) as caught:
        await read()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Let me look."
    assert caught.value.partial.cut
    assert list(session.transcript) == before
    assert session.usage == caught.value.partial.usage
    assert len(session.unsettled) == 1


@every_api
async def test_a_session_that_moved_on_during_a_stream_K4(api: str) -> None:
    session = asked()

    async def read() -> None:
        llm = ScriptedModel([Reply(text="late")], api=api)  # type: ignore[arg-type]
        async with session.text_turn(llm, tools=Tools).stream() as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    session.push_user("meanwhile")

    with pytest.raises(StaleRoundError) as caught:
        await read()
    assert caught.value.result.text == "late"


@every_api
async def test_arguments_so_far(api: str) -> None:
    session = asked()
    reply = Reply(calls=[Call("weather", {"city": "Oslo is a long name", "days": 2})])
    seen: list[Any] = []
    async with session.text_turn(ScriptedModel([reply], api=api), tools=Tools).stream() as stream:  # type: ignore[arg-type]
        seen += [
            copy.deepcopy(stream.partial_input(e.id))
            async for e in stream
            if isinstance(e, ToolCallDelta)
        ]
        with pytest.raises(KeyError):
            stream.partial_input("nope")
    assert seen[-1] == {"city": "Oslo is a long name", "days": 2}
    assert all(isinstance(value, dict) for value in seen)
    assert isinstance(stream.outcome, NeedsTools)
    stream.outcome.round.discard()


ids = st.sampled_from(["", "a", "b", "call00001", "call00002"])


@given(
    first=st.lists(ids, min_size=1, max_size=4),
    second=st.lists(ids, min_size=1, max_size=4),
    api=st.sampled_from(list(ADAPTERS)),
)
def test_a_reader_gives_the_ids_that_read_gives_C6(
    first: list[str], second: list[str], api: Any
) -> None:
    read, fed = asked(), asked()
    for number, made in enumerate((first, second), 1):
        whole = render(
            Reply(calls=[Call("weather", {"city": "x"}, id=i or None) for i in made]),
            api,
            number=number,
            model="m",
        )
        events = render_stream(
            Reply(calls=[Call("weather", {"city": "x"}, id=i or None) for i in made]),
            api,
            number=number,
            model="m",
        )
        one = Tools.offer().read(ADAPTERS[api].response(whole), read)
        reader = Tools.offer().reader(ADAPTERS[api].stream_decoder(), fed)
        seen = [e for chunk in events for e in reader.feed(chunk)]
        two = reader.finish()
        with pytest.raises(RoundClosedError):
            reader.finish()
        assert isinstance(one, NeedsTools)
        assert isinstance(two, NeedsTools)
        assert [c.metadata for c in one.round.calls] == [c.metadata for c in two.round.calls]
        assert [e.call.metadata for e in seen if isinstance(e, ToolCallReady)] == [
            c.metadata for c in two.round.calls
        ]
        one.round.commit(read, [c.complete("x") for c in one.round.calls])
        two.round.commit(fed, [c.complete("x") for c in two.round.calls])


@every_api
def test_a_reader_of_a_stream_of_ones_own_gives_a_finished_answer_with_its_text_S1(
    api: Any,
) -> None:
    session = asked()
    reader = Tools.offer().reader(ADAPTERS[api].stream_decoder(), session)
    for event in render_stream(Reply(text="Done."), api, number=1, model="m"):
        list(reader.feed(event))
    outcome = reader.finish()
    assert isinstance(outcome, Finished)
    assert (outcome.result.text, outcome.result.value) == ("Done.", None)
    assert session.turns() == [outcome.result.turn]


class Contact(BaseModel):
    name: str


@every_api
async def test_a_structured_turn_as_a_stream(api: str) -> None:
    session = asked()
    llm = ScriptedModel([Reply(text='{"name": "Ada"}')], api=api)  # type: ignore[arg-type]
    async with session.structured_turn(llm, Contact).stream() as stream:
        async for _ in stream:
            pass
    assert stream.outcome.value == Contact(name="Ada")
    again = session.fork()
    again.push_user("again")
    bob = Reply(text='{"name": "Bob"}')
    if api == "ollama_chat":  # with a format for its answer the model calls no tools
        bob = Reply(calls=[Call("answer", {"name": "Bob"})])
        llm = ScriptedModel([], api=api, structured="tool")
    llm.play(bob)
    with again.structured_turn(llm, Contact, tools=Tools).stream_sync() as typed:
        for _ in typed:
            pass
    assert isinstance(typed.outcome, Finished)
    assert typed.outcome.result.value == Contact(name="Bob")


@every_api
async def test_a_call_in_a_stream_without_tools_is_an_issue_that_is_answered(api: str) -> None:
    session = asked()
    llm = ScriptedModel([Reply(calls=[Call("look_up", {"word": "cat"})])], api=api)  # type: ignore[arg-type]
    async with session.text_turn(llm).stream() as stream:
        found = [event.issue async for event in stream if isinstance(event, ToolCallIssueFound)]
    assert [issue.reason for issue in found] == ["unknown_tool"]
    assert (stream.outcome.finish_reason, stream.outcome.text) == (
        session.turns()[-1].finish_reason,
        "",
    )
    (answered,) = session.transcript[-1].results  # type: ignore[union-attr]
    assert answered.status == "rejected"
    assert "There is no tool named 'look_up'" in answered.text
