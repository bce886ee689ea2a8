"""A history of Converse as a transcript: its messages told apart, and kept as they are."""

# What is hard here
# -----------------
# The calls of an answer may stand in several messages of the assistant, and their results in
# several of the user's, with other blocks behind them: those are a user message without entries,
# since the results' entries already hold them. A tool of the provider's is no call to be answered,
# and stands with its result in the assistant's message.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from lutumpy.adapters.bedrock.blobs import with_base64
from lutumpy.adapters.bedrock.decode import API, BlockReader, key_of
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
from lutumpy.plain.json_values import encode_text
from lutumpy.rules.bedrock import messages as converse
from lutumpy.rules.bedrock.limits import SERVER_TOOL

__all__ = ["read_converse"]


def read_converse(
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
    entries = history.entries(_plain(messages), "messages.{}")
    if system is not None:
        history.add(_read_system(system))
    reading = _ConverseReading(history, _answered_ids(entries))
    for role, run in itertools.groupby(entries, key=_role_of):
        reading.take(role, list(run))
    reading.end()
    if not history.refused:
        return history.end(())
    return history.end(converse.check_messages([entry.value for entry in entries]))


def _role_of(entry: Entry) -> str:
    role = entry.value.get("role")
    return role if isinstance(role, str) else ""


def _read_system(system: Any) -> Message:
    if isinstance(system, str):  # the API takes a list of blocks
        return Message("system", (TextPart(system),))
    data, value = decoded(system, "system")
    if not isinstance(value, list):
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


class _ConverseReading:
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
                result = block.get("toolResult") if isinstance(block, dict) else None
                if not isinstance(result, dict):
                    others.append(block)
                    continue
                answering = number + 1
                call_id = result.get("toolUseId")
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
                failed = result.get("status") == "error"
                content = _read_content(result.get("content"))
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


def _plain(messages: Any) -> Any:
    """The messages with base64 in place of the bytes that boto3 takes."""
    return with_base64(messages) if isinstance(messages, (list, tuple)) else messages


def _blocks_of(entry: Entry) -> list[Any]:
    content = entry.value.get("content")
    return content if isinstance(content, list) else []


def _has_calls(entry: Entry) -> bool:
    uses = [b.get("toolUse") for b in _blocks_of(entry) if isinstance(b, dict)]
    return any(isinstance(use, dict) and use.get("type") != SERVER_TOOL for use in uses)


def _answered_ids(entries: Iterable[Entry]) -> frozenset[str]:
    """The ids of the calls that have results in a history."""
    found: set[str] = set()
    for entry in entries:
        for block in _blocks_of(entry):
            result = block.get("toolResult") if isinstance(block, dict) else None
            call_id = result.get("toolUseId") if isinstance(result, dict) else None
            if isinstance(call_id, str):
                found.add(call_id)
    return frozenset(found)


def _read_turn(run: list[Entry], answered: AbstractSet[str]) -> AssistantTurn:
    reader = BlockReader(answered)
    for entry in run:
        for block in _blocks_of(entry):
            reader.read(block)
    reader.settle_calls()
    return reader.turn({"stopReason": "tool_use" if reader.calls else "end_turn"}, None)


# --- content --------------------------------------------------------------------------------------

_TYPES = {"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown"}
_TYPES |= {"html": "text/html", "csv": "text/csv", "doc": "application/msword"}
_OFFICE = "application/vnd.openxmlformats-officedocument."
_TYPES |= {"docx": f"{_OFFICE}wordprocessingml.document", "xls": "application/vnd.ms-excel"}
_TYPES |= {"xlsx": f"{_OFFICE}spreadsheetml.sheet"}


def _read_content(content: Any) -> str | tuple[Part, ...]:
    """The content of a result."""
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
    kind = key_of(block)
    inner = block[kind] if kind else None
    if kind == "text":
        if isinstance(inner, str) and inner:
            yield TextPart(inner)
    elif kind == "json":
        yield TextPart(encode_text(inner))
    elif not isinstance(inner, dict):
        yield left_out(kind)
    elif kind == "image":
        source = inner.get("source")
        data = source.get("bytes") if isinstance(source, dict) else None
        given = isinstance(data, str) and isinstance(inner.get("format"), str)
        yield image_part(f"data:image/{inner['format']};base64,{data}" if given else None)
    elif kind == "document":
        yield _read_document(inner)
    elif kind == "searchResult":
        heads = [inner.get(name) for name in ("title", "source")]
        if head := "\n".join([text for text in heads if isinstance(text, str)]):
            yield TextPart(head)
        yield from _read_parts(inner.get("content"))
    elif kind != "cachePoint":
        yield left_out(kind)


def _read_document(document: dict[str, Any]) -> Part:
    source = document.get("source")
    given = source if isinstance(source, dict) else {}
    title = document.get("name")
    named = title if isinstance(title, str) and title else None
    text = given.get("text")
    if isinstance(text, str) and text:
        return FilePart(text.encode(), "text/plain", filename=named)
    media_type = _TYPES.get(str(document.get("format")))
    return file_part(given.get("bytes"), media_type, named) or left_out("document", named)
