"""Results, and turns that called tools natively, as text for a model that only knows text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
from lutumpy.text_tools.result_form import ResultForm, ResultHead

__all__ = ["PROJECTED", "SpellCalls", "projected_turn", "results_message"]

SpellCalls = Callable[[Sequence["tuple[str, str]"]], str]
"""Writes calls, given as name and JSON text of the arguments, as the model has to write them."""

PROJECTED = "text_tools_projection"
"""The `api` of a turn that was turned into text; no adapter takes it for its own."""


def results_message(results: ToolResults, form: ResultForm) -> Message:
    """The results of a round as one user message, in the order of the calls (rule T6)."""
    pieces: list[Part] = [TextPart(form.start)]
    for index, result in enumerate(results.results):
        if index:
            pieces.append(TextPart(form.between))
        pieces += _write_result(result, index, form)
    pieces.append(TextPart(form.end))
    parts: list[Part] = []
    for part in pieces:
        last = parts[-1] if parts else None
        # One text where possible: many servers of small models don't take a list of parts.
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            parts[-1] = TextPart(f"{last.text}{part.text}")
        else:
            parts.append(part)
    return Message("user", tuple([one for one in parts if one != TextPart("")]))


def _write_result(result: ResultBlock, index: int, form: ResultForm) -> list[Part]:
    head = ResultHead(result.call_id, result.name, result.status, index)
    inner: list[Part]
    if isinstance(result.content, str):
        inner = [TextPart(form.quote(result.content))]
    elif all(isinstance(part, (TextPart, RawPart, FoundTool)) for part in result.content):
        inner = [TextPart(form.quote(result.text))]
    else:
        # A part for one API alone becomes its text: a user's message may not take what a result
        # takes.
        inner = [
            TextPart(form.quote(part.text))
            if isinstance(part, (TextPart, RawPart, FoundTool))
            else part
            for part in result.content
        ]
        inner = [part for part in inner if not isinstance(part, TextPart) or part.text]
    before, behind = form.fill(form.before, head), form.fill(form.behind, head)
    if not isinstance(inner[0], TextPart):
        before = before.rstrip("\n")
    if not isinstance(inner[-1], TextPart):
        behind = behind.lstrip("\n")
    return [TextPart(before), *_on_lines(inner), TextPart(behind)]


def _on_lines(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts, with a line break between two texts."""
    last: Part | None = None
    for part in parts:
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            yield TextPart("\n")
        yield part
        last = part


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
