"""Turns of a conversation, as the Messages API sees them before it looks at anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.rules.problem import is_array, items, text

__all__ = ["Turn", "join_turns"]


@dataclass(slots=True)
class Turn:
    """Neighbouring messages of one role: the API merges them before it looks."""

    role: str
    first: int
    last: int
    blocks: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    has_text: bool = False

    def of(self, *kinds: str) -> list[tuple[str, Mapping[str, Any]]]:
        return [(where, block) for where, block in self.blocks if block.get("type") in kinds]


def join_turns(messages: Any) -> list[Turn]:
    turns: list[Turn] = []
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        role = text(message.get("role")) or ""
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, index, index))
        turn = turns[-1]
        turn.last = index
        content = message.get("content")
        if isinstance(content, str):
            turn.has_text = turn.has_text or bool(content)
            if content:
                turn.blocks.append((f"messages.{index}.content", {"type": "text", "text": content}))
        elif not is_array(content):
            # A wrong shape, which another rule reports. It isn't an empty message.
            turn.has_text = True
        for number, block in enumerate(items(content)):
            turn.has_text = True
            if isinstance(block, Mapping):
                turn.blocks.append((f"messages.{index}.content.{number}", block))
    return turns
