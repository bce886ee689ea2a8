"""A streamed Responses reply: its last event has all of it, unless a host leaves items out."""

# The stream is a list of items, each with events of its own:
#
#   response.created, .in_progress, .queued       the reply begins
#     response.output_item.added                  an item begins
#       response.output_text.delta, ...           a delta of its text
#       response.function_call_arguments.delta    a delta of its arguments
#     response.output_item.done                   the item as a whole
#   response.completed, .incomplete, ...          the reply as a whole
#
# `StreamedItems` knows the items so far. What is hard is to report a call as soon as nothing can
# change it, with the index that it has in the finished turn (rule S1). Complete items are therefore
# read in their order by `OutputReading`, which reads whole replies as well. Each call goes through:
#
#   state     | what has happened                           | what is reported
#   ----------+---------------------------------------------+------------------------------------
#   begun     | the item is there                           | nothing: whether it counts as a call
#             |                                             | may depend on an item that comes later
#   numbered  | of every item before it, it is known        | `CallDelta`, all arguments so far
#             | whether it is a call                        |
#   complete  | the item is done, so are those before it,   | `CallDone`
#             | and its arguments are a JSON object         |
#   at end    | the reply is there                          | what was not reported: `_report_rest`
#
# A call waits for the end where something that follows can still change it: ids that have to be
# left out, and arguments that are not whole, as in a reply that is cut.

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from lutumpy.adapters.openai.responses.stream_items import StreamedItem, StreamedItems, texts_of
from lutumpy.adapters.provider_errors import early_end, error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.adapters.short_way import ShortWayDecoder
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
from lutumpy.plain.json_values import copied

__all__ = ["ResponsesStreamDecoder"]

_BEGINNING = frozenset({"response.created", "response.in_progress", "response.queued"})
_END = frozenset(
    {"response.completed", "response.incomplete", "response.cancelled", "response.failed"}
)
# Events about what the application sent on its WebSocket: an error in them is none of the reply's.
_BESIDE = ("response.steer.", "response.inject.")
_FUNCTION_DELTA = "response.function_call_arguments.delta"
# Events with a delta of arguments, with the type of their item.
_ARGUMENTS = {
    _FUNCTION_DELTA: "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}
# Events with a delta of text: the type of their item, the kind of part, and the field of the event
# that says which part of this kind it is.
_TEXTS = {
    "response.output_text.delta": ("message", "output_text", "content_index"),
    "response.refusal.delta": ("message", "refusal", "content_index"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary_text", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "reasoning_text", "content_index"),
}


class ResponsesStreamDecoder(ShortWayDecoder):
    """A `StreamDecoder` for Responses."""

    __slots__ = (
        "_done_calls",
        "_items",
        "_may_read",
        "_read_count",
        "_reading",
        "_reply",
        "_seen_ids",
        "_started",
        "_turn",
    )

    def __init__(self) -> None:
        self._started = False
        # The reply as the first events have it, without its items.
        self._reply: dict[str, Any] = {}
        self._items = StreamedItems()
        # Set by the last event.
        self._turn: AssistantTurn | None = None
        # The complete items at the beginning are read as they come; see `_read_items`.
        self._reading = OutputReading(self._items.outputs)
        self._read_count = 0
        self._seen_ids: set[Any] = set()
        self._may_read = True
        # The indexes of calls with a `CallDone`.
        self._done_calls: set[int] = set()

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: an object of the SDK, or a dict.

        Unknown ones are ignored, but for one with the whole reply, which is the last: what comes
        behind that is ignored too.

        Raises:
            AdapterError: the event says that the reply failed; `.partial` is what had arrived.
        """
        if self._turn is not None:
            return ()
        event = event_object(chunk)
        kind = event.get("type")
        out: list[Delta] = []
        if not isinstance(kind, str):
            if event.get("error"):
                self._fail(event)
        elif kind in _TEXTS:
            self._take_text(event, *_TEXTS[kind], out)
        elif kind in _ARGUMENTS:
            self._take_arguments(event, _ARGUMENTS[kind], out)
        elif kind == "response.output_item.added":
            if isinstance(item := event.get("item"), dict):
                self._start(out)
                self._items.begin(event, item)
                self._report_numbered(out)
        elif kind == "response.output_item.done":
            if isinstance(item := event.get("item"), dict):
                self._start(out)
                self._take_item(event, item, out)
        elif kind in _BEGINNING:
            self._reply = copied(mapping(event.get("response"))) or self._reply
            self._start(out)
        elif kind in _END:
            self._end(event, kind.removeprefix("response."), out)
        elif kind == "error" or (event.get("error") and not kind.startswith(_BESIDE)):
            self._fail(event)
        elif (status := _final_status(event)) is not None:
            self._end(event, status, out)
        return out

    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a delta of a function's arguments; see `ArgumentsDecoder`."""
        try:
            if type(chunk) is dict:
                if chunk["type"] != _FUNCTION_DELTA:
                    return None
                delta, entry = chunk["delta"], self._items.open_functions[chunk["item_id"]]
            else:
                if chunk.type != _FUNCTION_DELTA:
                    return None
                delta, entry = chunk.delta, self._items.open_functions[chunk.item_id]
        except (AttributeError, KeyError, TypeError):
            return None
        if entry.call is None or type(delta) is not str:
            return None
        entry.arguments.append(delta)
        entry.reported += len(delta)
        return entry.call, delta

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole reply, when the stream has ended.

        Raises:
            AdapterError: it ended before its last event; `.partial` is what had arrived.
        """
        if self._turn is None:
            raise self._ended_early(request_id)
        return replace(self._turn, request_id=request_id)

    def _ended_early(self, request_id: str | None) -> AdapterError:
        if self._reply.get("background") and self._reply.get("status") in PENDING:
            # The reply goes on without the stream, and another request would make a second one: so
            # the error is not a retryable one.
            error = pending_error(self._reply, request_id)
            error.partial = self.partial()
            return error
        what = "the stream ended before its last event"
        return early_end(API, what, request_id, self.partial())

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        if not self._started:
            return None
        return replace(self._turn or decode_response(self._with_items(self._reply)), cut=True)

    def _with_items(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        """The reply with the items that their own events made up."""
        return {**reply, "output": [entry.whole() for entry in self._items.items]}

    def _start(self, out: list[Delta]) -> None:
        if not self._started:
            self._started = True
            out.append(Started(text(self._reply.get("model")), text(self._reply.get("id"))))

    def _fail(self, event: Mapping[str, Any]) -> None:
        error = error_body(event, API) or AdapterError(f"{API}: the answer failed", provider=API)
        error.partial = self.partial()
        raise error

    def _take_text(
        self, event: Mapping[str, Any], kind: str, part: str, number: str, out: list[Delta]
    ) -> None:
        delta = event.get("delta")
        if not isinstance(delta, str):
            return
        self._start(out)
        entry = self._items.about(event, kind)
        is_further = entry.add_text(part, event.get(number), delta)
        if delta:
            _report_text(entry, part, delta, is_further, out)

    def _take_arguments(self, event: Mapping[str, Any], kind: str, out: list[Delta]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, str):
            return
        self._start(out)
        entry = self._items.about(event, kind)
        entry.arguments.append(delta)
        if entry.call is None:
            self._report_numbered(out)
        else:
            self._report_call(entry, entry.call, delta, out)

    def _report_numbered(self, out: list[Delta]) -> None:
        """Report the calls whose index has become known."""
        for entry in self._items.number_calls():
            if entry.kind in CALLS and entry.call is not None:
                self._report_call(entry, entry.call, entry.text_of_arguments(), out)

    def _report_call(self, entry: StreamedItem, index: int, delta: str, out: list[Delta]) -> None:
        entry.reported += len(delta)
        call_id = model_text(entry.item.get("call_id"))
        kind = CALLS[entry.kind][0]
        out.append(CallDelta(index, call_id, text(entry.item.get("name")) or "", delta, kind))

    def _take_item(self, event: Mapping[str, Any], item: dict[str, Any], out: list[Delta]) -> None:
        """Take a complete item; report what its own events did not."""
        entry = self._items.end(event, item)
        has_summary = entry.has_text("summary_text")
        for part, found in texts_of(item):
            # Only of a host that sends no deltas. Of reasoning the decoder of whole replies reads
            # the summary, and the text only without one; so the text is not reported beside one.
            if part == "summary_text":
                has_summary = has_summary or bool(found)
            is_hidden = part == "reasoning_text" and has_summary
            if found and not entry.has_text(part) and not is_hidden:
                is_further = entry.add_text(f"{part}, whole", len(entry.parts), found)
                _report_text(entry, part, found, is_further, out)
        self._report_numbered(out)
        if entry.call is not None and entry.kind in CALLS:
            self._report_missing_arguments(entry, entry.call, out)
        self._read_items(out)

    def _report_missing_arguments(self, entry: StreamedItem, index: int, out: list[Delta]) -> None:
        """Report what a complete item has beyond the deltas of its arguments, if these agree."""
        whole = entry.text_of_arguments()
        if len(whole) <= entry.reported:
            return
        if not entry.reported or whole.startswith("".join(entry.arguments)):
            self._report_call(entry, index, whole[entry.reported :], out)

    def _read_items(self, out: list[Delta]) -> None:
        """Read the complete items in order, and report the functions that are complete by that.

        It stops for good at ids that don't fit: `OutputReading` may then change items that it has
        read before.
        """
        items = self._items.items
        while self._may_read and self._read_count < len(items):
            entry = items[self._read_count]
            if not entry.done or self._read_count >= self._items.counted:
                break
            self._read_count += 1
            kept = len(self._reading.items)
            self._reading.take(entry.item)
            added = self._reading.items[kept:]
            ids = [item["id"] for item in added if item.get("id") is not None]
            if not ids_fit(added) or any(item_id in self._seen_ids for item_id in ids):
                self._may_read = False
                break
            self._seen_ids.update(ids)
            if entry.call is None or len(self._reading.calls) != entry.call + 1:
                continue
            call = self._reading.calls[-1]
            if call.kind == "function" and not call.incomplete and _is_object(call.arguments):
                self._done_calls.add(entry.call)
                out.append(CallDone(entry.call, call))

    def _end(self, event: Mapping[str, Any], status: str, out: list[Delta]) -> None:
        reply = mapping(event.get("response"))
        if status == "failed" or reply.get("error"):
            # It says what the failed reply cost.
            self._reply = {**self._reply, **reply}
            self._started = True
            self._fail(reply)
        self._start(out)
        output = reply.get("output")
        ended = text(reply.get("status"))
        if ended is None or ended in PENDING:
            # The event is the last one, whatever a host leaves in the status.
            ended = status
        transformations = reply.get("input_transformations")
        if transformations is None:
            # A last event without them takes back nothing of what the first ones said.
            transformations = self._reply.get("input_transformations")
        reply = {
            **self._reply,
            **reply,
            "status": ended,
            "input_transformations": transformations,
        }
        done = sum(entry.done for entry in self._items.items)
        is_missing = not output and bool(self._items.items)
        if is_missing or not isinstance(output, list) or len(output) < done:
            # A host that leaves the output out of its last event.
            reply = self._with_items(reply)
        elif not self._items.items:
            # A host that sends nothing but the last event.
            for index, item in enumerate(output):
                if isinstance(item, dict):
                    self._take_item({"output_index": index}, item, out)
        self._turn = decode_response(reply)
        self._items.open_functions.clear()  # nothing more is taken, on the short way either
        self._report_rest(self._turn, out)

    def _report_rest(self, turn: AssistantTurn, out: list[Delta]) -> None:
        """Report the calls that had to wait for the end of the reply."""
        numbered = {
            entry.call
            for entry in self._items.items
            if entry.call is not None and entry.kind in CALLS
        }
        for index, call in enumerate(turn.calls):
            # What is to be approved comes whole: nothing of it arrives in pieces [API description].
            if index not in numbered and call.server_label is None:
                out.append(CallDelta(index, call.id, call.name, call.arguments, call.kind))
            is_cut = call.incomplete or (turn.cut and index == len(turn.calls) - 1)
            if index not in self._done_calls and not is_cut:
                self._done_calls.add(index)
                out.append(CallDone(index, call))


def _final_status(event: Mapping[str, Any]) -> str | None:
    """The status of the whole reply in an event of no known type; `None` if it has none."""
    status = text(mapping(event.get("response")).get("status"))
    return status if f"response.{status}" in _END else None


def _report_text(
    entry: StreamedItem, part: str, delta: str, is_further: bool, out: list[Delta]
) -> None:
    if part == "output_text":
        out.append(TextDelta(delta))
    elif part == "refusal":
        out.append(RefusalDelta(delta))
    elif part == "summary_text":
        # Between the parts of a summary is what the decoder of whole replies joins them with.
        out.append(ReasoningDelta(f"\n\n{delta}" if is_further else delta))
    elif not entry.has_text("summary_text"):
        out.append(ReasoningDelta(delta))


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(from_json(arguments), dict)
    except (ValueError, TypeError):
        return False  # not JSON; a TypeError is for a text with a lone surrogate


if TYPE_CHECKING:
    from lutumpy.core.streaming import ArgumentsDecoder

    _DECODER: type[ArgumentsDecoder] = ResponsesStreamDecoder
