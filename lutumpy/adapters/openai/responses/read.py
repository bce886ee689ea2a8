"""A history of Responses as a transcript; every item also goes back as it was read."""

# This API has no turns, and an output may be anywhere after its call. So turns have to be found:
# a turn is a run of items that a model made. While a call of it waits for an output, the turn is
# open, and all that comes belongs to it:
#
#   item                    | a turn is open            | a turn with all outputs | no turn
#   ------------------------+---------------------------+-------------------------+----------------
#   made by a model         | joins the turn            | ends it, opens another  | opens a turn
#   the output of a call    | answers a call of it      | refused, unless the     | as on the left
#                           |                           | server holds the call   |
#   a message               | is kept inside the turn,  | ends it                 | a message
#                           | and comes after it        |                         |
#
# A call with `async: true` needs no output: the turn doesn't wait for one. Where none has come by
# its end, the call is open, and its output is a late result wherever it stands.
#
# Outputs of calls that the server holds (`server_held_prefix`) and that are side by side become
# the results of a turn that is made up for them.

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.reply_fields import mapping, text
from lutumpy.adapters.openai.responses.decode import OutputReading
from lutumpy.adapters.openai.responses.encode import API
from lutumpy.adapters.openai.responses.read_changes import SETTINGS
from lutumpy.adapters.openai.responses.read_content import read_parts, read_result, text_parts
from lutumpy.adapters.read_settings import read_settings
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    text_only,
)
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FinishReason,
    Message,
    Part,
    ResultBlock,
    Role,
    Verbatim,
)
from lutumpy.core.promises import (
    LateResult,
    Promise,
    PromisedCall,
    header_of,
    placeholder,
    restored_message,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import encode
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.openai.responses.kinds import may_stay_open

__all__ = ["read_responses"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}

# For each type of output, the kinds of calls (this library's words) that it can answer, and the
# fields that may name the call.
_OUTPUTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "function_call_output": (("function", "tool_search_call"), ("call_id",)),
    "custom_tool_call_output": (("custom",), ("call_id",)),
    "tool_search_output": (("tool_search_call",), ("call_id",)),
    "computer_call_output": (("computer_call",), ("call_id",)),
    "local_shell_call_output": (("local_shell_call",), ("call_id", "id")),
    "shell_call_output": (("shell_call",), ("call_id",)),
    "apply_patch_call_output": (("apply_patch_call",), ("call_id",)),
    "mcp_approval_response": (("mcp_approval_request",), ("approval_request_id",)),
}
_CALL_TYPES = {"function": "function_call", "custom": "custom_tool_call"}
# Items of the application that are neither messages nor outputs; other APIs get nothing of them.
_APPLICATION_ITEMS = frozenset({"additional_tools", "compaction_trigger", "configuration_update"})


def read_responses(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None, tools: Any = None
) -> Transcript:
    """The transcript of a request's `input`.

    Args:
        messages: Items as JSON objects or objects of the SDK; or a text, the user's only message.
        system: The request's `instructions`.
        server_held_prefix: The server holds the start of the conversation
            (`previous_response_id`, `conversation`), so outputs may answer calls that are not here.
            If `None`, an input that consists of outputs only is taken for such a one.
        tools: The request's `tools`, where they are known.

    Raises:
        TranscriptError: it is not a history, or a call has no output, or an output no call.
    """
    history = HistoryReading(API)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    entries = history.entries(messages, "input[{}]")
    if system is not None:
        data, value = decoded(system, "instructions")
        if not isinstance(value, str):
            raise TranscriptError(
                f"instructions are {type(value).__name__}, not a text; nothing was read"
            )
        original = Verbatim(API, (data,), system=True)
        history.add(Message("system", text_parts(value), verbatim=original))
    held = server_held_prefix
    if held is None:
        held = all(text(entry.value.get("type")) in _OUTPUTS for entry in entries)
    reading = _InputReading(history, held, _answered_strangers(entries))
    for entry in entries:
        reading.take(entry)
    reading.end()
    if history.refused:
        items = [entry.value for entry in entries]
        return history.end(responses.check_messages(items, server_held_prefix=held))
    transcript = history.end(())
    return read_settings(transcript, tools, SETTINGS)


def _answered_strangers(entries: Sequence[Entry]) -> frozenset[tuple[str, str]]:
    """The kinds and ids of calls that outputs of kinds that nobody knows answer."""
    found: set[tuple[str, str]] = set()
    for entry in entries:
        kind, call_id = entry.value.get("type"), text(entry.value.get("call_id"))
        if call_id is None or not isinstance(kind, str) or kind in responses.ITEM_TYPES:
            continue
        if kind.endswith("_output"):
            found.add((kind.removesuffix("_output"), call_id))
    return frozenset(found)


class _OpenTurn:
    """A turn while its items and the outputs of its calls are being read."""

    __slots__ = (
        "_by_id",
        "_entries",
        "_indexed",
        "_lacking",
        "_own",
        "_reading",
        "_results",
        "inside",
        "left_open",
    )

    def __init__(self, answered: frozenset[tuple[str, str]]) -> None:
        self._reading = OutputReading(set(), history=True, answered=answered)
        # Calls are indexed when somebody asks for one. Of these: the places of the calls that wait
        # for an output, by id, and how many of them must have one.
        self._by_id: dict[str, deque[int]] = {}
        self._indexed = 0
        self._lacking = 0
        self._entries: list[Entry] = []
        # How many of the entries are the turn's own: up to the last item that the model made.
        self._own = 0
        # Results by the place of their calls.
        self._results: dict[int, ResultBlock] = {}
        # Calls that are open at its end, as the history names them.
        self.left_open: list[CallBlock] = []
        # Messages that came while the turn was open.
        self.inside: list[tuple[Role, list[Part]]] = []

    @property
    def open(self) -> bool:
        """Whether a call waits for its output."""
        self._index_calls()
        return self._lacking > 0

    @property
    def answered(self) -> bool:
        """Whether any output has come."""
        return bool(self._results)

    def waiting(self) -> list[CallBlock]:
        """The calls that still need an output."""
        calls = enumerate(self._reading.calls)
        return [c for k, c in calls if k not in self._results and not self._may_stay_open(c)]

    def take(self, entry: Entry) -> None:
        """Add an item that the model made."""
        self._reading.take(_as_output(entry.value))
        self._entries.append(entry)
        self._own = len(self._entries)

    def keep(self, entry: Entry) -> None:
        """Add another item, which goes back where it was."""
        self._entries.append(entry)

    def answer(self, entry: Entry, call_id: str, kinds: tuple[str, ...]) -> bool:
        """Take an output, if a call of one of these kinds waits for it.

        Returns:
            Whether it was taken.
        """
        self._index_calls()
        waiting = self._by_id.get(call_id, ())
        for place, index in enumerate(waiting):
            call = self._reading.calls[index]
            if call.kind in kinds:
                del self._by_id[call_id][place]
                self._lacking -= not self._may_stay_open(call)
                self._results[index] = read_result(entry.value, call)
                self._entries.append(entry)
                return True
        return False

    def _index_calls(self) -> None:
        """Index the calls that came since the last time."""
        calls = self._reading.calls
        while self._indexed < len(calls):
            call = calls[self._indexed]
            self._by_id.setdefault(call.id, deque()).append(self._indexed)
            self._lacking += not self._may_stay_open(call)
            self._indexed += 1

    def _may_stay_open(self, call: CallBlock) -> bool:
        return call.position >= 0 and may_stay_open(self._reading.items[call.position])

    def end(self, history: HistoryReading) -> None:
        """Add the turn, its results and the messages inside it to the history."""
        reading = self._reading
        for index, call in enumerate(reading.calls):
            if index not in self._results and self._may_stay_open(call):
                text = placeholder(call.name, call.id, "")
                self._results[index] = ResultBlock(
                    call.id, call.name, text, "promised", call.kind, Promise()
                )
                self.left_open.append(call)
        lacking = [call for k, call in enumerate(reading.calls) if k not in self._results]
        # A call that nothing answers is marked as unanswerable: no other API gets it.
        changed = {id(call): replace(call, position=-1) for call in lacking}
        blocks = [changed.get(id(block), block) for block in reading.blocks]
        calls = [changed.get(id(call), call) for call in reading.calls]
        finish: FinishReason = "stop"
        if calls:
            finish = "tool_calls"
        elif reading.refused:
            finish = "refusal"
        turn = AssistantTurn(
            api=API,
            blocks=tuple(blocks),
            native=encode(reading.items) if reading.items else b"",
            calls=tuple(calls),
            id_field="call_id",
            finish_reason=finish,
        )
        results = [self._results[index] for index in sorted(self._results)]
        history.turn(turn, self._entries[: self._own], results, self._entries[self._own :])
        for role, parts in self.inside:
            history.message(role, parts, [])


class _InputReading:
    """Reads the items one after another. See the table above."""

    __slots__ = (
        "_answered",
        "_held",
        "_history",
        "_left_open",
        "_orphans",
        "_outputs",
        "_searches",
        "_turn",
    )

    def __init__(
        self, history: HistoryReading, held: bool, answered: frozenset[tuple[str, str]]
    ) -> None:
        self._answered = answered
        self._history = history
        self._held = held
        self._turn: _OpenTurn | None = None
        # Outputs, side by side, of calls that the server holds, and the calls made up for them.
        self._orphans: list[tuple[Entry, CallBlock]] = []
        # The type and the call's id of each output so far.
        self._outputs: set[tuple[str, str]] = set()
        # Open calls by the ids of the history, as the transcript has them.
        self._left_open: dict[str, PromisedCall] = {}
        # The ids of the provider's own searches for tools; their outputs are the provider's, too.
        self._searches: set[str] = set()

    def take(self, entry: Entry) -> None:
        """Read the next item."""
        item = entry.value
        kind = responses.item_type(item)
        role = item.get("role")
        if not isinstance(kind, str) or not kind:
            self._history.refuse(entry.position, "it has neither a type nor a role")
        elif kind == "message" and role != "assistant":
            if isinstance(role, str) and role in _ROLES:
                self._take_message(entry, _ROLES[role], read_parts(item.get("content")))
            else:
                self._history.refuse(entry.position, f"the role {role!r} is none of this API")
        elif kind in _APPLICATION_ITEMS:
            self._take_message(entry, "developer", [])
        elif kind in _OUTPUTS and not self._is_of_provider(item, kind):
            self._take_output(entry, *_OUTPUTS[kind])
        elif self._answers_stranger(kind, item):
            self._take_output(entry, (kind.removesuffix("_output"),), ("call_id",))
        else:
            if kind == "tool_search_call" and item.get("execution") != "client":
                call_id = item.get("call_id")
                if isinstance(call_id, str):
                    self._searches.add(call_id)
            self._take_model_item(entry, kind)

    def _is_of_provider(self, item: Mapping[str, Any], kind: str) -> bool:
        """Whether an output is of a call that the provider ran itself."""
        if item.get("execution") == "server":
            return True
        call_id = item.get("call_id")
        is_search = kind == "tool_search_output" and isinstance(call_id, str)
        return is_search and call_id in self._searches

    def end(self) -> None:
        """End the turn, if there is one: nothing that follows belongs to it."""
        if self._orphans:
            orphans, self._orphans = self._orphans, []
            self._add_held_turn(orphans)
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        for call in turn.waiting():
            self._history.refuse("input", f"call {call.id!r} of {call.name!r} has no output")
        turn.end(self._history)
        if turn.left_open and not self._history.refused:
            added = self._history.open_calls[-len(turn.left_open) :]
            for call, promised in zip(turn.left_open, added, strict=True):
                self._left_open[call.id] = promised

    def _take_model_item(self, entry: Entry, kind: str) -> None:
        turn = self._turn
        if self._orphans or (turn is not None and turn.answered and not turn.open):
            self.end()
        if kind == "item_reference":
            # Behind it may be a call, whose output is still to come.
            self._held = True
        self._turn = self._turn or _OpenTurn(self._answered)
        self._turn.take(entry)

    def _take_message(self, entry: Entry, role: Role, parts: list[Part]) -> None:
        if role != "user":
            parts = text_only(parts)
        if self._turn is not None and self._turn.open:
            self._turn.inside.append((role, parts))
            self._turn.keep(entry)
            return
        self.end()
        self._history.message(role, parts, [entry])

    def _answers_stranger(self, kind: str, item: Mapping[str, Any]) -> bool:
        """Whether an output of a kind that nobody knows answers a call of the turn."""
        if self._turn is None or kind in responses.ITEM_TYPES or not kind.endswith("_output"):
            return False
        of_kind = kind.removesuffix("_output")
        call_id = item.get("call_id")
        return any(call.kind == of_kind and call.id == call_id for call in self._turn.waiting())

    def _take_output(self, entry: Entry, kinds: tuple[str, ...], fields: tuple[str, ...]) -> None:
        kind = entry.value["type"]
        named = (text(entry.value.get(field)) for field in fields)
        call_id = next((found for found in named if found is not None), None)
        if call_id is None:
            # The host's own words, in the form of an output.
            self._take_message(entry, "user", read_parts(entry.value.get("output")))
            return
        is_second = (kind, call_id) in self._outputs
        self._outputs.add((kind, call_id))
        turn = self._turn
        if turn is not None and turn.answer(entry, call_id, kinds):
            return
        promised = self._left_open.get(call_id)
        if promised is not None and promised.kind in kinds:
            self.end()
            del self._left_open[call_id]
            self._take_late(entry, promised)
            return
        is_for_held = self._held and turn is not None and turn.open
        # What the server holds of a request for approval isn't known, as it is for other calls.
        is_for_held = is_for_held or (self._held and kind == "mcp_approval_response")
        if is_second or is_for_held:
            # No call waits for it: its own API gets it back, and the others get nothing.
            self._take_message(entry, "user", [])
        elif self._held:
            if turn is not None:
                self.end()
            name = text(entry.value.get("name")) or ""
            call = CallBlock(call_id, name, "", kinds[0], position=len(self._orphans))
            self._orphans.append((entry, call))
        else:
            self._history.refuse(entry.position, f"the output {call_id!r} has no call before it")

    def _take_late(self, entry: Entry, call: PromisedCall) -> None:
        """Add the output of a call that was left open."""
        block = CallBlock(call.call_id, call.name, call.arguments, call.kind)
        result = read_result(entry.value, block)
        header = header_of(call.call_id, call.name, failed=result.status == "error")
        original = self._history.verbatim([entry])
        self._history.add(restored_message(LateResult(result, header), original))

    def _add_held_turn(self, orphans: list[tuple[Entry, CallBlock]]) -> None:
        """Add a turn that the server holds; all that is known of it are the ids of its calls."""
        calls = tuple([call for _, call in orphans])
        native = [
            {"type": _CALL_TYPES.get(call.kind, call.kind), "call_id": call.id} for call in calls
        ]
        turn = AssistantTurn(
            api=API,
            blocks=calls,
            native=encode(native),
            calls=calls,
            id_field="call_id",
            finish_reason="tool_calls",
        )
        results = [read_result(entry.value, call) for entry, call in orphans]
        self._history.turn(turn, [], results, [entry for entry, _ in orphans])


def _as_output(item: dict[str, Any]) -> dict[str, Any]:
    """The item as a reply has it: programs may give an assistant's message parts of type input."""
    content = item.get("content")
    if item.get("role") != "assistant":
        return item
    item = {"type": "message", **item}
    if isinstance(content, list):
        item["content"] = [
            {**part, "type": "output_text"} if mapping(part).get("type") == "input_text" else part
            for part in content
        ]
    return item
