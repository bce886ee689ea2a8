"""Requests and messages of Converse in files: they are recognised, and checked for their model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lutumpy.cli.answers import api_of_answer
from lutumpy.cli.documents import Document, Place, open_document
from lutumpy.cli.findings import problems_of
from lutumpy.cli.recognition import apis_of_body, apis_of_messages

API = "bedrock_converse"
FIXTURES = Path(__file__).parent.parent / "fixtures"
HERE = Place("file.json")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SAID: list[Any] = [{"role": "user", "content": [{"text": "Hello."}]}]
CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
TYPED = {"type": "text", "text": "Hello."}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


def histories() -> list[list[Any]]:
    return [row["history"] for row in rows("converse_histories.jsonl")]


def test_recorded_messages_are_recognised_by_themselves() -> None:
    assert [apis_of_messages(history) for history in histories()] == [(API,)] * len(histories())


def test_recorded_requests_are_recognised_by_their_body_alone() -> None:
    for row in rows("rejected_converse.jsonl"):
        assert apis_of_body(row["request"]) == (API,)
        document = open_document(row, HERE)
        assert (document.api, document.kind, document.model) == (API, "exchange", row["model"])
        assert row["response"]["message"] in [p.message for p in problems_of(document)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (SAID, "messages"),
        ([{"role": "assistant", "content": [CALL]}], "messages"),
        ([*SAID, {"role": "assistant", "content": [TYPED, CALL]}], "messages"),
        ({"messages": SAID}, "request"),
        ({"messages": SAID, "system": [{"text": "Be brief."}]}, "request"),
        ({"messages": SAID, "modelId": CLAUDE}, "request"),
        ({"messages": [{"role": "user", "content": "?"}], "toolConfig": {"tools": []}}, "request"),
        ({"body": {"messages": SAID}, "url": f"https://x/model/{CLAUDE}/converse"}, "request"),
    ],
)
def test_shapes_say_what_they_are(value: Any, kind: str) -> None:
    document = open_document(value, HERE, None if not _is_plain(value) else API)
    assert (document.api, document.kind) == (API, kind)


def _is_plain(value: Any) -> bool:
    """Whether the contents are texts, so that two APIs are named."""
    return isinstance(value, dict) and "?" in json.dumps(value)


def test_the_url_says_the_model() -> None:
    film = {"video": {"format": "mp4", "source": {"bytes": "aaaa"}}}
    body = {"messages": [{"role": "user", "content": [{"text": "?"}, film]}]}
    url = f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{CLAUDE.replace(':', '%3A')}"
    document = open_document({"body": body, "url": f"{url}/converse-stream"}, HERE)
    assert document.model == CLAUDE
    assert not document.compatible
    sure = [p.rule for p in problems_of(document) if p.certainty == "refused"]
    assert sure == ["converse.video_for_model"]


def tools_of(document: Document) -> list[str]:
    return [tool["toolSpec"]["name"] for tool in document.tools or []]


def test_tools_stand_in_the_config() -> None:
    spec = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
    document = open_document({"messages": SAID, "toolConfig": {"tools": [spec]}}, HERE)
    assert tools_of(document) == ["f"]


def test_what_has_types_or_texts_is_no_request_of_it() -> None:
    assert API not in apis_of_messages([{"role": "user", "content": [TYPED]}])
    assert API not in apis_of_messages([{"role": "user", "content": "Hello."}])
    assert API not in apis_of_body({"model": "m", "messages": SAID})


def test_answers_are_recognised() -> None:
    message = {"role": "assistant", "content": [{"text": "Hi."}]}
    assert api_of_answer({"output": {"message": message}, "stopReason": "end_turn"}) == API
