"""Messages of Converse on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.page.model import Piece
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    image_piece,
    part_piece,
    text_piece,
    unwrap,
)
from lutumpy.page.read_blocks import BlockPieces

__all__ = ["BLOCKS"]


def _read_result(content: Any, limit: int) -> str | list[Piece]:
    """What a result holds: its text when it is nothing but one text."""
    if not isinstance(content, (list, tuple)):
        return content_pieces(content, limit)
    parts = [unwrap(part) for part in content]
    if len(parts) == 1 and isinstance(parts[0], Mapping):
        only = parts[0]
        if isinstance(only.get("text"), str):
            text: str = only["text"]
            return text
        if "json" in only:
            return argument_text(only["json"])
    return [_read_block(part, limit) for part in parts]


def _read_block(block: Any, limit: int) -> Piece:
    if not isinstance(block, Mapping) or "type" in block:
        return part_piece(block, limit)
    if isinstance(block.get("text"), str):
        return text_piece(block["text"], limit)
    reasoning = _under(block, "reasoningContent")
    if reasoning is not None:
        return _read_reasoning(reasoning, limit)
    image = _under(block, "image")
    if image is not None:
        data = (_under(image, "source") or {}).get("bytes")
        if isinstance(data, str):
            return image_piece(f"image/{str(image.get('format'))[:100]}", data, limit)
    for kind in ("document", "video", "audio"):
        shown = _under(block, kind)
        if shown is not None:
            return _read_file(kind, shown, limit)
    key = next(iter(block), "")
    return data_piece(str(key)[:100] or "Empty block", block, limit)


def _read_reasoning(reasoning: Mapping[str, Any], limit: int) -> Piece:
    reasoning_text = _under(reasoning, "reasoningText")
    if reasoning_text is None:
        return text_piece("", limit, "reasoning", "Reasoning, redacted by the provider")
    text = reasoning_text.get("text")
    label = "Reasoning, signed" if reasoning_text.get("signature") else "Reasoning"
    return text_piece(text if isinstance(text, str) else "", limit, "reasoning", label)


def _read_file(kind: str, shown: Mapping[str, Any], limit: int) -> Piece:
    source = _under(shown, "source") or {}
    text, data = source.get("text"), source.get("bytes")
    place = (_under(source, "s3Location") or {}).get("uri")
    words = [shown.get("name"), shown.get("format"), place]
    named = ", ".join([word[:500] for word in words if isinstance(word, str) and word])
    if isinstance(text, str):
        return text_piece(text, limit, "file", f"Document: {named}")
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
    return Piece("file", f"{kind.capitalize()}: {named}{size}")


def _under(block: Any, key: str) -> Mapping[str, Any] | None:
    inner = unwrap(block.get(key)) if isinstance(block, Mapping) else None
    return inner if isinstance(inner, Mapping) else None


BLOCKS = BlockPieces(_read_block, _read_result, lambda result: result.get("status") == "error")
