"""A tool's result as MCP content (rule MCP7).

content of a result               what is sent
--------------------------------  -----------------------------------------------------------
text                              a block of text
a JSON value                      the same, and as structured content where the tool says that
                                  its results are objects
`ImagePart`, `FilePart` of sound  an image, a sound
another `FilePart`                an embedded resource
a part with an address            a link
`RawPart`                         its text for other APIs
failed or rejected                the same content, with `isError`
a promise                         a text that says so
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from lutumpy import ImagePart, RawPart, Selector, TextPart, ToolResult
from lutumpy.models import FoundTool, Part
from lutumpy.plain import json_values
from lutumpy.tools import poller_of

__all__ = [
    "failed_result",
    "make_blocks",
    "make_result",
    "sent_output_schema",
    "worded_for_client",
]

_UNUSABLE = "The tool ran, but its answer can't be used: it has not the declared type."
_RUNNING = (
    "The call is running. Its result isn't sent here: don't make the call again, and don't guess "
    "the result."
)


def make_result(result: ToolResult, selector: Selector[Any, Any, Any]) -> CallToolResult:
    """A result of a call as the client gets it."""
    if result.output_error is not None:
        return failed_result(_UNUSABLE)
    is_error = result.status not in ("ok", "promised")
    blocks = list(make_blocks(result.content))
    if is_error or sent_output_schema(selector) is None:
        return CallToolResult(content=blocks, is_error=is_error)
    structured = _read_object(result.content)
    # The protocol has no other place for an answer that isn't of the declared schema, such as what
    # a hook put in its place.
    return CallToolResult(
        content=blocks, structured_content=structured, is_error=structured is None
    )


def failed_result(text: str) -> CallToolResult:
    """The result of a call that failed, with this text."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def worded_for_client(result: ToolResult) -> ToolResult:
    """A result as a client is told it: a promise to a model says that its result will come by
    itself, and nothing comes to a client.
    """
    if result.status != "promised":
        return result
    note = "" if result.promise is None else result.promise.note.strip()
    return replace(result, content=f"{_RUNNING}\n{note}" if note else _RUNNING)


def sent_output_schema(selector: Selector[Any, Any, Any]) -> dict[str, Any] | None:
    """The schema of a tool's results, where the older protocol takes it: its root is an object.

    A tool that lists one gives an object each time, so one that may promise its result lists none.
    """
    if selector.definition.options.late or poller_of(selector.tool) is not None:
        return None
    schema = selector.definition.output_schema
    return schema if schema is not None and schema.get("type") == "object" else None


def _read_object(content: Any) -> dict[str, Any] | None:
    if not isinstance(content, str):
        return None
    try:
        value = json_values.decode(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def make_blocks(content: str | Iterable[Part]) -> list[ContentBlock]:
    """Content as blocks of the protocol."""
    if isinstance(content, str):
        return [TextContent(text=json_values.clean_text(content))]
    return [_make_block(part, index) for index, part in enumerate(content)]


# Half a character anywhere, as in a name from a folder's listing, would end the connection: the
# SDK finds it when it writes.
def _make_block(part: Part, index: int) -> ContentBlock:
    clean = json_values.clean_text
    if isinstance(part, (TextPart, RawPart, FoundTool)):
        return TextContent(text=clean(part.text))
    media_type = clean(part.media_type or "")
    if part.data is None:
        name = "image" if isinstance(part, ImagePart) else clean(part.filename or "file")
        return ResourceLink(name=name, uri=clean(part.url or ""), mime_type=media_type or None)
    data = base64.b64encode(part.data).decode()
    media_type = media_type or "application/octet-stream"
    if isinstance(part, ImagePart):
        return ImageContent(data=data, mime_type=media_type)
    if media_type.startswith("audio/"):
        return AudioContent(data=data, mime_type=media_type)
    name = clean(part.filename or f"file-{index}")
    return EmbeddedResource(
        resource=BlobResourceContents(uri=f"result:///{name}", mime_type=media_type, blob=data)
    )
