"""Converse as the API writes it: one message, or its events.

An event is an object with one key, which names it, as the official SDK gives events to a program.
The frames around them on the wire are made by the server.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from lutumpy.testing.replies import Call, Reply, object_input, split_text, streamed_input

__all__ = [
    "failure_headers",
    "failure_type",
    "recorded_client",
    "render",
    "render_failure",
    "render_stream",
    "signature",
]


def recorded_client(*arguments: Any) -> Any:
    """A client of the SDK whose requests go through a cassette; `None` for one of another SDK."""
    from lutumpy.testing import render_bedrock_client  # rarely needed

    return render_bedrock_client.recorded_client(*arguments)


TYPES: Mapping[int, str] = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
"""The type of an error by its HTTP status."""

STOP = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "paused": "end_turn",
}
LATENCY = 420
"""Milliseconds that every answer says it took."""


def _render_blocks(reply: Reply, number: int, model: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        blocks.append({"reasoningContent": _render_reasoning(reply.reasoning, number)})
    blocks += [{"text": text} for text in (reply.text, reply.refusal) if text]
    for index, call in enumerate(reply.calls):
        use: dict[str, Any] = {
            "toolUseId": _call_id(call, number, index),
            "name": call.name,
            "input": object_input(reply, call),
        }
        if _types_calls(model):
            use["type"] = "tool_use"
        blocks.append({"toolUse": use})
    return blocks


def _render_reasoning(text: str, number: int) -> dict[str, Any]:
    seal = signature(text, number)
    # What a model hides comes encrypted.
    return (
        {"reasoningText": {"text": text, "signature": seal}} if text else {"redactedContent": seal}
    )


def _call_id(call: Call, number: int, index: int) -> str:
    return call.id if call.id is not None else f"tooluse_{number:014d}{index:08d}"


def _types_calls(model: str) -> bool:
    """Whether the calls of a model have a type, which no request may repeat. Claude's have one, so
    a model that isn't known has one, too: what a program must not send back is shown to it.
    """
    return not any(word in model for word in ("nova", "llama", "mistral", "claude-3"))


def signature(text: str, number: int) -> str:
    """A seal of the reasoning; its own, so that a changed text can be told."""
    return "EqsB" + base64.b64encode(f"{number}:{text}".encode()).decode()


def _end(reply: Reply) -> dict[str, Any]:
    return {"stopReason": STOP[reply.finish_reason]}


def _count(reply: Reply) -> dict[str, Any]:
    read, written = reply.tokens
    usage = {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}
    return {"usage": usage, "metrics": {"latencyMs": LATENCY}}


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": _render_blocks(reply, number, model)}
    return {"output": {"message": message}, **_end(reply), **_count(reply)}


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    calls = iter(reply.calls)
    for index, block in enumerate(_render_blocks(reply, number, model)):
        at = {"contentBlockIndex": index}
        deltas: list[dict[str, Any]]
        if "text" in block:
            deltas = [{"text": part} for part in split_text(block["text"])]
        elif "reasoningContent" in block:
            deltas = _reasoning_deltas(block["reasoningContent"])
        else:
            # Only what isn't told by its deltas has a start.
            use = {key: value for key, value in block["toolUse"].items() if key != "input"}
            events.append({"contentBlockStart": {**at, "start": {"toolUse": use}}})
            # The first piece of Claude's arguments is always an empty one.
            parts = ["", *split_text(streamed_input(next(calls)))]
            deltas = [{"toolUse": {"input": part}} for part in parts]
        events += [{"contentBlockDelta": {**at, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": at})
    return [*events, {"messageStop": _end(reply)}, {"metadata": _count(reply)}]


def _reasoning_deltas(reasoning: Mapping[str, Any]) -> list[dict[str, Any]]:
    readable = reasoning.get("reasoningText")
    if readable is None:
        return [{"reasoningContent": dict(reasoning)}]
    pieces: list[dict[str, Any]] = [{"text": part} for part in split_text(readable["text"])]
    return [
        {"reasoningContent": piece} for piece in (*pieces, {"signature": readable["signature"]})
    ]


def failure_type(status: int, kind: str) -> str:
    """The type of an error: the given one, or the usual one of its status."""
    usual = "InternalServerException" if status >= 500 else "ValidationException"
    # What has no type of its own says so in the words of other APIs.
    return kind if kind.endswith("Exception") else TYPES.get(status, usual)


def failure_headers(status: int, *, kind: str) -> dict[str, str]:
    """The headers of an error: its type is nowhere else."""
    return {"x-amzn-ErrorType": failure_type(status, kind)}


def render_failure(
    status: int, message: str, *, kind: str, param: str | None, code: str | None, request_id: str
) -> dict[str, Any]:
    """The JSON of an error: its message alone."""
    return {"message": message}
