"""A history of generateContent as a transcript: its contents told apart, and kept as they are.

Neighbouring contents of one role are one for this API. So the calls of an answer may stand in
several contents, and their results too, with a text after them.
"""

# What is hard here
# -----------------
# A transcript has turns (an answer with the results of its calls), a history has contents. The two
# meet like this:
#
#   | in the history                                  | in the transcript                         |
#   |-------------------------------------------------|-------------------------------------------|
#   | `model` contents in a row, without calls        | one turn each                             |
#   | the same, from the first one with calls on      | one turn: its results come after all      |
#   | `functionResponse` parts in the contents after  | the results of that turn                  |
#   | other parts behind them in the same content     | a user message without entries: the       |
#   |                                                 | results' entries already hold its parts   |
#   | other parts before them                         | refused: nothing can be put between       |
#
# A result is told by its id where its call has that id; by its name and order where it has none,
# and by its place alone where names say nothing.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from lutumpy.adapters.gemini.decode import API, PartReader
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    file_at,
    file_part,
    image_part,
    left_out,
    status_of,
)
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    Part,
    ResultBlock,
    TextPart,
    Verbatim,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import encode_text
from lutumpy.rules.gemini import messages as gemini
from lutumpy.rules.gemini.fields import field
from lutumpy.rules.gemini.wire import role_of

__all__ = ["read_gemini"]


def read_gemini(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of a request's `contents` and `systemInstruction`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A text, or a content.
        server_held_prefix: Changes nothing: a history whose start is in a cache can be read, but
            not one that begins with results.

    Raises:
        TranscriptError: it is no history, or a call has no result where it should be.
    """
    history = HistoryReading(API)
    entries = history.entries(messages, "contents[{}]")
    if system is not None:
        history.add(_read_system(system))
    reading = _ContentsReading(history, _answered(entries))
    for role, run in itertools.groupby(entries, key=lambda entry: role_of(entry.value)):
        reading.take(role, list(run))
    reading.end()
    if not history.refused:
        return history.end(())
    return history.end(gemini.check_messages([entry.value for entry in entries]))


def _read_system(system: Any) -> Message:
    if isinstance(system, str):
        return Message("system", (TextPart(system),))
    data, value = decoded(system, "systemInstruction")
    if not isinstance(value, dict):
        raise TranscriptError(
            f"systemInstruction is {type(value).__name__}, neither text nor a content; "
            "nothing was read"
        )
    texts = [part.get("text") for part in _parts_of(value)]
    parts = tuple([TextPart(text) for text in texts if isinstance(text, str) and text])
    return Message("system", parts, verbatim=Verbatim(API, (data,), system=True))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A turn whose results may come in the next content."""

    turn: AssistantTurn
    entries: list[Entry]


class _ContentsReading:
    """The contents, taken one run of the same role after another."""

    __slots__ = ("_answered", "_history", "_waiting")

    def __init__(self, history: HistoryReading, answered: AbstractSet[str]) -> None:
        self._history = history
        self._answered = answered
        self._waiting: _Waiting | None = None

    def take(self, role: str, run: list[Entry]) -> None:
        if role == "user":
            self._take_user_contents(run)
            return
        self.end()
        if role == "model":
            self._take_answers(run)
        else:
            self._history.refuse(
                run[0].position, f"the role {run[0].value.get('role')!r} is none of this API"
            )

    def end(self) -> None:
        """No results follow."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._settle(waiting, [], [])

    def _take_answers(self, run: list[Entry]) -> None:
        # Up to the first call, each content is an answer. From there on they are one, since its
        # results come after all.
        calling = next((k for k, entry in enumerate(run) if _has_calls(entry)), len(run) - 1)
        for entry in run[:calling]:
            self._settle(_Waiting(_read_turn([entry], self._answered), [entry]), [], [])
        self._waiting = _Waiting(_read_turn(run[calling:], self._answered), run[calling:])

    def _take_user_contents(self, run: list[Entry]) -> None:
        waiting, self._waiting = self._waiting, None
        results: list[tuple[Entry, dict[str, Any]]] = []
        rest: list[tuple[Entry, list[Any]]] = []
        answering = 0
        is_said = False
        for number, entry in enumerate(run):
            others: list[Any] = []
            for part in _parts_of(entry.value):
                response = field(part, "functionResponse")
                if not isinstance(response, dict):
                    others.append(part)
                    continue
                answering = number + 1
                if is_said or others:
                    what = f"the result of {response.get('name')!r} stands after other content"
                    self._history.refuse(entry.position, what)
                results.append((entry, response))
            is_said = is_said or bool(others)
            rest.append((entry, others))
        if waiting is not None:
            self._settle(waiting, results, run[:answering])
        else:
            for entry, response in results:
                what = f"the result of {response.get('name')!r} is of no call before it"
                self._history.refuse(entry.position, what)
        for number, (entry, others) in enumerate(rest):
            if number >= answering:
                self._history.message("user", _read_parts(others), [entry])
            elif others:
                self._history.message("user", _read_parts(others), [])

    def _settle(
        self,
        waiting: _Waiting,
        results: Sequence[tuple[Entry, dict[str, Any]]],
        result_entries: list[Entry],
    ) -> None:
        """Add a turn with its results."""
        calls = list(waiting.turn.calls)
        found = _match(calls, [response for _, response in results])
        where = waiting.entries[0].position
        for call, place in zip(calls, found, strict=True):
            if place is None:
                what = f"call {call.id or call.name!r} has no result in the next content"
                self._history.refuse(where, what)
        for place, (entry, response) in enumerate(results):
            if place not in found:
                what = f"the result of {response.get('name')!r} is of no call before it"
                self._history.refuse(entry.position, what)
        if not self._history.refused:
            blocks = [
                _read_result(call, results[place][1])
                for call, place in zip(calls, found, strict=True)
                if place is not None
            ]
            self._history.turn(waiting.turn, waiting.entries, blocks, result_entries)


def _match(calls: list[CallBlock], results: list[dict[str, Any]]) -> list[int | None]:
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


def _is_nameable(call: CallBlock, result: dict[str, Any]) -> bool:
    """Whether ids don't say that the two belong to others."""
    return not (call.id and field(result, "id"))


def _parts_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    parts = content.get("parts")
    listed = [parts] if isinstance(parts, dict) else parts
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []


def _has_calls(entry: Entry) -> bool:
    return any(isinstance(field(part, "functionCall"), dict) for part in _parts_of(entry.value))


def _answered(entries: Iterable[Entry]) -> frozenset[str]:
    """The ids and names of the calls that have responses in a history."""
    found: set[Any] = set()
    for entry in entries:
        for part in _parts_of(entry.value):
            response = field(part, "functionResponse")
            if isinstance(response, dict):
                named = (field(response, "id"), field(response, "name"))
                found.update([each for each in named if isinstance(each, str) and each])
    return frozenset(found)


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = PartReader(answered)
    for entry in run:
        for part in _parts_of(entry.value):
            reader.read(part)
    return reader.turn({"candidates": [{"finishReason": "STOP"}]}, None)


# --- content --------------------------------------------------------------------------------------


def _read_result(call: CallBlock, response: dict[str, Any]) -> ResultBlock:
    given = response.get("response")
    value: Any = given
    failed = False
    if isinstance(given, dict):
        if "error" in given and given["error"] is not None:
            failed = True
            value = given["error"] if len(given) == 1 else given
        elif len(given) == 1 and "output" in given:
            value = given["output"]
    text = value if isinstance(value, str) else "" if value in (None, {}) else encode_text(value)
    shown = response.get("parts")
    parts = _read_parts(shown) if isinstance(shown, list) else []
    if failed and not text.strip():
        text = f"{call.name or 'tool'}: failed"
    if not parts:
        return ResultBlock(call.id, call.name, text, status_of(text, failed), call.kind)
    content: tuple[Part, ...] = (*([TextPart(text)] if text else []), *parts)
    return ResultBlock(call.id, call.name, content, status_of(content, failed), call.kind)


def _read_parts(parts: Sequence[Any]) -> list[Part]:
    return [read for part in parts if (read := _read_part(part)) is not None]


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
