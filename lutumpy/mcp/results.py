"""What a server answered, as the output of a tool (rule MCP4).

    a block of the answer             what it becomes
    --------------------------------  -----------------------------------------------------------
    text                              text; blocks are joined by line ends
    image                             `ImagePart`
    sound, a resource that is bytes   `FilePart`
    a resource that is text           its address in a line, and the text
    a link to a resource              a line of text; nothing is fetched
    structured content                JSON, where the answer has no block of text
    an error                          `ToolError` with its texts; what else it holds follows them

An answer that is text alone is a `str`, one of anything else content parts in their order.

Texts, and the names of files, have no more than `max_chars` characters together; what was left out
is told behind them. Names and addresses that a sentence of ours quotes are shortened, so that a
server's long word can't push the rest of its answer out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
)
from pydantic import ValidationError

from lutumpy import FilePart, ImagePart, TextPart, ToolError
from lutumpy.mcp.limits import Limits
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten

if TYPE_CHECKING:
    from lutumpy import DynamicOutput, ToolMetadata

__all__ = [
    "AnswerHandler",
    "cut",
    "find_unknown",
    "hand_on",
    "read_contents",
    "read_message",
    "read_result",
]

AnswerHandler = Callable[["ToolMetadata | None", CallToolResult], Any]
"""Called with the call and the server's answer; sync or async."""

Part: TypeAlias = "TextPart | ImagePart | FilePart"

# RFC 6838, with parameters or without.
_MEDIA_TYPE = re.compile(r"[\w.+!#$&^-]{1,64}/[\w.+!#$&^-]{1,64}(?:;[\x20-\x7e]{0,128})?", re.ASCII)
# In characters, the mark of a cut text included.
_NAME_LENGTH = 100
_ADDRESS_LENGTH = 2000
_FILENAME_LENGTH = 255
_MOST_PARTS = 1000


def find_unknown(error: ValidationError) -> dict[str, Any]:
    """The answer that the SDK couldn't read, by its error; empty where that doesn't have it."""
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] == "missing" and isinstance(problem["input"], dict):
            return dict(problem["input"])
    return {}


async def hand_on(
    handler: AnswerHandler, call: ToolMetadata | None, result: CallToolResult
) -> None:
    """Give an answer to who wants to have it whole."""
    done = handler(call, result)
    if hasattr(done, "__await__"):
        await done


def read_result(result: CallToolResult, limits: Limits) -> DynamicOutput:
    """The output of a call.

    Raises:
        ToolError: The server says that the tool failed; the message is its text.
    """
    parts = list(_join_texts(_read_blocks(result, limits)))
    structured = result.structured_content
    if structured is not None and not any(isinstance(b, TextContent) for b in result.content):
        text = json_values.encode_text(structured)
        if not parts and not result.is_error and len(text) <= limits.max_chars:
            output: DynamicOutput = structured
            return output
        parts.append(TextPart(text))
    parts = _cut_names(_cut_texts(_limit_parts(parts), limits.max_chars), limits.max_chars)
    only_text = all(isinstance(part, TextPart) for part in parts)
    if result.is_error:
        raise _make_error(parts)
    if only_text:
        return "\n".join([part.text for part in parts if isinstance(part, TextPart)])
    return parts


def read_contents(result: ReadResourceResult, limits: Limits) -> tuple[Part, ...]:
    """What a resource holds, as parts in the same limits."""
    parts: list[Part] = []
    for found in result.contents:
        if isinstance(found, BlobResourceContents):
            is_image = (found.mime_type or "").startswith("image/")
            what = "image" if is_image else "file"
            parts.append(_read_bytes(found.blob, found.mime_type, what, found.uri, limits))
        else:
            parts.append(TextPart(found.text))
    return tuple(_cut_names(_cut_texts(_limit_parts(parts), limits.max_chars), limits.max_chars))


def read_message(block: ContentBlock, limits: Limits) -> tuple[Part, ...]:
    """What a message of a prompt says, as parts in the same limits."""
    parts = list(_read_blocks(CallToolResult(content=[block]), limits))
    return tuple(_cut_names(_cut_texts(parts, limits.max_chars), limits.max_chars))


def cut(text: str, most: int) -> str:
    """The first `most` characters, and how much is missing."""
    return text if len(text) <= most else text[:most] + _missing_note(len(text), most)


def _missing_note(length: int, most: int) -> str:
    return f"\n[{length - most} of {length} characters were left out]"


def _make_error(parts: list[Part]) -> ToolError:
    """The error of a failed call: its text, and what else the answer holds behind it."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    others = [part for part in parts if not isinstance(part, TextPart)]
    text = "\n".join(texts)
    if not text.strip():
        text = "The tool failed, and its server didn't say why."
    return ToolError(text, content=others or None)


def _read_blocks(result: CallToolResult, limits: Limits) -> Iterator[Part]:
    for block in result.content:
        if isinstance(block, TextContent):
            yield TextPart(block.text)
        elif isinstance(block, ImageContent):
            yield _read_bytes(block.data, block.mime_type, "image", None, limits)
        elif isinstance(block, AudioContent):
            yield _read_bytes(block.data, block.mime_type, "sound", None, limits)
        elif isinstance(block, ResourceLink):
            yield TextPart(_describe_link(block))
        elif isinstance(block.resource, BlobResourceContents):
            found = block.resource
            yield _read_bytes(found.blob, found.mime_type, "file", found.uri, limits)
        else:
            yield TextPart(f"{_show_address(block.resource.uri)}\n{block.resource.text}")


def _describe_link(link: ResourceLink) -> str:
    title = shorten(link.title or link.name, _NAME_LENGTH)
    about = f": {link.description}" if link.description else ""
    kind = f" ({shorten(link.mime_type, _NAME_LENGTH)})" if link.mime_type else ""
    return f"[{title}]({_show_address(link.uri)}){kind}{about}"


def _show_address(uri: str) -> str:
    return shorten(uri, _ADDRESS_LENGTH)


def _read_bytes(
    data: str, media_type: str | None, what: str, uri: str | None, limits: Limits
) -> Part:
    where = f" {shorten(uri, _NAME_LENGTH)}" if uri else ""
    about = f"{what}{where} of the type {shorten(media_type or 'unknown', _NAME_LENGTH)}"
    if media_type and not _MEDIA_TYPE.fullmatch(media_type):
        return TextPart(f"[{about} was left out: that is not a media type]")
    # Four characters are three bytes, but for the padding: what is too long isn't decoded.
    size = len(data) * 3 // 4 - data[-2:].count("=")
    if size > limits.max_bytes:
        return TextPart(f"[{about} was left out: {size} bytes are more than {limits.max_bytes}]")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return TextPart(f"[{about} was left out: it is not base64]")
    if not decoded:
        return TextPart(f"[{about} is empty]")
    kind = media_type or "application/octet-stream"
    if what == "image":
        return ImagePart(decoded, kind)
    return FilePart(decoded, kind, filename=_read_filename(uri) if uri else None)


def _read_filename(uri: str) -> str | None:
    """The last part of an address, with its ending where it has to be cut."""
    name = uri.rstrip("/").rpartition("/")[2]
    if len(name) > _FILENAME_LENGTH:
        ending = name[-20:].rpartition(".")
        suffix = ending[1] + ending[2] if ending[1] else ""
        name = shorten(name, _FILENAME_LENGTH - len(suffix)) + suffix
    return name or None


def _join_texts(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts, neighbouring texts as one with a line end between them."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        if texts:
            yield TextPart("\n".join(texts))
            texts = []
        yield part
    if texts:
        yield TextPart("\n".join(texts))


def _limit_parts(parts: list[Part]) -> list[Part]:
    """The first thousand parts, and how many more there were."""
    if len(parts) <= _MOST_PARTS:
        return parts
    more = f"[{len(parts) - _MOST_PARTS} more parts of the answer were left out]"
    return [*parts[:_MOST_PARTS], TextPart(more)]


def _cut_names(parts: list[Part], most: int) -> list[Part]:
    """The parts, their files without names where the texts leave no room for these."""
    room = most - sum([len(part.text) for part in parts if isinstance(part, TextPart)])
    left: list[Part] = []
    for part in parts:
        length = len(part.filename or "") if isinstance(part, FilePart) else 0
        if isinstance(part, FilePart) and length > room:
            left.append(replace(part, filename=None))
        else:
            left.append(part)
            room -= length
    return left


def _cut_texts(parts: list[Part], most: int) -> list[Part]:
    """The parts with no more than `most` characters of text in all."""
    total = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    if total <= most:
        return parts
    left: list[Part] = []
    room = most
    for part in parts:
        if not isinstance(part, TextPart):
            left.append(part)
        elif room > 0 and len(part.text) <= room:
            left.append(part)
            room -= len(part.text)
        elif room >= 0:
            left.append(TextPart(part.text[:room] + _missing_note(total, most)))
            room = -1
    return left
