"""Images and documents that Bedrock refuses for their size are said in text (rules K3b, K7)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from lutumpy import FilePart, ImagePart, NeedsTools, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.doctor import check_messages
from lutumpy.rules.bedrock.limits import MAX_DOCUMENT, MAX_IMAGE
from lutumpy.rules.claude_images import MANY_IMAGES, MAX_PIXELS

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
BINDING = "anthropic.claude-opus-5-5-v1:0"
NOVA = "amazon.nova-pro-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@tool_fn
def look(image: dict[str, int]) -> ImagePart:
    """Look."""
    return ImagePart(png(10), "image/png")


class Tools(Toolset):
    look = tool(look)


def png(width: int, height: int = 10, *, size: int = 0) -> bytes:
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + head).ljust(size, b"\x00")


def blocks(model: str, part: Any) -> list[str]:
    """The kinds of blocks in a request, which the rules for this model take."""
    transcript = Transcript()
    transcript.push_user(["see", part])
    messages = BedrockConverse.request(transcript, model=model)["messages"]
    found = check_messages("bedrock_converse", messages, model=model)
    assert [p for p in found if p.rule == "converse.image_size"] == []
    return [key for block in messages[0]["content"] for key in block]


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (png(MAX_PIXELS), True),
        (png(MAX_PIXELS + 1), False),
        (png(10, MAX_PIXELS + 1), False),
        (png(10, size=MAX_IMAGE), True),
        (png(10, size=MAX_IMAGE + 1), False),
    ],
    ids=["wide", "too wide", "too high", "large", "too large"],
)
def test_an_image_is_no_larger_than_claude_takes_it_K7(data: bytes, fits: bool) -> None:
    shown = ["text", "image" if fits else "text"]
    part = ImagePart(data, "image/png")
    assert blocks(CLAUDE, part) == blocks(PROFILE, part) == shown
    assert blocks(NOVA, part) == ["text", "image"]


@pytest.mark.parametrize(
    ("media_type", "size", "fits"),
    [
        ("text/csv", MAX_DOCUMENT, True),
        ("text/csv", MAX_DOCUMENT + 1, False),
        ("application/pdf", MAX_DOCUMENT + 1, True),
        (DOCX, MAX_DOCUMENT + 1, True),
    ],
)
def test_a_document_has_as_many_bytes_as_its_format_may_K7(
    media_type: str, size: int, fits: bool
) -> None:
    part = FilePart(b"x" * size, media_type, filename="a")
    assert blocks(CLAUDE, part) == ["text", "document" if fits else "text"]


def test_an_image_that_claude_refuses_is_found_in_a_history() -> None:
    transcript = Transcript()
    transcript.push_user(["see", ImagePart(png(MAX_PIXELS + 1), "image/png")])
    messages = BedrockConverse.request(transcript, model=NOVA)["messages"]
    for model, certainty in ((CLAUDE, ["refused"]), (PROFILE, ["some"]), (NOVA, [])):
        found = check_messages("bedrock_converse", messages, model=model)
        assert [p.certainty for p in found if p.rule == "converse.image_size"] == certainty


def shown(transcript: Transcript, model: str = CLAUDE) -> list[list[str]]:
    """The kinds of blocks in each message of a request, those in a result as well."""
    found = []
    for message in BedrockConverse.request(transcript, model=model)["messages"]:
        blocks = [key for block in message["content"] for key in block]
        for block in message["content"]:
            content = block.get("toolResult", {}).get("content", [])
            blocks += [key for part in content for key in part]
        found.append(blocks)
    return found


def test_beside_many_images_claude_is_shown_none_that_is_wide_K7() -> None:
    session = Session()
    session.push_user(["see", ImagePart(png(2001), "image/png"), ImagePart(png(2000), "image/png")])
    answer = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                    {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"image": {}}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    }
    turn = session.text_turn(BedrockConverse(CLAUDE), tools=Tools)
    outcome = turn.read(BedrockConverse.response(answer))
    assert isinstance(outcome, NeedsTools)
    wide = ImagePart(png(10, 2001), "image/png")
    outcome.round.commit(session, [call.complete(wide) for call in outcome.round.calls])
    small = ImagePart(png(20), "image/png")
    session.push_user([small] * (MANY_IMAGES - 3))
    before = shown(session.transcript)
    assert [kinds.count("image") for kinds in before] == [2, 0, MANY_IMAGES - 2]
    session.push_user([small])
    after = shown(session.transcript)
    assert [kinds.count("image") for kinds in after] == [1, 0, MANY_IMAGES - 2]
    assert after[0] == ["text", "text", "image"]
    # An older Claude goes on with its calls only behind its reasoning; a newer one binds it.
    assert after[1] == ["reasoningContent", "toolUse"]
    assert shown(session.transcript, BINDING)[1] == ["toolUse"]
    assert [kinds.count("image") for kinds in shown(session.transcript, NOVA)] == [
        2,
        0,
        MANY_IMAGES - 1,
    ]


def test_wide_images_beside_many_others_are_found_in_a_history() -> None:
    transcript = Transcript()
    wide, small = (ImagePart(png(width), "image/png") for width in (2001, 2000))
    transcript.push_user(["see", wide, *[small] * (MANY_IMAGES - 1)])
    for more, certainty in (([], []), ([small], ["refused"])):
        transcript.push_user(["and", *more])
        messages = BedrockConverse.request(transcript, model=NOVA)["messages"]
        found = check_messages("bedrock_converse", messages, model=CLAUDE)
        assert [p.certainty for p in found if p.rule == "converse.image_size"] == certainty
