"""Through the real SDKs, over HTTP, against a server that refuses what the real APIs refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from every_client import model_at, sync_model_at
from text_toolkit import Tools, answers, asked, call, every_api

from lutumpy import AdapterError, Finished, NeedsTools, TextDelta, ToolCallReady
from lutumpy.models import Api
from lutumpy.testing import Failure, Reply, WireServer, serve
from lutumpy.text_tools import TextTools

OSLO = call("weather", {"city": "Oslo"})
SCRIPT = [Reply(text=f"Let me see.{OSLO}{call('weather', 'oops')}"), Reply(text="It is sunny.")]


@asynccontextmanager
async def text_model(
    script: list[Any], api: Api, **options: Any
) -> AsyncIterator[tuple[WireServer, TextTools]]:
    async with serve(script) as server, model_at(api, server.url) as llm:
        yield server, TextTools(llm, **options)


@every_api
async def test_a_conversation_over_http(api: Api) -> None:
    async with text_model(SCRIPT, api) as (server, llm):
        session = asked()
        outcome = await session.text_turn(llm, tools=Tools, temperature=0).collect()
        assert isinstance(outcome, NeedsTools)
        assert [i.reason for i in outcome.round.issues] == ["malformed_arguments"]
        outcome.round.commit(session, answers(outcome.round))
        finished = await session.text_turn(llm, tools=Tools).collect()
        assert isinstance(finished, Finished)
        assert finished.result.text == "It is sunny."
        assert [request.status for request in server.requests] == [200, 200]


@every_api
async def test_a_streamed_conversation_over_http(api: Api) -> None:
    async with text_model(SCRIPT, api) as (_, llm):
        session = asked()
        async with session.text_turn(llm, tools=Tools).stream() as stream:
            events = [event async for event in stream]
        assert (
            "".join([event.text for event in events if isinstance(event, TextDelta)])
            == "Let me see."
        )
        assert [event.call.input.city for event in events if isinstance(event, ToolCallReady)] == [
            "Oslo"
        ]
        assert isinstance(stream.outcome, NeedsTools)
        assert stream.outcome.round.request_id is not None
        stream.outcome.round.commit(session, answers(stream.outcome.round))
        async with session.text_turn(llm, tools=Tools).stream() as stream:
            async for _ in stream:
                pass
        assert isinstance(stream.outcome, Finished)
        assert stream.outcome.result.text == "It is sunny."


@every_api
async def test_a_guided_answer_over_http(api: Api) -> None:
    script = [Reply(text='{"answer": [{"name": "weather", "args": {"city": "Oslo"}}]}')]
    async with text_model(script, api, guided=True) as (_, llm):
        outcome = await asked().text_turn(llm, tools=Tools).collect()
        assert isinstance(outcome, NeedsTools)
        assert outcome.round.expect_one().input.city == "Oslo"
        outcome.round.discard()


@every_api
async def test_an_error_of_the_provider_comes_through(api: Api) -> None:
    async with text_model([Failure(429, "Slow down.")], api) as (_, llm):
        session = asked()
        with pytest.raises(AdapterError, match="Slow down") as raised:
            await session.text_turn(llm, tools=Tools).collect()
        assert raised.value.status == 429


@every_api
async def test_sync_clients(api: Api) -> None:
    import asyncio

    async with serve([*SCRIPT, *SCRIPT]) as server:

        def talk() -> str:
            with sync_model_at(api, server.url) as model:
                llm = TextTools(model)
                session = asked()
                outcome = session.text_turn(llm, tools=Tools).collect_sync()
                assert isinstance(outcome, NeedsTools)
                outcome.round.commit(session, answers(outcome.round))
                with session.text_turn(llm, tools=Tools).stream_sync() as stream:
                    for _ in stream:
                        pass
                assert isinstance(stream.outcome, Finished)
                return stream.outcome.result.text

        assert await asyncio.to_thread(talk) == "It is sunny."
