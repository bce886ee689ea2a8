"""From a transcript to the messages of Chat Completions, as JSON bytes."""

# What is hard here is what this API can't express:
#
# - an assistant's message has at most `MAX_CALLS` calls, so a longer one is sent in parts, each
#   with its results after it. The message is held back until the results come (`_held`).
# - a tool message holds text only. Images and files of a result follow in a user's message.
# - a call of the older form (`function_call`) has no id. Its entry of `tool_calls`, which the
#   decoder added to keep an id, is left out again.
# - hosts differ in the ids that they take; see `rules/call_ids.py`.

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.destination import ANYWHERE, Destination
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.adapters.narrowing import CHOICE
from lutumpy.adapters.openai.chat.elsewhere import (
    REASONING_FIELDS,
    add_reasoning,
    as_function,
    fit_message,
    reported_reasons,
    without_sealed,
)
from lutumpy.adapters.openai.chat.spelled_tools import (
    API,
)
from lutumpy.adapters.openai.history_encoder import (
    HistoryEncoder,
    arguments_object,
    cut_call,
    fits_name,
    long_calls,
    text_and_calls,
)
from lutumpy.adapters.openai.parts import chat_part, cut_output
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    Part,
    ResultBlock,
    TextPart,
    Verbatim,
)
from lutumpy.core.parts import attachments_heading, attachments_note
from lutumpy.core.turn_settings import SettingsInForce, TurnSettings
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.call_ids import CALL_ID_RULES, CallIds
from lutumpy.rules.openai.chat.limits import MAX_CALLS
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_TEXT_PART

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["API", "ChatEncoder", "ReasoningFieldEncoder"]

_OWN_KINDS = frozenset({"function", "custom", "function_call"})


class ChatEncoder(HistoryEncoder):
    """The messages of a transcript.

    Args:
        call_ids: The host's rule about call ids. It holds for ids of this API's own replies too, as
            they may come from another host. `None` if the host isn't known: then these go back as
            they came, however long they are.
        destination: Who gets the requests.
        narrows: The choice of a request says which of its tools may be called.

    Attributes:
        state: What turns have recorded of settings, and which tools stay declared.
    """

    __slots__ = ("_held", "_narrows", "state")

    api = API

    def __init__(
        self,
        call_ids: CallIds | None = None,
        destination: Destination = ANYWHERE,
        narrows: bool = False,
    ) -> None:
        rule = CALL_ID_RULES[call_ids or "openai"]
        if call_ids is None:
            own_limit = sys.maxsize
        elif call_ids == "mistral":
            own_limit = 0  # its rule is not about the length alone, so every id is looked at
        else:
            own_limit = rule.limit
        super().__init__(rule, own_limit, destination)
        # An assistant's message with more calls than one may have. It waits for the results.
        self._held: dict[str, Any] | None = None
        self._narrows = narrows
        self.state: EncodedSettings = EncodedSettings(CHOICE)
        self.in_force: SettingsInForce = self.state.in_force

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on: none does on this API."""
        return False

    def copy(self) -> Self:
        """An independent copy, to encode items that don't stay in the transcript."""
        twin = super().copy()
        twin._held, twin._narrows, twin.state = self._held, self._narrows, self.state
        if self._narrows:
            twin.state = self.state.copy()
            twin.in_force = twin.state.in_force
        return twin

    def _take_read(self, original: Verbatim) -> None:
        self.state.has_read = True
        super()._take_read(original)

    def _take_settings(
        self, settings: TurnSettings, answered_by: AssistantTurn | None = None
    ) -> None:
        if self._narrows:
            self.state.turns = self.turns
            self.state.take(settings, self.entries)
        else:
            self.in_force.apply(settings)

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Nothing: no reasoning of this API is bound to anything."""

    def _encode_message(self, message: Message) -> None:
        parts = message.parts
        only = parts[0] if len(parts) == 1 else None
        content: Any
        if isinstance(only, TextPart):
            content = cut_output(only.text)
        else:
            content = [chat_part(part) for part in parts]
        if content:
            self._put({"role": message.role, "content": content})

    def _put(self, message: dict[str, Any]) -> None:
        self.entries.append(encode(message))

    def _put_or_hold(self, message: dict[str, Any], calls: Sequence[CallBlock]) -> None:
        """Send an assistant's message, or hold it until its results come, if it has too many calls.

        One with calls that nothing answers can't be divided: no result would come after them.
        """
        answered = [call for call in calls if call.answerable]
        if len(answered) > MAX_CALLS and len(answered) == len(message.get("tool_calls") or ()):
            self._held = message
        else:
            self._put(message)

    def _put_original(self, entries: tuple[bytes, ...]) -> None:
        if self._held is not None:
            # The results are of a history too, so they stay where they were.
            self._put(self._held)
            self._held = None
        if self._own_limit < sys.maxsize:
            entries = tuple([self._fit_ids(entry) for entry in entries])
        super()._put_original(entries)

    def _fit_ids(self, entry: bytes) -> bytes:
        """A message of a history that was read, with call ids that the host takes."""
        if b'"tool_call' not in entry:
            return entry
        message: dict[str, Any] = json_values.decode(entry)
        holders = [(message, "tool_call_id")]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            holders = [*[(call, "id") for call in calls if isinstance(call, dict)], *holders]
        changed = False
        for holder, key in holders:
            call_id = holder.get(key)
            if not isinstance(call_id, str) or len(call_id) <= self._own_limit:
                continue
            fitted = self._ids(call_id)
            if fitted != call_id:
                holder[key] = fitted
                changed = True
        # An entry that fits is not encoded anew: its bytes stay the ones that were read.
        return encode(message) if changed else entry

    def _note_dropped(self, turn: AssistantTurn, place: int) -> None:
        """Nothing: no reasoning of this API is bound to anything."""

    def _note_reasoning(self, turn: AssistantTurn, place: int) -> None:
        """Nothing is bound here to what comes before it."""

    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        found: list[bytes] = []
        for entry in entries:
            message = json_values.decode(entry)
            for key in REASONING_FIELDS:
                message.pop(key, None)
            found.append(encode(message))
        return tuple(found)

    def _replay(self, turn: AssistantTurn) -> None:
        if self._goes_back_as_it_came(turn):
            self.entries.append(turn.native)
            return
        misnamed = self._misnamed_calls(turn)
        long = long_calls(turn)
        has_legacy = False
        with_long_id: list[CallBlock] = []
        for call in turn.calls:
            if call.kind == "function_call" and call.position == 0:
                has_legacy = True
            if len(call.id) > self._own_limit and call.position >= 0:
                with_long_id.append(call)
        message = json_values.decode(turn.native)
        self._mend_calls(message, misnamed, long, with_long_id, has_legacy=has_legacy)
        if turn.reasoning_dropped:
            for key in REASONING_FIELDS:
                message.pop(key, None)
        self._put_or_hold(message, turn.calls)

    def _mend_calls(
        self,
        message: dict[str, Any],
        misnamed: Sequence[CallBlock],
        long: Sequence[CallBlock],
        with_long_id: Sequence[CallBlock],
        *,
        has_legacy: bool,
    ) -> None:
        """Give calls the names, arguments and ids that the API takes back."""
        for call in misnamed:
            name = self._sent_name(call.name)
            if has_legacy:
                message["function_call"]["name"] = name
            elif call.kind in ("function", "custom", "function_call"):
                form = "custom" if call.kind == "custom" else "function"
                message["tool_calls"][call.position][form]["name"] = name
        for call in long:
            key = "input" if call.kind == "custom" else "arguments"
            message["tool_calls"][call.position][call.kind][key] = cut_call(call)
        for call in with_long_id:
            message["tool_calls"][call.position]["id"] = self._ids(call.id)
        if has_legacy:
            del message["tool_calls"]

    def _replay_elsewhere(self, turn: AssistantTurn) -> None:
        message: dict[str, Any] = json_values.decode(turn.native)
        if any(call.kind not in _OWN_KINDS for call in turn.calls):
            self._project_elsewhere(turn)
            return
        has_legacy = any(c.kind == "function_call" and c.position == 0 for c in turn.calls)
        placed = [call for call in turn.calls if call.position >= 0]
        long = long_calls(turn) if len(turn.native) > MAX_ARGUMENTS else []
        foreign_ids = [] if has_legacy or self._keeps_ids else placed
        misnamed = self._misnamed_calls(turn)
        self._mend_calls(message, misnamed, long, foreign_ids, has_legacy=has_legacy)
        message = self._fit(message, turn)
        if not self.destination.facts.custom_tools and not has_legacy:
            for call in placed:
                if call.kind == "custom":
                    calls = message["tool_calls"]
                    calls[call.position] = as_function(calls[call.position], call)
        self._put_or_hold(message, turn.calls)

    def _fit(self, message: dict[str, Any], turn: AssistantTurn) -> dict[str, Any]:
        """A message of somebody else as the destination takes it."""
        facts = self.destination.facts
        if self.destination.is_own(turn):
            fitted, left = without_sealed(message)
            is_read = False
            why = "only the model that sealed it can open it"
        else:
            fitted, left = fit_message(message, facts)
            is_read = not turn.reasoning_dropped and add_reasoning(fitted, turn, facts)
            why = "a field of the host that said it, or sealed for that"
        for name in reported_reasons(left, is_read=is_read):
            self._leave_out(name, why)
        return fitted

    def _fit_entries(self, turn: AssistantTurn, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        if self.destination.can_open(turn):
            return entries
        found: list[bytes] = []
        for entry in entries:
            message = json_values.decode(entry)
            if message.get("role") == "assistant":
                fitted = self._fit(message, turn)
                entry = encode(fitted) if fitted != message else entry
            found.append(entry)
        return tuple(found)

    def _goes_back_as_it_came(self, turn: AssistantTurn) -> bool:
        """Whether nothing of a reply has to be looked at more closely, as of nearly all."""
        # A message that is short as a whole has no long arguments: its calls needn't be looked at.
        if turn.reasoning_dropped or len(turn.native) > MAX_ARGUMENTS:
            return False
        if len(turn.calls) > MAX_CALLS:
            return False
        for call in turn.calls:
            if call.kind == "function_call" or len(call.id) > self._own_limit:
                return False
            if not fits_name(call.name):
                return False
        return True

    def _project(self, turn: AssistantTurn) -> None:
        parts = text_and_calls(turn)
        if not parts:
            return
        texts = [part for part in parts if isinstance(part, str)]
        calls = [part for part in parts if isinstance(part, CallBlock)]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": cut_output("\n\n".join(texts)) or None,
        }
        if calls:
            message["tool_calls"] = [self._project_call(call) for call in calls]
        if self.destination.facts.reasoning_field is not None and not turn.reasoning_dropped:
            add_reasoning(message, turn, self.destination.facts)
        self._put_or_hold(message, calls)

    def _project_call(self, call: CallBlock) -> dict[str, Any]:
        function = {"name": self._sent_name(call.name), "arguments": arguments_object(call)}
        return {"id": self._ids(call.id), "type": "function", "function": function}

    def _encode_results(self, results: Sequence[ResultBlock]) -> None:
        attachments: list[dict[str, Any]] = []
        if self._own and len(results) == 1 and results[0].kind == "function_call":
            # A call of the older form, which stands alone (see `_keep_function_call`).
            self._held = None
            name = self._sent_name(results[0].name)
            content = cut_output(results[0].text)
            self._put({"role": "function", "name": name, "content": content})
        elif self._held is not None or len(results) > MAX_CALLS:
            self._encode_in_parts(results, attachments)
        else:
            for result in results:
                self._encode_result(result, attachments)
        if attachments:
            self._put({"role": "user", "content": attachments})

    def _encode_in_parts(
        self, results: Sequence[ResultBlock], attachments: list[dict[str, Any]]
    ) -> None:
        """Encode the results of more calls than one message may have, each behind its calls."""
        held, self._held = self._held, None
        for start in range(0, len(results), MAX_CALLS):
            end = start + MAX_CALLS
            if held is not None:
                part = {**held, "tool_calls": held["tool_calls"][start:end]}
                if start:
                    part["content"] = None  # the first part said it
                self._put(part)
            for result in results[start:end]:
                self._encode_result(result, attachments)

    def _encode_result(self, result: ResultBlock, attachments: list[dict[str, Any]]) -> None:
        call_id = self._sent_id(result.call_id)
        content: Any = result.content
        if not isinstance(content, str):
            content = _text_of_result(call_id, result.name, content, attachments)
        elif len(content) > MAX_TEXT_PART:
            content = cut_output(content)
        message = {"role": "tool", "tool_call_id": call_id, "content": content}
        self.entries.append(encode(message))


class ReasoningFieldEncoder(ChatEncoder):
    """The messages of a transcript for a host that refuses calls without the field of their
    reasoning: an empty text will do.

    Any message may lack it: one of another host or of a model of this one that didn't think, one
    whose reasoning was dropped, one of a history that was read.
    """

    __slots__ = ()

    def add(self, item: Item) -> None:
        """Encode the next item."""
        before = len(self.entries)
        super().add(item)
        self.entries[before:] = [self._with_field(entry) for entry in self.entries[before:]]

    def _with_field(self, entry: bytes) -> bytes:
        field = self.destination.facts.reasoning_field
        if field is None or b'"tool_calls"' not in entry:
            return entry
        message: dict[str, Any] = json_values.decode(entry)
        if not message.get("tool_calls") or field in message:
            return entry
        message[field] = ""
        return encode(message)


def _text_of_result(
    call_id: str, name: str, parts: tuple[Part, ...], attachments: list[dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """The content of a tool message; what isn't text is added to `attachments`, with a heading."""
    texts: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    for part in parts:
        spelled = chat_part(part)
        if spelled["type"] == "text":
            texts.append(spelled)
        else:
            moved.append(spelled)
    if moved:
        note = attachments_note(len(moved), call_id, name)
        heading = attachments_heading(len(moved), call_id, name)
        texts.append({"type": "text", "text": note})
        attachments.append({"type": "text", "text": heading})
        attachments += moved
    if len(texts) == 1 and len(texts[0]) == 2:
        text: str = texts[0]["text"]
        return text
    return texts or ""
