"""What of the contents of one of Gemini's hosts another one may get (rule OR3).

The words are those in which the API refuses a signature that it hasn't issued [reported].
"""

from __future__ import annotations

from typing import Any

from lutumpy.rules.gemini.fields import field, key_of, listed_in
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.gemini.wording import problem
from lutumpy.rules.moves import Move
from lutumpy.rules.problem import Problem, is_object, items, text

__all__ = ["check_move", "find_signatures", "refuse_seal"]


def find_signatures(contents: Any) -> list[tuple[tuple[int | str, ...], str]]:
    """Place and text of each signature of thoughts; the mark for calls of others is none."""
    found: list[tuple[tuple[int | str, ...], str]] = []
    for index, content in enumerate(items(contents)):
        for number, part in enumerate(listed_in(content, "parts")):
            signature = text(field(part, "thoughtSignature"))
            if signature and signature != FOREIGN_SIGNATURE and is_object(part):
                found.append(
                    ((index, "parts", number, key_of(part, "thoughtSignature")), signature)
                )
    return found


def refuse_seal(path: tuple[int | str, ...], *, is_sure: bool = True) -> Problem:
    """The refusal of a signature that somebody else has issued."""
    words = "Corrupted thought signature."
    return problem("gemini.sealed", path, words, "refused" if is_sure else "some")


def check_move(contents: Any, move: Move) -> list[Problem]:
    """The signatures that the host can't open."""
    if move.can_open:
        return []
    return [refuse_seal(path, is_sure=move.is_vendor) for path, _ in find_signatures(contents)]
