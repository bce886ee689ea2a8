"""One adapter in several event loops: nothing is printed, no descriptor stays open, and a user's
client is the user's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.sdk_clients import OwnClients
from lutumpy.models import TurnOptions

REPLIES = {
    "/chat/completions": b'{"id":"c","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"hi"}}]}',
    "/responses": b'{"id":"r","status":"completed","output":[{"type":"message","role":"assistant",'
    b'"content":[{"type":"output_text","text":"hi"}]}]}',
    "/v1/messages": b'{"id":"m","type":"message","stop_reason":"end_turn",'
    b'"content":[{"type":"text","text":"hi"}]}',
}
ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]
DESCRIPTORS = Path("/proc/self/fd")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        reply = REPLIES[self.path]
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that keeps connections open, as the providers' do."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("hello")
    return transcript


async def ask(llm: Any) -> None:
    assert (await llm.respond(asked(), None, TurnOptions())).text == "hi"


def open_sockets() -> int:
    gc.collect()
    found = 0
    for entry in DESCRIPTORS.iterdir():
        try:
            found += os.readlink(entry).startswith("socket:")
        except FileNotFoundError:
            continue
    return found


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("make", ADAPTERS, ids=lambda make: make.__name__)
def test_several_event_loops_leave_nothing_open(make: Callable[..., Any], url: str) -> None:
    llm = make("m", base_url=url, api_key="k")
    before = open_sockets()
    for _ in range(4):
        asyncio.run(ask(llm))
    # Our side of each connection is closed by now; the server, which is in this process, closes its
    # own when it notices.
    noticed = threading.Event()
    for _ in range(200):
        if open_sockets() <= before:
            break
        noticed.wait(0.02)
    assert open_sockets() <= before


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_several_event_loops_print_nothing(sdk: str, url: str) -> None:
    """Those that `asyncio.run` ends, and those that are only closed."""
    model = "OpenAIChat" if sdk == "openai" else "AnthropicMessages"
    code = f"""
import asyncio, gc
from lutumpy import Session
from lutumpy.adapters.{sdk} import {model}

async def main(llm):
    session = Session()
    session.push_user("hello")
    await session.text_turn(llm).collect()

def run(llm):
    asyncio.run(main(llm))

def close(llm):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(llm))
    loop.close()

for end in (run, close):
    llm = {model}("m", base_url={url!r}, api_key="k")
    for _ in range(4):
        end(llm)
        gc.collect()
    del llm
    gc.collect()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_adapter_that_nobody_holds_takes_its_client_with_it(url: str) -> None:
    clients: list[AsyncOpenAI] = []

    async def main() -> None:
        llm = OpenAIChat("m", base_url=url, api_key="k")
        await ask(llm)
        clients.append(
            await llm._transport._async_client_here()
        )  # the client is private, and closing it is what this is about
        del llm
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert clients[0].is_closed()

    asyncio.run(main())


def test_event_loops_in_several_threads_have_a_client_each(url: str) -> None:
    llm = OpenAIChat("m", base_url=url, api_key="k")
    clients: list[Any] = []
    all_here = threading.Barrier(3)

    async def main() -> None:
        await ask(llm)
        clients.append(await llm._transport._async_client_here())
        all_here.wait(10)
        await ask(llm)
        clients.append(await llm._transport._async_client_here())

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clients) == 6
    assert len(set(map(id, clients))) == 3
    assert all(client.is_closed() for client in clients)


def test_a_client_is_closed_with_the_loop_of_trio_too() -> None:
    made: list[Client] = []

    def make() -> Client:
        made.append(Client())
        return made[-1]

    clients = OwnClients(make)

    async def main() -> None:
        assert await clients.current() is await clients.current()

    trio.run(main)
    trio.run(main)
    assert [client.closed for client in made] == [1, 1]


class Client:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1
        raise OSError("the other side has gone")


def test_a_connection_that_can_not_be_closed_harms_nothing() -> None:
    clients = OwnClients(Client)
    given: list[Client] = []

    async def main() -> None:
        given.append(await clients.current())
        await clients.aclose()
        await clients.aclose()
        given.append(await clients.current())

    asyncio.run(main())
    assert [client.closed for client in given] == [1, 1]
    assert given[0] is not given[1]


@pytest.mark.parametrize(
    ("make", "client"),
    [
        (OpenAIChat, AsyncOpenAI),
        (OpenAIResponses, AsyncOpenAI),
        (AnthropicMessages, AsyncAnthropic),
    ],
)
def test_a_client_that_the_user_gave_is_the_users(make: Any, client: Any, url: str) -> None:
    theirs = client(base_url=url, api_key="k")
    llm = make("m", theirs)

    async def main() -> None:
        await ask(llm)

    async def last() -> None:
        await llm.aclose()
        assert not theirs.is_closed()
        await theirs.close()

    async def both() -> None:
        await main()
        await last()

    asyncio.run(both())
    kept = client(base_url=url, api_key="k", default_headers={"connection": "close"})
    other = make("m", kept)
    for _ in range(2):
        asyncio.run(ask(other))
        assert not kept.is_closed()
    asyncio.run(other.aclose())
    assert not kept.is_closed()
    asyncio.run(kept.close())


@pytest.mark.parametrize(("make", "client"), [(OpenAIChat, OpenAI), (AnthropicMessages, Anthropic)])
def test_a_sync_client_serves_with_and_without_event_loops(
    make: Any, client: Any, url: str
) -> None:
    def ask_sync(llm: Any) -> None:
        assert llm.respond_sync(asked(), None, TurnOptions()).text == "hi"

    async def main(llm: Any) -> None:
        ask_sync(llm)

    own = make("m", base_url=url, api_key="k")
    with client(base_url=url, api_key="k") as theirs:
        given = make("m", theirs)
        for llm in (own, given):
            asyncio.run(main(llm))
            asyncio.run(main(llm))
            ask_sync(llm)
        given.close()
        assert not theirs.is_closed()
    own.close()
