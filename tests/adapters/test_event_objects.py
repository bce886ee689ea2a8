"""Events of a stream as objects of an SDK are read as the JSON that they were made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic._models
import openai._models
import pytest
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from lutumpy.adapters.sdk_stream import event_object

FIXTURES = Path(__file__).parent.parent / "fixtures"

KINDS: list[tuple[str, Any, Any]] = [
    ("openai_chat_sse.jsonl", openai._models.construct_type, ChatCompletionChunk),
    ("compat_openai_chat_sse.jsonl", openai._models.construct_type, ChatCompletionChunk),
    ("openai_responses_sse.jsonl", openai._models.construct_type, ResponseStreamEvent),
    ("anthropic_messages_sse.jsonl", anthropic._models.construct_type, RawMessageStreamEvent),
]


def events(file: str) -> list[dict[str, Any]]:
    rows = [json.loads(row) for row in (FIXTURES / file).read_text().splitlines()]
    return [json.loads(x[6:]) for row in rows for x in row["response"].splitlines() if x.startswith("data: {")]


@pytest.mark.parametrize(("file", "construct", "kind"), KINDS, ids=[k[0] for k in KINDS])
def test_an_sdks_object_is_read_as_its_json(file: str, construct: Any, kind: Any) -> None:
    recorded = events(file)
    assert len(recorded) > 50
    for event in recorded:
        assert event_object(construct(type_=kind, value=event)) == event


def test_what_is_no_event_is_an_empty_one_C8() -> None:
    for odd in (None, 3, "text", [1], object(), Path):
        assert event_object(odd) == {}
