"""What of the blocks of one host of Messages another one may get (rules OR2 and OR3).

The words for a signature are those of the API, as users report them.
"""

from __future__ import annotations

from typing import Any

from lutumpy.rules.anthropic.prefix import THINKING, seal_of
from lutumpy.rules.moves import Move
from lutumpy.rules.problem import Problem, is_object, items

__all__ = ["check_move", "refuse_seal"]

_OF_EVERY_HOST = frozenset({"text", "tool_use", "image", "document", "fallback", *THINKING})


def refuse_seal(where: str, *, is_sure: bool = True) -> Problem:
    """The refusal of reasoning that somebody else has signed."""
    message = f"{where}: Invalid `signature` in `thinking` block"
    return Problem("anthropic.sealed", where, message, "refused" if is_sure else "some")


def check_move(messages: Any, move: Move) -> list[Problem]:
    """What messages hold that the host which said them has signed, or has run itself."""
    if move.can_open:
        return []
    found: list[Problem] = []
    for index, message in enumerate(items(messages)):
        if not is_object(message) or message.get("role") != "assistant":
            continue
        for number, block in enumerate(items(message.get("content"))):
            where = f"messages.{index}.content.{number}"
            kind = block.get("type") if is_object(block) else None
            if kind in THINKING and seal_of(block):
                found.append(refuse_seal(where, is_sure=move.is_vendor))
            elif isinstance(kind, str) and kind not in _OF_EVERY_HOST:
                words = f"{where}: only the host that ran this can read `{kind}`"
                found.append(Problem("anthropic.host_field", where, words, "some"))
            elif is_object(block) and block.get("citations") and not move.is_own:
                where = f"{where}.citations"
                words = f"{where}: only the host that found these can read them"
                found.append(Problem("anthropic.host_field", where, words, "some"))
    return found
