"""Items to JSON values and back, for `Session.dump()`; `VERSION` names the format (rule R4)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from lutumpy.core import json_values
from lutumpy.core.costs import Unsettled
from lutumpy.core.items import (
    Api,
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
from lutumpy.core.parts import part_problem
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError

FORMAT = "lutumpy.session"
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
_BOOLS = frozenset({"signed", "as_object", "incomplete"})
_OPTIONAL = frozenset({"id_field", "problem"})
_NATIVE: Mapping[str, tuple[type[Any], str | None, str]] = {
    "openai_chat": (dict, "tool_calls", "id"),
    "openai_responses": (list, None, "call_id"),
    "anthropic_messages": (list, None, "id"),
}
"""For each wire: what the native form of a turn is, where in it the calls are, and what their id is called."""
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


def dump_session(
    transcript: Transcript, usage: Usage, unsettled: tuple[Unsettled, ...], refused: list[list[str]]
) -> dict[str, Any]:
    """A session as JSON values.

    Args:
        transcript: Its transcript.
        usage: What it cost.
        unsettled: The requests whose cost is unknown.
        refused: What the providers are known to refuse of it as it stands.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "usage": dump_usage(usage),
        "unsettled": [dump_unsettled(request) for request in unsettled],
        **dump_transcript(transcript),
        "refused": refused,
    }


def load_session(
    data: Any,
) -> tuple[Transcript, Usage, tuple[Unsettled, ...], list[list[str]] | None]:
    """The transcript of a dump, what it cost, the requests whose cost is unknown, and what was known to be refused of it;
    of the dump, or its JSON text.

    Raises:
        TranscriptError: the data is no dump, or one of a version that this release doesn't know.
    """
    if isinstance(data, (str, bytes)):
        try:
            # A text file written on Windows may begin with a byte order mark; of bytes `json` knows it.
            data = json.loads(data.removeprefix("\ufeff") if isinstance(data, str) else data)
        except (ValueError, RecursionError) as error:
            raise TranscriptError(f"the dump is no JSON: {error}; nothing was loaded") from error
    if not isinstance(data, Mapping):
        raise TranscriptError(
            f"a dump is a JSON object, not {type(data).__name__}; nothing was loaded"
        )
    version = data.get("version")
    if type(version) is not int or version not in READABLE:
        readable = " and ".join([str(known) for known in READABLE])
        raise TranscriptError(
            f"the dump has the version {version!r}, this release reads {readable}; nothing was loaded"
        )
    if data.get("format", FORMAT) != FORMAT:
        raise TranscriptError(
            f"the dump has the format {data['format']!r}, not {FORMAT!r}; nothing was loaded"
        )
    refused = data.get("refused")
    if refused is not None and not (isinstance(refused, list) and all(map(_is_pair, refused))):
        raise TranscriptError(
            "the dump is invalid: refused is no list of pairs of text; nothing was loaded"
        )
    transcript = load_transcript(data)
    try:
        usage = load_usage(data.get("usage"))
        unsettled = load_unsettled(data.get("unsettled", []))
    except TranscriptError as error:
        raise TranscriptError(f"the dump is invalid: {error}; nothing was loaded") from error
    return transcript, usage, unsettled, refused


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(entry, str) for entry in value)
    )


def dump_transcript(transcript: Transcript) -> dict[str, Any]:
    """The transcript as JSON values."""
    return {"items": [_dump_item(item) for item in transcript], **transcript._beside_items()}


def load_transcript(data: Mapping[str, Any]) -> Transcript:
    """The transcript of a dump.

    Raises:
        TranscriptError: the data is no valid transcript: the message says which item is wrong.
    """
    transcript = Transcript()
    items = data.get("items")
    if not isinstance(items, list):
        raise TranscriptError(
            f"the dump is invalid: items is {type(items).__name__}, not list; nothing was loaded"
        )
    pending: AssistantTurn | None = None
    for index, raw in enumerate(items):
        try:
            item = _load_item(_expect(raw, dict, f"items[{index}]"))
            if pending is not None:
                if not isinstance(item, ToolResults):
                    raise TranscriptError(
                        "the turn before has calls, and their results don't follow"
                    )
                _check_results(pending, item)
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
        except (TranscriptError, *_WRONG) as error:
            what = f"{error!r} is missing" if type(error) is KeyError else str(error)
            raise TranscriptError(
                f"items[{index}] of the dump is invalid: {what}; nothing was loaded"
            ) from error
    if pending is not None:
        raise TranscriptError(
            "the last turn of the dump has calls without results; nothing was loaded"
        )
    try:
        failures = _load_failures(_expect(data.get("failures", []), list, "failures"))
        sent = _expect(data.get("ephemerals_sent", 0), int, "ephemerals_sent")
        held = _expect(data.get("held", False), bool, "held")
        there = sum([1 for item in transcript if isinstance(item, Message) and item.ephemeral])
        if not 0 <= sent <= there or (held and not sent):
            raise TranscriptError(
                f"of {there} ephemerals {sent} were sent, and they are {'' if held else 'not '}held"
            )
        transcript._restore(failures, sent, held)
    except (TranscriptError, *_WRONG) as error:
        raise TranscriptError(f"the dump is invalid: {error}; nothing was loaded") from error
    return transcript


_WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What reading a value of another shape raises."""


def _load_failures(entries: list[Any]) -> dict[tuple[str, str], int]:
    failures: dict[tuple[str, str], int] = {}
    for name, arguments, count in entries:
        key = (
            _expect(name, str, "a failure's tool"),
            _expect(arguments, str, "a failure's arguments"),
        )
        if _expect(count, int, "a failure's count") < 1 or key in failures:
            raise TranscriptError(f"failures of {name!r} are counted as {count}, or twice")
        failures[key] = count
    return failures


def _check_results(turn: AssistantTurn, results: ToolResults) -> None:
    """Check that each result is of the tool and the kind that its call is; ids are compared when both are added."""
    calls = [call for call in turn.calls if call.answerable]
    for call, result in zip(calls, results.results, strict=False):
        if (call.name, call.kind) != (result.name, result.kind):
            raise TranscriptError(
                f"the result of call {call.id!r} is of another tool: {result.name!r} ({result.kind})"
            )


def _dump_item(item: Item) -> dict[str, Any]:
    if isinstance(item, Message):
        dumped: dict[str, Any] = {
            "item": "message",
            "role": item.role,
            "parts": [_dump_part(p) for p in item.parts],
        }
        if item.ephemeral:
            dumped["ephemeral"] = True
        return {**dumped, **_dump_verbatim(item)}
    if isinstance(item, ToolResults):
        return {
            "item": "results",
            "results": [_dump_result(r) for r in item.results],
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
    api = _one_of(_expect(given, dict, "verbatim").get("api"), Api, "verbatim.api")
    entries = _expect(given.get("entries"), list, "verbatim.entries")
    system = _expect(given.get("system", False), bool, "verbatim.system")
    if system and len(entries) != 1:
        raise TranscriptError(
            f"verbatim.entries has {len(entries)} values, where the system is one"
        )
    if not system and any(not isinstance(entry, dict) for entry in entries):
        raise TranscriptError("verbatim.entries holds what is no object")
    return Verbatim(api, tuple([json_values.encode(entry) for entry in entries]), system)


def _load_item(data: Mapping[str, Any]) -> Item:
    kind = data.get("item")
    if kind == "message":
        role = _one_of(data["role"], Role, "role")
        parts = tuple([_load_part(p) for p in _expect(data["parts"], list, "parts")])
        if role != "user" and any(not isinstance(part, TextPart) for part in parts):
            raise TranscriptError(f"a {role} message takes text only")
        ephemeral = _expect(data.get("ephemeral", False), bool, "ephemeral")
        return Message(role, parts, ephemeral, _load_verbatim(data))
    if kind == "results":
        results = _expect(data["results"], list, "results")
        return ToolResults(
            tuple([_load_result(result) for result in results]), _load_verbatim(data)
        )
    if kind != "turn":
        raise TranscriptError(f"unknown item {kind!r}")
    blocks = tuple([_load_block(b) for b in _expect(data["blocks"], list, "blocks")])
    native = data["native"]
    fields: dict[str, Any] = {name: data[name] for name in _TURN_FIELDS}
    for name, value in fields.items():
        if name == "id_field" or value is not None:
            _expect(value, str, name)
    fields |= {name: _expect(data.get(name, False), bool, name) for name in _TURN_FLAGS}
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
    _check_native(turn, native)
    return turn


def _check_native(turn: AssistantTurn, native: Any) -> None:
    """Check that the native form is one of its wire, and has the calls where they are said to be."""
    if turn.api in _NATIVE:
        kind, calls_key, id_field = _NATIVE[turn.api]
        if (turn.calls_key, turn.id_field) != (calls_key, id_field):
            raise TranscriptError(f"a turn of {turn.api} has its calls and their ids elsewhere")
        if native is not None:
            entries = (
                [_expect(native, kind, "native")]
                if kind is dict
                else _expect(native, kind, "native")
            )
            if not native or any(not isinstance(entry, dict) for entry in entries):
                raise TranscriptError("native is empty, or holds what is no object")
    if turn.results_only and not any(isinstance(block, OpaqueBlock) for block in turn.blocks):
        raise TranscriptError(
            "nothing of the provider's runs on after the turn, so text may follow it"
        )
    calls: Any = native if turn.calls_key is None else (native or {}).get(turn.calls_key)
    places = [call.position for call in turn.calls if call.answerable]
    if len(set(places)) != len(places):
        raise TranscriptError("two calls are at one place of the turn's native form")
    for call in turn.calls:
        if call.position < -1:
            raise TranscriptError(f"call {call.id!r} has the position {call.position}")
        if call.answerable and calls[call.position][call.id_field or turn.id_field] != call.id:
            raise TranscriptError(f"call {call.id!r} isn't the one in the turn's native form")
        if json_values.clean_text(call.id) != call.id:
            raise TranscriptError(f"the id of call {call.id!r} can't be sent")


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
        return Usage(
            **{
                str(k): _load_count(v, f"usage.{k}")
                for k, v in _expect(data, dict, "usage").items()
            }
        )
    except TypeError as error:
        raise TranscriptError(f"usage is invalid: {error}") from error


def _load_count(value: Any, name: str) -> int:
    count: int = _expect(value, int, name)
    if count < 0:
        raise TranscriptError(f"{name} is {count}")
    return count


def dump_unsettled(request: Unsettled) -> dict[str, Any]:
    """A request whose cost is unknown, as JSON values."""
    named = {name: getattr(request, name) for name in _UNSETTLED_NAMES}
    return {**named, "estimate": None if request.estimate is None else dump_usage(request.estimate)}


def load_unsettled(data: Any) -> tuple[Unsettled, ...]:
    """The requests of a dump whose cost is unknown; raises `TranscriptError` for anything that isn't a list of them."""
    return tuple(
        [
            _load_request(entry, index)
            for index, entry in enumerate(_expect(data, list, "unsettled"))
        ]
    )


def _load_request(data: Any, index: int) -> Unsettled:
    where = f"unsettled[{index}]"
    fields = _expect(data, dict, where)
    api, model, response_id, request_id = [
        None if fields.get(name) is None else _expect(fields[name], str, f"{where}.{name}")
        for name in _UNSETTLED_NAMES
    ]
    estimate = fields.get("estimate")
    return Unsettled(
        api, model, response_id, request_id, None if estimate is None else load_usage(estimate)
    )


def _dump_part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"part": "text", "text": part.text}
    dumped = {k: v for k, v in asdict(part).items() if v is not None}
    if part.data is not None:
        dumped["data"] = base64.b64encode(part.data).decode()
    return {"part": "image" if isinstance(part, ImagePart) else "file", **dumped}


def _load_part(data: Mapping[str, Any]) -> Part:
    fields = dict(_expect(data, dict, "a part"))
    kind = fields.pop("part")
    for name, value in fields.items():
        _expect(value, str, name)
    if "data" in fields:
        fields["data"] = base64.b64decode(fields["data"], validate=True)
    if kind not in _PARTS:
        raise TranscriptError(f"unknown part {kind!r}")
    part: Part = _PARTS[kind](**fields)
    if (problem := part_problem(part)) is not None:
        raise TranscriptError(problem)
    return part


def _dump_block(block: Block) -> dict[str, Any]:
    return {"block": _BLOCK_NAMES[type(block)], **asdict(block)}


def _load_block(data: Mapping[str, Any]) -> Block:
    fields = dict(_expect(data, dict, "a block"))
    kind = _expect(fields.pop("block"), str, "block")
    if kind not in _BLOCKS:
        raise TranscriptError(f"unknown block {kind!r}")
    for name, value in fields.items():
        if value is not None or name not in _OPTIONAL:
            _expect(value, int if name == "position" else bool if name in _BOOLS else str, name)
    block: Block = _BLOCKS[kind](**fields)
    return block


def _dump_result(result: ResultBlock) -> dict[str, Any]:
    content = (
        result.content
        if isinstance(result.content, str)
        else [_dump_part(p) for p in result.content]
    )
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
        content=content
        if isinstance(content, str)
        else tuple([_load_part(part) for part in _expect(content, list, "content")]),
        status=_one_of(data["status"], ResultStatus, "status"),
        kind=_expect(data.get("kind", "function"), str, "kind"),
    )


_PARTS: Mapping[str, type[Any]] = {"text": TextPart, "image": ImagePart, "file": FilePart}


def _expect(value: Any, kind: type[Any], name: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TranscriptError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def _one_of(value: Any, literal: Any, name: str) -> Any:
    if not isinstance(value, str) or value not in get_args(literal):
        raise TranscriptError(f"{name} is {value!r}, not one of {get_args(literal)}")
    return value
