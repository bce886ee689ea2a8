"""The client that an adapter makes itself is one, whoever asks first."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from every_api import ADAPTERS, APIS
from every_client import MODELS, sync_client

from lutumpy import Transcript
from lutumpy.models import Api, TurnOptions
from lutumpy.testing import serve

THREADS = 4

MAKERS = {
    "openai_chat": ("openai", "OpenAI"),
    "openai_responses": ("openai", "OpenAI"),
    "anthropic_messages": ("anthropic", "Anthropic"),
    "gemini_generate_content": ("google.genai", "Client"),
    "bedrock_converse": ("boto3", "client"),
    "ollama_chat": ("httpx2", "Client"),
}
"""For each API: the module and the name of what makes the client of its SDK."""


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("hello")
    return transcript


class Maker:
    """Hands out clients as the SDK makes them, slowly: meanwhile another thread may ask for one.

    Args:
        ready: The clients.
    """

    def __init__(self, ready: list[Any]) -> None:
        self.made: list[Any] = []
        self.closed: list[Any] = []
        self._ready = ready
        self._two = threading.Barrier(2)

    def __call__(self, *args: Any, **options: Any) -> Any:
        client = self._ready.pop()
        close = client.close

        def note_closed() -> None:
            self.closed.append(client)
            close()

        client.close = note_closed
        self.made.append(client)
        with contextlib.suppress(threading.BrokenBarrierError):  # nobody else asks for one
            self._two.wait(0.2)
        return client


@contextmanager
def making(api: Api, url: str) -> Iterator[Maker]:
    """The SDK's maker of clients, replaced by one that says what it has made."""
    module, name = MAKERS[api]
    ready = [sync_client(api, url) for _ in range(THREADS + 1)]
    maker = Maker(ready)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module(module), name, maker)
        yield maker
    for client in ready:
        client.close()


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    name: Api = request.param
    return name


def test_threads_that_ask_first_share_one_client(api: Api) -> None:
    with serve(None) as server, making(api, server.url) as maker:
        options = {"base_url": server.url} if api == "ollama_chat" else {}
        llm = ADAPTERS[api](MODELS.get(api, "any-model"), **options)

        def ask(_: int) -> str:
            text: str = llm.respond_sync(asked(), None, TurnOptions()).text
            return text

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(ask, range(THREADS))) == ["OK"] * THREADS
        assert len(maker.made) == 1
        llm.close()
        assert maker.closed == maker.made
        assert ask(0) == "OK"  # the next request makes another
        assert len(maker.made) == 2
        llm.close()
        assert maker.closed == maker.made


def test_tasks_that_ask_first_share_one_client_of_boto3() -> None:
    # boto3 has no async client, so each request of a task waits in a thread of its own.
    with serve(None) as server, making("bedrock_converse", server.url) as maker:
        llm = ADAPTERS["bedrock_converse"](MODELS["bedrock_converse"])

        async def ask_at_once() -> list[str]:
            asking = [llm.respond(asked(), None, TurnOptions()) for _ in range(THREADS)]
            return [turn.text for turn in await asyncio.gather(*asking)]

        assert asyncio.run(ask_at_once()) == ["OK"] * THREADS
        assert len(maker.made) == 1
        llm.close()
        assert maker.closed == maker.made
