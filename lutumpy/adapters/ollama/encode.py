"""From a transcript to the messages of `/api/chat`, as JSON bytes.

Each item is encoded once, when the transcript hands it over; a request joins what is there.
"""

# What is hard here
# -----------------
# A result answers the very call that went out: by the id that is there, or by the name of the
# tool where there is none. So the calls of the last turn are kept as they were written (`_calls`),
# by the ids that the transcript knows them by. An id that stands twice in one answer tells no call:
# the later one goes out with the transcript's (rule C6).
#
# A message holds one text, and images beside it. What a result shows follows in a user's message
# behind all results, since only users show something to most models.

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lutumpy.adapters.object_arguments import arguments_object
from lutumpy.adapters.ollama.decode import API
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FilePart,
    FoundTool,
    ImagePart,
    Item,
    Message,
    Part,
    RawPart,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    TextPart,
    ToolResults,
    describe,
)
from lutumpy.core.parts import raw_value, sendable, shown_heading
from lutumpy.core.tool_names import UNNAMED
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_settings import SettingsInForce
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.media import plain_type
from lutumpy.rules.ollama.sequence import call_named
from lutumpy.rules.problem import items
from lutumpy.rules.shape import PartPlace

__all__ = ["OllamaEncoder", "encoder_of"]


class _Sent(NamedTuple):
    """A call as it was written: what its result has to repeat."""

    id: str | None
    name: str


class OllamaEncoder:
    """The encoded form of a transcript for this API."""

    __slots__ = ("_calls", "_last", "_messages", "in_force", "permanent")

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        # What turns have recorded of tools, output format and effort.
        self.in_force: SettingsInForce = SettingsInForce()
        self._calls: dict[str, _Sent] = {}
        # What comes last: "nothing" to answer, something "open" to answer, or a "turn".
        self._last: str = "nothing"
        # How many messages come before the first item that is for one request; `None` for all.
        self.permanent: int | None = None

    def copy(self) -> OllamaEncoder:
        twin = OllamaEncoder()
        twin.in_force = self.in_force.copy()
        twin._messages = self._messages.copy()
        twin._calls = self._calls.copy()
        twin._last = self._last
        twin.permanent = self.permanent
        return twin

    def add(self, item: Item) -> None:
        before = len(self._messages)
        if item.verbatim is not None:
            for _, settings in item.verbatim.settings:
                self.in_force.apply(settings)
        if isinstance(item, Message):
            if item.ephemeral and self.permanent is None:
                self.permanent = before
            self._add_message(item)
            # A system message alone is nothing to answer, but after a turn it is.
            is_open = self._last == "turn" or item.role in ("user", "assistant")
            if is_open and len(self._messages) > before:
                self._last = "open"
        elif isinstance(item, AssistantTurn):
            if item.settings is not None:
                self.in_force.apply(item.settings)
            self._add_turn(item)
            if len(self._messages) > before:
                self._last = "turn"
        else:
            self._add_results(item)
            self._last = "open"

    def messages(self) -> list[bytes]:
        """The `messages` of a request, one by one.

        Raises:
            TranscriptError: there is nothing to answer (rule K5).
        """
        if self._last == "turn":
            raise TranscriptError(
                "the transcript ends with an answer of the model, so there is nothing to answer; "
                "push a message first"
            )
        if self._last == "nothing":
            what = "holds instructions only" if self._messages else "is empty"
            raise TranscriptError(
                f"the transcript {what}, so there is nothing to answer; push a user message first"
            )
        return self._messages.copy()

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        return b"[%b]" % b",".join(self._messages)

    # --- messages of the application --------------------------------------------------------------

    def _add_message(self, message: Message) -> None:
        if message.verbatim is not None and message.verbatim.api == API:
            self._messages += message.verbatim.entries
            return
        written = _write_parts(message.parts, "message")
        if written:
            role = "system" if message.role == "developer" else message.role
            self._messages.append(encode({"role": role, **written}))

    # --- answers ----------------------------------------------------------------------------------

    def _add_turn(self, turn: AssistantTurn) -> None:
        self._calls = {}
        if turn.verbatim is not None and turn.verbatim.api == API:
            entries: Iterable[bytes] = turn.verbatim.entries
            self._note_read_calls(turn, entries)
        elif turn.api == API:
            entries = (self._write_own(turn),) if turn.native else ()
        else:
            entries = self._translate(turn)
        if turn.reasoning_dropped:
            entries = [_without_thinking(entry) for entry in entries]
        self._messages += entries

    def _write_own(self, turn: AssistantTurn) -> bytes:
        """The message as it was received, but for ids that stand twice in it."""
        calls = [call for call in turn.calls if call.answerable]
        if not calls:
            return turn.native
        message = json_values.decode(turn.native)
        ids: set[str] = set()
        changed = False
        for call in calls:
            written = message["tool_calls"][call.position]
            if (call_id := written.get("id")) and call_id in ids:
                written["id"] = call_id = call.id
                changed = True
            ids.add(call_id or "")
            named = call_named(written)
            self._calls[call.id] = _Sent(named.id, named.name or call.name)
        return encode(message) if changed else turn.native

    def _note_read_calls(self, turn: AssistantTurn, entries: Iterable[bytes]) -> None:
        """Keep how the calls of an answer that was read from a history are written."""
        calls = [call for call in turn.calls if call.answerable]
        if not calls:
            return
        listed = [
            entry
            for message in entries
            for entry in items(json_values.decode(message).get("tool_calls"))
        ]
        for call in calls:
            written = listed[call.position] if call.position < len(listed) else None
            named = call_named(written)
            self._calls[call.id] = _Sent(named.id, named.name or call.name)

    def _translate(self, turn: AssistantTurn) -> list[bytes]:
        """What another API's answer says, as a message of this one (rule R2)."""
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, (TextBlock, RefusalBlock)):
                texts += [block.text] if block.text.strip() else []
            elif isinstance(block, CallBlock) and block.answerable:
                name = block.name or UNNAMED
                function = {"name": name, "arguments": arguments_object(block)}
                named = {"id": block.id} if block.id else {}
                calls.append({**named, "function": function})
                self._calls[block.id] = _Sent(block.id or None, name)
        if not texts and not calls:
            return []
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts)}
        if calls:
            message["tool_calls"] = calls
        return [encode(message)]

    # --- results ----------------------------------------------------------------------------------

    def _add_results(self, results: ToolResults) -> None:
        if results.verbatim is not None and results.verbatim.api == API:
            self._messages += results.verbatim.entries
            return
        shown: list[Part] = []
        for result in results.results:
            self._messages.append(encode(self._write_result(result, shown)))
        if shown:
            self._messages.append(encode({"role": "user", **_write_parts(shown, "result")}))

    def _write_result(self, result: ResultBlock, shown: list[Part]) -> dict[str, Any]:
        """The message of a result; what it shows beside its text is added to `shown`."""
        sent = self._calls.get(result.call_id) or _Sent(None, result.name)
        name = sent.name or UNNAMED
        content = result.content
        if not isinstance(content, str):
            content = _take_media(name, content, shown)
        message: dict[str, Any] = {"role": "tool", "content": content, "tool_name": name}
        if sent.id is not None:
            message["tool_call_id"] = sent.id
        return message


def _take_media(name: str, parts: Sequence[Part], shown: list[Part]) -> str:
    """The text of a result with several parts; what it shows goes to `shown`, with a heading."""
    media = [part for part in parts if _is_shown(part)]
    texts = [_text_of(part) for part in parts if not _is_shown(part)]
    if media:
        texts.append(f"[shown by the result of {name}: see the user message after the results]")
        shown += [TextPart(shown_heading(name)), *media]
    return "\n".join(texts)


def _is_shown(part: Part) -> bool:
    if isinstance(part, RawPart):
        return raw_value(part, API, "result") is not None
    return _image(part) is not None


def _write_parts(parts: Sequence[Part], place: PartPlace) -> dict[str, Any]:
    """Content and images of a message; empty where there is nothing to say."""
    texts: list[str] = []
    images: list[str] = []
    more: dict[str, Any] = {}
    for part in parts:
        own = raw_value(part, API, place) if isinstance(part, RawPart) else None
        if own is not None:
            images += own.pop("images", ())
            more |= own
        elif (image := _image(part)) is not None:
            images.append(image)
        elif (text := _text_of(part)).strip():
            texts.append(text)
    if not (texts or images or more):
        return {}
    return {"content": "\n".join(texts), **({"images": images} if images else {}), **more}


def _image(part: Part) -> str | None:
    """An image as the API takes it: its bytes. It fetches nothing from addresses."""
    found = sendable(part) if isinstance(part, ImagePart) else None
    if not isinstance(found, ImagePart) or found.data is None:
        return None
    return base64.b64encode(found.data).decode("ascii")


def _text_of(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FoundTool):
        return part.text
    if isinstance(part, FilePart):
        found = sendable(part)
        if found is not None and found.data and plain_type(found.media_type).startswith("text/"):
            name = f"{part.filename}:\n" if part.filename else ""
            return name + found.data.decode("utf-8", "replace")
    return describe(part)


def _without_thinking(entry: bytes) -> bytes:
    message = json_values.decode(entry)
    if message.pop("thinking", None) is None:
        return entry
    return encode(message)


def encoder_of(transcript: Transcript) -> OllamaEncoder:
    """The encoded form of a transcript."""
    return transcript.encoded(API, OllamaEncoder)
