"""The real server: llama.cpp with a real model.

See `test_adapters_live` for when these tests run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import urllib.request
from pathlib import Path

import pytest

from lutumpy import AdapterError, Session, TextDelta
from lutumpy.local import SMOLLM2, LocalServerError, fetch, serve

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)


def asking(text: str = "Where is Oslo?") -> Session:
    session = Session()
    session.push_user(text)
    return session


def test_the_models_file_is_the_known_one_and_found_offline(tmp_path: Path) -> None:
    def never(*_: object) -> Path:
        raise AssertionError("it was fetched already")

    first = fetch()
    assert first.stat().st_size == SMOLLM2.size
    assert fetch(download=never) == first


def test_it_is_quiet_and_leaves_no_thread_and_no_port(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = threading.enumerate()
    with caplog.at_level(logging.INFO, "lutumpy.local"), serve() as server:
        assert asking().text_turn(server.chat(max_output_tokens=5)).collect_sync().text
        with pytest.raises(AdapterError):
            asking().text_turn(
                server.chat(extra={"max_tokens": {}, "temperature": "?"})
            ).collect_sync()
        port = int(server.url.rpartition(":")[2])
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert threading.enumerate() == before
    with socket.socket() as knock:
        assert knock.connect_ex(("127.0.0.1", port)) != 0
    with serve(port=port) as again:
        assert again.url == f"http://127.0.0.1:{port}"


def test_several_run_at_once_and_a_taken_port_is_named() -> None:
    with serve(context_tokens=512) as one, serve(context_tokens=512) as two:
        assert one.url != two.url
        for server in (one, two):
            assert asking().text_turn(server.messages(max_output_tokens=3)).collect_sync().text
        port = int(one.url.rpartition(":")[2])
        with (
            pytest.raises(LocalServerError, match=f"port {port} can't be listened on"),
            serve(port=port),
        ):
            pass
        assert asking().text_turn(one.responses(max_output_tokens=3)).collect_sync().text


async def test_requests_share_the_slots_of_one_server() -> None:
    async with serve(context_tokens=512, slots=2) as server:
        model = server.chat(temperature=0, max_output_tokens=10)
        results = await asyncio.gather(*[asking().text_turn(model).collect() for _ in range(5)])
    assert all(result.text for result in results)


def test_leaving_the_block_ends_answers_that_are_still_written() -> None:
    session = asking("Tell me a very long story.")
    server = serve()
    with server:
        model = server.chat(max_output_tokens=4000, temperature=0)
        with session.text_turn(model).stream_sync() as stream:
            next(event for event in stream if isinstance(event, TextDelta))
            server.__exit__(None, None, None)
            with pytest.raises(AdapterError) as caught:
                list(stream)
    assert caught.value.retryable
    assert len(session.transcript) == 1


def test_a_cut_model_file_is_told_in_llama_cpps_words(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with fetch().open("rb") as whole:
        cut.write_bytes(whole.read(5_000_000))
    with pytest.raises(LocalServerError, match="corrupted or incomplete") as caught, serve(cut):
        pass
    assert str(cut) in str(caught.value)
    assert caught.value.log


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serve(context_tokens=512) as server:
        for model in (server.chat(max_output_tokens=2), server.messages(max_output_tokens=2)):
            assert asking().text_turn(model).collect_sync().text


def test_pages_of_other_sites_are_not_let_in() -> None:
    with serve(context_tokens=512) as server:
        request = urllib.request.Request(
            f"{server.url}/v1/models", headers={"Origin": "http://elsewhere.example"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
            assert answer.headers.get("Access-Control-Allow-Origin") in (None, "")
