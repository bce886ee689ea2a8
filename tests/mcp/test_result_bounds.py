"""What a server's answer brings to the model stays within `max_chars`, whichever of its words is
long (rule MCP4).
"""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from lutumpy import FilePart, ImagePart, TextPart, ToolError
from lutumpy.mcp.limits import Limits
from lutumpy.mcp.results import read_result

LONG = "x" * 100_000
NOTE = 100  # characters of a sentence about what was left out
DATA = base64.b64encode(b"data").decode()


def parts_of(content: list[ContentBlock], limits: Limits, **more: Any) -> list[Any]:
    """The parts of what the model gets, and of a failure's."""
    try:
        output: Any = read_result(CallToolResult(content=content, **more), limits)
    except ToolError as error:
        return [TextPart(str(error)), *(error.content or [])]
    if isinstance(output, str):
        return [TextPart(output)]
    return output if isinstance(output, list) else [TextPart(str(output))]


def count_characters(parts: list[Any]) -> int:
    """Of all that is text in the parts."""
    words = [
        [part.text]
        if isinstance(part, TextPart)
        else [part.filename or "" if isinstance(part, FilePart) else ""]
        for part in parts
    ]
    return sum(len(text) for texts in words for text in texts)


def blob(uri: str, media_type: str | None = "application/pdf", data: str = DATA) -> Any:
    found = BlobResourceContents(uri=uri, mime_type=media_type, blob=data)
    return EmbeddedResource(resource=found)


def test_what_is_not_a_media_type_becomes_a_sentence_MCP4() -> None:
    limits = Limits()
    for media_type in (LONG, f"image/{LONG}", "image", "a b/c", "image/png\r\nX: y", "é/x"):
        image = ImageContent(data=DATA, mime_type=media_type)
        (part,) = parts_of([image], limits)
        assert part.text.endswith("was left out: that is not a media type]")
        assert len(part.text) < 200
    for media_type in ("image/png", "image/svg+xml; charset=utf-8", "IMAGE/x-y.z"):
        image = ImageContent(data=DATA, mime_type=media_type)
        assert parts_of([image], limits) == [ImagePart(b"data", media_type)]


@pytest.mark.parametrize("data", ["§", "", "A" * 400])
def test_a_sentence_about_a_part_shortens_its_names_MCP4(data: str) -> None:
    content = [blob(f"file:///{LONG}", "application/pdf", data), TextContent(text="the answer")]
    (part,) = parts_of(content, Limits(max_chars=1000, max_bytes=100))
    assert len(part.text) < 400
    assert part.text.endswith("\nthe answer")


def test_the_name_of_a_file_is_short_and_keeps_its_ending_MCP4() -> None:
    (part,) = parts_of([blob(f"file:///a/{LONG}.pdf")], Limits())
    assert len(part.filename) == 255
    assert part.filename.endswith("….pdf")


def test_names_of_files_have_the_room_that_texts_leave_MCP4() -> None:
    content = [TextContent(text="abcdef"), blob("x:/a.pdf"), blob("x:/b.pdf"), blob("x:/c.pdf")]
    parts = parts_of(content, Limits(max_chars=17))
    assert [part.filename for part in parts[1:]] == ["a.pdf", "b.pdf", None]
    assert [part.data for part in parts[1:]] == [b"data"] * 3


def test_a_link_keeps_room_for_the_rest_of_the_answer_MCP4() -> None:
    link = ResourceLink(name=LONG, title=LONG, uri="https://x.org/" + LONG, mime_type=LONG)
    resource = EmbeddedResource(resource=TextResourceContents(uri=f"x:{LONG}", text="words"))
    (part,) = parts_of([link, resource, TextContent(text="end")], Limits())
    assert len(part.text) < 5000
    assert part.text.endswith("\nwords\nend")


def test_parts_beyond_a_thousand_are_left_out_and_counted_MCP4() -> None:
    image = ImageContent(data=DATA, mime_type="image/png")
    parts = parts_of([image] * 1003, Limits())
    assert len(parts) == 1001
    assert parts[-1] == TextPart("[3 more parts of the answer were left out]")


CHANCE = random.Random(25)


def some_word() -> str:
    length = CHANCE.choice([0, 1, 5, 60, 3000])
    return "".join(CHANCE.choices("ab/. :é\n", k=length)) or "x"


def some_block() -> ContentBlock:
    word, data = some_word(), CHANCE.choice([DATA, "§", "", "A" * 400])
    media_type = CHANCE.choice(["image/png", word, f"image/{word}"])
    return CHANCE.choice(
        [
            TextContent(text=word),
            ImageContent(data=data, mime_type=media_type),
            AudioContent(data=data, mime_type=media_type),
            blob(f"x:/{word}", media_type, data),
            blob(some_word(), None, data),
            EmbeddedResource(resource=TextResourceContents(uri=word, text=some_word())),
            ResourceLink(
                name=word, title=some_word(), uri=word, description=some_word(), mime_type=word
            ),
        ]
    )


@pytest.mark.pure
@pytest.mark.slow
def test_any_answer_stays_within_its_characters_MCP4() -> None:
    for _ in range(1000):
        limits = Limits(max_chars=CHANCE.choice([1, 10, 100, 5000]), max_bytes=100)
        content = [some_block() for _ in range(CHANCE.randrange(8))]
        more: dict[str, Any] = {"is_error": CHANCE.random() < 0.3}
        if CHANCE.random() < 0.3:
            more["structured_content"] = {some_word(): some_word()}
        parts = parts_of(content, limits, **more)
        assert count_characters(parts) <= limits.max_chars + NOTE
        for part in parts:
            media_type = getattr(part, "media_type", None)
            assert media_type is None or len(media_type) < 300
