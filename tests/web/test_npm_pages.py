"""The recipe's pages, with npm's packages, in headless Chromium: the session `web_npm` of nox.

The pages fetch their packages from the network. Here their scripts are bundled with what npm
installed, and nothing else of them is changed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium import CHROMIUM, FLAGS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from web_toolkit import Answering

import lutumpy.durable.events
from lutumpy import Hold, RunNormally, ToolDecision, Toolset, tool_fn
from lutumpy.durable import DurableLoop, MemoryStore
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply
from lutumpy.web.starlette import chat_routes

FOLDER = os.environ.get("LUTUMPY_NPM_WEB", "")
if not FOLDER or CHROMIUM is None:
    pytest.skip("there is no npm folder, or no chromium", allow_module_level=True)
playwright: Any = pytest.importorskip("playwright.sync_api")

RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "chat_page.md"
REACT, AG_UI = [
    part.split("```")[0] for part in RECIPE.read_text(encoding="utf-8").split("```html\n")[1:]
]
SECONDS = 30.0
PAUSE = 0.15
"""Seconds between two pieces of an answer."""


def bundled(page: str, name: str) -> tuple[str, str]:
    """A page without its import map, whose script is a file; and that file."""
    head, _, rest = page.partition('<script type="importmap">')
    script = rest.partition('<script type="module">')[2].partition("</script>")[0]
    source = Path(FOLDER) / f"{name}.entry.mjs"
    source.write_text(script, encoding="utf-8")
    built = Path(FOLDER) / f"{name}.built.mjs"
    (esbuild,) = (Path(FOLDER) / "node_modules" / "@esbuild").glob("*/bin/esbuild")
    command = [str(esbuild), str(source), "--bundle"]
    define = '--define:process.env.NODE_ENV="production"'
    subprocess.run(
        [*command, "--format=esm", define, "--log-level=error", f"--outfile={built}"], check=True
    )
    return f'{head}<script type="module" src="/app.js"></script>', built.read_text("utf-8")


class SlowStream:
    """A stream whose events come one by one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def __aenter__(self) -> AsyncIterator[Any]:
        return self._slowly(await self.stream.__aenter__())

    async def _slowly(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            await asyncio.sleep(PAUSE)
            yield event

    async def __aexit__(self, *exc: object) -> None:
        await self.stream.__aexit__(*exc)


class Slow(Answering):
    def open_stream(self, *args: Any) -> Any:
        return SlowStream(super().open_stream(*args))


class Desk:
    """A server of a chat, and what it paid."""

    def __init__(self, page: str, script: Sequence[Reply], *, is_slow: bool = False) -> None:
        self.paid: list[int] = []
        self.looked = 0

        @tool_fn(effect="once")
        async def refund(order: str, amount: int) -> str:
            """Give money back."""
            self.paid.append(amount)
            return f"{amount} for {order}"

        @tool_fn(effect="read")
        async def look(word: str) -> str:
            """Look a word up, which takes its time."""
            self.looked += 1
            await asyncio.sleep(1.0)
            return f"{word} is there"

        def ask_about_money(call: BaseToolCall) -> ToolDecision:
            return Hold("money") if call.metadata.name == "refund" else RunNormally()

        async def who(request: Request, scope: str) -> str:
            return "ann"

        async def show(request: Request) -> Response:
            return HTMLResponse(html)

        async def app_js(request: Request) -> Response:
            return Response(built, media_type="text/javascript")

        html, built = bundled(page, "react" if page is REACT else "ag_ui")
        tools: Any = type("Tools", (Toolset,), {}, tools=[refund, look])
        store = MemoryStore()
        loop = DurableLoop(
            store,
            (Slow if is_slow else Answering)(script),
            tools=tools,
            dispatch=Dispatcher(tools),
            hooks=ask_about_money,
            events=True,
        )
        pages = [Route("/", show), Route("/app.js", app_js)]
        self.app = Starlette(routes=[*pages, *chat_routes(loop, store, who=who)])

    @contextmanager
    def serve(self) -> Iterator[str]:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(self.app, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/#chat1"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(SECONDS)
            listener.close()


@pytest.fixture(autouse=True)
def _each_piece_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lutumpy.durable.events, "_SECONDS_BETWEEN_WRITES", 0.0)


@pytest.fixture
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def text_of(page: Any) -> str:
    text: str = page.inner_text("main")
    return text


def until(condition: Any, say: Any = None) -> None:
    for _ in range(int(SECONDS / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"it never came: {say() if say else ''}")


def open_page(browser: Any, address: str) -> Any:
    page = browser.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(address)
    return page


def send(page: Any, text: str) -> None:
    page.wait_for_selector("form input:enabled", timeout=SECONDS * 1000)
    page.fill("form input", text)
    page.click("form button")


def has(page: Any, *texts: str) -> None:
    until(lambda: all(text in text_of(page) for text in texts), lambda: text_of(page))


MONEY = Call("refund", {"order": "A-1", "amount": 200}, id="call_1")
HELD = (Reply(text="Let me see.", calls=[MONEY]), Reply(text="You get 200 back."))
LONG = (
    Reply(text="First I look.", calls=[Call("look", {"word": "it"}, id="call_1")]),
    Reply(text="One two three four five six seven eight nine ten."),
)


@pytest.mark.parametrize("page", [REACT, AG_UI], ids=["react", "ag_ui"])
def test_two_tabs_approve_a_third_opens_later_and_it_is_paid_once(page: str, browser: Any) -> None:
    desk = Desk(page, HELD)
    with desk.serve() as address:
        first = open_page(browser, address)
        send(first, "Money back!")
        first.wait_for_selector("p button", timeout=SECONDS * 1000)
        second = open_page(browser, address)
        second.wait_for_selector("p button", timeout=SECONDS * 1000)
        assert not first.is_enabled("form input")
        first.click("p button")
        second.click("p button")
        for each in (first, second):
            has(each, "Money back!", "Let me see.", "You get 200 back.")
        third = open_page(browser, address)
        has(third, "Money back!", "Let me see.", "You get 200 back.")
        assert desk.paid == [200]
        tabs = (first, second, third)
        # The tab that came later says that its request is done after it shows what was said.
        until(lambda: len({*map(text_of, tabs)}) == 1, lambda: [*map(text_of, tabs)])
        send(first, "And again!")
        first.wait_for_selector("p button", timeout=SECONDS * 1000)
        first.click("p button >> nth=1")
        until(lambda: text_of(first).count("You get 200 back.") == 2)
        assert desk.paid == [200]
        assert first.problems == second.problems == third.problems == []


@pytest.mark.parametrize("page", [REACT, AG_UI], ids=["react", "ag_ui"])
def test_a_page_that_is_reloaded_while_it_streams_goes_on(page: str, browser: Any) -> None:
    desk = Desk(page, LONG, is_slow=True)
    with desk.serve() as address:
        first = open_page(browser, address)
        send(first, "Go!")
        has(first, "First I look.")
        for _ in range(4):
            time.sleep(0.3)
            first.reload()
            has(first, "Go!", "First I look.")
        has(first, "seven eight nine ten.")
        assert text_of(first).count("One two three") == 1
        assert desk.looked == 1
        assert first.problems == []


def test_a_page_that_was_offline_has_what_it_missed(browser: Any) -> None:
    desk = Desk(REACT, LONG, is_slow=True)
    with desk.serve() as address:
        context = browser.new_context()
        first = open_page(context, address)
        send(first, "Go!")
        has(first, "First I look.")
        context.set_offline(True)
        time.sleep(1.0)
        context.set_offline(False)
        has(first, "seven eight nine ten.")
        until(lambda: first.inner_text("i") == "ready")
        assert text_of(first).count("One two three") == 1
        assert first.problems == []


def test_stop_ends_the_run_and_the_chat_goes_on_behind_it(browser: Any) -> None:
    desk = Desk(REACT, LONG, is_slow=True)
    with desk.serve() as address:
        first = open_page(browser, address)
        send(first, "Go!")
        has(first, "First I look.", "look")
        until(lambda: desk.looked == 1)
        first.click("#stop")
        until(lambda: first.inner_text("i") == "ready")
        time.sleep(1.5)
        assert "One two" not in text_of(first)
        send(first, "Go on!")
        has(first, "Go on!", "nine ten.")
        assert first.problems == []
