"""The stream decoder of the Messages API: events in; text, reasoning and calls out as they arrive;
and at the end the turn that the API would have given unstreamed.
"""

# What is hard here
# -----------------
# The turn must equal the unstreamed one, whatever order the events come in. So a block isn't
# understood here: as soon as it is closed it goes to `ContentReader`, which reads whole answers.
# Blocks may be open side by side (`_open`, by their index on the wire), but the reader takes them
# in the order in which they began: `_read` counts those that it has got.
#
#   block:   open --------> closed --------> read
#            its events     by its stop event, by another block of the same index, or by the end of
#            add to it      the message; what comes for it later is dropped
#
#   message: none -----> started ----------> stopped ----------> ended --------> finished
#            no event    message_start, or   message_delta with  message_stop    finish()
#            yet         any block           a stop_reason
#
# A message is whole when it is stopped or ended; hosts leave out either. Before that, `finish`
# raises, with what had arrived.
#
#   call:    begun -----> closed -----------> done (`CallDone` is reported)
#            tool_use     its block is        when another call began, or when the stop reason says
#            block        closed              that the answer wasn't cut
#
# A block of no known kind may turn out to be a call (rule C8), if the answer holds no result of it.
# The calls behind it have no index before that is known, so they wait for the stop reason.
#
# A closed call isn't done yet: the last call of an answer that was cut off is a truncated one,
# however whole its JSON looks, and the cut is only known from the stop reason behind it.
#
# Half characters: a delta may end between the two surrogates of a character. The first half waits
# in its block, so that every reported text can be encoded.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.anthropic.decode import (
    API,
    CUT,
    ContentReader,
    decode_message,
    finish_of,
    refusal_text,
)
from lutumpy.adapters.anthropic.stream_blocks import BEGINNINGS, StreamedBlock, known_delta
from lutumpy.adapters.anthropic.stream_events import read_event
from lutumpy.adapters.provider_errors import early_end, error_body
from lutumpy.adapters.unknown_calls import deltas_of_waiting
from lutumpy.core.items import AssistantTurn, TextBlock
from lutumpy.core.streaming import (
    CallDelta,
    CallDone,
    Delta,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
)
from lutumpy.plain.json_values import copied, encode_text

__all__ = ["MessagesStreamDecoder"]

_NO_INDEX = object()


class MessagesStreamDecoder:
    """A `StreamDecoder` for the event stream of the Messages API."""

    __slots__ = (
        "_blocks",
        "_calls",
        "_done",
        "_ended",
        "_message",
        "_open",
        "_read",
        "_reader",
        "_turn",
        "_usage",
    )

    def __init__(self) -> None:
        # Everything of the message but its content and usage, as far as it has arrived.
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: list[StreamedBlock] = []
        self._open: dict[int, StreamedBlock] = {}
        self._reader = ContentReader()
        # How many blocks the reader has got, how many calls began, and how many of them are done.
        self._read = self._calls = self._done = 0
        self._ended = False
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: an object of the SDK, or a dict. Pings and unknown events are
        ignored, but for a dict that holds something of a call.

        Raises:
            AdapterError: an `error` event; `.partial` is what had arrived.
        """
        event = read_event(chunk)
        kind = event.get("type")
        deltas: list[Delta] = []
        if kind == "content_block_delta":
            self._add_delta(event, deltas)
        elif kind == "content_block_start":
            self._open_block(event, deltas)
        elif kind == "content_block_stop":
            block = self._find_block(event)
            if block is not None:
                self._close_blocks([block], deltas)
        elif kind == "message_start":
            self._take_message_start(event.get("message"), deltas)
        elif kind == "message_delta":
            self._take_message_delta(event, deltas)
        elif kind == "message_stop":
            self._ended = True
            self._close_blocks(self._blocks[self._read :], deltas)
        elif kind == "error":
            self._raise_error(event)
        else:
            self._take_unknown(event, deltas)
        return deltas

    def _take_unknown(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        """Take an event of no known type if a block, the end or a piece of a call is in it."""
        delta = event.get("delta")
        if isinstance(event.get("content_block"), dict):
            self._open_block(event, deltas)
        elif isinstance(delta, dict) and "stop_reason" in delta:
            self._take_message_delta(event, deltas)
        elif isinstance(delta, dict):
            block = self._find_block(event)
            if block is not None and (block.kind == "tool_use" or not block.is_known):
                self._add_delta(event, deltas)
        elif event.get("message") is not None:
            self._take_message_start(event["message"], deltas)

    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a piece of a call's arguments; see `ArgumentsDecoder`."""
        try:
            if type(chunk) is dict:
                if chunk["type"] != "content_block_delta":
                    return None
                delta = chunk["delta"]
                if delta["type"] != "input_json_delta":
                    return None
                index, piece = chunk["index"], delta["partial_json"]
            else:
                if chunk.type != "content_block_delta":
                    return None
                delta = chunk.delta
                if delta.type != "input_json_delta":
                    return None
                index, piece = chunk.index, delta.partial_json
            block = self._open[index]
        except (AttributeError, KeyError, TypeError):
            return None
        if type(index) is not int or type(piece) is not str or not piece:
            return None
        # Beyond ASCII a piece may end in half a character, which `feed` holds back until the other
        # half is there.
        if block.call < 0 or block.half or not piece.isascii():
            return None
        block.json.append(piece)
        return block.call, piece

    def feed_all(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, and report nothing. Raises as `feed` does.

        The loop looks at an event as `feed_arguments` does, but only whether it goes on with the
        call of the event before, and it doesn't ask for ASCII, as nobody sees the piece. The plain
        loop over `feed_arguments` and `feed` was tried: it takes half as long again for each event.
        """
        # The index of the call that the event before was about, and what takes its pieces. Compared
        # by identity: the index is the same object from event to event as long as it is small, and
        # for others `feed_arguments` is right as well.
        index: object = _NO_INDEX
        append: Callable[[str], object] = str
        for chunk in chunks:
            try:
                if type(chunk) is dict:
                    if chunk["type"] == "content_block_delta" and chunk["index"] is index:
                        delta = chunk["delta"]
                        if delta["type"] == "input_json_delta":
                            piece = delta["partial_json"]
                            if type(piece) is str and piece:
                                append(piece)
                                continue
                elif chunk.type == "content_block_delta" and chunk.index is index:
                    delta = chunk.delta
                    if delta.type == "input_json_delta":
                        piece = delta.partial_json
                        if type(piece) is str and piece:
                            append(piece)
                            continue
            except (AttributeError, KeyError, TypeError):
                pass  # not an event of that shape: the long way says what it is
            if self.feed_arguments(chunk) is not None:
                continue
            self.feed(chunk)
            index = _NO_INDEX
            block = self._blocks[-1] if self._blocks else None
            if block is None or block.call < 0 or block.closed or block.index is None:
                continue
            index, append = block.index, block.json.append

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer: what `AnthropicMessages.response` gives for the same one unstreamed.

        Raises:
            AdapterError: the stream ended before the answer did; `.partial` is what had arrived.
        """
        if self._turn is None:
            if not self._started or not (self._ended or self._stop_reason):
                what = "the stream ended before the answer did"
                raise early_end(API, what, request_id, self.partial())
            self._close_blocks(self._blocks[self._read :], [])
            self._turn = self._reader.turn(
                {**(self._message or {}), "usage": self._usage}, request_id
            )
        return self._turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        if not self._started:
            return None
        content = [block.value() for block in self._blocks]
        message = {**(self._message or {}), "content": content, "usage": self._usage}
        return replace(decode_message(message), cut=True)

    @property
    def _started(self) -> bool:
        return self._message is not None or bool(self._blocks)

    @property
    def _stop_reason(self) -> str | None:
        stop = self._message.get("stop_reason") if self._message is not None else None
        return stop if isinstance(stop, str) and stop else None

    # --- the message ------------------------------------------------------------------------------

    def _take_message_start(self, message: Any, deltas: list[Delta]) -> None:
        if not isinstance(message, dict) or self._message is not None:
            return
        # The stop reason comes at the end; what is here is null, or a host's mistake.
        self._message = {**copied(message), "stop_reason": None}
        self._take_usage(message.get("usage"))
        model, response_id = message.get("model"), message.get("id")
        deltas.append(
            Started(
                model if isinstance(model, str) else None,
                response_id if isinstance(response_id, str) else None,
            )
        )
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._open_block({"index": index, "content_block": block}, deltas)

    def _take_message_delta(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        if self._message is None:
            self._message = {}
        self._take_usage(event.get("usage"))
        delta = event.get("delta")
        news = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
        news.update(delta if isinstance(delta, dict) else {})
        news = copied(news)
        if stopped := self._stop_reason:
            # Calls may have been reported as done because of the first one.
            news.pop("stop_reason", None)
        self._message.update({key: value for key, value in news.items() if value is not None})
        if stopped or not self._stop_reason:
            return
        self._close_blocks(self._blocks[self._read :], deltas)
        self._report_waiting_calls(deltas)
        refused = finish_of(self._stop_reason) == "refusal"
        text = refusal_text(self._message.get("stop_details")) if refused else ""
        if text and not any(type(block) is TextBlock for block in self._reader.blocks):
            deltas.append(RefusalDelta(text))

    def _report_waiting_calls(self, deltas: list[Delta]) -> None:
        """Report the calls that had to wait for the end: of no known kind, and those behind."""
        finish = finish_of(self._stop_reason)
        self._reader.settle_calls(finish)
        deltas += deltas_of_waiting(self._reader.calls, self._calls)
        self._calls = len(self._reader.calls)
        self._read_closed_blocks(deltas)

    def _take_usage(self, usage: Any) -> None:
        """Take token counts: each is the total so far, and a null changes nothing."""
        if isinstance(usage, dict):
            counts = {key: value for key, value in usage.items() if value is not None}
            self._usage.update(copied(counts))

    def _raise_error(self, event: Mapping[str, Any]) -> None:
        request_id = event.get("request_id")
        error = error_body(event, API, request_id if isinstance(request_id, str) else None)
        if error is not None:
            error.partial = self.partial()
            raise error

    # --- blocks -----------------------------------------------------------------------------------

    def _find_block(self, event: Mapping[str, Any]) -> StreamedBlock | None:
        """The open block that an event means: by its index, or the last one when it gives none."""
        index = event.get("index")
        if isinstance(index, int):
            return self._open.get(index)
        last = self._blocks[-1] if self._blocks else None
        return last if last is not None and not last.closed else None

    def _open_block(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        start = event.get("content_block")
        if not isinstance(start, dict):
            return
        if (previous := self._find_block(event)) is not None:
            self._close_blocks([previous], deltas)
        index = event.get("index")
        block = StreamedBlock(copied(start), index if isinstance(index, int) else None)
        self._blocks.append(block)
        if block.index is not None:
            self._open[block.index] = block
        if block.kind == "tool_use":
            self._read_closed_blocks(deltas)
            if self._may_shift_calls():
                return  # its index isn't known before the end of the answer
            block.call = self._calls
            self._calls += 1
            self._read_closed_blocks(deltas)
            deltas.append(CallDelta(block.call, block.id, block.name, ""))
        elif block.kind in ("text", "thinking"):
            self._report(block, start.get(block.kind), deltas)
        elif block.kind == "fallback":
            # Another model took over; an unstreamed message names the last one.
            model = target.get("model") if isinstance(target := start.get("to"), dict) else None
            if isinstance(model, str) and self._message is not None:
                self._message["model"] = model

    def _may_shift_calls(self) -> bool:
        """Whether a block before the last one may turn out to be a call of no known kind."""
        unread = self._blocks[self._read : -1]
        return bool(self._reader.unknown_calls) or any(not block.is_known for block in unread)

    def _add_delta(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, dict) or not isinstance(kind := delta.get("type"), str):
            return
        block = self._find_block(event)
        if kind == "input_json_delta" and (block is None or block.is_words):
            # Of no open call: a gateway's wrong index, and then of the last block, where that is an
            # open call (S2). Else the event that names the call is lost (C8), or this one is late.
            last = self._blocks[-1] if self._blocks else None
            block = last if last is not None and last.takes_input and not last.closed else None
            if block is None and self._is_late(event.get("index"), delta):
                return
        if block is None:
            beginning = BEGINNINGS.get(kind)
            if beginning is None:
                return
            self._open_block({"index": event.get("index"), "content_block": beginning}, deltas)
            block = self._blocks[-1]
        else:
            kind = known_delta(kind, delta)
        self._report(block, block.add(kind, delta), deltas)

    def _is_late(self, index: Any, delta: Mapping[str, Any]) -> bool:
        """Whether arguments are of a call that is closed: one of their index, or the last block if
        it has got none. The first piece of another call is empty.
        """
        last = self._blocks[-1] if self._blocks else None
        if last is not None and last.takes_input and not last.json and delta.get("partial_json"):
            return True
        return any(block.index == index and not block.is_words for block in self._blocks)

    def _report(self, block: StreamedBlock, piece: Any, deltas: list[Delta]) -> None:
        """Say what arrived, where it is anything to read."""
        if not isinstance(piece, str) or not piece:
            return
        piece = block.readable(piece)
        if piece:
            deltas.append(self._make_delta(block, piece))

    def _make_delta(self, block: StreamedBlock, piece: str) -> Delta:
        if block.call >= 0:
            return CallDelta(block.call, block.id, block.name, piece)
        return TextDelta(piece) if block.kind == "text" else ReasoningDelta(piece)

    def _close_blocks(self, blocks: Sequence[StreamedBlock], deltas: list[Delta]) -> None:
        for block in blocks:
            if block.closed:
                continue
            block.closed = True
            if block.index is not None and self._open.get(block.index) is block:
                del self._open[block.index]
            if block.half:
                deltas.append(self._make_delta(block, "\ufffd"))
            if block.call >= 0 and not block.json and block.start.get("input"):
                deltas.append(self._make_delta(block, encode_text(block.start["input"])))
        self._read_closed_blocks(deltas)

    def _read_closed_blocks(self, deltas: list[Delta]) -> None:
        """Read the blocks that are closed, and report the calls that are done.

        The last call of an answer that was cut is a truncated one however whole it looks, so a call
        is done only when another one began, or when the answer is known not to be cut.
        """
        while self._read < len(self._blocks) and self._blocks[self._read].closed:
            self._reader.read(self._blocks[self._read].value())
            self._read += 1
        if self._done == self._calls:
            return
        stop = self._stop_reason
        uncut = finish_of(stop) not in CUT if stop is not None else self._ended
        sure = self._calls if uncut else self._calls - 1
        while self._done < min(sure, len(self._reader.calls)):
            deltas.append(CallDone(self._done, self._reader.calls[self._done]))
            self._done += 1


if TYPE_CHECKING:
    from lutumpy.core.streaming import ArgumentsDecoder

    _PIECES: type[ArgumentsDecoder] = MessagesStreamDecoder
