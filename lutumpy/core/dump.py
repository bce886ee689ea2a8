"""Items to JSON values and back, for `Session.dump()`; `VERSION` names the format (rule R4)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from lutumpy.core import json_values
from lutumpy.core.costs import Unsettled
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FilePart,
    FinishReason,
    ImagePart,
    Item,
    Message,
    OpaqueBlock,
    Part,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    ResultStatus,
    Role,
    TextBlock,
    TextPart,
    ToolResults,
    Usage,
    Verbatim,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError

VERSION = 2
READABLE = (1, 2)
"""Versions that can be loaded; the second one added what items hold verbatim."""

_BLOCKS: dict[str, type[Any]] = {
    "text": TextBlock,
    "reasoning": ReasoningBlock,
    "refusal": RefusalBlock,
    "call": CallBlock,
    "opaque": OpaqueBlock,
}
_BLOCK_NAMES = {cls: name for name, cls in _BLOCKS.items()}
_TURN_FIELDS = (
    "calls_key",
    "id_field",
    "finish_reason",
    "provider_finish_reason",
    "model",
    "request_id",
    "response_id",
)
_UNSETTLED_NAMES = ("api", "model", "response_id", "request_id")
_TURN_FLAGS = ("cut", "results_only", "reasoning_dropped")


def dump_transcript(transcript: Transcript) -> dict[str, Any]:
    """The transcript as JSON values."""
    return {"items": [_dump_item(item) for item in transcript], **transcript._state()}


def load_transcript(data: Mapping[str, Any]) -> Transcript:
    """The transcript of a dump.

    Raises:
        TranscriptError: the data is no valid transcript: the message says which item is wrong.
    """
    transcript = Transcript()
    items = _expect(data.get("items"), list, "items")
    pending: AssistantTurn | None = None
    for index, raw in enumerate(items):
        try:
            item = _load_item(_expect(raw, dict, f"items[{index}]"))
            if pending is not None:
                if not isinstance(item, ToolResults):
                    raise TranscriptError("the turn before has calls, and their results don't follow")
                transcript.append_turn(pending, item)
                pending = None
            elif isinstance(item, AssistantTurn):
                if any(call.answerable for call in item.calls):
                    pending = item
                else:
                    transcript.append_turn(item)
            elif isinstance(item, Message):
                transcript.append(item)
            else:
                raise TranscriptError("results without a turn before them")
        except (TranscriptError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise TranscriptError(f"items[{index}] of the dump is invalid: {error}; nothing was loaded") from error
    if pending is not None:
        raise TranscriptError("the last turn of the dump has calls without results; nothing was loaded")
    try:
        failures = {(str(n), str(a)): int(c) for n, a, c in _expect(data.get("failures", []), list, "failures")}
        sent = _expect(data.get("ephemerals_sent", 0), int, "ephemerals_sent")
        transcript._restore(failures, sent, bool(data.get("held", False)))
    except (ValueError, TypeError) as error:
        raise TranscriptError(f"the dump is invalid: {error}; nothing was loaded") from error
    return transcript


def _dump_item(item: Item) -> dict[str, Any]:
    if isinstance(item, Message):
        dumped: dict[str, Any] = {"item": "message", "role": item.role, "parts": [_dump_part(p) for p in item.parts]}
        if item.ephemeral:
            dumped["ephemeral"] = True
        return {**dumped, **_dump_verbatim(item)}
    if isinstance(item, ToolResults):
        return {"item": "results", "results": [_dump_result(r) for r in item.results], **_dump_verbatim(item)}
    return {
        "item": "turn",
        "api": item.api,
        "blocks": [_dump_block(b) for b in item.blocks],
        "native": json_values.decode(item.native) if item.native else None,
        "residue": json_values.decode(item.residue) if item.residue else None,
        "usage": dump_usage(item.usage),
        **{name: getattr(item, name) for name in _TURN_FIELDS},
        **{name: True for name in _TURN_FLAGS if getattr(item, name)},
        **_dump_verbatim(item),
    }


def _dump_verbatim(item: Item) -> dict[str, Any]:
    given = item.verbatim
    if given is None:
        return {}
    dumped = {"api": given.api, "entries": [json_values.decode(entry) for entry in given.entries]}
    return {"verbatim": {**dumped, "system": True} if given.system else dumped}


def _load_verbatim(data: Mapping[str, Any]) -> Verbatim | None:
    given = data.get("verbatim")
    if given is None:
        return None
    api = _expect(_expect(given, dict, "verbatim").get("api"), str, "verbatim.api")
    entries = _expect(given.get("entries"), list, "verbatim.entries")
    system = bool(given.get("system", False))
    if system and len(entries) != 1:
        raise TranscriptError(f"verbatim.entries has {len(entries)} values, where the system is one")
    if not system and any(not isinstance(entry, dict) for entry in entries):
        raise TranscriptError("verbatim.entries holds what is no object")
    return Verbatim(api, tuple([json_values.encode(entry) for entry in entries]), system)


def _load_item(data: Mapping[str, Any]) -> Item:
    kind = data.get("item")
    if kind == "message":
        role = _one_of(data["role"], Role, "role")
        parts = tuple([_load_part(p) for p in data["parts"]])
        return Message(role, parts, bool(data.get("ephemeral", False)), _load_verbatim(data))
    if kind == "results":
        return ToolResults(tuple([_load_result(r) for r in data["results"]]), _load_verbatim(data))
    if kind != "turn":
        raise TranscriptError(f"unknown item {kind!r}")
    blocks = tuple([_load_block(b) for b in data["blocks"]])
    native = data["native"]
    fields: dict[str, Any] = {name: data[name] for name in _TURN_FIELDS}
    fields |= {name: bool(data.get(name, False)) for name in _TURN_FLAGS}
    turn = AssistantTurn(
        api=_expect(data["api"], str, "api"),
        blocks=blocks,
        native=b"" if native is None else json_values.encode(native),
        calls=tuple([b for b in blocks if isinstance(b, CallBlock)]),
        residue=b"" if data.get("residue") is None else json_values.encode(data["residue"]),
        usage=load_usage(data["usage"]),
        verbatim=_load_verbatim(data),
        **fields,
    )
    _one_of(turn.finish_reason, FinishReason, "finish_reason")
    _check_native_ids(turn, native)
    return turn


def _check_native_ids(turn: AssistantTurn, native: Any) -> None:
    entries: Any = native if turn.calls_key is None else (native or {}).get(turn.calls_key)
    for call in turn.calls:
        if call.answerable and entries[call.position][call.id_field or turn.id_field] != call.id:
            raise TranscriptError(f"call {call.id!r} isn't the one in the turn's native form")


def dump_turn(turn: AssistantTurn) -> dict[str, Any]:
    """A turn as JSON values."""
    return _dump_item(turn)


def load_turn(data: Mapping[str, Any]) -> AssistantTurn:
    """The turn of a dump; raises `TranscriptError` or what a wrong value raises (`KeyError`, `TypeError`, ...) for none."""
    item = _load_item(data)
    if not isinstance(item, AssistantTurn):
        raise TranscriptError(f"a turn was expected, not {data.get('item')!r}")
    return item


def dump_usage(usage: Usage) -> dict[str, int]:
    """The usage as JSON values."""
    dumped: dict[str, int] = asdict(usage)
    del dumped["cached_beside_tokens"]
    # Nearly always a usage finds it out from the others, so that earlier releases can read the dump.
    if Usage(**dumped).all_input_tokens != usage.all_input_tokens:
        dumped["cached_beside_tokens"] = usage.all_input_tokens - usage.input_tokens
    return dumped


def load_usage(data: Any) -> Usage:
    """The usage of a dump; raises `TranscriptError` for anything that isn't one."""
    try:
        return Usage(**{str(k): _expect(v, int, f"usage.{k}") for k, v in _expect(data, dict, "usage").items()})
    except TypeError as error:
        raise TranscriptError(f"the dump's usage is invalid: {error}; nothing was loaded") from error


def dump_unsettled(request: Unsettled) -> dict[str, Any]:
    """A request whose cost is unknown, as JSON values."""
    named = {name: getattr(request, name) for name in _UNSETTLED_NAMES}
    return {**named, "estimate": None if request.estimate is None else dump_usage(request.estimate)}


def load_unsettled(data: Any) -> tuple[Unsettled, ...]:
    """The requests of a dump whose cost is unknown; raises `TranscriptError` for anything that isn't a list of them."""
    return tuple([_load_request(entry, index) for index, entry in enumerate(_expect(data, list, "unsettled"))])


def _load_request(data: Any, index: int) -> Unsettled:
    where = f"unsettled[{index}]"
    fields = _expect(data, dict, where)
    api, model, response_id, request_id = [
        None if fields.get(name) is None else _expect(fields[name], str, f"{where}.{name}") for name in _UNSETTLED_NAMES
    ]
    estimate = fields.get("estimate")
    return Unsettled(api, model, response_id, request_id, None if estimate is None else load_usage(estimate))


def _dump_part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"part": "text", "text": part.text}
    dumped = {k: v for k, v in asdict(part).items() if v is not None}
    if part.data is not None:
        dumped["data"] = base64.b64encode(part.data).decode()
    return {"part": "image" if isinstance(part, ImagePart) else "file", **dumped}


def _load_part(data: Mapping[str, Any]) -> Part:
    fields = dict(data)
    kind = fields.pop("part")
    if "data" in fields:
        fields["data"] = base64.b64decode(fields["data"], validate=True)
    if kind == "text":
        return TextPart(_expect(fields["text"], str, "text"))
    return ImagePart(**fields) if kind == "image" else FilePart(**fields)


def _dump_block(block: Block) -> dict[str, Any]:
    return {"block": _BLOCK_NAMES[type(block)], **asdict(block)}


def _load_block(data: Mapping[str, Any]) -> Block:
    fields = dict(data)
    block: Block = _BLOCKS[fields.pop("block")](**fields)
    return block


def _dump_result(result: ResultBlock) -> dict[str, Any]:
    content = result.content if isinstance(result.content, str) else [_dump_part(p) for p in result.content]
    return {
        "call_id": result.call_id,
        "name": result.name,
        "content": content,
        "status": result.status,
        "kind": result.kind,
    }


def _load_result(data: Mapping[str, Any]) -> ResultBlock:
    content = data["content"]
    return ResultBlock(
        call_id=_expect(data["call_id"], str, "call_id"),
        name=_expect(data["name"], str, "name"),
        content=content if isinstance(content, str) else tuple([_load_part(p) for p in content]),
        status=_one_of(data["status"], ResultStatus, "status"),
        kind=_expect(data.get("kind", "function"), str, "kind"),
    )


def _expect(value: Any, kind: type[Any], name: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TranscriptError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def _one_of(value: Any, literal: Any, name: str) -> Any:
    if value not in get_args(literal):
        raise TranscriptError(f"{name} is {value!r}, not one of {get_args(literal)}")
    return value
