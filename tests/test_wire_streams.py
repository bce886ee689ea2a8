"""Streams through the real SDK clients, async and sync, for every API: what a program sees
from socket to session.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from every_api import ADAPTERS
from every_client import model_at, sync_model_at
from toolkit import Weather
from toolkit import WeatherTools as Tools

from lutumpy import (
    AdapterError,
    Completed,
    Finished,
    NeedsTools,
    RoundClosedError,
    Session,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
)
from lutumpy.apis import serving
from lutumpy.hooks import BaseToolCall
from lutumpy.models import Api, ToolTurn
from lutumpy.rounds.events import Event
from lutumpy.testing import Call, Failure, Reply, WireServer, render_stream, serve

every_api = pytest.mark.parametrize("api", ADAPTERS)


CALLS = Reply(
    text="Let me look.",
    calls=[
        Call("weather", {"city": "Oslo", "days": 2}),
        Call("wether", {"a": 1}),
        Call("weather", {"town": "x"}),
        Call("weather", {"city": "Tromsø"}),
    ],
    reasoning="Four calls will do.",
)
ANSWER = Reply(text="Sunny in Oslo, rain in Tromsø.", usage=(50, 9))


def asked() -> Session:
    session = Session()
    session.push_user("What is the weather?")
    session.push_ephemeral_user("Be quick.")
    return session


def check_round(events: Sequence[Event], outcome: NeedsTools | Finished, session: Session) -> None:
    """The events of `CALLS` and its round agree; then the round is committed."""
    assert isinstance(outcome, NeedsTools)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Completed)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 1
    assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == CALLS.text
    assert [event.call for event in events if isinstance(event, ToolCallReady)] == list(
        outcome.round.calls
    )
    assert [event.issue for event in events if isinstance(event, ToolCallIssueFound)] == list(
        outcome.round.issues
    )
    assert [call.input for call in outcome.round.calls] == [
        Weather(city="Oslo", days=2),
        Weather(city="Tromsø"),
    ]
    ready = next(k for k, event in enumerate(events) if isinstance(event, ToolCallReady))
    assert any(
        isinstance(event, ToolCallDelta) for event in events[ready:]
    )  # typed before the answer ended
    assert session.turns() == []
    outcome.round.commit(session, [call.complete("fine") for call in outcome.round.calls])


def only_its_cost_changed(session: Session, before: dict[str, Any]) -> None:
    """The request has left nothing in the session but what it cost, and that it isn't wholly known
    (rule U1).
    """
    after = session.dump()
    assert {**after, "usage": None, "unsettled": []} == {**before, "usage": None}
    assert len(session.unsettled) == 1


@every_api
async def test_a_streamed_round_and_a_streamed_answer(api: Api) -> None:
    async with serve([CALLS, ANSWER]) as server, model_at(api, server.url) as llm:
        session = asked()
        async with session.text_turn(llm, tools=Tools).stream() as stream:
            check_round([event async for event in stream], stream.outcome, session)
        async with session.text_turn(llm, tools=Tools).stream() as stream:
            said = [event.text async for event in stream if isinstance(event, TextDelta)]
        assert isinstance(stream.outcome, Finished)
        check_answer(said, stream.outcome, session, server)


@every_api
def test_a_streamed_round_and_a_streamed_answer_without_an_event_loop(api: Api) -> None:
    with serve([CALLS, ANSWER]) as server, sync_model_at(api, server.url) as llm:
        session = asked()
        with session.text_turn(llm, tools=Tools).stream_sync() as stream:
            check_round(list(stream), stream.outcome, session)
        with session.text_turn(llm, tools=Tools).stream_sync() as stream:
            said = [event.text for event in stream if isinstance(event, TextDelta)]
        assert isinstance(stream.outcome, Finished)
        check_answer(said, stream.outcome, session, server)


def check_answer(
    said: Sequence[str], outcome: Finished, session: Session, server: WireServer
) -> None:
    assert len(said) > 1
    assert "".join(said) == outcome.result.text == ANSWER.text
    assert session.turns()[-1].text == ANSWER.text
    assert outcome.result.request_id == "req_" + "2".zfill(24)
    assert (outcome.result.usage.input_tokens, outcome.result.usage.output_tokens) == ANSWER.usage
    assert [request.status for request in server.requests] == [200, 200]
    for request in server.requests:
        assert request.body.get("stream") or "stream" in request.path.lower()


async def read(turn: ToolTurn[BaseToolCall, None]) -> NeedsTools | Finished:
    async with turn.stream() as stream:
        async for _ in stream:
            pass
    return stream.outcome


def fail_at_the_first_text(turn: ToolTurn[BaseToolCall, None]) -> None:
    with turn.stream_sync() as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                raise KeyError("my own")


SCRIPTS = {
    "calls": CALLS,
    "answer": ANSWER,
    "cut": Reply(text="I was about to", finish="length"),
    "refusal": Reply(refusal="No."),
    "filter": Reply(text="Well,", finish="content_filter"),
    "empty": Reply(),
    "same ids": Reply(
        calls=[Call("weather", {"city": "x"}, id="a"), Call("weather", {"city": "y"}, id="a")]
    ),
}


def comparable(dump: dict[str, Any]) -> dict[str, Any]:
    """A dump without the one thing that google-genai drops from the chunks of a stream, and without
    the port of the server that answered.
    """
    del dump["digest"]  # over what is taken out here as well
    for item in dump["items"]:
        origin = item.get("origin") or {}
        if "host" in origin:
            origin["host"] = origin["host"].partition(":")[0]
        candidate = (item.get("residue") or {}).get("candidate", {})
        if candidate.pop("finishMessage", None) is not None and not candidate:
            item["residue"] = None
    return dump


@every_api
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_stream_ends_in_what_collect_gives_S1(api: Api, name: str) -> None:
    reply = SCRIPTS[name]
    dumps: list[dict[str, Any]] = []
    kinds: list[type] = []
    for streamed in (True, False):
        async with serve([reply]) as server, model_at(api, server.url) as llm:
            session = asked()
            turn = session.text_turn(llm, tools=Tools)
            if streamed:
                outcome = await read(turn)
            else:
                outcome = await turn.collect()
        kinds.append(type(outcome))
        if isinstance(outcome, NeedsTools):
            outcome.round.commit(session, [call.complete("fine") for call in outcome.round.calls])
        dumps.append(comparable(session.dump()))
    assert kinds[0] is kinds[1]
    assert dumps[0] == dumps[1]


@every_api
async def test_a_failure_at_the_start(api: Api) -> None:
    session = asked()
    before = session.dump()
    async with (
        serve([Failure(429, "Slow down.", headers={"retry-after": "3"})]) as server,
        model_at(api, server.url) as llm,
    ):
        stream = session.text_turn(llm, tools=Tools).stream()
        with pytest.raises(AdapterError, match="Slow down") as caught:
            async with stream:
                pytest.fail("it was entered")
    assert (caught.value.status, caught.value.retryable, caught.value.retry_after) == (
        429,
        True,
        3.0,
    )
    assert caught.value.partial is None
    assert session.dump() == before
    with pytest.raises(RoundClosedError):
        _ = stream.outcome


@every_api
def test_a_failure_at_the_start_without_an_event_loop(api: Api) -> None:
    session = asked()
    before = session.dump()
    with (
        serve([Failure(500, "Broken.")]) as server,
        sync_model_at(api, server.url) as llm,
        pytest.raises(AdapterError, match=r"Broken\."),
        session.text_turn(llm, tools=Tools).stream_sync(),
    ):
        pytest.fail("it was entered")
    only_its_cost_changed(session, before)


# --- a host that holds the rest of its answer back ------------------------------------------------


class Host:
    """Sends the beginning of a streamed answer, then waits until the other side has closed the
    connection.

    Attributes:
        url: Where it is.
        left: Set when the client has closed the connection.
    """

    def __init__(self, api: Api, *, hang_up: bool) -> None:
        self._body = beginning(api)
        self._kind = serving(api, "server").stream_type
        self._hang_up = hang_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.left = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Host:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.close()
        self._thread.join(10)

    def _run(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(60)
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            head, _, body = received.partition(b"\r\n\r\n")
            (length,) = [
                int(line[15:])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ]
            while len(body) < length:
                body += connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: " + self._kind.encode() + b"\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
                + f"{len(self._body):x}\r\n".encode()
                + self._body
                + b"\r\n"
            )
            if self._hang_up:
                return
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
            self.left.set()


def beginning(api: Api) -> bytes:
    """The first half of the streamed answer: its text, and the first call at least in part."""
    events = render_stream(CALLS, api, number=1, model="m")
    write_event = serving(api, "server")(api, {}).write_event
    return b"".join([write_event(event) for event in events[: len(events) // 2 + 2]])


@pytest.mark.slow
@every_api
async def test_leaving_the_block_early_closes_the_connection_S3(api: Api) -> None:
    gc.collect()
    gc.freeze()
    session = asked()
    before = session.dump()
    with Host(api, hang_up=False) as host:
        async with model_at(api, host.url) as llm:
            async with session.text_turn(llm, tools=Tools).stream() as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        break
                assert not host.left.is_set()
            # The client is still open: it was the stream that closed its connection.
            if api == "gemini_generate_content":
                # The SDK's async generators hold each other; collected, the loop closes them one
                # by one. Without what other tests have left, a collection is quick.
                for _ in range(200):
                    if host.left.is_set():
                        break
                    gc.collect()
                    await asyncio.sleep(0.01)
            assert await asyncio.to_thread(host.left.wait, 5)
    with pytest.raises(RoundClosedError, match="not read to its end"):
        _ = stream.outcome
    only_its_cost_changed(session, before)


@every_api
def test_leaving_the_block_early_closes_the_connection_without_an_event_loop(api: Api) -> None:
    session = asked()
    before = session.dump()
    with Host(api, hang_up=False) as host, sync_model_at(api, host.url) as llm:
        with pytest.raises(KeyError):
            fail_at_the_first_text(session.text_turn(llm, tools=Tools))
        assert host.left.wait(5)
    only_its_cost_changed(session, before)


@every_api
async def test_a_connection_that_is_lost_in_the_middle_S3(api: Api) -> None:
    session = asked()
    before = session.dump()
    with Host(api, hang_up=True) as host:
        async with model_at(api, host.url) as llm:
            with pytest.raises(AdapterError) as caught:
                await read(session.text_turn(llm, tools=Tools))
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.text == CALLS.text
    assert caught.value.partial.cut
    only_its_cost_changed(session, before)
