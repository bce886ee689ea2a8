"""A streamed Responses answer: its last event holds the whole of it, or its items are put together from their own events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from lutumpy.adapters.openai.reply_fields import mapping, model_text, text
from lutumpy.adapters.openai.responses.decode import (
    CALLS,
    PENDING,
    OutputReading,
    decode_response,
    pending_error,
)
from lutumpy.adapters.openai.responses.encode import API
from lutumpy.adapters.openai.responses.item_ids import ids_fit
from lutumpy.adapters.openai.responses.stream_items import StreamedItem, StreamedItems, parts_of
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.core.items import AssistantTurn
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

__all__ = ["ResponsesStreamDecoder"]

_BEGINNING = frozenset({"response.created", "response.in_progress", "response.queued"})
_END = frozenset(
    {"response.completed", "response.incomplete", "response.cancelled", "response.failed"}
)
_FUNCTION_PIECE = "response.function_call_arguments.delta"
# The kind of item that a piece is of, and for a text its kind of part and the name of the part's number.
_ARGUMENTS = {
    _FUNCTION_PIECE: "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}
_TEXTS = {
    "response.output_text.delta": ("message", "output_text", "content_index"),
    "response.refusal.delta": ("message", "refusal", "content_index"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary_text", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "reasoning_text", "content_index"),
}


class ResponsesStreamDecoder:
    """A `StreamDecoder` for Responses."""

    __slots__ = (
        "_answer",
        "_items",
        "_reading",
        "_ready",
        "_seen_ids",
        "_started",
        "_taken",
        "_told",
        "_turn",
    )

    def __init__(self) -> None:
        self._started = False
        self._answer: dict[str, Any] = {}
        self._items = StreamedItems()
        self._turn: AssistantTurn | None = None
        # The complete items are read as they come, for the calls; see `_read`.
        self._reading = OutputReading(self._items.outputs)
        self._taken = 0
        self._seen_ids: set[Any] = set()
        self._ready = True
        self._told: set[int] = set()

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: an object of the SDK, or a dict. Unknown ones are ignored.

        Raises:
            AdapterError: the event says that the answer failed; `.partial` is what had arrived.
        """
        event = event_object(chunk)
        kind = event.get("type")
        out: list[Delta] = []
        if not isinstance(kind, str):
            if event.get("error"):
                self._fail(event)
        elif kind in _TEXTS:
            self._text(event, *_TEXTS[kind], out)
        elif kind in _ARGUMENTS:
            self._arguments(event, _ARGUMENTS[kind], out)
        elif kind == "response.output_item.added":
            if isinstance(item := event.get("item"), dict):
                self._begin(out)
                self._items.begin(event, item)
                self._number(out)
        elif kind == "response.output_item.done":
            if isinstance(item := event.get("item"), dict):
                self._begin(out)
                self._item_done(event, item, out)
        elif kind in _BEGINNING:
            self._answer = mapping(event.get("response")) or self._answer
            self._begin(out)
        elif kind in _END:
            self._end(event, kind.removeprefix("response."), out)
        elif kind == "error" or event.get("error"):
            self._fail(event)
        return out

    def piece(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a piece of a function's arguments; see `PieceDecoder`."""
        try:
            if type(chunk) is dict:
                if chunk["type"] != _FUNCTION_PIECE:
                    return None
                piece, entry = chunk["delta"], self._items.open_functions[chunk["item_id"]]
            else:
                if chunk.type != _FUNCTION_PIECE:
                    return None
                piece, entry = chunk.delta, self._items.open_functions[chunk.item_id]
        except (AttributeError, KeyError, TypeError):
            return None
        if entry.call is None or type(piece) is not str:
            return None
        entry.arguments.append(piece)
        entry.told += len(piece)
        return entry.call, piece

    def gather(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, and tell nothing. Raises as `feed` does."""
        piece, feed = self.piece, self.feed
        for chunk in chunks:
            if piece(chunk) is None:
                feed(chunk)

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, when the stream has ended.

        Raises:
            AdapterError: it ended before its last event; `.partial` is what had arrived.
        """
        if self._turn is None:
            raise self._ended_early(request_id)
        return replace(self._turn, request_id=request_id)

    def _ended_early(self, request_id: str | None) -> AdapterError:
        if self._answer.get("background") and self._answer.get("status") in PENDING:
            # It goes on without the stream: asking again would make a second one.
            error = pending_error(self._answer, request_id)
        else:
            error = AdapterError(
                f"{API}: the stream ended before its last event",
                provider=API,
                retryable=True,
                request_id=request_id,
            )
        error.partial = self.partial()
        return error

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        if not self._started:
            return None
        return replace(self._turn or decode_response(self._gathered(self._answer)), cut=True)

    def _gathered(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer whose output is what the events of its items gave."""
        return {**answer, "output": [entry.whole() for entry in self._items.items]}

    def _begin(self, out: list[Delta]) -> None:
        if not self._started:
            self._started = True
            out.append(Started(text(self._answer.get("model")), text(self._answer.get("id"))))

    def _fail(self, event: Mapping[str, Any]) -> None:
        error = error_body(event, API) or AdapterError(f"{API}: the answer failed", provider=API)
        error.partial = self.partial()
        raise error

    def _text(
        self, event: Mapping[str, Any], kind: str, part: str, number: str, out: list[Delta]
    ) -> None:
        piece = event.get("delta")
        if not isinstance(piece, str):
            return
        self._begin(out)
        entry = self._items.about(event, kind)
        further = entry.add_part(part, event.get(number), piece)
        if piece:
            _tell(entry, part, piece, further, out)

    def _arguments(self, event: Mapping[str, Any], kind: str, out: list[Delta]) -> None:
        piece = event.get("delta")
        if not isinstance(piece, str):
            return
        self._begin(out)
        entry = self._items.about(event, kind)
        entry.arguments.append(piece)
        if entry.call is None:
            self._number(out)
        else:
            self._tell_call(entry, entry.call, piece, out)

    def _number(self, out: list[Delta]) -> None:
        """Tell the calls whose number has become known."""
        for entry in self._items.count():
            if entry.kind in CALLS and entry.call is not None:
                self._tell_call(entry, entry.call, entry.text_of_arguments(), out)

    def _tell_call(self, entry: StreamedItem, index: int, piece: str, out: list[Delta]) -> None:
        entry.told += len(piece)
        out.append(
            CallDelta(
                index,
                model_text(entry.item.get("call_id")),
                text(entry.item.get("name")) or "",
                piece,
            )
        )

    def _item_done(self, event: Mapping[str, Any], item: dict[str, Any], out: list[Delta]) -> None:
        entry = self._items.end(event, item)
        summed = entry.said("summary_text")
        for part, piece in parts_of(item):
            # A host that sends no pieces of it. Of reasoning, the decoder reads the summary, or else the text.
            if part == "summary_text":
                summed = summed or bool(piece)
            if piece and not entry.said(part) and not (part == "reasoning_text" and summed):
                further = entry.add_part(f"{part}, whole", len(entry.parts), piece)
                _tell(entry, part, piece, further, out)
        self._number(out)
        if entry.call is not None and entry.kind in CALLS:
            whole = entry.text_of_arguments()
            if len(whole) > entry.told and (
                not entry.told or whole.startswith("".join(entry.arguments))
            ):
                self._tell_call(entry, entry.call, whole[entry.told :], out)
        self._read(out)

    def _read(self, out: list[Delta]) -> None:
        """Read the complete items in order, and tell the functions that are complete by that.

        A call waits for the end of the answer where what follows may still change what it is: after an item that isn't
        complete, where ids have to be left out, and without whole arguments (an answer that is cut later cuts those).
        """
        items = self._items.items
        while self._ready and self._taken < len(items):
            entry = items[self._taken]
            if not entry.done or self._taken >= self._items.counted:
                break
            self._taken += 1
            kept = len(self._reading.items)
            self._reading.take(entry.item)
            added = self._reading.items[kept:]
            if not ids_fit(added) or any(
                item["id"] in self._seen_ids for item in added if item.get("id") is not None
            ):
                self._ready = False
                break
            self._seen_ids.update(item["id"] for item in added if item.get("id") is not None)
            if entry.call is not None and len(self._reading.calls) == entry.call + 1:
                call = self._reading.calls[-1]
                if call.kind == "function" and not call.incomplete and _is_object(call.arguments):
                    self._told.add(entry.call)
                    out.append(CallDone(entry.call, call))

    def _end(self, event: Mapping[str, Any], status: str, out: list[Delta]) -> None:
        answer = mapping(event.get("response"))
        if status == "failed" or answer.get("error"):
            # It says what the failed answer cost.
            self._answer = {**self._answer, **answer}
            self._started = True
            self._fail(answer)
        self._begin(out)
        output = answer.get("output")
        done = sum(entry.done for entry in self._items.items)
        ended = text(answer.get("status"))
        # The event is the last one, whatever a host leaves in the status.
        answer = {
            **self._answer,
            **answer,
            "status": status if ended is None or ended in PENDING else ended,
        }
        if not isinstance(output, list) or len(output) < done:
            answer = self._gathered(answer)
        elif not self._items.items:
            for index, item in enumerate(output):
                if isinstance(item, dict):
                    self._item_done({"output_index": index}, item, out)
        self._turn = turn = decode_response(answer)
        self._tell_rest(turn, out)

    def _tell_rest(self, turn: AssistantTurn, out: list[Delta]) -> None:
        """Tell the calls that had to wait for the end of the answer."""
        begun = {
            entry.call
            for entry in self._items.items
            if entry.call is not None and entry.kind in CALLS
        }
        for index, call in enumerate(turn.calls):
            if index not in begun:
                out.append(CallDelta(index, call.id, call.name, call.arguments))
            last = turn.cut and index == len(turn.calls) - 1
            if index not in self._told and not last and not call.incomplete:
                self._told.add(index)
                out.append(CallDone(index, call))


def _tell(entry: StreamedItem, part: str, piece: str, further: bool, out: list[Delta]) -> None:
    if part == "output_text":
        out.append(TextDelta(piece))
    elif part == "refusal":
        out.append(RefusalDelta(piece))
    elif part == "summary_text":
        out.append(ReasoningDelta(f"\n\n{piece}" if further else piece))
    elif not entry.said("summary_text"):
        out.append(ReasoningDelta(piece))


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(from_json(arguments), dict)
    except (ValueError, TypeError):  # a lone surrogate makes it no string for the parser
        return False


if TYPE_CHECKING:
    from lutumpy.core.streaming import PieceDecoder

    _PIECES: type[PieceDecoder] = ResponsesStreamDecoder
