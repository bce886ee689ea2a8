"""Chat Completions as the API writes it: one completion, or its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from lutumpy.testing.render_openai import CREATED, call_id, render_failure, written
from lutumpy.testing.replies import Call, Reply, split_text

__all__ = ["SHAPING", "render", "render_failure", "render_stream"]

SHAPING = frozenset({"n"})
"""Parameters of a request on which the shape of an answer depends: the number of choices."""

FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "stop",
    "paused": "stop",
}


def _count_usage(reply: Reply) -> dict[str, Any]:
    prompt, completion = reply.tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _count_choices(body: Mapping[str, Any]) -> int:
    """How many choices were asked for."""
    n = body.get("n")
    return n if isinstance(n, int) else 1


def _number_call(reply: Reply, choice: int, index: int) -> int:
    """Ids are counted on over the choices."""
    return choice * len(reply.calls) + index


def _render_call(call: Call, arguments: str) -> dict[str, Any]:
    if call.is_text:
        return {"type": "custom", "custom": {"name": call.name, "input": arguments}}
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}


def _render_choice(reply: Reply, number: int, choice: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": reply.refusal,
        "annotations": [],
    }
    # `None` is for an answer that has something else in place of text.
    if not reply.text and not reply.calls and reply.refusal is None:
        message["content"] = ""
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id(call, number, _number_call(reply, choice, index)),
                **_render_call(call, written(call)),
            }
            for index, call in enumerate(reply.calls)
        ]
    return {
        "index": choice,
        "message": message,
        "logprobs": None,
        "finish_reason": FINISH[reply.finish_reason],
    }


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number:029d}",
        "object": "chat.completion",
        "created": CREATED + number,
        "model": model,
        "choices": [
            _render_choice(reply, number, choice) for choice in range(_count_choices(body))
        ],
        "usage": _count_usage(reply),
        "service_tier": "default",
        "system_fingerprint": "fp_000000000000",
    }


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    def chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{number:029d}",
            "object": "chat.completion.chunk",
            "created": CREATED + number,
            "model": model,
            "service_tier": "default",
            "system_fingerprint": "fp_000000000000",
            "choices": choices,
            "usage": usage,
        }

    choices = [_render_deltas(reply, number, choice) for choice in range(_count_choices(body))]
    # The choices take turns, as they are sampled side by side.
    events = [
        chunk([delta]) for deltas in zip_longest(*choices) for delta in deltas if delta is not None
    ]
    # The usage has a chunk of its own, without choices.
    events.append(chunk([], _count_usage(reply)))
    return events


def _render_deltas(reply: Reply, number: int, choice: int) -> list[dict[str, Any]]:
    """One choice in pieces."""

    def delta(value: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"index": choice, "delta": value, "logprobs": None, "finish_reason": finish}

    # As of a whole answer: the text is empty where one follows or nothing does, else `None`.
    only_calls = bool(reply.calls) and not reply.text
    deltas = [delta({"role": "assistant", "content": None if only_calls else "", "refusal": None})]
    deltas += [delta({"content": part}) for part in split_text(reply.text)]
    deltas += [delta({"refusal": part}) for part in split_text(reply.refusal or "")]
    for index, call in enumerate(reply.calls):
        use_id = call_id(call, number, _number_call(reply, choice, index))
        begun = {"index": index, "id": use_id, **_render_call(call, "")}
        deltas.append(delta({"tool_calls": [begun]}))
        for part in split_text(written(call)):
            body = (
                {"custom": {"input": part}} if call.is_text else {"function": {"arguments": part}}
            )
            deltas.append(delta({"tool_calls": [{"index": index, **body}]}))
    deltas.append(delta({}, FINISH[reply.finish_reason]))
    return deltas
