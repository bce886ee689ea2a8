"""An answer of the model: its pieces as they come, and the whole (rules W6 and W7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lutumpy.durable.log import Completed, Delta
from lutumpy.web.parts import (
    CallBegan,
    CallGrew,
    CallPart,
    Change,
    Changes,
    Part,
    PartBegan,
    PartEnded,
    PartGrew,
    Step,
    StepReset,
    StepRewritten,
    TextPart,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["begin_call", "complete_answer", "grow_answer"]

_JSON_TEXT_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*"?)|\s+', re.DOTALL)


def grow_answer(step: Step, event: Delta) -> Iterator[Change]:
    """A piece of an answer that isn't complete yet."""
    if step.complete:
        return
    if event.kind in ("ToolCallDelta", "InvalidToolCallDelta"):
        values = event.values
        call_id, name = str(values.get("id", "")), str(values.get("name", ""))
        call = step.call(call_id)
        if call is None:
            call = yield from begin_call(step, call_id, name)
        yield from _grow_call(call, str(values.get("arguments", "")))
        return
    kind: Literal["text", "reasoning"] = "reasoning" if event.kind == "ReasoningDelta" else "text"
    yield from _grow_text(step, kind, str(event.values.get("text", "")))


def _grow_text(step: Step, kind: Literal["text", "reasoning"], text: str) -> Iterator[Change]:
    if not text:
        return
    last = step.parts[-1] if step.parts else None
    if not isinstance(last, TextPart) or last.kind != kind:
        yield from _close_text(step)
        last = TextPart(kind, _next_id(step))
        step.parts.append(last)
        yield PartBegan(last)
    last.text += text
    yield PartGrew(last, text)


def begin_call(step: Step, call_id: str, tool: str) -> Changes[CallPart]:
    yield from _close_text(step)
    call = CallPart(call_id, tool, _next_id(step))
    step.parts.append(call)
    yield CallBegan(call)
    return call


def _grow_call(call: CallPart, text: str) -> Iterator[Change]:
    if text:
        call.arguments += text
        yield CallGrew(call, text)


def _close_text(step: Step) -> Iterator[Change]:
    last = step.parts[-1] if step.parts else None
    if isinstance(last, TextPart) and last.open:
        last.open = False
        yield PartEnded(last)


def _next_id(step: Step) -> str:
    return f"{step.number}.{len(step.parts)}"


def complete_answer(step: Step, event: Completed) -> Iterator[Change]:
    """The whole answer: what was shown is continued, or taken back and written again."""
    if step.complete:
        return
    truth = _parts_of(step, event.blocks)
    if not _is_beginning(step.parts, truth):
        dropped, step.parts = tuple(step.parts), []
        yield StepReset(step, dropped)
    is_rewritten = False
    for index, part in enumerate(truth):
        shown = step.parts[index] if index < len(step.parts) else None
        if isinstance(part, TextPart):
            known = shown.text if isinstance(shown, TextPart) else ""
            if shown is None or len(known) < len(part.text):
                yield from _grow_text(step, part.kind, part.text[len(known) :])
        elif isinstance(part, CallPart) and isinstance(shown, CallPart):
            yield from _finish_call(shown, part.arguments)
            is_rewritten = is_rewritten or shown.arguments != part.arguments
            shown.arguments = part.arguments
        elif isinstance(part, CallPart):
            call = yield from begin_call(step, part.call_id, part.tool)
            yield from _grow_call(call, part.arguments)
    yield from _close_text(step)
    step.complete = True
    for each in step.calls():
        each.complete = True
    if is_rewritten:
        yield StepRewritten(step)


def _finish_call(call: CallPart, arguments: str) -> Iterator[Change]:
    """The rest of the arguments. Some adapters write JSON anew: space between its marks may go."""
    if arguments.startswith(call.arguments):
        yield from _grow_call(call, arguments[len(call.arguments) :])
        return
    yield from _grow_call(call, _squeeze(arguments)[len(_squeeze(call.arguments)) :])


def _squeeze(text: str) -> str:
    """JSON, or a beginning of it, without the space between its marks."""
    return _JSON_TEXT_OR_SPACE.sub(lambda found: found.group(1) or "", text)


def _parts_of(step: Step, blocks: Sequence[Mapping[str, JsonValue]]) -> list[Part]:
    """The parts of a whole answer; neighbours of one kind are one part."""
    parts: list[Part] = []
    for block in blocks:
        place = f"{step.number}.{len(parts)}"
        if block.get("block") == "call":
            name, call_id = str(block.get("tool", "")), str(block.get("call_id", ""))
            parts.append(CallPart(call_id, name, place, str(block.get("arguments", ""))))
            continue
        text = str(block.get("text", ""))
        kind: Literal["text", "reasoning"] = (
            "reasoning" if block.get("block") == "reasoning" else "text"
        )
        last = parts[-1] if parts else None
        if isinstance(last, TextPart) and last.kind == kind:
            last.text += text
        elif text:
            parts.append(TextPart(kind, place, text))
    return parts


def _is_beginning(shown: Sequence[Part], truth: Sequence[Part]) -> bool:
    """Whether what was shown only has to be continued.

    Text can grow only at the end of an answer, the arguments of a call wherever it stands.
    """
    if len(shown) > len(truth):
        return False
    for index, (part, whole) in enumerate(zip(shown, truth, strict=False)):
        if isinstance(part, CallPart) and isinstance(whole, CallPart):
            is_same = (part.call_id, part.tool) == (whole.call_id, whole.tool)
            if not is_same or not _squeeze(whole.arguments).startswith(_squeeze(part.arguments)):
                return False
        elif isinstance(part, TextPart) and isinstance(whole, TextPart):
            grows = part.open and index == len(shown) - 1
            is_start = whole.text.startswith(part.text) if grows else whole.text == part.text
            if part.kind != whole.kind or not is_start:
                return False
        else:
            return False
    return True
