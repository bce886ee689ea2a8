"""Conversations to show, good and broken, and a reader of pages that knows what may be in one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

TAGS = frozenset(
    "html head meta title link style body a header h1 h2 h3 h4 p ul ol li strong div label span "
    "input button main section "
    "details summary pre code b figure figcaption img svg g rect line table caption thead tbody tr "
    "th td del ins nav "
    "article footer kbd script".split()
)
VOID = frozenset("meta link input img br line rect".split())


class Page(HTMLParser):
    """A page taken apart; anything that no template writes is an error.

    Attributes:
        text: The text of the body, without the script.
        tags: The names of all start tags.
        attributes: Tag, attribute and value of all attributes.
        texts: The text of each element that has an id.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.pieces: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.markup = 0
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"never closed: {self._open}"
        self.text = "".join(self.pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.markup += 1
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)
            self.markup -= 1

    def handle_endtag(self, tag: str) -> None:
        self.markup += 1
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_decl(self, decl: str) -> None:
        assert decl == "doctype html"
        self.markup += 1

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data!r}")

    def handle_data(self, data: str) -> None:
        inside = [tag for tag, _ in self._open]
        if "style" in inside or "script" in inside:
            self.markup += data.count("<")
            return
        self.pieces.append(data)
        for _, name in self._open:
            if name is not None:
                self.texts.setdefault(name, []).append(data)

    def of(self, anchor: str) -> str:
        """The text of the element with an id."""
        return "".join(self.texts[anchor])


def check_safe(html: str) -> Page:
    """Everything that holds for every page, whatever the transcript holds."""
    page = Page(html)
    assert html.count("<") == page.markup, "a `<` that belongs to no tag of a template"
    assert page.tags.count("script") == page.tags.count("style") == 1
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), name
        assert name not in {
            "style",
            "srcdoc",
            "action",
            "formaction",
            "srcset",
            "target",
            "ping",
        }, name
        if name == "href":
            assert value.startswith("#") or (tag == "link" and value == "data:,"), value
        if name == "src":
            assert tag == "img"
            assert value.startswith(
                (
                    "data:image/png;base64,",
                    "data:image/jpeg;",
                    "data:image/gif;",
                    "data:image/webp;",
                )
            )
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)), "an id is there twice"
    targets = {value[1:] for tag, name, value in page.attributes if tag == "a" and name == "href"}
    assert targets <= set(ids)
    html.encode()
    return page


@pytest.fixture(scope="session")
def safe() -> Callable[[str], Page]:
    return check_safe


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.fixture
def chat_call() -> Callable[[str, str, str], dict[str, Any]]:
    return call


@pytest.fixture
def pixel() -> bytes:
    """A PNG of one pixel."""
    return PIXEL


@pytest.fixture
def chat() -> list[dict[str, Any]]:
    """A good conversation with a round of four calls."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo and Bergen, and delete my itinerary."},
        {
            "role": "assistant",
            "content": "I will look.",
            "reasoning_content": "Several things at once.",
            "tool_calls": [
                call("c1", "weather", '{"city":"Oslo","days":[1,2,3]}'),
                call("c2", "weather", '{"city":"Bergen","unit":"F"}'),
                call(
                    "c3",
                    "trains",
                    json.dumps({"from": "Zürich", "to": "Oslo", "stops": list(range(400))}),
                ),
                call("c4", "delete_file", '{"path":"../old.md"}'),
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": '{"temperature":-4.50,"wind":{"speed":12}}',
        },
        {"role": "tool", "tool_call_id": "c2", "content": '{"temperature":4}'},
        {"role": "tool", "tool_call_id": "c3", "content": "Three changes. " * 150},
        {
            "role": "tool",
            "tool_call_id": "c4",
            "content": "Tool call rejected: outside the project",
        },
        {"role": "assistant", "content": "Snow in Oslo, rain in Bergen."},
    ]


@pytest.fixture
def broken() -> list[Any]:
    """A history that no provider takes."""
    uri = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    return [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": uri},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("c1", "look", '{"at": [0'), call("c2", "look", "")],
        },
        {"role": "user", "content": "Hello?\u202egnp.exe <script>alert(1)</script>\x00"},
        {"role": "tool", "tool_call_id": "c1", "content": "too small"},
        {"role": "tool", "tool_call_id": "c9", "content": "who asked?"},
        {"role": "banana", "content": 42, "other": {"x": 1}},
        "not a message",
        {"role": "assistant", "content": "word " * 2_000},
    ]


@pytest.fixture
def decisions() -> list[dict[str, Any]]:
    """What hooks decided about the round of `chat`, as `ToolRoundPlan.decisions()` gives it."""
    return [
        {"call_id": "c1", "tool": "weather", "arguments": "", "decision": "pending", "input": {}},
        {
            "call_id": "c2",
            "tool": "weather",
            "arguments": '{"city":"Bergen","unit":"F"}',
            "decision": "edited",
            "input": {"city": "Bergen", "unit": "C", "days": None},
        },
        {
            "call_id": "c3",
            "tool": "trains",
            "arguments": "",
            "decision": "handled",
            "input": {"from": "Zürich", "to": "Oslo", "stops": list(range(400))},
            "source": "hook",
            "by": "Cache.trains_hook",
        },
        {
            "call_id": "c4",
            "tool": "delete_file",
            "arguments": "",
            "decision": "rejected",
            "input": {"path": "../old.md"},
            "reason": "outside the project",
            "source": "policy",
            "by": "gate",
        },
    ]
