"""The stream decoder of `/api/chat`: chunks in; text, thinking and calls out as they arrive; and at
the end the turn that the API would have given unstreamed.
"""

# What is hard here
# -----------------
# Each chunk is a whole answer with a part of the message, the last one has `"done": true` and the
# counts. Texts go on from chunk to chunk, calls come whole. So the message is put together here,
# and read at the end as a whole answer is.
#
#   begun ----------------> ended ---------------> finished
#   any chunk               `"done": true`         finish()
#
# A call is done when another one began, or when the answer ended without being cut: the text of the
# last call's arguments could have been cut off, and what is left of it could still look complete.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.adapters.ollama.decode import (
    API,
    MessageReader,
    call_entries,
    decode_answer,
    finish_of,
    text_of,
)
from lutumpy.adapters.provider_errors import early_end, error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.adapters.unknown_calls import deltas_of_waiting
from lutumpy.core.items import AssistantTurn, CallBlock
from lutumpy.core.streaming import CallDone, Delta, ReasoningDelta, Started, TextDelta
from lutumpy.plain.json_values import clean_text, copied, hold_half

__all__ = ["OllamaStreamDecoder"]


class _Gathered:
    """A text that arrives in pieces."""

    __slots__ = ("_half", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        # The first half of a character that was cut in two.
        self._half = ""

    def add(self, text: str) -> str:
        """Take a piece; gives what of it can be shown."""
        self.pieces.append(text)
        text, self._half = hold_half(self._half + text)
        return clean_text(text)

    def rest(self) -> str:
        """What is left to be shown at the end."""
        half, self._half = self._half, ""
        return clean_text(half)


class OllamaStreamDecoder:
    """A `StreamDecoder` for the chunks of `/api/chat`."""

    __slots__ = (
        "_answer",
        "_call_entries",
        "_content",
        "_done",
        "_ended",
        "_message",
        "_reader",
        "_reported",
        "_settled",
        "_started",
        "_thinking",
    )

    def __init__(self) -> None:
        # Everything of the answer but its message, as last given, and of the message but its texts
        # and calls.
        self._answer: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._content = _Gathered()
        self._thinking = _Gathered()
        self._call_entries: list[Any] = []
        # Reads the calls as they come, so that they can be reported.
        self._reader = MessageReader()
        self._reported = self._done = 0
        self._started = self._ended = self._settled = False

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next chunk: a dict, or an object of a client's. Anything else is ignored, and so
        is what comes behind the last one.

        Raises:
            AdapterError: the chunk is an error; `.partial` is what had arrived.
        """
        if self._ended:
            return ()
        value = event_object(chunk)
        error = error_body(value, API) if value.get("error") else None
        if error is not None:
            error.partial = self.partial()
            raise error
        deltas: list[Delta] = []
        if not self._started and value:
            self._started = True
            model = value.get("model")
            deltas.append(Started(model if isinstance(model, str) else None))
        for name, inner in value.items():
            if inner is not None and name != "message":
                self._answer[name] = copied(inner)
        message = value.get("message")
        if isinstance(message, dict):
            self._take_message(message, deltas)
        if value.get("done") is True:
            self._ended = True
            self._end_texts(deltas)
        self._report_calls(deltas)
        return deltas

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, when the stream has ended.

        Raises:
            AdapterError: no chunk said that the answer is done; `.partial` is what had arrived.
        """
        if not self._ended:
            what = "the stream ended before the answer did: no chunk is done"
            raise early_end(API, what, request_id, self.partial())
        return decode_answer(self._reply(), request_id)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut off; `None` if nothing has. Never raises."""
        turn = decode_answer(self._reply())
        return replace(turn, cut=True) if turn.blocks or self._ended else None

    # --- what a chunk says ------------------------------------------------------------------------

    def _take_message(self, message: Mapping[str, Any], deltas: list[Delta]) -> None:
        for name, value in message.items():
            if name in ("content", "thinking", "tool_calls"):
                continue
            if isinstance(value, list) and isinstance(self._message.get(name), list):
                self._message[name] = [*self._message[name], *copied(value)]
            elif value is not None:
                self._message[name] = copied(value)
        thinking, content = text_of(message.get("thinking")), text_of(message.get("content"))
        if thinking and (shown := self._thinking.add(thinking)):
            deltas.append(ReasoningDelta(shown))
        if content and (shown := self._content.add(content)):
            deltas.append(TextDelta(shown))
        for entry in call_entries(message):
            entry = copied(entry)
            self._call_entries.append(entry)
            self._reader.read_call(entry)

    def _end_texts(self, deltas: list[Delta]) -> None:
        if rest := self._thinking.rest():
            deltas.append(ReasoningDelta(rest))
        if rest := self._content.rest():
            deltas.append(TextDelta(rest))

    def _reply(self) -> dict[str, Any]:
        """The answer as it would have come in one piece."""
        others = dict(self._message)
        message = {"role": others.pop("role")} if "role" in others else {}
        message["content"] = "".join(self._content.pieces)
        if self._thinking.pieces:
            message["thinking"] = "".join(self._thinking.pieces)
        message.update(others)
        if self._call_entries:
            message["tool_calls"] = self._call_entries
        return {**self._answer, "message": message}

    def _report_calls(self, deltas: list[Delta]) -> None:
        waiting = bool(self._reader.unknown_calls)
        if self._ended and not self._settled:
            self._settled = True
            self._reader.read_other_calls(self._message)
            self._reader.settle_calls()
        calls: list[CallBlock] = self._reader.calls
        if self._ended or not waiting:
            deltas += deltas_of_waiting(calls, self._reported)
            self._reported = len(calls)
        is_whole = self._ended and finish_of(self._answer, bool(calls)) != "length"
        sure = self._reported if is_whole else self._reported - 1
        while self._done < sure:
            deltas.append(CallDone(self._done, calls[self._done]))
            self._done += 1
