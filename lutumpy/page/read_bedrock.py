"""Messages of Converse on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import ResultStatus
from lutumpy.page.model import Piece, Place
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    extra_piece,
    image_piece,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["read_message"]

# What is shown by itself; other keys of a message are shown as they are.
_SHOWN = frozenset(("role", "content"))


def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    content = unwrap(message.get("content"))
    pieces: list[Piece] = []
    if not isinstance(content, (list, tuple)):
        pieces += content_pieces(content, limit) + extra_piece(message, _SHOWN, limit)
        timeline.add_step(message.get("role"), pieces, (index,))
        return
    calls: list[tuple[int, Mapping[str, Any]]] = []
    results: list[tuple[int, Mapping[str, Any]]] = []
    for number, block in enumerate(content):
        block = unwrap(block)
        use, result = _under(block, "toolUse"), _under(block, "toolResult")
        if use is not None:
            calls.append((number, use))
        elif result is not None:
            results.append((number, result))
        else:
            pieces.append(_read_block(block, limit))
    pieces += extra_piece(message, _SHOWN, limit)
    # Results of the user's answer what stands before; the provider's own stand beside their calls.
    is_answer = not calls
    if is_answer:
        _add_results(timeline, index, results)
    if pieces or calls or not results:
        step = timeline.add_step(message.get("role"), pieces, (index,))
        for number, use in calls:
            place: Place = (index, "content", number)
            arguments = argument_text(use.get("input"))
            timeline.add_call(step, use.get("toolUseId"), use.get("name"), arguments, place)
    if not is_answer:
        _add_results(timeline, index, results)


def _under(block: Any, key: str) -> Mapping[str, Any] | None:
    inner = unwrap(block.get(key)) if isinstance(block, Mapping) else None
    return inner if isinstance(inner, Mapping) else None


def _add_results(
    timeline: Timeline, index: int, results: list[tuple[int, Mapping[str, Any]]]
) -> None:
    for number, result in results:
        status: ResultStatus | None = "error" if result.get("status") == "error" else None
        shown = _read_result(unwrap(result.get("content")), timeline.limit)
        place: Place = (index, "content", number)
        timeline.add_result(result.get("toolUseId"), shown, place, status)


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
        return content_pieces([block], limit)[0]
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
