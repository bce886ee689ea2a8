"""Items of Responses on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import ResultStatus
from lutumpy.page.model import Piece, Place
from lutumpy.page.pieces import (
    argument_text,
    as_label,
    content_pieces,
    data_piece,
    extra_piece,
    result_content,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["read_message"]

# What is shown by itself; other keys of an item are shown as they are.
_RESPONSES = frozenset("role content type id status".split())
# Where calls of one kind or another have what they were called with, the first of these that is
# there.
_CALL_TEXTS = ("arguments", "input", "action", "operation")


def read_message(timeline: Timeline, index: int, item: Mapping[str, Any]) -> None:
    limit = timeline.limit
    kind = item.get("type", "message" if "role" in item else None)
    place: Place = (index,)
    if kind == "message":
        pieces = content_pieces(item.get("content"), limit) + extra_piece(item, _RESPONSES, limit)
        if item.get("role") == "assistant":
            timeline.continue_answer(place).pieces.extend(pieces)
        else:
            timeline.add_step(item.get("role"), pieces, place)
    elif kind == "reasoning":
        timeline.continue_answer(place).pieces.append(_read_reasoning(item, limit))
    elif kind == "mcp_approval_request" and isinstance(item.get("id"), str):
        step = timeline.continue_answer(place)
        server = item.get("server_label")
        name = f"{server}.{item.get('name')}" if isinstance(server, str) else item.get("name")
        timeline.add_call(step, item["id"], name, argument_text(item.get("arguments")), place, kind)
    elif kind == "mcp_approval_response" and "approval_request_id" in item:
        approved = item.get("approve") is True
        decision = item.get("reason") or ("approved" if approved else "not approved")
        status: ResultStatus = "ok" if approved else "rejected"
        content = result_content(decision, limit)
        timeline.add_result(item.get("approval_request_id"), content, place, status)
    elif isinstance(kind, str) and kind.endswith("_output") and "call_id" in item:
        output = item.get("output") if "output" in item else item.get("tools")
        timeline.add_result(item.get("call_id"), result_content(unwrap(output), limit), place)
    elif (
        isinstance(kind, str)
        and kind.endswith("_call")
        and (kind == "function_call" or item.get("call_id"))
    ):
        arguments = next((item[key] for key in _CALL_TEXTS if item.get(key) is not None), None)
        name, space = item.get("name", kind), item.get("namespace")
        name = f"{space}.{name}" if isinstance(space, str) and space else name
        word = "function" if kind == "function_call" else kind
        step = timeline.continue_answer(place)
        timeline.add_call(step, item.get("call_id"), name, argument_text(arguments), place, word)
    elif "role" in item and kind is not None:
        timeline.add_step(item.get("role"), [data_piece(as_label(kind), item, limit)], place)
    else:
        label = as_label(kind) if kind is not None else "Item without a type"
        timeline.continue_answer(place).pieces.append(data_piece(label, item, limit))


def _read_reasoning(item: Mapping[str, Any], limit: int) -> Piece:
    texts: list[str] = []
    for key in ("summary", "content"):
        parts = unwrap(item.get(key))
        for part in parts if isinstance(parts, (list, tuple)) else ():
            part = unwrap(part)
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                texts.append(part["text"])
    sealed = ", encrypted" if item.get("encrypted_content") else ""
    return text_piece("\n\n".join(texts), limit, "reasoning", f"Reasoning{sealed}")
