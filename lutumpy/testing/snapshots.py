"""A conversation as stable text, for snapshot tests."""

from __future__ import annotations

from collections.abc import Iterator

from lutumpy import Session
from lutumpy.models import (
    AssistantTurn,
    Block,
    CallBlock,
    Item,
    Message,
    OpaqueBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
    Transcript,
)
from lutumpy.plain import json_values

__all__ = ["transcript_snapshot"]

_LATE = "[Late result of call "
"""What comes before the id in the header of a late result."""


def transcript_snapshot(session: Session | Transcript, *, reasoning: bool = False) -> str:
    """A conversation as text that is the same whenever the same was said: on every API, streamed
    or not.

    It has who spoke and what, calls with their arguments in one spelling (sorted keys, no spaces),
    results with their status, and so what the model was told of issues. Ids, tokens and the names
    of models are left out.

    Args:
        session: The conversation.
        reasoning: Whether what the model thought is in it, as far as the provider shows it.

    Returns:
        Lines, the last one with its end; the name of a speaker on a line of its own, what was said
        indented by two spaces.
    """
    transcript = session.transcript if isinstance(session, Session) else session
    lines: list[str] = []
    for item in transcript:
        lines += _lines_of(item, reasoning)
    return "".join([f"{line}\n" for line in lines])


def _lines_of(item: Item, reasoning: bool) -> Iterator[str]:
    if isinstance(item, Message):
        late = "" if item.late is None else f" (late: {item.late.reason})"
        yield f"{item.role}{' (ephemeral)' if item.ephemeral else ''}{late}:"
        yield from _indented(_text_of(item))
    elif isinstance(item, ToolResults):
        yield "results:"
        for result in item.results:
            head, *rest = f"{result.name} {result.status}: {_told(result)}".rstrip().split("\n")
            yield f"  {head}"
            yield from [f"    {line}".rstrip() for line in rest]
    else:
        yield from _lines_of_turn(item, reasoning)


def _text_of(message: Message) -> str:
    late = message.late
    if late is None:
        return message.text
    name = late.header.removeprefix(_LATE).partition(" of ")[2]
    return message.text.replace(late.header, f"[Late result of {name}", 1)


def _told(result: ResultBlock) -> str:
    # What stands for an open call names it by its id, and the note says all that is the program's.
    if result.promise is not None:
        return result.promise.note
    return _one_spelling(result.text)


def _lines_of_turn(turn: AssistantTurn, reasoning: bool) -> Iterator[str]:
    # The reason is shown where it isn't what the rest implies.
    usual = "tool_calls" if turn.calls else "stop"
    yield "assistant:" if turn.finish_reason == usual else f"assistant ({turn.finish_reason}):"
    if reasoning and turn.reasoning:
        yield "  thinking:"
        yield from [f"  {line}" for line in _indented(turn.reasoning)]
    # Some APIs split a text into blocks where others don't.
    text = ""
    for block in turn.blocks:
        if isinstance(block, TextBlock):
            text += block.text
            continue
        shown = _line_of_block(block)
        if shown is not None:
            yield from _indented(text)
            text = ""
            yield shown
    yield from _indented(text)


def _line_of_block(block: Block) -> str | None:
    if isinstance(block, CallBlock):
        return f"  -> {block.name} {json_values.canonical_arguments(block.arguments)}"
    if isinstance(block, RefusalBlock):
        return f"  refusal: {block.text}"
    return f"  [{block.kind}]" if isinstance(block, OpaqueBlock) else None


def _indented(text: str) -> Iterator[str]:
    if text:
        yield from [f"  {line}".rstrip() for line in text.split("\n")]


def _one_spelling(text: str) -> str:
    """JSON in one spelling; other text as it is."""
    return json_values.canonical_arguments(text) if text[:1] in ("{", "[") else text
