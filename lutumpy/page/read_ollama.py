"""Messages of Ollama's API on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import Usage
from lutumpy.page.model import Piece, Place, Step
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    extra_piece,
    image_piece,
    result_content,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["read_message", "read_usage"]

# What is shown by itself; other keys of a message are shown as they are.
_SHOWN = frozenset("role content thinking images tool_calls tool_name tool_call_id".split())


def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    role, content = message.get("role"), unwrap(message.get("content"))
    if role == "tool":
        # Where there are no ids, the call of this name that waits is the one that is answered.
        named = message.get("tool_call_id") or message.get("tool_name")
        images = _read_images(message, limit)
        shown = [*content_pieces(content, limit), *images] if images else None
        timeline.add_result(named, shown or result_content(content, limit), (index,))
        return
    pieces: list[Piece] = []
    thinking = message.get("thinking")
    if isinstance(thinking, str) and thinking:
        pieces.append(text_piece(thinking, limit, "reasoning", "Reasoning"))
    if content != "":
        pieces += content_pieces(content, limit)
    pieces += _read_images(message, limit)
    step = timeline.add_step(role, pieces + extra_piece(message, _SHOWN, limit), (index,))
    calls = unwrap(message.get("tool_calls"))
    if isinstance(calls, (list, tuple)):
        for number, call in enumerate(calls):
            _add_call(timeline, step, unwrap(call), (index, "tool_calls", number))
    elif calls is not None:
        step.pieces.append(data_piece("tool_calls of an unknown form", calls, limit))


def read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """The counts, which are at the top of an answer."""
    asked, written = usage.get("prompt_eval_count"), usage.get("eval_count")
    if not isinstance(asked, int) or not isinstance(written, int):
        return None
    return Usage(asked, written, asked + written)


def _add_call(timeline: Timeline, step: Step, call: Any, place: Place) -> None:
    function = unwrap(call.get("function")) if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        step.pieces.append(data_piece("Call of an unknown form", call, timeline.limit))
        return
    name = function.get("name")
    arguments = argument_text(function.get("arguments"))
    timeline.add_call(step, call.get("id") or name, name, arguments, place)


def _read_images(message: Mapping[str, Any], limit: int) -> list[Piece]:
    images = unwrap(message.get("images"))
    if images is None:
        return []
    if not isinstance(images, (list, tuple)):
        return [data_piece("images of an unknown form", images, limit)]
    return [
        _read_image(image, limit)
        if isinstance(image, str)
        else data_piece("Image of an unknown form", image, limit)
        for image in images
    ]


def _read_image(image: str, limit: int) -> Piece:
    """An image, whose bytes alone say of which kind it is."""
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        piece = image_piece(kind, image, limit)
        if piece.source:
            return piece
    return image_piece("image", image, limit)
