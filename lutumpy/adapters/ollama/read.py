"""A history of `/api/chat` as a transcript; every message also goes back as it was read.

The results of a turn come right after it. Which of them answers which call is found by ids, names
and places (`rules/ollama/sequence.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lutumpy.adapters.ollama.decode import API, MessageReader
from lutumpy.adapters.read_settings import ReadTool, SettingsReader, no_changes, read_settings
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    image_part,
    result_content,
    status_of,
    text_only,
)
from lutumpy.core.items import AssistantTurn, Message, Part, ResultBlock, Role, TextPart
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import clean_text, encode_text
from lutumpy.rules.media import type_of_bytes
from lutumpy.rules.ollama.messages import WHERE, check_messages
from lutumpy.rules.ollama.sequence import Named, match_results, result_named

__all__ = ["read_ollama"]

_ROLES: dict[str, Role] = {"system": "system", "user": "user"}


def read_ollama(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `messages`.

    Args:
        messages: JSON objects, or objects of Ollama's client.
        system: A system message to begin with, as text.
        server_held_prefix: Changes nothing: this API holds no histories.
        tools: The request's `tools`, where they are known.

    Raises:
        TranscriptError: it is not a history, or a call has no result where it should be.
    """
    history = HistoryReading(API, takes_bytes=True)
    entries = history.entries(messages, WHERE)
    if system is not None:
        if not isinstance(system, str):
            raise TranscriptError(
                f"system is {type(system).__name__}, not a text; nothing was read"
            )
        history.add(Message("system", (TextPart(clean_text(system)),)))
    index = 0
    while index < len(entries):
        end = index + 1
        while end < len(entries) and _role_of(entries[end]) == "tool":
            end += 1
        _read_group(history, entries[index], entries[index + 1 : end])
        index = end
    if history.refused:
        return history.end(check_messages([entry.value for entry in entries]))
    transcript = history.end(())
    return transcript if tools is None else read_settings(transcript, tools, _SETTINGS)


def _role_of(entry: Entry) -> Any:
    """The role, in the small letters that the server gives it."""
    role = entry.value.get("role")
    return role.lower() if isinstance(role, str) else role


def _read_group(history: HistoryReading, entry: Entry, results: Sequence[Entry]) -> None:
    """One message, and the results behind it."""
    role = _role_of(entry)
    if role == "assistant":
        _read_turn(history, entry, results)
        return
    if role == "tool":
        results = [entry, *results]
    elif isinstance(role, str) and role in _ROLES:
        parts = _read_parts(entry.value)
        if role != "user":
            parts = text_only(parts)
        history.message(_ROLES[role], parts, [entry])
    else:
        history.refuse(entry.position, f"the role {role!r} is none of this API")
    for result in results:
        history.refuse(result.position, f"{_shown(result)} is of no call before it")


def _read_turn(history: HistoryReading, entry: Entry, results: Sequence[Entry]) -> None:
    named = [result_named(result.value) for result in results]
    turn = _decode(entry, named)
    calls = [call for call in turn.calls if call.answerable]
    answers = match_results([Named(call.id or None, call.name) for call in calls], named)
    for call, place in zip(calls, answers.of_calls, strict=True):
        if place is None:
            what = f"call {call.id or call.name!r} has no result right after it"
            history.refuse(entry.position, what)
    for place in answers.loose:
        history.refuse(results[place].position, f"{_shown(results[place])} is of no call before it")
    if not history.refused:
        blocks: list[ResultBlock] = []
        for call, place in zip(calls, answers.of_calls, strict=True):
            if place is not None:
                content = result_content(_read_parts(results[place].value))
                status = status_of(content)
                blocks.append(ResultBlock(call.id, call.name, content, status, call.kind))
        history.turn(turn, [entry], blocks, results)


def _decode(entry: Entry, results: Iterable[Named]) -> AssistantTurn:
    reader = MessageReader(
        frozenset([each for named in results for each in named if each is not None])
    )
    reader.read(entry.value)
    return reader.turn({"done": True, "done_reason": "stop"}, None)


def _shown(entry: Entry) -> str:
    named = result_named(entry.value)
    return f"the result {named.id or named.name or ''!r}"


def _read_parts(message: dict[str, Any]) -> list[Part]:
    content, images = message.get("content"), message.get("images")
    parts: list[Part] = []
    if content:
        text = content if isinstance(content, str) else encode_text(content)
        parts.append(TextPart(text))
    for image in images if isinstance(images, list) else ():
        # Requests of this API have no media type: the bytes say it.
        kind = type_of_bytes(image) if isinstance(image, str) else None
        parts.append(image_part(f"data:{kind or 'image/png'};base64,{image}"))
    return parts


# --- tools ----------------------------------------------------------------------------------------

_WRITTEN = frozenset({"name", "description", "parameters"})


def _read_tool(entry: Mapping[str, Any]) -> list[ReadTool]:
    function = entry.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return []
    described, schema = function.get("description"), function.get("parameters")
    settings = {key: value for key, value in function.items() if key not in _WRITTEN}
    spec = ToolSpec(
        function["name"],
        described if isinstance(described, str) else "",
        schema if isinstance(schema, dict) else {"type": "object"},
        None,
        {API: settings} if settings else None,
    )
    return [ReadTool(spec)]


_SETTINGS = SettingsReader(_read_tool, (), no_changes)
