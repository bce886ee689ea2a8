"""Messages of an API of blocks on the page. Broken ones are read like good ones.

Where calls and results are, the API's `BlockWire` says, as it does for its rules, its repairs and
its reader. Which turn they may be in is no question here: a call is shown wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lutumpy.models import ResultStatus
from lutumpy.page.model import Piece, Place
from lutumpy.page.pieces import argument_text, content_pieces, extra_piece, unwrap
from lutumpy.page.timeline import Timeline
from lutumpy.rules.writing import BlockWire

__all__ = ["BlockPieces", "ReadMessage", "reader_of"]

# What a block of a call or a result holds, behind the place of the block.
_Found = tuple[Place, Mapping[str, Any]]

ReadMessage: TypeAlias = "Callable[[Timeline, int, Mapping[str, Any]], None]"
"""Adds a message with its index to a timeline."""


@dataclass(frozen=True, slots=True)
class BlockPieces:
    """What the page's reader of an API of blocks says of it.

    Attributes:
        read_block: Reads a block that is neither.
        read_result: Reads the content of a result.
        has_failed: Whether a result says that its call failed.
    """

    read_block: Callable[[Any, int], Piece]
    read_result: Callable[[Any, int], str | list[Piece]]
    has_failed: Callable[[Mapping[str, Any]], bool]


def reader_of(wire: BlockWire, api: BlockPieces) -> ReadMessage:
    """The `read_message` of an API (see `readers.py`).

    Args:
        wire: Where calls and results are.
        api: How the rest is read.
    """
    shown = frozenset(("role", wire.blocks_key))

    def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
        limit = timeline.limit
        role, content = message.get("role"), unwrap(message.get(wire.blocks_key))
        if not isinstance(content, (list, tuple)):
            pieces = content_pieces(content, limit) + extra_piece(message, shown, limit)
            timeline.add_step(role, pieces, (index,))
            return
        pieces = []
        calls: list[_Found] = []
        results: list[_Found] = []
        for number, block in enumerate(content):
            block = unwrap(block)
            place: Place = (index, wire.blocks_key, number)
            call = _inside(wire, block, wire.call.kind)
            result = _inside(wire, block, wire.result.kind)
            if call is not None:
                calls.append((place, call))
            elif result is not None:
                results.append((place, result))
            else:
                pieces.append(api.read_block(block, limit))
        pieces += extra_piece(message, shown, limit)
        # Results of the user's answer what comes before; the provider's own are beside their
        # calls, in the model's message.
        is_beside = bool(calls) and wire.role_of(message) != wire.user
        if not is_beside:
            add_results(timeline, results)
        if pieces or calls or not results:
            step = timeline.add_step(role, pieces, (index,))
            for place, call in calls:
                call_id, arguments = call.get(wire.call.id_key), argument_text(call.get("input"))
                timeline.add_call(step, call_id, call.get("name"), arguments, place)
        if is_beside:
            add_results(timeline, results)

    def add_results(timeline: Timeline, results: list[_Found]) -> None:
        for place, result in results:
            status: ResultStatus | None = "error" if api.has_failed(result) else None
            content = api.read_result(unwrap(result.get("content")), timeline.limit)
            timeline.add_result(result.get(wire.result.id_key), content, place, status)

    return read_message


def _inside(wire: BlockWire, block: Any, kind: str) -> Mapping[str, Any] | None:
    """What a block of a kind holds, which may be an object of an SDK; `None` for other blocks."""
    if not isinstance(block, Mapping):
        return None
    if wire.is_tagged:
        return block if block.get("type") == kind else None
    held = unwrap(block.get(wire.key_of(block, kind)))
    return held if isinstance(held, Mapping) else None
