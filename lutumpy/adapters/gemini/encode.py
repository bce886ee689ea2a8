"""From a transcript to the contents of generateContent, as JSON bytes.

Each item is encoded once, when the transcript hands it over; a request joins what is there.
Neighbouring contents of one role aren't merged, the API does that: so the request of one turn is a
prefix of the next one's.
"""

# What is hard here
# -----------------
# The results of a turn answer the very calls that went out: with the id that is there, or with
# none, and with the name that is there. So the calls of the last turn are kept as they were
# written (`_calls`), by the ids that the transcript knows them by. An id that stands twice in one
# answer tells no call: the later one goes out with the transcript's (rule C6).
#
# From Gemini 3 on the first call of a content has to be signed. A call that Gemini didn't make has
# no signature, nor has one that an older model made without thinking; the placeholder that the API
# provides for this is there. Older models take unsigned calls, and aren't known to take the
# placeholder, so what is written depends on the generation of the model (`Dialect`).

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lutumpy.adapters.destination import ANYWHERE, Destination, tell_left_out
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.adapters.gemini.decode import API
from lutumpy.adapters.gemini.names import TOOL_NAMES
from lutumpy.adapters.gemini.parts import message_parts, shown_part
from lutumpy.adapters.narrowing import CHOICE
from lutumpy.adapters.object_arguments import arguments_object
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    TextPart,
    ToolResults,
    Verbatim,
    describe,
)
from lutumpy.core.parts import marked_system, shown_heading
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.gemini.fields import field, key_of
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.gemini.models import generation, signs_calls, takes_allowed_names

__all__ = ["Dialect", "GeminiEncoder", "dialect_of"]

_OPENING = "(The beginning of this conversation is left out.)"
"""What the user says before an answer with which a conversation begins: the user speaks first."""


class Dialect(NamedTuple):
    """What a model's generation takes.

    Attributes:
        placeholder: On calls of other APIs: a first call without a signature gets a placeholder.
        signs: Own calls without a signature get it as well.
        shows: Results may show images and files; else a content after them does.
        narrows: The choice of a request may say which of its tools may be called.
    """

    placeholder: bool
    signs: bool
    shows: bool
    narrows: bool = False


def dialect_of(model: str | None) -> Dialect:
    """What a model takes; of one that isn't known, what the newest take."""
    signs = signs_calls(model)
    known = generation(model)
    return Dialect(
        signs is not False,
        signs is True,
        known is None or known >= (3, 0),
        takes_allowed_names(model),
    )


class _Sent(NamedTuple):
    """A call as it was written: what its result has to repeat."""

    id: str | None
    name: str


class GeminiEncoder:
    """The encoded form of a transcript for this API.

    Args:
        dialect: What the model takes.
        destination: Who gets the requests.

    Attributes:
        entries: The contents, but for a first one of the user's where the model begins.
        state: What turns have recorded of settings, and which tools stay declared.
        permanent: How many contents of a request come before the first item that is for this
            request; `None` for all.
    """

    __slots__ = (
        "_begins_with_model",
        "_calls",
        "_dialect",
        "_last",
        "_system",
        "_system_read",
        "entries",
        "permanent",
        "state",
    )

    def __init__(self, dialect: Dialect, destination: Destination = ANYWHERE) -> None:
        self._dialect = dialect
        self.state: EncodedSettings = EncodedSettings(CHOICE, destination)
        self.permanent: int | None = None
        # The request's `systemInstruction` as it was read from a history, and what was pushed.
        self._system_read: bytes = b""
        self._system: list[str] = []
        self.entries: list[bytes] = []
        self._calls: dict[str, _Sent] = {}
        self._last: str = "nothing"
        self._begins_with_model = False

    def copy(self) -> GeminiEncoder:
        twin = GeminiEncoder(self._dialect)
        twin.state, twin.permanent = self.state.copy(), self.permanent
        twin._system_read = self._system_read
        twin._system = self._system.copy()
        twin.entries = self.entries.copy()
        twin._calls = self._calls.copy()
        twin._last = self._last
        twin._begins_with_model = self._begins_with_model
        return twin

    def add(self, item: Item) -> None:
        if item.verbatim is not None and item.verbatim.settings:
            self.state.take_read(item.verbatim, self.entries, None)
        if isinstance(item, Message):
            if item.ephemeral and self.permanent is None:
                self.permanent = len(self.entries) + self._begins_with_model
            self._add_message(item)
        elif isinstance(item, AssistantTurn):
            if item.settings is not None:
                self.state.take(item.settings, self.entries)
            self._add_turn(item)
            self.state.turns += 1
        else:
            self._add_results(item)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on: changes of settings need not wait for that."""
        return False

    @property
    def system_place(self) -> tuple[bytes, int]:
        """What tells one `systemInstruction` of this conversation from a longer one."""
        return self._system_read, len(self._system)

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Nothing: no thoughts are known to be bound to what comes before them."""

    def system(self) -> bytes:
        """The `systemInstruction`, or `b""`."""
        if not self._system:
            return self._system_read
        parts = [{"text": text} for text in self._system]
        if not self._system_read:
            return encode({"parts": parts})
        read = json_values.decode(self._system_read)
        return encode({**read, "parts": [*(read.get("parts") or ()), *parts]})

    def contents(self) -> list[bytes]:
        """The `contents` of a request, one by one.

        Raises:
            TranscriptError: there is nothing to answer (rule K5).
        """
        if self._last in ("turn", "assistant"):
            raise TranscriptError(
                "there is nothing to answer: the transcript ends with the assistant, and the "
                "Gemini API takes no beginning of an answer; push a user message first"
            )
        if not self.entries:
            raise TranscriptError(
                "there is nothing to answer: a request of the Gemini API needs a user message "
                "beside the system's"
            )
        return self._all()

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        return b"[" + b",".join(self._all()) + b"]"

    def _all(self) -> list[bytes]:
        if self._begins_with_model:
            return [_content("user", [{"text": _OPENING}]), *self.entries]
        return self.entries.copy()

    # --- what was read from a history of this API -------------------------------------------------

    def _add_original(self, verbatim: Verbatim, last: str) -> None:
        if verbatim.system:
            self._system_read = verbatim.entries[0]
            return
        if verbatim.entries:
            self._append(list(verbatim.entries), last)

    # --- messages of the application --------------------------------------------------------------

    def _append(self, contents: list[bytes], last: str) -> None:
        self.entries += contents
        self._last = last

    def _add_message(self, message: Message) -> None:
        if message.verbatim is not None and message.verbatim.api == API:
            last = "assistant" if message.role == "assistant" else "user"
            self._add_original(message.verbatim, last)
            return
        if message.role == "user":
            parts = [written for part in message.parts for written in message_parts(part)]
            if parts:
                self._append([_content("user", parts)], "user")
            return
        texts = [p.text for p in message.parts if isinstance(p, TextPart) and p.text.strip()]
        if not texts:
            return
        if message.role == "assistant":
            self._append_answer([_content("model", _texts(texts))], "assistant")
        elif self._last == "nothing":
            self._system += texts
        else:
            marked = [marked_system(text) for text in texts]
            self._append([_content("user", _texts(marked))], "user")

    def _append_answer(self, contents: list[bytes], last: str) -> None:
        self._begins_with_model = self._begins_with_model or not self.entries
        self._append(contents, last)

    # --- answers ----------------------------------------------------------------------------------

    def _add_turn(self, turn: AssistantTurn) -> None:
        self._calls = {}
        if turn.verbatim is not None and turn.verbatim.api == API:
            # The results that were read with it are there as they came.
            entries = list(turn.verbatim.entries)
            if turn.reasoning_dropped:
                entries = _without_thoughts(entries)
            if not self._opens(turn):
                entries = [self._unseal(json_values.decode(entry)) or entry for entry in entries]
            self._note_read_calls(turn)
            self._append(entries, "turn" if entries else self._last)
            return
        if turn.api == API:
            content = self._write_own(turn)
        else:
            parts = self._translate(turn)
            content = _content("model", parts) if parts else b""
        if content:
            paused = turn.finish_reason == "paused" and turn.api == API
            self._append_answer([content], "paused" if paused else "turn")

    def _note_read_calls(self, turn: AssistantTurn) -> None:
        verbatim = turn.verbatim
        found = [
            part
            for entry in (verbatim.entries if verbatim is not None else ())
            for part in _parts_of(json_values.decode(entry))
            if isinstance(field(part, "functionCall"), dict)
        ]
        calls = [call for call in turn.calls if call.answerable]
        functions = [call for call in calls if call.kind == "function"]
        for call, part in zip(functions, found, strict=False):
            self._note(call, field(part, "functionCall"))
        for call in calls:
            if call.kind != "function":
                self._note(call, {"id": call.id, "name": call.name})

    def _note(self, call: CallBlock, written: Any) -> None:
        call_id, name = field(written, "id"), field(written, "name")
        self._calls[call.id] = _Sent(
            call_id if isinstance(call_id, str) and call_id else None,
            name if isinstance(name, str) else call.name,
        )

    def _write_own(self, turn: AssistantTurn) -> bytes:
        """The content as it was received; rewritten only where the API would refuse it, or
        reasoning left it.
        """
        calls = [call for call in turn.calls if call.answerable]
        opens = self._opens(turn)
        if not turn.native or not (calls or turn.reasoning_dropped or not opens):
            return turn.native
        content = json_values.decode(turn.native)
        parts = _parts_of(content)
        changed = not opens and bool(self._unseal(content))
        functions = [call for call in calls if call.kind == "function"]
        for call in calls:
            if call.kind != "function":
                self._note(call, {"id": call.id, "name": call.name})
        ids: set[str] = set()
        for number, call in enumerate(functions):
            part = parts[call.position]
            written = field(part, "functionCall")
            if (call_id := written.get("id")) and call_id in ids:
                written["id"] = call_id = call.id
                changed = True
            ids.add(call_id or "")
            if not field(written, "name"):
                # "function_response.name: Name cannot be empty."
                written["name"] = TOOL_NAMES(call.name)
                changed = True
            is_signed = bool(field(part, "thoughtSignature"))
            if number == 0 and self._dialect.signs and not is_signed:
                part[key_of(part, "thoughtSignature")] = FOREIGN_SIGNATURE
                changed = True
            self._note(call, written)
        if turn.reasoning_dropped:
            content["parts"] = [part for part in parts if part.get("thought") is not True]
            changed = True
        if not content["parts"]:
            return b""
        return encode(content) if changed else turn.native

    def _opens(self, turn: AssistantTurn) -> bool:
        """Whether the signatures of a turn are good where it is sent: they fail with another model,
        and at another host (rule OR3).
        """
        origin, destination = turn.origin, self.state.destination
        if origin is not None and origin.host == destination.host:
            return origin.model == destination.model or destination.is_of_same_model(turn)
        return destination.is_of_same_model(turn)

    def _unseal(self, content: Any) -> bytes:
        """Take the signatures out of a content of another model's or host's, which is changed, and
        give its bytes; empty if it has none.
        """
        has_any = False
        for part in _parts_of(content):
            key = key_of(part, "thoughtSignature")
            if part.get(key) in (None, FOREIGN_SIGNATURE):
                continue
            del part[key]
            if not has_any and self._dialect.placeholder and field(part, "functionCall"):
                part[key] = FOREIGN_SIGNATURE
            has_any = True
        if not has_any:
            return b""
        self.state.unread.append(
            tell_left_out(
                self.state.destination,
                self.state.turns,
                "thought signatures",
                "sealed for the model and the host that said it",
            )
        )
        return encode(content)

    def _translate(self, turn: AssistantTurn) -> list[dict[str, Any]]:
        """What another API's answer says, as parts of this one (rule R2)."""
        parts: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, (TextBlock, RefusalBlock)):
                if block.text.strip():
                    parts.append({"text": block.text})
            elif isinstance(block, CallBlock) and block.answerable:
                call: dict[str, Any] = {
                    "name": TOOL_NAMES(block.name),
                    "args": arguments_object(block),
                }
                if block.id:
                    call = {"id": block.id, **call}
                part: dict[str, Any] = {"functionCall": call}
                if not self._calls and self._dialect.placeholder:
                    part["thoughtSignature"] = FOREIGN_SIGNATURE
                self._note(block, call)
                parts.append(part)
        return parts

    # --- results ----------------------------------------------------------------------------------

    def _add_results(self, results: ToolResults) -> None:
        if results.verbatim is not None and results.verbatim.api == API:
            self._add_original(results.verbatim, "user")
            return
        written: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for result in results.results:
            response, media = self._write_result(result)
            written.append(response)
            if media:
                name = response["functionResponse"]["name"]
                shown += [{"text": shown_heading(name)}, *media]
        self._append([_content("user", written)], "user")
        if shown:
            # A content of its own: beside results, anything else breaks them off.
            self._append([_content("user", shown)], "user")

    def _write_result(self, result: ResultBlock) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The part of a result, and what it shows that can't be in it."""
        sent = self._calls.get(result.call_id) or _Sent(None, TOOL_NAMES(result.name))
        media: list[dict[str, Any]] = []
        texts: list[str] = []
        if isinstance(result.content, str):
            texts.append(result.content)
        else:
            for part in result.content:
                if (found := shown_part(part)) is not None:
                    media.append(found)
                else:
                    texts.append(part.text if isinstance(part, TextPart) else describe(part))
        text = "\n".join(texts)
        if result.status not in ("ok", "promised"):
            response = {"error": text if text.strip() else f"{result.name or 'tool'}: failed"}
        else:
            # A text, though it may be JSON: numbers of an object would be rounded on the way.
            response = {"output": text} if text else {}
        body: dict[str, Any] = {"name": sent.name, "response": response}
        if sent.id is not None:
            body = {"id": sent.id, **body}
        if media and self._dialect.shows:
            body["parts"] = media
            media = []
        return {"functionResponse": body}, media


def _content(role: str, parts: list[dict[str, Any]]) -> bytes:
    return encode({"role": role, "parts": parts})


def _texts(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def _parts_of(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _without_thoughts(entries: Iterable[bytes]) -> list[bytes]:
    """The contents without thoughts; one that was nothing else is left out."""
    kept: list[bytes] = []
    for entry in entries:
        content = json_values.decode(entry)
        parts = [part for part in _parts_of(content) if part.get("thought") is not True]
        if parts:
            kept.append(encode({**content, "parts": parts}))
    return kept
