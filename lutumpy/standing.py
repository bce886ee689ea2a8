"""What a session holds beside its committed items, so that a store can append items and never
rewrite them (rule P22).

A dump (`dumps.py`) is the whole session. Here the items are apart: `items_since` gives those that
were committed since a head, `dump_state` the rest, and `build_session` makes a session of both.
"""

# Three things of a session aren't committed items, or change after they were committed:
#
# - Ephemeral messages are between items and leave at some time. The state has them, each with the
#   number of committed items before it.
# - Reasoning is left out of a turn when the ephemerals leave that it was signed over. The item
#   stays as it was written; the state has the ranges of such turns. A range goes on over all that
#   is not signed, so ranges with nothing signed between them are one.
# - Failures of calls are counted. Only the latest are kept, since what the model is told of them is
#   told once and soon.
#
# The head in the state says what the items have to be: whoever changed one has no such head.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from lutumpy.core.dump_checks import WRONG, expect
from lutumpy.core.dump_items import dump_item, dump_usage, load_item, load_usage
from lutumpy.core.head import Head
from lutumpy.core.items import AssistantTurn, Item, Message, Usage
from lutumpy.core.transcript import Transcript
from lutumpy.costs import Unsettled
from lutumpy.dumps import dump_unsettled, load_transcript, load_unsettled
from lutumpy.errors import TranscriptError
from lutumpy.plain.safe_text import explain_misfit

__all__ = ["build_session", "dump_state", "items_since"]

FAILURES_KEPT = 32
LONGEST_FAILURE = 2000
"""Characters of arguments: of a call with longer ones it isn't remembered that it failed."""


def items_since(transcript: Transcript, head: Head) -> list[dict[str, Any]]:
    """The items that were committed since a head, dumped.

    Raises:
        TranscriptError: the transcript doesn't begin with what the head says.
    """
    count, digest = head
    current = transcript.head.items
    if not 0 <= count <= current or transcript.digests().at(count).hex() != digest:
        raise TranscriptError(
            f"the session doesn't begin with the {count} items of this head; it has {current}"
        )
    return [dump_item(item) for item in transcript.committed_items(count)]


class _DroppedReasoning:
    """An `ItemEncoder` that keeps the ranges of turns whose reasoning is left out."""

    __slots__ = ("_count", "_is_open", "_ranges")

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []
        self._count = 0
        # Whether the last range goes on: no turn since is signed and has its reasoning.
        self._is_open = False

    def add(self, item: Item) -> None:
        if isinstance(item, Message) and item.ephemeral:
            return
        if isinstance(item, AssistantTurn) and item.signed:
            if not item.reasoning_dropped:
                self._is_open = False
            elif self._is_open:
                self._ranges[-1][1] = self._count
            else:
                self._ranges.append([self._count, self._count])
                self._is_open = True
        self._count += 1

    def copy(self) -> _DroppedReasoning:
        twin = _DroppedReasoning()
        twin._ranges = [*map(list, self._ranges)]
        twin._count, twin._is_open = self._count, self._is_open
        return twin

    def ranges(self) -> list[list[int]]:
        return [*map(list, self._ranges)]


def dump_state(
    transcript: Transcript, usage: Usage, unsettled: tuple[Unsettled, ...]
) -> dict[str, Any]:
    """What a session holds beside its committed items."""
    head, beside = transcript.head, transcript._state
    return {
        "head": list(head),
        "usage": dump_usage(usage),
        "unsettled": [dump_unsettled(request) for request in unsettled],
        "failures": _latest_failures(transcript),
        "ephemerals": _dump_ephemerals(transcript),
        "ephemerals_sent": beside.sent,
        "held": beside.held,
        "reasoning_dropped": transcript.encoded("dropped", _DroppedReasoning).ranges(),
        **(transcript._dump_open() if beside.open else {}),
        **(transcript._dump_noted() if transcript._noted is not None else {}),
    }


def _latest_failures(transcript: Transcript) -> list[list[Any]]:
    """The failures that are kept, oldest first; looks at little more than those."""
    latest = (
        [name, arguments, count]
        for (name, arguments), count in reversed(transcript._failure_counts().items())
        if len(arguments) <= LONGEST_FAILURE
    )
    return [*islice(latest, FAILURES_KEPT)][::-1]


def _dump_ephemerals(transcript: Transcript) -> list[list[Any]]:
    """Each ephemeral message with the number of committed items before it."""
    found: list[list[Any]] = []
    before = transcript._state.stable
    for item in transcript._state.tail:
        if isinstance(item, Message) and item.ephemeral:
            found.append([before, dump_item(item)])
        else:
            before += 1
    return found


def build_session(
    items: Iterable[Mapping[str, Any]], state: Mapping[str, Any]
) -> tuple[Transcript, Usage, tuple[Unsettled, ...]]:
    """The parts of a session of its items and its state.

    Raises:
        TranscriptError: they aren't those of one session; nothing was loaded.
    """
    try:
        head = _read_head(expect(state["head"], list, "head"))
        merged = _merge_ephemerals(
            _flag_dropped([dict(item) for item in items], state["reasoning_dropped"]),
            expect(state["ephemerals"], list, "ephemerals"),
        )
        beside = {name: state[name] for name in ("failures", "ephemerals_sent", "held")}
        for name in ("open_calls", "request"):
            if name in state:
                beside[name] = state[name]
        usage, unsettled = load_usage(state["usage"]), load_unsettled(state["unsettled"])
    except (TranscriptError, *WRONG) as error:
        what = explain_misfit(error)
        raise TranscriptError(f"the state is invalid: {what}; nothing was loaded") from error
    transcript = load_transcript({"items": merged, **beside})
    if transcript.head != head:
        raise TranscriptError(
            f"the items are not those of the state: it stands at {head.items} items, with another "
            "digest or another number of them; nothing was loaded"
        )
    return transcript, usage, unsettled


def _read_head(data: list[Any]) -> Head:
    count, digest = data
    return Head(expect(count, int, "head"), expect(digest, str, "head"))


def _flag_dropped(items: list[dict[str, Any]], ranges: Any) -> list[dict[str, Any]]:
    """The items, with the turns marked whose reasoning is left out."""
    for first, last in expect(ranges, list, "reasoning_dropped"):
        for index in range(expect(first, int, "a range"), expect(last, int, "a range") + 1):
            if not 0 <= index < len(items):
                raise TranscriptError(f"reasoning_dropped names item {index} of {len(items)}")
            if items[index].get("item") == "turn":
                items[index] = _without_reasoning(items[index])
    return items


def _without_reasoning(item: dict[str, Any]) -> dict[str, Any]:
    turn = load_item(item)
    if not (isinstance(turn, AssistantTurn) and turn.signed):
        return item
    return dump_item(replace(turn, reasoning_dropped=True))


def _merge_ephemerals(items: list[dict[str, Any]], ephemerals: list[Any]) -> list[dict[str, Any]]:
    """The items with the ephemeral messages at their places."""
    merged: list[dict[str, Any]] = []
    done = 0
    for before, message in ephemerals:
        if not done <= expect(before, int, "an ephemeral's place") <= len(items):
            raise TranscriptError(f"an ephemeral message stands at {before} of {len(items)} items")
        merged += items[done:before]
        if expect(message, dict, "an ephemeral").get("ephemeral") is not True:
            raise TranscriptError("a message among the ephemerals is none")
        merged.append(message)
        done = before
    return merged + items[done:]
