"""What tools gave can be left out of a cassette, in each way that an API writes it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cassette_toolkit import model_of
from every_api import APIS

from lutumpy import FilePart, ImagePart, NeedsTools, Session, TextPart, Toolset, tool, tool_fn
from lutumpy.errors import CassetteMismatch
from lutumpy.models import Api
from lutumpy.testing import Call, Cassette, Reply, serve
from lutumpy.testing.cassettes.outputs import LEFT_OUT, without_outputs
from lutumpy.text_tools import TagToolParser, TextTools, text_formats

X = LEFT_OUT
CASES: list[tuple[Any, Any]] = [
    ({"role": "tool", "content": "a", "id": "1"}, {"role": "tool", "content": X, "id": "1"}),
    ({"role": "tool", "id": "1"}, {"role": "tool", "id": "1"}),
    ({"type": "tool_result", "content": [{"text": "a"}]}, {"type": "tool_result", "content": X}),
    (
        {"type": "function_call_output", "output": "a"},
        {"type": "function_call_output", "output": X},
    ),
    (
        {"type": "computer_call_output", "output": {"type": "picture", "image_url": "a"}},
        {"type": "computer_call_output", "output": {"type": "picture", "image_url": X}},
    ),
    (
        {"toolResult": {"toolUseId": "1", "content": [{"json": {"a": 1}}]}},
        {"toolResult": {"toolUseId": "1", "content": [{"text": X}]}},
    ),
    (
        {"functionResponse": {"name": "f", "response": {"a": 1}, "parts": [{}]}},
        {"functionResponse": {"name": "f", "response": {"output": X}}},
    ),
    ({"toolResult": "a text"}, {"toolResult": "a text"}),
    ({"type": "text_output", "text": "a"}, {"type": "text_output", "text": "a"}),
    ([{"role": "user", "content": "a"}, 1, None], [{"role": "user", "content": "a"}, 1, None]),
]


def test_outputs_are_left_out_and_all_else_is_as_it_was() -> None:
    for value, expected in CASES:
        assert without_outputs({"messages": [value]}) == {"messages": [expected]}
        assert without_outputs(expected) == expected


# --- what a program sends -------------------------------------------------------------------------

CANARY = "CanaryCanaryCanary"
HEAD = b"\x89PNG\r\n\x1a\n"
TEXT_CALL = Reply(text='[TOOL_CALL]{"name":"read","args":{"x":"1"}}[/TOOL_CALL]')
ANSWER = Reply(text="ok")
FORMS = dict.fromkeys([None, *[one.results for one in text_formats()]])


def _contents(word: str) -> list[Any]:
    image = ImagePart(data=HEAD + word.encode(), media_type="image/png")
    document = f"%PDF-1.4 {word}".encode()
    return [
        word,
        [TextPart("x"), TextPart(word)],
        [image],
        [TextPart(word), image, TextPart(word)],
        [FilePart(data=document, media_type="application/pdf", filename="a.pdf")],
        [ImagePart(url=f"https://x.example/{word}.png")],
    ]


@tool_fn(effect="once", late=True)
def read(x: str) -> object:
    """Read."""
    return x


class App(Toolset):
    read = tool(read)


def _talk(
    path: Path, api: Api, contents: Sequence[Any], way: Any, url: str | None, words: str
) -> None:
    """A call for each content, and what the user says behind its result."""
    mode: Any = "replay" if url is None else "record"
    with Cassette(path, mode, outputs=False) as cassette:
        llm = model_of(cassette, api, url)
        if isinstance(way, TagToolParser):
            llm = TextTools(llm, parser=way)
        session = Session()
        for content in contents:
            session.push_user(words)
            outcome = session.text_turn(llm, tools=App).collect_sync()
            assert isinstance(outcome, NeedsTools)
            (call,) = outcome.round.calls
            result = call.later("soon") if way == "late" else call.complete(content)
            outcome.round.commit(session, [result])
            if way == "late":
                session.deliver([session.open_calls[0].complete(content)])
                session.push_user(words)
            session.text_turn(llm, tools=App).collect_sync()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("way", ["at once", "late", "text"])
def test_whatever_a_tool_gave_is_neither_written_nor_compared(
    tmp_path: Path, api: Api, way: Any
) -> None:
    path, call = tmp_path / "a.jsonl", Reply(calls=[Call("read", {"x": "1"})])
    if way == "text":
        way, call = TagToolParser(), TEXT_CALL
    contents, others = _contents(CANARY), _contents("Another")
    with serve([call, ANSWER] * len(contents)) as server:
        _talk(path, api, contents, way, server.url, "go on")
    text = path.read_text()
    pieces = [b64encode(CANARY.encode()[start : start + 12]).decode() for start in range(3)]
    assert not [piece for piece in (CANARY, *pieces) if piece in text]
    _talk(path, api, others, way, None, "go on")
    with pytest.raises(CassetteMismatch):
        _talk(path, api, contents, way, None, "or not")


def test_results_in_text_are_found_in_each_form(tmp_path: Path) -> None:
    for number, form in enumerate(FORMS):
        path, parser = tmp_path / f"{number}.jsonl", TagToolParser(results=form)
        with serve([TEXT_CALL, ANSWER]) as server:
            _talk(path, "ollama_chat", [CANARY], parser, server.url, "hi")
        assert CANARY not in path.read_text(), form
        _talk(path, "ollama_chat", ["other"], parser, None, "hi")
