"""A message of one host of Chat Completions as another one takes it (rules OR2 to OR4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.history_encoder import arguments_object
from lutumpy.adapters.openai.reply_fields import filled
from lutumpy.core.items import AssistantTurn, ReasoningBlock
from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.openai.chat.host_fields import (
    CALL_KEYS,
    MESSAGE_KEYS,
    PART_TYPES,
    seal_of_part,
)

__all__ = [
    "REASONING_FIELDS",
    "add_reasoning",
    "as_function",
    "fit_message",
    "reported_reasons",
    "without_sealed",
]

REASONING_FIELDS = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "thought_signature",
)
"""The fields in which hosts give reasoning."""

_READABLE = ("reasoning_content", "reasoning")
_SEALED = ("reasoning_details", "thinking_blocks", "thought_signature", "extra_content")


def fit_message(
    message: Mapping[str, Any], facts: HostFacts
) -> tuple[dict[str, Any], dict[str, Any]]:
    """An assistant's message of another host, as far as the API's schema goes.

    Args:
        message: The message.
        facts: What is known of the host that gets it.

    Returns:
        The message, and what was left out of it that says something, by its name.
    """
    left: dict[str, Any] = {}
    fitted: dict[str, Any] = {}
    for key, value in message.items():
        if key == "tool_calls" and isinstance(value, list):
            fitted[key] = [_fit_call(call, left) for call in value]
        elif key == "content":
            fitted[key] = _fit_content(value, left)
        elif key in MESSAGE_KEYS and value is not None:
            fitted[key] = value
        elif key not in MESSAGE_KEYS and filled(value):
            left[key] = value
    if facts.unknown_field is not None and "refusal" in fitted:
        fitted["content"] = fitted.get("content") or fitted["refusal"]
        del fitted["refusal"]
    has_calls = bool(fitted.get("tool_calls") or fitted.get("function_call"))
    if not fitted.get("content") and not has_calls and "refusal" not in fitted:
        fitted["content"] = ""
    return fitted, left


def _fit_call(call: Any, left: dict[str, Any]) -> Any:
    if not isinstance(call, dict):
        return call
    # The place of a call is told by its place.
    left.update(
        {k: v for k, v in call.items() if k not in CALL_KEYS and k != "index" and filled(v)}
    )
    return {"type": "function", **{k: v for k, v in call.items() if k in CALL_KEYS}}


def _fit_content(content: Any, left: dict[str, Any]) -> Any:
    if not isinstance(content, list):
        return content
    kept: list[dict[str, Any]] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in PART_TYPES:
            kept.append({"type": kind, kind: part.get(kind)})
        elif part:
            left[str(kind)] = part
    return kept or None


def as_function(call: dict[str, Any], block: Any) -> dict[str, Any]:
    """A call of a text tool as a function's, for hosts that know no text tools."""
    function = {"name": call["custom"]["name"], "arguments": arguments_object(block)}
    return {"id": call.get("id"), "type": "function", "function": function}


def add_reasoning(message: dict[str, Any], turn: AssistantTurn, facts: HostFacts) -> bool:
    """Put what can be read of a turn's reasoning where the host takes it (rule OR4).

    Returns:
        Whether it takes it.
    """
    field = facts.reasoning_field
    if field is None:
        return False
    text = "\n\n".join(
        [block.text for block in turn.blocks if isinstance(block, ReasoningBlock) and block.text]
    )
    if text:
        message[field] = text
    return True


def without_sealed(message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A message of a host of many makers' models, for another model there: what one has sealed no
    other can open. Arguments and result as of `fit_message`.
    """
    left = {key: message[key] for key in _SEALED if filled(message.get(key))}
    kept = {key: value for key, value in message.items() if key not in _SEALED}
    content = kept.get("content")
    if isinstance(content, list):
        parts = [part for part in content if seal_of_part(part) is None]
        if len(parts) < len(content):
            left["content"] = content
            kept["content"] = parts or (None if kept.get("tool_calls") else "")
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        fitted: list[Any] = []
        for call in calls:
            if isinstance(call, dict):
                left.update({key: call[key] for key in _SEALED if filled(call.get(key))})
                call = {key: value for key, value in call.items() if key not in _SEALED}
            fitted.append(call)
        kept["tool_calls"] = fitted
    return kept, left


def reported_reasons(left: Mapping[str, Any], *, is_read: bool) -> list[str]:
    """The names of what was left out, without readable reasoning that went in another field.

    Args:
        left: What was left out, by its name.
        is_read: Whether the host takes readable reasoning.
    """
    return [key for key in left if not (is_read and key in _READABLE)]
