"""Messages as the API writes it: one message, or its events."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from lutumpy.testing.replies import Reply, object_input, split_text, streamed_input

__all__ = ["SHAPING", "render", "render_failure", "render_stream", "signature"]

SHAPING = frozenset({"compaction"})
"""Parameters of a request on which the shape of an answer depends: a compaction is one block, the
summary.
"""

KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""The type of an error by its HTTP status."""

STOP = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "paused": "pause_turn",
}


def _render_blocks(reply: Reply, number: int, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    if _is_compaction(body):
        return [_render_compaction(reply, number)]
    blocks: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        blocks.append(
            {
                "type": "thinking",
                "thinking": reply.reasoning,
                "signature": signature(reply.reasoning, number),
            }
        )
    blocks += [{"type": "text", "text": text} for text in (reply.text, reply.refusal) if text]
    for index, call in enumerate(reply.calls):
        use_id = call.id if call.id is not None else f"toolu_01{number:014d}{index:08d}"
        blocks.append(
            {
                "type": "tool_use",
                "id": use_id,
                "name": call.name,
                "input": object_input(reply, call),
            }
        )
    return blocks


def _is_compaction(body: Mapping[str, Any]) -> bool:
    return body.get("compaction") is not None


def _render_compaction(reply: Reply, number: int) -> dict[str, Any]:
    """The summary; without words the compaction has failed [SDK]."""
    summary = reply.text or None
    return {
        "type": "compaction",
        "content": summary,
        "encrypted_content": None,
        "signature": None if summary is None else signature(summary, number),
        "tool_changes": [],
    }


def signature(thinking: str, number: int) -> str:
    """A seal of the thinking text; its own, so that a changed text can be told."""
    return "EqsB" + base64.b64encode(f"{number}:{thinking}".encode()).decode()


def _count_usage(reply: Reply, written: int) -> dict[str, Any]:
    return {
        "input_tokens": reply.tokens[0],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": written,
        "service_tier": "standard",
    }


def _stop_reason(reply: Reply, body: Mapping[str, Any]) -> str:
    return "compaction" if _is_compaction(body) else STOP[reply.finish_reason]


def _stop_details(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any] | None:
    if _stop_reason(reply, body) != "refusal":
        return None
    return {"type": "refusal", "category": None, "explanation": reply.refusal}


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": model,
        "id": f"msg_01{number:022d}",
        "type": "message",
        "role": "assistant",
        "content": _render_blocks(reply, number, body),
        "stop_reason": _stop_reason(reply, body),
        "stop_sequence": None,
        "stop_details": _stop_details(reply, body),
        "usage": _count_usage(reply, reply.tokens[1]),
    }


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    # The message comes first, without what is still to arrive: its content, its end, its tokens.
    start = {
        **render(reply, number=number, model=model, body=body),
        "content": [],
        "stop_reason": None,
        "stop_details": None,
        "usage": _count_usage(reply, 1),
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    calls = iter(reply.calls)
    for index, block in enumerate(_render_blocks(reply, number, body)):
        if block["type"] == "thinking":
            empty: dict[str, Any] = {**block, "thinking": "", "signature": ""}
            deltas: list[dict[str, Any]] = [
                {"type": "thinking_delta", "thinking": part}
                for part in split_text(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in split_text(block["text"])]
        elif block["type"] == "compaction":
            empty = {**block, "content": None}
            deltas = [
                {"type": "compaction_delta", "content": block["content"], "encrypted_content": None}
            ]
        else:
            empty = {**block, "input": {}}
            # The first piece of arguments is always an empty one.
            parts = ["", *split_text(streamed_input(next(calls)))]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        # The API sends one now and then; here once, where decoders meet it most often.
        if index == 0:
            events.append({"type": "ping"})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    ending = {
        "stop_reason": _stop_reason(reply, body),
        "stop_sequence": None,
        "stop_details": _stop_details(reply, body),
    }
    events.append(
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": reply.tokens[1]}}
    )
    events.append({"type": "message_stop"})
    return events


def render_failure(
    status: int, message: str, *, kind: str, param: str | None, code: str | None, request_id: str
) -> dict[str, Any]:
    """The JSON of an error; a code is in its `details`, and a parameter nowhere."""
    if not kind:
        usual = "api_error" if status >= 500 else "invalid_request_error"
        kind = KINDS.get(status, usual)
    error: dict[str, Any] = {"type": kind, "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error, "request_id": request_id}
