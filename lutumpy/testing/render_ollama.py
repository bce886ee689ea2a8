"""Answers of `/api/chat` as Ollama writes them: one object, or its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.testing.replies import Call, Reply, object_input, split_text

__all__ = ["render", "render_failure", "render_stream"]

FINISH = {
    "stop": "stop",
    "tool_calls": "stop",
    "length": "length",
    "content_filter": "stop",
    "refusal": "stop",
    "paused": "stop",
}
"""The API knows two ends of an answer that a model writes."""

_WHEN = "2026-01-01T00:00:{:02d}.000000000Z"


def _head(model: str, number: int) -> dict[str, Any]:
    return {"model": model, "created_at": _WHEN.format(number % 60)}


def _tail(reply: Reply) -> dict[str, Any]:
    asked, written = reply.tokens
    return {
        "done": True,
        "done_reason": FINISH[reply.finish_reason],
        "total_duration": 1_000_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": asked,
        "prompt_eval_duration": 100_000_000,
        "eval_count": written,
        "eval_duration": 800_000_000,
    }


def _text_of(reply: Reply) -> str:
    # A refusal is a text like any other here.
    return reply.text or reply.refusal or ""


def _render_call(reply: Reply, call: Call, number: int, index: int) -> dict[str, Any]:
    call_id = call.id if call.id is not None else f"call_{number:04d}{index:04d}"
    function = {"index": index, "name": call.name, "arguments": object_input(reply, call)}
    # Older servers give no ids.
    return {"id": call_id, "function": function} if call_id else {"function": function}


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of an answer."""
    message: dict[str, Any] = {"role": "assistant", "content": _text_of(reply)}
    if reply.reasoning:
        message["thinking"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            _render_call(reply, call, number, index) for index, call in enumerate(reply.calls)
        ]
    return {**_head(model, number), "message": message, **_tail(reply)}


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The same answer as the lines of its stream."""

    def chunk(message: dict[str, Any]) -> dict[str, Any]:
        whole = {"role": "assistant", "content": "", **message}
        return {**_head(model, number), "message": whole, "done": False}

    chunks = [chunk({"thinking": part}) for part in split_text(reply.reasoning or "")]
    chunks += [chunk({"content": part}) for part in split_text(_text_of(reply))]
    # A call comes whole, in a chunk of its own.
    for index, call in enumerate(reply.calls):
        chunks.append(chunk({"tool_calls": [_render_call(reply, call, number, index)]}))
    last = {"role": "assistant", "content": ""}
    return [*chunks, {**_head(model, number), "message": last, **_tail(reply)}]


def render_failure(
    status: int, message: str, *, kind: str, param: str | None, code: str | None, request_id: str
) -> dict[str, Any]:
    """The JSON of an error."""
    return {"error": message}
