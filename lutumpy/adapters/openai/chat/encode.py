"""A transcript and an offer as the body of a Chat Completions request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from lutumpy.adapters.openai.history_encoder import (
    HistoryEncoder,
    arguments_object,
    cut_call,
    long_calls,
    text_and_calls,
)
from lutumpy.adapters.openai.offer import offer_fields, refuse_tools, tool_list
from lutumpy.adapters.openai.parts import chat_part, cut_output
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn, CallBlock, Message, Part, ResultBlock, TextPart
from lutumpy.core.json_values import encode
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import InvalidToolConstraints, Problem
from lutumpy.rules.call_ids import CALL_ID_RULES, CallIds
from lutumpy.rules.openai.chat.limits import MAX_CALLS
from lutumpy.rules.openai.chat.tools import (
    NO_TOOLS_MODELS,
    TOOLS_WITHOUT_REASONING_MODELS,
    check_tools,
)
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_TEXT_PART

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "API",
    "CallIds",
    "ChatEncoder",
    "chat_encoder",
    "chat_fields",
    "chat_tools",
    "checked_call_ids",
]

API = "openai_chat"
_REASONING_KEYS = ("reasoning", "reasoning_content", "reasoning_details", "thought_signature")


def chat_fields(
    transcript: Transcript,
    offer: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    extra: Mapping[str, Any] | None = None,
    call_ids: CallIds | None = None,
) -> Fields:
    """The fields of a request but for `model`, as ready JSON by name."""
    if transcript.dropped:
        transcript.refuse_dropped()
    fields: Fields = {"messages": transcript.encoded(*_ENCODERS[call_ids]).entries()}
    tools = offer_fields(offer, API, _tool, _check_tools, strict, _forced)
    if tools:
        if model is not None:
            _check_model(model, extra or {}, tools)
        fields.update(tools)
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if max_output_tokens is not None:
        fields["max_completion_tokens"] = encode(max_output_tokens)
    if stream:
        fields["stream"] = b"true"
        fields["stream_options"] = b'{"include_usage":true}'
    if extra:
        add_extra(fields, extra)
    return fields


def chat_tools(offer: ToolOffering, strict: bool | None) -> list[dict[str, Any]]:
    """The `tools` of a request alone."""
    return tool_list(offer, _tool, _check_tools, strict)


def _tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": spec.name, "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _forced(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _check_tools(body: Mapping[str, Any]) -> list[Problem]:
    return check_tools(body, None)


def _check_model(model: str, extra: Mapping[str, Any], fields: Mapping[str, bytes]) -> None:
    """Rule C9: what these models answer with status 400 is said before anything is sent."""
    if model.startswith(NO_TOOLS_MODELS):
        raise InvalidToolConstraints(
            f"{model} takes no tools on Chat Completions; use OpenAIResponses"
        )
    if model.startswith(TOOLS_WITHOUT_REASONING_MODELS) and extra.get("reasoning_effort") != "none":
        raise InvalidToolConstraints(
            f"{model} takes tools on Chat Completions only with extra={{'reasoning_effort': 'none'}}; "
            "use that, or OpenAIResponses"
        )
    if model.startswith("ft:"):
        refuse_tools(check_tools({"tools": json_values.decode(fields["tools"])}, model))


def chat_encoder(transcript: Transcript, call_ids: CallIds | None) -> ChatEncoder:
    """The encoded form of a transcript, for a host with this rule about call ids."""
    return transcript.encoded(*_ENCODERS[call_ids])


def checked_call_ids(call_ids: Any) -> CallIds | None:
    """The name of a rule about call ids, or `None`.

    Raises:
        ValueError: there is no such rule.
    """
    if call_ids is not None and call_ids not in get_args(CallIds):
        raise ValueError(
            f"call_ids is one of {', '.join(map(repr, get_args(CallIds)))}, not {call_ids!r}"
        )
    found: CallIds | None = call_ids
    return found


class ChatEncoder(HistoryEncoder):
    """The messages of a transcript.

    Args:
        call_ids: Whose rule about call ids holds, also for ids of this wire's own answers; the history may come from
            another host. `None`, where the host isn't known: a host's own longer ids go back as they came.
    """

    __slots__ = ("_held",)

    api = API

    def __init__(self, call_ids: CallIds | None = None) -> None:
        rule = CALL_ID_RULES[call_ids or "openai"]
        own_limit = sys.maxsize if call_ids is None else 0 if call_ids == "mistral" else rule.limit
        super().__init__(rule, own_limit)
        # An assistant's message with more calls than one may have: it waits for the results, to be sent in pieces.
        self._held: dict[str, Any] | None = None

    def copy(self) -> Self:
        """An independent copy, for items that are not there to stay."""
        twin = super().copy()
        twin._held = self._held
        return twin

    def _message(self, message: Message) -> None:
        parts = message.parts
        lone = parts[0] if len(parts) == 1 else None
        content: Any = (
            cut_output(lone.text)
            if isinstance(lone, TextPart)
            else [chat_part(part) for part in parts]
        )
        if content:
            self._put({"role": message.role, "content": content})

    def _put(self, message: dict[str, Any]) -> None:
        self.fragments.append(encode(message))

    def _put_calls(self, message: dict[str, Any], calls: Sequence[CallBlock]) -> None:
        answered = [call for call in calls if call.answerable]
        if len(answered) > MAX_CALLS and len(answered) == len(message.get("tool_calls") or ()):
            self._held = message
        else:
            self._put(message)

    def _as_read(self, entries: tuple[bytes, ...]) -> None:
        if self._held is not None:
            self._put(self._held)
            self._held = None
        super()._as_read(
            tuple([self._with_ids(entry) for entry in entries])
            if self._own_limit < sys.maxsize
            else entries
        )

    def _with_ids(self, entry: bytes) -> bytes:
        """A message of a history that was read, with call ids that the host takes."""
        if b'"tool_call' not in entry:
            return entry
        message: dict[str, Any] = json_values.decode(entry)
        changed = False
        calls = message.get("tool_calls")
        holders = (
            [(call, "id") for call in calls if isinstance(call, dict)]
            if isinstance(calls, list)
            else []
        )
        for holder, key in [*holders, (message, "tool_call_id")]:
            given = holder.get(key)
            if (
                isinstance(given, str)
                and len(given) > self._own_limit
                and (wanted := self._ids(given)) != given
            ):
                holder[key] = wanted
                changed = True
        return encode(message) if changed else entry

    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        messages = [json_values.decode(entry) for entry in entries]
        return tuple(
            [
                encode({key: value for key, value in message.items() if key not in _REASONING_KEYS})
                for message in messages
            ]
        )

    def _replay(self, turn: AssistantTurn) -> None:
        unfit = self._unfit(turn)
        legacy: list[CallBlock] = []
        renamed: list[CallBlock] = []
        for call in turn.calls:
            if call.kind == "function_call" and call.answerable:
                legacy.append(call)
            if len(call.id) > self._own_limit and call.position >= 0:  # the host may refuse it
                renamed.append(call)
        long = long_calls(turn) if len(turn.native) > MAX_ARGUMENTS else []
        if not (
            unfit
            or legacy
            or renamed
            or long
            or turn.reasoning_dropped
            or len(turn.calls) > MAX_CALLS
        ):
            self.fragments.append(turn.native)
            return
        message = json_values.decode(turn.native)
        for call in unfit:
            if call.kind == "function_call":
                message["function_call"]["name"] = self._name(call.name)
            elif call.kind in ("function", "custom"):
                message["tool_calls"][call.position][call.kind]["name"] = self._name(call.name)
        for call in long:
            key = "input" if call.kind == "custom" else "arguments"
            message["tool_calls"][call.position][call.kind][key] = cut_call(call)
        for call in renamed:
            message["tool_calls"][call.position]["id"] = self._ids(call.id)
        if legacy:
            # The wire has no id for such a call: `tool_calls` only keeps the place of ours.
            del message["tool_calls"]
        if turn.reasoning_dropped:
            for key in _REASONING_KEYS:
                message.pop(key, None)
        self._put_calls(message, turn.calls)

    def _project(self, turn: AssistantTurn) -> None:
        pieces = text_and_calls(turn)
        if not pieces:
            return
        texts = [piece for piece in pieces if isinstance(piece, str)]
        calls = [piece for piece in pieces if isinstance(piece, CallBlock)]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": cut_output("\n\n".join(texts)) or None,
        }
        if calls:
            message["tool_calls"] = [
                {
                    "id": self._ids(call.id),
                    "type": "function",
                    "function": {
                        "name": self._name(call.name),
                        "arguments": arguments_object(call),
                    },
                }
                for call in calls
            ]
        self._put_calls(message, calls)

    def _results(self, results: Sequence[ResultBlock]) -> None:
        shown: list[dict[str, Any]] = []
        held, self._held = self._held, None
        for start in range(0, len(results), MAX_CALLS):
            end = start + MAX_CALLS
            if held is not None:
                first = {} if start == 0 else {"content": None}
                self._put({**held, **first, "tool_calls": held["tool_calls"][start:end]})
            for result in results[start:end]:
                content: Any = result.content
                if self._own and result.kind == "function_call":
                    # The wire has no id for such a call.
                    self._put(
                        {
                            "role": "function",
                            "name": self._name(result.name),
                            "content": cut_output(result.text),
                        }
                    )
                    continue
                call_id = self._id(result.call_id)
                if not isinstance(content, str):
                    content = self._result_parts(call_id, result.name, content, shown)
                elif len(content) > MAX_TEXT_PART:
                    content = cut_output(content)
                self._put({"role": "tool", "tool_call_id": call_id, "content": content})
        if shown:
            self._put({"role": "user", "content": shown})

    @staticmethod
    def _result_parts(
        call_id: str, name: str, parts: tuple[Part, ...], shown: list[dict[str, Any]]
    ) -> str | list[dict[str, Any]]:
        """What a tool message can say of `parts`; what it can't hold is put into `shown`, for a user message."""
        texts: list[str] = []
        moved: list[dict[str, Any]] = []
        for part in parts:
            wire = chat_part(part)
            if wire["type"] == "text":
                texts.append(wire["text"])
            else:
                moved.append(wire)
        if moved:
            what = f"{len(moved)} attachment{'s' if len(moved) > 1 else ''} of the result of call {call_id} ({name})"
            texts.append(f"[{what}: see the user message after the tool results]")
            shown.append({"type": "text", "text": f"[{what}:]"})
            shown += moved
        if len(texts) == 1:
            return texts[0]
        return [{"type": "text", "text": text} for text in texts] or ""


_ENCODERS: Mapping[CallIds | None, tuple[str, Callable[[], ChatEncoder]]] = {
    None: (API, ChatEncoder),
    **{name: (f"{API}:{name}", partial(ChatEncoder, name)) for name in CALL_ID_RULES},
}
"""The encoder for each rule about call ids, with the key that a transcript keeps it under."""
