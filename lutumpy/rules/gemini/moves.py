"""What of the contents of one of Gemini's hosts and models another may get (rule OR3).

The words are those in which the API refuses a signature that it hasn't issued [reported].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lutumpy.rules.gemini.fields import field, key_of, listed_in
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.gemini.wording import KIND, spelled
from lutumpy.rules.moves import Move
from lutumpy.rules.problem import Certainty, Problem, is_object, items, text

__all__ = ["check_move", "find_sealed", "refuse_seal"]


def find_sealed(contents: Any) -> list[tuple[str, str]]:
    """Place and text of each signature of thoughts; the mark for calls of others is none."""
    return [(spelled(path), seal) for path, seal in _find_signatures(contents)]


def _find_signatures(contents: Any) -> list[tuple[tuple[int | str, ...], str]]:
    found: list[tuple[tuple[int | str, ...], str]] = []
    for index, content in enumerate(items(contents)):
        for number, part in enumerate(listed_in(content, "parts")):
            signature = text(field(part, "thoughtSignature"))
            if signature and signature != FOREIGN_SIGNATURE and is_object(part):
                found.append(
                    ((index, "parts", number, key_of(part, "thoughtSignature")), signature)
                )
    return found


def refuse_seal(where: str, *, is_sure: bool = True) -> Problem:
    """The refusal of a signature that somebody else has issued."""
    certainty: Certainty = "refused" if is_sure else "some"
    words = "Corrupted thought signature."
    return Problem("gemini.sealed", where, words, certainty, kind=KIND)


def check_move(contents: Any, move: Move) -> list[Problem]:
    """The signatures that the host can't open: they are sealed for the model, too."""
    if move.can_open and move.is_same_model:
        return []
    return [
        replace(refuse_seal(spelled(path), is_sure=move.is_vendor), path=path)
        for path, _ in _find_signatures(contents)
    ]
