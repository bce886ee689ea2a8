"""What a run of a durable loop tells of itself, as JSON values in the store (rule P20)."""

# Deltas of a stream come fast and matter for a moment only: they are gathered and written a few
# times in a second, and dropped as soon as their answer is recorded. An answer that was lost with
# its process leaves deltas behind, which somebody may have seen; so the marker `stream` is inserted
# before the first one, and whoever finds that marker says `Restarted` before anything else.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import anyio

from lutumpy import AssistantTurn, HandledTool, RejectedToolCall, ToolCallIssue, ToolResult
from lutumpy.durable.conversation import OpenConversation
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopResult
from lutumpy.models import ToolMetadata, dump_turn
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.streaming import Completed

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["EventWriter", "Restarted", "dump_event"]

STREAM = "stream"
_SECONDS_BETWEEN_WRITES = 0.05
_MOST_IN_ONE_WRITE = 200


@dataclass(frozen=True, slots=True)
class Restarted:
    """The answer that was streamed is lost, or will come as a whole: forget what was streamed.

    Attributes:
        round: The number of the round in its conversation.
        attempt: Which execution of the round goes on now: the fence of its claim.
    """

    round: int
    attempt: int


class EventWriter:
    """Writes the events of one run into the store.

    Args:
        conversation: The conversation, claimed by this process.
    """

    def __init__(self, conversation: OpenConversation) -> None:
        self._conversation = conversation
        self._gathered: list[Mapping[str, JsonValue]] = []
        self._written_at = 0.0

    async def begin_stream(self) -> None:
        """An answer is about to be streamed; another one may have been before it."""
        conversation = self._conversation
        claim = conversation.claim
        if STREAM in claim.begun or not await conversation.store.begin(claim, STREAM):
            restarted = Restarted(claim.round, claim.fence)
            await conversation.store.add_events(claim, [dump_event(restarted)], drop_deltas=True)

    async def add_delta(self, event: Any) -> None:
        """An event of a streamed answer; the last one is written with the answer's record."""
        if isinstance(event, Completed):
            return
        self._gathered.append({**dump_event(event), "delta": True})
        now = anyio.current_time()
        is_late = now - self._written_at >= _SECONDS_BETWEEN_WRITES
        if is_late or len(self._gathered) >= _MOST_IN_ONE_WRITE:
            await self._write(drop_deltas=False)
            self._written_at = now

    async def answer_recorded(self, turn: AssistantTurn, *, again: bool = False) -> None:
        """The answer is recorded: it takes the place of its deltas.

        Args:
            turn: The answer.
            again: Another process recorded it, which may have died before it reported it.
        """
        claim = self._conversation.claim
        if again:
            if STREAM not in claim.begun:
                return  # nobody saw anything of it before it was recorded
            self._gathered = [dump_event(Restarted(claim.round, claim.fence))]
        else:
            self._gathered = []
        self._gathered.append(dump_event(Completed(turn)))
        await self._write(drop_deltas=True)

    async def add(self, event: Any) -> None:
        """A step of the loop."""
        self._gathered.append(dump_event(event))
        await self._write(drop_deltas=False)

    async def _write(self, *, drop_deltas: bool) -> None:
        gathered, self._gathered = self._gathered, []
        conversation = self._conversation
        await conversation.store.add_events(conversation.claim, gathered, drop_deltas=drop_deltas)


def dump_event(event: Any) -> dict[str, JsonValue]:
    """An event of a loop or a stream as JSON values: `{"event": <name of its class>, ...}`.

    Calls, issues and results are shortened to what a display needs; the conversation has them
    in full.
    """
    dumped = {each.name: _dump_value(getattr(event, each.name)) for each in fields(event)}
    values: dict[str, JsonValue] = json_values.clean(dumped)
    return {"event": type(event).__name__, **values}


def _dump_value(value: Any) -> Any:
    if isinstance(value, AssistantTurn):
        return dump_turn(value)
    if isinstance(value, ToolMetadata):
        return {"call_id": value.id, "tool": value.name, "arguments": value.arguments}
    if isinstance(value, BaseToolCall):
        return _dump_value(value.metadata)
    if isinstance(value, ToolCallIssue):
        return {**_dump_value(value.metadata), "reason": value.reason, "detail": value.detail}
    if isinstance(value, HandledTool):
        return _dump_value(value.metadata)
    if isinstance(value, RejectedToolCall):
        return {**_dump_value(value.metadata), "reason": value.reason, "source": value.source}
    if isinstance(value, ToolResult):
        return {**_dump_value(value.metadata), "status": value.status}
    if isinstance(value, LoopResult):
        ended = {"text": value.text, "rounds": value.rounds, "stopped_by": value.stopped_by}
        return {**ended, "usage": _dump_value(value.usage)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_dump_value(entry) for entry in value]
    if is_dataclass(value):
        return {each.name: _dump_value(getattr(value, each.name)) for each in fields(value)}
    return value
