"""Responses as the API writes it: one response, or its events."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from lutumpy.testing.render_openai import CREATED, call_id, render_failure, written
from lutumpy.testing.replies import Call, Reply, split_text

__all__ = ["conversation_id", "render", "render_failure", "render_stream", "waiting"]

EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"status": "in_progress", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "mcp_approval_request": {},
    "custom_tool_call": {"input": ""},
    "tool_search_call": {"status": "in_progress", "arguments": {}},
}
"""What an item has of its contents when its first event comes."""

SEARCHES = ("find_tools", "tool_search")
"""What a script calls the tool that finds others, where the API has no name for it."""

# Of calls by whether they are free text: the prefix of an item's id, its type, and the key of what
# the model wrote.
CALL_ITEMS = {
    False: ("fc", "function_call", "arguments"),
    True: ("ctc", "custom_tool_call", "input"),
}

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


ECHOED = (
    "access_programs background image instructions max_output_tokens metadata "
    "parallel_tool_calls previous_response_id store temperature tool_choice tools top_p truncation"
).split()
"""Parameters of a request that come back in its answer."""


def _echo_request(body: Mapping[str, Any]) -> dict[str, Any]:
    echo = {key: body[key] for key in ECHOED if body.get(key) is not None}
    held = conversation_id(body)
    return echo if held is None else {**echo, "conversation": {"id": held}}


def conversation_id(body: Mapping[str, Any]) -> str | None:
    """The conversation that a request belongs to, given by its id or as an object."""
    held = body.get("conversation")
    held = held.get("id") if isinstance(held, Mapping) else held
    return held if isinstance(held, str) else None


def waiting(answer: Mapping[str, Any], status: str) -> dict[str, Any]:
    """An answer in the background before it is there: `queued`, `in_progress`, or `cancelled`."""
    nothing: dict[str, Any] = {
        "output": [],
        "usage": None,
        "completed_at": None,
        "incomplete_details": None,
    }
    return {**answer, **nothing, "status": status}


def _item_id(prefix: str, number: int, index: int) -> str:
    return f"{prefix}_{number:034x}{index:016x}"


def _make_envelope(number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"resp_{number:050x}",
        "object": "response",
        "created_at": CREATED + number,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
        **_echo_request(body),
    }


def _finish(
    reply: Reply, number: int, model: str, output: list[dict[str, Any]], body: Mapping[str, Any]
) -> dict[str, Any]:
    answer = _make_envelope(number, model, body)
    read, written = reply.tokens
    reason = INCOMPLETE.get(reply.finish_reason)
    answer["status"] = "completed" if reason is None else "incomplete"
    answer["completed_at"] = CREATED + number + 1 if reason is None else None
    answer["incomplete_details"] = None if reason is None else {"reason": reason}
    answer["output"] = output
    answer["usage"] = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
    return answer


def _render_output(reply: Reply, number: int, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        sealed = base64.urlsafe_b64encode(f"{number}:{reply.reasoning}".encode()).decode()
        output.append(
            {
                "id": _item_id("rs", number, len(output)),
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": reply.reasoning}]
                if reply.reasoning
                else [],
                "encrypted_content": f"gAAAAAB{sealed}",
            }
        )
    # An answer without anything is a message with an empty text.
    parts: list[dict[str, Any]] = []
    if reply.text or (not reply.calls and reply.refusal is None):
        parts.append({"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text})
    if reply.refusal is not None:
        parts.append({"type": "refusal", "refusal": reply.refusal})
    # Where the model was cut off: in the last call, or in the text when there is no call.
    cut = reply.finish_reason in INCOMPLETE
    if parts:
        output.append(
            {
                "id": _item_id("msg", number, len(output)),
                "type": "message",
                "status": "incomplete" if cut and not reply.calls else "completed",
                "role": "assistant",
                "content": parts,
            }
        )
    tools = body.get("tools")
    listed = [tool for tool in tools if isinstance(tool, Mapping)] if tools else []
    late = {tool.get("name") for tool in listed if tool.get("async") is True}
    for index, call in enumerate(reply.calls):
        if call.server_label is not None:
            output.append(
                {
                    "id": call.id or _item_id("mcpr", number, len(output)),
                    "type": "mcp_approval_request",
                    "arguments": call.text,
                    "name": call.name,
                    "server_label": call.server_label,
                }
            )
            continue
        if _is_search(call, body):
            output.append(
                {
                    "id": _item_id("tsc", number, len(output)),
                    "type": "tool_search_call",
                    "status": "completed",
                    "execution": "client",
                    "call_id": call_id(call, number, index),
                    "arguments": call.object or {},
                }
            )
            continue
        prefix, kind, key = CALL_ITEMS[call.is_text]
        item: dict[str, Any] = {
            "id": _item_id(prefix, number, len(output)),
            "type": kind,
            key: written(call),
            "call_id": call_id(call, number, index),
            "name": call.name,
        }
        if not call.is_text:  # those of free text have no status [SDK]
            is_cut = cut and index == len(reply.calls) - 1
            item["status"] = "incomplete" if is_cut else "completed"
        if call.name in late:
            item["async"] = True
        output.append(item)
    return output


def _is_search(call: Call, body: Mapping[str, Any]) -> bool:
    """Whether a call is a search for tools that the request asks the client to run."""
    tools = body.get("tools")
    declared = [tool for tool in tools if isinstance(tool, Mapping)] if tools else []
    is_asked = any(
        tool.get("type") == "tool_search" and tool.get("execution") == "client" for tool in declared
    )
    return is_asked and call.name in SEARCHES and all(t.get("name") != call.name for t in declared)


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return _finish(reply, number, model, _render_output(reply, number, body), body)


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []

    def event(kind: str, **fields: Any) -> None:
        events.append({"type": kind, "sequence_number": len(events), **fields})

    # The response itself comes with the first events and the last one, before and after its output.
    output = _render_output(reply, number, body)
    started = _make_envelope(number, model, body)
    if body.get("background") is True:
        event("response.created", response=waiting(started, "queued"))
        event("response.queued", response=waiting(started, "queued"))
    else:
        event("response.created", response=started)
    event("response.in_progress", response=started)
    # Each item: added without contents, then these in pieces and once as a whole, then done.
    for index, item in enumerate(output):
        empty: dict[str, Any] = EMPTY[item["type"]]
        event("response.output_item.added", output_index=index, item={**item, **empty})
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "function_call":
            for text in split_text(item["arguments"]):
                event("response.function_call_arguments.delta", **place, delta=text)
            event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        if item["type"] == "custom_tool_call":
            for text in split_text(item["input"]):
                event("response.custom_tool_call_input.delta", **place, delta=text)
            event("response.custom_tool_call_input.done", **place, input=item["input"])
        for number_of_part, part in enumerate(item.get("content", ())):
            _stream_part(event, {**place, "content_index": number_of_part}, part)
        for number_of_part, part in enumerate(item.get("summary", ())):
            where = {**place, "summary_index": number_of_part}
            event("response.reasoning_summary_part.added", **where, part={**part, "text": ""})
            for text in split_text(part["text"]):
                event("response.reasoning_summary_text.delta", **where, delta=text)
            event("response.reasoning_summary_text.done", **where, text=part["text"])
            event("response.reasoning_summary_part.done", **where, part=part)
        event("response.output_item.done", output_index=index, item=item)
    answer = _finish(reply, number, model, output, body)
    event(f"response.{answer['status']}", response=answer)
    return events


def _stream_part(event: Any, where: dict[str, Any], part: dict[str, Any]) -> None:
    if part["type"] == "refusal":
        event("response.content_part.added", **where, part={**part, "refusal": ""})
        for text in split_text(part["refusal"]):
            event("response.refusal.delta", **where, delta=text)
        event("response.refusal.done", **where, refusal=part["refusal"])
    else:
        event("response.content_part.added", **where, part={**part, "text": ""})
        for text in split_text(part["text"]):
            event("response.output_text.delta", **where, delta=text, logprobs=[])
        event("response.output_text.done", **where, text=part["text"], logprobs=[])
    event("response.content_part.done", **where, part=part)
