"""The blocks of an answer on their way back to the API: what is looked up in them, and changed."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.anthropic.containers import container_of
from lutumpy.adapters.anthropic.decode import API, INVALID_INPUT, REASONING, SERVER_CALLS
from lutumpy.adapters.anthropic.original import kind_of
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import AssistantTurn, CallBlock, RefusalBlock, TextBlock
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode

__all__ = [
    "encode_message",
    "find_container",
    "find_late_results",
    "finished_blocks",
    "shorten_to_prefill",
    "translate_turn",
]


def translate_turn(turn: AssistantTurn, ids: Renamer, names: Renamer) -> list[dict[str, Any]]:
    """What another API's answer says, as blocks of this one (rule R2).

    Args:
        turn: The answer.
        ids: Gives the ids of calls, as this API takes them.
        names: Gives the names of tools.
    """
    blocks: list[dict[str, Any]] = []
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            if block.text.strip():
                blocks.append({"type": "text", "text": block.text})
        elif isinstance(block, CallBlock) and block.answerable:
            blocks.append(
                {
                    "type": "tool_use",
                    "id": ids(block.id),
                    "name": names(block.name),
                    "input": _parse_input(block),
                }
            )
    return blocks


def find_late_results(turn: AssistantTurn) -> set[str]:
    """Ids of the provider's calls that an answer brings results of."""
    blocks: list[dict[str, Any]] = json_values.decode(turn.native) if turn.api == API else []
    found = [b.get("tool_use_id") for b in blocks if b["type"].endswith("_tool_result")]
    return {call_id for call_id in found if isinstance(call_id, str)}


def finished_blocks(blocks: list[dict[str, Any]], arrived: set[str]) -> list[dict[str, Any]] | None:
    """The blocks of an answer without calls of the provider's that have no result; `None` if all
    have one.

    Args:
        blocks: The answer's content.
        arrived: Ids of calls whose results come with the next answer.
    """
    kept = [
        block
        for block in blocks
        if kind_of(block) not in SERVER_CALLS
        or block.get("id") in arrived
        or _has_result(blocks, block)
    ]
    if len(kept) == len(blocks):
        return None
    while kept and kind_of(kept[-1]) in REASONING:
        kept.pop()
    return kept


def _has_result(blocks: list[dict[str, Any]], call: dict[str, Any]) -> bool:
    return any(
        kind_of(b).endswith("_tool_result") and b.get("tool_use_id") == call.get("id")
        for b in blocks
    )


def encode_message(role: str, content: str | list[dict[str, Any]]) -> bytes:
    return encode({"role": role, "content": content})


def shorten_to_prefill(message: bytes) -> list[bytes]:
    """An answer as the beginning of the next one.

    "final assistant content cannot end with trailing whitespace"; "The final block in an assistant
    message cannot be `thinking`", and without thinking such a message may hold none at all.
    """
    fields = json_values.decode(message)
    content = fields.get("content")
    if isinstance(content, str):
        kept: Any = content.rstrip()
    else:
        kept = (
            [b for b in content if kind_of(b) not in REASONING] if isinstance(content, list) else []
        )
        while kept and kind_of(kept[-1]) == "text":
            last = kept.pop()
            text = last.get("text")
            if isinstance(text, str) and text.strip():
                kept.append({**last, "text": text.rstrip()})
                break
    return [encode({**fields, "content": kept})] if kept else []


def _parse_input(call: CallBlock) -> dict[str, Any]:
    """The arguments of another API's call as an object (rule R3)."""
    if call.kind not in ("function", SEARCH_CALL) and call.server_label is None:
        return {"input": call.arguments}
    try:
        value = json_values.parse_arguments(call.arguments)
    except (ValueError, RecursionError):
        return {INVALID_INPUT: call.arguments}
    # A number that overflows to infinity can't be written again, so the text is what is kept.
    fits = isinstance(value, dict) and not json_values.holds_non_finite(value)
    return value if fits else {INVALID_INPUT: call.arguments}


def find_container(turn: AssistantTurn, blocks: list[dict[str, Any]]) -> bytes:
    callers = [blocks[call.position].get("caller") for call in turn.calls if call.answerable]
    if all(not isinstance(caller, dict) or caller.get("type") == "direct" for caller in callers):
        return b""
    container = container_of(turn)
    return encode(container.id) if container is not None else b""
