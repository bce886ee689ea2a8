"""Valid histories: composed ones, drawn with a seed, and those that providers accepted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from lutumpy.apis import serving
from lutumpy.doctor.catalogue import repairs_of
from lutumpy.doctor.writing import Row

FIXTURES = Path(__file__).parents[1] / "fixtures"
Json = dict[str, Any]
History = list[Any]

APIS: tuple[str, ...] = ("openai_chat", "openai_responses", "anthropic_messages")
APIS += ("gemini_generate_content", "bedrock_converse")
KEYS = {api: serving(api, "rules").SHAPE.messages_key for api in APIS}
PNG = "iVBORw0KGgo="
ROWS: dict[str, Row] = {rule: row for api in APIS for rule, row in repairs_of(api).rows.items()}
"""Every rule about histories, of all APIs."""


def _file_of(api: str) -> str:
    return "converse_histories.jsonl" if api == "bedrock_converse" else "histories.jsonl"


def recorded(api: str) -> list[History]:
    """What the provider's own endpoint accepted, calls and results among it."""
    if api == "gemini_generate_content":
        return _recorded_contents()
    if api == "ollama_chat":
        return _recorded_exchanges(api)
    rows = [
        json.loads(line)
        for line in (FIXTURES / _file_of(api)).read_text(encoding="utf-8").splitlines()
    ]
    own = serving(api, "rules").SHAPE.host
    held = ("previous_response_id", "conversation")
    return [
        row["history"]
        for row in rows
        if row["api"] == api
        and row["host"].endswith(own)
        and row["status"] == 200
        and not any(row.get(key) for key in held)
    ]


def _recorded_contents() -> list[History]:
    text = (FIXTURES / "gemini_requests.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [
        row["request"]["contents"]
        for row in rows
        if row["status"] == 200 and "cachedContent" not in row["request"]
    ]


def _recorded_exchanges(api: str) -> list[History]:
    text = (FIXTURES / f"{api}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [row["request"]["messages"] for row in rows if row["status"] == 200]


def composed(api: str, rng: random.Random, rounds: int | None = None) -> History:
    """A history of some rounds with one to four calls each, that ends with the user's message."""
    turns = {
        "openai_chat": _chat,
        "openai_responses": _responses,
        "anthropic_messages": _anthropic,
        "gemini_generate_content": _gemini,
        "bedrock_converse": _converse,
        "ollama_chat": _ollama,
    }[api]
    history = _start(api, rng)
    for number in range(rounds if rounds is not None else rng.randint(1, 4)):
        history += turns(rng, number)
    return history


def said(api: str, text: str) -> Any:
    """A content that is one text."""
    return [{"text": text}] if api == "bedrock_converse" else text


def _start(api: str, rng: random.Random) -> History:
    if api == "gemini_generate_content":
        return [{"role": "user", "parts": [{"text": "What is the weather?"}]}]
    start: History = [{"role": "user", "content": said(api, "What is the weather?")}]
    if api == "openai_chat" and rng.random() < 0.5:
        start.insert(0, {"role": "system", "content": "Be brief."})
    if api == "openai_responses" and rng.random() < 0.5:
        start.insert(
            0, {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
        )
    return start


def _arguments(rng: random.Random) -> Json:
    return {"city": rng.choice(["Oslo", "Rome", "Lima"]), "days": rng.randint(1, 9)}


def _ollama(rng: random.Random, number: int) -> History:
    calls: History = []
    results: History = []
    for name in rng.sample(["weather", "clock", "map"], rng.randint(1, 3)):
        calls.append({"function": {"name": name, "arguments": _arguments(rng)}})
        results.append({"role": "tool", "tool_name": name, "content": rng.choice(["rain", ""])})
    turn = {"role": "assistant", "content": rng.choice(["", "I look."]), "tool_calls": calls}
    answer = {"role": "assistant", "content": "Rain."}
    return [turn, *results, answer, {"role": "user", "content": "?"}]


def _chat(rng: random.Random, number: int) -> History:
    calls: History = []
    results: History = []
    for k in range(rng.randint(1, 4)):
        call_id = f"call_{number}_{k}"
        if rng.random() < 0.15:
            calls.append(
                {"id": call_id, "type": "custom", "custom": {"name": "shell", "input": "ls"}}
            )
        else:
            function = {
                "name": rng.choice(["weather", "clock"]),
                "arguments": json.dumps(_arguments(rng)),
            }
            calls.append({"id": call_id, "type": "function", "function": function})
        content: Any = rng.choice(["rain", "", [{"type": "text", "text": "sun"}]])
        results.append({"role": "tool", "tool_call_id": call_id, "content": content})
    said = rng.choice([None, "", "I look."])
    tail: History = [
        {"role": "assistant", "content": "Rain."},
        {"role": "user", "content": [{"type": "text", "text": "?"}]},
    ]
    return [
        {"role": "assistant", "content": said, "tool_calls": calls},
        *results,
        *(tail if rng.random() < 0.8 else []),
    ]


def _responses(rng: random.Random, number: int) -> History:
    items: History = []
    outputs: History = []
    if rng.random() < 0.5:
        items.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}
        )
    for k in range(rng.randint(1, 4)):
        call_id = f"call_{number}_{k}"
        kind = rng.choice(["function"] * 6 + ["custom", "shell", "apply_patch"])
        if kind == "function":
            call: Json = {
                "type": "function_call",
                "name": "weather",
                "arguments": json.dumps(_arguments(rng)),
            }
            output: Json = {"type": "function_call_output", "output": rng.choice(["rain", ""])}
            if items or rng.random() < 0.5:
                call["id"] = f"fc_{number}_{k}"
        elif kind == "custom":
            call = {"type": "custom_tool_call", "name": "shell", "input": "ls"}
            output = {
                "type": "custom_tool_call_output",
                "output": [{"type": "input_text", "text": "x"}],
            }
        elif kind == "shell":
            call = {"type": "shell_call", "action": {"commands": ["ls"]}}
            output = {"type": "shell_call_output", "output": []}
        else:
            call = {
                "type": "apply_patch_call",
                "operation": {"type": "delete_file", "path": "x"},
                "status": "completed",
            }
            output = {"type": "apply_patch_call_output", "status": "completed"}
        items.append({**call, "call_id": call_id})
        outputs.append({**output, "call_id": call_id})
    answer = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Rain.", "annotations": []}],
    }
    tail: History = [
        answer,
        {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
    ]
    return [*items, *outputs, *(tail if rng.random() < 0.8 else [])]


def _anthropic(rng: random.Random, number: int) -> History:
    blocks: History = []
    results: History = []
    if rng.random() < 0.4:
        blocks.append(
            {"type": "thinking", "thinking": rng.choice(["", "Hm."]), "signature": f"S{number}"}
        )
    if rng.random() < 0.5:
        blocks.append({"type": "text", "text": "I look."})
    for k in range(rng.randint(1, 4)):
        call_id = f"toolu_{number}_{k}"
        blocks.append(
            {"type": "tool_use", "id": call_id, "name": "weather", "input": _arguments(rng)}
        )
        result: Json = {"type": "tool_result", "tool_use_id": call_id}
        shape = rng.randrange(4)
        if shape == 0:
            result["content"] = "rain"
        elif shape == 1:
            result |= {"content": [{"type": "text", "text": "no such city"}], "is_error": True}
        elif shape == 2:
            image = {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            }
            result["content"] = [{"type": "text", "text": "see"}, image]
        results.append(result)
    if rng.random() < 0.2:
        results.append({"type": "text", "text": "Go on."})
    tail: History = [
        {"role": "assistant", "content": "Rain."},
        {"role": "user", "content": "And now?"},
    ]
    turn = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    return [*turn, *(tail if rng.random() < 0.8 else [])]


def _converse(rng: random.Random, number: int) -> History:
    blocks: History = []
    results: History = []
    if rng.random() < 0.4:
        told = {"text": rng.choice(["Hm.", "Let me see."]), "signature": f"S{number}"}
        blocks.append({"reasoningContent": {"reasoningText": told}})
    if rng.random() < 0.5:
        blocks.append({"text": "I look."})
    for k in range(rng.randint(1, 4)):
        call_id = f"tooluse_{number}_{k}"
        use = {"toolUseId": call_id, "name": "weather", "input": _arguments(rng)}
        blocks.append({"toolUse": use})
        result: Json = {"toolUseId": call_id, "content": [{"text": "rain"}]}
        shape = rng.randrange(4)
        if shape == 0:
            result["content"] = [{"json": {"rain": 3}}]
        elif shape == 1:
            result |= {"content": [{"text": "no such city"}], "status": "error"}
        elif shape == 2:
            image = {"image": {"format": "png", "source": {"bytes": PNG}}}
            result |= {"content": [{"text": "see"}, image], "status": "success"}
        results.append({"toolResult": result})
    # The next round begins with the assistant, so each ends with its results.
    turn = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    tail: History = [
        {"role": "assistant", "content": [{"text": "Rain."}]},
        {"role": "user", "content": [{"text": "And now?"}]},
    ]
    return [*turn, *(tail if rng.random() < 0.8 else [])]


def _gemini(rng: random.Random, number: int) -> History:
    parts: History = []
    results: History = []
    if rng.random() < 0.3:
        parts.append({"text": "Hm.", "thought": True})
    if rng.random() < 0.3:
        parts.append({"text": "I look."})
    has_ids = rng.random() < 0.7
    for k in range(rng.randint(1, 4)):
        # A newer model has ids, an older one none.
        more = {"id": f"call_{number}_{k}"} if has_ids else {}
        name = rng.choice(["weather", "clock"])
        part: Json = {"functionCall": {**more, "name": name, "args": _arguments(rng)}}
        if k == 0:
            part["thoughtSignature"] = "AY89a18w"
        parts.append(part)
        response = rng.choice([{"output": "rain"}, {"error": "no such city"}, {"degrees": 9}, {}])
        result: Json = {**more, "name": name, "response": response}
        if rng.random() < 0.2:
            result["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
        results.append({"functionResponse": result})
    turn: History = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    if rng.random() < 0.2:
        turn.append({"role": "user", "parts": [{"text": "Go on."}]})
    tail: History = [
        {"role": "model", "parts": [{"text": "Rain.", "thoughtSignature": "AY89"}]},
        {"role": "user", "parts": [{"text": "And now?"}]},
    ]
    return [*turn, *(tail if rng.random() < 0.8 else [])]
