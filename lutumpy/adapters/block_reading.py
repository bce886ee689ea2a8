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
# The turn with calls waits (`_waiting`) until the next message shows its results.

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lutumpy.adapters.reading import Entry, HistoryReading, status_of, text_only
from lutumpy.core.items import AssistantTurn, CallBlock, Part, ResultBlock
from lutumpy.rules.block_wire import BlockWire

__all__ = ["BlockReaders", "ResultContent", "blocks_of", "read_blocks"]

ResultContent: TypeAlias = "str | tuple[Part, ...]"
"""The content of a result."""


@dataclass(frozen=True, slots=True)
class BlockReaders:
    """What the reader of an API of blocks says of it.

    Attributes:
        wire: Where calls and results stand.
        read_turn: Reads the messages of an answer; gets the ids of calls that have results too.
        read_parts: Reads a content that isn't the model's.
        read_result: The content of a result, and whether it says that the call failed.
    """

    wire: BlockWire
    read_turn: Callable[[list[Entry], AbstractSet[str]], AssistantTurn]
    read_parts: Callable[[Any], list[Part]]
    read_result: Callable[[Mapping[str, Any]], tuple[ResultContent, bool]]


def read_blocks(history: HistoryReading, entries: list[Entry], readers: BlockReaders) -> None:
    """Read the messages of a history, one run of the same role after another."""
    reading = _BlockReading(history, entries, readers)
    for role, run in itertools.groupby(entries, key=_role_of):
        reading.take(role, list(run))
    reading.end()


def _role_of(entry: Entry) -> str:
    role = entry.value.get("role")
    return role if isinstance(role, str) else ""


def blocks_of(entry: Entry, wire: BlockWire) -> list[Any]:
    """The blocks of a message; a text is one where the API tags them, and none elsewhere."""
    content = entry.value.get(wire.blocks_key)
    if isinstance(content, list):
        return content
    is_text = wire.is_tagged and isinstance(content, str) and content
    return [{"type": "text", "text": content}] if is_text else []


def _result_in(block: Any, wire: BlockWire) -> Mapping[str, Any] | None:
    found = wire.inside((), block, wire.result.kind) if isinstance(block, dict) else None
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A turn whose results may come in the next message."""

    turn: AssistantTurn
    entries: list[Entry]


@dataclass(slots=True)
class _Answers:
    """What the user's messages after a turn hold.

    Attributes:
        calls: The calls of the turn, by their ids.
        results: Their results, as far as they were found.
        others: The blocks of each message that are no results.
        answering: How many messages lead to the last one with a result.
    """

    calls: dict[str, CallBlock]
    results: dict[str, ResultBlock] = field(default_factory=dict[str, ResultBlock])
    others: list[list[Any]] = field(default_factory=list[list[Any]])
    answering: int = 0


class _BlockReading:
    """The messages, taken one run of the same role after another."""

    __slots__ = ("_answered", "_history", "_readers", "_waiting")

    def __init__(
        self, history: HistoryReading, entries: list[Entry], readers: BlockReaders
    ) -> None:
        self._history = history
        self._readers = readers
        self._answered = _answered_ids(entries, readers.wire)
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
                parts = self._readers.read_parts(entry.value.get("content"))
                self._history.message("system", text_only(parts), [entry])
        else:
            self._history.refuse(
                run[0].position, f"the role {run[0].value.get('role')!r} is none of this API"
            )

    def end(self) -> None:
        """No results follow."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            for call in waiting.turn.calls:
                self._refuse_open(waiting, call)
            self._add_turn(waiting, [], [])

    def _take_answers(self, run: list[Entry]) -> None:
        # Up to the first call, each message is an answer. From there on they are one, since its
        # results come after all.
        calling = next((k for k, entry in enumerate(run) if self._has_calls(entry)), len(run) - 1)
        for entry in run[:calling]:
            turn = self._readers.read_turn([entry], self._answered)
            self._add_turn(_Waiting(turn, [entry]), [], [])
        turn = self._readers.read_turn(run[calling:], self._answered)
        self._waiting = _Waiting(turn, run[calling:])

    def _has_calls(self, entry: Entry) -> bool:
        wire = self._readers.wire
        for block in blocks_of(entry, wire):
            found = wire.inside((), block, wire.call.kind) if isinstance(block, dict) else None
            if found is not None and wire.is_answered(found[1]):
                return True
        return False

    def _take_user_messages(self, run: list[Entry]) -> None:
        waiting, self._waiting = self._waiting, None
        calls = waiting.turn.calls if waiting is not None else ()
        answers = _Answers({call.id: call for call in calls})
        for entry in run:
            self._read_user_message(entry, answers)
        if waiting is not None:
            for call_id, call in answers.calls.items():
                if call_id not in answers.results:
                    self._refuse_open(waiting, call)
            results = [answers.results[call.id] for call in calls if call.id in answers.results]
            self._add_turn(waiting, results, run[: answers.answering])
        for number, entry in enumerate(run):
            others = answers.others[number]
            if number >= answers.answering:
                parts = self._readers.read_parts(entry.value.get("content"))
                self._history.message("user", parts, [entry])
            elif others:
                self._history.message("user", self._readers.read_parts(others), [])

    def _read_user_message(self, entry: Entry, answers: _Answers) -> None:
        is_behind_others = any(answers.others)
        others: list[Any] = []
        answers.others.append(others)
        for block in blocks_of(entry, self._readers.wire):
            result = _result_in(block, self._readers.wire)
            if result is None:
                others.append(block)
                continue
            answers.answering = len(answers.others)
            self._read_result(entry, result, answers, is_late=is_behind_others or bool(others))

    def _read_result(
        self, entry: Entry, result: Mapping[str, Any], answers: _Answers, *, is_late: bool
    ) -> None:
        call_id = result.get(self._readers.wire.result.id_key)
        call = answers.calls.get(call_id) if isinstance(call_id, str) else None
        if call is None:
            words = f"the result is of no call in the message before: {call_id!r}"
            self._history.refuse(entry.position, words)
            return
        if call.id in answers.results:
            self._history.refuse(entry.position, f"the result is the second one for {call_id!r}")
            return
        if is_late:
            words = f"the result of {call_id!r} stands after other content"
            self._history.refuse(entry.position, words)
        content, failed = self._readers.read_result(result)
        answers.results[call.id] = ResultBlock(
            call.id, call.name, content, status_of(content, failed), call.kind
        )

    def _refuse_open(self, waiting: _Waiting, call: CallBlock) -> None:
        words = f"call {call.id!r} of {call.name!r} has no result in the next message"
        self._history.refuse(waiting.entries[0].position, words)

    def _add_turn(
        self, waiting: _Waiting, results: list[ResultBlock], result_entries: list[Entry]
    ) -> None:
        if not self._history.refused:
            self._history.turn(waiting.turn, waiting.entries, results, result_entries)


def _answered_ids(entries: list[Entry], wire: BlockWire) -> frozenset[str]:
    """The ids of the calls that have results in a history."""
    found: set[str] = set()
    for entry in entries:
        for block in blocks_of(entry, wire):
            result = _result_in(block, wire)
            call_id = result.get(wire.result.id_key) if result is not None else None
            if isinstance(call_id, str):
                found.add(call_id)
    return frozenset(found)
