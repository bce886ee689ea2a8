"""Events of a stream as objects of an SDK are read as the JSON that they were made of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anthropic._models
import openai._models
import pytest
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from lutumpy import AssistantTurn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.writing import event_object

FIXTURES = Path(__file__).parent.parent / "fixtures"

KINDS: list[tuple[str, Any, Any]] = [
    ("openai_chat_sse.jsonl", openai._models.construct_type, ChatCompletionChunk),
    ("compat_openai_chat_sse.jsonl", openai._models.construct_type, ChatCompletionChunk),
    ("openai_responses_sse.jsonl", openai._models.construct_type, ResponseStreamEvent),
    ("anthropic_messages_sse.jsonl", anthropic._models.construct_type, RawMessageStreamEvent),
]


def streams(file: str) -> list[list[dict[str, Any]]]:
    """The events of each recorded stream."""
    rows = [json.loads(row) for row in (FIXTURES / file).read_text().splitlines()]
    return [
        [json.loads(x[6:]) for x in row["response"].splitlines() if x.startswith("data: {")]
        for row in rows
    ]


@pytest.mark.parametrize(("file", "construct", "kind"), KINDS, ids=[k[0] for k in KINDS])
def test_an_sdks_object_is_read_as_its_json(file: str, construct: Any, kind: Any) -> None:
    recorded = [event for stream in streams(file) for event in stream]
    assert len(recorded) > 50
    for event in recorded:
        assert event_object(construct(type_=kind, value=event)) == event


DECODERS: dict[str, Any] = {
    "openai_chat_sse.jsonl": OpenAIChat,
    "openai_responses_sse.jsonl": OpenAIResponses,
    "anthropic_messages_sse.jsonl": AnthropicMessages,
}


def values(turn: AssistantTurn) -> tuple[AssistantTurn, Any, Any]:
    read = [json.loads(data) if data else None for data in (turn.native, turn.residue)]
    return replace(turn, native=b"", residue=b""), read[0], read[1]


@pytest.mark.parametrize(
    ("file", "construct", "kind"), [k for k in KINDS if k[0] in DECODERS], ids=DECODERS
)
def test_objects_and_dicts_decode_to_the_same_turn(file: str, construct: Any, kind: Any) -> None:
    for recorded in streams(file):
        plain, objects = DECODERS[file].stream_decoder(), DECODERS[file].stream_decoder()
        for event in recorded:
            assert objects.feed(construct(type_=kind, value=event)) == plain.feed(event)
        # The SDKs' classes have an order of their own for the fields, so the bytes are compared as
        # JSON values.
        assert values(objects.finish()) == values(plain.finish())


@pytest.mark.parametrize(
    ("file", "construct", "kind"), [k for k in KINDS if k[0] in DECODERS], ids=DECODERS
)
def test_a_stream_that_nobody_looks_at_ends_as_one_that_is_read(
    file: str, construct: Any, kind: Any
) -> None:
    for recorded in streams(file):
        looked_at, dicts, objects = [DECODERS[file].stream_decoder() for _ in range(3)]
        for event in recorded:
            looked_at.feed(event)
        dicts.feed_all(recorded)
        objects.feed_all([construct(type_=kind, value=event) for event in recorded])
        assert dicts.finish() == looked_at.finish()
        assert values(objects.finish()) == values(looked_at.finish())


def test_objects_that_only_look_like_events_are_ignored_C8() -> None:
    for delta in (
        None,
        3,
        SimpleNamespace(type="text_delta"),
        SimpleNamespace(type="text_delta", text=3),
    ):
        odd = SimpleNamespace(type="content_block_delta", delta=delta)
        assert AnthropicMessages.stream_decoder().feed(odd) == []


def test_in_a_stream_that_nobody_looks_at_what_is_no_event_is_ignored_C8() -> None:
    start = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"a":1}'}
    delta = {"type": "content_block_delta", "index": 0, "delta": piece}
    odd = [
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": {}},
        {"type": "content_block_delta", "index": 0, "delta": {**piece, "partial_json": 3}},
        SimpleNamespace(type="content_block_delta", index=0),
        SimpleNamespace(type="content_block_delta", index=0, delta=SimpleNamespace()),
        None,
        3,
    ]
    decoder = AnthropicMessages.stream_decoder()
    begin = {"type": "content_block_start", "index": 0, "content_block": call}
    end = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    decoder.feed_all([start, begin, *odd, delta, *odd, *end])
    (found,) = decoder.finish().calls
    assert found.arguments == '{"a":1}'


def test_what_is_no_event_is_an_empty_one_C8() -> None:
    for odd in (None, 3, "text", [1], object(), Path):
        assert event_object(odd) == {}
