"""A history of Chat Completions as a transcript; every message also goes back as it was read."""

# The results of a turn come right after it, each named by the id of its call. So one turn at a
# time is open, and waits for results:
#
#   message                | a turn is open                          | no turn is open
#   -----------------------+-----------------------------------------+-------------------------
#   `assistant`            | the turn ends, and another one opens    | a turn opens
#   `tool`                 | answers the call with its id; refused   | refused
#                          | if there is none                        |
#   `function`, older form | answers the turn's only call, if that   | becomes a message of the
#                          | is of the older form too; else as right | user
#   any other, or the end  | the turn ends; a call without a result  | a message
#                          | is refused                              |
#
# A refusal doesn't stop the reading: all of them are reported together at the end.

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.read_tools import read_function, read_text_tool
from lutumpy.adapters.openai.reply_fields import mapping
from lutumpy.adapters.read_settings import ReadTool, SettingsReader, no_changes, read_settings
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    file_at,
    image_part,
    left_out,
    result_content,
    status_of,
    text_only,
)
from lutumpy.core.items import AssistantTurn, CallBlock, Message, Part, ResultBlock, Role, TextPart
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import clean_text
from lutumpy.rules.openai.chat import messages as chat

__all__ = ["read_chat"]

_WRITTEN = frozenset({"name", "description", "parameters", "strict"})
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}


def read_chat(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `messages`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A system message to begin with, as text.
        server_held_prefix: Changes nothing: this API holds no histories.
        tools: The request's `tools`, where they are known.

    Raises:
        TranscriptError: it is not a history, or a call has no result where it should be.
    """
    history = HistoryReading(API)
    entries = history.entries(messages, "messages[{}]")
    if system is not None:
        if not isinstance(system, str):
            raise TranscriptError(
                f"system is {type(system).__name__}, not a text; nothing was read"
            )
        history.add(Message("system", (TextPart(clean_text(system)),)))
    reading = _ChatReading(history)
    for entry in entries:
        reading.take(entry)
    reading.end()
    if history.refused:
        return history.end(chat.check_messages([entry.value for entry in entries]))
    transcript = history.end(())
    return transcript if tools is None else read_settings(transcript, tools, _SETTINGS)


class _ChatReading:
    """Reads the messages one after another. See the table above."""

    def __init__(self, history: HistoryReading) -> None:
        self._history = history
        # The open turn, and the message that it is.
        self._turn: AssistantTurn | None = None
        self._entry: Entry | None = None
        # Its calls in order, and the result of each that has come.
        self._calls: list[CallBlock] = []
        self._results: list[ResultBlock | None] = []
        # The places of the calls that wait for a result, by id. An answered call leaves its list,
        # and the id stays, so that a second result can be told from one without a call.
        self._waiting: dict[str, deque[int]] = {}
        self._result_entries: list[Entry] = []

    def take(self, entry: Entry) -> None:
        """Read the next message."""
        message = entry.value
        role = message.get("role")
        if role == "tool":
            self._take_result(entry)
            return
        if role == "function" and self._take_function_result(entry):
            return
        self.end()
        if role == "assistant":
            self._open_turn(entry)
        elif role == "function":
            # The output of a call that isn't there. Other APIs get it as the user's words.
            self._history.message("user", _read_parts(message.get("content")), [entry])
        elif isinstance(role, str) and role in _ROLES:
            parts = _read_parts(message.get("content"))
            if role != "user":
                parts = text_only(parts)
            self._history.message(_ROLES[role], parts, [entry])
        else:
            self._history.refuse(entry.position, f"the role {role!r} is none of this API")

    def end(self) -> None:
        """End the open turn, if there is one: no more results come for it."""
        turn, entry = self._turn, self._entry
        if turn is None or entry is None:
            return
        self._turn = None
        pairs = list(zip(self._calls, self._results, strict=True))
        lacking = [call for call, result in pairs if result is None]
        answered = {call.id for call, result in pairs if result is not None}
        for call in lacking:
            # A call of the older form needs no result. Of hosts that give two calls one id, one
            # result may be all there is.
            if call.kind != "function_call" and call.id not in answered:
                self._history.refuse(
                    entry.position,
                    f"call {call.id!r} of {call.name!r} has no result right after it",
                )
        if lacking:
            turn = _without_answers(turn, lacking)
        results = [result for result in self._results if result is not None]
        self._history.turn(turn, [entry], results, self._result_entries)

    def _open_turn(self, entry: Entry) -> None:
        message = mapping(entry.value)
        has_calls = message.get("tool_calls") or message.get("function_call")
        finish = "tool_calls" if has_calls else "stop"
        reply = {"choices": [{"message": message, "finish_reason": finish}]}
        turn = decode_chat(reply, is_history=True)
        self._turn, self._entry = turn, entry
        self._calls = [call for call in turn.calls if call.answerable]
        self._results = [None] * len(self._calls)
        self._waiting = {}
        for index, call in enumerate(self._calls):
            if call.kind != "function_call":
                self._waiting.setdefault(call.id, deque()).append(index)
        self._result_entries = []

    def _take_result(self, entry: Entry) -> None:
        call_id = entry.value.get("tool_call_id")
        if self._turn is None:
            self._history.refuse(
                entry.position, f"the result of {call_id!r} follows no message with calls"
            )
            return
        waiting = self._waiting.get(call_id) if isinstance(call_id, str) else None
        if waiting:
            self._answer(waiting.popleft(), entry)
            return
        if waiting is None:
            what = "is of no call in the message before:"
        else:
            what = "is the second one for"
        self._history.refuse(entry.position, f"the result {what} {call_id!r}")

    def _take_function_result(self, entry: Entry) -> bool:
        """Take a result of the older form, if the open turn's only call is of that form.

        Returns:
            Whether it was taken.
        """
        if self._turn is None or len(self._calls) != 1 or self._results[0] is not None:
            return False
        call = self._calls[0]
        if call.kind != "function_call" or call.name != entry.value.get("name"):
            return False
        self._answer(0, entry)
        return True

    def _answer(self, index: int, entry: Entry) -> None:
        call = self._calls[index]
        content: str | tuple[Part, ...] = _read_content(entry.value.get("content"))
        result = ResultBlock(call.id, call.name, content, status_of(content), call.kind)
        self._results[index] = result
        self._result_entries.append(entry)


def _without_answers(turn: AssistantTurn, calls: list[CallBlock]) -> AssistantTurn:
    """The turn with these calls marked as unanswerable, so that no other API gets them."""
    changed = {id(call): replace(call, position=-1) for call in calls}
    return replace(
        turn,
        blocks=tuple([changed.get(id(block), block) for block in turn.blocks]),
        calls=tuple([changed.get(id(call), call) for call in turn.calls]),
    )


def _read_content(content: Any) -> str | tuple[Part, ...]:
    """The content of a result."""
    return content if isinstance(content, str) else result_content(_read_parts(content))


def _read_parts(content: Any) -> list[Part]:
    """Content as parts. A part that this library has no kind for becomes a text that names it."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    if not isinstance(content, list):
        return []
    return [found for part in content if (found := _read_part(part)) is not None]


def _read_part(part: Any) -> Part | None:
    if isinstance(part, str):
        return TextPart(part) if part else None
    fields = mapping(part)
    kind = fields.get("type")
    body = fields.get(kind) if isinstance(kind, str) else None
    if kind in ("text", "refusal"):
        return TextPart(body) if isinstance(body, str) and body else None
    if kind == "image_url":
        if isinstance(body, str):
            return image_part(body, None)  # Mistral takes the URL itself, too
        image = mapping(body)
        return image_part(image.get("url"), image.get("detail"))
    if kind == "document_url":  # Mistral's
        return file_at(body, fields.get("document_name"))
    if kind == "file":
        file = mapping(body)
        if file.get("file_data") is not None:
            return file_at(file["file_data"], file.get("filename"))
        return left_out("file", file.get("filename") or file.get("file_id"))
    return left_out(kind)


# --- tools ----------------------------------------------------------------------------------------


def _read_tool(entry: Mapping[str, Any]) -> list[ReadTool]:
    """A tool that a program answers."""
    function, custom = mapping(entry.get("function")), mapping(entry.get("custom"))
    spec = None
    if function:
        spec = read_function(function, API, _WRITTEN)
    elif custom:
        spec = read_text_tool(custom, mapping(custom.get("format")).get("grammar"))
    return [] if spec is None else [ReadTool(spec)]


_SETTINGS = SettingsReader(_read_tool, (), no_changes)
