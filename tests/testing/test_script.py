"""Scripted answers: rendered as each API writes them, one answer or its stream."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from lutumpy.models import Api
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render, render_stream, serve

APIS: tuple[Api, ...] = ("openai_chat", "openai_responses", "anthropic_messages")
REPLY = Reply(
    "I look it up.",
    calls=[Call("weather", {"city": "Oslo"}), Call("clock")],
    reasoning="Two tools will do.",
)


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", ("stop", "completed", "end_turn")),
        ("length", ("length", "incomplete", "max_tokens")),
        ("content_filter", ("content_filter", "incomplete", "refusal")),
        ("refusal", ("stop", "completed", "refusal")),
        ("paused", ("stop", "completed", "pause_turn")),
        ("tool_calls", ("tool_calls", "completed", "tool_use")),
    ],
)
def test_each_finish_has_its_word_in_each_api(finish: str, expected: tuple[str, str, str]) -> None:
    reply = Reply("x", finish=finish)
    said = [render(reply, api, number=1, model="m") for api in APIS]
    assert (
        said[0]["choices"][0]["finish_reason"],
        said[1]["status"],
        said[2]["stop_reason"],
    ) == expected


@pytest.mark.parametrize("finish", [None, "length", "content_filter", "paused", "refusal"])
def test_every_rendering_has_the_shape_that_the_sdk_declares(finish: str | None) -> None:
    chunk, events = TypeAdapter(ChatCompletionChunk), TypeAdapter(ResponseStreamEvent)
    message_events: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    some_calls = (Call("f", {"a": 1}), Call("g", "oops"))
    for text, calls, reasoning, refusal in itertools.product(
        ("", "hi"), ((), some_calls), (None, "", "hm"), (None, "no")
    ):
        reply = Reply(text, calls, finish, reasoning, refusal)
        ChatCompletion.model_validate(render(reply, "openai_chat", number=1, model="m"))
        Response.model_validate(render(reply, "openai_responses", number=1, model="m"))
        Message.model_validate(render(reply, "anthropic_messages", number=1, model="m"))
        for event in render_stream(reply, "openai_chat", number=1, model="m"):
            chunk.validate_python(event)
        for event in render_stream(reply, "openai_responses", number=1, model="m"):
            events.validate_python(event)
        for event in render_stream(reply, "anthropic_messages", number=1, model="m"):
            if event["type"] != "ping":  # the SDK's union leaves it out
                message_events.validate_python(event)


def test_a_cut_off_call_is_marked_as_the_api_marks_it() -> None:
    reply = Reply(calls=[Call("f", '{"x":48151')], finish="length")
    chat, responses, messages = (render(reply, api, number=1, model="m") for api in APIS)
    assert chat["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"x":48151'
    assert (responses["output"][0]["status"], responses["output"][0]["arguments"]) == (
        "incomplete",
        '{"x":48151',
    )
    assert messages["content"][0]["input"] == {}
    broken = render(Reply(calls=[Call("f", "oops")]), "anthropic_messages", number=1, model="m")
    assert broken["content"][0]["input"] == {"INVALID_JSON": "oops"}


def test_a_call_without_arguments_is_no_text_in_an_anthropic_stream() -> None:
    events = render_stream(Reply(calls=[Call("f")]), "anthropic_messages", number=1, model="m")
    assert [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"] == [
        ""
    ]


def test_rendering_is_deterministic_and_ids_differ_by_number() -> None:
    for api in APIS:
        first, again, other = (render(REPLY, api, number=n, model="m") for n in (1, 1, 2))
        assert first == again
        assert first["id"] != other["id"]


def test_sequence_numbers_have_no_gap_and_text_survives_the_cutting() -> None:
    reply = Reply("héllo 👋 \n" * 9, refusal=None)
    events = render_stream(reply, "openai_responses", number=3, model="m")
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == reply.text


def test_a_reply_knows_only_our_words_for_its_end() -> None:
    with pytest.raises(ValueError, match="end_turn"):
        Reply(finish="end_turn")


@pytest.mark.parametrize(
    "calls", [Call("clock"), "clock", ["clock"], [Call("clock"), {"name": "clock"}]]
)
def test_a_reply_takes_a_list_of_calls_and_says_so(calls: Any) -> None:
    with pytest.raises(
        TypeError, match=r"calls= takes a list of Call\(name, arguments\), not .*clock"
    ):
        Reply(calls=calls)


@pytest.mark.parametrize(
    "script", [REPLY, Failure(500, "Oops."), "Hello.", b"Hello.", {"choices": []}, print]
)
@pytest.mark.parametrize("play", [ScriptedModel, serve])
def test_a_script_is_a_list_and_one_answer_is_none(play: Any, script: Any) -> None:
    with pytest.raises(TypeError, match="a script is a list of answers"):
        play(script)


def test_a_script_needs_no_server_and_no_sdk() -> None:
    code = (
        "import sys, lutumpy.testing.script, lutumpy.testing\n"
        "lutumpy.testing.Reply\n"
        "heavy = ('starlette', 'uvicorn', 'openai', 'anthropic')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
