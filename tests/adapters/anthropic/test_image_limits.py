"""Images that Messages refuses for their pixels are said in text (rules K3b and K7): of any other
request with them it says the same, so that the conversation would have ended.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from lutumpy import ImagePart, NeedsTools, RawPart, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.rules.anthropic.messages import check_request
from lutumpy.rules.claude_images import MANY_IMAGES, MAX_PIXELS, MAX_PIXELS_OF_MANY
from lutumpy.testing import Call, Reply, ScriptedModel

BINDING = "claude-opus-5-5"


@tool_fn
def look() -> ImagePart:
    """Look."""
    return image(3000)


class Tools(Toolset):
    look = tool(look)


def png(width: int, height: int = 10) -> bytes:
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + head


def image(width: int, height: int = 10) -> ImagePart:
    return ImagePart(png(width, height), "image/png")


def sent(transcript: Transcript) -> list[dict[str, Any]]:
    """The messages of a request that the API takes."""
    body = AnthropicMessages.request(transcript)
    assert check_request({**body, "model": "claude-sonnet-4-5"}) == []
    messages: list[dict[str, Any]] = body["messages"]
    return messages


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_an_image_of_too_many_pixels_is_said_in_text_K7() -> None:
    transcript = Transcript()
    transcript.push_user(["see", image(MAX_PIXELS), image(10, MAX_PIXELS + 1)])
    (message,) = sent(transcript)
    assert kinds(message) == ["text", "image", "text"]
    assert message["content"][2]["text"] == "[image left out: image/png, 29 bytes]"


def test_beside_many_images_none_may_be_wide_K7() -> None:
    transcript = Transcript()
    transcript.push_user(["see", image(MAX_PIXELS_OF_MANY + 1), image(MAX_PIXELS_OF_MANY)])
    for _ in range(MANY_IMAGES - 2):
        transcript.push_user([image(20)])
    before = sent(transcript)
    assert kinds(before[0]) == ["text", "image", "image"]
    transcript.push_user([image(20)])
    for _ in range(2):  # the same in every later request
        after = sent(transcript)
        assert kinds(after[0]) == ["text", "text", "image"]
        assert "2000 pixels a side" in after[0]["content"][1]["text"]
        assert after[1 : len(before)] == before[1:]
        transcript.push_user("go on")


def test_images_in_results_and_raw_ones_count_and_go_as_well_K7() -> None:
    session = Session()
    session.push_user("look")
    model = ScriptedModel([Reply(calls=[Call("look", {})])], api="anthropic_messages")
    outcome = session.text_turn(model, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete(look()) for call in outcome.round.calls])
    data = base64.b64encode(png(2500)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    raw = RawPart("anthropic_messages", {"type": "image", "source": source}, "a picture")
    session.push_user([raw, *[image(20)] * (MANY_IMAGES - 2)])
    assert json.dumps(sent(session.transcript)).count('"image"') == MANY_IMAGES
    session.push_user([image(20)])
    assert json.dumps(sent(session.transcript)).count('"image"') == MANY_IMAGES - 1
    again = Session.load(session.dump())
    assert sent(again.transcript) == sent(session.transcript)


@pytest.mark.parametrize(("model", "kept"), [("claude-sonnet-4-5", True), (BINDING, False)])
def test_reasoning_behind_an_image_that_goes_stays_where_it_isnt_bound_R5(
    model: str, kept: bool
) -> None:
    """An older model refuses to go on with its calls without it."""
    session = Session()
    session.push_user(["see", image(3000), *[image(20)] * (MANY_IMAGES - 1)])
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    turn = session.text_turn(AnthropicMessages(model), tools=Tools)
    outcome = turn.read(AnthropicMessages.response(answer))
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete(image(20)) for call in outcome.round.calls])
    messages = AnthropicMessages.request(session.transcript, model=model)["messages"]
    assert kinds(messages[0])[:2] == ["text", "text"]
    assert kinds(messages[1]) == (["thinking", "tool_use"] if kept else ["tool_use"])


def test_images_of_a_history_count_and_stay_as_they_are() -> None:
    source = {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(png(20)).decode(),
    }
    history = [{"role": "user", "content": [{"type": "image", "source": source}] * MANY_IMAGES}]
    transcript = Transcript.from_messages("anthropic_messages", history)
    transcript.push_user([image(MAX_PIXELS_OF_MANY + 1)])
    messages = sent(transcript)
    assert messages[0] == history[0]
    assert kinds(messages[1]) == ["text"]
