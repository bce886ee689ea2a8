"""How the history is told to a model that only knows text: results, and turns that called tools natively."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lutumpy.core import json_values
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Message,
    Part,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    TextPart,
    ToolResults,
)

__all__ = ["PROJECTED", "SpellCalls", "projected_turn", "results_message"]

SpellCalls = Callable[[Sequence["tuple[str, str]"]], str]
"""Calls, as name and JSON text of the arguments, written the way the model is told to."""

PROJECTED = "text_tools_projection"
"""The `api` of a turn that is told as text; no adapter takes it for its own."""

_BEGIN = "[TOOL_RESULT"
_END = "[/TOOL_RESULT]"


def results_message(results: ToolResults) -> Message:
    """The results of a round as one user message: each in its own block, with the call's id and the tool's name (rule T6)."""
    parts: list[Part] = []
    for result in results.results:
        for part in _result(result):
            last = parts[-1] if parts else None
            # One text where there can be one: many servers of small models take no list of parts.
            if isinstance(part, TextPart) and isinstance(last, TextPart):
                parts[-1] = TextPart(f"{last.text}\n{part.text}")
            else:
                parts.append(part)
    return Message("user", tuple(parts))


def _result(result: ResultBlock) -> list[Part]:
    head = f"{_BEGIN} id={_attribute(result.call_id)} name={_attribute(result.name)} status={result.status}]"
    if isinstance(result.content, str):
        return [TextPart(f"{head}\n{_body(result.content)}\n{_END}")]
    if all(isinstance(part, TextPart) for part in result.content):
        return [TextPart(f"{head}\n{_body(result.text)}\n{_END}")]
    inner: list[Part] = [
        TextPart(_body(part.text)) if isinstance(part, TextPart) else part
        for part in result.content
    ]
    return [
        TextPart(head),
        *[part for part in inner if not isinstance(part, TextPart) or part.text],
        TextPart(_END),
    ]


def _attribute(text: str) -> str:
    return json_values.encode_text(text).replace("]", "\\u005d")


def _body(text: str) -> str:
    # What a tool gave must not look like the end of its block, or like another one: as a JSON string it doesn't.
    if _BEGIN in text or _END in text:
        return json_values.encode_text(text).replace("[", "\\u005b")
    return text


def projected_turn(turn: AssistantTurn, spell: SpellCalls) -> AssistantTurn:
    """A turn with calls as the same turn in text, its calls written the way this model is told to write them."""
    texts: list[str] = []
    calls: list[tuple[str, str]] = []
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            texts.append(block.text)
        elif isinstance(block, CallBlock) and block.answerable:
            calls.append((block.name, block.arguments if block.arguments.strip() else "{}"))
    said = "".join(texts).strip()
    text = "\n".join([piece for piece in (said, spell(calls) if calls else "") if piece])
    text = json_values.clean_text(text)
    native = json_values.encode(text) if text else b""
    return AssistantTurn(PROJECTED, (TextBlock(text),) if text else (), native)
