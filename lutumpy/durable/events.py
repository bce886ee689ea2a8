"""What a run of a durable loop writes into the log of its conversation (rules P20, W1 to W4)."""

# Deltas of a stream come fast and matter for a moment only: they are gathered and written a few
# times in a second, and dropped as soon as their answer is recorded. An answer that was lost with
# its process leaves deltas behind, which somebody may have seen; so the marker `stream` is inserted
# before the first one, and whoever finds that marker says `Restarted` before anything else.
#
# What is written once in a round has a marker too, in the transaction of its event (see
# `envelopes.py`): so a run that goes on with a round knows what its log has.
#
#   event            written                                             once in a round
#   ---------------  --------------------------------------------------  -----------------------
#   MessagesTaken    before the commit that takes the messages           each message
#   Restarted        before the repeated RequestStarted, or the answer   where that is missing
#   Completed        when the answer is recorded, before RoundDecoded    yes
#   CallHeld         with RunWaits and the status `waiting` (W2)         each call
#   RunWaits         unless what it waits for came in the meantime       no
#   CallDecided      by the store, with the decision                     each call
#   LoopEnded        behind the commit of the answer                     yes
#   RunFailed, ...   on the way out (W1)

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from lutumpy import AssistantTurn, OpenCall, ToolResult, ToolRoundPlan, Usage
from lutumpy.durable.checks import decision_id
from lutumpy.durable.conversation import OpenConversation, load_message
from lutumpy.durable.envelopes import Place, marker_of
from lutumpy.durable.late import late_id
from lutumpy.durable.log import CallDelivered, Restarted, RunFailed, RunStopped
from lutumpy.durable.questions import AskedCall, answer_id
from lutumpy.durable.results import Waiting
from lutumpy.durable.shown import (
    asked_event,
    dump_event,
    held_event,
    promised_event,
    show_blocks,
    show_message,
    show_result,
    unanswered,
)
from lutumpy.durable.types import InboxEntry
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.streaming import Completed

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["RUN_BY", "EventWriter", "RunBy"]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

STREAM = "stream"
_SECONDS_BETWEEN_WRITES = 0.05
_MOST_IN_ONE_WRITE = 200
_SECONDS_TO_END = 5.0


class RunBy:
    """Who cancels a run, if somebody does.

    Attributes:
        by: A name for the log.
        stops: Whether nobody is to go on with the conversation before something comes in.
    """

    def __init__(self) -> None:
        self.by: str = "program"
        self.stops: bool = False


RUN_BY: ContextVar[RunBy] = ContextVar("lutumpy.run_by")
"""Of the run of this task: who cancels it says here who wanted that."""


class EventWriter:
    """Writes the events of one run into the store.

    Args:
        conversation: The conversation, claimed by this process.
    """

    def __init__(self, conversation: OpenConversation) -> None:
        self._conversation = conversation
        self._gathered: list[Mapping[str, JsonValue]] = []
        self._written_at = 0.0
        # What this run has written once: the number of the round in the conversation, and a name.
        self._written: set[tuple[int, str]] = set()
        # The task and the round that events belong to: those of the last request.
        self._place = Place.of(conversation.claim)
        self._usage = Usage()
        # Calls of the open round as they were shown, by id.
        self._calls: dict[str, Mapping[str, Any]] = {}
        # A step that came before its answer was recorded.
        self._decoded: Mapping[str, JsonValue] | None = None
        self._ended = False
        conversation.before_taking = self._write_messages
        conversation.before_late = self._write_late

    # --- the answer --------------------------------------------------------------------------

    async def begin_stream(self) -> None:
        """An answer is about to be streamed; another one may have been before it."""
        claim = self._conversation.claim
        if STREAM not in claim.begun:
            await self._conversation.store.begin(claim, STREAM)

    async def add_delta(self, event: Any) -> None:
        """An event of a streamed answer; the last one is written with the answer's record."""
        if isinstance(event, Completed):
            return
        self._gathered.append(self._place.address({**dump_event(event), "delta": True}))
        now = anyio.current_time()
        is_late = now - self._written_at >= _SECONDS_BETWEEN_WRITES
        if is_late or len(self._gathered) >= _MOST_IN_ONE_WRITE:
            await self._write([])
            self._written_at = now

    async def answer_recorded(self, turn: AssistantTurn) -> None:
        """The answer is recorded: it takes the place of its deltas."""
        self._gathered = []
        if self._has_written("Completed"):
            return
        completed: Mapping[str, Any] = {"event": "Completed", "blocks": show_blocks(turn)}
        events = [*self._restarted(), _once(completed, "Completed")]
        if self._decoded is not None:
            events.append(self._decoded)
            self._decoded = None
        await self._write(events, drop_deltas=True)

    def _restarted(self) -> list[Mapping[str, JsonValue]]:
        """What is said where another process has streamed an answer that isn't in the log."""
        claim = self._conversation.claim
        is_told = self._has_written("Completed") or self._has_written("Restarted")
        if is_told or STREAM not in claim.begun:
            return []
        self._written.add((claim.round, "Restarted"))
        return [dump_event(Restarted(self._place.round, claim.fence))]

    # --- the steps ---------------------------------------------------------------------------

    async def add(self, event: LoopEvent[Any]) -> None:
        """A step of the loop."""
        if isinstance(event, RequestStarted):
            await self._begin_round(event)
        elif isinstance(event, RoundDecoded) and not self._has_written("Completed"):
            self._decoded = dump_event(event)
        elif isinstance(event, RoundExecuted):
            results: Any = [show_result(result, self._calls) for result in event.results]
            await self._write([{**dump_event(replace(event, results=())), "results": results}])
        elif isinstance(event, LoopEnded):
            if not self._has_written("LoopEnded"):
                await self._write([_once(dump_event(event), "LoopEnded")])
            self._ended = True
        else:
            dumped = dump_event(event)
            if isinstance(event, RoundPlanned):
                self._note_calls(dumped)
            await self._write([dumped])

    async def _begin_round(self, event: RequestStarted) -> None:
        claim = self._conversation.claim
        self._place, self._usage = Place.of(claim), event.usage
        restarted = self._restarted()
        # Messages of the inbox were told before their commit.
        messages = self._messages_of(())
        events = [*messages, *restarted, dump_event(event)]
        await self._write(events, drop_deltas=bool(restarted))

    async def wait(
        self,
        plan: ToolRoundPlan[Any],
        held: Sequence[BaseToolCall],
        digest: str,
        seen: Collection[str],
    ) -> None:
        """The run ends: a person has to decide (rule W2).

        Where somebody has decided in the meantime, it doesn't: the log doesn't say so, and the run
        goes on.

        Args:
            plan: The plan.
            held: The calls of it that nobody has decided.
            digest: Its digest.
            seen: The ids of the decisions that were looked at.
        """
        planned = RoundPlanned(
            self._place.round,
            self._usage,
            plan.pending,
            plan.handled,
            plan.rejected,
            plan.approvals,
            tuple(held),
            plan.issues,
        )
        events = [_once(dump_event(planned), "RoundPlanned:held")]
        reasons = {each["call_id"]: each.get("reason", "") for each in plan.decisions()}
        for call in held:
            call_id = call.metadata.id
            event = held_event(call, reasons.get(call_id, ""), digest)
            unless = _unless([decision_id(digest, call_id)], seen)
            events.append(_once({**event, **unless}, f"CallHeld:{call_id}"))
        ids = [call.metadata.id for call in held]
        waits: Mapping[str, JsonValue] = {
            "event": "RunWaits",
            "digest": digest,
            "held": [*ids],
            "status": "waiting",
            **_unless([decision_id(digest, call_id) for call_id in ids], seen),
        }
        new = [event for event in events if not all(map(self._has_written, _names(event)))]
        await self._write([*new, waits])
        self._ended = True

    async def promise(self, calls: Sequence[OpenCall]) -> None:
        """The results of calls come later; told once of each."""
        told = [_once(promised_event(call), f"CallPromised:{call.call_id}") for call in calls]
        new = [event for event in told if not all(map(self._has_written, _names(event)))]
        if new:
            await self._write(new)

    async def ask(self, calls: Sequence[AskedCall], made: Mapping[str, BaseToolCall]) -> None:
        """Servers want to know something; told once of each leg of a call.

        Args:
            calls: What they ask.
            made: The calls of the round, by id.
        """
        legs: dict[str, list[AskedCall]] = {}
        for call in calls:
            if call.questions:
                legs.setdefault(call.call_id, []).append(call)
        told = [
            _once(
                # All that is open, so that whoever reads it knows that the rest is answered.
                asked_event(made[call_id], [each for leg in asked for each in leg.questions]),
                f"CallAsked:{asked[-1].leg}:{call_id}",
            )
            for call_id, asked in legs.items()
        ]
        new = [event for event in told if not all(map(self._has_written, _names(event)))]
        if new:
            await self._write(new)

    async def wait_for_results(self, waiting: Waiting, seen: Collection[str]) -> None:
        """The run ends: late results or answers have to come, unless one came in the meantime.

        Args:
            waiting: What it waits for.
            seen: The ids of the results and answers that were looked at.
        """
        asked = dict.fromkeys([question.call_id for question in waiting.questions])
        awaited = [
            *[late_id(call.call_id) for call in waiting.open],
            *[
                answer_id(waiting.digest, question.call_id, question.leg, question.key)
                for question in waiting.questions
            ],
        ]
        waits: Mapping[str, JsonValue] = {
            "event": "RunWaits",
            "digest": waiting.digest,
            "held": [],
            "promised": [call.call_id for call in waiting.open],
            "asked": [*asked],
            "poll_after": waiting.poll_after,
        }
        await self._write([{**waits, "status": "waiting", **_unless(awaited, seen)}])
        self._ended = True

    async def _write_late(self, results: Sequence[tuple[ToolResult, str]]) -> None:
        """Late results are about to be taken."""
        told: list[Mapping[str, JsonValue]] = []
        for result, reason in results:
            metadata = result.metadata
            shown = show_result(result, {})
            event = CallDelivered(
                *(metadata.id, metadata.name, result.status, reason),
                content=shown["content"],
                cut=shown["cut"],
            )
            told.append(_once(dump_event(event), f"CallDelivered:{metadata.id}"))
        await self._write(told)

    async def fail(self, error: BaseException) -> None:
        """The run ends by an error, or is cancelled (rule W1)."""
        event: RunFailed | RunStopped = RunStopped(RUN_BY.get(RunBy()).by)
        if isinstance(error, Exception):
            event = RunFailed(type(error).__name__, getattr(error, "retryable", False) is True)
        if not self._ended:
            await self._write_end(dump_event(event))

    async def give_up(self) -> None:
        """Nobody goes on, since the round was tried too often: its followers are told once."""
        if not self._has_written("Stuck"):
            await self._write_end(_once(dump_event(RunFailed("Stuck")), "Stuck"))

    async def _write_end(self, event: Mapping[str, JsonValue]) -> None:
        """Write how the run ends, on its way out; what goes wrong here is logged."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_SECONDS_TO_END):
            try:
                await self._write([event])
            except Exception as failure:
                scope = self._conversation.scope
                logger.warning("the log of %r doesn't say that its run ended: %s", scope, failure)

    # --- messages ----------------------------------------------------------------------------

    async def _write_messages(self, entries: Sequence[InboxEntry]) -> None:
        """The messages that the next commit takes: they begin a task."""
        following = Place(self._conversation.claim.task + 1, 1)
        await self._write(self._messages_of(entries), place=following)

    def _messages_of(self, entries: Sequence[InboxEntry]) -> list[Mapping[str, JsonValue]]:
        """The event that tells messages, if there are any that the log doesn't have.

        A conversation that was taken in with messages has told nobody of them: in its first round,
        they come first.
        """
        conversation = self._conversation
        shown: list[Mapping[str, Any]] = []
        names: list[str] = []
        if conversation.claim.round == 1 and not self._has_written("MessagesTaken"):
            shown += [show_message(message) for message in unanswered(conversation.session)]
            names.append("MessagesTaken")
        for entry in entries:
            if not self._has_written(entry.id):
                key = entry.id.partition(":")[2]
                shown.append(show_message(load_message(entry.value), key))
                names.append(entry.id)
        if not shown:
            return []
        return [_once({"event": "MessagesTaken", "messages": cast("Any", shown)}, *names)]

    # --- writing -----------------------------------------------------------------------------

    def _has_written(self, name: str) -> bool:
        """Whether the log has what is written once in the open round."""
        claim = self._conversation.claim
        return marker_of(name) in claim.begun or (claim.round, name) in self._written

    def _note_calls(self, planned: Mapping[str, Any]) -> None:
        self._calls = {str(call["call_id"]): call for call in planned["pending"]}

    async def _write(
        self,
        events: Sequence[Mapping[str, JsonValue]],
        *,
        place: Place | None = None,
        drop_deltas: bool = False,
    ) -> None:
        """Write events, behind the deltas that were gathered."""
        place = self._place if place is None else place
        gathered, self._gathered = self._gathered, []
        conversation = self._conversation
        claim = conversation.claim
        written = [*gathered, *map(place.address, events)]
        await conversation.store.add_events(claim, written, drop_deltas=drop_deltas)
        for event in events:
            self._written.update([(claim.round, name) for name in _names(event)])


def _once(event: Mapping[str, JsonValue], *names: str) -> Mapping[str, JsonValue]:
    """The event, to be written once in its round for each of the names."""
    return {**event, "once": [*names]}


def _unless(entries: Sequence[str], seen: Collection[str]) -> Mapping[str, JsonValue]:
    """What keeps an event out of the log: entries of the inbox that this run hasn't looked at."""
    return {"unless": [entry for entry in entries if entry not in seen]}


def _names(event: Mapping[str, JsonValue]) -> Sequence[str]:
    return cast("Sequence[str]", event.get("once") or ())
