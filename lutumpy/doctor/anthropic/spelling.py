"""How Messages spells what other APIs say too."""

# a call      a block `tool_use` in an assistant message
# a result    a block `tool_result` in the user message after it, with all results of the turn

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lutumpy.doctor.anthropic.media import read_source, write_source
from lutumpy.doctor.pieces import Call, Media, Piece, Result
from lutumpy.doctor.spelling import (
    BlockSpelling,
    Json,
    PartReader,
    ReadContent,
    ResultReader,
    object_arguments,
    read_as_reasoning,
    read_text_part,
)
from lutumpy.doctor.wording import NO_TEXT
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES

__all__ = ["SPELLING", "MessagesSpelling"]

# Keys of a result that mean nothing elsewhere, and are kept when the result comes back here.
_KEPT_KEYS = ("cache_control", "toolset_name")


def _read_use(block: Mapping[str, Any]) -> Piece | None:
    call_id = block.get("id", block.get("call_id"))
    return Call(call_id, block.get("name"), block.get("input", block.get("arguments")))


def _read_result(block: Mapping[str, Any], read_content: ReadContent) -> Piece:
    content = read_content(block.get("content"))
    more = tuple([(key, block[key]) for key in _KEPT_KEYS if key in block])
    failed = block.get("is_error") is True
    return Result(block.get("tool_use_id"), content, failed, more=more)


class MessagesSpelling(BlockSpelling):
    """The spelling of Messages."""

    parts: ClassVar[frozenset[str]] = frozenset(BLOCK_TYPES)
    readers: ClassVar[Mapping[str, PartReader]] = {
        "text": read_text_part,
        "image": read_source,
        "document": read_source,
        "thinking": read_as_reasoning,
        "redacted_thinking": read_as_reasoning,
    }
    calls: ClassVar[Mapping[str, PartReader]] = {"tool_use": _read_use}
    results: ClassVar[Mapping[str, ResultReader]] = {"tool_result": _read_result}
    in_content: ClassVar[frozenset[str]] = frozenset({"tool_use", "tool_result"})
    result_id_key = "tool_use_id"
    joins_messages = True
    marks_errors = True

    def write_result(self, result: Result) -> Json:
        content = self.write_result_content(result)
        block: Json = {"type": "tool_result", "tool_use_id": result.call_id}
        if content or result.failed:
            block["content"] = content or NO_TEXT
        if result.failed:
            block["is_error"] = True
        return {**block, **dict(result.more)}

    def write_use(self, call: Call) -> Json:
        arguments = object_arguments(call)
        return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": arguments}

    def write_media(self, media: Media) -> Json | None:
        return write_source(media)


SPELLING = MessagesSpelling()
