"""The stream decoder of generateContent: chunks in; text, reasoning and calls out as they arrive;
and at the end the turn that the API would have given unstreamed.
"""

# What is hard here
# -----------------
# Each chunk is a whole response with a part of the content. The turn must equal the unstreamed one,
# so parts aren't understood here: each goes to `PartReader`, which reads whole answers, as soon as
# nothing can be added to it.
#
#   part:   text         open until a part comes that it doesn't go on in; pieces of one kind (both
#                        thoughts or both not) are one text. A part with a signature is always one
#                        of its own: the API wants it back as it came.
#           call         whole, unless it says that it continues: then it is open until a part says
#                        `{"functionCall": {}}`, another call begins, or the stream ends. Pieces of
#                        arguments have no name, so they belong to the open call; other parts that
#                        come in between wait until it is read. Pieces that come when no call is
#                        open are of the last one, which lacked them and isn't run.
#           any other    whole
#
#   answer: begun -----> ended ----------> finished
#           any chunk    a finishReason    finish()
#                        or blockReason
#
# Chunks may follow the one that ends the answer (usage, a closing empty text), so they are read
# until `finish`. Without a reason the answer broke off, and `finish` raises.
#
# A call is done when another one began, or when the reason says that the answer wasn't cut.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.adapters.gemini.decode import API, PartReader, first_candidate, has_ended, is_cut
from lutumpy.adapters.gemini.errors import response_error
from lutumpy.adapters.gemini.partial_args import PartialArguments
from lutumpy.adapters.gemini.sdk_objects import chunk_object
from lutumpy.adapters.provider_errors import early_end
from lutumpy.adapters.replies import without_nulls
from lutumpy.adapters.unknown_calls import deltas_of_waiting
from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import (
    CallDone,
    Delta,
    ReasoningDelta,
    Started,
    TextDelta,
)
from lutumpy.plain.json_values import clean_text, copied, hold_half
from lutumpy.rules.gemini.fields import field, key_of

__all__ = ["GeminiStreamDecoder"]

_TEXT_KEYS = frozenset({"text", "thought"})


class _OpenText:
    """A text that may go on."""

    __slots__ = ("half", "pieces", "thought")

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.thought = part.get("thought") is True
        self.pieces: list[str] = []
        # The first half of a character that was cut in two.
        self.half = ""

    def add(self, text: str) -> str:
        """Take a piece; gives what of it can be shown."""
        self.pieces.append(text)
        text, self.half = hold_half(self.half + text)
        return clean_text(text)

    def part(self) -> dict[str, Any]:
        """The part as a whole answer has it."""
        part: dict[str, Any] = {"text": "".join(self.pieces)}
        return {**part, "thought": True} if self.thought else part


class _OpenCall:
    """A call whose arguments are arriving."""

    __slots__ = ("_key", "arguments", "behind", "part")

    def __init__(self, part: dict[str, Any], call: dict[str, Any]) -> None:
        self._key = key_of(part, "functionCall")
        self.part = {**part, self._key: {**call}}
        self.arguments = PartialArguments()
        self.arguments.take(call)
        # The parts that came after it began, but for its own.
        self.behind: list[dict[str, Any]] = []

    def add(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        """Take what a later part says of it."""
        self.arguments.take(call)
        for name, value in part.items():
            if name != key_of(part, "functionCall"):
                self.part.setdefault(name, value)
        for name, value in call.items():
            if value is not None:
                self.part[self._key].setdefault(name, value)

    def goes_on_in(self, call: Mapping[str, Any]) -> bool:
        """Whether another part is of this call: it has no name, as those of the API; or it repeats
        the id, or brings more arguments under the same name.
        """
        began = self.part[self._key]
        if not call.get("name"):
            return True
        if call.get("id") and began.get("id"):
            return bool(call["id"] == began["id"])
        return call["name"] == began.get("name") and field(call, "partialArgs") is not None


class GeminiStreamDecoder:
    """A `StreamDecoder` for the chunks of streamGenerateContent."""

    __slots__ = (
        "_answer",
        "_call",
        "_candidate",
        "_done",
        "_ended",
        "_reader",
        "_reported",
        "_started",
        "_text",
        "_turn",
    )

    def __init__(self) -> None:
        # Everything of the answer but its parts, as last given.
        self._answer: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._reader = PartReader()
        self._text: _OpenText | None = None
        self._call: _OpenCall | None = None
        # How many calls were reported, and how many of them are done.
        self._reported = self._done = 0
        self._started = self._ended = False
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next chunk: an object of the SDK, a dict, or several in a list, as a stream
        without `alt=sse` has them. What isn't a chunk is ignored.

        Raises:
            AdapterError: the chunk is an error; `.partial` is what had arrived.
        """
        if isinstance(chunk, (list, tuple)):
            return [delta for entry in chunk for delta in self.feed(entry)]
        value = chunk_object(chunk)
        error = response_error(value)
        if error is not None:
            error.partial = self.partial()
            raise error
        deltas: list[Delta] = []
        if not self._started and value:
            self._started = True
            model, response_id = field(value, "modelVersion"), field(value, "responseId")
            deltas.append(
                Started(
                    model if isinstance(model, str) else None,
                    response_id if isinstance(response_id, str) else None,
                )
            )
        self._take_fields(value)
        content = first_candidate(value).get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            self._take_part(part, deltas)
        if has_ended(value):
            self._ended = True
        self._report_done(deltas)
        return deltas

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, when the stream has ended.

        Raises:
            AdapterError: no chunk gave a reason for the end; `.partial` is what had arrived.
        """
        if not self._ended:
            what = "the stream ended before the answer did: no chunk has a finishReason"
            raise early_end(API, what, request_id, self.partial())
        if self._turn is None:
            self._close_text([])
            self._close_call([])
            self._turn = self._reader.turn(self._response(), request_id)
        return self._turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut off; `None` if nothing has. Never raises."""
        reader = PartReader()
        for part in self._reader.native:
            reader.read(part)
        if self._call is not None:
            # Read, but not closed: more may come for it.
            reader.read_gathered(self._call.part, PartialArguments())
            for part in self._call.behind:
                reader.read(part)
        if self._text is not None:
            reader.read(self._text.part())
        if not reader.blocks and not self._candidate:
            return None
        return replace(reader.turn(self._response(), None), cut=True)

    # --- what a chunk says ------------------------------------------------------------------------

    def _take_fields(self, value: Mapping[str, Any]) -> None:
        for name, inner in value.items():
            if inner is None or name == "candidates":
                continue
            before = self._answer.get(name)
            if isinstance(inner, dict) and isinstance(before, dict):
                inner = {**before, **inner}
            self._answer[name] = copied(inner)
        for name, inner in first_candidate(value).items():
            if inner is not None and name != "content":
                self._candidate[name] = copied(inner)

    def _response(self) -> dict[str, Any]:
        return {**self._answer, **({"candidates": [self._candidate]} if self._candidate else {})}

    def _take_part(self, part: Any, deltas: list[Delta]) -> None:
        if not isinstance(part, dict):
            return
        part = without_nulls(part)
        text = part.get("text")
        if isinstance(text, str) and _TEXT_KEYS.issuperset(part):
            self._take_text(part, text, deltas)
            return
        part = copied(part)
        call = field(part, "functionCall")
        if isinstance(call, dict):
            self._take_call(part, call, deltas)
            return
        self._close_text(deltas)
        self._keep(part)
        if isinstance(text, str) and text:
            thought = part.get("thought") is True
            shown = clean_text(text)
            deltas.append(ReasoningDelta(shown) if thought else TextDelta(shown))

    def _take_text(self, part: dict[str, Any], text: str, deltas: list[Delta]) -> None:
        if not text:
            return
        if self._text is None or self._text.thought != (part.get("thought") is True):
            self._close_text(deltas)
            self._text = _OpenText(part)
        shown = self._text.add(text)
        if shown:
            deltas.append(ReasoningDelta(shown) if self._text.thought else TextDelta(shown))

    def _take_call(self, part: dict[str, Any], call: dict[str, Any], deltas: list[Delta]) -> None:
        goes_on = field(call, "willContinue") is True
        has_pieces = field(call, "partialArgs") is not None
        if self._call is not None and self._call.goes_on_in(call):
            self._call.add(part, call)
            if not goes_on:
                self._close_call(deltas)
            return
        self._close_text(deltas)
        self._close_call(deltas)
        if self._reader.is_stray(call):
            self._reader.read(part)
        elif goes_on or has_pieces:
            self._call = _OpenCall(part, call)
            if not goes_on:
                self._close_call(deltas)
        elif call:
            self._read_call(part, None, deltas)

    # --- parts that are complete ------------------------------------------------------------------

    def _close_text(self, deltas: list[Delta]) -> None:
        """Nothing more comes for the text that is open."""
        text, self._text = self._text, None
        if text is None:
            return
        if text.half:
            deltas.append(ReasoningDelta("\ufffd") if text.thought else TextDelta("\ufffd"))
        self._keep(text.part())

    def _keep(self, part: dict[str, Any]) -> None:
        """Read a part that is complete, as soon as what came before it is."""
        if self._call is None:
            self._reader.read(part)
        else:
            self._call.behind.append(part)

    def _close_call(self, deltas: list[Delta]) -> None:
        """Nothing more comes for the call that is open."""
        call, self._call = self._call, None
        if call is None:
            return
        self._read_call(call.part, call.arguments, deltas)
        for part in call.behind:
            self._reader.read(part)

    def _read_call(
        self, part: dict[str, Any], arguments: PartialArguments | None, deltas: list[Delta]
    ) -> None:
        if arguments is None:
            self._reader.read(part)
        else:
            self._reader.read_gathered(part, arguments)
        if not self._reader.unknown_calls:
            self._report_calls(deltas)

    def _report_calls(self, deltas: list[Delta]) -> None:
        deltas += deltas_of_waiting(self._reader.calls, self._reported)
        self._reported = len(self._reader.calls)

    def _report_done(self, deltas: list[Delta]) -> None:
        calls, waiting = self._reader.calls, bool(self._reader.unknown_calls)
        if self._done == len(calls) and self._call is None and not waiting:
            return
        has_calls = bool(calls) or self._call is not None
        if self._ended and not is_cut(self._response(), has_calls or waiting):
            self._close_call(deltas)
            self._reader.settle_calls()
            self._report_calls(deltas)
            sure = len(calls)
        elif waiting:
            # The indexes of the calls behind one that may be none are known at the end.
            sure = self._reported - 1
        else:
            sure = len(calls) - (self._call is None)
        while self._done < sure:
            deltas.append(CallDone(self._done, calls[self._done]))
            self._done += 1
