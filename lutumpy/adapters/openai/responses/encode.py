"""A transcript as the input items of a Responses request."""

# What is hard here is the ids of items: OpenAI refuses one that is sent twice, so every id that was
# sent is remembered, and a turn in which one would be repeated is sent with fitted ids
# (`item_ids.py`). Whether a turn needs that is decided on its bytes, without decoding them.

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.destination import ANYWHERE, Destination
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.adapters.openai.history_encoder import (
    HistoryEncoder,
    arguments_object,
    cut_call,
    long_calls,
    text_and_calls,
)
from lutumpy.adapters.openai.parts import cut_output, responses_part
from lutumpy.adapters.openai.responses.carriers import (
    API,
    Carriers,
    ResponsesSpelling,
    without_reasoning,
)
from lutumpy.adapters.openai.responses.elsewhere import fit_items
from lutumpy.adapters.openai.responses.item_ids import fit_ids
from lutumpy.adapters.openai.responses.outputs import CALLED_BY_PROGRAMS, output_item
from lutumpy.adapters.openai.responses.tool_search import (
    loaded_names,
)
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    ResultBlock,
    TextPart,
    Verbatim,
)
from lutumpy.core.turn_settings import SettingsInForce, TurnSettings
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.call_ids import ANY_ID, CallIdRule
from lutumpy.rules.openai.limits import MAX_ARGUMENTS
from lutumpy.rules.openai.responses.kinds import may_stay_open
from lutumpy.rules.openai.responses.limits import MAX_CALL_ID

if TYPE_CHECKING:
    from typing_extensions import Self

    from lutumpy.core.promises import LateResult

__all__ = ["API", "BINDS_ONLY", "NO_CARRIERS", "ResponsesEncoder"]

_ID_OF_CALL = attrgetter("id")
_CALL_IDS = CallIdRule(ANY_ID, MAX_CALL_ID, "call_")

# Quotes inside a JSON string are escaped, so this finds every id of an item. At worst it finds the
# id of something inside one too, and a turn is decoded without need.
_IDS = re.compile(rb'"id":"([^"\\]+)"')


NO_CARRIERS = Carriers()
BINDS_ONLY = Carriers(binds=True)
_NONE: frozenset[str] = frozenset()


class ResponsesEncoder(HistoryEncoder):
    """The input items of a transcript.

    Args:
        destination: Who gets the requests.
        carriers: What the model takes at its host in the middle of a conversation.
        spelling: How it says changes there; `None` where it says none, so that only the fields of a
            request do.

    Attributes:
        state: What the entries say of settings. An entry may hold several items.
        loaded: The names of the tools that outputs of searches have brought.
    """

    __slots__ = (
        "_async",
        "_callers",
        "_carriers",
        "_item_ids",
        "_left_open",
        "_says_changes",
        "loaded",
        "state",
    )

    api = API
    seal = b'"encrypted_content":'

    def __init__(
        self,
        destination: Destination = ANYWHERE,
        carriers: Carriers = NO_CARRIERS,
        spelling: ResponsesSpelling | None = None,
    ) -> None:
        # No host is known to take a longer id back.
        super().__init__(_CALL_IDS, MAX_CALL_ID, destination)
        self._carriers = carriers
        self._says_changes = spelling is not None
        self.binds: bool = carriers.binds
        self.state: EncodedSettings = EncodedSettings(spelling or ResponsesSpelling(NO_CARRIERS))
        self.in_force: SettingsInForce = self.state.in_force
        self._item_ids: set[str] = set()
        self.loaded: set[str] = set()
        # Of the last turn, by call id: who made the call, if its output has to repeat that. A
        # program that the provider runs makes calls, too.
        self._callers: dict[str, Any] = {}
        # Of the last turn: the ids of calls that may stay open, since their items say so.
        self._async: frozenset[str] = _NONE
        # The calls for which no output was sent, by id: the id that was sent, and the kind.
        self._left_open: dict[str, tuple[str, str]] = {}

    def copy(self) -> Self:
        """An independent copy, to encode items that don't stay in the transcript."""
        twin = super().copy()
        twin._carriers, twin._says_changes = self._carriers, self._says_changes
        twin.state = self.state.copy()
        twin.in_force = twin.state.in_force
        twin._item_ids = self._item_ids.copy()
        twin._callers = self._callers
        twin._async = self._async
        twin._left_open = self._left_open.copy()
        twin.loaded = self.loaded.copy()
        return twin

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on: changes of settings need not wait for that."""
        return False

    # --- settings ---------------------------------------------------------------------------------

    def _take_settings(
        self, settings: TurnSettings, answered_by: AssistantTurn | None = None
    ) -> None:
        state = self.state
        state.turns = self.turns
        if settings.left_out and self._own and answered_by is not None:
            if not self.binds:
                self._find_reasoning()
            self.leave_out(state.left_out_by(answered_by, settings.left_out))
        if not self._says_changes:
            self.in_force.apply(settings)
            return
        state.take(settings, self.entries)
        if state.pending:
            state.say_pending(self.entries)

    def _take_read(self, original: Verbatim) -> None:
        if not self._says_changes or original.api != API:
            super()._take_read(original)
            return
        from lutumpy.adapters.openai.responses.read_changes import remainder  # few were read

        self.state.turns = self.turns
        self.state.take_read(original, self.entries, remainder)

    def _takes_reminder(self, message: Message) -> bool:
        is_system = message.role in ("system", "developer") and message.verbatim is None
        if not self._carriers.instructions or not is_system:
            return False
        # It is among the request's `instructions`, which come after the input.
        texts = [part.text for part in message.parts if isinstance(part, TextPart)]
        self.state.reminders += texts
        return True

    def _note_reasoning(self, turn: AssistantTurn, place: int) -> None:
        prefix = turn.origin.prefix if turn.origin is not None else None
        self.state.bound.add(place, self.turns, prefix, turn)

    def _note_dropped(self, turn: AssistantTurn, place: int) -> None:
        self.state.bound.add(place, self.turns, None, turn, is_left_out=True)

    def _find_reasoning(self) -> None:
        """Note the turns with reasoning, for a model that binds none: some of it is to leave."""
        bound = self.state.bound
        known = {turn.entry for turn in bound.signed}
        for place, (end, turn, said) in self._spans.items():
            if place not in known and self.seal in b",".join(self.entries[place:end]):
                bound.add(place, turn, None, said)

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Take the reasoning of these turns out of their items (rule PB9)."""
        for turn in turns:
            place = turn.entry
            # Where nothing is bound, a turn may have several entries. Their places stay.
            end = place + 1 if self.binds else self._spans[place][0]
            entries = [entry for entry in self.entries[place:end] if entry]
            items = json_values.decode(b"[%b]" % b",".join(entries))
            kept = encode(without_reasoning(items))[1:-1]
            self.entries[place:end] = [kept, *[b""] * (end - place - 1)]

    def _put(self, item: dict[str, Any]) -> None:
        self.entries.append(encode(item))

    def _put_text(self, role: str, text: str) -> None:
        message = {"role": role, "content": cut_output(text)}
        if role == "assistant":
            # llama.cpp's server wants the type of an assistant's message; the API takes both forms.
            message = {"type": "message", **message}
        self._put(message)

    def _encode_message(self, message: Message) -> None:
        if message.late is not None and self._put_late(message.late):
            return
        parts = message.parts
        only = parts[0] if len(parts) == 1 else None
        if isinstance(only, TextPart):
            self._put_text(message.role, only.text)
        elif not parts:
            return
        elif message.role == "assistant":
            texts = [part.text for part in parts if isinstance(part, TextPart)]
            content = [
                {"type": "output_text", "text": cut_output(text), "annotations": []}
                for text in texts
            ]
            self._put(
                {"type": "message", "role": "assistant", "status": "completed", "content": content}
            )
        else:
            self._put({"role": message.role, "content": [responses_part(part) for part in parts]})

    def _put_late(self, late: LateResult) -> bool:
        """Send a late result as the output of its call, if that was left open here (rule LR4)."""
        result = late.result
        if late.is_detached:
            return False
        left = self._left_open.pop(result.call_id, None)
        if left is None:
            return False
        self._put(output_item(result, *left))
        return True

    def _note_open(self, results: Sequence[ResultBlock]) -> None:
        # Of a history that was read, the calls that have no output in it.
        for result in results:
            if result.status == "promised":
                self._left_open[result.call_id] = self._sent_id(result.call_id), result.kind

    def _put_original(self, entries: tuple[bytes, ...]) -> None:
        self._async = _NONE
        self._callers = {}
        for entry in entries:
            self._item_ids.update([found.decode() for found in _IDS.findall(entry)])
        self.loaded |= loaded_names(entries)
        super()._put_original(entries)

    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        kept = without_reasoning([json_values.decode(entry) for entry in entries])
        return tuple([encode(item) for item in kept])

    def _replay(self, turn: AssistantTurn) -> None:
        native = turn.native
        ids = [found.decode() for found in _IDS.findall(native)]
        misnamed = self._misnamed_calls(turn)
        self._callers = {}
        self._async = _NONE
        says_async = b'"async":true' in native
        repeats_id = len(set(ids)) != len(ids) or not self._item_ids.isdisjoint(ids)
        # A turn that is short as a whole has no long arguments, so its calls needn't be looked at.
        long = long_calls(turn) if len(native) > MAX_ARGUMENTS else []
        with_long_id: list[CallBlock] = []
        if turn.calls and len(max(map(_ID_OF_CALL, turn.calls), key=len)) > MAX_CALL_ID:
            with_long_id = [c for c in turn.calls if len(c.id) > MAX_CALL_ID and c.position >= 0]
        is_sent_as_it_came = not (
            misnamed
            or repeats_id
            or long
            or with_long_id
            or turn.reasoning_dropped
            or b'"caller":' in native
            or says_async
        )
        if is_sent_as_it_came:
            self._item_ids.update(ids)
            self.entries.append(native[1:-1])  # the entries of its JSON array
            return
        items: list[dict[str, Any]] = json_values.decode(native)
        for call in misnamed:
            if call.kind in ("function", "custom"):
                items[call.position]["name"] = self._sent_name(call.name)
        for call in long:
            items[call.position]["input" if call.kind == "custom" else "arguments"] = cut_call(call)
        for call in with_long_id:
            if (call.id_field or turn.id_field) == "call_id":
                items[call.position]["call_id"] = self._ids(call.id)
        self._callers = {
            item["call_id"]: item["caller"]
            for item in items
            if item.get("caller") and isinstance(item.get("call_id"), str)
        }
        if says_async:
            self._take_async(turn, items)
        if turn.reasoning_dropped:
            items = without_reasoning(items)
        items = fit_ids(items, self._item_ids)
        self.entries.extend([encode(item) for item in items])

    def _take_async(self, turn: AssistantTurn, items: list[dict[str, Any]]) -> None:
        """Note the calls that may stay open; a model that doesn't know them isn't told of any."""
        found: set[str] = set()
        for call in turn.calls:
            item = items[call.position] if call.position >= 0 else {}
            if not may_stay_open(item):
                continue
            if self._carriers.open_calls and "caller" not in item:
                found.add(call.id)
            else:
                del item["async"]
        self._async = frozenset(found)

    def _replay_elsewhere(self, turn: AssistantTurn) -> None:
        self._async = _NONE
        self._callers = {}
        if any(call.kind not in _EVERYWHERE for call in turn.calls):
            self._project_elsewhere(turn)
            return
        items: list[dict[str, Any]] = json_values.decode(turn.native)
        long = long_calls(turn) if len(turn.native) > MAX_ARGUMENTS else []
        for call in self._misnamed_calls(turn):
            items[call.position]["name"] = self._sent_name(call.name)
        for call in long:
            items[call.position]["input" if call.kind == "custom" else "arguments"] = cut_call(call)
        for call in turn.calls:
            if call.position >= 0 and "call_id" in items[call.position]:
                items[call.position]["call_id"] = self._sent_id(call.id)
        self.entries.extend([encode(item) for item in self._fit(items)])

    def _fit(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        fitted, left = fit_items(items)
        for kind in left:
            self._leave_out(kind, "sealed for the host that said it, or known to that alone")
        return fitted

    def _fit_entries(self, turn: AssistantTurn, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        if self.destination.can_open(turn):
            return entries
        items = [json_values.decode(entry) for entry in entries]
        return tuple([encode(item) for item in self._fit(items)])

    def _project(self, turn: AssistantTurn) -> None:
        self._async = _NONE
        self._callers = {}
        for part in text_and_calls(turn):
            if isinstance(part, str):
                self._put_text("assistant", part)
            else:
                self._put(
                    {
                        "type": "function_call",
                        "call_id": self._ids(part.id),
                        "name": self._sent_name(part.name),
                        "arguments": arguments_object(part),
                    }
                )

    def _encode_results(self, results: Sequence[ResultBlock]) -> None:
        for result in results:
            call_id = self._sent_id(result.call_id)
            if result.status == "promised" and result.call_id in self._async:
                self._left_open[result.call_id] = call_id, result.kind
                continue
            # Another API's call was sent as a function's, whatever it was there.
            item = output_item(result, call_id, result.kind if self._own else "function")
            if item["type"] == "tool_search_output":
                self.loaded |= {tool["name"] for tool in item["tools"]}
            if call_id in self._callers and result.kind in CALLED_BY_PROGRAMS:
                item["caller"] = self._callers[call_id]
            self._put(item)


# Kinds of calls that every host of the API knows.
_EVERYWHERE = frozenset({"function", "custom"})
