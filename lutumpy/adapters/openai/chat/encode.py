"""A transcript and an offer as the body of a Chat Completions request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.adapters.json_bytes import encode
from lutumpy.adapters.openai.history import HistoryEncoder, arguments_object, data_url, text_and_calls
from lutumpy.adapters.openai.tools import offer_fields, tool_list
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.core import json_values
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FilePart,
    ImagePart,
    Message,
    Part,
    ResultBlock,
    TextPart,
    describe,
)
from lutumpy.core.rules.chat_tools import NO_TOOLS_MODELS, TOOLS_WITHOUT_REASONING_MODELS
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import InvalidToolConstraints

__all__ = ["API", "ChatEncoder", "chat_fields", "chat_tools"]

API = "openai_chat"
MAX_CALL_ID = 40
"""Characters of a call id [OpenAI's error text]; a compatible host's own longer ids go back to it as they came."""

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
) -> Fields:
    """The fields of a request but for `model`, as ready JSON by name."""
    if transcript.dropped:
        transcript.refuse_dropped()
    fields: Fields = {"messages": transcript.encoded(API, ChatEncoder).entries()}
    tools = offer_fields(offer, API, _tool, strict, _forced)
    if tools:
        if model is not None:
            _check_model(model, extra or {})
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
    return tool_list(offer, _tool, strict)


def _tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": spec.name, "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _forced(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _check_model(model: str, extra: Mapping[str, Any]) -> None:
    """Rule C9: what these models answer with status 400 is said before anything is sent."""
    if model.startswith(NO_TOOLS_MODELS):
        raise InvalidToolConstraints(f"{model} takes no tools on Chat Completions; use OpenAIResponses")
    if model.startswith(TOOLS_WITHOUT_REASONING_MODELS) and extra.get("reasoning_effort") != "none":
        raise InvalidToolConstraints(
            f"{model} takes tools on Chat Completions only with extra={{'reasoning_effort': 'none'}}; "
            "use that, or OpenAIResponses"
        )


class ChatEncoder(HistoryEncoder):
    """The messages of a transcript."""

    __slots__ = ()

    api = API

    def __init__(self) -> None:
        super().__init__(MAX_CALL_ID)

    def _message(self, message: Message) -> None:
        parts = message.parts
        lone = parts[0] if len(parts) == 1 else None
        content = lone.text if isinstance(lone, TextPart) else [_part(part) for part in parts]
        if content:
            self._put({"role": message.role, "content": content})

    def _put(self, message: dict[str, Any]) -> None:
        self.fragments.append(encode(message))

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
        legacy = [call for call in turn.calls if call.kind == "function_call" and call.answerable]
        if not (unfit or legacy or turn.reasoning_dropped):
            self.fragments.append(turn.native)
            return
        message = json_values.decode(turn.native)
        for call in unfit:
            if call.kind == "function_call":
                message["function_call"]["name"] = self._name(call.name)
            elif call.kind in ("function", "custom"):
                message["tool_calls"][call.position][call.kind]["name"] = self._name(call.name)
        if legacy:
            # The wire has no id for such a call: `tool_calls` only keeps the place of ours.
            del message["tool_calls"]
        if turn.reasoning_dropped:
            for key in _REASONING_KEYS:
                message.pop(key, None)
        self._put(message)

    def _project(self, turn: AssistantTurn) -> None:
        pieces = text_and_calls(turn)
        if not pieces:
            return
        texts = [piece for piece in pieces if isinstance(piece, str)]
        calls = [piece for piece in pieces if isinstance(piece, CallBlock)]
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": self._ids(call.id),
                    "type": "function",
                    "function": {"name": self._name(call.name), "arguments": arguments_object(call)},
                }
                for call in calls
            ]
        self._put(message)

    def _results(self, results: Sequence[ResultBlock]) -> None:
        shown: list[dict[str, Any]] = []
        for result in results:
            if self._own and result.kind == "function_call":
                self._put({"role": "function", "name": self._name(result.name), "content": result.text})
                continue
            call_id = self._id(result.call_id)
            content: Any = result.content
            if not isinstance(content, str):
                content = self._result_parts(call_id, result.name, content, shown)
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
            wire = _part(part)
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


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        image: dict[str, Any] = {"url": part.url if part.url is not None else data_url(part)}
        if part.detail is not None:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    return _file(part)


def _file(part: FilePart) -> dict[str, Any]:
    if part.data is None:
        return {"type": "text", "text": describe(part)}
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": data_url(part)}}
