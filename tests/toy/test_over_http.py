"""An adapter that derives from `HttpModel` is a model: it asks again, keeps its connection, and
reads streams of lines. Everything it imports is public.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from toy_api import Toy

from lutumpy import UNSET, AdapterError
from lutumpy.adapters.writing import HttpModel, StreamFormat
from lutumpy.models import Transcript, TurnOptions
from lutumpy.streaming import TextDelta

ANSWER = {"bot": {"text": "Twelve km"}, "usage": [3, 4]}
EVENTS = [{"text": "Twelve "}, {"text": "km"}, {"end": {"usage": [3, 4]}}]
OPTIONS = TurnOptions(None, None, {})


class ToyOverHttp(HttpModel):
    """The toy API at an address."""

    api = "toy"
    path = "/talk"
    stream_format: ClassVar[StreamFormat] = "lines"
    request = staticmethod(Toy.request)
    response = staticmethod(Toy.response)
    stream_decoder = staticmethod(Toy.stream_decoder)


class Server(ThreadingHTTPServer):
    """Answers with the statuses that it is given, and then with 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        """The connection and the body of each request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server.asked.append((self.client_address, {"path": self.path, **body}))
        status = server.statuses.pop(0) if server.statuses else 200
        answer = json.dumps(ANSWER if status == 200 else {"error": "busy"})
        if body.get("stream"):
            answer = "".join([json.dumps(event) + "\n" for event in EVENTS])
        self.send_response(status)
        self.send_header("retry-after-ms", "1")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written to the terminal."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        thread = Thread(target=started.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("How far is it?")
    return transcript


def test_a_busy_server_is_asked_again_over_the_same_connection(toy: str, server: Server) -> None:
    server.statuses = [503, 429]
    model = ToyOverHttp("t-1", base_url=server.url)
    turn = model.respond_sync(asked(), None, OPTIONS)
    model.respond_sync(asked(), None, OPTIONS)
    model.close()
    assert turn.text == "Twelve km"
    talk = [{"role": "user", "text": "How far is it?"}]
    assert [body for _, body in server.asked] == [
        {"path": "/talk", "model": "t-1", "talk": talk}
    ] * 4
    assert len({connection for connection, _ in server.asked}) == 1


def test_a_server_that_stays_busy_is_an_error_that_may_be_tried_later(
    toy: str, server: Server
) -> None:
    server.statuses = [503, 503]
    model = ToyOverHttp("t-1", base_url=server.url, max_retries=1)
    with pytest.raises(AdapterError, match="busy") as failed:
        model.respond_sync(asked(), None, OPTIONS)
    model.close()
    assert (failed.value.status, failed.value.retryable, len(server.asked)) == (503, True, 2)


def test_a_stream_of_lines_is_the_turn_of_its_pieces(toy: str, server: Server) -> None:
    model = ToyOverHttp("t-1", base_url=server.url)
    decoder = model.stream_decoder()
    with model.open_stream_sync(asked(), None, OPTIONS) as chunks:
        deltas = [delta for chunk in chunks for delta in decoder.feed(chunk)]
    turn = decoder.finish()
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    model.close()
    assert (texts, turn.text) == (["Twelve ", "km"], "Twelve km")
    assert server.asked[0][1]["stream"] is True


def test_the_same_with_an_event_loop(toy: str, server: Server) -> None:
    async def ask() -> str:
        model = ToyOverHttp("t-1", base_url=server.url)
        turn = await model.respond(asked(), None, OPTIONS)
        await model.aclose()
        return turn.text

    server.statuses = [500]
    assert (asyncio.run(ask()), len(server.asked)) == ("Twelve km", 2)


def test_a_parameter_is_taken_away_OR8(toy: str, server: Server) -> None:
    model = ToyOverHttp("t-1", base_url=server.url)
    model.respond_sync(asked(), None, TurnOptions(None, None, {"talk": UNSET}))
    model.close()
    assert [body for _, body in server.asked] == [{"path": "/talk", "model": "t-1"}]
