"""What a server answers, as the output of a tool (rule MCP4)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_toolkit import FakeServer, make_tool, run_call, text_result

from lutumpy import FilePart, ImagePart, TextPart
from lutumpy.mcp import McpTools

PNG = b"\x89PNG\r\n\x1a\n"


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def answered(answer: Any, **options: Any) -> Any:
    """What the result of one call holds, and its status."""
    server = FakeServer(make_tool("t"), answer=lambda name, arguments: answer)
    async with McpTools(server.server, **options) as source:
        result = await run_call(source, "t")
        return result.content, result.status


async def test_texts_are_joined_by_line_ends_MCP4() -> None:
    assert await answered(text_result("one", "two")) == ("one\ntwo", "ok")


async def test_images_sounds_and_files_are_parts_in_their_places_MCP4() -> None:
    blob = BlobResourceContents(
        uri="file:///a/b.pdf", mime_type="application/pdf", blob=encode(b"%")
    )
    content = [
        TextContent(text="see"),
        ImageContent(data=encode(PNG), mime_type="image/png"),
        AudioContent(data=encode(b"RIFF"), mime_type="audio/wav"),
        EmbeddedResource(resource=blob),
        TextContent(text="end"),
    ]
    assert (await answered(CallToolResult(content=content)))[0] == (
        TextPart("see"),
        ImagePart(PNG, "image/png"),
        FilePart(b"RIFF", "audio/wav"),
        FilePart(b"%", "application/pdf", filename="b.pdf"),
        TextPart("end"),
    )


async def test_links_and_resources_of_text_are_text_MCP4() -> None:
    link = ResourceLink(
        name="doc", uri="https://x.org/d", description="a page", mime_type="text/html"
    )
    resource = TextResourceContents(uri="demo://1", text="words")
    content = [link, EmbeddedResource(resource=resource)]
    text, _ = await answered(CallToolResult(content=content))
    assert text == "[doc](https://x.org/d) (text/html): a page\ndemo://1\nwords"


async def test_structured_content_comes_only_where_there_is_no_text_MCP4() -> None:
    value = {"temperature": 3}
    both = CallToolResult(content=[TextContent(text="cold")], structured_content=value)
    assert (await answered(both))[0] == "cold"
    alone = CallToolResult(content=[], structured_content=value)
    assert (await answered(alone))[0] == '{"temperature":3}'
    image = ImageContent(data=encode(PNG), mime_type="image/png")
    beside = CallToolResult(content=[image], structured_content=value)
    content, _ = await answered(beside)
    assert content == (ImagePart(PNG, "image/png"), TextPart('{"temperature":3}'))


async def test_an_answer_with_text_is_good_whatever_the_output_schema_says_MCP4() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    server = FakeServer(
        make_tool("t", output_schema=schema),
        answer=lambda *_: CallToolResult(
            content=[TextContent(text="a text")], structured_content={"n": 1}
        ),
    )
    async with McpTools(server.server) as source:
        assert source.tools[0].definition.output_schema == schema
        result = await run_call(source, "t")
        assert (result.content, result.outcome) == ("a text", "ok")


async def test_an_error_is_a_failed_result_with_its_text_MCP4() -> None:
    assert await answered(text_result("no such file", is_error=True)) == ("no such file", "error")
    text, status = await answered(CallToolResult(content=[], is_error=True))
    assert (text, status) == ("The tool failed, and its server didn't say why.", "error")


async def test_an_error_keeps_its_images_behind_the_text_MCP4() -> None:
    image = ImageContent(data=encode(PNG), mime_type="image/png")
    failed = CallToolResult(content=[image, TextContent(text="no")], is_error=True)
    assert await answered(failed) == ((TextPart("no"), ImagePart(PNG, "image/png")), "error")


async def test_a_long_answer_is_cut_and_says_how_much_MCP4() -> None:
    text, _ = await answered(text_result("é" * 120_000))
    assert text == "é" * 50_000 + "\n[70000 of 120000 characters were left out]"
    text, _ = await answered(text_result("abc", "def", "ghi"), max_chars=5)
    assert text == "abc\nd\n[6 of 11 characters were left out]"


async def test_texts_around_an_image_are_cut_together_MCP4() -> None:
    image = ImageContent(data=encode(PNG), mime_type="image/png")
    content = [
        TextContent(text="abcdef"),
        image,
        TextContent(text="ghi"),
        image,
        TextContent(text="j"),
    ]
    parts, _ = await answered(CallToolResult(content=content), max_chars=7)
    note = "\n[3 of 10 characters were left out]"
    kept = ImagePart(PNG, "image/png")
    assert parts == (TextPart("abcdef"), kept, TextPart("g" + note), kept)


async def test_a_long_structured_answer_is_cut_as_text_MCP4() -> None:
    alone = CallToolResult(content=[], structured_content={"a": "x" * 100})
    text, _ = await answered(alone, max_chars=10)
    assert text == '{"a":"xxxx\n[98 of 108 characters were left out]'


@pytest.mark.parametrize(("size", "kept"), [(30, True), (31, False), (500, False)])
async def test_a_large_part_becomes_a_sentence_MCP4(size: int, kept: bool) -> None:
    image = ImageContent(data=encode(b"x" * size), mime_type="image/png")
    content, _ = await answered(CallToolResult(content=[image]), max_bytes=30)
    sentence = f"[image of the type image/png was left out: {size} bytes are more than 30]"
    assert content == ((ImagePart(b"x" * size, "image/png"),) if kept else sentence)


@pytest.mark.parametrize("data", ["§", "abc"])
async def test_what_is_not_base64_becomes_a_sentence_MCP4(data: str) -> None:
    image = ImageContent(data=data, mime_type="image/png")
    text, _ = await answered(CallToolResult(content=[image]))
    assert text == "[image of the type image/png was left out: it is not base64]"


@pytest.mark.slow
async def test_an_answer_that_asks_for_input_says_that_the_tool_may_have_run_LR27_MCP6() -> None:
    text, status = await answered(InputRequiredResult(request_state="later"))
    assert status == "error"
    assert "not run" not in text
    assert "may have" in text


async def test_an_empty_answer_is_an_empty_text() -> None:
    assert await answered(CallToolResult(content=[])) == ("", "ok")
