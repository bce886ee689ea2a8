"""Models whose requests go through a cassette, and a network that nobody may use."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from botocore.config import Config
from every_api import ADAPTERS
from every_client import MODELS
from google import genai
from openai import AsyncOpenAI, OpenAI

from lutumpy import Finished, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.models import Api
from lutumpy.testing import Call, Cassette, Reply

__all__ = ["QUESTION", "SCRIPT", "Atlas", "model_of", "no_network", "talk", "talk_sync"]

KEY = "sk-test-canary-0123456789"
QUESTION = "How many people live in Oslo?"
SCRIPT = [
    Reply(text="Let me see.", calls=[Call("population", {"city": "Oslo"})]),
    Reply(text="There are 717,710 of them, and Bergen has fewer: Ærlig talt."),
]


@tool_fn
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Oslo": 717_710}[city]


class Atlas(Toolset):
    population = tool(population)


def model_of(
    cassette: Cassette,
    api: Api,
    url: str | None = None,
    *,
    is_async: bool = False,
    key: str = KEY,
    retries: int = 0,
    **options: Any,
) -> Any:
    """The adapter with a client that goes through a cassette: for a test server, or with nothing
    but what a replay needs.
    """
    live: dict[str, Any] = {}
    if api == "bedrock_converse":
        if url is not None:
            live = {"endpoint_url": url, "region_name": "us-east-1"}
            live |= {"aws_access_key_id": "AKIDCANARY0123456789", "aws_secret_access_key": key}
        config = Config(retries={"total_max_attempts": retries + 1})
        client: Any = cassette.client(boto3.client, "bedrock-runtime", config=config, **live)
    elif api == "gemini_generate_content":
        if url is not None:
            live = {"api_key": key, "http_options": {"base_url": url}}
        client = cassette.client(genai.Client, **live)
    elif api == "ollama_chat":
        live = {"headers": {"Authorization": f"Bearer {key}"}} if url is not None else {}
        made: Any = httpx2.AsyncClient if is_async else httpx2.Client
        client = cassette.client(made, base_url=url or "http://localhost:11434", **live)
        options = {"max_retries": retries, **options}
    else:
        if url is not None:
            base = url if api == "anthropic_messages" else f"{url}/v1"
            live = {"api_key": key, "base_url": base}
        kinds: dict[bool, Any] = {True: AsyncOpenAI, False: OpenAI}
        if api == "anthropic_messages":
            kinds = {True: AsyncAnthropic, False: Anthropic}
        client = cassette.client(kinds[is_async], max_retries=retries, **live)
    return ADAPTERS[api](MODELS.get(api, "any-model"), client=client, **options)


@contextmanager
def no_network() -> Iterator[None]:
    """Fail where anything would connect to another program."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a socket was opened")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


def talk_sync(llm: Any, *, streamed: bool = False) -> tuple[Session, list[str]]:
    """The conversation, and the pieces in which its texts came."""
    session = Session()
    session.push_user(QUESTION)
    deltas: list[str] = []
    while True:
        turn = session.text_turn(llm, tools=Atlas)
        if streamed:
            with turn.stream_sync() as stream:
                deltas += [str(event) for event in stream]
                outcome = stream.outcome
        else:
            outcome = turn.collect_sync()
        if isinstance(outcome, NeedsTools):
            round = outcome.round
            round.commit(session, [call.complete(call.call_sync()) for call in round.calls])
            continue
        assert isinstance(outcome, Finished)
        return session, deltas


async def talk(llm: Any, *, streamed: bool = False) -> tuple[Session, list[str]]:
    """The same with an event loop."""
    session = Session()
    session.push_user(QUESTION)
    deltas: list[str] = []
    while True:
        turn = session.text_turn(llm, tools=Atlas)
        if streamed:
            async with turn.stream() as stream:
                deltas += [str(event) async for event in stream]
                outcome = stream.outcome
        else:
            outcome = await turn.collect()
        if isinstance(outcome, NeedsTools):
            round = outcome.round
            round.commit(session, [call.complete(call.call_sync()) for call in round.calls])
            continue
        assert isinstance(outcome, Finished)
        return session, deltas
