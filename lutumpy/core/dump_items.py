"""One item of a transcript as JSON values and back (rule R4).

Everything that is loaded is checked; what that raises is in `dump_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from lutumpy.apis import api_names, serving
from lutumpy.core.dump_checks import LARGEST, expect, expect_one_of
from lutumpy.core.dump_parts import dump_part, load_part
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FinishReason,
    Item,
    Message,
    OpaqueBlock,
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
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values

if TYPE_CHECKING:
    from lutumpy.core.promises import LateResult, Promise
    from lutumpy.core.turn_settings import TurnSettings

__all__ = [
    "dump_item",
    "dump_result_block",
    "dump_turn",
    "dump_usage",
    "load_item",
    "load_result_block",
    "load_turn",
    "load_usage",
]

_BLOCKS: dict[str, type[Any]] = {
    "text": TextBlock,
    "reasoning": ReasoningBlock,
    "refusal": RefusalBlock,
    "call": CallBlock,
    "opaque": OpaqueBlock,
}
# Types of a block's fields, where they aren't text; and those that may be `None`.
_TYPES: dict[str, type[Any]] = {
    "signed": bool,
    "as_object": bool,
    "incomplete": bool,
    "position": int,
}
_OPTIONAL = frozenset({"id_field", "problem", "server_label"})
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
_ROLES = get_args(Role)
_FINISH_REASONS = get_args(FinishReason)
_STATUSES = get_args(ResultStatus)
_TURN_FLAGS = ("cut", "results_only", "reasoning_dropped")


def dump_item(item: Item) -> dict[str, Any]:
    """An item as JSON values."""
    if isinstance(item, Message):
        if item.late is not None:
            return {**_dump_late(item.late), **_dump_verbatim(item)}
        dumped: dict[str, Any] = {
            "item": "message",
            "role": item.role,
            "parts": [dump_part(p) for p in item.parts],
        }
        if item.ephemeral:
            dumped["ephemeral"] = True
        return {**dumped, **_dump_verbatim(item)}
    if isinstance(item, ToolResults):
        return {
            "item": "results",
            "results": [dump_result_block(r) for r in item.results],
            **_dump_verbatim(item),
        }
    return {
        "item": "turn",
        "api": item.api,
        "blocks": [_dump_block(b) for b in item.blocks],
        "native": json_values.decode(item.native) if item.native else None,
        "residue": json_values.decode(item.residue) if item.residue else None,
        "usage": dump_usage(item.usage),
        **{name: getattr(item, name) for name in _TURN_FIELDS},
        **{name: True for name in _TURN_FLAGS if getattr(item, name)},
        **_dump_transformations(item),
        **_dump_record(item),
        **_dump_verbatim(item),
    }


def _dump_record(turn: AssistantTurn) -> dict[str, Any]:
    """Who said it and what was in force, where that is known."""
    if turn.origin is None and turn.settings is None:
        return {}
    # Most programs keep no dumps.
    from lutumpy.core.dump_settings import dump_origin, dump_settings

    dumped: dict[str, Any] = {}
    if turn.origin is not None:
        dumped["origin"] = dump_origin(turn.origin)
    if turn.settings is not None:
        dumped["settings"] = dump_settings(turn.settings)
    return dumped


def _load_record(api: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if "origin" not in data and "settings" not in data:
        return {}  # a dump of an earlier version
    from lutumpy.core.dump_settings import load_origin, load_settings

    origin, settings = data.get("origin"), data.get("settings")
    return {
        "origin": None if origin is None else load_origin(api, origin),
        "settings": None if settings is None else load_settings(settings),
    }


def _dump_transformations(turn: AssistantTurn) -> dict[str, Any]:
    # Nearly all turns have none. They are left out then, so that earlier releases can read the
    # dump. The copies are the dump's own.
    if not turn.input_transformations:
        return {}
    return {"input_transformations": json_values.clean(turn.input_transformations)}


def _load_transformations(data: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    if "input_transformations" not in data:
        return ()
    entries = expect(data["input_transformations"], list, "input_transformations")
    for entry in entries:
        expect(entry, dict, "an entry of input_transformations")
    return tuple(json_values.clean(entries))


def _dump_verbatim(item: Item) -> dict[str, Any]:
    verbatim = item.verbatim
    if verbatim is None:
        return {}
    dumped: dict[str, Any] = {
        "api": verbatim.api,
        "entries": [json_values.decode(entry) for entry in verbatim.entries],
    }
    if verbatim.system:
        dumped["system"] = True
    if verbatim.settings:
        from lutumpy.core.dump_settings import dump_settings

        dumped["settings"] = [[place, dump_settings(step)] for place, step in verbatim.settings]
    return {"verbatim": dumped}


def _load_verbatim(data: Mapping[str, Any]) -> Verbatim | None:
    dumped = data.get("verbatim")
    if dumped is None:
        return None
    api = expect_one_of(expect(dumped, dict, "verbatim").get("api"), api_names(), "verbatim.api")
    entries = expect(dumped.get("entries"), list, "verbatim.entries")
    system = expect(dumped.get("system", False), bool, "verbatim.system")
    if system and len(entries) != 1:
        raise TranscriptError(
            f"verbatim.entries has {len(entries)} values, and a system text has one"
        )
    if not system and any(not isinstance(entry, dict) for entry in entries):
        raise TranscriptError("verbatim.entries holds something that is not an object")
    settings = _load_read_settings(dumped.get("settings"), len(entries))
    return Verbatim(api, tuple([json_values.encode(entry) for entry in entries]), system, settings)


def _load_read_settings(data: Any, entries: int) -> tuple[tuple[int, TurnSettings], ...]:
    if data is None:
        return ()
    from lutumpy.core.dump_settings import load_settings  # few transcripts are read ones

    found: list[tuple[int, TurnSettings]] = []
    for pair in expect(data, list, "verbatim.settings"):
        if len(expect(pair, list, "an entry of verbatim.settings")) != 2:
            raise TranscriptError("an entry of verbatim.settings isn't a place and a record")
        place = expect(pair[0], int, "a place in verbatim.settings")
        if not -1 <= place < entries:
            raise TranscriptError(f"verbatim.settings names the entry {place} of {entries}")
        found.append((place, load_settings(pair[1])))
    return tuple(found)


def load_item(data: Mapping[str, Any]) -> Item:
    """The item of a dump. Raises `TranscriptError`, or one of `WRONG`, if it isn't one."""
    kind = data.get("item")
    if kind == "message":
        role = expect_one_of(data["role"], _ROLES, "role")
        parts = tuple([load_part(p) for p in expect(data["parts"], list, "parts")])
        if role != "user" and any(not isinstance(part, TextPart) for part in parts):
            raise TranscriptError(f"a {role} message takes text only")
        ephemeral = expect(data.get("ephemeral", False), bool, "ephemeral")
        return Message(role, parts, ephemeral, _load_verbatim(data))
    if kind == "late":
        return _load_late(data, _load_verbatim(data))
    if kind == "results":
        results = expect(data["results"], list, "results")
        return ToolResults(
            tuple([load_result_block(result) for result in results]), _load_verbatim(data)
        )
    if kind != "turn":
        raise TranscriptError(f"unknown item {kind!r}")
    blocks = tuple([_load_block(b) for b in expect(data["blocks"], list, "blocks")])
    native = data["native"]
    fields: dict[str, Any] = {name: data[name] for name in _TURN_FIELDS}
    for name, value in fields.items():
        if type(value) is not str and (name == "id_field" or value is not None):
            expect(value, str, name)
    for name in _TURN_FLAGS:
        if name in data:
            fields[name] = expect(data[name], bool, name)
    turn = AssistantTurn(
        api=expect(data["api"], str, "api"),
        blocks=blocks,
        native=b"" if native is None else json_values.encode(native),
        calls=tuple([b for b in blocks if isinstance(b, CallBlock)]),
        residue=b"" if data.get("residue") is None else json_values.encode(data["residue"]),
        usage=load_usage(data["usage"]),
        verbatim=_load_verbatim(data),
        input_transformations=_load_transformations(data),
        **_load_record(data["api"], data),
        **fields,
    )
    expect_one_of(turn.finish_reason, _FINISH_REASONS, "finish_reason")
    _check_native(turn, native)
    return turn


def _check_native(turn: AssistantTurn, native: Any) -> None:
    """Check that the native form fits its API, and has the calls where the turn says they are."""
    if turn.api in api_names():  # a user's own model may have a form of its own
        shape = serving(turn.api, "rules").SHAPE
        if (turn.calls_key, turn.id_field) != (shape.calls_key, shape.call_id_key):
            raise TranscriptError(f"a turn of {turn.api} has its calls and their ids elsewhere")
        if native is not None:
            if shape.turn_form == "object":
                entries = [expect(native, dict, "native")]
            else:
                entries = expect(native, list, "native")
            if not native or any(not isinstance(entry, dict) for entry in entries):
                raise TranscriptError("native is empty, or holds something that is not an object")
    if turn.results_only and not any(isinstance(block, OpaqueBlock) for block in turn.blocks):
        raise TranscriptError(
            "results_only is set, but no tool of the provider is still running after the turn"
        )
    # Replay sends `native`, and results answer the ids in `calls`: the two must agree.
    calls: Any = native if turn.calls_key is None else (native or {}).get(turn.calls_key)
    places = [call.position for call in turn.calls if call.answerable]
    if len(set(places)) != len(places):
        raise TranscriptError("two calls are at one place of the turn's native form")
    for call in turn.calls:
        if call.position < -1:
            raise TranscriptError(f"call {call.id!r} has the position {call.position}")
        if call.answerable and not _is_native(call, turn, calls[call.position]):
            raise TranscriptError(f"call {call.id!r} isn't the one in the turn's native form")
        if json_values.clean_text(call.id) != call.id:
            raise TranscriptError(f"the id of call {call.id!r} can't be sent")


def _is_native(call: CallBlock, turn: AssistantTurn, entry: Any) -> bool:
    """Whether a call can be the one at its place; one without an id there can be any object."""
    key = turn.id_field if call.id_field is None else call.id_field
    found = entry
    for name in key.split(".") if key else ():
        found = found[name]
    return found == call.id if key else isinstance(entry, dict)


def dump_turn(turn: AssistantTurn) -> dict[str, Any]:
    """A turn as JSON values."""
    return dump_item(turn)


def load_turn(data: Mapping[str, Any]) -> AssistantTurn:
    """The turn of a dump. Raises `TranscriptError`, or one of `WRONG`, if it isn't one."""
    item = load_item(data)
    if not isinstance(item, AssistantTurn):
        raise TranscriptError(f"a turn was expected, not {data.get('item')!r}")
    return item


def dump_usage(usage: Usage) -> dict[str, int]:
    """The usage as JSON values."""
    dumped: dict[str, int] = _dump_fields(usage)
    # A usage can nearly always compute this from the other numbers. It is left out then, so that
    # earlier releases can read the dump.
    known = dumped.pop("cached_beside_tokens")
    if known is not None and Usage(**dumped).all_input_tokens != usage.all_input_tokens:
        dumped["cached_beside_tokens"] = usage.all_input_tokens - usage.input_tokens
    return dumped


def load_usage(data: Any) -> Usage:
    """The usage of a dump. Raises `TranscriptError` if it isn't one."""
    try:
        counts = {str(name): count for name, count in expect(data, dict, "usage").items()}
        usage = Usage(**counts)
    except TypeError as error:
        raise TranscriptError(f"usage is invalid: {error}") from error
    for name, count in counts.items():
        if type(count) is int and 0 <= count <= LARGEST:
            continue
        if expect(count, int, f"usage.{name}") < 0:
            raise TranscriptError(f"usage.{name} is {count}")
    return usage


def _dump_block(block: Block) -> dict[str, Any]:
    dumped = {"block": _BLOCK_NAMES[type(block)], **_dump_fields(block)}
    # Nearly all calls have neither. They are left out then, so that earlier releases can read the
    # dump.
    if dumped.get("server_label", "") is None:
        del dumped["server_label"]
    if dumped.get("by_schema"):
        dumped["by_schema"] = list(dumped["by_schema"])
    else:
        dumped.pop("by_schema", None)
    return dumped


def _load_block(data: Mapping[str, Any]) -> Block:
    fields = dict(expect(data, dict, "a block"))
    kind = expect(fields.pop("block"), str, "block")
    by_schema: tuple[str, ...] = ()
    if "by_schema" in fields:
        paths = expect(fields.pop("by_schema"), list, "by_schema")
        by_schema = tuple([expect(path, str, "by_schema") for path in paths])
    if kind not in _BLOCKS:
        raise TranscriptError(f"unknown block {kind!r}")
    for name, value in fields.items():
        if type(value) is str and name not in _TYPES:
            continue  # as nearly all fields are
        if value is not None or name not in _OPTIONAL:
            expect(value, _TYPES.get(name, str), name)
    if by_schema:
        fields["by_schema"] = by_schema
    # A key that no field has raises a `TypeError`, one of `WRONG`.
    block: Block = _BLOCKS[kind](**fields)
    return block


def _dump_fields(value: Block | Usage) -> dict[str, Any]:
    # As `dataclasses.asdict`, which takes five times as long: it copies what the fields hold, and
    # the fields of these hold texts and numbers.
    return {name: getattr(value, name) for name in value.__match_args__}


def dump_result_block(result: ResultBlock) -> dict[str, Any]:
    """A result of a call as JSON values."""
    content = (
        result.content
        if isinstance(result.content, str)
        else [dump_part(p) for p in result.content]
    )
    dumped: dict[str, Any] = {
        "call_id": result.call_id,
        "name": result.name,
        "content": content,
        "status": result.status,
        "kind": result.kind,
    }
    if result.promise is not None:
        from lutumpy.core.dump_promises import dump_promise

        dumped["promise"] = dump_promise(result.promise)
    return dumped


def load_result_block(data: Mapping[str, Any]) -> ResultBlock:
    """The result of a dump. Raises `TranscriptError`, or one of `WRONG`, if it isn't one."""
    content = data["content"]
    promise: Promise | None = None
    if "promise" in data or data["status"] == "promised":
        from lutumpy.core.dump_promises import load_promise

        promise = load_promise(data)
    return ResultBlock(
        call_id=expect(data["call_id"], str, "call_id"),
        name=expect(data["name"], str, "name"),
        content=content
        if isinstance(content, str)
        else tuple([load_part(part) for part in expect(content, list, "content")]),
        status=expect_one_of(data["status"], _STATUSES, "status"),
        kind=expect(data.get("kind", "function"), str, "kind"),
        promise=promise,
    )


def _dump_late(late: LateResult) -> dict[str, Any]:
    """A late item as JSON values."""
    dumped: dict[str, Any] = {
        "item": "late",
        "header": late.header,
        "reason": late.reason,
        "result": dump_result_block(late.result),
    }
    if late.is_detached:
        dumped["detached"] = True
    return dumped


def _load_late(data: Mapping[str, Any], verbatim: Verbatim | None) -> Message:
    """The late item of a dump. Raises `TranscriptError`, or one of `WRONG`, if it isn't one."""
    from lutumpy.core.promises import LateReason, LateResult, restored_message  # few have any

    header, reason = expect(data["header"], str, "header"), data["reason"]
    reasons = get_args(LateReason)
    if not header.strip() or json_values.clean_text(header) != header:
        raise TranscriptError("header is blank, or can't be sent")
    if reason not in reasons:
        raise TranscriptError(f"reason is {reason!r}, not one of {reasons}")
    result = load_result_block(expect(data["result"], dict, "result"))
    if result.status == "promised":
        raise TranscriptError("a late result is promised again")
    is_detached = expect(data.get("detached", False), bool, "detached")
    return restored_message(LateResult(result, header, reason, is_detached), verbatim)
