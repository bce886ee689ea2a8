"""A history of the Anthropic Messages API as a transcript: its messages told apart, and kept as
they are.

Neighbouring messages of one role are one for this API. So the calls of an answer may stand in
several messages, and their results too, with a text after them.
"""

# What is hard here
# -----------------
# A transcript has turns (an answer with the results of its calls), a history has messages. The two
# meet like this:
#
#   | in the history                                  | in the transcript                        |
#   |-------------------------------------------------|------------------------------------------|
#   | assistant messages in a row, without calls      | one turn each                            |
#   | the same, from the first one with calls on      | one turn: its results come after all     |
#   | `tool_result` blocks in the user messages after | the results of that turn                 |
#   | other blocks behind them in the same message    | a user message without entries: the      |
#   |                                                 | results' entries already hold its blocks |
#   | other blocks before them                        | refused: nothing can be put between      |
#
# The turn with calls waits (`_waiting`) until the next message shows its results.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from lutumpy.adapters.anthropic.decode import API, ContentReader
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    file_part,
    image_part,
    left_out,
    status_of,
    text_only,
)
from lutumpy.core.items import (
    AssistantTurn,
    FilePart,
    Message,
    Part,
    ResultBlock,
    TextPart,
    Verbatim,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.rules.anthropic import messages as anthropic

__all__ = ["read_messages"]


def read_messages(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of a request's `messages` and `system`.

    Args:
        messages: JSON objects, or objects of the SDK.
        system: A text, or a list of text blocks.
        server_held_prefix: Changes nothing: a history whose start is in a thread can't be read.

    Raises:
        TranscriptError: it is no history, or a call has no result where it should be.
    """
    history = HistoryReading(API)
    entries = history.entries(messages, "messages.{}")
    if system is not None:
        history.add(_read_system(system))
    reading = _MessagesReading(history, _answered_ids(entries))
    for role, run in itertools.groupby(entries, key=_role_of):
        reading.take(role, list(run))
    reading.end()
    if not history.refused:
        return history.end(())
    return history.end(anthropic.check_messages([entry.value for entry in entries]))


def _role_of(entry: Entry) -> str:
    role = entry.value.get("role")
    return role if isinstance(role, str) else ""


def _read_system(system: Any) -> Message:
    data, value = decoded(system, "system")
    if not isinstance(value, (str, list)):
        raise TranscriptError(
            f"system is {type(value).__name__}, neither text nor blocks; nothing was read"
        )
    return Message(
        "system", tuple(text_only(_read_parts(value))), verbatim=Verbatim(API, (data,), system=True)
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A turn whose results may come in the next message."""

    turn: AssistantTurn
    entries: list[Entry]


class _MessagesReading:
    """The messages, taken one run of the same role after another."""

    __slots__ = ("_answered", "_history", "_waiting")

    def __init__(self, history: HistoryReading, answered: AbstractSet[str]) -> None:
        self._history = history
        self._answered = answered
        self._waiting: _Waiting | None = None

    def take(self, role: str, run: list[Entry]) -> None:
        if role == "user":
            self._take_user_messages(run)
            return
        self.end()
        if role == "assistant":
            self._take_answers(run)
        elif role == "system":
            for entry in run:
                self._history.message(
                    "system", text_only(_read_parts(entry.value.get("content"))), [entry]
                )
        else:
            self._history.refuse(
                run[0].position, f"the role {run[0].value.get('role')!r} is none of this API"
            )

    def end(self) -> None:
        """No results follow."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        for call in waiting.turn.calls:
            where = waiting.entries[0].position
            self._history.refuse(
                where, f"call {call.id!r} of {call.name!r} has no result in the next message"
            )
        self._add_turn(waiting, [], [])

    def _take_answers(self, run: list[Entry]) -> None:
        # Up to the first call, each message is an answer. From there on they are one, since its
        # results come after all.
        calling = next((k for k, entry in enumerate(run) if _has_calls(entry)), len(run) - 1)
        for entry in run[:calling]:
            self._add_turn(_Waiting(_read_turn([entry], self._answered), [entry]), [], [])
        self._waiting = _Waiting(_read_turn(run[calling:], self._answered), run[calling:])

    def _take_user_messages(self, run: list[Entry]) -> None:
        waiting, self._waiting = self._waiting, None
        calls = {call.id: call for call in waiting.turn.calls} if waiting is not None else {}
        found: dict[str, ResultBlock] = {}
        rest: list[tuple[Entry, list[Any]]] = []
        answering = 0
        text_before = False
        for number, entry in enumerate(run):
            others: list[Any] = []
            for block in _blocks_of(entry):
                if not isinstance(block, dict) or block.get("type") != "tool_result":
                    others.append(block)
                    continue
                answering = number + 1
                call_id = block.get("tool_use_id")
                call = calls.get(call_id) if isinstance(call_id, str) else None
                if call is None or call.id in found:
                    what = (
                        "is of no call in the message before:"
                        if call is None
                        else "is the second one for"
                    )
                    self._history.refuse(entry.position, f"the result {what} {call_id!r}")
                    continue
                if text_before or others:
                    self._history.refuse(
                        entry.position, f"the result of {call_id!r} stands after other content"
                    )
                content, failed = _read_content(block.get("content")), block.get("is_error") is True
                found[call.id] = ResultBlock(
                    call.id, call.name, content, status_of(content, failed), call.kind
                )
            text_before = text_before or bool(others)
            rest.append((entry, others))
        if waiting is not None:
            for call_id, call in calls.items():
                if call_id not in found:
                    self._history.refuse(
                        waiting.entries[0].position,
                        f"call {call_id!r} of {call.name!r} has no result in the next message",
                    )
            results = [found[call.id] for call in waiting.turn.calls if call.id in found]
            self._add_turn(waiting, results, run[:answering])
        for number, (entry, others) in enumerate(rest):
            if number >= answering:
                self._history.message("user", _read_parts(entry.value.get("content")), [entry])
            elif others:
                self._history.message("user", _read_parts(others), [])

    def _add_turn(
        self, waiting: _Waiting, results: list[ResultBlock], result_entries: list[Entry]
    ) -> None:
        if not self._history.refused:
            self._history.turn(waiting.turn, waiting.entries, results, result_entries)


def _blocks_of(entry: Entry) -> list[Any]:
    content = entry.value.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _has_calls(entry: Entry) -> bool:
    return any(
        isinstance(block, dict) and block.get("type") == "tool_use" for block in _blocks_of(entry)
    )


def _answered_ids(entries: Iterable[Entry]) -> frozenset[str]:
    """The ids of the calls that have results in a history."""
    blocks = [block for entry in entries for block in _blocks_of(entry) if isinstance(block, dict)]
    ids = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    return frozenset([call_id for call_id in ids if isinstance(call_id, str)])


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = ContentReader(answered)
    for entry in run:
        for block in _blocks_of(entry):
            reader.read(block)
    reader.settle_calls("stop")
    return reader.turn({"stop_reason": _infer_stop_reason(reader)}, None)


def _infer_stop_reason(reader: ContentReader) -> str:
    """Why the answer stopped, which a history does not say: from what stands at its end."""
    if reader.calls:
        return "tool_use"
    if reader.running:
        return "pause_turn"
    ends_in_summary = bool(reader.native) and reader.native[-1].get("type") == "compaction"
    return "compaction" if ends_in_summary else "end_turn"


# --- content --------------------------------------------------------------------------------------


def _read_content(content: Any) -> str | tuple[Part, ...]:
    """The content of a result."""
    if isinstance(content, str):
        return content
    parts = _read_parts(content)
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return tuple(parts) or ""


def _read_parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    return (
        [part for block in content for part in _read_block(block)]
        if isinstance(content, list)
        else []
    )


def _read_block(block: Any) -> Iterator[Part]:
    given = block if isinstance(block, dict) else {}
    kind = given.get("type")
    if kind == "text":
        text = given.get("text")
        if isinstance(text, str) and text:
            yield TextPart(text)
    elif kind == "image":
        yield _read_image(given.get("source"))
    elif kind == "document":
        yield from _read_document(given)
    elif kind == "search_result":
        heads = [given.get(name) for name in ("title", "source")]
        if head := "\n".join([text for text in heads if isinstance(text, str)]):
            yield TextPart(head)
        yield from _read_parts(given.get("content"))
    else:
        names = [given.get(name) for name in ("tool_name", "file_id")]
        yield left_out(kind, next((name for name in names if isinstance(name, str)), None))


def _read_image(source: Any) -> Part:
    given = source if isinstance(source, dict) else {}
    if given.get("type") == "url":
        return image_part(given.get("url"))
    media_type, data = given.get("media_type"), given.get("data")
    if given.get("type") == "base64" and isinstance(media_type, str) and isinstance(data, str):
        return image_part(f"data:{media_type};base64,{data}")
    return left_out("image", given.get("file_id"))


def _read_document(block: dict[str, Any]) -> Iterator[Part]:
    source = block.get("source")
    given = source if isinstance(source, dict) else {}
    title = block.get("title")
    named = title if isinstance(title, str) and title else None
    kind = given.get("type")
    url = given.get("url")
    if (
        kind == "base64"
        and (file := file_part(given.get("data"), given.get("media_type"), named)) is not None
    ):
        yield file
    elif kind == "text" and isinstance(text := given.get("data"), str) and text:
        yield FilePart(text.encode(), "text/plain", filename=named)
    elif kind == "url" and isinstance(url, str) and url.lower().startswith(("https://", "http://")):
        yield FilePart(url=url, media_type="application/pdf", filename=named)
    elif kind == "content":
        if named is not None:
            yield TextPart(named)
        yield from _read_parts(given.get("content"))
    else:
        yield left_out("document", named or given.get("file_id"))
