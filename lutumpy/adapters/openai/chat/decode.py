"""A Chat Completions reply as an `AssistantTurn`."""

# Nothing in a reply makes this raise. One pass over the message gives three things:
#
# - blocks and calls, for reading and for other APIs;
# - the message as it goes back in a history (`native`). It is kept as it came, and repaired only
#   where OpenAI would refuse it in a history;
# - the residue: fields that only replies have. They are kept and never sent.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.history_encoder import fits_name
from lutumpy.adapters.openai.reply_fields import (
    filled,
    mapping,
    model_text,
    name_text,
    nested_texts,
    text,
    token_names,
    token_usage,
)
from lutumpy.adapters.replies import without_nulls
from lutumpy.adapters.unknown_calls import calls_in_fields, wanted_by
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
from lutumpy.plain.json_values import encode

__all__ = ["chat_finish", "decode_call", "decode_chat"]

# The last two come from compatible hosts: Mistral, and hosts that pass on another provider's word.
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "model_length": "length",
    "max_tokens": "length",
}
_CUT = frozenset({"length", "content_filter", "refusal"})
# Reasons of hosts for a reply that broke off: OpenRouter, DeepSeek.
_BROKEN_OFF = frozenset({"error", "insufficient_system_resource"})

# Fields that only replies have; OpenAI refuses them in a history.
_REPLY_ONLY = frozenset({"annotations", "parsed"})
# Fields that few replies have, each with a treatment of its own.
_RARE = frozenset({"audio", "function_call", "refusal"})
# Fields of `kept` that hold no calls of unknown kinds.
_KEPT_APART = frozenset(
    {"role", "content", "tool_calls", "function_call", "audio", "reasoning_details"}
)
_TOKENS = token_names("prompt", "completion")


def decode_chat(
    reply: Mapping[str, Any], request_id: str | None = None, *, is_history: bool = False
) -> AssistantTurn:
    """The first choice of a reply: the one with the index 0, wherever it is listed.

    Args:
        reply: The reply.
        request_id: The provider's id of the request, where known.
        is_history: The message is from a history, where its answered calls are in `tool_calls`.
    """
    choices = reply.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    if isinstance(choices, list) and choice.get("index"):
        firsts = [one for one in choices if isinstance(one, dict) and one.get("index") == 0]
        choice = firsts[0] if firsts else choice

    kept: dict[str, Any] = {"role": "assistant"}
    residue: dict[str, Any] = {}
    blocks: list[Block] = []
    calls: list[CallBlock] = []
    content: Any = None
    entries: Any = None
    rare: dict[str, Any] = {}
    message = mapping(choice.get("message"))
    for key, value in message.items():
        if key == "tool_calls":
            entries = value
        elif key == "content":
            content = value
        elif value is None or key == "role":
            continue
        elif key in _RARE:
            rare[key] = value
        elif key not in _REPLY_ONLY:
            kept[key] = value
        elif filled(value):
            residue[key] = value
    has_further_fields = len(kept) > 1
    if has_further_fields and (reasoning := _readable_reasoning(kept)):
        blocks.append(ReasoningBlock(reasoning))

    if isinstance(content, list):
        content = _keep_parts(content, blocks)
    elif content is not None and type(content) is not str:
        content = model_text(content)
    if content and type(content) is str:
        blocks.append(TextBlock(content))
    if "content" in message:
        kept["content"] = content

    refused = False
    if rare:
        refusal = rare.get("refusal")
        if refusal and isinstance(refusal, str):
            kept["refusal"] = refusal
            blocks.append(RefusalBlock(refusal))
            refused = True
        elif refusal is not None and refusal != "":
            residue["refusal"] = refusal
        if "audio" in rare:
            _keep_audio(rare["audio"], kept, residue, blocks, content)
    if entries:
        sent: list[dict[str, Any]] = []
        for entry in entries if isinstance(entries, list) else [entries]:
            kept_entry = decode_call(entry, calls, residue)
            if kept_entry is not None:
                sent.append(kept_entry)
        if sent:
            kept["tool_calls"] = sent
    if rare and rare.get("function_call"):
        _keep_function_call(rare["function_call"], kept, calls, residue)
    if (has_further_fields or type(content) is list) and not is_history:
        _add_calls_elsewhere(kept, calls)
    blocks += calls

    if not calls and not content and "refusal" not in kept and "audio" not in kept:
        # OpenAI refuses a message without content. One with further fields, such as reasoning, gets
        # an empty content; of any other nothing is sent.
        kept = {**kept, "content": ""} if has_further_fields else {}

    provider_finish = text(choice.get("finish_reason"))
    finish, is_cut = chat_finish(provider_finish, refused=refused)
    turn_calls = tuple(calls)
    # Without the names of the fields, which would take a third of the time of making it.
    return AssistantTurn(
        API,
        # One tuple for both, where the reply is nothing but calls.
        turn_calls if len(blocks) == len(turn_calls) else tuple(blocks),
        encode(kept) if kept else b"",  # native
        turn_calls,
        "tool_calls",  # calls_key
        "id",  # id_field
        finish,
        provider_finish,
        token_usage(reply.get("usage"), _TOKENS),
        text(reply.get("model")),
        request_id,
        text(reply.get("id")),  # response_id
        encode(residue) if residue else b"",
        is_cut,
    )


def chat_finish(provider_finish: str | None, *, refused: bool) -> tuple[FinishReason, bool]:
    """Why the model stopped, in this library's word, and whether the reply was cut."""
    finish: FinishReason = _FINISH.get(provider_finish or "", "unknown")
    if refused and finish == "stop":
        finish = "refusal"
    return finish, finish in _CUT or provider_finish in _BROKEN_OFF


def _readable_reasoning(message: dict[str, Any]) -> str | None:
    """The reasoning in the fields that DeepSeek, vLLM and OpenRouter put it in."""
    for key in ("reasoning_content", "reasoning"):
        if found := text(message.get(key)):
            return found
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return None
    texts = [mapping(detail).get("text") or mapping(detail).get("summary") for detail in details]
    return "".join([each for each in texts if isinstance(each, str)]) or None


def _keep_parts(parts: list[Any], blocks: list[Block]) -> list[Any] | None:
    """A list of parts as it goes back; their blocks are added to `blocks`."""
    kept: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        kind = text(part.get("type")) if isinstance(part, dict) else None
        if kind is None:
            continue
        found = part.get(kind)
        if kind == "text":
            if not isinstance(found, str):
                continue
            blocks.append(TextBlock(found))
        elif kind == "refusal":
            if not isinstance(found, str):
                continue
            blocks.append(RefusalBlock(found))
        elif (texts := nested_texts(part)) is not None:
            blocks.append(ReasoningBlock("".join(texts)))
        else:
            blocks.append(OpaqueBlock(kind))
        kept.append(part)
    return kept or None


def _keep_audio(
    audio: Any, kept: dict[str, Any], residue: dict[str, Any], blocks: list[Block], content: Any
) -> None:
    """A spoken reply goes back by its id [API description]; the sound itself stays here."""
    if audio_id := text(mapping(audio).get("id")):
        kept["audio"] = {"id": audio_id}
    if not content and (transcript := text(mapping(audio).get("transcript"))):
        blocks.append(TextBlock(transcript))
    if any(filled(value) and value != 0 for value in mapping(audio).values()):
        residue["audio"] = audio


def decode_call(
    entry: Any, calls: list[CallBlock], residue: dict[str, Any]
) -> dict[str, Any] | None:
    """An entry of `tool_calls` as it goes back, or `None`; its block is added to `calls`."""
    if not isinstance(entry, dict):
        if entry is not None:
            residue.setdefault("tool_calls", []).append(entry)
        return None
    function = entry.get("function")
    call_id = entry.get("id")
    position = len(calls)
    # Nearly every entry is as OpenAI documents it, and goes back without a copy.
    if (
        type(function) is dict
        and entry.get("type") == "function"
        and type(call_id) is str
        and type(name := function.get("name")) is str
        and name
        and type(arguments := function.get("arguments")) is str
        and "parsed_arguments" not in function
        and call_id.isascii()
        and name.isascii()
    ):
        calls.append(CallBlock(call_id, name, arguments, "function", False, False, position))
        return entry

    sent = without_nulls(entry)
    sent["id"] = call_id = name_text(model_text(call_id))
    kind = text(entry.get("type"))
    if kind is None:
        is_custom = not isinstance(function, dict) and filled(entry.get("custom"))
        kind = "custom" if is_custom else "function"
    is_known = kind in ("function", "custom")
    body_value = entry.get(kind)
    body = without_nulls(
        mapping(body_value if is_known or isinstance(body_value, dict) else function)
    )
    body.pop("parsed_arguments", None)
    key = "input" if kind == "custom" else "arguments"
    name = name_text(model_text(text(body.get("name"))))
    arguments = model_text(body.get(key) if is_known else wanted_by(body))
    sent["type"] = kind
    if is_known:
        missing = "" if kind == "custom" else "{}"
        sent[kind] = {**body, "name": name or UNNAMED, key: arguments if key in body else missing}
    calls.append(CallBlock(call_id, name, arguments, kind=kind, position=position))
    return sent


def _add_calls_elsewhere(kept: dict[str, Any], calls: list[CallBlock]) -> None:
    """Add the calls in fields and parts that nobody knows (rule C8).

    Nothing but an entry of `tool_calls` can be answered, so each goes back as one more of these.
    """
    if "function_call" in kept:
        return  # `tool_calls` holds the place of that one alone
    fields = {key: value for key, value in kept.items() if key not in _KEPT_APART}
    found = calls_in_fields(fields)
    content = kept.get("content")
    for part in content if isinstance(content, list) else ():
        found += calls_in_fields({part["type"]: part})
    for kind, item in found:
        call_id = name_text(model_text(text(item.get("id")) or text(item.get("call_id"))))
        name, arguments = name_text(item["name"]), model_text(wanted_by(item))
        function = {"name": name if fits_name(name) else UNNAMED, "arguments": arguments}
        sent = {"id": call_id, "type": "function", "function": function}
        kept.setdefault("tool_calls", []).append(sent)
        calls.append(CallBlock(call_id, name, arguments, name_text(kind), position=len(calls)))


def _keep_function_call(
    call: Any, kept: dict[str, Any], calls: list[CallBlock], residue: dict[str, Any]
) -> None:
    """Keep a call of the older form: as it came if it stands alone, which `position` 0 says.

    Beside `tool_calls` nothing could answer it, unless it repeats one of them; so it goes back as
    one more entry there.
    """
    name = text(mapping(call).get("name"))
    if name is None:
        if filled(call) and any(map(filled, mapping(call).values())):
            residue["function_call"] = call
        return
    name = name_text(name)
    arguments = model_text(call.get("arguments"))
    if calls:
        residue["function_call"] = call
        if all(other.name != name or other.arguments != arguments for other in calls):
            function = {"name": name, "arguments": arguments}
            kept["tool_calls"].append({"id": "", "type": "function", "function": function})
            calls.append(CallBlock("", name, arguments, "function_call", position=len(calls)))
        return
    kept["function_call"] = {**without_nulls(call), "name": name, "arguments": arguments}
    # The API has no id for it. This entry is the place for the id that it gets here; the encoder
    # leaves the entry out.
    kept["tool_calls"] = [{"id": ""}]
    calls.append(CallBlock("", name, arguments, kind="function_call", position=0))
