"""A Responses answer as an `AssistantTurn`.

Total: nothing that stands in an answer raises. The output items are kept as they came but for fields known to stand in
answers only; they are repaired only where OpenAI itself would refuse them in an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.adapters.openai.history_encoder import UNNAMED
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
from lutumpy.core.json_values import encode
from lutumpy.errors import AdapterError

__all__ = [
    "CALLS",
    "CLIENT_RUN",
    "PENDING",
    "OutputReading",
    "decode_response",
    "output_of",
    "pending_error",
]

CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}

# What the client should run besides functions (rule C8), and what the model asks for with it.
CLIENT_RUN = {
    "apply_patch_call": "operation",
    "computer_call": "action",
    "local_shell_call": "action",
    "mcp_approval_request": "arguments",
    "shell_call": "action",
    "tool_search_call": "arguments",
}
# A reply with one of these holds no answer yet: it is being made in the background.
PENDING = frozenset({"queued", "in_progress"})

_INCOMPLETE: Mapping[Any, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
_NULLABLE_AWAY = ("caller", "id", "namespace", "phase", "status")
_TOKENS = token_names("input", "output")


def decode_response(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The output items of an answer."""
    output = reply.get("output")
    items: list[Any] = output if isinstance(output, list) else []
    reading = OutputReading(
        {answered for item in items if (answered := output_of(item)) is not None}
    )
    for item in items:
        reading.take(item)
    reading.end()
    finish, provider_finish, cut = _finish(reply, reading)
    called = tuple(reading.calls)
    return AssistantTurn(
        API,
        called
        if len(reading.blocks) == len(called)
        else tuple(reading.blocks),  # one tuple where there are only calls
        encode(reading.items) if reading.items else b"",
        called,
        None,
        "call_id",
        finish,
        provider_finish,
        token_usage(reply.get("usage"), _TOKENS),
        text(reply.get("model")),
        request_id,
        text(reply.get("id")),
        encode(reading.residue) if reading.residue else b"",
        cut,
    )


def pending_error(reply: Mapping[str, Any], request_id: str | None) -> AdapterError:
    """What is raised for a reply that holds no answer yet, with the id to retrieve it by."""
    status, response_id = str(reply.get("status")), text(reply.get("id"))
    return AdapterError(
        f"{API}: response {response_id or 'without an id'} is {status}: it is made in the background and holds no "
        "answer yet. Retrieve it by its id until its status is another one, and read it with `OpenAIResponses.response`",
        provider=API,
        request_id=request_id,
        response_id=response_id,
        code=status,
    )


def _finish(
    reply: Mapping[str, Any], reading: OutputReading
) -> tuple[FinishReason, str | None, bool]:
    """Why the model stopped, in our words and the provider's, and whether the answer was cut."""
    status = text(reply.get("status"))
    if status == "incomplete":
        reason = text(mapping(reply.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason, "unknown"), reason or status, True
    if status == "completed":
        if reading.refused:
            return "refusal", status, True
        cut = any(call.incomplete for call in reading.calls)
        return "tool_calls" if reading.calls else "stop", status, cut
    return "unknown", status, status in PENDING or status in ("failed", "cancelled")


def output_of(item: Any) -> str | None:
    """The id of the call whose output this item is: a call with its output beside it was run by the provider."""
    if (
        not isinstance(item, dict)
        or type(kind := item.get("type")) is not str
        or not kind.endswith("_output")
    ):
        return None
    call_id = item.get("call_id")
    return call_id if isinstance(call_id, str) else None


class OutputReading:
    """The output items, taken one after another.

    Args:
        outputs: The ids of the calls whose outputs stand in the same answer.
        history: The items stand in a history, with the outputs of all calls: also of those that no text can answer.
    """

    __slots__ = ("_broken", "_history", "blocks", "calls", "items", "outputs", "refused", "residue")

    def __init__(self, outputs: set[str], *, history: bool = False) -> None:
        self.items: list[dict[str, Any]] = []
        self.blocks: list[Block] = []
        self.calls: list[CallBlock] = []
        self.residue: list[Any] = []
        self.refused: bool = False
        self.outputs: set[str] = outputs
        self._broken = False
        self._history = history

    def take(self, item: Any) -> None:
        """Read the next item."""
        if not isinstance(item, dict):
            if item is not None:
                self.residue.append(item)
            return
        kept = self._item(item)
        if kept is not None:
            self.items.append(kept)
        elif self._drop_reasoning():
            # What the server tied this reasoning to is not sent, so nothing after it may ask for it by id.
            self._broken = True
        if (
            self._broken
            and kept is not None
            and kept.get("id")
            and kept.get("type") != "mcp_approval_request"
        ):
            self.items[-1] = {name: value for name, value in kept.items() if name != "id"}

    def end(self) -> None:
        """There are no more items."""
        self._drop_reasoning()
        if self.items and not ids_fit(self.items):
            self._fit_ids()

    def _item(self, item: dict[str, Any]) -> dict[str, Any] | None:
        """An item as it goes back, or `None` when it does not; its blocks are added."""
        kind = item.get("type")
        if not isinstance(kind, str) or not kind:
            self.residue.append(item)
            return None
        if kind in CALLS:
            return self._call(item, *CALLS[kind])
        if kind == "message":
            return self._message(item)
        if kind == "reasoning":
            return self._reasoning(item)
        if kind in CLIENT_RUN and self._is_ours(item, kind):
            return self._other_call(item, kind)
        self.blocks.append(ReasoningBlock("") if kind == "compaction" else OpaqueBlock(kind))
        return item

    def _call(self, item: dict[str, Any], kind: str, key: str) -> dict[str, Any]:
        call_id, name, arguments = item.get("call_id"), item.get("name"), item.get(key)
        if not (type(call_id) is str and type(name) is str and name and type(arguments) is str):
            call_id = model_text(call_id)
            name = text(name)
            given = arguments is not None
            arguments = model_text(arguments)
            sent = arguments if given or kind == "custom" else "{}"
            item = {**item, "call_id": call_id, "name": name or UNNAMED, key: sent}
        if "parsed_arguments" in item or None in item.values():
            item = {
                field: value
                for field, value in item.items()
                if field != "parsed_arguments" and not (value is None and field in _NULLABLE_AWAY)
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

    def _is_ours(self, item: dict[str, Any], kind: str) -> bool:
        """Whether the client should run it, and the provider has not."""
        if kind == "tool_search_call":
            # In a history nothing can answer one without an id, and the API asks for no answer.
            return item.get("execution") == "client" and not (
                self._history and text(item.get("call_id")) is None
            )
        return (
            item.get("call_id") not in self.outputs
            if isinstance(item.get("call_id"), str)
            else True
        )

    def _other_call(self, item: dict[str, Any], kind: str) -> dict[str, Any] | None:
        wanted = item.get("operation" if kind == "apply_patch_call" else CLIENT_RUN[kind])
        by_item = kind == "mcp_approval_request"
        call_id = name_text(text(item.get("id" if by_item else "call_id")) or "")
        name = name_text(
            (text(item.get("name")) if by_item else None) or kind.removesuffix("_call")
        )
        # A screenshot is no text, and an approval without an id can't be named: such calls stay in the result only.
        here = self._history or (kind != "computer_call" and (call_id != "" or not by_item))
        incomplete = item.get("status") == "incomplete"
        position = len(self.items) if here else -1
        field = "id" if by_item else None
        self._add(
            CallBlock(call_id, name, model_text(wanted), kind, False, incomplete, position, field)
        )
        if here:
            return item
        self.residue.append(item)
        return None

    def _message(self, item: dict[str, Any]) -> dict[str, Any] | None:
        content = item.get("content")
        if isinstance(content, str):
            if not content:
                return None
            self.blocks.append(TextBlock(content))
        parts = content if isinstance(content, list) else []
        kept: list[Any] = []
        changed = False
        for part in parts:
            sent = self._message_part(part)
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
                if not (value is None and name in _NULLABLE_AWAY)
            }
            item["role"] = "assistant"
            if kept:
                item["content"] = kept
        return item

    def _message_part(self, part: Any) -> dict[str, Any] | None:
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
            return {
                name: value for name, value in part.items() if name not in ("logprobs", "parsed")
            }
        return part

    def _reasoning(self, item: dict[str, Any]) -> dict[str, Any]:
        said = _texts(item.get("summary"), "\n\n") or _texts(item.get("content"), "")
        self.blocks.append(ReasoningBlock(said))
        if "content" in item and not item["content"]:
            item = {name: value for name, value in item.items() if name != "content"}
        if item.get("summary") is None:
            item = {**item, "summary": []}
        return item

    def _drop_reasoning(self) -> bool:
        """Leave out the reasoning at the end of the items: what follows it is not sent. Whether there was any."""
        before = len(self.items)
        while self.items and self.items[-1].get("type") == "reasoning":
            self.residue.append(self.items.pop())
        return len(self.items) < before

    def _fit_ids(self) -> None:
        """Leave out ids that would be refused; calls keep pointing at their items."""
        fitted = fit_ids(self.items, set())
        if len(fitted) != len(self.items):
            places = [k for k, item in enumerate(fitted) if item.get("type") != "reasoning"]
            others = [k for k, item in enumerate(self.items) if item.get("type") != "reasoning"]
            self._move(dict(zip(others, places, strict=True)))
        self.items = fitted

    def _move(self, places: dict[int, int]) -> None:
        moved = {
            id(call): replace(call, position=places[call.position])
            for call in self.calls
            if call.position in places
        }
        self.calls = [moved.get(id(call), call) for call in self.calls]
        self.blocks = [moved.get(id(block), block) for block in self.blocks]


def _texts(parts: Any, between: str) -> str:
    if not isinstance(parts, list):
        return ""
    found = [mapping(part).get("text") for part in parts]
    return between.join([piece for piece in found if isinstance(piece, str)])
