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
#                        `{"functionCall": {}}`, another call begins, or the stream ends. What comes
#                        in between has no name, so it belongs to the open one.
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
from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import (
    CallDelta,
    CallDone,
    Delta,
    ReasoningDelta,
    Started,
    TextDelta,
)
from lutumpy.errors import AdapterError
from lutumpy.plain.json_values import clean_text
from lutumpy.rules.gemini.fields import field, key_of, listed_in

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
        text, self.half = self.half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self.half = text[:-1], text[-1]
        return clean_text(text)

    def part(self) -> dict[str, Any]:
        """The part as a whole answer has it."""
        part: dict[str, Any] = {"text": "".join(self.pieces)}
        return {**part, "thought": True} if self.thought else part


class _OpenCall:
    """A call whose arguments are arriving."""

    __slots__ = ("arguments", "call", "key", "part")

    def __init__(self, part: dict[str, Any], call: Mapping[str, Any]) -> None:
        self.key = key_of(part, "functionCall")
        self.part = part
        self.call = call
        self.arguments = PartialArguments(call.get("args"))

    def add(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        """Take what a later part says of it."""
        for piece in listed_in(call, "partialArgs"):
            self.arguments.add(piece)
        for name, value in part.items():
            if name != key_of(part, "functionCall"):
                self.part.setdefault(name, value)

    def whole(self) -> dict[str, Any]:
        """The part as a whole answer has it."""
        left_out = ("partialArgs", "partial_args", "willContinue", "will_continue", "args")
        call = {name: value for name, value in self.call.items() if name not in left_out}
        return {**self.part, self.key: {**call, "args": self.arguments.finish()}}


class GeminiStreamDecoder:
    """A `StreamDecoder` for the chunks of streamGenerateContent."""

    __slots__ = (
        "_answer",
        "_call",
        "_candidate",
        "_done",
        "_ended",
        "_reader",
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
        self._done = 0
        self._started = self._ended = False
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next chunk: an object of the SDK, a dict, or several in a list, as a stream
        without `alt=sse` has them. What is no chunk is ignored.

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
            AdapterError: no chunk said why the answer ended; `.partial` is what had arrived.
        """
        if not self._ended:
            raise AdapterError(
                f"{API}: the stream ended before the answer did: no chunk has a finishReason",
                provider=API,
                retryable=True,
                request_id=request_id,
                partial=self.partial(),
            )
        if self._turn is None:
            self._close([])
            self._turn = self._reader.turn(self._response(), request_id)
        return self._turn

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut off; `None` if nothing has. Never raises."""
        reader = PartReader()
        for part in self._reader.native:
            reader.read(part)
        if self._text is not None:
            reader.read(self._text.part())
        if self._call is not None:
            # Read, but not closed: more may come for it.
            reader.read({**self._call.part, self._call.key: {**self._call.call, "args": {}}})
        if not reader.blocks and not self._candidate:
            return None
        return replace(reader.turn(self._response(), None), cut=True)

    # --- what a chunk says ------------------------------------------------------------------------

    def _take_fields(self, value: Mapping[str, Any]) -> None:
        for name, given in value.items():
            if given is None or name == "candidates":
                continue
            before = self._answer.get(name)
            if isinstance(given, dict) and isinstance(before, dict):
                given = {**before, **given}
            self._answer[name] = given
        for name, given in first_candidate(value).items():
            if given is not None and name != "content":
                self._candidate[name] = given

    def _response(self) -> dict[str, Any]:
        return {**self._answer, **({"candidates": [self._candidate]} if self._candidate else {})}

    def _take_part(self, part: Any, deltas: list[Delta]) -> None:
        if not isinstance(part, dict):
            return
        part = {name: value for name, value in part.items() if value is not None}
        call = field(part, "functionCall")
        if isinstance(call, dict):
            self._take_call(part, call, deltas)
            return
        text = part.get("text")
        if isinstance(text, str) and _TEXT_KEYS.issuperset(part):
            self._take_text(part, text, deltas)
            return
        self._close(deltas)
        self._reader.read(part)
        if isinstance(text, str) and text:
            thought = part.get("thought") is True
            shown = clean_text(text)
            deltas.append(ReasoningDelta(shown) if thought else TextDelta(shown))

    def _take_text(self, part: dict[str, Any], text: str, deltas: list[Delta]) -> None:
        if not text:
            return
        if self._text is None or self._text.thought != (part.get("thought") is True):
            self._close(deltas)
            self._text = _OpenText(part)
        shown = self._text.add(text)
        if shown:
            deltas.append(ReasoningDelta(shown) if self._text.thought else TextDelta(shown))

    def _take_call(self, part: dict[str, Any], call: dict[str, Any], deltas: list[Delta]) -> None:
        goes_on = field(call, "willContinue") is True
        pieces = listed_in(call, "partialArgs")
        if self._call is not None and not call.get("name"):
            self._call.add(part, call)
            if not goes_on:
                self._close(deltas)
            return
        self._close(deltas)
        if not goes_on and not pieces:
            if call.get("name") or len(call) > 0:
                self._read_call(part, deltas)
            return
        self._call = _OpenCall(part, call)
        self._call.add({}, call)
        if not goes_on:
            self._close(deltas)

    # --- parts that are complete ------------------------------------------------------------------

    def _close(self, deltas: list[Delta]) -> None:
        """Nothing more comes for the part that is open."""
        text, self._text = self._text, None
        call, self._call = self._call, None
        if text is not None:
            if text.half:
                deltas.append(ReasoningDelta("\ufffd") if text.thought else TextDelta("\ufffd"))
            self._reader.read(text.part())
        if call is not None:
            self._read_call(call.whole(), deltas)

    def _read_call(self, part: dict[str, Any], deltas: list[Delta]) -> None:
        index = len(self._reader.calls)
        self._reader.read(part)
        deltas += [
            CallDelta(index, call.id, call.name, call.arguments, call.kind)
            for call in self._reader.calls[index:]
        ]

    def _report_done(self, deltas: list[Delta]) -> None:
        calls = self._reader.calls
        if self._done == len(calls) and self._call is None:
            return
        has_calls = bool(calls) or self._call is not None
        if self._ended and not is_cut(self._response(), has_calls):
            if self._call is not None:
                self._close(deltas)
            sure = len(calls)
        else:
            sure = len(calls) - (self._call is None)
        while self._done < sure:
            deltas.append(CallDone(self._done, calls[self._done]))
            self._done += 1
