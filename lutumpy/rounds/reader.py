"""Reading an answer while it arrives: a decoder's deltas become typed events, and at the end the very outcome of `read`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import CallDelta, CallDone, StreamDecoder
from lutumpy.errors import RoundClosedError
from lutumpy.rounds.commit import Entry
from lutumpy.rounds.events import (
    Event,
    InvalidToolCallDelta,
    StreamEvent,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
)
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import decode_call, mark, read_answer, read_text
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.arguments import partial_arguments
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue

if TYPE_CHECKING:
    from lutumpy.rounds.offer import Offer

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
W = TypeVar("W", default=None)


class _Arriving:
    """What is known of a call so far."""

    __slots__ = ("given", "name", "pieces")

    def __init__(self) -> None:
        self.given = ""
        self.name = ""
        self.pieces: list[str] = []


class Reader(Generic[C, W]):
    """Reads one streamed answer. Feed it every event, then `finish` it; one that is dropped has changed nothing.

    Args:
        offer: What was offered.
        decoder: The adapter's `stream_decoder()`.
        target: The session or transcript that the request was made from.
        result: Makes the result of a finished answer.
    """

    __slots__ = (
        "_arriving",
        "_begun",
        "_decoder",
        "_finished",
        "_offer",
        "_ready",
        "_result",
        "_target",
        "_transcript",
    )

    def __init__(
        self,
        offer: Offer[C],
        decoder: StreamDecoder,
        target: Target,
        result: Callable[[AssistantTurn], TurnResult[W]],
    ) -> None:
        self._offer = offer
        self._decoder = decoder
        self._target = target
        self._result = result
        self._transcript = transcript_of(target)
        self._begun = mark(self._transcript)
        self._arriving: dict[int, _Arriving] = {}
        self._ready: dict[int, Entry] = {}
        self._finished = False

    def feed(self, chunk: Any) -> list[StreamEvent[C]]:
        """Take the next event of the stream (an object of the SDK, or a dict), and say what arrived with it.

        Raises:
            AdapterError: the answer failed; `.partial` is what had arrived. Nothing is committed.
            RoundClosedError: the reader was finished before.
        """
        self._check_open()
        events: list[Event] = []
        for delta in self._decoder.feed(chunk):
            kind = type(delta)
            if kind is CallDelta:
                events.append(self._call_delta(delta))  # type: ignore[arg-type]  # told by its type
            elif kind is CallDone:
                events.append(self._call_done(delta))  # type: ignore[arg-type]  # told by its type
            else:
                events.append(delta)  # type: ignore[arg-type]  # the others are events as they are
        return events

    def finish(self) -> NeedsTools[C] | Finished[W]:
        """The outcome, when the stream has ended: what `read` gives for the same answer.

        Raises:
            AdapterError: the stream ended before its last event; `.partial` is what had arrived. Nothing is committed.
            StaleRoundError: the answer is finished, and items were added since the reader was made; `.result` has it.
            RoundClosedError: the reader was finished before.
        """
        return self.end()[1]

    def end(self, request_id: str | None = None) -> tuple[AssistantTurn, NeedsTools[C] | Finished[W]]:
        """As `finish`, for streams that know the provider's id of the request; gives the whole answer too."""
        turn = self.whole(request_id)
        outcome = read_answer(self._offer, turn, self._target, self._begun, result=self._result, ready=self._ready)
        return turn, outcome

    def end_text(self, request_id: str | None = None) -> tuple[AssistantTurn, TurnResult[W]]:
        """As `end`, for a turn without tools."""
        turn = self.whole(request_id)
        return turn, read_text(turn, self._target, self._begun, staged=False, result=self._result).result

    def whole(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, with nothing done about it yet; closes the reader."""
        self._check_open()
        turn = self._decoder.finish(request_id)
        self._finished = True
        return turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return self._decoder.partial()

    def partial_input(self, call_id: str) -> Any:
        """The arguments of a call so far, parsed as far as they go; `{}` when nothing of them can be.

        Raises:
            KeyError: no call with this id has begun.
        """
        for index in self._arriving:
            if self._id(index) == call_id:
                break
        else:
            raise KeyError(call_id)
        return partial_arguments("".join(self._arriving[index].pieces))

    def _call_delta(self, delta: CallDelta) -> Event:
        call = self._arriving.get(delta.index)
        if call is None:
            call = self._arriving[delta.index] = _Arriving()
        call.given = delta.id or call.given
        call.name = delta.name or call.name
        if delta.arguments:
            call.pieces.append(delta.arguments)
        kind = ToolCallDelta if not call.name or call.name in self._offer.offered else InvalidToolCallDelta
        return kind(self._id(delta.index), call.name, delta.arguments)

    def _call_done(self, done: CallDone) -> Event:
        call = self._arriving.get(done.index)
        if call is None:
            call = self._arriving[done.index] = _Arriving()
            call.pieces.append(done.call.arguments)
        call.given, call.name = done.call.id or call.given, done.call.name
        block = replace(done.call, id=self._id(done.index))
        entry = decode_call(self._offer, block, self._transcript, cut=block.incomplete)
        self._ready[done.index] = entry
        return ToolCallIssueFound(entry) if isinstance(entry, ToolCallIssue) else ToolCallReady(entry)

    def _id(self, index: int) -> str:
        """The id that a call has in the end: the provider's, or a fresh one by the rule of whole answers (C6)."""
        taken: list[str] = []
        for earlier in range(index):
            known = self._arriving.get(earlier)
            taken.append(self._transcript.fresh_id(known.given if known else "", taken))
        return self._transcript.fresh_id(self._arriving[index].given, taken)

    def _check_open(self) -> None:
        if self._finished:
            raise RoundClosedError("the reader was finished before")
