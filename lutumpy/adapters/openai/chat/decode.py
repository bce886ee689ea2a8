"""A Chat Completions answer as an `AssistantTurn`.

Total: nothing that stands in an answer raises. The message is kept as it came but for fields known to stand in answers
only; it is repaired only where OpenAI itself would refuse it in a history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.history_encoder import UNNAMED
from lutumpy.adapters.openai.reply_fields import (
    filled,
    mapping,
    model_text,
    name_text,
    text,
    token_names,
    token_usage,
    without_nulls,
)
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

__all__ = ["chat_finish", "decode_call", "decode_chat"]

# The last ones are of compatible hosts: Mistral, and those that pass on another provider's word.
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
# The generation broke off: OpenRouter, DeepSeek.
_BROKEN = frozenset({"error", "insufficient_system_resource"})

_ANSWER_ONLY = frozenset({"annotations", "parsed"})
_RARE = frozenset({"audio", "function_call", "refusal"})
_TOKENS = token_names("prompt", "completion")


def decode_chat(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The first choice of an answer."""
    choices = reply.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}

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
        elif key not in _ANSWER_ONLY:
            kept[key] = value
        elif filled(value):
            residue[key] = value
    # What is there but for text: if nothing is, the message is no history that OpenAI would take.
    extras = len(kept) > 1
    if extras and (reasoning := _reasoning(kept)):
        blocks.append(ReasoningBlock(reasoning))

    if content is not None and type(content) is not str:
        content = _parts(content, blocks) if isinstance(content, list) else model_text(content)
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
            _audio(rare["audio"], kept, residue, blocks, content)
    if entries:
        sent = [
            entry
            for given in (entries if isinstance(entries, list) else [entries])
            if (entry := decode_call(given, calls, residue)) is not None
        ]
        if sent:
            kept["tool_calls"] = sent
    if rare and rare.get("function_call"):
        _legacy(rare["function_call"], kept, calls, residue)
    blocks += calls

    if not calls and not content and "refusal" not in kept and "audio" not in kept:
        # OpenAI refuses a message without content; one that holds more than that, such as reasoning, gets an empty one.
        kept = {**kept, "content": ""} if extras else {}

    provider_finish = text(choice.get("finish_reason"))
    finish, cut = chat_finish(provider_finish, refused=refused)
    called = tuple(calls)
    return AssistantTurn(
        API,
        called
        if len(blocks) == len(called)
        else tuple(blocks),  # one tuple where there is nothing but calls
        encode(kept) if kept else b"",
        called,
        "tool_calls",
        "id",
        finish,
        provider_finish,
        token_usage(reply.get("usage"), _TOKENS),
        text(reply.get("model")),
        request_id,
        text(reply.get("id")),
        encode(residue) if residue else b"",
        cut,
    )


def chat_finish(provider_finish: str | None, *, refused: bool) -> tuple[FinishReason, bool]:
    """Why the model stopped, in our word, and whether the answer was cut."""
    finish: FinishReason = _FINISH.get(provider_finish or "", "unknown")
    if refused and finish == "stop":
        finish = "refusal"
    return finish, finish in _CUT or provider_finish in _BROKEN


def _reasoning(message: dict[str, Any]) -> str | None:
    """Readable reasoning, as DeepSeek, vLLM and OpenRouter spell it."""
    for key in ("reasoning_content", "reasoning"):
        if found := text(message.get(key)):
            return found
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return None
    pieces = [mapping(detail).get("text") or mapping(detail).get("summary") for detail in details]
    return "".join([piece for piece in pieces if isinstance(piece, str)]) or None


def _parts(parts: list[Any], blocks: list[Block]) -> list[Any] | None:
    """A content list as it goes back; its blocks are added to `blocks`."""
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
        elif kind == "thinking":  # Mistral: a list of parts of its own
            inner = found if isinstance(found, list) else [found]
            pieces = [
                piece if isinstance(piece, str) else mapping(piece).get("text") for piece in inner
            ]
            blocks.append(
                ReasoningBlock("".join([piece for piece in pieces if isinstance(piece, str)]))
            )
        else:
            blocks.append(OpaqueBlock(kind))
        kept.append(part)
    return kept or None


def _audio(
    audio: Any, kept: dict[str, Any], residue: dict[str, Any], blocks: list[Block], content: Any
) -> None:
    """An audio answer goes back by its id [OpenAI's API description]; the sound itself stays here."""
    if audio_id := text(mapping(audio).get("id")):
        kept["audio"] = {"id": audio_id}
    if not content and (transcript := text(mapping(audio).get("transcript"))):
        blocks.append(TextBlock(transcript))
    if any(filled(value) and value != 0 for value in mapping(audio).values()):
        residue["audio"] = audio


def decode_call(
    entry: Any, calls: list[CallBlock], residue: dict[str, Any]
) -> dict[str, Any] | None:
    """One entry of `tool_calls` as it goes back; its block is added to `calls`."""
    if not isinstance(entry, dict):
        if entry is not None:
            residue.setdefault("tool_calls", []).append(entry)
        return None
    function = entry.get("function")
    call_id = entry.get("id")
    position = len(calls)
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
        kind = (
            "custom"
            if not isinstance(function, dict) and filled(entry.get("custom"))
            else "function"
        )
    body = without_nulls(mapping(entry.get(kind) if kind in ("function", "custom") else function))
    body.pop("parsed_arguments", None)
    key = "input" if kind == "custom" else "arguments"
    name = name_text(model_text(text(body.get("name"))))
    arguments = model_text(body.get(key))
    sent["type"] = kind
    if kind in ("function", "custom"):
        missing = "" if kind == "custom" else "{}"
        sent[kind] = {**body, "name": name or UNNAMED, key: arguments if key in body else missing}
    calls.append(CallBlock(call_id, name, arguments, kind=kind, position=position))
    return sent


def _legacy(
    call: Any, kept: dict[str, Any], calls: list[CallBlock], residue: dict[str, Any]
) -> None:
    """The call of the older form: answered by a `function` message, so it has a place only when it stands alone."""
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
            calls.append(CallBlock("", name, arguments, kind="function_call"))
        return
    kept["function_call"] = {**without_nulls(call), "name": name, "arguments": arguments}
    # The wire knows no id for it. This entry holds the one that it gets here; the encoder leaves it out.
    kept["tool_calls"] = [{"id": ""}]
    calls.append(CallBlock("", name, arguments, kind="function_call", position=0))
