"""`ScriptedModel`: what a provider would do, without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import (
    AdapterError,
    Finished,
    NeedsTools,
    Session,
    Toolset,
    TranscriptError,
    tool,
    tool_input,
)
from lutumpy.models import TurnOptions
from lutumpy.testing import Call, Failure, Reply, ScriptedModel

APIS = ["openai_chat", "openai_responses", "anthropic_messages"]


@tool_input(name="weather", output=str)
class Weather(BaseModel):
    """Tell the weather."""

    city: str


class Tools(Toolset):
    weather = tool(Weather, output=str)


def asked() -> Session:
    session = Session()
    session.push_user("How is the weather in Oslo?")
    return session


@pytest.mark.parametrize("api", APIS)
async def test_a_whole_loop_without_a_provider(api: Any) -> None:
    llm = ScriptedModel(
        [Reply(calls=[Call("weather", {"city": "Oslo"})]), Reply(text="It rains.")], api=api
    )
    session = asked()
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    call = outcome.round.expect_one()
    assert Tools.weather.matches(call)
    outcome.round.commit(session, [call.complete("rain in " + call.input.city)])
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "It rains."
    assert outcome.result.model == "scripted"
    assert llm.remaining == 0
    assert len(llm.requests) == 2
    assert "rain in Oslo" in str(llm.requests[1])
    assert llm.requests[0]["model"] == "scripted"


@pytest.mark.parametrize("api", APIS)
def test_it_answers_sync_turns_too(api: Any) -> None:
    assert (
        asked().text_turn(ScriptedModel([Reply(text="Hi.")], api=api)).collect_sync().text == "Hi."
    )


@pytest.mark.parametrize("api", APIS)
async def test_a_scripted_failure_is_the_error_that_the_wire_gives(api: Any) -> None:
    llm = ScriptedModel(
        [Failure(429, "Slow down.", headers={"Retry-After": "3"}), Reply(text="Now.")], api=api
    )
    session = asked()
    with pytest.raises(AdapterError, match=r"HTTP 429: Slow down\.") as caught:
        await session.text_turn(llm).collect()
    error = caught.value
    assert (error.provider, error.status, error.retryable, error.retry_after) == (
        api,
        429,
        True,
        3.0,
    )
    assert error.__cause__ is not None
    assert len(session.transcript) == 1
    assert (await session.text_turn(llm).collect()).text == "Now."


@pytest.mark.parametrize("api", APIS)
async def test_a_request_that_the_api_refuses_is_refused(api: Any) -> None:
    llm = ScriptedModel([Reply(text="never said")], api=api)
    with pytest.raises(AdapterError) as caught:
        await asked().text_turn(llm, extra={"stream_colour": 1}).collect()
    assert caught.value.status == 400
    assert not caught.value.retryable
    assert llm.remaining == 1
    assert len(llm.requests) == 1


@pytest.mark.parametrize("api", APIS)
async def test_options_and_extra_parameters_reach_the_request(api: Any) -> None:
    llm = ScriptedModel([Reply(text="Hi.")], api=api)
    await (
        asked()
        .text_turn(llm, temperature=0.5, max_output_tokens=77, extra={"metadata": {}})
        .collect()
    )
    (body,) = llm.requests
    assert body["temperature"] == 0.5
    assert body["metadata"] == {}
    assert 77 in body.values()


async def test_a_script_that_ran_out_says_so() -> None:
    llm = ScriptedModel([])
    with pytest.raises(AdapterError, match="no answer left for request 1"):
        await asked().text_turn(llm).collect()
    llm.play(Reply(text="More."))
    assert (await asked().text_turn(llm).collect()).text == "More."


async def test_an_entry_may_be_a_function_of_the_request() -> None:
    def answer(api: str, body: Mapping[str, Any]) -> Reply:
        return Reply(text=f"{api}: {body['messages'][-1]['content']}")

    assert (await asked().text_turn(ScriptedModel([answer])).collect()).text.startswith(
        "openai_chat: How is"
    )


async def test_an_entry_may_be_the_api_s_own_json() -> None:
    native = {
        "choices": [{"message": {"role": "assistant", "content": "raw"}, "finish_reason": "stop"}]
    }
    llm = ScriptedModel(
        [native, b'{"choices": [{"message": {"role": "assistant", "content": "bytes"}}]}']
    )
    assert (await asked().text_turn(llm).collect()).text == "raw"
    assert (await asked().text_turn(llm).collect()).text == "bytes"


def test_nothing_to_answer_is_an_error_before_any_request() -> None:
    llm = ScriptedModel([Reply(text="Hi.")])
    with pytest.raises(TranscriptError):
        llm.respond_sync(Session().transcript, None, TurnOptions())
    assert (llm.requests, llm.remaining) == ([], 1)


def test_an_unknown_api_is_refused() -> None:
    api: Any = "openai"
    with pytest.raises(ValueError, match="openai_chat, openai_responses, anthropic_messages"):
        ScriptedModel([], api=api)


async def test_without_the_check_a_refused_request_is_answered_and_the_last_ones_are_kept() -> None:
    def answer(api: str, body: Mapping[str, Any]) -> Reply:
        return Reply(text=str(body["stream_colour"]))

    llm = ScriptedModel([Reply(text="one"), answer, Reply(text="three")], check=False, keep=2)
    session = asked()
    for colour, said in ((1, "one"), (2, "2"), (3, "three")):
        session.push_user("Again.")
        assert (
            await session.text_turn(llm, extra={"stream_colour": colour}).collect()
        ).text == said
    assert llm.requested == 3
    assert [body["stream_colour"] for body in llm.requests] == [2, 3]
    assert llm.requests[-1]["messages"][-1] == {"role": "user", "content": "Again."}


def test_an_answer_has_the_shape_that_its_request_asks_for() -> None:
    def events(api: Any, **extra: Any) -> list[Any]:
        llm = ScriptedModel([Reply("A summary.")], api=api)
        return llm.events(asked().transcript, None, TurnOptions(extra=extra))

    compaction = events("anthropic_messages", compaction={"type": "summarize"})
    assert compaction[1]["content_block"]["type"] == "compaction"
    assert {
        choice["index"] for event in events("openai_chat", n=2) for choice in event["choices"]
    } == {0, 1}
    llm = ScriptedModel([Reply("One."), Reply("Two.")])
    outcome = asked().text_turn(llm, extra={"n": 2}).collect_sync()
    assert outcome.text == "One."
    assert llm.remaining == 1
