"""The log of a loop that has no store: `run_tools` in one process."""

# It is kept in memory, and numbered as a store would. What a durable loop writes for its followers
# is written here from the same steps: a whole answer before the round that it begins, and the
# messages of the user, if the program says what they are. A loop that raises tells nobody: the
# program may add `RunFailed`, and what begins behind a run that was broken off writes one.

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

import anyio

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import ENDINGS, RunFailed, RunStopped
from lutumpy.durable.shown import dump_event, show_blocks, show_result
from lutumpy.loops import LoopEnded, RequestStarted, RoundDecoded, RoundExecuted, RoundPlanned
from lutumpy.streaming import Completed

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["LiveLog"]

_SECONDS_BETWEEN_LOOKS = 0.02


class LiveLog:
    """The events of `run_tools` as those of a store: `run_tools(..., on_event=log.add,
    on_progress=log.add)`.

    Args:
        scope: The conversation's id.

    Attributes:
        scope: That.
    """

    def __init__(self, scope: str) -> None:
        self.scope: str = scope
        self._events: list[StoredEvent] = []
        self._task = 0
        self._round = 1
        self._is_open = False  # whether a task has begun and not ended
        self._has_request = False  # whether a run of the task has begun
        self._has_answer = False  # whether the round's answer is in the log
        self._calls: dict[str, Mapping[str, Any]] = {}

    def ask(self, text: str, *, id: str = "") -> None:
        """Say what the user says: the first event of a task.

        A run that was going on in the task before it has failed then.

        Args:
            text: The text.
            id: The id of the message in the front end.
        """
        message: dict[str, JsonValue] = {"id": id, "text": text, "files": []}
        self._end_broken_run()
        if not self._is_open:
            self._begin()
        self._write({"event": "MessagesTaken", "messages": [message]})

    def add(self, event: Any) -> None:
        """An event of the loop, or of a stream; `RunFailed` or `RunStopped`, where it raised."""
        if isinstance(event, RequestStarted) and event.round <= self._round:
            self._end_broken_run()  # another run begins, which nobody has asked anything new
        if not self._is_open:
            self._begin()
        if isinstance(event, Completed):
            self._answer(show_blocks(event.turn))
        elif isinstance(event, RequestStarted):
            self._round, self._has_request, self._has_answer = event.round, True, False
            self._write(dump_event(event))
        elif isinstance(event, RoundDecoded):
            dumped = dump_event(event)
            if not self._has_answer:
                turn = event.turn
                self._answer(_blocks_of(event.text, dumped) if turn is None else show_blocks(turn))
            self._write(dumped)
        elif isinstance(event, RoundPlanned):
            dumped = dump_event(event)
            pending: Any = dumped["pending"]
            self._calls = {str(call["call_id"]): call for call in pending}
            self._write(dumped)
        elif isinstance(event, RoundExecuted):
            results: Any = [show_result(result, self._calls) for result in event.results]
            self._write({**dump_event(replace(event, results=())), "results": results})
        elif isinstance(event, LoopEnded):
            if not self._has_answer:
                answer = event.result.result
                text = {"block": "text", "text": event.result.text}
                self._answer([text] if answer is None else show_blocks(answer.turn))
            self._end(event)
        elif isinstance(event, (RunFailed, RunStopped)):
            self._end(event)
        elif type(event).__module__.startswith("lutumpy.loops"):
            self._write(dump_event(event))
        else:
            self._write({**dump_event(event), "delta": True})

    def _begin(self) -> None:
        self._task += 1
        self._round, self._is_open = 1, True
        self._has_request = self._has_answer = False

    def _end(self, event: LoopEnded | RunFailed | RunStopped) -> None:
        self._write(dump_event(event))
        self._is_open = False

    def _end_broken_run(self) -> None:
        """Nobody has said how the run ended that began: it raised."""
        if self._is_open and self._has_request:
            self._end(RunFailed("Unknown"))

    def _answer(self, blocks: Sequence[Mapping[str, JsonValue]]) -> None:
        self._has_answer = True
        self._write({"event": "Completed", "blocks": [dict(block) for block in blocks]})

    def _write(self, event: Mapping[str, JsonValue]) -> None:
        seq, now = len(self._events) + 1, datetime.now(timezone.utc)
        self._events.append(StoredEvent(seq, self._task, self._round, 1, now, event))

    # --- as a store has it -------------------------------------------------------------------

    async def last_event(self, scope: str = "") -> int:
        """The number of the last event."""
        return len(self._events)

    async def events(
        self, scope: str = "", *, after: int = 0, until: Literal["end"] | None = None
    ) -> AsyncIterator[StoredEvent]:
        """The events behind number `after`, and those that come; `until="end"` stops at the end of
        a run.
        """
        while True:
            while after < len(self._events):
                stored = self._events[after]
                yield stored
                after = stored.seq
            if until and self._events and self._events[-1].event["event"] in ENDINGS:
                return
            await anyio.sleep(_SECONDS_BETWEEN_LOOKS)

    def __repr__(self) -> str:
        return f"<LiveLog {self.scope!r:.60} {len(self._events)} events>"


def _blocks_of(text: str, decoded: Mapping[str, Any]) -> list[Mapping[str, JsonValue]]:
    """The answer of a round that wasn't streamed, where the event hasn't got it."""
    blocks: list[Mapping[str, JsonValue]] = [{"block": "text", "text": text}] if text else []
    for call in (*decoded["calls"], *decoded["issues"]):
        named = {name: call[name] for name in ("call_id", "tool", "arguments")}
        blocks.append({"block": "call", **named})
    return blocks
