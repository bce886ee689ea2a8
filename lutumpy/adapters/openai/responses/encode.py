"""A transcript and an offer as the body of a Responses request."""

# What is hard here is the ids of items: OpenAI refuses one that is sent twice, so every id that was
# sent is remembered, and a turn in which one would be repeated is sent with fitted ids
# (`item_ids.py`). Whether a turn needs that is decided on its bytes, without decoding them.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.destination import ANYWHERE, Destination, destination_of
from lutumpy.adapters.openai.history_encoder import (
    HistoryEncoder,
    arguments_object,
    cut_call,
    long_calls,
    text_and_calls,
)
from lutumpy.adapters.openai.offer import (
    TextShape,
    ToolKind,
    offer_fields,
    offer_key,
    refuse_tools,
    text_description,
    tool_list,
    tools_beside,
)
from lutumpy.adapters.openai.parts import cut_output, responses_part
from lutumpy.adapters.openai.responses.elsewhere import fit_items
from lutumpy.adapters.openai.responses.item_ids import fit_ids
from lutumpy.adapters.openai.responses.outputs import CALLED_BY_PROGRAMS, output_item
from lutumpy.adapters.openai.responses.tool_search import (
    declared_offer,
    loaded_names,
    search_tool,
)
from lutumpy.adapters.request_record import NO_REWRITES, RequestRecord
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.adapters.tool_lists import listed_tools
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    ResultBlock,
    TextPart,
)
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import Problem
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.call_ids import ANY_ID, CallIdRule
from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.openai.custom_tools import takes_custom_tools
from lutumpy.rules.openai.limits import MAX_ARGUMENTS
from lutumpy.rules.openai.responses.limits import MAX_CALL_ID
from lutumpy.rules.openai.responses.tools import check_deferred, check_tools
from lutumpy.rules.openai.tool_settings import RESPONSES_TOOL_SETTINGS

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["API", "ResponsesEncoder", "responses_fields", "responses_tools"]

API = "openai_responses"
_ID_OF_CALL = attrgetter("id")
_CALL_IDS = CallIdRule(ANY_ID, MAX_CALL_ID, "call_")

# Quotes inside a JSON string are escaped, so this finds every id of an item. At worst it finds the
# id of something inside one too, and a turn is decoded without need.
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
    record: RequestRecord,
    custom_tools: bool | None = None,
    host: HostFacts | None = None,
) -> Fields:
    """The fields of a request without `model`, as ready JSON by name."""
    if transcript.dropped:
        transcript.refuse_dropped()
    encoder = transcript.encoded(*encoding_for(record.host, record.model, host))
    in_force = encoder.in_force
    is_same = offer is in_force.same_as and record.output is in_force.output
    if not is_same or record.effort != in_force.effort:
        record_settings(record, in_force, offer)
    fields: Fields = {"input": encoder.entries()}
    if encoder.instructions:
        fields["instructions"] = encoder.instructions
    text_shape: TextShape | None = None
    if offer is not None and offer.has_text_tools and takes_custom_tools(custom_tools, model):
        text_shape = _spell_text_tool
    beside = _choices_of(extra) if extra and "tools" in extra else ()
    declared = offer
    if offer is not None and offer.deferred:
        declared = declared_offer(offer, encoder.loaded)
    tools: dict[str, bytes] = {}
    if declared is offer or (declared is not None and declared.specs):
        tools = offer_fields(
            declared,
            API,
            _spell_tool,
            _check_tools,
            strict,
            _spell_choice,
            text_shape,
            RESPONSES_TOOL_SETTINGS,
            _spell_allowed,
            beside,
        )
    if offer is not None and offer.deferred:
        _add_search(tools, offer)
    if tools and model is not None and model.startswith("ft:"):
        refuse_tools(check_tools({"tools": json_values.decode(tools["tools"]), "model": model}))
    if tools and b'"defer_loading":true' in tools["tools"]:
        _refuse_without_search(tools["tools"], extra or {})
    fields.update(tools)
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if max_output_tokens is not None:
        fields["max_output_tokens"] = encode(max_output_tokens)
    if stream:
        fields["stream"] = b"true"
    if record.effort is not None:
        given = extra.get("reasoning") if extra else None
        own = {"effort": record.effort}
        extra = {**(extra or {}), "reasoning": {**own, **given} if given else own}
    entries = encoder.fragments
    head = {"tools": fields.get("tools", b""), "instructions": encoder.instructions}
    kept = len(entries) if encoder.permanent is None else encoder.permanent
    for turn, what, why in encoder.left_out:
        record.leave_out(turn, what, why)
    record.compare(transcript.sent_requests, head, NO_REWRITES, entries, kept)
    if extra:
        add_extra(fields, extra)
    return fields


@lru_cache(maxsize=256)
def encoding_for(
    host: str | None, model: str | None, facts: HostFacts | None
) -> tuple[str, Callable[[], ResponsesEncoder]]:
    """The key that a transcript keeps its encoded form for a host under, and what makes one; worked
    out once for all requests.

    Args:
        host: The authority of its address.
        model: The model that is asked.
        facts: What is known of the host; by its address if omitted.
    """
    destination = destination_of(host, model, facts)
    return f"{API}{destination.key}", partial(ResponsesEncoder, destination)


def responses_tools(
    offer: ToolOffering, strict: bool | None, custom_tools: bool | None
) -> list[dict[str, Any]]:
    """The `tools` of a request alone; of deferred ones, what a search brings is not among them."""
    text_shape = _spell_text_tool if takes_custom_tools(custom_tools, None) else None

    def make() -> list[dict[str, Any]]:
        search = search_tool(offer)
        declared = offer
        if search is not None:
            declared = declared_offer(offer, {spec.name for spec in offer.deferred})
        tools = tool_list(
            declared, API, _spell_tool, _check_tools, strict, text_shape, RESPONSES_TOOL_SETTINGS
        )
        return tools if search is None else [search, *tools]

    return listed_tools(offer, offer_key(API, strict, text_shape), make)


def _add_search(fields: dict[str, bytes], offer: ToolOffering) -> None:
    """Put the declaration of the search before the other tools of a request."""
    search = search_tool(offer)
    if search is None:
        return
    others = fields.get("tools", b"[]")[1:-1]
    fields["tools"] = b"[%b]" % b",".join([data for data in (encode(search), others) if data])
    if offer.mode == "required":
        fields["tool_choice"] = b'"required"'
    if not offer.parallel:
        fields["parallel_tool_calls"] = b"false"


def _spell_tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    # Without `strict`, the server makes the schema strict where it can [OpenAI's documentation].
    tool: dict[str, Any] = {
        "type": "function",
        "name": spec.name,
        "parameters": schema,
        "strict": strict,
    }
    if spec.description:
        tool["description"] = spec.description
    return tool


def _spell_text_tool(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "custom", "name": spec.name, "format": {"type": "text"}}
    if description := text_description(spec):
        tool["description"] = description
    wanted = None if spec.text is None else spec.text.format
    if wanted is not None:
        tool["format"] = {
            "type": "grammar",
            "syntax": wanted.syntax,
            "definition": wanted.definition,
        }
    return tool


def _check_tools(body: Mapping[str, Any]) -> list[Problem]:
    return check_tools(body)


def _refuse_without_search(tools: bytes, extra: Mapping[str, Any]) -> None:
    """Raise for deferred tools that nothing could find (rule C9)."""
    beside = extra.get("tools")
    offered = json_values.decode(tools)
    all_tools = [*offered, *beside] if isinstance(beside, (list, tuple)) else offered
    refuse_tools(check_deferred({"prompt": extra.get("prompt"), "tools": all_tools}))


def _spell_choice(name: str, kind: ToolKind) -> dict[str, Any]:
    return {"type": kind, "name": name}


def _choices_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of `extra` as a choice names them [API description]: by type, with a label or a
    name where the type has one.
    """
    keys = ("type", "server_label", "name")
    return [{key: tool[key] for key in keys if key in tool} for tool in tools_beside(extra)]


def _spell_allowed(mode: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": tools}


class ResponsesEncoder(HistoryEncoder):
    """The input items of a transcript.

    Args:
        destination: Who gets the requests.
    """

    __slots__ = ("_callers", "_item_ids", "loaded")

    api = API

    def __init__(self, destination: Destination = ANYWHERE) -> None:
        # No host is known to take a longer id back.
        super().__init__(_CALL_IDS, MAX_CALL_ID, destination)
        self._item_ids: set[str] = set()
        # The names of the tools that outputs of searches have brought.
        self.loaded: set[str] = set()
        # Of the last turn, by call id: who made the call, if its output has to repeat that. A
        # program that the provider runs makes calls, too.
        self._callers: dict[str, Any] = {}

    def copy(self) -> Self:
        """An independent copy, to encode items that don't stay in the transcript."""
        twin = super().copy()
        twin._item_ids = self._item_ids.copy()
        twin._callers = self._callers
        twin.loaded = self.loaded.copy()
        return twin

    def _put(self, item: dict[str, Any]) -> None:
        self.fragments.append(encode(item))

    def _put_text(self, role: str, text: str) -> None:
        message = {"role": role, "content": cut_output(text)}
        if role == "assistant":
            # llama.cpp's server wants the type of an assistant's message; the API takes both forms.
            message = {"type": "message", **message}
        self._put(message)

    def _encode_message(self, message: Message) -> None:
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

    def _put_original(self, entries: tuple[bytes, ...]) -> None:
        self._callers = {}
        for entry in entries:
            self._item_ids.update([found.decode() for found in _IDS.findall(entry)])
        self.loaded |= loaded_names(entries)
        super()._put_original(entries)

    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        kept = _without_reasoning([json_values.decode(entry) for entry in entries])
        return tuple([encode(item) for item in kept])

    def _replay(self, turn: AssistantTurn) -> None:
        native = turn.native
        ids = [found.decode() for found in _IDS.findall(native)]
        misnamed = self._misnamed_calls(turn)
        self._callers = {}
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
        )
        if is_sent_as_it_came:
            self._item_ids.update(ids)
            self.fragments.append(native[1:-1])  # the entries of its JSON array
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
        if turn.reasoning_dropped:
            items = _without_reasoning(items)
        items = fit_ids(items, self._item_ids)
        self.fragments.extend([encode(item) for item in items])

    def _replay_elsewhere(self, turn: AssistantTurn) -> None:
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
        self.fragments.extend([encode(item) for item in self._fit(items)])

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
            # Another API's call was sent as a function's, whatever it was there.
            item = output_item(result, call_id, result.kind if self._own else "function")
            if item["type"] == "tool_search_output":
                self.loaded |= {tool["name"] for tool in item["tools"]}
            if call_id in self._callers and result.kind in CALLED_BY_PROGRAMS:
                item["caller"] = self._callers[call_id]
            self._put(item)


# Kinds of calls that every host of the API knows.
_EVERYWHERE = frozenset({"function", "custom"})


def _without_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without reasoning; those after it lose their ids, which would ask for it."""
    kept: list[dict[str, Any]] = []
    has_left_out = False
    for item in items:
        if item.get("type") == "reasoning":
            has_left_out = True
        elif has_left_out and item.get("type") != "mcp_approval_request":
            kept.append({name: value for name, value in item.items() if name != "id"})
        else:
            kept.append(item)
    return kept
