"""Messages of Chat Completions on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.page.model import Piece, Place, Step
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    extra_piece,
    result_content,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline
from lutumpy.plain.safe_text import safe_repr

__all__ = ["read_message"]

# What is shown by itself; other keys of a message are shown as they are.
_CHAT = frozenset(
    "role content tool_calls function_call tool_call_id refusal reasoning reasoning_content "
    "reasoning_details".split()
)


def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    role, content = message.get("role"), unwrap(message.get("content"))
    if role in ("tool", "function"):
        call_id = message.get("tool_call_id")
        timeline.add_result(
            call_id if role == "tool" else message.get("name"),
            result_content(content, limit),
            (index,),
        )
        return
    pieces = _read_reasoning(message, limit) + content_pieces(content, limit)
    if isinstance(message.get("refusal"), str):
        pieces.append(text_piece(message["refusal"], limit, "refusal", "Refusal"))
    step = timeline.add_step(role, pieces + extra_piece(message, _CHAT, limit), (index,))
    calls = unwrap(message.get("tool_calls"))
    if isinstance(calls, (list, tuple)):
        for number, call in enumerate(calls):
            _add_call(timeline, step, unwrap(call), (index, "tool_calls", number))
    elif calls is not None:
        step.pieces.append(data_piece("tool_calls of an unknown form", calls, limit))
    legacy = unwrap(message.get("function_call"))
    if isinstance(legacy, Mapping):
        name = legacy.get("name")
        timeline.add_call(
            step,
            name,
            name,
            argument_text(legacy.get("arguments")),
            (index, "function_call"),
            "function_call",
        )


def _add_call(timeline: Timeline, step: Step, call: Any, place: Place) -> None:
    if not isinstance(call, Mapping):
        step.pieces.append(data_piece("Call of an unknown form", call, timeline.limit))
        return
    kind = call.get("type", "function")
    body = unwrap(call.get(kind) if isinstance(kind, str) else None)
    body = body if isinstance(body, Mapping) else unwrap(call.get("function"))
    body = body if isinstance(body, Mapping) else {}
    arguments = body.get("arguments", body.get("input"))
    word = kind if isinstance(kind, str) else safe_repr(kind)
    timeline.add_call(step, call.get("id"), body.get("name"), argument_text(arguments), place, word)


def _read_reasoning(message: Mapping[str, Any], limit: int) -> list[Piece]:
    for key in ("reasoning_content", "reasoning"):
        text = message.get(key)
        if isinstance(text, str) and text:
            return [text_piece(text, limit, "reasoning", "Reasoning")]
    details = message.get("reasoning_details")
    return [data_piece("Reasoning", details, limit)] if details else []
