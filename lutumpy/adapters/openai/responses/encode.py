"""A transcript and an offer as the body of a Responses request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.openai.history_encoder import (
    HistoryEncoder,
    arguments_object,
    cut_call,
    long_calls,
    text_and_calls,
)
from lutumpy.adapters.openai.offer import offer_fields, refuse_tools, tool_list
from lutumpy.adapters.openai.parts import cut_output, responses_part
from lutumpy.adapters.openai.responses.item_ids import fit_ids
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn, CallBlock, Message, ResultBlock, TextPart
from lutumpy.core.json_values import encode
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import Problem
from lutumpy.rules.call_ids import ANY_ID, CallIdRule
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_TEXT_PART
from lutumpy.rules.openai.responses.limits import MAX_CALL_ID
from lutumpy.rules.openai.responses.tools import check_tools

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["API", "ResponsesEncoder", "responses_fields", "responses_tools"]

API = "openai_responses"
_ID = attrgetter("id")
_CALL_IDS = CallIdRule(ANY_ID, MAX_CALL_ID, "call_")

# Quotes inside a JSON string are escaped, so this finds every id of an item, and at worst the id of something inside one.
_IDS = re.compile(rb'"id":"([^"\\]+)"')


def responses_fields(
    transcript: Transcript,
    offer: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Fields:
    """The fields of a request but for `model`, as ready JSON by name."""
    if transcript.dropped:
        transcript.refuse_dropped()
    encoder = transcript.encoded(API, ResponsesEncoder)
    fields: Fields = {"input": encoder.entries()}
    if encoder.instructions:
        fields["instructions"] = encoder.instructions
    tools = offer_fields(offer, API, _tool, _check_tools, strict, _forced)
    if tools and model is not None and model.startswith("ft:"):
        refuse_tools(check_tools({"tools": json_values.decode(tools["tools"]), "model": model}))
    fields.update(tools)
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if max_output_tokens is not None:
        fields["max_output_tokens"] = encode(max_output_tokens)
    if stream:
        fields["stream"] = b"true"
    if extra:
        add_extra(fields, extra)
    return fields


def responses_tools(offer: ToolOffering, strict: bool | None) -> list[dict[str, Any]]:
    """The `tools` of a request alone."""
    return tool_list(offer, _tool, _check_tools, strict)


def _tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    # Left out, `strict` makes the server rewrite the schema where it can [OpenAI's documentation].
    tool: dict[str, Any] = {
        "type": "function",
        "name": spec.name,
        "parameters": schema,
        "strict": strict,
    }
    if spec.description:
        tool["description"] = spec.description
    return tool


def _check_tools(body: Mapping[str, Any]) -> list[Problem]:
    return check_tools(body)


def _forced(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


class ResponsesEncoder(HistoryEncoder):
    """The input items of a transcript."""

    __slots__ = ("_callers", "_item_ids")

    api = API

    def __init__(self) -> None:
        super().__init__(_CALL_IDS, MAX_CALL_ID)  # no host is known to take a longer one back
        self._item_ids: set[str] = set()
        # By call id, for the last turn: who made the call, where the answer must say it again (programmatic calls).
        self._callers: dict[str, Any] = {}

    def copy(self) -> Self:
        """An independent copy, for items that are not there to stay."""
        twin = super().copy()
        twin._item_ids = self._item_ids.copy()
        twin._callers = self._callers
        return twin

    def _put(self, item: dict[str, Any]) -> None:
        self.fragments.append(encode(item))

    def _put_text(self, role: str, text: str) -> None:
        # llama.cpp's server takes an assistant's message only with its type said; the API takes it with and without.
        self._put(
            {
                **({"type": "message"} if role == "assistant" else {}),
                "role": role,
                "content": cut_output(text),
            }
        )

    def _message(self, message: Message) -> None:
        parts = message.parts
        lone = parts[0] if len(parts) == 1 else None
        if isinstance(lone, TextPart):
            self._put_text(message.role, lone.text)
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

    def _as_read(self, entries: tuple[bytes, ...]) -> None:
        self._callers = {}
        for entry in entries:
            self._item_ids.update([found.decode() for found in _IDS.findall(entry)])
        super()._as_read(entries)

    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        kept = _without_reasoning([json_values.decode(entry) for entry in entries])
        return tuple([encode(item) for item in kept])

    def _replay(self, turn: AssistantTurn) -> None:
        native = turn.native
        ids = [found.decode() for found in _IDS.findall(native)]
        unfit = self._unfit(turn)
        self._callers = {}
        repeated = len(set(ids)) != len(ids) or not self._item_ids.isdisjoint(ids)
        long = long_calls(turn) if len(native) > MAX_ARGUMENTS else []
        long_ids: list[CallBlock] = []
        if turn.calls and len(max(map(_ID, turn.calls), key=len)) > MAX_CALL_ID:
            long_ids = [c for c in turn.calls if len(c.id) > MAX_CALL_ID and c.position >= 0]
        if not (
            unfit
            or repeated
            or long
            or long_ids
            or turn.reasoning_dropped
            or b'"caller":' in native
        ):
            self._item_ids.update(ids)
            self.fragments.append(native[1:-1])
            return
        items: list[dict[str, Any]] = json_values.decode(native)
        for call in unfit:
            if call.kind in ("function", "custom"):
                items[call.position]["name"] = self._name(call.name)
        for call in long:
            items[call.position]["input" if call.kind == "custom" else "arguments"] = cut_call(call)
        for call in long_ids:
            if (call.id_field or turn.id_field) == "call_id":
                items[call.position]["call_id"] = self._ids(call.id)
        self._callers = {
            item["call_id"]: item["caller"]
            for item in items
            if item.get("caller") and item.get("call_id")
        }
        if turn.reasoning_dropped:
            items = _without_reasoning(items)
        items = fit_ids(items, self._item_ids)
        self.fragments.extend([encode(item) for item in items])

    def _project(self, turn: AssistantTurn) -> None:
        self._callers = {}
        for piece in text_and_calls(turn):
            if isinstance(piece, str):
                self._put_text("assistant", piece)
            else:
                self._put(
                    {
                        "type": "function_call",
                        "call_id": self._ids(piece.id),
                        "name": self._name(piece.name),
                        "arguments": arguments_object(piece),
                    }
                )

    def _results(self, results: Sequence[ResultBlock]) -> None:
        for result in results:
            call_id = self._id(result.call_id)
            item = _output(result, call_id, result.kind if self._own else "function")
            if call_id in self._callers and result.kind in _CALLED_BY_PROGRAMS:
                item["caller"] = self._callers[call_id]
            self._put(item)


_CALLED_BY_PROGRAMS = frozenset({"function", "custom", "shell_call", "apply_patch_call"})


def _output(result: ResultBlock, call_id: str, kind: str) -> dict[str, Any]:
    """The answer to a call by its own kind of item, as OpenAI's API description has them."""
    if kind in ("function", "custom", "tool_search_call"):
        # A tool search may be answered as a function is [recorded]; its own kind of output takes no text.
        word = "custom_tool" if kind == "custom" else "function"
        content = result.content
        if not isinstance(content, str):
            output: Any = [responses_part(part) for part in content] or ""
        else:
            output = content if len(content) <= MAX_TEXT_PART else cut_output(content)
        return {"type": f"{word}_call_output", "call_id": call_id, "output": output}
    failed = result.status != "ok"
    text = cut_output(result.text)
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1 if failed else 0}
        said = {
            "stdout": "" if failed else text,
            "stderr": text if failed else "",
            "outcome": outcome,
        }
        return {"type": "shell_call_output", "call_id": call_id, "output": [said]}
    if kind == "apply_patch_call":
        status = "failed" if failed else "completed"
        return {
            "type": "apply_patch_call_output",
            "call_id": call_id,
            "status": status,
            "output": text,
        }
    if kind == "mcp_approval_request":
        return {
            "type": "mcp_approval_response",
            "approval_request_id": call_id,
            "approve": False,
            "reason": text,
        }
    return {"type": "local_shell_call_output", "id": call_id, "call_id": call_id, "output": text}


def _without_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without reasoning, and without the ids that ask for it."""
    kept: list[dict[str, Any]] = []
    left_out = False
    for item in items:
        if item.get("type") == "reasoning":
            left_out = True
        elif left_out and item.get("type") != "mcp_approval_request":
            kept.append({name: value for name, value in item.items() if name != "id"})
        else:
            kept.append(item)
    return kept
