"""A loopback server that speaks every API of the table, plays a script, and refuses what the real
ones refuse.

Needs the `testing` extra (starlette and uvicorn).
"""

# What is hard: the server runs in a thread of its own, so that it serves sync and async clients
# alike, and a script's function may wait for another request to be answered. So a function of the
# script is called in a pool of threads, and the one lock, which guards the script, the requests and
# what each API remembers, is never held while it runs, nor while bytes are read or sent. A request
# takes the lock up to four times: for its number, to be checked, to be remembered with its answer,
# and to be recorded.

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from lutumpy.apis import Api, api_row, by_name, serves, serving
from lutumpy.errors import Problem
from lutumpy.plain.safe_text import safe_str
from lutumpy.plain.values import dataclass
from lutumpy.testing.api_server import CREATE, ApiServer, Refused
from lutumpy.testing.batches import CREATE_BATCH, BatchAnswer, TakesBatches, read_answer
from lutumpy.testing.host_place import HostPlace, places_of
from lutumpy.testing.own_words import OwnWords
from lutumpy.testing.replies import Failure, Reply, read_script

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from lutumpy.testing.exchange import Answer, Exchange
    from lutumpy.testing.paths import locate, split_host
except ImportError as _error:
    raise ImportError(
        "lutumpy.testing.wire needs starlette and uvicorn; install them with: "
        'python -m pip install ".[testing]" (in a clone)'
    ) from _error

__all__ = ["Answer", "Entry", "HostUrls", "WireRequest", "WireServer", "serve"]

Entry = Answer | Callable[[Api, dict[str, Any]], Answer]
"""One entry of a script: an answer, or a function that is asked for it with the API and the
request's body.
"""

START_SECONDS = 10.0
STOP_SECONDS = 10.0
SHUTDOWN_SECONDS = 2.0
"""How long answers that are being sent may still take."""
TICKS_A_SECOND = 10
"""In what uvicorn counts the time by which it renews the header `date`."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request that the server got, and what became of it.

    Attributes:
        api: The API whose path it is. What OpenAI has at the path of no API, as its models, counts
            as Chat Completions.
        path: The URL's path.
        headers: Headers, names in lower case.
        body: The parsed body; None if it wasn't JSON, or there was none.
        status: Status of the answer.
        problems: Everything that the rules found, doubtful and discouraged things included.
        method: The HTTP method.
        host: The name of the host that was asked, one of `serve(hosts=)`; empty for the vendor.
    """

    api: Api
    path: str
    headers: Mapping[str, str]
    body: Any
    status: int
    problems: tuple[Problem, ...] = ()
    method: str = "POST"
    host: str = ""


@dataclass(frozen=True, slots=True)
class HostUrls:
    """Where the server stands for one host.

    Attributes:
        url: The address, without what base URLs of a vendor end with.
    """

    url: str

    @property
    def openai_base_url(self) -> str:
        """`base_url` for an OpenAI client."""
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """`base_url` for an Anthropic client."""
        return self.url


def serve(
    script: Iterable[Entry] | None = (),
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    new_account: bool = False,
    hosts: Iterable[str] = (),
) -> WireServer:
    """A server to be entered: `with serve([...]) as server:` or `async with`.

    Args:
        script: Answers to the valid requests, in order; a request beyond the last gets a 500 that
            says so. With None every valid request is answered with `Reply(text="OK")`.
        host: Address to listen on.
        port: Port to listen on, 0 for a free one.
        new_account: Whether a model that refuses reasoning of another conversation for new accounts
            alone refuses it here; those that do for everybody always do.
        hosts: Other hosts than the vendors that the server stands for, each at `server.at(name)`:
            names or addresses, as `lutumpy.doctor.host_name` takes them.

    Raises:
        OSError: On entering, if the port is taken.
        ValueError: A host is neither a known name nor an address.
    """
    return WireServer(script, host=host, port=port, new_account=new_account, hosts=hosts)


class WireServer:
    """The running server: where it is, what it was asked, and what it still has to say. Safe to use
    from any thread.
    """

    def __init__(
        self,
        script: Iterable[Entry] | None = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        new_account: bool = False,
        hosts: Iterable[str] = (),
    ) -> None:
        self._host = host
        self._port = port
        self._script: deque[Entry] = read_script(() if script is None else script)
        self._endless = script is None
        self._lock = threading.Lock()
        self._own_words = OwnWords()
        self._requests: list[WireRequest] = []
        self._number = 0
        # By the name of the host; the vendors' own have none.
        self._apis: dict[str, list[ApiServer]] = {
            place.name: _make_servers(place, new_account) for place in places_of([*hosts])
        }
        self._server: _WireUvicorn | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        where = "not running" if self._thread is None else f"at {self.url}"
        return f"<WireServer {where}, {len(self._requests)} requests>"

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, while the server runs."""
        if self._thread is None:
            raise RuntimeError("the server runs only inside its `with` block")
        return f"http://{self._host}:{self._port}"

    @property
    def openai_base_url(self) -> str:
        """`base_url` for an OpenAI client."""
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """`base_url` for an Anthropic client."""
        return self.url

    def at(self, host: str) -> HostUrls:
        """Where it stands for a host: one of `hosts`, by the name that was given there.

        Raises:
            KeyError: It stands for no such host.
        """
        if not host or host not in self._apis:
            raise KeyError(f"{host!r} is none of the hosts of this server")
        return HostUrls(f"{self.url}/at/{host}")

    @property
    def requests(self) -> list[WireRequest]:
        """The requests so far, refused ones too, in the order of their answers."""
        with self._lock:
            return list(self._requests)

    @property
    def remaining(self) -> int:
        """How many entries of the script are still to be played."""
        with self._lock:
            return len(self._script)

    def play(self, *entries: Entry) -> None:
        """Add entries to the end of the script."""
        with self._lock:
            self._script.extend(entries)

    def __enter__(self) -> WireServer:
        if self._thread is not None:
            raise RuntimeError("the server runs already")
        listener = socket.create_server((self._host, self._port))
        # Accepted connections inherit it; without, an answer's head and body wait 40 ms for each
        # other.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            _app(self._answer),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
        )
        server = self._server = _WireUvicorn(config)
        self._thread = threading.Thread(
            target=server.run, args=([listener],), name="lutumpy-wire", daemon=True
        )
        self._thread.start()
        if not server.wait_until_ready(START_SECONDS):
            self._stop()
            raise RuntimeError(f"the test server did not start within {START_SECONDS:.0f} seconds")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    async def __aenter__(self) -> WireServer:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        self._server = self._thread = None

    # --- Answering, in the thread of the server ---------------------------------------------------

    async def _answer(self, request: Request) -> Response:
        with self._lock:
            self._number += 1
            number = self._number
        host, path = split_host(request.scope["path"], self._apis)
        target = locate(request.method, path, request.headers, self._apis[host])
        exchange = Exchange(target, number, request)
        problems: list[Problem] = []
        data = await request.body()
        body, is_json = _parse_body(data)
        if not is_json and data:
            kind = request.headers.get("content-type", "")
            body = target.server.read_form(kind, data)
            is_json = body is not None
        response = exchange.refuse_target() or exchange.refuse_headers()
        if response is None and not is_json and (data or target.needs_body):
            response = exchange.refuse_body()
        if response is None and target.operation == CREATE:
            response, problems = await self._answer_as_model(exchange, body)
        elif response is None and target.operation == CREATE_BATCH:
            response, problems = await self._answer_batch(exchange, body, host)
        elif response is None:
            with self._lock:
                response, problems = exchange.respond_from_memory(body)
        record = WireRequest(
            target.server.api,
            request.url.path,
            dict(request.headers),
            body,
            response.status_code,
            tuple(problems),
            request.method,
            host,
        )
        with self._lock:
            self._requests.append(record)
        return response

    async def _answer_as_model(
        self, exchange: Exchange, body: Any
    ) -> tuple[Response, list[Problem]]:
        """The answer to a request for a model's answer, and the problems of the request."""
        server = exchange.server
        if isinstance(body, dict):
            server.complete_body(body, exchange.target.ids)
        with self._lock:
            problems = server.check_at_host(body, headers=exchange.request.headers)
            is_excused = self._own_words.excuse(problems)
        response = None if is_excused else exchange.refuse_problems(problems)
        if response is not None:
            return response, problems
        try:
            answer = await self._next(server.api, body)
            with self._lock:
                self._own_words.note(answer)
            response, rendered, events = exchange.respond(answer, body)
            if rendered is not None:
                with self._lock:
                    server.remember(body, rendered, events)
            return response, problems
        finally:
            with self._lock:
                server.release(body)

    async def _answer_batch(
        self, exchange: Exchange, body: Any, host: str
    ) -> tuple[Response, list[Problem]]:
        """The answer to a batch of requests, each of which is answered as it would be alone."""
        server: Any = exchange.server
        batches: TakesBatches = server
        request = exchange.request
        try:
            with self._lock:
                entries = batches.read_batch(body)
        except Refused as refused:
            response = exchange.refuse_problems(refused.problems)
            assert response is not None, "what is raised is a refusal"
            return response, refused.problems
        answers: list[BatchAnswer] = []
        problems: list[Problem] = []
        for entry in entries:
            with self._lock:
                self._number += 1
                number = self._number
            target = locate("POST", entry.path, request.headers, self._apis[host])
            one = Exchange(target, number, request)
            response, found = await self._answer_as_model(one, entry.body)
            problems += found
            answered = read_answer(bytes(response.body))
            answers.append(BatchAnswer(entry.custom_id, number, response.status_code, answered))
        with self._lock:
            batch = batches.keep_batch(body, answers, str(request.url))
        return exchange.send_json(batch), problems

    async def _next(self, api: Api, body: dict[str, Any]) -> Answer:
        with self._lock:
            if self._script:
                entry: Entry = self._script.popleft()
            # Without a script any answer will do; with one, running out of answers is a mistake.
            elif self._endless:
                entry = Reply(text="OK")
            else:
                return _stop_retrying("The script has no answer left for this request.")
        if not callable(entry):
            return entry
        try:
            return await run_in_threadpool(entry, api, body)
        except Exception as error:
            return _stop_retrying(
                f"The script's function raised {type(error).__name__}: {safe_str(error)}"
            )


# The SDKs would ask again, and the test would fail later and elsewhere.
def _stop_retrying(message: str) -> Failure:
    return Failure(500, message, headers={"x-should-retry": "false"})


class _WireUvicorn(uvicorn.Server):
    """uvicorn's server, which a test that has it for itself doesn't wait for.

    uvicorn looks every tenth of a second whether it is to stop, and gives its connections another
    tenth to close. This one is woken, and is done when they are closed.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    def wait_until_ready(self, seconds: float) -> bool:
        """Whether it is listening by then."""
        return self._ready.wait(seconds)

    def stop(self) -> None:
        """Let it end, from any thread; whoever waits for its thread knows when it has."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # its event loop has ended already
                self._loop.call_soon_threadsafe(self._woken.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._ready.set()

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += TICKS_A_SECOND
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._woken.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in [*self.servers, *(sockets or ())]:
            listener.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        last = loop.time() + SHUTDOWN_SECONDS
        # uvicorn tells nobody when they are closed.
        while (state.connections or state.tasks) and loop.time() < last:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        for task in state.tasks:
            task.cancel()


def _make_servers(place: HostPlace, new_account: bool) -> list[ApiServer]:
    """One for each API whose answers can be rendered; those of one maker share the names of its
    models.
    """
    models: dict[str, dict[str, None]] = {}
    servers: list[ApiServer] = []
    for api in by_name("rendering"):
        kind: type[ApiServer] = serving(api, "server") if serves(api, "server") else ApiServer
        server = kind(api, models.setdefault(api_row(api).family, {}))
        server.place, server.is_new_account = place, new_account
        servers.append(server)
    return servers


def _parse_body(data: bytes) -> tuple[Any, bool]:
    """The body as JSON, and whether it is JSON at all."""
    try:
        return json.loads(data), True
    except (ValueError, RecursionError):
        return None, False


def _app(answer: Callable[[Request], Any]) -> Starlette:
    async def endpoint(request: Request) -> Response:
        response: Response = await answer(request)
        return response

    return Starlette(routes=[Route("/{path:path}", endpoint, methods=METHODS)])
