"""The events in the bytes of a response are those that the SDKs' own decoders find, however the
bytes are cut (S1).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from anthropic import Stream as AnthropicStream
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI, OpenAI
from openai import Stream as OpenAIStream
from profiles import examples
from toolkit import Files

from lutumpy import Finished, Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.adapters.sdk_events import EventError, EventSplitter, event_splitter

FIXTURES = Path(__file__).parent.parent / "fixtures"

# Pieces of a stream, as providers and proxies write them; `%` is the end of a line.
PIECES = [
    'event: a%data: {"n": 1}%%',
    'event: content_block_delta%data: {"n": "é\\ud83d\\ude00"}%%',
    'data: {"n": 2}%%',
    'data:{"n": 3}%%',
    'id: 7%event: a%data: {"n":%data: 4}%%',
    ": a comment%%",
    "event: ping%data: {}%%",
    "retry: 3%event: b%data: [5]%x: y%%",
    'event: a%data: "\\ud83d"%%',
    "%",
]
ENDS = [
    "",
    "data: [DONE]%%",
    'event: error%data: {"error": {"message": "m"}}%%',
    "event: a%data: {%%",
    'event: a%data: {"n": 9}%',
]


CLIENTS: dict[bool, Any] = {True: Anthropic(api_key="k"), False: OpenAI(api_key="k")}


def found(splitter: EventSplitter, parts: list[bytes]) -> tuple[list[Any], str]:
    events = []
    for part in parts:
        events += list(splitter.feed(part))
        if splitter.error is not None:
            return events, "error" if isinstance(splitter.error, EventError) else "no JSON"
    return events, ""


def by_the_sdk(kind: Any, client: Any, body: bytes) -> tuple[list[Any], str]:
    response = httpx2.Response(
        200, content=body, request=httpx2.Request("POST", "http://api.invalid")
    )
    events: list[Any] = []
    try:
        for event in kind(cast_to=object, response=response, client=client):
            events.append(event)  # noqa: PERF402  # what came before an error counts
    except (ValueError, RecursionError):
        return events, "no JSON"
    except Exception:
        return events, "error"
    return events, ""


@pytest.mark.parametrize("named", [True, False], ids=["anthropic", "openai"])
@settings(max_examples=examples(150), deadline=None)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=6),
    end=st.sampled_from(ENDS),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    size=st.integers(1, 40),
)
def test_the_events_are_those_of_the_sdk_S1(
    named: bool, pieces: list[str], end: str, newline: str, size: int
) -> None:
    if not named:
        # With an id, that SDK takes every empty line after it for an event without data, and fails
        # on it.
        pieces = [
            piece.replace("id: 7%", "")
            for piece in pieces
            if "ping" not in piece and "retry" not in piece
        ]
    body = ("".join(pieces) + end).replace("%", newline).encode()
    parts = [body[k : k + size] for k in range(0, len(body), size)]
    expected = by_the_sdk(AnthropicStream if named else OpenAIStream, CLIENTS[named], body)
    assert found(EventSplitter(None, named=named), parts) == expected
    assert found(EventSplitter(None, named=named), [body]) == expected


@pytest.mark.parametrize(
    ("file", "named"), [("anthropic_messages_sse.jsonl", True), ("openai_chat_sse.jsonl", False)]
)
def test_recorded_streams_are_split_as_they_are(file: str, named: bool) -> None:
    for row in (FIXTURES / file).read_text().splitlines():
        body: str = json.loads(row)["response"]
        lines = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
        expected = [
            event for event in map(json.loads, lines) if not (named and event["type"] == "ping")
        ]
        data = body.encode()
        for size in (1, 100, len(data)):
            parts = [data[k : k + size] for k in range(0, len(data), size)]
            assert found(EventSplitter(None, named=named), parts)[0] == expected


@pytest.mark.parametrize(
    ("file", "named"), [("anthropic_messages_sse.jsonl", True), ("openai_chat_sse.jsonl", False)]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_byte_order_mark_before_a_stream_costs_no_event_however_it_is_cut_S1(
    file: str, named: bool, newline: str
) -> None:
    body: str = json.loads((FIXTURES / file).read_text().splitlines()[0])["response"]
    whole = body.replace("\n", newline).encode()
    expected = found(EventSplitter(None, named=named), [whole])
    assert len(expected[0]) > 2
    marked = b"\xef\xbb\xbf" + whole
    for size in (1, 2, 3, 4, 5, len(marked)):
        parts = [marked[k : k + size] for k in range(0, len(marked), size)]
        assert found(EventSplitter(None, named=named), parts) == expected
        assert found(EventSplitter(None, named=named), [b"", *parts]) == expected


def test_only_what_is_a_whole_mark_at_the_very_start_is_left_out_S1() -> None:
    splitter = EventSplitter(None, named=False)
    assert [list(splitter.feed(part)) for part in (b"\xef", b"\xbb", b"")] == [[], [], []]
    assert list(splitter.feed(b': no mark\n\ndata: {"n": "\xef\xbb\xbf"}\n\n')) == [{"n": "\ufeff"}]


def test_a_long_event_in_small_parts_is_joined_once_S3() -> None:
    splitter = EventSplitter(None, named=False)
    part = b"x" * 8
    held: list[int] = []
    assert list(splitter.feed(b'data: {"n": "')) == []
    for _ in range(1000):
        assert list(splitter.feed(part)) == []
        held.append(len(splitter._held))
    assert held == list(range(2, 1002))
    assert list(splitter.feed(b'"}\n\n')) == [{"n": "x" * 8000}]


def test_another_stream_is_left_to_its_own_class() -> None:
    class Own:
        response = None

    class Derived(OpenAIStream[object]):
        pass

    response = httpx2.Response(
        200, content=b"", request=httpx2.Request("POST", "http://api.invalid")
    )
    client = OpenAI(api_key="k")
    plain = OpenAIStream(cast_to=object, response=response, client=client)
    assert event_splitter(plain) is not None
    assert event_splitter(Derived(cast_to=object, response=response, client=client)) is None
    assert event_splitter(Own()) is None
    # As of a host with a format of its own.
    plain._decoder = SimpleNamespace()  # type: ignore[assignment]
    assert event_splitter(plain) is None


class Slow(httpx2.AsyncByteStream):
    """A body whose connection stays open behind the last event."""

    def __init__(self) -> None:
        self.closed = 0

    async def __aiter__(self) -> Any:
        choice = b'{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}'
        yield b'data: {"id": "c", "model": "m", "choices": [' + choice + b"]}\n\n"
        yield b"data: [DONE]\n\n"
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed += 1


async def test_the_end_is_not_waited_for_when_the_connection_stays_open_S3() -> None:
    body = Slow()

    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=body, headers={"content-type": "text/event-stream"})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    session = Session()
    session.push_user("go")
    client = AsyncOpenAI(api_key="k", base_url="http://api.invalid/v1", http_client=http)
    async with client, session.text_turn(OpenAIChat("m", client), tools=Files).stream() as stream:
        outcome = await asyncio.wait_for(stream.collect(), 10)
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "Hi"
    assert body.closed == 1
