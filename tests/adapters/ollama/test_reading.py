"""What a history of `/api/chat` holds, read; and what refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy import Session, Transcript, TranscriptError
from lutumpy.models import ImagePart, TextPart

USER = {"role": "user", "content": "Weather?"}
CALL = {"function": {"name": "weather", "arguments": {"city": "Rome"}}}
TURN = {"role": "assistant", "content": "", "tool_calls": [CALL]}
PNG = "iVBORw0KGgo="  # its beginning tells what it is
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def read(*messages: Any, **more: Any) -> Transcript:
    return Transcript.from_messages("ollama_chat", [USER, *messages], **more)


def results_of(transcript: Transcript) -> Any:
    """The results that it ends with."""
    results: Any = transcript.rounds()[-1].items[-1]
    return results.results


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"content": "rain"}, "rain"),
        ({"content": ""}, ""),
        ({}, ""),
        ({"content": {"sky": "grey"}}, '{"sky":"grey"}'),
    ],
)
def test_a_result_is_the_text_that_it_says(answer: Any, content: str) -> None:
    (result,) = results_of(read(TURN, {"role": "tool", "tool_name": "weather", **answer}))
    assert (result.name, result.content) == ("weather", content)


def test_the_pictures_of_a_result_are_parts() -> None:
    result = {"role": "tool", "tool_name": "weather", "content": "rain", "images": [PNG]}
    (read_result,) = results_of(read(TURN, result))
    text, picture = read_result.content
    assert isinstance(text, TextPart)
    assert isinstance(picture, ImagePart)
    assert picture.media_type == "image/png"


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([{"role": "robot", "content": "Hi"}], "the role 'robot' is none of this API"),
        ([{"role": 7, "content": "Hi"}], "the role 7 is none of this API"),
        ([{"role": "tool", "content": "rain"}], "the result '' is of no call before it"),
        ([TURN], "call 'weather' has no result right after it"),
        (
            [TURN, {"role": "tool", "content": "a"}, {"role": "tool", "tool_name": "x"}],
            "the result 'x' is of no call before it",
        ),
    ],
)
def test_what_stands_in_no_history_is_refused(messages: list[Any], why: str) -> None:
    with pytest.raises(TranscriptError, match=why):
        read(*messages)


def test_the_tools_of_the_request_are_read_with_it() -> None:
    odd = [{"type": "function"}, {"function": {"name": 7}}, {"function": {"name": "bare"}}]
    (settings,) = read(tools=[TOOL, *odd]).settings
    assert settings.is_base
    assert settings.added == ("weather", "bare")
    weather, bare = settings.defined
    assert weather.description == "Tell the weather."
    assert bare.schema == {"type": "object"}


def test_instructions_beside_the_messages_come_first() -> None:
    read_with = read(system="Be brief.")
    session = Session(read_with)
    assert session.dump()["items"][0]["role"] == "system"
    with pytest.raises(TranscriptError, match="system is int, not a text; nothing was read"):
        read(system=5)


def test_a_history_may_not_begin_with_a_result() -> None:
    for role in ("tool", "Tool"):
        with pytest.raises(TranscriptError, match="the result 'weather' is of no call before it"):
            Transcript.from_messages(
                "ollama_chat", [{"role": role, "tool_name": "weather", "content": "rain"}]
            )
