"""The turn of a text model: its text taken apart, and the inner turn kept whole for replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from lutumpy import AssistantTurn, TranscriptError, Usage
from lutumpy.models import Block, CallBlock, ReasoningBlock, TextBlock, dump_turn, load_turn
from lutumpy.plain import json_values
from lutumpy.text_tools.protocol import ParsedCall, ParsedText

__all__ = ["API", "InnerTurn", "inner_turn", "text_turn"]

API = "text_tools"
"""The `api` of a turn whose calls were read from text."""


class InnerTurn(NamedTuple):
    """What a turn keeps of the answer that it was made of.

    Attributes:
        turn: The inner model's own turn; `None` where that of a loaded dump can't be read.
        guided: It is a guided answer.
        hinted: The model was told of a call that it wrote in another form.
    """

    turn: AssistantTurn | None
    guided: bool = False
    hinted: bool = False


def text_turn(
    inner: AssistantTurn, parsed: ParsedText, *, guided: bool, hinted: bool = False
) -> AssistantTurn:
    """The turn that a session sees.

    Args:
        inner: The inner model's own turn.
        parsed: Its text, taken apart.
        guided: Whether it is a guided answer.
        hinted: Whether one of the calls is a text that only looked like one.
    """
    calls = call_blocks(parsed)
    # A model may call natively without being offered a tool: answered like every other call.
    for native in inner.calls:
        calls.append(replace(native, id="", position=len(calls), id_field=None))
    blocks: list[Block] = []
    shown = False
    for block in inner.blocks:
        if isinstance(block, TextBlock):
            if parsed.reasoning and not shown:
                blocks.append(ReasoningBlock(parsed.reasoning))
            if parsed.text and not shown:
                blocks.append(TextBlock(parsed.text))
            shown = True
        elif not isinstance(block, CallBlock):
            blocks.append(block)
    native_form: dict[str, Any] = {
        "calls": [{"id": "", "name": call.name} for call in calls],
        "turn": dump_turn(_strip_for_replay(inner)),
    }
    if guided:
        native_form["guided"] = True
    if hinted:
        native_form["hinted"] = True
    last = calls[-1] if calls else None
    return replace(
        inner,
        api=API,
        blocks=(*blocks, *calls),
        native=json_values.encode(native_form) if inner.native or calls else b"",
        calls=tuple(calls),
        calls_key="calls",
        id_field="id",
        # A call that was read whole was not cut, whatever broke off behind it.
        cut=inner.cut and (last is None or last.problem is not None or bool(inner.calls)),
    )


def call_blocks(parsed: ParsedText) -> list[CallBlock]:
    """The calls of a text. An error that isn't the detail of a call becomes one of its own."""
    calls = [*parsed.calls]
    details = {call.detail for call in calls}
    others = [error for error in parsed.format_errors if error not in details]
    calls += [ParsedCall("", "", "malformed", error) for error in others]
    return [call_block(call, index) for index, call in enumerate(calls)]


def call_block(call: ParsedCall, index: int) -> CallBlock:
    """A call as a block of the turn, without an id: the transcript assigns one."""
    return CallBlock(
        "",
        json_values.clean_text(call.name),
        call.arguments,
        incomplete=call.problem == "truncated",
        position=index,
        problem=None if call.problem is None else call.detail or "The tool call can't be read.",
        by_schema=call.by_schema,
    )


def inner_turn(turn: AssistantTurn) -> InnerTurn:
    """What a turn of this API keeps of the inner model's answer."""
    if not turn.native:
        return InnerTurn(AssistantTurn("", (), b""))
    native: Any = json_values.decode(turn.native)
    try:
        inner = load_turn(native["turn"])
        return InnerTurn(inner, bool(native.get("guided")), bool(native.get("hinted")))
    except (TranscriptError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return InnerTurn(None)


def _strip_for_replay(inner: AssistantTurn) -> AssistantTurn:
    """The inner turn without what belongs to its one request, such as its usage."""
    return replace(
        inner,
        usage=Usage(),
        model=None,
        request_id=None,
        response_id=None,
        residue=b"",
        input_transformations=(),
    )
