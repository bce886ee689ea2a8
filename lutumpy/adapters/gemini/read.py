"""A history of generateContent as a transcript: its contents told apart, and kept as they are.

Neighbouring contents of one role are one for this API. So the calls of an answer may be in
several contents, and their results too, with a text after them.
"""

# `adapters/block_reading.py` explains how contents become turns. The call of a result is found by
# its id, where a call has that id; by name and order where there is none, and by the place alone
# where names say nothing.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.adapters.block_reading import (
    BlockReaders,
    FoundResult,
    Matched,
    ResultContent,
    read_blocks,
)
from lutumpy.adapters.gemini.decode import API, PartReader
from lutumpy.adapters.read_settings import ReadTool, SettingsReader, no_changes, read_settings
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    file_at,
    file_part,
    image_part,
    left_out,
)
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    Part,
    TextPart,
    Verbatim,
)
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import encode_text
from lutumpy.rules.block_wire import BlockWire
from lutumpy.rules.gemini import messages as gemini
from lutumpy.rules.gemini.fields import field
from lutumpy.rules.gemini.wire import WIRE

__all__ = ["read_gemini"]


def read_gemini(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `contents` and `systemInstruction`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A text, or a content.
        server_held_prefix: Changes nothing: a history whose start is in a cache can be read, but
            not one that begins with results.
        tools: The request's `tools`, where they are known.

    Raises:
        TranscriptError: it isn't a history, or a call has no result where it should be.
    """
    history = HistoryReading(API, takes_bytes=True)
    entries = history.entries(messages, "contents[{}]")
    if system is not None:
        history.add(_read_system(system))
    read_blocks(history, entries, _READERS)
    if history.refused:
        return history.end(gemini.check_messages([entry.value for entry in entries]))
    transcript = history.end(())
    return transcript if tools is None else read_settings(transcript, tools, _SETTINGS)


def _read_system(system: Any) -> Message:
    if isinstance(system, str):
        return Message("system", (TextPart(system),))
    data, value = decoded(system, "systemInstruction")
    if not isinstance(value, dict):
        raise TranscriptError(
            f"systemInstruction is {type(value).__name__}, neither text nor a content; "
            "nothing was read"
        )
    texts = [part.get("text") for part in _listed(value.get("parts"))]
    parts = tuple([TextPart(text) for text in texts if isinstance(text, str) and text])
    return Message("system", parts, verbatim=Verbatim(API, (data,), system=True))


# --- turns ----------------------------------------------------------------------------------------


def _match_results(
    calls: Sequence[CallBlock], results: Sequence[FoundResult], where: str
) -> Matched:
    places = _match(calls, [found.result for found in results])
    late = [
        (position, f"the result of {result.get('name')!r} stands after other content")
        for position, result, is_late in results
        if is_late
    ]
    lacking = [
        (where, f"call {call.id or call.name!r} has no result in the next content")
        for call, place in zip(calls, places, strict=True)
        if place is None
    ]
    loose = [
        (position, f"the result of {result.get('name')!r} is of no call before it")
        for place, (position, result, _) in enumerate(results)
        if place not in places
    ]
    return Matched(places, [*late, *lacking, *loose])


def _match(calls: Sequence[CallBlock], results: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """The place of each call's result: by id, then by name in order, then by order alone."""
    left = list(range(len(results)))
    found: list[int | None] = [None] * len(calls)
    tests = (
        lambda call, result: bool(call.id) and field(result, "id") == call.id,
        lambda call, result: _is_nameable(call, result) and result.get("name") == call.name,
        lambda call, result: _is_nameable(call, result) and len(calls) == len(results),
    )
    for fits in tests:
        for number, call in enumerate(calls):
            if found[number] is None:
                place = next((k for k in left if fits(call, results[k])), None)
                if place is not None:
                    found[number] = place
                    left.remove(place)
    return found


def _is_nameable(call: CallBlock, result: Mapping[str, Any]) -> bool:
    """Whether ids don't say that the two belong to others."""
    return not (call.id and field(result, "id"))


def _listed(parts: Any) -> list[Any]:
    """The parts of a content that are objects; one may be without a list."""
    listed = [parts] if isinstance(parts, dict) else parts
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []


def _parts_of(entry: Entry, wire: BlockWire) -> list[Any]:
    return _listed(entry.value.get(wire.blocks_key))


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = PartReader(answered)
    for entry in run:
        for part in _parts_of(entry, WIRE):
            reader.read(part)
    return reader.turn({"candidates": [{"finishReason": "STOP"}]}, None)


# --- content --------------------------------------------------------------------------------------


def _read_result(result: Mapping[str, Any], call: CallBlock) -> tuple[ResultContent, bool]:
    response = result.get("response")
    value: Any = response
    failed = False
    if isinstance(response, dict):
        if "error" in response and response["error"] is not None:
            failed = True
            value = response["error"] if len(response) == 1 else response
        elif len(response) == 1 and "output" in response:
            value = response["output"]
    text = value if isinstance(value, str) else "" if value in (None, {}) else encode_text(value)
    shown = result.get("parts")
    parts = [part for one in shown if (part := _read_part(one))] if isinstance(shown, list) else []
    if failed and not text.strip():
        text = f"{call.name or 'tool'}: failed"
    if not parts:
        return text, failed
    return (*([TextPart(text)] if text else []), *parts), failed


def _read_parts(parts: Any) -> list[Part]:
    return [read for part in _listed(parts) if (read := _read_part(part)) is not None]


def _read_part(part: Any) -> Part | None:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        return TextPart(text) if text else None
    data, file = field(part, "inlineData"), field(part, "fileData")
    media_type = field(data or file, "mimeType")
    media_type = media_type if isinstance(media_type, str) else ""
    name = field(data or file, "displayName")
    if isinstance(data, dict):
        bytes_ = field(data, "data")
        standard = bytes_.replace("-", "+").replace("_", "/") if isinstance(bytes_, str) else ""
        standard += "=" * (-len(standard) % 4)
        if media_type.startswith("image/"):
            return image_part(f"data:{media_type};base64,{standard}")
        return file_part(standard, media_type, name) or left_out("file", name)
    if isinstance(file, dict):
        address = field(file, "fileUri")
        return image_part(address) if media_type.startswith("image/") else file_at(address, name)
    kinds = (
        [key for key, value in part.items() if value is not None] if isinstance(part, dict) else []
    )
    return left_out(kinds[0] if kinds else "content")


_READERS = BlockReaders(
    WIRE,
    _read_turn,
    _read_parts,
    _read_result,
    _match_results,
    blocks_of=_parts_of,
    names_of_result=("id", "name"),
    has_system=False,
)


# --- tools ----------------------------------------------------------------------------------------

_WRITTEN = frozenset({"name", "description", "parametersJsonSchema"})


def _read_tools(entry: Mapping[str, Any]) -> list[ReadTool]:
    """The functions of one entry whose schemas are JSON Schema; `parameters` is another dialect."""
    found: list[ReadTool] = []
    for declared in _listed(field(entry, "functionDeclarations")):
        name, described = declared.get("name"), declared.get("description")
        schema = field(declared, "parametersJsonSchema")
        if isinstance(name, str) and name and isinstance(schema, dict):
            settings = {key: declared[key] for key in declared if key not in _WRITTEN}
            text = described if isinstance(described, str) else ""
            provider = {API: settings} if settings else None
            found.append(ReadTool(ToolSpec(name, text, schema, None, provider)))
    return found


_SETTINGS = SettingsReader(_read_tools, (), no_changes)
