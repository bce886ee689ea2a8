"""Answers of every API as they come over the wire, built from the same few things."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["REPLIES"]

Made = list[tuple[str, str, str]]


def chat_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text or None,
        "refusal": None,
        "annotations": [],
    }
    if made:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
            for i, n, a in made
        ]
    if extra == "custom" and made:
        message["tool_calls"].append(
            {"id": "cu", "type": "custom", "custom": {"name": "run", "input": "rm"}}
        )
    if extra == "refusal":
        message["refusal"] = "I can't."
    if extra == "reasoning":
        message["reasoning_content"] = "hm"
    word = {"length": "length", "refusal": "content_filter"}.get(
        finish, "tool_calls" if made else "stop"
    )
    return {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": word, "message": message}],
        "usage": None,
    }


def responses_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if extra in ("reasoning", "refusal"):
        output.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}
        )
    if extra == "server":
        output.append(
            {
                "type": "web_search_call",
                "id": f"ws_{number}",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            }
        )
    if text:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for k, (i, n, a) in enumerate(made):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{number}_{k}",
                "call_id": i,
                "name": n,
                "arguments": a,
                "status": "completed",
            }
        )
    if extra == "custom":
        output.append(
            {
                "type": "custom_tool_call",
                "id": f"ctc_{number}",
                "call_id": "cu",
                "name": "run",
                "input": "rm",
            }
        )
    if extra == "computer":
        output.append(
            {
                "type": "computer_call",
                "id": f"cu_{number}",
                "call_id": "cc",
                "action": {"type": "wait"},
                "status": "completed",
                "pending_safety_checks": [],
            }
        )
    cut = finish == "length"
    if cut and output and made:
        output[-1]["status"] = "incomplete"
    return {
        "id": f"resp_{number}",
        "model": "m",
        "status": "incomplete" if cut else "completed",
        "output": output,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": None,
    }


def messages_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if extra == "reasoning":
        content.append({"type": "thinking", "thinking": "", "signature": "c2ln"})
    if extra == "refusal":
        content.append({"type": "redacted_thinking", "data": "ZGF0YQ=="})
    if extra == "server":
        content.append(
            {
                "type": "server_tool_use",
                "id": f"srvtoolu_{number}",
                "name": "web_search",
                "input": {"query": "q"},
            }
        )
        content.append(
            {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": []}
        )
    if extra == "running":
        content.append(
            {
                "type": "server_tool_use",
                "id": f"srvtoolu_{number}",
                "name": "web_search",
                "input": {"query": "q"},
            }
        )
    if text:
        content.append({"type": "text", "text": text})
    for i, n, a in made:
        try:
            value = json.loads(a)
        except (ValueError, RecursionError):
            value = {"text": a}
        content.append({"type": "tool_use", "id": i, "name": n, "input": value})
    word = {"length": "max_tokens", "refusal": "refusal", "paused": "pause_turn"}.get(
        finish, "tool_use" if made else "end_turn"
    )
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": word,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def gemini_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if extra in ("reasoning", "refusal"):
        parts.append({"text": "hm", "thought": True})
    if extra == "server":
        parts.append({"executableCode": {"language": "PYTHON", "code": "print(1)"}})
        parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
    if text:
        parts.append({"text": text})
    for k, (i, n, a) in enumerate(made):
        call: dict[str, Any] = {"name": n, "args": as_object(a)}
        part: dict[str, Any] = {"functionCall": {**call, "id": i} if i else call}
        # The first of parallel calls is signed; models before the third generation sign none.
        if not k and extra != "running":
            part["thoughtSignature"] = f"c2ln{number:04d}"
        parts.append(part)
    if parts and not made and extra == "reasoning":
        parts[-1]["thoughtSignature"] = f"c2ln{number:04d}"
    word = {"length": "MAX_TOKENS", "refusal": "PROHIBITED_CONTENT"}.get(finish, "STOP")
    content = {"role": "model", "parts": parts} if parts else {"role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": word, "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
        "modelVersion": "gemini-3-flash-preview",
        "responseId": f"resp{number}",
    }


def converse_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if extra == "reasoning":
        told = {"text": "hm", "signature": f"c2ln{number:04d}"}
        content.append({"reasoningContent": {"reasoningText": told}})
    if extra == "refusal":
        content.append({"reasoningContent": {"redactedContent": "ZGF0YQ=="}})
    if text:
        content.append({"text": text})
    for i, n, a in made:
        use: dict[str, Any] = {"toolUseId": i, "name": n, "input": as_object(a)}
        # Claude's calls have a type, which no request may repeat.
        content.append({"toolUse": {**use, "type": "tool_use"} if number % 2 else use})
    word = {"length": "max_tokens", "refusal": "guardrail_intervened"}.get(
        finish, "tool_use" if made else "end_turn"
    )
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": word,
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    }


def ollama_reply(text: str, made: Made, finish: str, extra: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if extra in ("reasoning", "refusal"):
        message["thinking"] = "hm"
    if made:
        # Older servers and many models give no ids.
        message["tool_calls"] = [
            {
                **({"id": i} if i and number % 2 else {}),
                "function": {"index": k, "name": n, "arguments": as_object(a)},
            }
            for k, (i, n, a) in enumerate(made)
        ]
    return {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "length" if finish == "length" else "stop",
        "prompt_eval_count": 1,
        "eval_count": 1,
    }


def as_object(arguments: str) -> Any:
    """Arguments where the API has them as an object; what is none, in one."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"text": arguments}
    return value if isinstance(value, dict) else {"value": value}


REPLIES: Mapping[str, Callable[[str, Made, str, str, int], dict[str, Any]]] = {
    "openai_chat": chat_reply,
    "openai_responses": responses_reply,
    "anthropic_messages": messages_reply,
    "gemini_generate_content": gemini_reply,
    "bedrock_converse": converse_reply,
    "ollama_chat": ollama_reply,
}
"""Of each API: its answer of a text, calls (id, name, arguments), an end, and something further."""
