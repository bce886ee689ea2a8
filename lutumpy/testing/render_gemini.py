"""generateContent as the API writes it: one response, or the chunks of a stream, which are whole
responses themselves.
"""

# What a recorded answer has and a script doesn't say goes by the model's name: from Gemini 3 on
# calls have ids, and from 2.5 on the first call of an answer is signed.

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.models import generation
from lutumpy.testing.replies import Reply, object_input, split_text

__all__ = [
    "recorded_client",
    "render",
    "render_failure",
    "render_stream",
    "signature",
    "write_chunk",
]


def recorded_client(*arguments: Any) -> Any:
    """A client of the SDK whose requests go through a cassette; `None` for one of another SDK."""
    from lutumpy.testing import render_gemini_client  # rarely needed

    return render_gemini_client.recorded_client(*arguments)


STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The status of an error by its HTTP status."""

FINISH = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "PROHIBITED_CONTENT",
    "paused": "CONTINUATION",
}
"""The reason for the end of an answer. With calls it is the ordinary one [recorded: 540 of 545]."""

CALLED = "Model generated function call(s)."
"""What answers with calls say beside their reason [recorded: 377]."""

_ID_CHARACTERS = 8


def signature(words: str, number: int) -> str:
    """A seal of a part; its own, so that one that was moved can be told."""
    return base64.b64encode(f"lutumpy:{number}:{words}".encode("utf-8", "surrogatepass")).decode()


def _has_ids(model: str) -> bool:
    known = generation(model)
    return known is None or known >= (3, 0)


def _is_signed(model: str) -> bool:
    known = generation(model)
    return known is None or known >= (2, 5)


def _make_id(number: int, index: int) -> str:
    digits = f"{number:x}{index:02x}"
    return "c" + digits.rjust(_ID_CHARACTERS - 1, "0")[-(_ID_CHARACTERS - 1) :]


def _render_call(reply: Reply, index: int, number: int, model: str) -> dict[str, Any]:
    call = reply.calls[index]
    body: dict[str, Any] = {"name": call.name, "args": object_input(reply, call)}
    if call.id is not None:
        body["id"] = call.id
    elif _has_ids(model):
        body["id"] = _make_id(number, index)
    part: dict[str, Any] = {"functionCall": body}
    if index == 0 and _is_signed(model):
        part["thoughtSignature"] = signature(f"{call.name}:{call.text}", number)
    return part


def _render_parts(reply: Reply, number: int, model: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        parts.append({"text": reply.reasoning, "thought": True})
    parts += [{"text": text} for text in (reply.text, reply.refusal) if text]
    return parts + [_render_call(reply, index, number, model) for index in range(len(reply.calls))]


def _count_usage(reply: Reply, written: int) -> dict[str, Any]:
    asked = reply.tokens[0]
    thought = len(reply.reasoning) // 4 if reply.reasoning else 0
    thoughts = {"thoughtsTokenCount": min(thought, written)} if thought else {}
    return {
        "promptTokenCount": asked,
        "candidatesTokenCount": written - thoughts.get("thoughtsTokenCount", 0),
        "totalTokenCount": asked + written,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": asked}],
        **thoughts,
    }


def _response(
    reply: Reply,
    parts: list[dict[str, Any]],
    number: int,
    model: str,
    *,
    is_last: bool,
    written: int,
) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"}
    if parts:
        content = {"parts": parts, "role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if is_last:
        candidate["finishReason"] = FINISH[reply.finish_reason]
        if reply.calls and candidate["finishReason"] == "STOP":
            candidate["finishMessage"] = CALLED
    return {
        "candidates": [candidate],
        "usageMetadata": _count_usage(reply, written),
        "modelVersion": model.rpartition("/")[2],
        "responseId": f"resp{number:018d}",
    }


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    parts = _render_parts(reply, number, model)
    return _response(reply, parts, number, model, is_last=True, written=reply.tokens[1])


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    chunks: list[dict[str, Any]] = []
    pieces: list[dict[str, Any]] = []
    for part in _render_parts(reply, number, model):
        if "text" in part:
            pieces += [{**part, "text": text} for text in split_text(part["text"]) or [""]]
        else:
            pieces.append(part)  # a call comes whole
    for place, part in enumerate(pieces):
        is_last = place == len(pieces) - 1
        written = reply.tokens[1] if is_last else 1
        chunks.append(_response(reply, [part], number, model, is_last=is_last, written=written))
    if not chunks:
        chunks.append(_response(reply, [], number, model, is_last=True, written=reply.tokens[1]))
    return chunks


def render_failure(
    status: int, message: str, *, kind: str, param: str | None, code: str | None, request_id: str
) -> dict[str, Any]:
    """The JSON of an error; a code is the reason in its details, and a parameter is nowhere."""
    if not kind.isupper():
        kind = STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    error: dict[str, Any] = {"code": status, "message": message, "status": kind}
    if code is not None:
        detail = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": code,
            "domain": "googleapis.com",
        }
        error["details"] = [detail]
    return {"error": error}


def write_chunk(chunk: Mapping[str, Any]) -> str:
    """A chunk as a line of JSON."""
    return json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
