"""Reading an answer while it arrives: a decoder's deltas become typed events, and at the end the very outcome of `read`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from lutumpy.core.call_ids import TakenIds
from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.core.origin import Origin
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
    from lutumpy.rounds.structured import AnswerTool

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
W = TypeVar("W", default=None)


class _Arriving:
    """What is known of a call so far."""

    __slots__ = ("given", "id", "kind", "name", "pieces")

    def __init__(self) -> None:
        self.given = ""
        self.name = ""
        self.pieces: list[str] = []
        # What the last piece was told as; no kind when that has to be worked out again.
        self.kind: type[ToolCallDelta | InvalidToolCallDelta] | None = None
        self.id = ""


class Reader(Generic[C, W]):
    """Reads one streamed answer. Feed it every event, then `finish` it; one that is dropped has changed nothing.

    Args:
        offer: What was offered.
        decoder: The adapter's `stream_decoder()`.
        target: The session or transcript that the request was made from.
        result: Makes the result of a finished answer.
        answer: The tool that takes the value of a structured turn. Its calls arrive as deltas, and are complete with the
            whole answer only: until then other calls may follow.
    """

    __slots__ = (
        "_answer",
        "_arriving",
        "_begun",
        "_decoder",
        "_done",
        "_finished",
        "_gathered",
        "_ids",
        "_offer",
        "_origin",
        "_piece",
        "_ready",
        "_result",
        "_taken",
        "_target",
        "_transcript",
    )

    def __init__(
        self,
        offer: Offer[C],
        decoder: StreamDecoder,
        target: Target,
        result: Callable[[AssistantTurn], TurnResult[W]],
        answer: AnswerTool[Any] | None = None,
    ) -> None:
        self._answer = answer
        self._offer = offer
        self._decoder = decoder
        self._piece: Callable[[Any], tuple[int, str] | None] = getattr(
            decoder, "feed_arguments", _no_piece
        )
        self._target = target
        self._result = result
        self._transcript = transcript_of(target)
        self._begun = mark(self._transcript)
        self._done: list[CallBlock] = []
        self._origin = Origin(self._transcript, self._begun.length, self._done)
        self._arriving: dict[int, _Arriving] = {}
        self._ready: dict[int, Entry] = {}
        # The ids of the first calls, as they will be in the end.
        self._ids: list[str] = []
        self._taken = TakenIds()
        self._finished = False
        # Whether pieces came of which only the decoder knows.
        self._gathered = False

    def feed(self, chunk: Any) -> list[StreamEvent[C]]:
        """Take the next event of the stream (an object of the SDK, or a dict), and say what arrived with it.

        Raises:
            AdapterError: the answer failed; `.partial` is what had arrived. Nothing is committed.
            RoundClosedError: the reader was finished before.
        """
        taken = self._piece(chunk)
        if taken is not None:
            index, piece = taken
            call = self._arriving.get(index)
            if call is None or call.kind is None:
                return [self._call_delta(CallDelta(index, "", "", piece))]
            call.pieces.append(piece)
            return [call.kind(call.id, call.name, piece)]
        events: list[Event] = []
        for delta in self._decoder.feed(chunk):
            kind = type(delta)
            if kind is CallDelta:
                events.append(self._call_delta(delta))  # type: ignore[arg-type]  # told by its type
            elif kind is CallDone:
                event = self._call_done(delta)  # type: ignore[arg-type]  # told by its type
                if event is not None:
                    events.append(event)
            else:
                events.append(delta)  # type: ignore[arg-type]  # the others are events as they are
        return events

    def collect(self, chunks: Iterable[Any]) -> NeedsTools[C] | Finished[W]:
        """Feed all of `chunks`, the rest of the stream, tell nothing, and finish. Raises as `feed` and `finish` do."""
        self.gather(chunks)
        return self.finish()

    def gather(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, and tell nothing. Raises as `feed` does."""
        self._check_open()
        self._gathered = True
        # From here on a call may have begun untold: only the long way says what it is.
        self._piece = _no_piece
        gather = getattr(self._decoder, "feed_all", None)
        if gather is not None:
            gather(chunks)
            return
        feed = self._decoder.feed
        for chunk in chunks:
            feed(chunk)

    def finish(self) -> NeedsTools[C] | Finished[W]:
        """The outcome, when the stream has ended: what `read` gives for the same answer.

        Raises:
            AdapterError: the stream ended before its last event; `.partial` is what had arrived. Nothing is committed.
            StaleRoundError: the answer is finished, and items were added since the reader was made; `.result` has it.
            RoundClosedError: the reader was finished before.
        """
        return self.end()[1]

    def end(
        self, request_id: str | None = None
    ) -> tuple[AssistantTurn, NeedsTools[C] | Finished[W]]:
        """As `finish`, for streams that know the provider's id of the request; gives the whole answer too."""
        turn = self.whole(request_id)
        outcome = read_answer(
            self._offer,
            turn,
            self._target,
            self._begun,
            result=self._result,
            ready=self._ready,
            answer=self._answer,
        )
        return turn, outcome

    def end_text(self, request_id: str | None = None) -> tuple[AssistantTurn, TurnResult[W]]:
        """As `end`, for a turn without tools."""
        turn = self.whole(request_id)
        outcome = read_text(
            turn, self._target, self._begun, staged=False, result=self._result, answer=self._answer
        )
        return turn, outcome.result

    def whole(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, with nothing done about it yet; closes the reader."""
        self._check_open()
        turn = self._decoder.finish(request_id)
        self._finished = True
        self._piece = _closed
        return turn

    @property
    def ended(self) -> bool:
        """Whether the whole answer was taken, to be read and counted."""
        return self._finished

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return self._decoder.partial()

    def partial_input(self, call_id: str) -> Any:
        """The arguments of a call so far, parsed as far as they go; `{}` when nothing of them can be.

        Raises:
            KeyError: no call with this id has begun.
        """
        if self._gathered:
            turn = self.partial()
            calls = self._transcript.fresh_ids(turn).calls if turn is not None else ()
            return partial_arguments({call.id: call.arguments for call in calls}[call_id])
        for index in self._arriving:
            if self._id(index) == call_id:
                break
        else:
            raise KeyError(call_id)
        return partial_arguments("".join(self._arriving[index].pieces))

    def _call_delta(self, delta: CallDelta) -> Event:
        call = self._given(delta.index, delta.id)
        call.name = delta.name or call.name
        if delta.arguments:
            call.pieces.append(delta.arguments)
        known = not call.name or call.name in self._offer.offered or self._is_answer(call.name)
        call.kind = ToolCallDelta if known else InvalidToolCallDelta
        call.id = self._id(delta.index)
        return call.kind(call.id, call.name, delta.arguments)

    def _is_answer(self, name: str) -> bool:
        return self._answer is not None and name == self._answer.spec.name

    def _call_done(self, done: CallDone) -> Event | None:
        call = self._given(done.index, done.call.id)
        if not call.pieces:
            call.pieces.append(done.call.arguments)
        call.name = done.call.name
        if self._answer is not None and self._answer.takes(done.call):
            return None
        block = replace(done.call, id=self._id(done.index))
        self._done.append(block)
        entry = decode_call(
            self._offer, block, self._transcript, cut=block.incomplete, origin=self._origin
        )
        self._ready[done.index] = entry
        return (
            ToolCallIssueFound(entry) if isinstance(entry, ToolCallIssue) else ToolCallReady(entry)
        )

    def _id(self, index: int) -> str:
        """The id that a call has in the end: the provider's, or a fresh one by the rule of whole answers (C6)."""
        for earlier in range(len(self._ids), index + 1):
            known = self._arriving.get(earlier)
            made = self._transcript.fresh_id(known.given if known is not None else "", self._taken)
            self._ids.append(made)
            self._taken.add(made)
        return self._ids[index]

    def _given(self, index: int, call_id: str) -> _Arriving:
        """The call at `index`, and the provider's id for it, when that comes with this event."""
        call = self._arriving.get(index)
        if call is None:
            call = self._arriving[index] = _Arriving()
        if call_id and call_id != call.given:
            call.given = call_id
            # What was worked out before the id came, for this call and those after it, no longer holds.
            if index < len(self._ids):
                self._taken.counted = 0
            for later in range(index, len(self._ids)):
                self._taken.discard(self._ids[later])
                if (told := self._arriving.get(later)) is not None:
                    told.kind = None
            del self._ids[index:]
        return call

    def _check_open(self) -> None:
        if self._finished:
            _closed(None)


def _no_piece(chunk: Any) -> None:
    """The short way of a decoder that has none."""


def _closed(chunk: Any) -> None:
    raise RoundClosedError("the reader was finished before")
