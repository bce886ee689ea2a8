"""How each API writes an answer, whole and streamed, that holds one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["WIRES", "Answer", "Wire"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer, whole, and the events of the same one streamed.

    Attributes:
        whole: The answer.
        events: The events; none where they would be others than of this one thing.
    """

    whole: Json
    events: list[Json]


@dataclass(frozen=True)
class Wire:
    """How an API writes.

    Attributes:
        answers: Answers with a block, item or field of the message; one of them is enough.
        finished: Answers that ended for a reason.
        with_field: An answer that has a field with a value, or lacks it (`None`).
        begun: Events that streams begin with, each list a stream in which something else is open.
        with_delta: An event with a delta.
        after: Events that show whether something is still open.
        tools: The parameters of a request with a tool.
        error: A body that says an error of a kind, with status 200 or in a stream.
    """

    answers: Callable[[str, str, Any], list[Answer]]
    finished: Callable[[str], list[Answer]]
    with_field: Callable[[str, Any], Json]
    begun: Callable[[], list[list[Json]]]
    with_delta: Callable[[str, Any], list[Json]]
    after: list[Json]
    tools: Callable[[str, Any], Json]
    error: Callable[[str], Json]


# --- Chat Completions -----------------------------------------------------------------------------


def _chat(message: Json, finish: str = "stop", **fields: Any) -> Answer:
    head = {"id": "c", "object": "chat.completion", "model": "m", "created": 1}
    whole = {
        **head,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        **fields,
    }
    chunk = {**head, "object": "chat.completion.chunk"}
    calls = [{"index": n, **call} for n, call in enumerate(message.get("tool_calls") or ())]
    delta = {**message, "tool_calls": calls} if calls else message
    events: list[Json] = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]
    return Answer(whole, events)


def _chat_answers(kind: str, word: str, sample: Any) -> list[Answer]:
    message: Json = {"role": "assistant", "content": None}
    if kind == "item":
        return [_chat({**message, "tool_calls": [sample]}, "tool_calls")]
    return [_chat({**message, "content": "Yes.", word: sample}), _chat({**message, word: sample})]


def _chat_with_field(name: str, value: Any) -> Json:
    whole = _chat({"role": "assistant", "content": "Yes."}).whole
    holder = whole
    if name.startswith("choice."):
        holder, name = whole["choices"][0], name.removeprefix("choice.")
    return _set(whole, holder, name, value)


def _set(whole: Json, holder: Json, name: str, value: Any) -> Json:
    if value is None:
        holder.pop(name, None)
    else:
        holder[name] = value
    return whole


def _chat_begun() -> list[list[Json]]:
    return [[], _chat({"role": "assistant", "content": "Yes."}).events[:1]]


def _chat_delta(word: str, sample: Any) -> list[Json]:
    return [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": {word: sample}}]}]


# --- Responses ------------------------------------------------------------------------------------

_MESSAGE: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
}


def _responses(output: list[Json], status: str = "completed", **fields: Any) -> Answer:
    whole = {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "m",
        "output": output,
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        **fields,
    }
    events: list[Json] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}
    ]
    for index, item in enumerate(output):
        place = {"output_index": index, "item": item}
        events.append({"type": "response.output_item.added", **place})
        events.append({"type": "response.output_item.done", **place})
    return Answer(whole, [*events, {"type": f"response.{status}", "response": whole}])


def _responses_answers(kind: str, word: str, sample: Any) -> list[Answer]:
    if kind == "block":
        return [_responses([{**_MESSAGE, "content": [sample]}])]
    if word == "message":
        return [_responses([{**_MESSAGE, **sample, "role": "assistant"}])]
    return [_responses([{**sample, "id": f"{_id_prefix(word)}_1"}, _MESSAGE])]


def _id_prefix(word: str) -> str:
    return {"reasoning": "rs", "function_call": "fc"}.get(word, word[:3])


def _responses_finished(word: str) -> list[Answer]:
    if word.startswith("status "):
        return [_responses([_MESSAGE], word.removeprefix("status "))]
    return [_responses([_MESSAGE], "incomplete", incomplete_details={"reason": word})]


def _responses_field(name: str, value: Any) -> Json:
    whole = _responses(
        [_MESSAGE], "incomplete" if name == "incomplete_details" else "completed"
    ).whole
    return _set(whole, whole, name, value)


def _responses_begun() -> list[list[Json]]:
    function = {"type": "function_call", "id": "x", "call_id": "x", "name": "x", "arguments": ""}
    custom = {"type": "custom_tool_call", "id": "x", "call_id": "x", "name": "x", "input": ""}
    reasoning: Json = {"type": "reasoning", "id": "x", "summary": []}
    message: Json = {"type": "message", "id": "x", "role": "assistant", "content": []}
    begin = _responses([]).events[0]
    opened = [
        [begin, {"type": "response.output_item.added", "output_index": 1, "item": item}]
        for item in (function, custom, reasoning, message)
    ]
    return [[], [begin], *opened]


# --- Messages -------------------------------------------------------------------------------------

_TEXT: Json = {"type": "text", "text": "Yes."}


def _messages(content: list[Json], stop: str = "end_turn", **fields: Any) -> Answer:
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    events: list[Json] = [
        {"type": "message_start", "message": {**head, "content": [], "usage": usage}}
    ]
    for index, block in enumerate(content):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}})
    whole = {**head, "content": content, "stop_reason": stop, "usage": usage, **fields}
    return Answer(whole, [*events, {"type": "message_stop"}])


def _messages_answers(kind: str, word: str, sample: Any) -> list[Answer]:
    return [_messages([sample, _TEXT]), _messages([sample, _TEXT], "pause_turn")]


def _messages_field(name: str, value: Any) -> Json:
    whole = _messages([_TEXT]).whole
    return _set(whole, whole, name, value)


def _messages_begun() -> list[list[Json]]:
    start = _messages([]).events[:1]
    blocks: list[Json] = [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "tool_use", "id": "x", "name": "x", "input": {}},
        {"type": "compaction", "content": ""},
    ]
    opened = [
        [*start, {"type": "content_block_start", "index": 1, "content_block": block}]
        for block in blocks
    ]
    return [[], start, *opened]


def _messages_delta(word: str, sample: Any) -> list[Json]:
    return [{"type": "content_block_delta", "index": 1, "delta": sample}]


# --- generateContent ------------------------------------------------------------------------------


def _gemini(parts: list[Json], finish: str = "STOP", **fields: Any) -> Answer:
    content = {"role": "model", "parts": parts}
    head = {"modelVersion": "m", "responseId": "r", **fields}
    whole = {**head, "candidates": [{"content": content, "finishReason": finish, "index": 0}]}
    events: list[Json] = [{**head, "candidates": [{"content": {"parts": [p]}}]} for p in parts]
    return Answer(whole, [*events, {"candidates": [{"finishReason": finish}]}])


def _gemini_answers(kind: str, word: str, sample: Any) -> list[Answer]:
    call = {"name": "x", "args": {}}
    if word.startswith("functionCall."):
        name = word.removeprefix("functionCall.")
        return [_gemini([{"functionCall": {**call, name: sample}}])]
    if word == "functionCall":
        return [_gemini([{"functionCall": call}])]
    media = {"inlineData": {"mimeType": "image/png", "data": "eHg="}}
    parts = ({}, {"text": "Yes."}, {"functionCall": call}, media)
    return [_gemini([{**part, word: sample}]) for part in parts if word not in part]


def _gemini_finished(word: str) -> list[Answer]:
    if word.startswith("blocked "):
        body = {"promptFeedback": {"blockReason": word.removeprefix("blocked ")}}
        return [Answer(body, [body])]
    return [_gemini([{"text": "Yes."}], word)]


def _gemini_field(name: str, value: Any) -> Json:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = _gemini([{"text": "Yes."}], usageMetadata=usage).whole
    holder, _, inner = name.rpartition(".")
    if holder == "candidate":
        return _set(whole, whole["candidates"][0], inner, value)
    return _set(whole, whole["usageMetadata"] if holder else whole, inner, value)


# --- Converse -------------------------------------------------------------------------------------


def _converse(content: list[Json], stop: str = "end_turn", **fields: Any) -> Answer:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    whole = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": usage,
        "metrics": {"latencyMs": 1},
        **fields,
    }
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(content):
        place = {"contentBlockIndex": index}
        if "text" not in block:
            return Answer(whole, [])  # most blocks come in pieces, which the deltas are tried for
        events.append({"contentBlockDelta": {**place, "delta": block}})
        events.append({"contentBlockStop": place})
    events.append({"messageStop": {"stopReason": stop}})
    return Answer(whole, [*events, {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}])


def _converse_answers(kind: str, word: str, sample: Any) -> list[Answer]:
    return [_converse([{word: sample}, {"text": "Yes."}])]


def _converse_field(name: str, value: Any) -> Json:
    whole = _converse([{"text": "Yes."}]).whole
    return _set(whole, whole, name, value)


def _gemini_delta(word: str, sample: Any) -> list[Json]:
    call = {"name": "x", "willContinue": True, word.removeprefix("functionCall."): sample}
    return [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}]


def _converse_begun() -> list[list[Json]]:
    start: list[Json] = [{"messageStart": {"role": "assistant"}}]
    starts: list[Json] = [
        {"toolUse": {"toolUseId": "x", "name": "x"}},
        {"toolResult": {"toolUseId": "x"}},
        {"image": {"format": "png"}},
    ]
    opened = [
        [*start, {"contentBlockStart": {"contentBlockIndex": 1, "start": begun}}]
        for begun in starts
    ]
    text = {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "x"}}}
    return [[], start, *opened, [*start, text]]


def _converse_delta(word: str, sample: Any) -> list[Json]:
    return [
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {word: sample}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {word: sample}}},
    ]


WIRES: dict[str, Wire] = {
    "openai_chat": Wire(
        _chat_answers,
        lambda word: [_chat({"role": "assistant", "content": "Yes."}, word)],
        _chat_with_field,
        _chat_begun,
        _chat_delta,
        [],
        lambda word, sample: {"tools": [sample]},
        lambda word: {"error": {"message": "no", "code": word}},
    ),
    "openai_responses": Wire(
        _responses_answers,
        _responses_finished,
        _responses_field,
        _responses_begun,
        lambda word, sample: [],
        [],
        lambda word, sample: {"tools": [sample]},
        lambda word: {"id": "r", "status": "failed", "error": {"message": "no", "code": word}},
    ),
    "anthropic_messages": Wire(
        _messages_answers,
        lambda word: [_messages([_TEXT], word)],
        _messages_field,
        _messages_begun,
        _messages_delta,
        _messages_delta("", {"type": "input_json_delta", "partial_json": "{}"}),
        lambda word, sample: {"tools": [sample]},
        lambda word: {"type": "error", "error": {"type": word, "message": "no"}},
    ),
    "gemini_generate_content": Wire(
        _gemini_answers,
        _gemini_finished,
        _gemini_field,
        lambda: [[]],
        _gemini_delta,
        [],
        lambda word, sample: {"tools": [{word: sample}]},
        lambda word: {"error": {"code": 500, "message": "no", "status": word}},
    ),
    "bedrock_converse": Wire(
        _converse_answers,
        lambda word: [_converse([{"text": "Yes."}], word)],
        _converse_field,
        _converse_begun,
        _converse_delta,
        [_converse_delta("toolUse", {"input": "{}"})[1]],
        lambda word, sample: {"toolConfig": {"tools": [{word: sample}]}},
        lambda word: {word[:1].lower() + word[1:]: {"message": "no"}},
    ),
}
