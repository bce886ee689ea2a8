"""Results, and turns that called tools natively, as text for a model that only knows text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lutumpy import AssistantTurn, RawPart, TextPart
from lutumpy.models import (
    CallBlock,
    FoundTool,
    Message,
    Part,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
)
from lutumpy.plain import json_values

__all__ = ["PROJECTED", "SpellCalls", "projected_turn", "results_message"]

SpellCalls = Callable[[Sequence["tuple[str, str]"]], str]
"""Writes calls, given as name and JSON text of the arguments, as the model has to write them."""

PROJECTED = "text_tools_projection"
"""The `api` of a turn that was turned into text; no adapter takes it for its own."""

_BEGIN = "[TOOL_RESULT"
_END = "[/TOOL_RESULT]"


def results_message(results: ToolResults) -> Message:
    """The results of a round as one user message.

    Each is in its own block, with the call's id and the tool's name (rule T6).
    """
    parts: list[Part] = []
    for result in results.results:
        for part in _write_result(result):
            last = parts[-1] if parts else None
            # One text where possible: many servers of small models don't take a list of parts.
            if isinstance(part, TextPart) and isinstance(last, TextPart):
                parts[-1] = TextPart(f"{last.text}\n{part.text}")
            else:
                parts.append(part)
    return Message("user", tuple(parts))


def _write_result(result: ResultBlock) -> list[Part]:
    call_id, name = _quote_attribute(result.call_id), _quote_attribute(result.name)
    head = f"{_BEGIN} id={call_id} name={name} status={result.status}]"
    if isinstance(result.content, str):
        return [TextPart(f"{head}\n{_quote_content(result.content)}\n{_END}")]
    if all(isinstance(part, (TextPart, RawPart, FoundTool)) for part in result.content):
        return [TextPart(f"{head}\n{_quote_content(result.text)}\n{_END}")]
    # A part for one API alone becomes its text: a user's message may not take what a result takes.
    inner: list[Part] = [
        TextPart(_quote_content(part.text))
        if isinstance(part, (TextPart, RawPart, FoundTool))
        else part
        for part in result.content
    ]
    return [
        TextPart(head),
        *[part for part in inner if not isinstance(part, TextPart) or part.text],
        TextPart(_END),
    ]


def _quote_attribute(text: str) -> str:
    return json_values.encode_text(text).replace("]", "\\u005d")


def _quote_content(text: str) -> str:
    # The output of a tool must not look like the end of its block, or like another block. As a
    # JSON string without brackets it doesn't.
    if _BEGIN in text or _END in text:
        return json_values.encode_text(text).replace("[", "\\u005b")
    return text


def projected_turn(turn: AssistantTurn, spell: SpellCalls) -> AssistantTurn:
    """A turn with calls as a turn in text, its calls as this model has to write them."""
    texts: list[str] = []
    calls: list[tuple[str, str]] = []
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            texts.append(block.text)
        elif isinstance(block, CallBlock) and block.answerable:
            calls.append((block.name, _write_arguments(block)))
    pieces = ["".join(texts).strip(), spell(calls) if calls else ""]
    text = "\n".join([piece for piece in pieces if piece])
    text = json_values.clean_text(text)
    native = json_values.encode(text) if text else b""
    return AssistantTurn(PROJECTED, (TextBlock(text),) if text else (), native)


def _write_arguments(call: CallBlock) -> str:
    """The arguments of a native call as JSON text."""
    if call.kind == "custom":  # free text, of a tool that is offered here as a function of one text
        return json_values.encode_text({"input": call.arguments})
    return call.arguments if call.arguments.strip() else "{}"
