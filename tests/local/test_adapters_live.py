"""The three adapters against an independent server: llama.cpp's, with a real model, through the
official SDKs.

They need the `local` extra and the model, and run where LUTUMPY_NEED_LOCAL=1 says that both must be
there.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from lutumpy import (
    AdapterError,
    Completed,
    Finished,
    ImagePart,
    NeedsTools,
    Session,
    Started,
    TextDelta,
    TextPart,
    ToolRequirement,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.local import LocalServer, serve
from lutumpy.streaming import StreamEvent
from lutumpy.testing import Call, Reply, ScriptedModel

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)

WIRES = ("chat", "responses", "messages")
CONTEXT = 1024
Model = OpenAIChat | OpenAIResponses | AnthropicMessages
Ask = Callable[..., Awaitable[tuple[Any, list[StreamEvent]]]]


@tool_fn
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    if city == "Atlantis":
        raise LookupError(city)
    return f"In {city} it is snowing, at -3 degrees."


class Weather(Toolset):
    get_weather = tool(get_weather)


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with serve(context_tokens=CONTEXT) as running:
        yield running


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@asynccontextmanager
async def async_model(server: LocalServer, wire: str) -> AsyncIterator[Model]:
    """An adapter with an async client of the wire's SDK."""
    options: dict[str, Any] = {"temperature": 0, "max_output_tokens": 24}
    if wire == "messages":
        async with anthropic.AsyncAnthropic(
            base_url=server.anthropic_base_url, api_key="any"
        ) as claude:
            yield AnthropicMessages(server.model, claude, **options)
    else:
        kind = OpenAIChat if wire == "chat" else OpenAIResponses
        async with openai.AsyncOpenAI(base_url=server.openai_base_url, api_key="any") as client:
            yield kind(server.model, client, **options)


def sync_model(server: LocalServer, wire: str) -> Model:
    """The server's own convenience, which has sync clients here."""
    model: Model = getattr(server, wire)(temperature=0, max_output_tokens=24)
    return model


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: LocalServer, wire: str) -> Ask:
    """Take a turn, sync or async, whole or streamed: its outcome, and the events of the stream."""

    async def sync_ask(
        session: Session, *, stream: bool = False, **turn: Any
    ) -> tuple[Any, list[StreamEvent]]:
        builder = session.text_turn(sync_model(server, wire), **turn)
        if not stream:
            return builder.collect_sync(), []
        with builder.stream_sync() as running:
            events = list(running)
        return running.outcome, events

    async def async_ask(
        session: Session, *, stream: bool = False, **turn: Any
    ) -> tuple[Any, list[StreamEvent]]:
        async with async_model(server, wire) as model:
            builder = session.text_turn(model, **turn)
            if not stream:
                return await builder.collect(), []
            async with builder.stream() as running:
                events = [event async for event in running]
            return running.outcome, events

    return sync_ask if request.param == "sync" else async_ask


def asking(text: str = "Where is Oslo?") -> Session:
    session = Session()
    session.push_user(text)
    return session


def with_history() -> Session:
    """Two rounds of calls: text before them, a failed and a rejected one, a call that was none."""
    session = Session()
    session.push_system("You are brief.")
    session.push_user("What is the weather in Oslo, Rome and Atlantis?")
    script = ScriptedModel(
        [
            Reply(
                calls=[Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome"})]
            ),
            Reply(
                text="And the last one.",
                calls=[
                    Call("get_weather", {"city": "Atlantis"}),
                    Call("get_weather", "{broken"),
                    Call("no_such_tool"),
                    Call("get_weather", {"city": "Nowhere"}),
                ],
            ),
        ]
    )
    for _ in range(2):
        outcome = session.text_turn(script, tools=Weather).collect_sync()
        assert isinstance(outcome, NeedsTools)
        results = []
        for call in outcome.round.calls:
            city = call.arguments["city"]
            if city == "Nowhere":
                results.append(call.reject("there is no such place"))
            elif city == "Atlantis":
                results.append(call.fail("it is under water"))
            else:
                results.append(call.complete(get_weather(city)))
        outcome.round.commit(session, results)
    return session


def check_usage(result: TurnResult) -> None:
    usage = result.usage
    assert usage.input_tokens + usage.cached_input_tokens > 0
    assert 0 < usage.output_tokens <= 24
    assert usage.total_tokens > usage.output_tokens


@pytest.mark.sweep
async def test_a_plain_answer_comes_with_its_usage(ask: Ask, server: LocalServer) -> None:
    session = asking()
    result, _ = await ask(session)
    assert isinstance(result, TurnResult)
    assert result.text.strip()
    assert result.model == server.model
    check_usage(result)
    assert session.usage == result.usage
    assert [turn.text for turn in session.turns()] == [result.text]
    session.push_user("And Rome?")
    again, _ = await ask(session)
    assert again.usage.cached_input_tokens > 0
    assert session.usage.output_tokens == result.usage.output_tokens + again.usage.output_tokens


@pytest.mark.sweep
async def test_a_streamed_answer_ends_like_a_whole_one(ask: Ask) -> None:
    """Rule S1, against a server that wasn't made for these tests."""
    session = asking()
    result, events = await ask(session, stream=True)
    whole, _ = await ask(asking())
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Completed)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == result.text
    assert len(events) > 5
    assert (result.finish_reason, result.model) == (whole.finish_reason, whole.model)
    check_usage(result)
    assert (
        result.usage.total_tokens - result.usage.output_tokens
        == whole.usage.total_tokens - whole.usage.output_tokens
    )
    assert [turn.text for turn in session.turns()] == [result.text]


async def test_a_stream_that_is_left_early_commits_nothing_and_harms_no_later_request(
    server: LocalServer, wire: str
) -> None:
    session = asking("Tell me a long story.")
    async with async_model(server, wire) as model:
        async with session.text_turn(model, max_output_tokens=500).stream() as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert len(session.transcript) == 1
        result = await session.text_turn(model).collect()
    assert result.text.strip()


@pytest.mark.sweep
async def test_an_answer_that_reached_its_limit_says_so(ask: Ask, wire: str) -> None:
    result, _ = await ask(asking("Tell me a long story."), max_output_tokens=5)
    assert result.usage.output_tokens == 5
    # This server says `completed` on Responses, whatever ended the answer.
    assert result.finish_reason == ("stop" if wire == "responses" else "length")


@pytest.mark.sweep
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"require": ToolRequirement.at_least_one()},
        {"require": ToolRequirement.specific(Weather.get_weather)},
        {"parallel": False},
    ],
    ids=["optional", "at_least_one", "specific", "not parallel"],
)
async def test_tools_may_be_offered_to_a_model_that_cannot_call_them(
    ask: Ask, options: dict[str, Any]
) -> None:
    outcome, _ = await ask(asking("Weather in Oslo?"), tools=Weather, **options)
    assert isinstance(outcome, Finished)
    assert outcome.result.text.strip()


@pytest.mark.sweep
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tools", [None, Weather], ids=["without tools", "with tools"])
async def test_a_history_with_calls_and_results_is_accepted(
    ask: Ask, stream: bool, tools: Any
) -> None:
    session = with_history()
    before = len(session.transcript)
    outcome, _ = await ask(session, stream=stream, **({} if tools is None else {"tools": tools}))
    result = outcome.result if isinstance(outcome, Finished) else outcome
    check_usage(result)
    assert len(session.transcript) > before or not result.text


async def test_a_conversation_goes_on_over_another_wire(server: LocalServer) -> None:
    """Rule R2: what one wire answered is told to the others."""
    session = with_history()
    for wire in (*WIRES, *reversed(WIRES)):
        result = session.text_turn(sync_model(server, wire)).collect_sync()
        assert result.usage.output_tokens > 0
        session.push_user("Go on.")


@pytest.mark.sweep
async def test_every_role_may_speak_at_any_place(ask: Ask) -> None:
    session = Session()
    session.push_system("You are brief.")
    session.push_developer("Answer in English.")
    session.push_user(["Hello,", "you."])
    session.push_user("Are you there?")
    session.push_assistant("Yes.")
    session.push_system("From now on answer in French.")
    session.push_user("What is \U0001f600 called, and \ud800, and \x00?")
    result, _ = await ask(session)
    check_usage(result)


async def test_a_parameter_of_the_wrong_type_is_an_error_of_the_request(ask: Ask) -> None:
    session = asking()
    with pytest.raises(AdapterError, match="temperature") as caught:
        await ask(session, extra={"temperature": "hot"})
    assert (caught.value.status, caught.value.retryable) == (400, False)
    assert len(session.transcript) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_longer_than_the_context_is_an_error_of_the_request(
    ask: Ask, stream: bool
) -> None:
    with pytest.raises(
        AdapterError, match=f"exceeds the available context size .{CONTEXT} tokens"
    ) as caught:
        await ask(asking("word " * (3 * CONTEXT)), stream=stream)
    assert (caught.value.status, caught.value.retryable) == (400, False)


async def test_a_picture_for_a_model_without_eyes_is_an_error(ask: Ask) -> None:
    session = Session()
    session.push_user(
        [TextPart("What is this?"), ImagePart(data=b"\x89PNG", media_type="image/png")]
    )
    with pytest.raises(AdapterError, match="image input is not supported") as caught:
        await ask(session)
    assert caught.value.status is not None


async def test_a_server_that_is_gone_is_an_error_that_may_pass(wire: str) -> None:
    with serve(context_tokens=CONTEXT) as server:
        url = server.anthropic_base_url if wire == "messages" else server.openai_base_url
    if wire == "messages":
        with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as claude:
            model: Model = AnthropicMessages("any", claude)
            with pytest.raises(AdapterError) as caught:
                asking().text_turn(model).collect_sync()
    else:
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            model = OpenAIChat("any", client) if wire == "chat" else OpenAIResponses("any", client)
            with pytest.raises(AdapterError) as caught:
                asking().text_turn(model).collect_sync()
    assert (caught.value.status, caught.value.retryable) == (None, True)


class Place(BaseModel):
    city: str
    country: str


async def test_a_structured_answer_is_what_the_server_makes_of_the_schema(
    server: LocalServer, wire: str
) -> None:
    session = asking("Where is the Eiffel Tower? Answer as JSON with city and country.")
    result = session.structured_turn(
        sync_model(server, wire), Place, max_output_tokens=100
    ).collect_sync()
    if wire == "chat":
        assert isinstance(result.value, Place), result.value_error
    else:  # this server follows the schema on Chat Completions only; what came instead never raises
        assert (result.value is None) == (result.value_error is not None)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
async def test_whatever_a_model_writes_it_never_raises(
    server: LocalServer, wire: str, seed: int
) -> None:
    """Rule C: far too hot a model, tools on offer, its own noise in the history."""
    session = asking("[TOOL_CALL]<tool_call>{{{ ``` call get_weather now")
    model = sync_model(server, wire)
    hot = {"seed": seed, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    for _ in range(3):
        outcome = session.text_turn(model, tools=Weather, temperature=1.0, extra=hot).collect_sync()
        match outcome:
            case NeedsTools(round=round):
                round.commit(session, [call.fail("not now") for call in round.calls])
            case Finished():
                session.push_user("\u202e}]}</tool_call> again")
