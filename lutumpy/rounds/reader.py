"""Reading an answer while it arrives: typed events first, and in the end the outcome of `read`."""

# The decoder of an adapter turns the provider's events into deltas, and gathers the whole answer
# (`core/streaming.py`). The reader turns deltas into events typed by the toolset. What is hard:
#
# - An event may be a single character of a call's arguments, so there is a short way for these:
#   the decoder's `feed_arguments` recognises them, and the call at that index knows what its next
#   event looks like.
# - A call has its final id only in the end (`arriving_calls.py`).
# - A call is decoded when it is complete, not when the answer is: `ToolCallReady` comes early.
#   The same object is in the round at the end.
#
# The life of a reader:
#
#   reading --feed()------> reading
#     |   +----gather()---> gathering    events are no longer given: `feed` goes the long way
#     |                        |
#     +--finish()--------------+-------> finished    everything else raises `RoundClosedError`
#
# One that is dropped while it reads has changed nothing.

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from lutumpy.core.call_place import CallPlace
from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.core.streaming import CallDelta, CallDone, StreamDecoder
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.errors import RoundClosedError
from lutumpy.rounds.arriving_calls import ArrivingCalls
from lutumpy.rounds.call_names import name_call
from lutumpy.rounds.decode import decode_call
from lutumpy.rounds.events import (
    ApprovalRequested,
    Event,
    InvalidToolCallDelta,
    StreamEvent,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
)
from lutumpy.rounds.offered import OfferedTools
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import read_answer, read_text
from lutumpy.rounds.searches import name_search
from lutumpy.rounds.target import Target, position_of, transcript_of
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.arguments import partial_arguments
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue
    from lutumpy.rounds.structured import ValueTool

__all__ = ["Reader"]

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
W = TypeVar("W", default=None)


class Reader(Generic[C, W]):
    """Reads one streamed answer. Feed it every event, then `finish` it.

    A reader that is dropped before that has changed nothing. Make one with `Offer.reader`.

    Args:
        offer: What was offered.
        decoder: The adapter's `stream_decoder()`.
        target: The session or transcript that the request was made from.
        result: Makes the result of a finished answer.
        value_tool: The tool that takes the value of a structured turn. Its calls arrive as deltas;
            they are complete only with the whole answer, since other calls may follow until then.
    """

    __slots__ = (
        "_arriving",
        "_begun",
        "_blocks",
        "_decoder",
        "_finished",
        "_gathered",
        "_offer",
        "_origin",
        "_read_piece",
        "_ready",
        "_result",
        "_target",
        "_transcript",
        "_value_tool",
    )

    def __init__(
        self,
        offer: OfferedTools[C],
        decoder: StreamDecoder,
        target: Target,
        result: Callable[[AssistantTurn], TurnResult[W]],
        value_tool: ValueTool[Any] | None = None,
    ) -> None:
        self._value_tool = value_tool
        self._offer = offer
        self._decoder = decoder
        # The short way: the decoder's own, or one that takes nothing.
        self._read_piece: Callable[[Any], tuple[int, str] | None]
        self._read_piece = getattr(decoder, "feed_arguments", _take_no_piece)
        self._target = target
        self._result = result
        self._transcript = transcript_of(target)
        self._begun = position_of(self._transcript)
        # The complete calls. `CallPlace` looks at this very list, which still grows.
        self._blocks: list[CallBlock] = []
        self._origin = CallPlace(self._transcript, self._begun.length, self._blocks)
        self._arriving = ArrivingCalls(self._transcript)
        self._ready: dict[int, CallOrIssue] = {}
        self._finished = False
        # Whether there were pieces that only the decoder has seen.
        self._gathered = False

    def feed(self, chunk: Any) -> list[StreamEvent[C]]:
        """Take the next event of the stream (an object of the SDK, or a dict).

        Returns:
            What arrived with it; often nothing, sometimes several events.

        Raises:
            AdapterError: the answer failed; `.partial` is what had arrived. Nothing is committed.
            RoundClosedError: the reader was finished before.
        """
        found = self._read_piece(chunk)
        if found is not None:
            index, piece = found
            call = self._arriving.at.get(index)
            if call is None or call.event is None:
                return [self._read_call_delta(CallDelta(index, "", "", piece))]
            call.pieces.append(piece)
            return [call.event(call.final_id, call.name, piece)]
        events: list[Event] = []
        for delta in self._decoder.feed(chunk):
            # By identity: `isinstance` narrows better, and is slower on this path.
            kind = type(delta)
            if kind is CallDelta:
                events.append(self._read_call_delta(delta))  # type: ignore[arg-type]
            elif kind is CallDone:
                event = self._read_call_done(delta)  # type: ignore[arg-type]
                if event is not None:
                    events.append(event)
            else:
                events.append(delta)  # type: ignore[arg-type]  # the others are events themselves
        return events

    def collect(self, chunks: Iterable[Any]) -> NeedsTools[C] | Finished[W]:
        """Feed the rest of the stream without making events, and finish.

        Raises as `feed` and `finish` do.
        """
        self.gather(chunks)
        return self.finish()

    def gather(self, chunks: Iterable[Any]) -> None:
        """Feed all of `chunks` without making events. Raises as `feed` does."""
        self._check_open()
        self._gathered = True
        # From here on a call may have begun unnoticed: only the long way says what it is.
        self._read_piece = _take_no_piece
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
            AdapterError: the stream ended before its last event; `.partial` is what had arrived.
                Nothing is committed.
            StaleRoundError: the answer is finished, and items were added since the reader was made;
                `.result` has it.
            RoundClosedError: the reader was finished before.
        """
        return self.finish_with_outcome()[1]

    def finish_with_outcome(
        self, request_id: str | None = None
    ) -> tuple[AssistantTurn, NeedsTools[C] | Finished[W]]:
        """As `finish`; gives the whole answer too.

        Args:
            request_id: The provider's id of the request, where the stream knows it.
        """
        turn = self._finish_decoding(request_id)
        outcome = read_answer(
            self._offer,
            turn,
            self._target,
            self._begun,
            result=self._result,
            ready=self._ready,
            value_tool=self._value_tool,
        )
        return turn, outcome

    def finish_with_result(
        self, request_id: str | None = None
    ) -> tuple[AssistantTurn, TurnResult[W]]:
        """As `finish_with_outcome`, for a turn without tools."""
        turn = self._finish_decoding(request_id)
        outcome = read_text(
            self._offer,
            turn,
            self._target,
            self._begun,
            result=self._result,
            value_tool=self._value_tool,
        )
        return turn, outcome.result

    def _finish_decoding(self, request_id: str | None) -> AssistantTurn:
        self._check_open()
        turn = self._decoder.finish(request_id)
        self._finished = True
        self._read_piece = _refuse_piece
        return turn

    @property
    def ended(self) -> bool:
        """Whether the whole answer was decoded, to be read and counted."""
        return self._finished

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return self._decoder.partial()

    def partial_input(self, call_id: str) -> Any:
        """The arguments of a call so far, parsed as far as they go; `{}` if nothing can be parsed.

        Of a text tool, the text so far.

        Raises:
            KeyError: no call with this id has begun.
        """
        if self._gathered:
            turn = self.partial()
            blocks = self._transcript.fresh_ids(turn).calls if turn is not None else ()
            block = {block.id: block for block in blocks}[call_id]
            name = self._offer.own_name(block.name)
            return self._parse_partially(name, block.kind, block.arguments)
        call = self._arriving.with_final_id(call_id)
        return self._parse_partially(call.name, call.kind, "".join(call.pieces))

    def _parse_partially(self, name: str, kind: str, arguments: str) -> Any:
        if kind == "custom":
            return arguments
        value = partial_arguments(arguments)
        if not self._takes_text(name):
            return value
        text = value.get("input") if isinstance(value, dict) else None
        return text if isinstance(text, str) else ""

    def _read_call_delta(self, delta: CallDelta) -> Event:
        call = self._arriving.take(delta.index, delta.id)
        if delta.name:
            call.name = self._offer.own_name(delta.name)
        call.kind = delta.kind
        if delta.kind == SEARCH_CALL and self._offer.finder is not None:
            call.name = self._offer.finder
        if delta.arguments:
            call.pieces.append(delta.arguments)
        known = not call.name or call.name in self._offer.offered or self._is_value(call.name)
        if known and call.name and delta.kind != "function":
            known = delta.kind == "custom" and self._takes_text(call.name)
            known = known or self._offer.takes_kind(call.name, delta.kind)
        call.event = ToolCallDelta if known else InvalidToolCallDelta
        call.final_id = self._arriving.final_id(delta.index)
        return call.event(call.final_id, call.name, delta.arguments)

    def _takes_text(self, name: str) -> bool:
        selector = self._offer.by_name.get(name)
        return selector is not None and selector.tool.is_text

    def _is_value(self, name: str) -> bool:
        return self._value_tool is not None and name == self._value_tool.spec.name

    def _read_call_done(self, done: CallDone) -> Event | None:
        call = self._arriving.take(done.index, done.call.id)
        if not call.pieces:
            call.pieces.append(done.call.arguments)
        block = name_call(self._offer, done.call)
        if block.kind == SEARCH_CALL:
            block = name_search(block, self._offer.finder)
        call.name = block.name
        if self._value_tool is not None and self._value_tool.is_called_by(block):
            return None
        block = replace(block, id=self._arriving.final_id(done.index))
        self._blocks.append(block)
        entry = decode_call(
            self._offer, block, self._transcript, cut=block.incomplete, origin=self._origin
        )
        self._ready[done.index] = entry
        if isinstance(entry, ToolCallIssue):
            return ToolCallIssueFound(entry)
        if isinstance(entry, ApprovalRequest):
            return ApprovalRequested(entry)
        return ToolCallReady(entry)

    def _check_open(self) -> None:
        if self._finished:
            _refuse_piece(None)


def _take_no_piece(chunk: Any) -> None:
    """The short way of a decoder that has none."""


def _refuse_piece(chunk: Any) -> None:
    raise RoundClosedError("the reader was finished before")
