"""What the log of a run shows of a loop's values, as JSON values (see `log.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from lutumpy import (
    ApprovalRequest,
    AssistantTurn,
    FilePart,
    HandledTool,
    ImagePart,
    OpenCall,
    RejectedToolCall,
    Session,
    TextPart,
    ToolCall,
    ToolCallIssue,
    ToolMetadata,
    ToolResult,
)
from lutumpy.durable.log import ShownCall, ShownResult
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopResult
from lutumpy.models import CallBlock, Message, OpaqueBlock, ReasoningBlock, TextBlock
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools import Question, call_arguments, written_arguments

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "asked_event",
    "decided_event",
    "dump_event",
    "held_event",
    "show_blocks",
    "show_message",
    "show_result",
    "unanswered",
]

_MOST_SHOWN = 16_384
"""How many bytes of a result are shown."""


def dump_event(event: Any) -> dict[str, JsonValue]:
    """An event of a loop, a stream or a log as JSON values: `{"event": <name of its class>, ...}`.

    Calls, issues and results are what is shown of them; the conversation has them in full. A whole
    answer is an event of its own, so `turn` isn't shown.
    """
    shown = [each.name for each in fields(event) if each.name != "turn"]
    dumped = {name: _dump_value(getattr(event, name)) for name in shown}
    values: dict[str, JsonValue] = json_values.clean(dumped)
    return {"event": type(event).__name__, **values}


def _dump_value(value: Any) -> Any:
    if isinstance(value, BaseToolCall):
        return asdict(_show_call(value))
    if isinstance(value, ToolCallIssue):
        return {**_call_of(value.metadata), "reason": value.reason, "detail": value.detail}
    if isinstance(value, HandledTool):
        return _show_handled(value)
    if isinstance(value, RejectedToolCall):
        call = _dump_value(value.call)
        return {"call": call, "reason": value.reason, "source": value.source}
    if isinstance(value, LoopResult):
        ended = {"text": value.text, "rounds": value.rounds, "stopped_by": value.stopped_by}
        shown_value = {} if value.value is None else {"value": _show(value.value)}
        return {**ended, "usage": _dump_value(value.usage), **shown_value}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_dump_value(entry) for entry in value]
    if is_dataclass(value):
        return {each.name: _dump_value(getattr(value, each.name)) for each in fields(value)}
    return value


def _call_of(metadata: ToolMetadata) -> dict[str, Any]:
    return {"call_id": metadata.id, "tool": metadata.name, "arguments": metadata.arguments}


def _show_call(call: BaseToolCall) -> ShownCall:
    """A call with the input that runs (rule W3)."""
    if isinstance(call, ApprovalRequest):
        return ShownCall(**_call_of(call.metadata), input=_parse(call.metadata.arguments))
    edited = call_arguments(call) != written_arguments(call)
    effect = call.tool.definition.options.effect
    return ShownCall(
        **_call_of(call.metadata), input=_show(call.input), edited=edited, effect=effect
    )


def _show_handled(handled: HandledTool[Any, Any]) -> dict[str, Any]:
    """A call that a hook answered, as its result."""
    if handled.selector is None:
        call = ShownCall(**_call_of(handled.metadata), input=_show(handled.input))
    else:
        rebuilt: ToolCall[Any, Any] = ToolCall(handled.metadata, handled.input, handled.selector)
        call = _show_call(rebuilt)
    output = handled.output
    text = output if isinstance(output, str) else json_values.encode_text(_show(output))
    return asdict(_cut(call, "ok", text))


def show_result(result: ToolResult, calls: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A result, with the call as it was shown when it was planned.

    Args:
        result: The result.
        calls: The calls of the round as they were shown, by id.
    """
    known = calls.get(result.metadata.id)
    call = ShownCall(**_call_of(result.metadata)) if known is None else ShownCall(**known)
    shown = _cut(call, result.status, _text_of(result))
    return json_values.clean(asdict(shown))  # type: ignore[no-any-return]


def _text_of(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str):
        return content
    return "\n".join([part.text if isinstance(part, TextPart) else _name(part) for part in content])


def _cut(call: ShownCall, status: str, text: str) -> ShownResult:
    data = text.encode("utf-8", "replace")
    if len(data) <= _MOST_SHOWN:
        return ShownResult(call, status, text)
    return ShownResult(call, status, data[:_MOST_SHOWN].decode("utf-8", "ignore"), cut=True)


def _show(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except Exception:
        # Only a picture of it: a user's serializer that fails must not take the run along.
        return safe_repr(value)


def _parse(text: str) -> Any:
    try:
        return json_values.parse_arguments(text)
    except (ValueError, RecursionError):
        return text


def show_blocks(turn: AssistantTurn) -> list[dict[str, JsonValue]]:
    """The blocks of an answer; not what the provider sent."""
    shown: list[dict[str, JsonValue]] = []
    for block in turn.blocks:
        if isinstance(block, CallBlock):
            called = {"call_id": block.id, "tool": block.name, "arguments": block.arguments}
            shown.append({"block": "call", **called})
        elif isinstance(block, OpaqueBlock):
            shown.append({"block": "opaque", "kind": block.kind})
        elif isinstance(block, TextBlock):
            shown.append({"block": "text", "text": block.text})
        elif isinstance(block, ReasoningBlock):
            shown.append({"block": "reasoning", "text": block.text})
        else:
            shown.append({"block": "refusal", "text": block.text})
    return shown


# --- messages ----------------------------------------------------------------------------------


def show_message(message: Message, key: str = "") -> dict[str, JsonValue]:
    """A message of the user: its texts, and its files by name."""
    text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    files: list[JsonValue] = [
        _name(part) for part in message.parts if not isinstance(part, TextPart)
    ]
    return {"id": key, "text": text, "files": files}


def _name(part: Any) -> str:
    if isinstance(part, ImagePart):
        return "image"
    return (part.filename or "file") if isinstance(part, FilePart) else "content"


def unanswered(session: Session) -> list[Message]:
    """The messages of the user that nothing answers yet, in order."""
    found: list[Message] = []
    for item in reversed(list(session.transcript)):
        if not isinstance(item, Message):
            break
        if item.role == "user" and not item.ephemeral:
            found.append(item)
    return found[::-1]


# --- calls that people decide ------------------------------------------------------------------


def held_event(call: BaseToolCall, reason: str, digest: str) -> dict[str, JsonValue]:
    """That a person has to decide a call, with what has to be seen for that."""
    is_own = not isinstance(call, ApprovalRequest)
    schema = call.tool.definition.input_schema if is_own else {}
    values: dict[str, JsonValue] = json_values.clean(
        {
            "call": asdict(_show_call(call)),
            "reason": reason,
            "approval_id": f"{digest}:{call.metadata.id}",
            "digest": digest,
            "schema": schema,
        }
    )
    return {"event": "CallHeld", **values}


def asked_event(call: BaseToolCall, questions: Sequence[Question]) -> dict[str, JsonValue]:
    """That a server wants to know something before a call goes on."""
    asked = [question.dump() for question in questions]
    values: dict[str, JsonValue] = json_values.clean(
        {"call": asdict(_show_call(call)), "questions": asked}
    )
    return {"event": "CallAsked", **values}


def promised_event(call: OpenCall) -> dict[str, JsonValue]:
    """That the result of a call comes later."""
    shown = ShownCall(call.call_id, call.tool, call.arguments, _parse(call.arguments))
    until = "" if call.until is None else call.until.isoformat()
    return {
        "event": "CallPromised",
        "call": json_values.clean(asdict(shown)),
        "note": call.note,
        "until": until,
    }


def decided_event(
    plan: Mapping[str, Any], call_id: str, decision: Mapping[str, Any], by: str
) -> dict[str, JsonValue]:
    """That somebody has decided a call of a plan.

    Args:
        plan: The plan, as it is recorded.
        call_id: A call that it holds.
        decision: The decision as JSON values, checked.
        by: Who decided.
    """
    call = next(each for each in plan["calls"] if each["call_id"] == call_id)
    arguments = str(call.get("arguments", ""))
    planned = call["input"] if "input" in call else _parse(arguments)
    word, value = str(decision["decision"]), decision.get("input", planned)
    is_edit = word == "run" and not json_values.equal(value, planned)
    shown = ShownCall(
        call_id,
        str(call.get("tool", "")),
        arguments,
        value if word == "run" else planned,
        bool(call.get("edited")) or is_edit,
        str(call.get("effect", "")),
    )
    return {
        "event": "CallDecided",
        "approval_id": f"{plan['digest']}:{call_id}",
        "call": asdict(shown),
        "decision": "edited" if is_edit else word,
        "by": by,
        "reason": str(decision.get("reason", "")),
    }
