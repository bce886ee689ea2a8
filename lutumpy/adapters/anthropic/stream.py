"""From the events of a streamed message to the message that the API would have given unstreamed, and what arrives on the way.

A block is read by the decoder of whole answers as soon as it is closed, so the turn is the unstreamed one's by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.anthropic.decode import (
    API,
    CUT,
    ContentReader,
    UnparsedInput,
    decode_message,
    finish_of,
    refusal_text,
)
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn, TextBlock
from lutumpy.core.json_values import encode_text
from lutumpy.core.streaming import (
    CallDelta,
    CallDone,
    Delta,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
)
from lutumpy.errors import AdapterError

__all__ = ["MessagesStreamDecoder"]

_EVENTS = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "message_delta",
        "message_start",
        "message_stop",
    }
)

# Which block each kind of delta belongs to; of other kinds only blocks that aren't read here are told.
_BELONGS = {
    "citations_delta": "text",
    "signature_delta": "thinking",
    "text_delta": "text",
    "thinking_delta": "thinking",
}
_SEALED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})

# What a block begins with whose first event is missing.
_BEGINNINGS: Mapping[str, dict[str, Any]] = {
    "text_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
}

_NO_INDEX = object()
_HIGH_SURROGATES = ("\ud800", "\udbff")


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
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._reader = ContentReader()
        # How many blocks the reader has got, how many calls began, and how many of them are done.
        self._read = self._calls = self._done = 0
        self._ended = False
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: an object of the SDK, or a dict. Pings and unknown events are ignored.

        Raises:
            AdapterError: an `error` event; `.partial` is what had arrived.
        """
        event = _event(chunk)
        kind = event.get("type")
        deltas: list[Delta] = []
        if kind == "content_block_delta":
            self._block_delta(event, deltas)
        elif kind == "content_block_start":
            self._block_start(event, deltas)
        elif kind == "content_block_stop":
            block = self._find(event)
            if block is not None:
                self._close([block], deltas)
        elif kind == "message_start":
            self._message_start(event.get("message"), deltas)
        elif kind == "message_delta":
            self._message_delta(event, deltas)
        elif kind == "message_stop":
            self._ended = True
            self._close(self._blocks[self._read :], deltas)
        elif kind == "error":
            self._fail(event)
        return deltas

    def piece(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a piece of a call's arguments; see `PieceDecoder`."""
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
        if (
            block.call < 0
            or block.half
            or type(index) is not int
            or type(piece) is not str
            or not piece.isascii()
        ):
            return None  # beyond ASCII, a piece may end in half a character
        if not piece:
            return None
        block.json.append(piece)
        return block.call, piece

    def gather(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, and tell nothing. Raises as `feed` does."""
        index: object = _NO_INDEX
        take: Callable[[str], object] = str
        for chunk in chunks:
            # As in `piece`, for the call that the event before was about; its index is the same object as long as it is small.
            try:
                if type(chunk) is dict:
                    if chunk["type"] == "content_block_delta" and chunk["index"] is index:
                        delta = chunk["delta"]
                        if (
                            delta["type"] == "input_json_delta"
                            and type(piece := delta["partial_json"]) is str
                            and piece
                        ):
                            take(piece)
                            continue
                elif chunk.type == "content_block_delta" and chunk.index is index:
                    delta = chunk.delta
                    if (
                        delta.type == "input_json_delta"
                        and type(piece := delta.partial_json) is str
                        and piece
                    ):
                        take(piece)
                        continue
            except (AttributeError, KeyError, TypeError):
                pass
            if self.piece(chunk) is not None:
                continue
            self.feed(chunk)
            index = _NO_INDEX
            block = self._blocks[-1] if self._blocks else None
            if (
                block is not None
                and block.call >= 0
                and block.index is not None
                and not block.closed
            ):
                index, take = block.index, block.json.append

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer: what `AnthropicMessages.response` gives for the same one unstreamed.

        Raises:
            AdapterError: the stream ended before the answer did; `.partial` is what had arrived.
        """
        if self._turn is None:
            if not self._started or not (self._ended or self._stop_reason):
                raise AdapterError(
                    f"{API}: the stream ended before the answer did",
                    provider=API,
                    retryable=True,
                    request_id=request_id,
                    partial=self.partial(),
                )
            self._close(self._blocks[self._read :], [])
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

    # --- the message -----------------------------------------------------------------------------------------------

    def _message_start(self, message: Any, deltas: list[Delta]) -> None:
        if not isinstance(message, dict) or self._message is not None:
            return
        # Why it stopped is said at the end; what stands here is null, or a host's mistake.
        self._message = {**message, "stop_reason": None}
        self._count(message.get("usage"))
        model, response_id = message.get("model"), message.get("id")
        deltas.append(
            Started(
                model if isinstance(model, str) else None,
                response_id if isinstance(response_id, str) else None,
            )
        )
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._block_start({"index": index, "content_block": block}, deltas)

    def _message_delta(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        if self._message is None:
            self._message = {}
        self._count(event.get("usage"))
        delta = event.get("delta")
        news = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
        news.update(delta if isinstance(delta, dict) else {})
        if stopped := self._stop_reason:
            # Calls may have been told as done on the strength of the first one.
            news.pop("stop_reason", None)
        self._message.update({key: value for key, value in news.items() if value is not None})
        if stopped or not self._stop_reason:
            return
        self._close(self._blocks[self._read :], deltas)
        refused = finish_of(self._stop_reason) == "refusal"
        text = refusal_text(self._message.get("stop_details")) if refused else ""
        if text and not any(type(block) is TextBlock for block in self._reader.blocks):
            deltas.append(RefusalDelta(text))

    def _count(self, usage: Any) -> None:
        """Take token counts: they are totals so far, and null says nothing."""
        if isinstance(usage, dict):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def _fail(self, event: Mapping[str, Any]) -> None:
        request_id = event.get("request_id")
        error = error_body(event, API, request_id if isinstance(request_id, str) else None)
        if error is not None:
            error.partial = self.partial()
            raise error

    # --- blocks ----------------------------------------------------------------------------------------------------

    def _find(self, event: Mapping[str, Any]) -> _Block | None:
        """The open block that an event means: by its index, or the last one when it gives none."""
        index = event.get("index")
        if isinstance(index, int):
            return self._open.get(index)
        last = self._blocks[-1] if self._blocks else None
        return last if last is not None and not last.closed else None

    def _block_start(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        start = event.get("content_block")
        if not isinstance(start, dict):
            return
        if (previous := self._find(event)) is not None:
            self._close([previous], deltas)
        index = event.get("index")
        block = _Block(start, index if isinstance(index, int) else None)
        self._blocks.append(block)
        if block.index is not None:
            self._open[block.index] = block
        if block.kind == "tool_use":
            block.call = self._calls
            self._calls += 1
            self._settle(deltas)
            deltas.append(CallDelta(block.call, block.id, block.name, ""))
        elif block.kind in ("text", "thinking"):
            self._tell(block, start.get(block.kind), deltas)
        elif block.kind == "fallback":
            # Another model took over; an unstreamed message names the last one.
            model = target.get("model") if isinstance(target := start.get("to"), dict) else None
            if isinstance(model, str) and self._message is not None:
                self._message["model"] = model

    def _block_delta(self, event: Mapping[str, Any], deltas: list[Delta]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, dict) or not isinstance(kind := delta.get("type"), str):
            return
        block = self._find(event)
        if block is None:
            beginning = _BEGINNINGS.get(kind)
            if beginning is None:
                return
            self._block_start({"index": event.get("index"), "content_block": beginning}, deltas)
            block = self._blocks[-1]
        self._tell(block, block.add(kind, delta), deltas)

    def _tell(self, block: _Block, piece: Any, deltas: list[Delta]) -> None:
        """Say what arrived, where it is anything to read."""
        if not isinstance(piece, str) or not piece:
            return
        piece = block.readable(piece)
        if piece:
            deltas.append(self._delta(block, piece))

    def _delta(self, block: _Block, piece: str) -> Delta:
        if block.call >= 0:
            return CallDelta(block.call, block.id, block.name, piece)
        return TextDelta(piece) if block.kind == "text" else ReasoningDelta(piece)

    def _close(self, blocks: Sequence[_Block], deltas: list[Delta]) -> None:
        for block in blocks:
            if block.closed:
                continue
            block.closed = True
            if block.index is not None and self._open.get(block.index) is block:
                del self._open[block.index]
            if block.half:
                deltas.append(self._delta(block, "\ufffd"))
            if block.call >= 0 and not block.json and block.start.get("input"):
                deltas.append(self._delta(block, encode_text(block.start["input"])))
        self._settle(deltas)

    def _settle(self, deltas: list[Delta]) -> None:
        """Read the blocks that are closed, and tell which calls are done.

        The last call of an answer that was cut is a truncated one however whole it looks, so a call is done only when
        another one began, or when the answer is known not to be cut.
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


class _Block:
    """A content block as far as it has arrived.

    Attributes:
        start: The block as its first event gave it.
        kind: Its type.
        id: Its id, where it has one.
        name: The name of the tool, of a call.
        index: Its index on the wire, where it has one.
        call: Which call for the client it is; -1 for none.
        closed: Nothing more is taken.
        json: The pieces of its input.
        half: The first half of a character that was cut in two.
    """

    __slots__ = (
        "_citations",
        "_pieces",
        "_values",
        "call",
        "closed",
        "half",
        "id",
        "index",
        "json",
        "kind",
        "name",
        "start",
    )

    def __init__(self, start: Mapping[str, Any], index: int | None) -> None:
        self.start = start
        self.kind = _text(start.get("type"))
        self.id = _text(start.get("id"))
        self.name = _text(start.get("name"))
        self.index = index
        self.call = -1
        self.closed = False
        self.half = ""
        self._pieces: dict[str, list[str]] = {}
        self.json: list[str] = []
        self._citations: list[Any] = []
        self._values: dict[str, Any] = {}

    def add(self, kind: str, delta: Mapping[str, Any]) -> str:
        """Take a delta, and give the piece of it that can be told."""
        if kind == "input_json_delta":
            return self._add_input(delta.get("partial_json"))
        if self.kind not in _SEALED:
            self._add_fields(delta)
            return ""
        if _BELONGS.get(kind) != self.kind:
            return ""
        if kind == "citations_delta":
            self._citations.append(delta.get("citation"))
            return ""
        key = "signature" if kind == "signature_delta" else self.kind
        piece = delta.get(key)
        if not isinstance(piece, str):
            return ""
        self._add_piece(key, piece)
        return piece if key == self.kind else ""

    def _add_input(self, piece: Any) -> str:
        if (
            not isinstance(piece, str)
            or not piece
            or self.kind in ("text", "thinking", "redacted_thinking")
        ):
            return ""
        self.json.append(piece)
        return piece if self.call >= 0 else ""

    def _add_fields(self, delta: Mapping[str, Any]) -> None:
        """Take what an unknown delta holds, as `compaction_delta` does: texts go on, other values are as last given."""
        for key, value in delta.items():
            if key == "type":
                continue
            if isinstance(value, str):
                self._add_piece(key, value)
            elif value is not None or key not in self.start:
                self._values[key] = value

    def _add_piece(self, key: str, piece: str) -> None:
        pieces = self._pieces.get(key)
        if pieces is None:
            given = self.start.get(key)
            pieces = self._pieces[key] = [given] if isinstance(given, str) else []
        pieces.append(piece)

    def readable(self, piece: str) -> str:
        """`piece` as text that can be encoded: half a character at its end waits for the other half."""
        piece, self.half = self.half + piece, ""
        if _HIGH_SURROGATES[0] <= piece[-1] <= _HIGH_SURROGATES[1]:
            piece, self.half = piece[:-1], piece[-1]
        return json_values.clean_text(piece)

    def value(self) -> dict[str, Any]:
        """The block as an unstreamed message would hold it."""
        value = {**self.start, **self._values}
        for key, pieces in self._pieces.items():
            value[key] = "".join(pieces)
        if self.json:
            text = "".join(self.json)
            if not text.isspace():
                value["input"] = _input(text)
        if self._citations:
            given = value.get("citations")
            value["citations"] = [*(given if isinstance(given, list) else ()), *self._citations]
        return value


def _text(value: Any) -> str:
    return json_values.clean_text(value) if isinstance(value, str) else ""


def _input(text: str) -> Any:
    try:
        return json_values.decode(text)
    except (ValueError, RecursionError):
        return UnparsedInput(json_values.clean_text(text))


def _event(chunk: Any) -> Mapping[str, Any]:
    if isinstance(chunk, Mapping):
        return chunk
    # What the SDK's helper streams give beside the events themselves holds all that came so far, again and again.
    kind = getattr(chunk, "type", None)
    if kind == "content_block_delta":
        # Most of a stream: a dump of each would cost more than all the rest of reading it.
        delta: Any = getattr(chunk, "delta", None)
        what = str(getattr(delta, "type", ""))
        field = _TEXT_FIELDS.get(what)
        if field is not None and not getattr(delta, "model_extra", None):
            text, index = getattr(delta, field, None), getattr(chunk, "index", None)
            if isinstance(text, str) and isinstance(index, int):
                return {"type": kind, "index": index, "delta": {"type": what, field: text}}
    elif kind == "content_block_stop" and isinstance(index := getattr(chunk, "index", None), int):
        return {"type": kind, "index": index}
    elif kind == "message_stop":
        return {"type": kind}
    return event_object(chunk) if isinstance(kind, str) and kind in _EVENTS else {}


_TEXT_FIELDS = {
    "input_json_delta": "partial_json",
    "text_delta": "text",
    "thinking_delta": "thinking",
}


if TYPE_CHECKING:
    from lutumpy.core.streaming import PieceDecoder

    _PIECES: type[PieceDecoder] = MessagesStreamDecoder
