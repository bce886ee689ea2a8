"""A history of Responses as a transcript: its input items told apart, and kept as they are.

The wire knows no turns and no adjacency: outputs may stand anywhere after their calls. A turn is a run of items that a
model made; while calls of it are open, whatever comes belongs to it, so that every item can go back where it stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.reply_fields import mapping, text
from lutumpy.adapters.openai.responses.decode import OutputReading
from lutumpy.adapters.openai.responses.encode import API
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    decoded,
    file_at,
    image_part,
    left_out,
    status_of,
    text_only,
)
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    Part,
    ResultBlock,
    Role,
    TextPart,
    Verbatim,
)
from lutumpy.core.json_values import encode, encode_text
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.rules.openai.responses import items as responses

__all__ = ["read_responses"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user"}

# Which calls, in this library's words, an output can answer, and where it names the call.
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
# Items of the application's that are neither messages nor outputs.
_SAID = frozenset({"additional_tools", "compaction_trigger"})


def read_responses(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of a request's `input`.

    Args:
        messages: Items as JSON objects or objects of the SDK; or one text, which is a message of the user.
        system: The request's `instructions`.
        server_held_prefix: The conversation's start is at the server (`previous_response_id`, `conversation`), so that
            outputs may answer calls which aren't here. When left out, that is taken for granted of an input that is
            nothing but outputs.

    Raises:
        TranscriptError: it is no history, or a call has no output, or an output no call.
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
        history.add(
            Message("system", _text_parts(value), verbatim=Verbatim(API, (data,), system=True))
        )
    held = server_held_prefix
    if held is None:
        held = all(text(entry.value.get("type")) in _OUTPUTS for entry in entries)
    reading = _InputReading(history, held)
    for entry in entries:
        reading.take(entry)
    reading.end()
    if not history.refused:
        return history.end(())
    return history.end(
        responses.check_messages([entry.value for entry in entries], server_held_prefix=held)
    )


class _OpenTurn:
    """A turn while its items, and the outputs of its calls, are being read."""

    __slots__ = (
        "_answered",
        "_by_id",
        "_entries",
        "_indexed",
        "_lacking",
        "_own",
        "_reading",
        "inside",
    )

    def __init__(self) -> None:
        self._reading = OutputReading(set(), history=True)
        # Of the calls that are indexed so far: those that wait for an output by id, and how many need one.
        self._by_id: dict[str, deque[int]] = {}
        self._indexed = 0
        self._lacking = 0
        self._entries: list[Entry] = []
        # How many of the entries the turn itself takes: up to the last item that the model made.
        self._own = 0
        self._answered: dict[int, ResultBlock] = {}
        # Messages that stand before an output.
        self.inside: list[tuple[Role, list[Part]]] = []

    @property
    def open(self) -> bool:
        """Whether a call waits for its output."""
        self._index()
        return self._lacking > 0

    @property
    def answered(self) -> bool:
        """Whether outputs have come."""
        return bool(self._answered)

    def waiting(self) -> list[CallBlock]:
        """The calls that still need an output; an approval may be asked for and never given."""
        calls = enumerate(self._reading.calls)
        return [
            call for index, call in calls if index not in self._answered and _needs_output(call)
        ]

    def take(self, entry: Entry) -> None:
        """An item that the model made."""
        self._reading.take(_as_output(entry.value))
        self._entries.append(entry)
        self._own = len(self._entries)

    def keep(self, entry: Entry) -> None:
        """Another item: it goes where it stood."""
        self._entries.append(entry)

    def answer(self, entry: Entry, call_id: str, kinds: tuple[str, ...]) -> bool:
        """Whether this output is for a call of the turn that waits for one."""
        self._index()
        waiting = self._by_id.get(call_id, ())
        for place, index in enumerate(waiting):
            call = self._reading.calls[index]
            if call.kind in kinds:
                del self._by_id[call_id][place]
                self._lacking -= _needs_output(call)
                self._answered[index] = _result(entry.value, call)
                self._entries.append(entry)
                return True
        return False

    def _index(self) -> None:
        """Note the calls that came since the last time."""
        calls = self._reading.calls
        while self._indexed < len(calls):
            call = calls[self._indexed]
            self._by_id.setdefault(call.id, deque()).append(self._indexed)
            self._lacking += _needs_output(call)
            self._indexed += 1

    def end(self, history: HistoryReading) -> None:
        """Everything that belongs to the turn is there."""
        reading = self._reading
        lacking = [call for index, call in enumerate(reading.calls) if index not in self._answered]
        changed = {id(call): replace(call, position=-1) for call in lacking}
        blocks = [changed.get(id(block), block) for block in reading.blocks]
        calls = [changed.get(id(call), call) for call in reading.calls]
        turn = AssistantTurn(
            api=API,
            blocks=tuple(blocks),
            native=encode(reading.items) if reading.items else b"",
            calls=tuple(calls),
            id_field="call_id",
            finish_reason="tool_calls" if calls else "refusal" if reading.refused else "stop",
        )
        results = [self._answered[index] for index in sorted(self._answered)]
        history.turn(turn, self._entries[: self._own], results, self._entries[self._own :])
        for role, parts in self.inside:
            history.message(role, parts, [])


def _needs_output(call: CallBlock) -> bool:
    return call.kind != "mcp_approval_request"


class _InputReading:
    """The items, taken one after another."""

    __slots__ = ("_held", "_history", "_orphans", "_searches", "_seen", "_turn")

    def __init__(self, history: HistoryReading, held: bool) -> None:
        self._history = history
        self._held = held
        self._turn: _OpenTurn | None = None
        # Outputs, side by side, of calls that the server holds.
        self._orphans: list[tuple[Entry, CallBlock]] = []
        # The outputs so far: what they are, and of which call.
        self._seen: set[tuple[str, str]] = set()
        # Searches for tools that are the provider's own, by id: their outputs are, too.
        self._searches: set[str] = set()

    def take(self, entry: Entry) -> None:
        item = entry.value
        kind = item.get("type")
        if kind is None:
            kind = "message" if "role" in item else "item_reference" if "id" in item else None
        role = item.get("role")
        if not isinstance(kind, str) or not kind:
            self._history.refuse(entry.position, "it has neither a type nor a role")
        elif kind == "message" and role != "assistant":
            if isinstance(role, str) and role in _ROLES:
                self._message(entry, _ROLES[role], _parts(item.get("content")))
            else:
                self._history.refuse(entry.position, f"the role {role!r} is none of this API")
        elif kind in _SAID:
            self._message(entry, "developer", [])
        elif (
            kind in _OUTPUTS
            and item.get("execution") != "server"
            and not self._is_of_a_search(item, kind)
        ):
            self._output(entry, kind)
        else:
            if (
                kind == "tool_search_call"
                and item.get("execution") != "client"
                and isinstance(item.get("call_id"), str)
            ):
                self._searches.add(item["call_id"])
            self._made(entry, kind)

    def _is_of_a_search(self, item: Mapping[str, Any], kind: str) -> bool:
        call_id = item.get("call_id")
        return (
            kind == "tool_search_output" and isinstance(call_id, str) and call_id in self._searches
        )

    def end(self) -> None:
        """There are no more items, or a turn is complete."""
        if self._orphans:
            orphans, self._orphans = self._orphans, []
            self._held_turn(orphans)
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        for call in turn.waiting():
            self._history.refuse("input", f"call {call.id!r} of {call.name!r} has no output")
        turn.end(self._history)

    def _made(self, entry: Entry, kind: str) -> None:
        if self._orphans or (
            self._turn is not None and self._turn.answered and not self._turn.open
        ):
            self.end()
        if kind == "item_reference":
            # Behind it may be a call, whose output is still to come.
            self._held = True
        self._turn = self._turn or _OpenTurn()
        self._turn.take(entry)

    def _message(self, entry: Entry, role: Role, parts: list[Part]) -> None:
        said = parts if role == "user" else text_only(parts)
        if self._turn is not None and self._turn.open:
            self._turn.inside.append((role, said))
            self._turn.keep(entry)
            return
        self.end()
        self._history.message(role, said, [entry])

    def _output(self, entry: Entry, kind: str) -> None:
        kinds, fields = _OUTPUTS[kind]
        call_id = next(
            (found for name in fields if (found := text(entry.value.get(name))) is not None), None
        )
        if call_id is None:
            # What the host says by itself, in the form of an output.
            self._message(entry, "user", _list_parts(entry.value.get("output")))
            return
        again = (kind, call_id) in self._seen
        self._seen.add((kind, call_id))
        if self._turn is not None and self._turn.answer(entry, call_id, kinds):
            return
        if (
            again
            or kind == "mcp_approval_response"
            or (self._held and self._turn is not None and self._turn.open)
        ):
            # Nothing waits for it: its own API gets it back, and no other is told.
            self._message(entry, "user", [])
        elif self._held:
            if self._turn is not None:
                self.end()
            name = text(entry.value.get("name")) or ""
            self._orphans.append(
                (entry, CallBlock(call_id, name, "", kinds[0], position=len(self._orphans)))
            )
        else:
            self._history.refuse(entry.position, f"the output {call_id!r} has no call before it")

    def _held_turn(self, orphans: list[tuple[Entry, CallBlock]]) -> None:
        """The turn that the server holds: all that is known of it is which calls it made."""
        calls = tuple([call for _, call in orphans])
        native = [
            {"type": _CALL_TYPES.get(call.kind, call.kind), "call_id": call.id} for call in calls
        ]
        turn = AssistantTurn(
            API, calls, encode(native), calls, id_field="call_id", finish_reason="tool_calls"
        )
        results = [_result(entry.value, call) for entry, call in orphans]
        self._history.turn(turn, [], results, [entry for entry, _ in orphans])


def _as_output(item: dict[str, Any]) -> dict[str, Any]:
    """The item as an answer has it: a message in a history may spell its text as an input's."""
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


def _result(item: dict[str, Any], call: CallBlock) -> ResultBlock:
    """What an output says."""
    given = item.get("output")
    failed = item.get("status") == "failed"
    content: str | tuple[Part, ...]
    if call.kind == "mcp_approval_request":
        content = text(item.get("reason")) or (
            "approved" if item.get("approve") is True else "not approved"
        )
        failed = item.get("approve") is not True
    elif isinstance(given, str):
        content = given
    elif item.get("type") == "computer_call_output":
        content = tuple(_list_parts([given]))
    elif item.get("type") == "shell_call_output":
        content, failed = _shell(given)
    elif item.get("type") == "tool_search_output":
        content = encode_text(item.get("tools"))
    else:
        content = tuple(_list_parts(given)) if isinstance(given, list) else _said(given)
    return ResultBlock(call.id, call.name, content, status_of(content, failed), call.kind)


def _shell(output: Any) -> tuple[str, bool]:
    """What commands wrote, and whether one of them failed."""
    written: list[str] = []
    failed = False
    for chunk in output if isinstance(output, list) else []:
        said = mapping(chunk)
        written += [
            found for name in ("stdout", "stderr") if (found := text(said.get(name))) is not None
        ]
        outcome = mapping(said.get("outcome"))
        failed = (
            failed or outcome.get("type") == "timeout" or outcome.get("exit_code") not in (0, None)
        )
    return "\n".join(written), failed


def _said(value: Any) -> str:
    return "" if value is None else encode_text(value)


def _parts(content: Any) -> list[Part]:
    return list(_text_parts(content)) if isinstance(content, str) else _list_parts(content)


def _text_parts(content: str) -> tuple[Part, ...]:
    return (TextPart(content),) if content else ()


def _list_parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return list(_text_parts(content))
    return (
        [found for part in content if (found := _part(part)) is not None]
        if isinstance(content, list)
        else []
    )


def _part(part: Any) -> Part | None:
    given = mapping(part)
    kind = given.get("type")
    if kind in ("input_text", "output_text", "refusal", "text"):
        said = given.get("refusal" if kind == "refusal" else "text")
        return TextPart(said) if isinstance(said, str) and said else None
    if kind in ("input_image", "computer_screenshot"):
        if given.get("image_url") is None:
            return left_out("image", given.get("file_id"))
        return image_part(given["image_url"], given.get("detail"))
    if kind == "input_file":
        for name in ("file_data", "file_url"):
            if given.get(name) is not None:
                return file_at(given[name], given.get("filename"))
        return left_out("file", given.get("filename") or given.get("file_id"))
    return left_out(kind)
