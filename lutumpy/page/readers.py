"""The messages of each API, and a `Transcript`, walked into a `Timeline`. Broken histories are read like good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lutumpy.core import json_values
from lutumpy.core.items import (
    Api,
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultStatus,
    TextBlock,
)
from lutumpy.core.safe_text import safe_repr
from lutumpy.page.model import Piece, Place, Step
from lutumpy.page.pieces import (
    content_pieces,
    data_piece,
    extra_piece,
    part_pieces,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["APIS", "Api", "read_messages", "read_transcript", "read_turn"]


_CHAT = frozenset(
    "role content tool_calls function_call tool_call_id refusal reasoning reasoning_content reasoning_details".split()
)
_RESPONSES = frozenset("role content type id status".split())
_ANTHROPIC = frozenset(("role", "content"))
_CALL_TEXTS = ("arguments", "input", "action", "operation")


def read_messages(api: Api, messages: Any, system: Any, limit: int) -> Timeline:
    """The timeline of a list of messages (items, on Responses) of one API."""
    timeline = Timeline(SPELLINGS[api], limit)
    if system is not None and system != "" and system != []:
        timeline.say(
            "system",
            content_pieces(system, limit),
            ("system" if api != "openai_responses" else "instructions",),
        )
    messages = unwrap(messages)
    if (
        isinstance(messages, str)
        or not isinstance(messages, Iterable)
        or isinstance(messages, Mapping)
    ):
        if messages is not None:
            timeline.say(
                "user" if isinstance(messages, str) else None,
                _anything(messages, limit),
                ("input",),
            )
        return timeline
    read = APIS[api]
    for index, message in enumerate(messages):
        timeline.size = index + 1
        message = unwrap(message)
        if isinstance(message, Mapping):
            read(timeline, index, message)
        else:
            timeline.say(None, [data_piece("No message", message, limit)], (index,))
    return timeline


def _anything(value: Any, limit: int) -> list[Piece]:
    return (
        content_pieces(value, limit)
        if isinstance(value, str)
        else [data_piece("No list of messages", value, limit)]
    )


# --- Chat Completions ----------------------------------------------------------------------------------------------


def _read_chat(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    role, content = message.get("role"), unwrap(message.get("content"))
    if role in ("tool", "function"):
        call_id = message.get("tool_call_id")
        timeline.answer(
            call_id if role == "tool" else message.get("name"), _result(content, limit), (index,)
        )
        return
    pieces = _chat_reasoning(message, limit) + content_pieces(content, limit)
    if isinstance(message.get("refusal"), str):
        pieces.append(text_piece(message["refusal"], limit, "refusal", "Refusal"))
    step = timeline.say(role, pieces + extra_piece(message, _CHAT, limit), (index,))
    calls = unwrap(message.get("tool_calls"))
    if isinstance(calls, (list, tuple)):
        for number, call in enumerate(calls):
            _chat_call(timeline, step, unwrap(call), (index, "tool_calls", number))
    elif calls is not None:
        step.pieces.append(data_piece("tool_calls of an unknown form", calls, limit))
    legacy = unwrap(message.get("function_call"))
    if isinstance(legacy, Mapping):
        name = legacy.get("name")
        timeline.call(
            step,
            name,
            name,
            _argument_text(legacy.get("arguments")),
            (index, "function_call"),
            "function_call",
        )


def _chat_call(timeline: Timeline, step: Step, call: Any, place: Place) -> None:
    if not isinstance(call, Mapping):
        step.pieces.append(data_piece("Call of an unknown form", call, timeline.limit))
        return
    kind = call.get("type", "function")
    body = unwrap(call.get(kind) if isinstance(kind, str) else None)
    body = body if isinstance(body, Mapping) else unwrap(call.get("function"))
    body = body if isinstance(body, Mapping) else {}
    given = body.get("arguments", body.get("input"))
    word = kind if isinstance(kind, str) else safe_repr(kind)
    timeline.call(step, call.get("id"), body.get("name"), _argument_text(given), place, word)


def _chat_reasoning(message: Mapping[str, Any], limit: int) -> list[Piece]:
    for key in ("reasoning_content", "reasoning"):
        text = message.get(key)
        if isinstance(text, str) and text:
            return [text_piece(text, limit, "reasoning", "Reasoning")]
    details = message.get("reasoning_details")
    return [data_piece("Reasoning", details, limit)] if details else []


# --- Responses -----------------------------------------------------------------------------------------------------


def _read_responses(timeline: Timeline, index: int, item: Mapping[str, Any]) -> None:
    limit = timeline.limit
    kind = item.get("type", "message" if "role" in item else None)
    place: Place = (index,)
    if kind == "message":
        pieces = content_pieces(item.get("content"), limit) + extra_piece(item, _RESPONSES, limit)
        if item.get("role") == "assistant":
            timeline.answering(place).pieces.extend(pieces)
        else:
            timeline.say(item.get("role"), pieces, place)
    elif kind == "reasoning":
        timeline.answering(place).pieces.append(_responses_reasoning(item, limit))
    elif isinstance(kind, str) and kind.endswith("_output") and "call_id" in item:
        output = item.get("output") if "output" in item else item.get("tools")
        timeline.answer(item.get("call_id"), _result(unwrap(output), limit), place)
    elif (
        isinstance(kind, str)
        and kind.endswith("_call")
        and (kind == "function_call" or item.get("call_id"))
    ):
        given = next((item[key] for key in _CALL_TEXTS if item.get(key) is not None), None)
        name, space = item.get("name", kind), item.get("namespace")
        name = f"{space}.{name}" if isinstance(space, str) and space else name
        word = "function" if kind == "function_call" else kind
        step = timeline.answering(place)
        timeline.call(step, item.get("call_id"), name, _argument_text(given), place, word)
    elif "role" in item and kind is not None:
        timeline.say(item.get("role"), [data_piece(_text(kind), item, limit)], place)
    else:
        label = _text(kind) if kind is not None else "Item without a type"
        timeline.answering(place).pieces.append(data_piece(label, item, limit))


def _responses_reasoning(item: Mapping[str, Any], limit: int) -> Piece:
    texts: list[str] = []
    for key in ("summary", "content"):
        parts = unwrap(item.get(key))
        for part in parts if isinstance(parts, (list, tuple)) else ():
            part = unwrap(part)
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                texts.append(part["text"])
    sealed = ", encrypted" if item.get("encrypted_content") else ""
    return text_piece("\n\n".join(texts), limit, "reasoning", f"Reasoning{sealed}")


# --- Messages of Anthropic -----------------------------------------------------------------------------------------


def _read_anthropic(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    calls: list[tuple[int, Mapping[str, Any]]] = []
    answered = False

    def leave(number: int, part: Any) -> bool:
        nonlocal answered
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_use":
            calls.append((number, part))
        elif kind == "tool_result":
            answered = True
            status: ResultStatus | None = "error" if part.get("is_error") is True else None
            timeline.answer(
                part.get("tool_use_id"),
                _result(unwrap(part.get("content")), limit),
                (index, "content", number),
                status,
            )
        return kind in ("tool_use", "tool_result")

    pieces = content_pieces(message.get("content"), limit, leave) + extra_piece(
        message, _ANTHROPIC, limit
    )
    if pieces or calls or not answered:
        step = timeline.say(message.get("role"), pieces, (index,))
        for number, call in calls:
            place: Place = (index, "content", number)
            timeline.call(
                step, call.get("id"), call.get("name"), _argument_text(call.get("input")), place
            )


# --- what they share -----------------------------------------------------------------------------------------------


def _argument_text(value: Any) -> str:
    value = unwrap(value)
    if isinstance(value, str):
        return value
    return "" if value is None else json_values.encode_text(value)


def _result(content: Any, limit: int) -> str | list[Piece]:
    """What a result holds: its text when it is nothing but one text."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, tuple)):
        if len(content) == 1:
            only = unwrap(content[0])
            if isinstance(only, Mapping) and only.get("type") in (
                "text",
                "input_text",
                "output_text",
            ):
                text = only.get("text")
                return (
                    text
                    if isinstance(text, str)
                    else [data_piece("Text of an unknown form", only, limit)]
                )
        return content_pieces(content, limit)
    return [data_piece("Content", content, limit)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else safe_repr(value)[:200]


def _dotted(place: Place) -> str:
    return _spelled(place, "messages", ".{}")


def _bracketed(place: Place) -> str:
    return _spelled(place, "messages", "[{}]")


def _items(place: Place) -> str:
    return _spelled(place, "input", "[{}]")


def _spelled(place: Place, name: str, index: str) -> str:
    head, *rest = place
    first = f"{name}{index.format(head)}" if isinstance(head, int) else head
    return first + "".join(
        [index.format(part) if isinstance(part, int) else f".{part}" for part in rest]
    )


APIS: Mapping[Api, Callable[[Timeline, int, Mapping[str, Any]], None]] = {
    "openai_chat": _read_chat,
    "openai_responses": _read_responses,
    "anthropic_messages": _read_anthropic,
}
SPELLINGS: Mapping[Api, Callable[[Place], str]] = {
    "openai_chat": _bracketed,
    "openai_responses": _items,
    "anthropic_messages": _dotted,
}


# --- this library's own transcript ---------------------------------------------------------------------------------


def _item_name(place: Place) -> str:
    return "item " + ".".join([str(part) for part in place])


def read_transcript(items: Iterable[Item], limit: int) -> Timeline:
    """The timeline of a `Transcript`."""
    timeline = Timeline(_item_name, limit)
    for index, item in enumerate(items):
        timeline.size = index + 1
        if isinstance(item, Message):
            tags = ("in one request only",) if item.ephemeral else ()
            timeline.say(item.role, part_pieces(item.parts, limit), (index,), tags)
        elif isinstance(item, AssistantTurn):
            read_turn(timeline, index, item)
        else:
            for number, result in enumerate(item.results):
                content = (
                    result.content
                    if isinstance(result.content, str)
                    else part_pieces(result.content, limit)
                )
                timeline.answer(result.call_id, content, (index, number), result.status)
    return timeline


def read_turn(timeline: Timeline, index: int | str, turn: AssistantTurn) -> None:
    """Add one answer of a model to the timeline; `index` is its place."""
    limit = timeline.limit
    step = timeline.say("assistant", (), (index,), _turn_tags(turn))
    step.usage = turn.usage
    for number, block in enumerate(turn.blocks):
        if isinstance(block, TextBlock):
            step.pieces.append(text_piece(block.text, limit))
        elif isinstance(block, ReasoningBlock):
            label = "Reasoning, signed" if block.signed else "Reasoning"
            step.pieces.append(text_piece(block.text, limit, "reasoning", label))
        elif isinstance(block, RefusalBlock):
            step.pieces.append(text_piece(block.text, limit, "refusal", "Refusal"))
        elif isinstance(block, CallBlock):
            timeline.call(step, block.id, block.name, block.arguments, (index, number), block.kind)
    others = [block.kind for block in turn.blocks if isinstance(block, OpaqueBlock)]
    if others:
        label = f"The answer in the provider's form ({', '.join(dict.fromkeys(others))})"
        step.pieces.append(data_piece(label, turn.native.decode("utf-8", "replace"), limit))


def _turn_tags(turn: AssistantTurn) -> list[str]:
    tags = [turn.model] if turn.model else []
    if turn.finish_reason not in ("stop", "tool_calls"):
        tags.append(f"finish: {turn.finish_reason}")
    if turn.reasoning_dropped:
        tags.append("reasoning no longer sent")
    if turn.empty:
        tags.append("no content, not sent")
    return tags
