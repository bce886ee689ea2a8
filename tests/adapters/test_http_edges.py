"""The edges of the transport for APIs without an SDK: wrong clients, broken answers, retries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from lutumpy import AdapterError, Session
from lutumpy.adapters.http_lines import LineSplitter
from lutumpy.adapters.http_retries import Retries
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.adapters.writing import HttpModel, HttpTransport

httpx2 = pytest.importorskip("httpx2")


def answering(status: int, content: bytes, headers: Mapping[str, str] | None = None) -> Any:
    return httpx2.MockTransport(
        lambda request: httpx2.Response(status, content=content, headers=headers)
    )


def asked() -> Session:
    session = Session()
    session.push_user("Hello.")
    return session


def test_a_client_of_the_other_kind_is_named() -> None:
    with pytest.raises(TypeError, match="is a sync client"):
        asyncio.run(
            asked().text_turn(OllamaChat("m", httpx2.Client(base_url="http://x"))).collect()
        )
    with pytest.raises(TypeError, match="is an async client"):
        asked().text_turn(OllamaChat("m", httpx2.AsyncClient(base_url="http://x"))).collect_sync()


def test_what_is_no_json_is_an_error_whole_and_streamed() -> None:
    for status in (200, 400):
        client = httpx2.Client(base_url="http://x", transport=answering(status, b"<html>"))
        llm = OllamaChat("m", client, max_retries=0)
        with pytest.raises(AdapterError):
            asked().text_turn(llm).collect_sync()
        with pytest.raises(AdapterError), asked().text_turn(llm).stream_sync() as stream:
            stream.collect()


def test_a_bug_of_the_callers_passes() -> None:
    def fail(request: Any) -> Any:
        raise KeyError("mine")

    client = httpx2.Client(base_url="http://x", transport=httpx2.MockTransport(fail))
    with pytest.raises(KeyError, match="mine"):
        asked().text_turn(OllamaChat("m", client)).collect_sync()

    async def run() -> None:
        client = httpx2.AsyncClient(base_url="http://x", transport=httpx2.MockTransport(fail))
        with pytest.raises(KeyError, match="mine"):
            await asked().text_turn(OllamaChat("m", client)).collect()

    asyncio.run(run())


def test_lines_that_arrive_in_pieces_are_put_together() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"")) == []
    assert list(splitter.feed(b'{"a"')) == []
    assert list(splitter.feed(b': 1}\n{"b": 2')) == [{"a": 1}]
    assert list(splitter.rest()) == []
    assert splitter.error is not None
    splitter = LineSplitter()
    assert list(splitter.feed(b"[1]")) == []
    assert list(splitter.rest()) == [[1]]


def test_a_server_may_say_whether_and_when_to_ask_again() -> None:
    retries = Retries(3)
    assert retries.after_status(400, {}) is None
    assert retries.after_status(503, {"x-should-retry": "false"}) is None
    assert retries.after_status(400, {"x-should-retry": "true", "retry-after": "2"}) == 2
    pause = retries.after_status(503, {})
    assert pause is not None
    assert pause > 0
    assert retries.after_error(ValueError("no connection")) is None
    assert retries.after_error(httpx2.ConnectError("refused")) is not None
    assert retries.after_error(httpx2.ConnectError("refused")) is None


def test_a_missing_package_is_named() -> None:
    transport = HttpTransport("toy", "http://x/y")
    found = transport._in_our_words(ModuleNotFoundError("none", name="httpx2"), Retries(0))
    assert found is not None
    assert "pip install httpx2" in str(found)
    assert not found.sent
    read = transport._error_reader(Retries(0))
    broken = read(ValueError("half"), True)
    assert broken is not None
    assert "not JSON" in str(broken)
    assert read(KeyError("bug"), True) is None
    assert transport.client() is None


def test_an_adapter_that_says_nothing_of_its_environment_has_none() -> None:
    assert HttpModel.environment_url() is None
    assert HttpModel.environment_key() is None
    assert HttpModel.explain(AdapterError("x", provider="toy")) is None
