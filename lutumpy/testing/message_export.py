"""A conversation as the messages of inspect-ai."""

from __future__ import annotations

from typing import Any

from lutumpy import Session
from lutumpy.models import AssistantTurn, Message, ToolResults, Transcript
from lutumpy.plain import json_values

__all__ = ["inspect_messages"]

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def inspect_messages(session: Session | Transcript) -> list[dict[str, Any]]:
    """A conversation as JSON objects that inspect-ai reads as its `ChatMessage`s, for its scorers
    and its logs.

    Arguments that aren't a JSON object are `{}` with a `parse_error`. A call that failed or wasn't
    run has an `error`. Reasoning and what a provider did itself are left out.

    Args:
        session: The conversation.
    """
    transcript = session.transcript if isinstance(session, Session) else session
    found: list[dict[str, Any]] = []
    for item in transcript:
        if isinstance(item, Message):
            source = {"source": "input"} if item.role == "user" else {}
            found.append({"role": _ROLES[item.role], "content": item.text, **source})
        elif isinstance(item, ToolResults):
            found += [_result(result) for result in item.results]
        else:
            found.append(_turn(item))
    return found


def _turn(turn: AssistantTurn) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": turn.text or turn.refusal or "",
        "source": "generate",
    }
    if turn.model is not None:
        message["model"] = turn.model
    calls = [_call(call) for call in turn.calls if call.answerable]
    return {**message, "tool_calls": calls} if calls else message


def _call(call: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"id": call.id, "function": call.name, "arguments": {}}
    if call.kind != "function":
        return {**found, "arguments": {"input": call.arguments}, "type": "custom"}
    try:
        arguments = json_values.parse_arguments(call.arguments)
    except ValueError as error:
        return {**found, "parse_error": str(error)}
    if not isinstance(arguments, dict):
        return {**found, "parse_error": "the arguments are not a JSON object"}
    return {**found, "arguments": arguments}


def _result(result: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "tool",
        "tool_call_id": result.call_id,
        "function": result.name,
        "content": result.text,
    }
    if result.status not in ("ok", "promised"):
        kind = "unknown" if result.status == "error" else "approval"
        message["error"] = {"type": kind, "message": result.text}
    return message
