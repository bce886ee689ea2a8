"""Which clients a cassette can make, and what an answer may go through on its way into it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import boto3
import httpx2
import pytest
from anthropic import AnthropicBedrock, AnthropicVertex
from cassette_toolkit import SCRIPT, model_of, no_network, talk_sync
from google import genai
from google.genai import types
from openai import AsyncAzureOpenAI, AzureOpenAI, OpenAI

from lutumpy import AdapterError, Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.cli import main
from lutumpy.errors import CassetteError, CassetteMismatch
from lutumpy.testing import Cassette, Reply, serve
from lutumpy.testing.cassettes.http import CassetteTransport
from lutumpy.testing.cassettes.tape import Recording, Tape
from lutumpy.testing.event_frames import read_frames, write_frame


def test_every_kind_of_client_can_be_had_for_a_replay_without_a_key(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("")
    cassette = Cassette(path)
    azure = {"azure_endpoint": "https://x.openai.azure.com", "api_version": "2024-06-01"}
    with no_network():
        assert type(cassette.client(AzureOpenAI, **azure)) is AzureOpenAI
        assert type(cassette.client(AsyncAzureOpenAI, **azure)) is AsyncAzureOpenAI
        given = cassette.client(AzureOpenAI, **azure, azure_ad_token="token")
        assert given.api_key != "replayed-without-a-key"
        made = cassette.client(AnthropicVertex, region="us-east5", project_id="p", access_token="t")
        assert type(made) is AnthropicVertex
        assert type(cassette.client(genai.Client)) is genai.Client
        options = types.HttpOptions(base_url="https://example.com")
        assert type(cassette.client(genai.Client, http_options=options)) is genai.Client
        session = boto3.session.Session()
        assert cassette.client(session.client, "bedrock-runtime").meta.region_name == "us-east-1"


def test_what_cant_go_through_a_cassette_is_said(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "a.jsonl", "record")
    with pytest.raises(TypeError, match="'dict' makes no client that can be recorded"):
        cassette.client(dict)
    with pytest.raises(TypeError, match="http_client= is the cassette's own"):
        cassette.client(OpenAI, http_client=httpx2.Client())
    with pytest.raises(TypeError, match="transport= is the cassette's own"):
        cassette.client(httpx2.Client, transport=httpx2.HTTPTransport())
    with pytest.raises(TypeError, match="are the cassette's own"):
        cassette.client(genai.Client, api_key="k", http_options={"httpx_client": httpx2.Client()})


def test_frames_around_another_vendors_events_are_readable(tmp_path: Path) -> None:
    """Claude on Bedrock sends its events as texts that nobody could search for a key."""
    path = tmp_path / "a.jsonl"
    keys = {"aws_access_key": "AKIDCANARY0123456789", "aws_secret_key": "s" * 20}
    with serve([Reply(text="Hello.")]) as server, Cassette(path, "record") as cassette:
        options = {"aws_region": "us-east-1", "base_url": server.url}
        client: Any = cassette.client(AnthropicBedrock, **options, **keys)
        deltas = _streamed(client)
    (entry,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert entry["response"][0]["data"]["type"] == "message_start"
    with no_network(), Cassette(path) as cassette:
        client = cassette.client(AnthropicBedrock, aws_region="us-east-1", **keys)
        assert _streamed(client) == deltas


def _streamed(client: Any) -> list[str]:
    session = Session()
    session.push_user("Hello?")
    llm = AnthropicMessages("anthropic.claude-sonnet-4-5-20250929-v1:0", client=client)
    with session.text_turn(llm).stream_sync() as stream:
        return [str(event) for event in stream]


def test_frames_are_read_as_they_were_written() -> None:
    frames = [({":event-type": "a", "b": "é"}, b"{}"), ({}, b"")]
    data = b"".join([write_frame(headers, payload) for headers, payload in frames])
    assert read_frames(data) == frames
    for cut in (data[:-1], data[:7], data + b"1"):
        with pytest.raises(ValueError, match="ends within a frame"):
            read_frames(cut)
    with pytest.raises(ValueError, match="'b' of an event isn't a text"):
        read_frames(data.replace(b"\x01b\x07", b"\x01b\x06"))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_answer_that_is_compressed_all_the_same(encoding: str, tmp_path: Path) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding, bytes)(b'{"a": 1}')

    class Server(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            assert request.headers["accept-encoding"] == "identity"
            head = {"content-encoding": encoding, "content-type": "application/json"}
            return httpx2.Response(200, headers=head, content=packed)

    path = tmp_path / "a.jsonl"
    transport = CassetteTransport(Tape(path, "record"), httpx2)
    transport._live = httpx2.Client(transport=Server())
    client = httpx2.Client(transport=transport)
    if encoding == "br":
        with pytest.raises(CassetteError, match="in the encoding 'br' can't be recorded"):
            client.post("http://host/a", json={})
        return
    assert client.post("http://host/a", json={}).json() == {"a": 1}
    with Cassette(path) as cassette:
        client = cassette.client(httpx2.Client)
        assert client.post("http://host/a", json={}).json() == {"a": 1}


def test_a_stream_that_broke_breaks_again_and_one_that_was_left_can_be_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"

    class Broken(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            yield b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,'
            yield b'"delta":{"role":"assistant","content":"Hel"}}]}\n\n'
            raise httpx2.ReadError("gone")

    class Server(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, stream=Broken())

    def read(client: Any) -> str:
        session = Session()
        session.push_user("Hello?")
        llm = OpenAIChat("m", client=client)
        with pytest.raises(AdapterError) as caught, session.text_turn(llm).stream_sync() as stream:
            list(stream)
        assert caught.value.partial is not None
        return str(caught.value.partial.text)

    tape = Tape(path, "record")
    transport = CassetteTransport(tape, httpx2)
    transport._live = httpx2.Client(transport=Server())
    client = OpenAI(api_key="any", http_client=httpx2.Client(transport=transport))
    assert read(client) == "Hel"
    assert json.loads(path.read_text())["ended"] == "broken"
    with Cassette(path) as cassette:
        assert read(cassette.client(OpenAI)) == "Hel"

    with serve(SCRIPT) as server, Cassette(path, "record") as cassette:
        session = Session()
        session.push_user("Hello?")
        llm = model_of(cassette, "bedrock_converse", server.url)
        with session.text_turn(llm).stream_sync() as stream:
            next(stream)
    assert json.loads(path.read_text())["ended"] == "left"
    with Cassette(path) as cassette:
        llm = model_of(cassette, "bedrock_converse")
        with session.text_turn(llm).stream_sync() as stream:
            next(stream)
    with Cassette(path) as cassette:  # whoever reads on finds that there is no more
        llm = model_of(cassette, "bedrock_converse")
        with session.text_turn(llm).stream_sync() as stream, pytest.raises(AdapterError):
            list(stream)


def test_whatever_isnt_json_is_compared_by_its_digest_and_other_methods_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    tape = Tape(path, "record")
    for method, body in (("PUT", b"\x00\xff"), ("GET", b"")):
        found = tape.begin(method, "http://host/files", {}, body)
        assert isinstance(found, Recording)
        found.begin(200, {"content-type": "text/plain"})
        found.take(b"done \xff")
        found.end()
    first, second = [json.loads(line) for line in path.read_text().splitlines()]
    assert list(first["request"]) == ["sha256"]
    assert (first["method"], second["method"], second["request"]) == ("PUT", "GET", None)
    cassette = Cassette(path)
    client = cassette.client(httpx2.Client, base_url="http://host")
    with pytest.raises(CassetteMismatch, match="PUT was recorded, POST is sent"):
        client.post("/files", content=b"\x00\xff")
    with pytest.raises(CassetteMismatch, match=r"/files was recorded, /other is sent"):
        client.put("/other", content=b"\x00\xff")
    with pytest.raises(CassetteMismatch, match="/sha256") as caught:
        client.put("/files", content=b"\x00\xfe")
    assert caught.value.pointer == "/sha256"
    assert client.put("/files", content=b"\x00\xff").content == b"done \xff"
    assert client.get("/files").content == b"done \xff"
    assert main(["check", str(path)]) == 0  # no model was asked: nothing is checked
    assert "0 documents checked" in capsys.readouterr().out


async def test_connections_for_recording_close_with_their_loop(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    async with serve([Reply(text="Hello.")]) as server:
        cassette = Cassette(path, "record")
        async with cassette.client(httpx2.AsyncClient, base_url=server.url) as client:
            body = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
            headers = {"Authorization": "Bearer any"}
            answer = await client.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
    assert len(cassette) == 1
    with no_network(), Cassette(path) as again:
        with pytest.raises(CassetteMismatch):
            talk_sync(model_of(again, "openai_chat"))
        again._tape._mismatch = None
        async with again.client(httpx2.AsyncClient, base_url="http://host") as client:
            await client.post("/v1/chat/completions", json=body)
