"""The stream decoder of ConverseStream: events in; text, reasoning and calls out as they arrive; at
the end the turn that the API would have given unstreamed.
"""

# What is hard here
# -----------------
# Only calls, results and images have an event that begins them; texts and reasoning begin with
# their first delta. Arguments of a call that nothing began are a call without a name: an issue, and
# not an answer that says less than the model did. A block isn't understood here: as soon as it is
# closed it goes to the reader of whole answers, in the order in which the blocks began.
#
#   message: none -----> started ---------> stopped --------> finished
#            no event    messageStart, or   messageStop       finish(); usage comes behind the
#            yet         any block                            stop, in the event `metadata`
#
#   call:    begun -----> closed ---------> done (`CallDone` is reported)
#                                           when another call began, or when the stop reason says
#                                           that the answer wasn't cut
#
# A block of no known kind may turn out to be a call (rule C8), if the answer holds no result of it.
# The calls behind it have no index before that is known, so they wait for the stop reason.
#
# A closed call isn't done yet: the last call of an answer that was cut off is a truncated one,
# however whole its JSON looks, and the cut is only known from the stop reason behind it.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.adapters.bedrock.blobs import with_base64
from lutumpy.adapters.bedrock.decode import API, REASONING, BlockReader, is_cut
from lutumpy.adapters.bedrock.errors import event_error
from lutumpy.adapters.bedrock.stream_blocks import StreamedBlock, kind_of_delta
from lutumpy.adapters.provider_errors import early_end
from lutumpy.adapters.short_way import ShortWayDecoder
from lutumpy.adapters.unknown_calls import deltas_of_waiting
from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import CallDelta, CallDone, Delta, ReasoningDelta, Started, TextDelta
from lutumpy.plain.json_values import copied

__all__ = ["ConverseStreamDecoder"]


class ConverseStreamDecoder(ShortWayDecoder):
    """A `StreamDecoder` for the events of ConverseStream."""

    __slots__ = (
        "_answer",
        "_blocks",
        "_called",
        "_calls",
        "_done",
        "_open",
        "_read",
        "_reader",
        "_turn",
    )

    def __init__(self) -> None:
        # Everything of the answer but its content; `None` before anything has come.
        self._answer: dict[str, Any] | None = None
        self._blocks: list[StreamedBlock] = []
        self._open: dict[int, StreamedBlock] = {}
        # The indexes of calls that have begun.
        self._called: set[int] = set()
        self._reader = BlockReader()
        # How many blocks the reader has got, how many calls began, and how many of them are done.
        self._read = self._calls = self._done = 0
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: a dict with one key, as boto3 gives it. One under an unknown key is
        taken by what it holds.

        Raises:
            AdapterError: an error in the middle of the stream; `.partial` is what had arrived.
        """
        deltas: list[Delta] = []
        if not isinstance(chunk, Mapping):
            return deltas
        for name, event in chunk.items():
            if isinstance(event, Mapping):
                self._take(str(name), event, deltas)
        return deltas

    def _take(self, name: str, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        if name == "contentBlockDelta":
            self._add_delta(event, deltas)
        elif name == "contentBlockStart":
            self._take_start(event, deltas)
        elif name == "contentBlockStop":
            block = self._open.get(_index(event))
            if block is not None:
                self._close([block], deltas)
        elif name == "messageStart":
            self._begin(deltas)
        elif name == "messageStop":
            self._begin(deltas)
            self._note(event, ("stopReason",))
            self._close(self._blocks[self._read :], deltas)
            self._report_waiting_calls(deltas)
        elif name == "metadata":
            self._note(event, ())
        elif (error := event_error(name, event)) is not None:
            error.partial = self.partial()
            raise error
        else:
            self._take_unknown(event, deltas)

    def _take_unknown(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        """Take an event of no known name by what it holds: nothing of a call may be lost."""
        if isinstance(event.get("start"), Mapping):
            self._take_start(event, deltas)
        elif isinstance(event.get("delta"), Mapping):
            self._add_delta(event, deltas)
        elif isinstance(event.get("stopReason"), str):
            self._take("messageStop", event, deltas)
        elif event.get("usage") is not None:
            self._note(event, ())

    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a piece of a call's input; see `ArgumentsDecoder`."""
        if type(chunk) is not dict or len(chunk) != 1:
            return None
        try:
            event = chunk["contentBlockDelta"]
            index, delta = event["contentBlockIndex"], event["delta"]
            piece = delta["toolUse"]["input"]
            block = self._open[index]
        except (KeyError, TypeError):
            return None
        if type(index) is not int or type(piece) is not str or not piece or len(delta) != 1:
            return None
        # Beyond ASCII a piece may end in half a character, which `feed` holds back until the other
        # half is there.
        if block.call < 0 or block.half or not piece.isascii():
            return None
        block.json.append(piece)
        return block.call, piece

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer: what `BedrockConverse.response` gives for the same one unstreamed.

        Raises:
            AdapterError: the stream ended before the answer did; `.partial` is what had arrived.
        """
        if self._turn is None:
            answer = self._answer or {}
            if not isinstance(answer.get("stopReason"), str):
                what = "the stream ended before the answer did"
                raise early_end(API, what, request_id, self.partial())
            self._close(self._blocks[self._read :], [])
            self._turn = self._reader.turn(answer, request_id)
        return self._turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        if self._answer is None:
            return None
        reader = BlockReader()
        for block in self._blocks:
            reader.read(with_base64(block.value()))
        return replace(reader.turn(self._answer, None), cut=True)

    # --- the answer -------------------------------------------------------------------------------

    def _begin(self, deltas: list[Delta]) -> None:
        if self._answer is None:
            self._answer = {}
            deltas.append(Started(None, None))

    def _note(self, event: Mapping[str, Any], once: tuple[str, ...]) -> None:
        """Take what an event says of the whole answer; of what is in `once`, the first."""
        answer = self._answer = {} if self._answer is None else self._answer
        for key, value in event.items():
            if key != "p" and value is not None and not (key in once and key in answer):
                answer[key] = copied(value)

    # --- blocks -----------------------------------------------------------------------------------

    def _take_start(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        start = event.get("start")
        if not isinstance(start, Mapping):
            return
        kind = next((str(key) for key, value in start.items() if value is not None), "")
        inner = start.get(kind)
        if isinstance(inner, Mapping):
            self._open_block(_index(event), kind, inner, deltas)

    def _open_block(
        self, index: int, kind: str, start: Mapping[str, Any], deltas: list[Delta]
    ) -> StreamedBlock:
        self._begin(deltas)
        previous = self._open.get(index)
        if previous is not None:
            self._close([previous], deltas)
        block = StreamedBlock(kind, copied(start))
        self._blocks.append(block)
        self._open[index] = block
        if kind == "toolUse":
            self._called.add(index)
        if block.is_client_call:
            self._read_closed(deltas)
            if not self._may_shift_calls():
                block.call = self._calls
                self._calls += 1
                self._read_closed(deltas)
                deltas.append(CallDelta(block.call, block.id, block.name, ""))
        return block

    def _may_shift_calls(self) -> bool:
        """Whether a block before the last one may turn out to be a call of no known kind.

        The index of the calls behind it isn't known before the end of the answer then.
        """
        unread = self._blocks[self._read : -1]
        return bool(self._reader.unknown_calls) or any(not block.is_known for block in unread)

    def _report_waiting_calls(self, deltas: list[Delta]) -> None:
        """Report the calls that had to wait for the end: of no known kind, and those behind."""
        self._reader.settle_calls()
        deltas += deltas_of_waiting(self._reader.calls, self._calls)
        self._calls = len(self._reader.calls)
        self._read_closed(deltas)

    def _add_delta(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, Mapping):
            return
        index = _index(event)
        block = self._open.get(index)
        kind = kind_of_delta(delta)
        if kind == "toolUse" and (block is None or block.kind in ("text", REASONING)):
            # Of no open call: a gateway's wrong index, and then of the last block, where that is an
            # open call (S2). Else the event that names the call is lost (C8), or this one is late.
            last = self._blocks[-1] if self._blocks else None
            block = last if last is not None and last.kind == kind and not last.closed else None
            if block is None and index in self._called:
                return
        if block is None or (block.kind != kind and kind in ("text", REASONING)):
            if kind not in ("text", REASONING, "toolUse"):
                return
            block = self._open_block(index, kind, {}, deltas)
        piece = block.add(delta)
        shown = block.readable(piece) if piece else ""
        if shown:
            deltas.append(_make_delta(block, shown))

    def _close(self, blocks: Sequence[StreamedBlock], deltas: list[Delta]) -> None:
        for block in blocks:
            if block.closed:
                continue
            block.closed = True
            for index in [k for k, opened in self._open.items() if opened is block]:
                del self._open[index]
            if block.half:
                deltas.append(_make_delta(block, "\ufffd"))
        self._read_closed(deltas)

    def _read_closed(self, deltas: list[Delta]) -> None:
        """Read the blocks that are closed, and report the calls that are done."""
        while self._read < len(self._blocks) and self._blocks[self._read].closed:
            self._reader.read(with_base64(self._blocks[self._read].value()))
            self._read += 1
        if self._done == self._calls:
            return
        stop = (self._answer or {}).get("stopReason")
        sure = self._calls if isinstance(stop, str) and not is_cut(stop) else self._calls - 1
        while self._done < min(sure, len(self._reader.calls)):
            deltas.append(CallDone(self._done, self._reader.calls[self._done]))
            self._done += 1


def _make_delta(block: StreamedBlock, piece: str) -> Delta:
    if block.call >= 0:
        return CallDelta(block.call, block.id, block.name, piece)
    return ReasoningDelta(piece) if block.kind == REASONING else TextDelta(piece)


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("contentBlockIndex")
    return index if type(index) is int else 0
