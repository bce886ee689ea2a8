"""An answer of this API on its way back to it, and the results of its calls."""

from __future__ import annotations

from typing import Any, NamedTuple

from lutumpy.adapters.anthropic.decode import REASONING, TOOLSET_KIND
from lutumpy.adapters.anthropic.turn_blocks import find_container
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import AssistantTurn, ResultBlock
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.limits import MAX_HISTORY_NAME

__all__ = ["OwnTurn", "encode_own_turn", "result_block", "text_of_failure"]


class OwnTurn(NamedTuple):
    """An answer as it goes back.

    Attributes:
        content: The list of its blocks, as JSON bytes; empty for none.
        toolsets: The toolsets of calls, by the ids of the calls.
        container: The container that its calls came from; `None` if they came from none.
    """

    content: bytes
    toolsets: dict[str, str]
    container: bytes | None = None


def encode_own_turn(turn: AssistantTurn, ids: Renamer, names: Renamer) -> OwnTurn:
    """The content as it was received; rewritten only where the API would refuse it, or reasoning
    left it.

    Args:
        turn: The answer, which has content.
        ids: Gives the ids of calls, as this API takes them.
        names: Gives the names of tools.
    """
    changes: dict[int, dict[str, str]] = {}
    toolsets: dict[str, str] = {}
    container: bytes | None = None
    blocks: Any = None
    for call in turn.calls:
        if not call.answerable:
            continue
        sent_id = ids(call.id)
        fits_name = 0 < len(call.name) <= MAX_HISTORY_NAME
        if sent_id == call.id and fits_name and call.kind == "function":
            continue
        changed: dict[str, str] = {}
        if sent_id != call.id:
            changed["id"] = sent_id
        if not fits_name:
            changed["name"] = names(call.name)
        if changed:
            changes[call.position] = changed
        if call.kind == TOOLSET_KIND:
            blocks = blocks if blocks is not None else json_values.decode(turn.native)
            toolsets[call.id] = str(blocks[call.position].get("toolset_name"))
    if (turn.calls or turn.results_only) and b'"container"' in turn.residue:
        blocks = blocks if blocks is not None else json_values.decode(turn.native)
        container = find_container(turn, blocks)
    if not changes and not turn.reasoning_dropped:
        return OwnTurn(turn.native, toolsets, container)
    blocks = blocks if blocks is not None else json_values.decode(turn.native)
    for position, changed in changes.items():
        blocks[position].update(changed)
    if turn.reasoning_dropped:
        blocks = [block for block in blocks if block.get("type") not in REASONING]
    return OwnTurn(encode(blocks) if blocks else b"", toolsets, container)


def text_of_failure(result: ResultBlock) -> str:
    """The content of a result that says an error: a text that isn't blank. "all content must be
    type `text` if `is_error` is true".
    """
    return result.text if result.text.strip() else f"{result.name or 'tool'}: {result.status}"


def result_block(
    result: ResultBlock,
    call_id: str,
    content: str | list[dict[str, Any]],
    toolset: str | None,
) -> dict[str, Any]:
    """A result as a block.

    Args:
        result: The result.
        call_id: The id of its call, as this API takes it.
        content: What it says.
        toolset: The toolset of its call, if that has one.
    """
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if toolset is not None:
        block["toolset_name"] = toolset
    if result.status not in ("ok", "promised"):
        block["is_error"] = True
    if content:
        block["content"] = content
    return block
