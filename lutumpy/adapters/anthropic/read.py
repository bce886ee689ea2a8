"""A history of the Anthropic Messages API as a transcript: its messages told apart, and kept as
they are.

Neighbouring messages of one role are one for this API. So the calls of an answer may be in
several messages, and their results too, with a text after them.
"""

# `adapters/block_reading.py` explains how messages become turns.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.adapters.anthropic.decode import API, ContentReader
from lutumpy.adapters.anthropic.read_changes import SETTINGS
from lutumpy.adapters.block_reading import (
    BlockReaders,
    ResultContent,
    blocks_of,
    matcher_by_id,
    read_blocks,
    read_parts,
)
from lutumpy.adapters.read_settings import read_settings
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    file_part,
    image_part,
    left_out,
    result_content,
    text_only,
)
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FilePart,
    Message,
    Part,
    TextPart,
    Verbatim,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["read_messages"]


def read_messages(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `messages` and `system`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A text, or a list of text blocks.
        server_held_prefix: Changes nothing: a history whose start is in a thread can't be read.
        tools: The request's `tools`, where they are known.

    Raises:
        TranscriptError: it isn't a history, or a call has no result where it should be.
    """
    history = HistoryReading(API)
    entries = history.entries(messages, "messages.{}")
    if system is not None:
        history.add(_read_system(system))
    read_blocks(history, entries, _READERS)
    if history.refused:
        return history.end(anthropic.check_messages([entry.value for entry in entries]))
    transcript = history.end(())
    return read_settings(transcript, tools, SETTINGS)


def _read_system(system: Any) -> Message:
    data, value = decoded(system, "system")
    if not isinstance(value, (str, list)):
        raise TranscriptError(
            f"system is {type(value).__name__}, neither text nor blocks; nothing was read"
        )
    return Message(
        "system", tuple(text_only(_read_parts(value))), verbatim=Verbatim(API, (data,), system=True)
    )


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = ContentReader(answered)
    for entry in run:
        for block in blocks_of(entry, WIRE):
            reader.read(block)
    reader.settle_calls("stop")
    return reader.turn({"stop_reason": _infer_stop_reason(reader)}, None)


def _infer_stop_reason(reader: ContentReader) -> str:
    """Why the answer stopped, which a history does not say: from what is at its end."""
    if reader.calls:
        return "tool_use"
    if reader.running:
        return "pause_turn"
    ends_in_summary = bool(reader.native) and reader.native[-1].get("type") == "compaction"
    return "compaction" if ends_in_summary else "end_turn"


# --- content --------------------------------------------------------------------------------------


def _read_result(result: Mapping[str, Any], call: CallBlock) -> tuple[ResultContent, bool]:
    return _read_content(result.get("content")), result.get("is_error") is True


def _read_content(content: Any) -> ResultContent:
    """The content of a result."""
    return content if isinstance(content, str) else result_content(_read_parts(content))


def _read_parts(content: Any) -> list[Part]:
    return read_parts(content, _read_block)


def _read_block(block: Any) -> Iterator[Part]:
    fields = block if isinstance(block, dict) else {}
    kind = fields.get("type")
    if kind == "text":
        text = fields.get("text")
        if isinstance(text, str) and text:
            yield TextPart(text)
    elif kind == "image":
        yield _read_image(fields.get("source"))
    elif kind == "document":
        yield from _read_document(fields)
    elif kind == "search_result":
        heads = [fields.get(name) for name in ("title", "source")]
        if head := "\n".join([text for text in heads if isinstance(text, str)]):
            yield TextPart(head)
        yield from _read_parts(fields.get("content"))
    else:
        names = [fields.get(name) for name in ("tool_name", "file_id")]
        yield left_out(kind, next((name for name in names if isinstance(name, str)), None))


def _read_image(source: Any) -> Part:
    fields = source if isinstance(source, dict) else {}
    if fields.get("type") == "url":
        return image_part(fields.get("url"))
    media_type, data = fields.get("media_type"), fields.get("data")
    if fields.get("type") == "base64" and isinstance(media_type, str) and isinstance(data, str):
        return image_part(f"data:{media_type};base64,{data}")
    return left_out("image", fields.get("file_id"))


def _read_document(block: dict[str, Any]) -> Iterator[Part]:
    source = block.get("source")
    fields = source if isinstance(source, dict) else {}
    title = block.get("title")
    named = title if isinstance(title, str) and title else None
    kind = fields.get("type")
    url = fields.get("url")
    context = block.get("context")  # what the model is told about it
    if isinstance(context, str) and context:
        yield TextPart(context)
    if (
        kind == "base64"
        and (file := file_part(fields.get("data"), fields.get("media_type"), named)) is not None
    ):
        yield file
    elif kind == "text" and isinstance(text := fields.get("data"), str) and text:
        yield FilePart(text.encode(), "text/plain", filename=named)
    elif kind == "url" and isinstance(url, str) and url.lower().startswith(("https://", "http://")):
        yield FilePart(url=url, media_type="application/pdf", filename=named)
    elif kind == "content":
        if named is not None:
            yield TextPart(named)
        yield from _read_parts(fields.get("content"))
    else:
        yield left_out("document", named or fields.get("file_id"))


_READERS = BlockReaders(WIRE, _read_turn, _read_parts, _read_result, matcher_by_id(WIRE))
