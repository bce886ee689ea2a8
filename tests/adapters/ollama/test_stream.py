"""Streams of `/api/chat`, chunk by chunk: what is told on the way, and what ends one."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.adapters.ollama import OllamaChat
from lutumpy.errors import AdapterError
from lutumpy.streaming import CallDone, ReasoningDelta, Started, TextDelta


def chunk(**message: Any) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", **message}, "done": False}


END = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}


def test_halves_of_a_character_are_told_together_or_at_the_end() -> None:
    decoder = OllamaChat.stream_decoder()
    told = [
        *decoder.feed(chunk(thinking="Hm\ud83d")),
        *decoder.feed(chunk(thinking="\ude42", content="So\ud83d")),
        *decoder.feed(chunk(content="\ude42 \ud83d")),
        *decoder.feed(chunk(thinking="!\ud83d")),
        *decoder.feed(END),
    ]
    assert isinstance(told[0], Started)
    thoughts = "".join([delta.text for delta in told if isinstance(delta, ReasoningDelta)])
    words = "".join([delta.text for delta in told if isinstance(delta, TextDelta)])
    turn = decoder.finish()
    assert (thoughts, words) == (turn.reasoning, turn.text)
    assert words.startswith("So\U0001f642 ")
    assert thoughts.startswith("Hm\U0001f642!")


def test_lists_of_fields_that_nobody_knows_go_on_from_chunk_to_chunk() -> None:
    decoder = OllamaChat.stream_decoder()
    for piece in (chunk(content="a", marks=[1]), chunk(content="b", marks=[2]), END):
        decoder.feed(piece)
    turn = decoder.finish()
    assert turn.text == "ab"
    assert b'"marks":[1,2]' in turn.native


@pytest.mark.parametrize(
    "message",
    [
        {"content": "So", "tool_calls": {"function": {"name": "f", "arguments": {"a": 1}}}},
        {"content": {"city": "Oslo"}},
        {"content": [], "thinking": 5},
    ],
)
def test_odd_values_are_read_as_in_a_whole_answer_S1(message: dict[str, Any]) -> None:
    decoder = OllamaChat.stream_decoder()
    told = [*decoder.feed(chunk(**message)), *decoder.feed({**END, "message": {}})]
    turn = decoder.finish()
    whole = OllamaChat.response({**chunk(**message), "done": True})
    assert (turn.blocks, turn.calls) == (whole.blocks, whole.calls)
    assert "".join([delta.text for delta in told if isinstance(delta, TextDelta)]) == turn.text
    assert [delta.call for delta in told if isinstance(delta, CallDone)] == [*turn.calls]


def test_an_error_ends_a_stream_and_has_what_had_arrived() -> None:
    decoder = OllamaChat.stream_decoder()
    decoder.feed(chunk(content="So"))
    with pytest.raises(AdapterError, match="out of memory") as raised:
        decoder.feed({"error": "out of memory"})
    assert raised.value.partial is not None
    assert (raised.value.partial.text, raised.value.partial.cut) == ("So", True)


def test_a_stream_that_just_ends_is_no_answer() -> None:
    decoder = OllamaChat.stream_decoder()
    with pytest.raises(AdapterError, match="no chunk is done") as raised:
        decoder.finish()
    assert raised.value.retryable
    assert raised.value.partial is None
