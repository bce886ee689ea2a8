"""How Converse spells what other APIs say too."""

# a call      a block `toolUse` in an assistant message
# a result    a block `toolResult` in the user message after it, with all results of the turn
#
# A block has no type; the kinds below are names for its keys.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lutumpy.doctor.bedrock.media import read_shown, write_shown
from lutumpy.doctor.pieces import Call, Media, Piece, Result, Text
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
from lutumpy.doctor.wording import NO_TEXT, as_text
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS

__all__ = ["SPELLING", "ConverseSpelling"]


def _kind(key: str) -> str:
    return f"converse.{key}"


def _inner(block: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = block.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _read_use(block: Mapping[str, Any]) -> Piece | None:
    use = _inner(block, "toolUse")
    return Call(use.get("toolUseId"), use.get("name"), use.get("input"))


def _read_result(block: Mapping[str, Any], read_content: ReadContent) -> Piece:
    result = _inner(block, "toolResult")
    content = read_content(result.get("content"))
    if isinstance(content, tuple) and len(content) == 1 and isinstance(content[0], Text):
        content = content[0].text
    failed = result.get("status") == "error"
    return Result(result.get("toolUseId"), content, failed)


def _read_json(block: Mapping[str, Any]) -> Piece | None:
    return Text(as_text(block.get("json")))


class ConverseSpelling(BlockSpelling):
    """The spelling of Converse."""

    part_keys: ClassVar[Mapping[str, str]] = {key: _kind(key) for key in (*BLOCK_KEYS, "json")}
    parts: ClassVar[frozenset[str]] = frozenset(part_keys.values())
    readers: ClassVar[Mapping[str, PartReader]] = {
        _kind("text"): read_text_part,
        _kind("json"): _read_json,
        _kind("image"): read_shown,
        _kind("document"): read_shown,
        _kind("reasoningContent"): read_as_reasoning,
    }
    calls: ClassVar[Mapping[str, PartReader]] = {_kind("toolUse"): _read_use}
    results: ClassVar[Mapping[str, ResultReader]] = {_kind("toolResult"): _read_result}
    in_content: ClassVar[frozenset[str]] = frozenset({_kind("toolUse"), _kind("toolResult")})
    joins_messages = True
    marks_errors = True

    def text_part(self, text: str, *, by_model: bool) -> Json:
        return {"text": text}

    def write_result(self, result: Result) -> Json:
        content = self.write_result_content(result)
        if isinstance(content, str):
            content = [{"text": content}] if content.strip() else []
        inner: Json = {"toolUseId": result.call_id, "content": content}
        if result.failed:
            inner["content"] = content or [{"text": NO_TEXT}]
            inner["status"] = "error"
        return {"toolResult": inner}

    def write_use(self, call: Call) -> Json:
        arguments = object_arguments(call)
        return {"toolUse": {"toolUseId": call.call_id, "name": call.name, "input": arguments}}

    def write_media(self, media: Media) -> Json | None:
        return write_shown(media)


SPELLING = ConverseSpelling()
