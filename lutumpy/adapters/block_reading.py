"""A history of an API of blocks as a transcript: its messages told apart, and kept as they are."""

# What is hard here
# -----------------
# A transcript has turns (an answer with the results of its calls), a history has messages. The two
# meet like this:
#
#   | in the history                                  | in the transcript                        |
#   |-------------------------------------------------|------------------------------------------|
#   | assistant messages in a row, without calls      | one turn each                            |
#   | the same, from the first one with calls on      | one turn: its results come after all     |
#   | results in the user messages after              | the results of that turn                 |
#   | other blocks behind them in the same message    | a user message without entries: the      |
#   |                                                 | results' entries already hold its blocks |
#   | other blocks before them                        | refused: nothing can be put between      |
#
# The turn with calls waits (`_waiting`) until the next message shows its results. Which of them
# answers which call is the API's business (`Matcher`): by ids, or by names and places too.

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from lutumpy.adapters.reading import Entry, HistoryReading, status_of, text_only
from lutumpy.core.items import AssistantTurn, CallBlock, Part, ResultBlock, TextPart
from lutumpy.rules.block_wire import BlockWire

__all__ = [
    "BlockReaders",
    "FoundResult",
    "Matched",
    "ResultContent",
    "blocks_of",
    "matcher_by_id",
    "read_blocks",
]

ResultContent: TypeAlias = "str | tuple[Part, ...]"
"""The content of a result."""


class FoundResult(NamedTuple):
    """A result in the user's messages after a turn.

    Attributes:
        position: The position of its message.
        result: What it holds.
        is_late: Whether other content comes before it.
    """

    position: str
    result: Mapping[str, Any]
    is_late: bool


class Matched(NamedTuple):
    """Which result answers which call.

    Attributes:
        of_calls: The place of each call's result among those found; `None` for a call without one.
        refused: What stands against the results, or against calls without one: a position and the
            words for it.
    """

    of_calls: list[int | None]
    refused: list[tuple[str, str]]


Matcher: TypeAlias = "Callable[[Sequence[CallBlock], Sequence[FoundResult], str], Matched]"
"""Matches the calls of a turn and the results after it; gets the position of the turn as well."""


def blocks_of(entry: Entry, wire: BlockWire) -> list[Any]:
    """The blocks of a message; a text is one where the API tags them, and none elsewhere."""
    content = entry.value.get(wire.blocks_key)
    if isinstance(content, list):
        return content
    is_text = wire.is_tagged and isinstance(content, str) and content
    return [{"type": "text", "text": content}] if is_text else []


def read_parts(content: Any, read_block: Callable[[Any], Iterable[Part]]) -> list[Part]:
    """The parts of a content that is a text or a list of blocks; anything else has none."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    if not isinstance(content, list):
        return []
    return [part for block in content for part in read_block(block)]


@dataclass(frozen=True, slots=True)
class BlockReaders:
    """What the reader of an API of blocks says of it.

    Attributes:
        wire: Where calls and results are.
        read_turn: Reads the messages of an answer; gets what names the calls that have results.
        read_parts: Reads a content that isn't the model's.
        read_result: The content of a result of a call, and whether it says that the call failed.
        match: Finds the results of calls.
        blocks_of: The blocks of a message.
        names_of_result: The keys under which a result names its call.
        has_system: Whether a message may have the role `system`.
    """

    wire: BlockWire
    read_turn: Callable[[list[Entry], AbstractSet[str]], AssistantTurn]
    read_parts: Callable[[Any], list[Part]]
    read_result: Callable[[Mapping[str, Any], CallBlock], tuple[ResultContent, bool]]
    match: Matcher
    blocks_of: Callable[[Entry, BlockWire], list[Any]] = blocks_of
    names_of_result: tuple[str, ...] = ()
    has_system: bool = True


def read_blocks(history: HistoryReading, entries: list[Entry], readers: BlockReaders) -> None:
    """Read the messages of a history, one run of the same role after another."""
    reading = _BlockReading(history, entries, readers)
    for role, run in itertools.groupby(entries, key=lambda entry: reading.role_of(entry)):
        reading.take(role, list(run))
    reading.end()


def _result_in(block: Any, wire: BlockWire) -> Mapping[str, Any] | None:
    found = wire.inside((), block, wire.result.kind) if isinstance(block, dict) else None
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A turn whose results may come in the next message."""

    turn: AssistantTurn
    entries: list[Entry]


class _BlockReading:
    """The messages, taken one run of the same role after another."""

    __slots__ = ("_answered", "_history", "_readers", "_waiting")

    def __init__(
        self, history: HistoryReading, entries: list[Entry], readers: BlockReaders
    ) -> None:
        self._history = history
        self._readers = readers
        self._answered = _names_of_answered(entries, readers)
        self._waiting: _Waiting | None = None

    def role_of(self, entry: Entry) -> str:
        return self._readers.wire.role_of(entry.value)

    def take(self, role: str, run: list[Entry]) -> None:
        wire = self._readers.wire
        if role == wire.user:
            self._take_user_messages(run)
            return
        self.end()
        if role == wire.model:
            self._take_answers(run)
        elif role == "system" and self._readers.has_system:
            for entry in run:
                parts = self._readers.read_parts(entry.value.get(wire.blocks_key))
                self._history.message("system", text_only(parts), [entry])
        else:
            self._history.refuse(
                run[0].position, f"the role {run[0].value.get('role')!r} is none of this API"
            )

    def end(self) -> None:
        """No results follow."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._add_turn(waiting, [], [])

    def _take_answers(self, run: list[Entry]) -> None:
        # Up to the first call, each message is an answer. From there on they are one, since its
        # results come after all.
        calling = next((k for k, entry in enumerate(run) if self._has_calls(entry)), len(run) - 1)
        for entry in run[:calling]:
            self._add_turn(self._read_turn([entry]), [], [])
        self._waiting = self._read_turn(run[calling:])

    def _read_turn(self, entries: list[Entry]) -> _Waiting:
        return _Waiting(self._readers.read_turn(entries, self._answered), entries)

    def _has_calls(self, entry: Entry) -> bool:
        wire = self._readers.wire
        for block in self._readers.blocks_of(entry, wire):
            found = wire.inside((), block, wire.call.kind) if isinstance(block, dict) else None
            if found is not None and wire.is_answered(found[1]):
                return True
        return False

    def _take_user_messages(self, run: list[Entry]) -> None:
        waiting, self._waiting = self._waiting, None
        results: list[FoundResult] = []
        # The blocks of each message that aren't results; and how many messages lead to the last
        # one with a result.
        others: list[list[Any]] = []
        answering = 0
        for number, entry in enumerate(run):
            is_behind_others = any(others)
            others.append([])
            for block in self._readers.blocks_of(entry, self._readers.wire):
                result = _result_in(block, self._readers.wire)
                if result is None:
                    others[-1].append(block)
                    continue
                answering = number + 1
                is_late = is_behind_others or bool(others[-1])
                results.append(FoundResult(entry.position, result, is_late))
        if waiting is not None:
            self._add_turn(waiting, results, run[:answering])
        else:
            self._match((), results, "")
        for number, entry in enumerate(run):
            if number >= answering:
                parts = self._readers.read_parts(entry.value.get(self._readers.wire.blocks_key))
                self._history.message("user", parts, [entry])
            elif others[number]:
                self._history.message("user", self._readers.read_parts(others[number]), [])

    def _add_turn(
        self, waiting: _Waiting, results: list[FoundResult], result_entries: list[Entry]
    ) -> None:
        calls = waiting.turn.calls
        places = self._match(calls, results, waiting.entries[0].position)
        if self._history.refused:
            return
        blocks = [
            self._read_result(call, results[place].result)
            for call, place in zip(calls, places, strict=True)
            if place is not None
        ]
        self._history.turn(waiting.turn, waiting.entries, blocks, result_entries)

    def _match(
        self, calls: Sequence[CallBlock], results: Sequence[FoundResult], where: str
    ) -> list[int | None]:
        matched = self._readers.match(calls, results, where)
        for position, words in matched.refused:
            self._history.refuse(position, words)
        return matched.of_calls

    def _read_result(self, call: CallBlock, result: Mapping[str, Any]) -> ResultBlock:
        content, failed = self._readers.read_result(result, call)
        return ResultBlock(call.id, call.name, content, status_of(content, failed), call.kind)


def _names_of_answered(entries: list[Entry], readers: BlockReaders) -> frozenset[str]:
    """What names the calls that have results in a history: ids, and names where they tell."""
    wire = readers.wire
    keys = readers.names_of_result or (wire.result.id_key,)
    found: set[str] = set()
    for entry in entries:
        for block in readers.blocks_of(entry, wire):
            result = _result_in(block, wire)
            names = [result.get(key) for key in keys] if result is not None else []
            found.update([name for name in names if isinstance(name, str) and name])
    return frozenset(found)


def matcher_by_id(wire: BlockWire) -> Matcher:
    """For an API whose calls have ids, each of its own: a result names one of them."""

    def match(calls: Sequence[CallBlock], results: Sequence[FoundResult], where: str) -> Matched:
        refused: list[tuple[str, str]] = []
        place_of: dict[str, int] = {}
        known = {call.id for call in calls}
        for place, (position, result, is_late) in enumerate(results):
            call_id = result.get(wire.result.id_key)
            if not isinstance(call_id, str) or call_id not in known:
                words = f"the result is of no call in the message before: {call_id!r}"
            elif call_id in place_of:
                words = f"the result is the second one for {call_id!r}"
            else:
                place_of[call_id] = place
                words = f"the result of {call_id!r} stands after other content" if is_late else ""
            if words:
                refused.append((position, words))
        for call in {call.id: call for call in calls}.values():
            if call.id not in place_of:
                words = f"call {call.id!r} of {call.name!r} has no result in the next message"
                refused.append((where, words))
        return Matched([place_of.get(call.id) for call in calls], refused)

    return match
