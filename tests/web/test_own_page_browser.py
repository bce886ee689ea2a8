"""The page without a framework that the site shows, in headless Chromium.

Skipped where there is no Chromium or no playwright, unless `LUTUMPY_NEED_BROWSER=1` says that there
have to be.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium import CHROMIUM, FLAGS, need_browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from lutumpy import Hold, Toolset, tool_fn
from lutumpy.durable import DurableLoop, MemoryStore
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.web import Show
from lutumpy.web.starlette import chat_routes

need_browser()

from playwright.sync_api import sync_playwright  # noqa: E402

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "front_ends.md").read_text(encoding="utf-8").split("```html\n")[1]
SECONDS = 60.0
HOSTILE = "<img src=x onerror=window.hacked=1>"


@tool_fn(effect="once")
def refund(order: str, amount: int) -> str:
    """Give money back."""
    return f"{amount} for {order}"


class Desk(Toolset, tools=[refund]):
    """What the model can do."""


async def who(request: Request, scope: str) -> str:
    return "ann"


async def show_page(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.split("```")[0])


@pytest.fixture
def address() -> Iterator[str]:
    """The page and the routes of its chat, served in a thread."""
    wanted = Call("refund", {"order": "A-1", "amount": 200}, id="call_1")
    replies = [Reply(text="Let me see.", calls=[wanted]), Reply(text=f"Done. {HOSTILE}")]
    store = MemoryStore()
    loop = DurableLoop(
        store, ScriptedModel(replies), tools=Desk, hooks=lambda call: Hold("money"), events=True
    )
    routes = chat_routes(loop, store, who=who, show=Show(outputs=True))
    app = Starlette(routes=[Route("/", show_page), *routes])
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/#chat1"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(SECONDS)
        listener.close()


def until(condition: Any) -> None:
    for _ in range(int(SECONDS / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def test_an_answer_is_what_it_says_when_it_is_complete_whatever_came_before_W4(
    address: str,
) -> None:
    """The page came again and missed pieces; the answer was lost; the run failed in it."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.goto(address)

        def shown(*events: tuple[str, Any]) -> list[str]:
            for name, values in events:
                page.evaluate(f"(values) => void acts.{name}(values)", values)
            script = """() => {
                const texts = [...main.children].map((each) => each.textContent);
                main.textContent = "";
                return texts;
            }"""
            found: list[str] = page.evaluate(script)
            return found

        begun = ("TextDelta", {"text": "One two"})
        blocks = [{"block": "text", "text": "One two "}, {"block": "call", "call_id": "a"}]
        whole = ("Completed", {"blocks": [*blocks, {"block": "text", "text": "three."}]})
        asked = ("MessagesTaken", {"messages": [{"text": "Go on."}]})
        again = ("Restarted", {"round": 1})
        assert shown(begun, whole) == ["One two three."]
        assert shown(whole) == ["One two three."]
        assert shown(begun, again, ("TextDelta", {"text": "Two"})) == ["Two"]
        assert shown(begun, asked, whole) == ["You: Go on.", "One two three."]
        assert shown(whole, ("Completed", {"blocks": blocks[1:]})) == ["One two three."]
        assert shown(begun, asked, whole) == ["One two", "You: Go on.", "One two three."]
        browser.close()


def test_a_chat_is_streamed_approved_and_there_for_who_comes_later(address: str) -> None:
    asked = 'refund {"order":"A-1","amount":200} YesNo'
    whole = ["You: Money back!", "Let me see.", asked, "refund: 200 for A-1", f"Done. {HOSTILE}"]
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def lines(page: Any) -> list[str]:
            found: list[str] = page.eval_on_selector_all("p", "all => all.map(p => p.textContent)")
            return found

        first = browser.new_page()
        first.goto(address)
        first.fill("input", "Money back!")
        first.click("form button")
        first.wait_for_selector("p button", timeout=SECONDS * 1000)
        assert lines(first) == whole[:3]
        # A second tab is shown the same, and its decision is shown in the first.
        second = browser.new_page()
        second.goto(address)
        second.wait_for_selector("p button", timeout=SECONDS * 1000)
        assert lines(second) == whole[:3]
        second.click("p button")  # the first one is "Yes"
        for page in (first, second):
            until(lambda page=page: lines(page) == whole)
            assert page.evaluate("window.hacked") is None
        browser.close()
