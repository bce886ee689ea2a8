"""What of the blocks of one host of Converse another one may get (rule OR3).

The words are those of the Claude behind it.
"""

from __future__ import annotations

from typing import Any

from lutumpy.rules.bedrock.prefix import find_bound
from lutumpy.rules.bedrock.shapes import MODEL_SAYS
from lutumpy.rules.moves import Move
from lutumpy.rules.problem import Problem

__all__ = ["check_move", "refuse_seal"]


def refuse_seal(where: str, *, is_sure: bool = True) -> Problem:
    """The refusal of reasoning that somebody else has signed."""
    message = f"{MODEL_SAYS}{where}: Invalid `signature` in `thinking` block"
    return Problem("converse.sealed", where, message, "refused" if is_sure else "some")


def check_move(messages: Any, move: Move) -> list[Problem]:
    """The signed reasoning that the host can't open."""
    if move.can_open:
        return []
    bound = find_bound({"messages": messages})
    return [refuse_seal(block.path, is_sure=move.is_vendor) for block in bound if block.seal]
