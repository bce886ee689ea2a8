"""A Responses reply as an `AssistantTurn`."""

# Nothing in a reply makes this raise. `OutputReading` takes the output items one after another, as
# they come in a stream or are in a whole reply or in a history. It gives blocks and calls, the
# items as they go back in an input, and a residue that is kept and never sent. Items are kept as
# they came, and repaired only where OpenAI would refuse them in an input.
#
# What is hard is reasoning: it goes back only together with the item that it led to. If that item
# isn't sent, the reasoning is dropped, and the items after it lose their ids, by which they would
# ask for it (`item_ids.py`).

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.reply_fields import (
    filled,
    mapping,
    model_text,
    name_text,
    text,
    token_names,
    token_usage,
)
from lutumpy.adapters.openai.responses.encode import API
from lutumpy.adapters.openai.responses.item_ids import fit_ids, ids_fit
from lutumpy.adapters.replies import input_transformations
from lutumpy.adapters.unknown_calls import has_outcome, unknown_call, wanted_by
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FinishReason,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
)
from lutumpy.core.tool_names import UNNAMED
from lutumpy.errors import AdapterError
from lutumpy.plain.json_values import encode
from lutumpy.rules.openai.responses.items import ITEM_TYPES
from lutumpy.rules.openai.responses.kinds import CALL_WORDS

__all__ = [
    "CALLS",
    "PENDING",
    "OutputReading",
    "decode_response",
    "is_for_client",
    "output_of",
    "pending_error",
]

# Calls of tools of the user's own: the kind of the call, and the field of its arguments.
CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}

# Other calls that the client should run (rule C8).
_CLIENT_RUN = frozenset([*CALL_WORDS, "mcp_approval_request"]) - CALLS.keys()
_KNOWN = frozenset(ITEM_TYPES)
# The status of a reply that is still being made, in the background.
PENDING = ("queued", "in_progress")

_INCOMPLETE: Mapping[Any, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "length",
    # It stopped between two items for what the application sent on its WebSocket meanwhile.
    "steered": "paused",
}
# Fields that OpenAI refuses as `null` in an input, though its replies have them so.
_DROPPED_IF_NULL = ("caller", "id", "namespace", "phase", "status")
# Items that the model writes, and their fields that OpenAI refuses unless they are texts.
_PLAIN = ("message", "reasoning", *CALLS)
_TEXT_FIELDS = ("encrypted_content", "id", "namespace", "phase", "status")
_TOKENS = token_names("input", "output")


def decode_response(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The output items of a reply."""
    output = reply.get("output")
    items: list[Any] = output if isinstance(output, list) else []
    outputs = {call_id for item in items if (call_id := output_of(item)) is not None}
    reading = OutputReading(outputs)
    for item in items:
        reading.take(item)
    reading.end()
    finish, provider_finish, is_cut = _finish_reason(reply, reading)
    calls = tuple(reading.calls)
    # Without the names of the fields, which would take a third of the time of making it.
    return AssistantTurn(
        API,
        # One tuple for both, where the reply is nothing but calls.
        calls if len(reading.blocks) == len(calls) else tuple(reading.blocks),
        encode(reading.items) if reading.items else b"",  # native
        calls,
        None,  # calls_key
        "call_id",  # id_field
        finish,
        provider_finish,
        token_usage(reply.get("usage"), _TOKENS),
        text(reply.get("model")),
        request_id,
        text(reply.get("id")),  # response_id
        encode(reading.residue) if reading.residue else b"",
        is_cut,
        False,  # results_only
        False,  # reasoning_dropped
        None,  # verbatim
        input_transformations(reply) if "input_transformations" in reply else (),
    )


def pending_error(reply: Mapping[str, Any], request_id: str | None) -> AdapterError:
    """The error for a reply that is still being made, with the id to retrieve it by."""
    status, response_id = str(reply.get("status")), text(reply.get("id"))
    return AdapterError(
        f"{API}: response {response_id or 'without an id'} is {status}: it is made in the "
        "background and holds no answer yet. Retrieve it by its id until its status is another "
        "one, and read it with `OpenAIResponses.response`",
        provider=API,
        request_id=request_id,
        response_id=response_id,
        code=status,
    )


def _finish_reason(
    reply: Mapping[str, Any], reading: OutputReading
) -> tuple[FinishReason, str | None, bool]:
    """Why the model stopped, in this library's word and the provider's, and whether it was cut."""
    status = text(reply.get("status"))
    if status == "incomplete":
        reason = text(mapping(reply.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason, "unknown"), reason or status, True
    if status == "completed":
        if reading.refused:
            return "refusal", status, True
        is_cut = any(call.incomplete for call in reading.calls)
        return "tool_calls" if reading.calls else "stop", status, is_cut
    is_cut = status in PENDING or status in ("failed", "cancelled")
    return "unknown", status, is_cut


def output_of(item: Any) -> str | None:
    """The id of the call that this item is the output of; `None` if it isn't an output.

    A call whose output is in the same reply was run by the provider.
    """
    if not isinstance(item, dict):
        return None
    kind, call_id = item.get("type"), item.get("call_id")
    if type(kind) is not str or not isinstance(call_id, str):
        return None
    if kind.endswith("_output"):
        return call_id
    is_strange = kind not in _KNOWN
    return call_id if is_strange and has_outcome(item) else None


def is_for_client(item: Mapping[str, Any], kind: str) -> bool | None:
    """Whether an item that isn't a function's or custom tool's call is for the client to run.

    Returns:
        `None` if that depends on the rest of the reply: it is, unless the reply has its output.
    """
    if kind in _CLIENT_RUN:
        if kind == "tool_search_call":
            return item.get("execution") == "client"
        return None if isinstance(item.get("call_id"), str) else True
    if kind in _KNOWN or kind.endswith("_output") or has_outcome(item):
        return False
    # Nobody knows the kind: what looks like a call is one, for the model waits for an answer.
    if unknown_call(kind, item, item.get("call_id"), 0) is None:
        return False
    return None if text(item.get("call_id")) is not None else True


class OutputReading:
    """The output items of a reply, taken one after another.

    Args:
        outputs: The ids of the calls whose outputs are in the same reply.
        history: The items are from a history, so calls that no text can answer have outputs, too.
        answered: In a history, the kinds and ids of the calls that outputs of kinds that nobody
            knows answer.
    """

    __slots__ = (
        "_answered",
        "_broken",
        "_history",
        "blocks",
        "calls",
        "items",
        "outputs",
        "refused",
        "residue",
    )

    def __init__(
        self,
        outputs: set[str],
        *,
        history: bool = False,
        answered: AbstractSet[tuple[str, str]] = frozenset(),
    ) -> None:
        self.items: list[dict[str, Any]] = []
        self.blocks: list[Block] = []
        self.calls: list[CallBlock] = []
        self.residue: list[Any] = []
        self.refused: bool = False
        self.outputs: set[str] = outputs
        # Whether reasoning was dropped, so that the items after it must not have ids.
        self._broken = False
        self._history = history
        self._answered = answered

    def take(self, item: Any) -> None:
        """Read the next item."""
        if not isinstance(item, dict):
            if item is not None:
                self.residue.append(item)
            return
        if item.get("type") in _PLAIN:
            for name in _TEXT_FIELDS:
                if name in item and not isinstance(item[name], str) and item[name] is not None:
                    item = {key: value for key, value in item.items() if key != name}
        kept = self._keep_item(item)
        if kept is None:
            self._broken = self._drop_reasoning() or self._broken
            return
        # The id of a request for an approval is what the approval names, so it stays.
        if self._broken and kept.get("id") and kept.get("type") != "mcp_approval_request":
            kept = {name: value for name, value in kept.items() if name != "id"}
        self.items.append(kept)

    def end(self) -> None:
        """There are no more items."""
        self._drop_reasoning()
        if self.items and not ids_fit(self.items):
            self._fit_ids()

    def _keep_item(self, item: dict[str, Any]) -> dict[str, Any] | None:
        """An item as it goes back, or `None` if it doesn't; its blocks are added."""
        kind = item.get("type")
        if not isinstance(kind, str) or not kind:
            self.residue.append(item)
            return None
        if kind in CALLS:
            return self._keep_call(item, *CALLS[kind])
        if kind == "message":
            return self._keep_message(item)
        if kind == "reasoning":
            return self._keep_reasoning(item)
        if self._is_for_client(item, kind):
            return self._keep_other_call(item, kind)
        # The provider runs it, or nobody knows it: it goes back as it came. A compaction stands for
        # reasoning that can't be read.
        self.blocks.append(ReasoningBlock("") if kind == "compaction" else OpaqueBlock(kind))
        return item

    def _keep_call(self, item: dict[str, Any], kind: str, key: str) -> dict[str, Any]:
        call_id, name, arguments = item.get("call_id"), item.get("name"), item.get(key)
        if not (type(call_id) is str and type(name) is str and name and type(arguments) is str):
            call_id = model_text(call_id)
            name = text(name)
            # A function without arguments has an empty object; a custom tool's input may be empty.
            is_absent = arguments is None
            arguments = model_text(arguments)
            sent = "{}" if is_absent and kind != "custom" else arguments
            item = {**item, "call_id": call_id, "name": name or UNNAMED, key: sent}
        if "parsed_arguments" in item or None in item.values():
            item = {
                field: value
                for field, value in item.items()
                if field != "parsed_arguments" and not (value is None and field in _DROPPED_IF_NULL)
            }
        name = name or ""
        if not (call_id.isascii() and name.isascii()):
            call_id, name = name_text(call_id), name_text(name)
            item = {**item, "call_id": call_id, "name": name}
        incomplete = item.get("status") == "incomplete"
        self._add(CallBlock(call_id, name, arguments, kind, False, incomplete, len(self.items)))
        return item

    def _add(self, call: CallBlock) -> None:
        self.blocks.append(call)
        self.calls.append(call)

    def _is_for_client(self, item: dict[str, Any], kind: str) -> bool:
        """Whether the client should run it, and the provider has not run it."""
        call_id = item.get("call_id")
        if self._history and (kind == "tool_search_call" or kind not in _KNOWN):
            # In a history, a search without an id has no output, and the API wants none; what
            # nobody knows is a call if something answers it.
            is_answered = text(call_id) is not None and (
                kind == "tool_search_call" or (kind, call_id) in self._answered
            )
            return is_answered and is_for_client(item, kind) is not False
        found = is_for_client(item, kind)
        return call_id not in self.outputs if found is None else found

    def _keep_other_call(self, item: dict[str, Any], kind: str) -> dict[str, Any] | None:
        is_approval = kind == "mcp_approval_request"
        call_id = name_text(text(item.get("id" if is_approval else "call_id")) or "")
        name = text(item.get("name"))
        # An approval has to name an id. Without one it can't be answered and isn't sent back.
        is_answerable = call_id != "" or not is_approval
        server_label = name_text(text(item.get("server_label")) or "") if is_approval else None
        is_kept = self._history or is_answerable
        self._add(
            CallBlock(
                id=call_id,
                name=name_text(name or kind.removesuffix("_call")),
                arguments=model_text(wanted_of(item, kind)),
                kind=name_text(kind),
                incomplete=item.get("status") == "incomplete",
                position=len(self.items) if is_kept else -1,
                id_field="id" if is_approval else None,
                server_label=server_label,
            )
        )
        if is_kept:
            return item
        self.residue.append(item)
        return None

    def _keep_message(self, item: dict[str, Any]) -> dict[str, Any] | None:
        content = item.get("content")
        if isinstance(content, str):
            if not content:
                return None
            self.blocks.append(TextBlock(content))
        parts = content if isinstance(content, list) else []
        kept: list[Any] = []
        changed = False
        for part in parts:
            sent = self._keep_part(part)
            changed = changed or sent is not part
            if sent is not None:
                kept.append(sent)
        if not kept and not isinstance(content, str):
            if filled(content):
                self.residue.append(item)
            return None
        if changed or None in item.values() or item.get("role") != "assistant":
            item = {
                name: value
                for name, value in item.items()
                if not (value is None and name in _DROPPED_IF_NULL)
            }
            item["role"] = "assistant"
            if kept:
                item["content"] = kept
        return item

    def _keep_part(self, part: Any) -> dict[str, Any] | None:
        if not isinstance(part, dict):
            if part is not None:
                self.residue.append(part)
            return None
        kind = part.get("type")
        if kind == "output_text" and isinstance(part.get("text"), str):
            self.blocks.append(TextBlock(part["text"]))
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            self.blocks.append(RefusalBlock(part["refusal"]))
            self.refused = True
        elif isinstance(kind, str) and kind not in ("", "output_text", "refusal"):
            self.blocks.append(OpaqueBlock(kind))
        else:
            self.residue.append(part)
            return None
        if "logprobs" in part or "parsed" in part:
            part = {
                name: value for name, value in part.items() if name not in ("logprobs", "parsed")
            }
        return _with_entries(part, "annotations", _is_typed) if "annotations" in part else part

    def _keep_reasoning(self, item: dict[str, Any]) -> dict[str, Any]:
        readable = _join_texts(item.get("summary"), "\n\n") or _join_texts(item.get("content"), "")
        self.blocks.append(ReasoningBlock(readable))
        # OpenAI refuses an empty `content` and wants a `summary`, even an empty one.
        if "content" in item and not item["content"]:
            item = {name: value for name, value in item.items() if name != "content"}
        item = _with_entries(item, "summary", _is_text_part)
        return _with_entries(item, "content", _is_text_part) if "content" in item else item

    def _drop_reasoning(self) -> bool:
        """Drop the reasoning at the end of the items, as the item that it led to is not sent.

        Returns:
            Whether there was any.
        """
        before = len(self.items)
        while self.items and self.items[-1].get("type") == "reasoning":
            self.residue.append(self.items.pop())
        return len(self.items) < before

    def _fit_ids(self) -> None:
        """Leave out ids that OpenAI would refuse, and set the positions of the calls to fit."""
        fitted = fit_ids(self.items, set())
        if len(fitted) != len(self.items):
            # Only reasoning is left out, so all other items pair up in order.
            before = [k for k, item in enumerate(self.items) if item.get("type") != "reasoning"]
            after = [k for k, item in enumerate(fitted) if item.get("type") != "reasoning"]
            self._move_calls(dict(zip(before, after, strict=True)))
        self.items = fitted

    def _move_calls(self, places: dict[int, int]) -> None:
        moved = {
            id(call): replace(call, position=places[call.position])
            for call in self.calls
            if call.position in places
        }
        self.calls = [moved.get(id(call), call) for call in self.calls]
        self.blocks = [moved.get(id(block), block) for block in self.blocks]


def wanted_of(item: Mapping[str, Any], kind: str) -> Any:
    """What a call is to do. One of the computer may be several actions, and holds what has to be
    confirmed: then it is an object that has both.
    """
    wanted = wanted_by(item)
    checks = item.get("pending_safety_checks")
    if kind != "computer_call" or not (isinstance(wanted, list) or checks):
        return wanted
    actions = wanted if isinstance(wanted, list) else [wanted] if wanted is not None else []
    return {"actions": actions, **({"pending_safety_checks": checks} if checks else {})}


def _with_entries(
    value: dict[str, Any], name: str, is_entry: Callable[[Any], bool]
) -> dict[str, Any]:
    """The same with a list under a name, and nothing in it but such entries."""
    found = value.get(name)
    entries = found if isinstance(found, list) else []
    kept = [entry for entry in entries if is_entry(entry)]
    return value if kept == found else {**value, name: kept}


def _is_typed(entry: Any) -> bool:
    return isinstance(mapping(entry).get("type"), str)


def _is_text_part(part: Any) -> bool:
    """Whether a part of reasoning has the text that its type says it has."""
    kind = mapping(part).get("type")
    if kind in ("summary_text", "reasoning_text"):
        return isinstance(part.get("text"), str)
    return isinstance(kind, str)


def _join_texts(parts: Any, between: str) -> str:
    if not isinstance(parts, list):
        return ""
    found = [mapping(part).get("text") for part in parts]
    return between.join([each for each in found if isinstance(each, str)])
