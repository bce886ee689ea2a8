"""A history of Chat Completions as a transcript: its messages told apart, and kept as they are."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.reply_fields import mapping
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    file_at,
    image_part,
    left_out,
    status_of,
    text_only,
)
from lutumpy.core.items import AssistantTurn, CallBlock, Message, Part, ResultBlock, Role, TextPart
from lutumpy.core.json_values import clean_text
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.rules.openai.chat import messages as chat

__all__ = ["read_chat"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}


def read_chat(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of a request's `messages`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A system message to begin with, as text.
        server_held_prefix: Nothing is held at the server of this API: it changes nothing.

    Raises:
        TranscriptError: it is no history, or a call has no result where it should be.
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
    return history.end(
        chat.check_messages([entry.value for entry in entries]) if history.refused else ()
    )


class _ChatReading:
    """The messages, taken one after another; a turn waits for the results that stand right after it."""

    def __init__(self, history: HistoryReading) -> None:
        self._history = history
        self._turn: AssistantTurn | None = None
        self._entry: Entry | None = None
        # Of the turn that waits: its calls, in order, with what answered each.
        self._calls: list[CallBlock] = []
        self._results: list[ResultBlock | None] = []
        # The places among them that wait for a result, by id; what is answered leaves its list, and the id stays.
        self._waiting: dict[str, deque[int]] = {}
        self._result_entries: list[Entry] = []

    def take(self, entry: Entry) -> None:
        message = entry.value
        role = message.get("role")
        if role == "tool":
            self._result(entry)
            return
        if role == "function" and self._legacy(entry):
            return
        self.end()
        if role == "assistant":
            self._begin(entry)
        elif role == "function":
            # The output of a call that isn't there: for other providers, something that the user says.
            self._history.message("user", _parts(message.get("content")), [entry])
        elif isinstance(role, str) and role in _ROLES:
            parts = _parts(message.get("content"))
            self._history.message(
                _ROLES[role], parts if role == "user" else text_only(parts), [entry]
            )
        else:
            self._history.refuse(entry.position, f"the role {role!r} is none of this API")

    def end(self) -> None:
        """What comes next is no result: the turn that waits is complete, or lacks some."""
        turn, entry = self._turn, self._entry
        if turn is None or entry is None:
            return
        self._turn = None
        lacking = [
            call for call, result in zip(self._calls, self._results, strict=True) if result is None
        ]
        answered = {
            call.id
            for call, result in zip(self._calls, self._results, strict=True)
            if result is not None
        }
        for call in lacking:
            # An older form of call, and hosts that give two calls one id, may leave one unanswered.
            if call.kind != "function_call" and call.id not in answered:
                self._history.refuse(
                    entry.position,
                    f"call {call.id!r} of {call.name!r} has no result right after it",
                )
        if lacking:
            turn = _unanswerable(turn, lacking)
        results = [result for result in self._results if result is not None]
        self._history.turn(turn, [entry], results, self._result_entries)

    def _begin(self, entry: Entry) -> None:
        made = mapping(entry.value)
        finish = "tool_calls" if made.get("tool_calls") or made.get("function_call") else "stop"
        turn = decode_chat({"choices": [{"message": made, "finish_reason": finish}]})
        self._turn, self._entry = turn, entry
        self._calls = [call for call in turn.calls if call.answerable]
        self._results = [None] * len(self._calls)
        self._waiting = {}
        for index, call in enumerate(self._calls):
            if call.kind != "function_call":
                self._waiting.setdefault(call.id, deque()).append(index)
        self._result_entries = []

    def _result(self, entry: Entry) -> None:
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
        what = (
            "is the second one for"
            if waiting is not None
            else "is of no call in the message before:"
        )
        self._history.refuse(entry.position, f"the result {what} {call_id!r}")

    def _legacy(self, entry: Entry) -> bool:
        """Whether the message answers the one call, of the older form, that the turn before has."""
        if self._turn is None or len(self._calls) != 1 or self._results[0] is not None:
            return False
        call = self._calls[0]
        if call.kind != "function_call" or call.name != entry.value.get("name"):
            return False
        self._answer(0, entry)
        return True

    def _answer(self, index: int, entry: Entry) -> None:
        call = self._calls[index]
        content: str | tuple[Part, ...] = _content(entry.value.get("content"))
        self._results[index] = ResultBlock(
            call.id, call.name, content, status_of(content), call.kind
        )
        self._result_entries.append(entry)


def _unanswerable(turn: AssistantTurn, calls: list[CallBlock]) -> AssistantTurn:
    """The turn with calls that nothing answers: no other provider is told of them."""
    changed = {id(call): replace(call, position=-1) for call in calls}
    return replace(
        turn,
        blocks=tuple([changed.get(id(block), block) for block in turn.blocks]),
        calls=tuple([changed.get(id(call), call) for call in turn.calls]),
    )


def _content(content: Any) -> str | tuple[Part, ...]:
    """The content of a result."""
    if isinstance(content, str):
        return content
    parts = _parts(content)
    if all(isinstance(part, TextPart) for part in parts) and len(parts) < 2:
        return "".join([part.text for part in parts if isinstance(part, TextPart)])
    return tuple(parts)


def _parts(content: Any) -> list[Part]:
    """Content as parts; what has none of its own kind is named by a text."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    return (
        [found for part in content if (found := _part(part)) is not None]
        if isinstance(content, list)
        else []
    )


def _part(part: Any) -> Part | None:
    if isinstance(part, str):
        return TextPart(part) if part else None
    given = mapping(part)
    kind = given.get("type")
    body = given.get(kind) if isinstance(kind, str) else None
    if kind in ("text", "refusal"):
        return TextPart(body) if isinstance(body, str) and body else None
    if kind == "image_url":
        # Mistral takes the URL itself, too.
        return image_part(body, None) if isinstance(body, str) else image_part(*_url(body))
    if kind == "document_url":  # Mistral's
        return file_at(body, given.get("document_name"))
    if kind == "file":
        file = mapping(body)
        if file.get("file_data") is not None:
            return file_at(file["file_data"], file.get("filename"))
        return left_out("file", file.get("filename") or file.get("file_id"))
    return left_out(kind)


def _url(body: Any) -> tuple[Any, Any]:
    image = mapping(body)
    return image.get("url"), image.get("detail")
