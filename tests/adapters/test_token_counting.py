"""Tokens are counted by the provider, and stored answers tell what they cost: through the real
SDKs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from every_client import model_at, sync_model_at
from toolkit import WeatherTools

from lutumpy import AdapterError, Session, Usage
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.token_counting import read_count
from lutumpy.apis import api_names
from lutumpy.budget import Budget
from lutumpy.errors import NotSupportedError
from lutumpy.models import TurnOptions
from lutumpy.testing import Reply, serve

COUNTS = {
    "openai_responses": "/responses/input_tokens",
    "anthropic_messages": "/messages/count_tokens",
    "gemini_generate_content": ":countTokens",
    "bedrock_converse": "/count-tokens",
}


def asked(text: str = "How far is the Moon?") -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user(text)
    return session


async def test_every_api_that_counts_tokens_is_asked_and_the_others_are_not() -> None:
    offer = WeatherTools.offer()
    options = TurnOptions(temperature=0.5, max_output_tokens=100)
    with serve([]) as server:
        for api in api_names():
            async with model_at(api, server.url) as llm:
                if api not in COUNTS:
                    with pytest.raises(NotSupportedError, match="has no call that counts tokens"):
                        await llm.count_tokens(asked().transcript)
                    with pytest.raises(NotSupportedError):
                        llm.count_tokens_sync(asked().transcript)
                    continue
                plain = await llm.count_tokens(asked().transcript)
                long = await llm.count_tokens(asked("far " * 500).transcript, offer, options)
            assert 0 < plain < long, api
            assert server.requests[-1].path.endswith(COUNTS[api]), api
            with sync_model_at(api, server.url) as llm:
                assert llm.count_tokens_sync(asked().transcript) == plain, api
        assert server.remaining == 0
        assert [each.status for each in server.requests] == [200] * len(server.requests)


async def test_a_count_that_fails_or_has_no_number_is_an_error() -> None:
    with serve([]) as server, pytest.raises(AdapterError):
        async with model_at("anthropic_messages", server.url + "/nowhere") as llm:
            await llm.count_tokens(asked().transcript)
    with (
        serve([]) as server,
        sync_model_at("openai_responses", server.url + "/nowhere") as llm,
        pytest.raises(AdapterError),
    ):
        llm.count_tokens_sync(asked().transcript)

    class Odd:
        """A client of boto3 that counts nothing."""

        reply: Any = {}

        def converse(self, **arguments: Any) -> Any: ...

        def count_tokens(self, **arguments: Any) -> Any:
            return self.reply

    with pytest.raises(AdapterError, match="has no number"):
        BedrockConverse("m", Odd()).count_tokens_sync(asked().transcript)

    class Old:
        def converse(self, **arguments: Any) -> Any: ...

    with pytest.raises(NotSupportedError, match="without count_tokens"):
        BedrockConverse("m", Old()).count_tokens_sync(asked().transcript)

    class Awaited:
        async def converse(self, **arguments: Any) -> Any: ...

        async def count_tokens(self, **arguments: Any) -> Any:
            return {"inputTokens": 7}

    assert await BedrockConverse("m", Awaited()).count_tokens(asked().transcript) == 7


async def test_a_stored_answer_tells_what_it_cost() -> None:
    answers = [Reply(text="384,400 km.", usage=(20, 8))] * 2
    for api in ("openai_responses", "openai_chat"):
        with serve(answers) as server:
            async with model_at(api, server.url, extra={"store": True}) as llm:
                result = await asked().text_turn(llm).collect()
                response_id = result.turn.response_id
                assert response_id is not None
                assert await llm.recover_usage(response_id) == Usage(20, 8, 28), api
                assert await llm.recover_usage("resp_unknown") is None, api
            with sync_model_at(api, server.url) as sync:
                assert sync.recover_usage_sync(response_id) == Usage(20, 8, 28), api
                assert sync.recover_usage_sync("resp_unknown") is None, api


async def test_where_no_answer_is_stored_nothing_can_be_recovered() -> None:
    with serve([]) as server:
        async with model_at("anthropic_messages", server.url) as llm:
            with pytest.raises(NotSupportedError, match="gives an answer again"):
                await llm.recover_usage("msg_1")
            with pytest.raises(NotSupportedError):
                llm.recover_usage_sync("msg_1")
        assert server.requests == []
    with serve([]) as server, sync_model_at("openai_chat", server.url + "/x") as llm:
        assert llm.recover_usage_sync("a/b") is None


async def test_a_budget_sets_aside_what_the_provider_counts_B5_B7() -> None:
    with serve([Reply(text="hi", usage=(20, 8))] * 3) as server:
        async with model_at("anthropic_messages", server.url) as llm:
            budget = Budget(tokens=1000, estimate=True, output_estimate=100)
            await asked().text_turn(budget.model(llm)).collect()
            assert [each.path.rpartition("/")[2] for each in server.requests] == [
                "count_tokens",
                "messages",
            ]
            assert budget.spent.requests == 2
            assert budget.spent.usage.total_tokens == 28


async def test_what_goes_wrong_otherwise_than_not_found_is_an_error() -> None:
    api = "openai_responses"
    with serve([]) as server:
        url = server.url
    async with model_at(api, url) as llm:  # nobody listens any more
        with pytest.raises(AdapterError):
            await llm.recover_usage("resp_1")
    with sync_model_at(api, url) as llm, pytest.raises(AdapterError):
        llm.recover_usage_sync("resp_1")
    reply: Any = SimpleNamespace(content=b'{"input_tokens": "many"}')
    with pytest.raises(AdapterError, match="the count of tokens has no number"):
        read_count(api, reply)
