"""A history of Converse as a transcript: its messages told apart, and kept as they are."""

# A tool of the provider's isn't a call to be answered: it is with its result in the assistant's
# message. `adapters/block_reading.py` explains how messages become turns.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.adapters.bedrock.blobs import with_base64
from lutumpy.adapters.bedrock.decode import API, BlockReader, key_of
from lutumpy.adapters.bedrock.read_changes import SETTINGS
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
from lutumpy.plain.json_values import encode_text
from lutumpy.rules.bedrock import messages as converse
from lutumpy.rules.bedrock.wire import WIRE

__all__ = ["read_converse"]


def read_converse(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `messages` and `system`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A text, or a list of text blocks.
        server_held_prefix: Changes nothing: a history whose start is in a thread can't be read.
        tools: The `tools` of the request's `toolConfig`, where they are known.

    Raises:
        TranscriptError: it isn't a history, or a call has no result where it should be.
    """
    history = HistoryReading(API)
    entries = history.entries(_plain(messages), "messages.{}")
    if system is not None:
        history.add(_read_system(system))
    read_blocks(history, entries, _READERS)
    if history.refused:
        return history.end(converse.check_messages([entry.value for entry in entries]))
    transcript = history.end(())
    return read_settings(transcript, tools, SETTINGS)


def _read_system(system: Any) -> Message:
    if isinstance(system, str):  # the API takes a list of blocks
        return Message("system", (TextPart(system),))
    data, value = decoded(system, "system")
    if not isinstance(value, list):
        raise TranscriptError(
            f"system is {type(value).__name__}, neither text nor blocks; nothing was read"
        )
    return Message(
        "system", tuple(text_only(_read_parts(value))), verbatim=Verbatim(API, (data,), system=True)
    )


def _plain(messages: Any) -> Any:
    """The messages with base64 in place of the bytes that boto3 takes."""
    return with_base64(messages) if isinstance(messages, (list, tuple)) else messages


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = BlockReader(answered)
    for entry in run:
        for block in blocks_of(entry, WIRE):
            reader.read(block)
    reader.settle_calls()
    return reader.turn({"stopReason": "tool_use" if reader.calls else "end_turn"}, None)


# --- content --------------------------------------------------------------------------------------

_TYPES = {"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown"}
_TYPES |= {"html": "text/html", "csv": "text/csv", "doc": "application/msword"}
_OFFICE = "application/vnd.openxmlformats-officedocument."
_TYPES |= {"docx": f"{_OFFICE}wordprocessingml.document", "xls": "application/vnd.ms-excel"}
_TYPES |= {"xlsx": f"{_OFFICE}spreadsheetml.sheet"}


def _read_result(result: Mapping[str, Any], call: CallBlock) -> tuple[ResultContent, bool]:
    content = result_content(_read_parts(result.get("content")))
    return content, result.get("status") == "error"


def _read_parts(content: Any) -> list[Part]:
    return read_parts(content, _read_block)


def _read_block(block: Any) -> Iterator[Part]:
    kind = key_of(block)
    inner = block[kind] if kind else None
    if kind == "text":
        if isinstance(inner, str) and inner:
            yield TextPart(inner)
    elif kind == "json":
        yield TextPart(encode_text(inner))
    elif not isinstance(inner, dict):
        yield left_out(kind)
    elif kind == "image":
        source = inner.get("source")
        data = source.get("bytes") if isinstance(source, dict) else None
        is_whole = isinstance(data, str) and isinstance(inner.get("format"), str)
        yield image_part(f"data:image/{inner['format']};base64,{data}" if is_whole else None)
    elif kind == "document":
        yield _read_document(inner)
    elif kind == "searchResult":
        heads = [inner.get(name) for name in ("title", "source")]
        if head := "\n".join([text for text in heads if isinstance(text, str)]):
            yield TextPart(head)
        yield from _read_parts(inner.get("content"))
    elif kind != "cachePoint":
        yield left_out(kind)


def _read_document(document: dict[str, Any]) -> Part:
    source = document.get("source")
    fields = source if isinstance(source, dict) else {}
    title = document.get("name")
    named = title if isinstance(title, str) and title else None
    text = fields.get("text")
    if isinstance(text, str) and text:
        return FilePart(text.encode(), "text/plain", filename=named)
    media_type = _TYPES.get(str(document.get("format")))
    return file_part(fields.get("bytes"), media_type, named) or left_out("document", named)


_READERS = BlockReaders(WIRE, _read_turn, _read_parts, _read_result, matcher_by_id(WIRE))
