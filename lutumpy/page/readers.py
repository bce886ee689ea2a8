"""A list of messages of any API, or a `Transcript`, walked into a `Timeline`.

Broken histories are read like good ones: the page is where somebody looks at them. How one message
of an API is read is in the module that the table of APIs names for it (`page`), which defines

    read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None

and never raises, whatever JSON the message holds. A module of an API of blocks defines instead

    BLOCKS: BlockPieces

which says how a block is read that is neither a call nor a result; where those are, the `WIRE` of
its rules says. Beside either may be

    read_system(system: Any, limit: int) -> list[Piece]

for an API whose system text isn't laid out as the content of a message, and

    read_usage(usage: Mapping[str, Any]) -> Usage | None

for one that counts tokens under names of its own. An API without such a module is shown
as the `Transcript` that its reader makes; a history that its reader refuses, message by message as
data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lutumpy import AssistantTurn, Transcript, TranscriptError
from lutumpy.apis import Api, serves, serving
from lutumpy.models import (
    CallBlock,
    Item,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
)
from lutumpy.page.model import Piece, Place
from lutumpy.page.pieces import (
    content_pieces,
    data_piece,
    extra_piece,
    part_pieces,
    text_piece,
    unwrap,
)
from lutumpy.page.read_blocks import ReadMessage, reader_of
from lutumpy.page.timeline import Timeline

__all__ = ["read_messages", "read_transcript", "read_turn"]


def read_messages(api: Api, messages: Any, system: Any, limit: int) -> Timeline:
    """The timeline of a list of messages (items, on Responses) of one API.

    Raises:
        UnknownApiError: there is no such API.
    """
    messages = unwrap(messages)
    read: ReadMessage = _read_unknown
    read_system = content_pieces
    if serves(api, "page"):
        page = serving(api, "page")
        if hasattr(page, "BLOCKS"):
            read = reader_of(serving(api, "rules").WIRE, page.BLOCKS)
        else:
            read = page.read_message
        read_system = getattr(page, "read_system", content_pieces)
    elif isinstance(messages, (list, tuple, str)):
        try:
            return read_transcript(Transcript.from_messages(api, messages, system), limit)
        except TranscriptError:
            pass  # a broken one: it is shown as it stands
    shape = serving(api, "rules").SHAPE
    timeline = Timeline(_spell_places(shape.position), limit)
    if system is not None and system != "" and system != []:
        place = (shape.system_key or "system",)
        timeline.add_step("system", read_system(system, limit), place)
    if isinstance(messages, str):
        timeline.add_step("user", content_pieces(messages, limit), (shape.messages_key,))
    elif not isinstance(messages, Iterable) or isinstance(messages, Mapping):
        if messages is not None:
            piece = data_piece("Not a list of messages", messages, limit)
            timeline.add_step(None, [piece], (shape.messages_key,))
    else:
        _read_each(read, timeline, messages)
    return timeline


def _read_each(read: ReadMessage, timeline: Timeline, messages: Iterable[Any]) -> None:
    for index, message in enumerate(messages):
        timeline.size = index + 1
        message = unwrap(message)
        if isinstance(message, Mapping):
            read(timeline, index, message)
        else:
            piece = data_piece("Not a message", message, timeline.limit)
            timeline.add_step(None, [piece], (index,))


def _read_unknown(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    """A message of an API of which nothing is known but that most of them have a role and a
    content.
    """
    limit = timeline.limit
    pieces: list[Piece] = content_pieces(message.get("content"), limit)
    pieces += extra_piece(message, frozenset(("role", "content")), limit)
    timeline.add_step(message.get("role"), pieces, (index,))


def _spell_places(position: str) -> Callable[[Place], str]:
    """How the places of an API are written, from how it names a message: `messages[{}]`,
    `messages.{}`.
    """
    name = position.partition("{")[0].rstrip("[.")
    index = position.removeprefix(name)

    def write_place(place: Place) -> str:
        steps = [index.format(step) if isinstance(step, int) else f".{step}" for step in place]
        # A place beside the messages, as the system text, begins with its own name.
        return name + "".join(steps) if isinstance(place[0], int) else "".join(steps)[1:]

    return write_place


# --- this library's own transcript ----------------------------------------------------------------


def _spell_item(place: Place) -> str:
    return "item " + ".".join([str(part) for part in place])


def read_transcript(items: Iterable[Item], limit: int) -> Timeline:
    """The timeline of a `Transcript`."""
    timeline = Timeline(_spell_item, limit)
    for index, item in enumerate(items):
        timeline.size = index + 1
        if isinstance(item, Message) and item.late is not None:
            late = item.late.result
            shown = (
                late.content if isinstance(late.content, str) else part_pieces(late.content, limit)
            )
            timeline.add_late(late.call_id, shown, (index,), late.status)
        elif isinstance(item, Message):
            tags = ("in one request only",) if item.ephemeral else ()
            timeline.add_step(item.role, part_pieces(item.parts, limit), (index,), tags)
        elif isinstance(item, AssistantTurn):
            read_turn(timeline, index, item)
        else:
            for number, result in enumerate(item.results):
                content = (
                    result.content
                    if isinstance(result.content, str)
                    else part_pieces(result.content, limit)
                )
                place = (index, number)
                view = timeline.add_result(result.call_id, content, place, result.status)
                since = None if result.promise is None else result.promise.since
                if since is not None:
                    view.since = since.isoformat(" ", "seconds")
    return timeline


def read_turn(timeline: Timeline, index: int | str, turn: AssistantTurn) -> None:
    """Add one answer of a model to the timeline; `index` is its place."""
    limit = timeline.limit
    step = timeline.add_step("assistant", (), (index,), _list_turn_tags(turn))
    step.usage = turn.usage
    for number, block in enumerate(turn.blocks):
        if isinstance(block, TextBlock):
            step.pieces.append(text_piece(block.text, limit))
        elif isinstance(block, ReasoningBlock):
            label = "Reasoning, signed" if block.signed else "Reasoning"
            step.pieces.append(text_piece(block.text, limit, "reasoning", label))
        elif isinstance(block, RefusalBlock):
            step.pieces.append(text_piece(block.text, limit, "refusal", "Refusal"))
        elif isinstance(block, CallBlock):
            timeline.add_call(
                step, block.id, block.name, block.arguments, (index, number), block.kind
            )
    others = [block.kind for block in turn.blocks if isinstance(block, OpaqueBlock)]
    if others:
        label = f"The answer in the provider's form ({', '.join(dict.fromkeys(others))})"
        step.pieces.append(data_piece(label, turn.native.decode("utf-8", "replace"), limit))


def _list_turn_tags(turn: AssistantTurn) -> list[str]:
    tags = [turn.model] if turn.model else []
    if turn.finish_reason not in ("stop", "tool_calls"):
        tags.append(f"finish: {turn.finish_reason}")
    elif turn.cut and turn.provider_finish_reason:
        tags.append(f"cut off: {turn.provider_finish_reason}")
    if turn.reasoning_dropped:
        tags.append("reasoning no longer sent")
    if turn.empty:
        tags.append("no content, not sent")
    return tags
