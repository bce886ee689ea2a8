"""Signed reasoning goes with what comes before it (rule PB19).

A model that binds its reasoning refuses it, or loses it, behind anything that has changed since. So
whatever a repair changes takes along the reasoning behind it, and says which.
"""

# What is hard here
# -----------------
# A repair may edit several places, and each pass names places as they were at its start. The blocks
# are found once a pass, in order; an edit takes out all that are left behind its place, so each
# block is taken out once. Reasoning itself isn't bound, but each block knows the one before it:
#
#   | what is edited                                    | what goes along                |
#   |---------------------------------------------------|--------------------------------|
#   | marks of the cache, effort, ids the API has put   | nothing                        |
#   | reasoning, and none is left before it             | nothing                        |
#   | reasoning, and some is left before it             | all behind it                  |
#   | reasoning that is moved                           | that, and all behind it        |
#   | anything else                                     | all behind it                  |

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.plain.pointer import indices_in
from lutumpy.rules.paths import path_of

if TYPE_CHECKING:
    from lutumpy.rules.block_wire import Path
    from lutumpy.rules.bound_blocks import BoundBlock, ReasoningBinding

__all__ = ["BoundReasoning"]


class BoundReasoning:
    """The signed reasoning of a history, for an editor.

    Args:
        binding: How the API binds reasoning.
        messages_key: The key of its messages in a request.
        model: The model that is asked.
    """

    def __init__(self, binding: ReasoningBinding, messages_key: str, model: str) -> None:
        self._binding = binding
        self._key = messages_key
        self._model = model
        # The blocks in order, and the indices that lead to each.
        self._blocks: list[tuple[Path, BoundBlock]] = []
        self._order: list[tuple[int, ...]] = []
        self._spoiled: set[str] = set()

    def find(self, entries: Sequence[Any]) -> None:
        """Find the reasoning at the start of a pass."""
        body = {self._key: entries, "model": self._model}
        found = [block for block in self._binding.find(body, None) if block.seal]
        self._blocks = [(path_of(block.path, entries), block) for block in found]
        self._order = [indices_in(path) for path, _ in self._blocks]

    def behind(self, edited: Sequence[tuple[Path, bool]]) -> list[tuple[Path, str]]:
        """Path and position of the reasoning that edits at these places spoil; it is forgotten.

        Args:
            edited: The places, each with whether what was there was moved.
        """
        first = len(self._order)
        for path, is_moved in edited:
            if not self._binding.unbound.isdisjoint(path):
                continue
            at = indices_in(path)
            place = bisect_left(self._order, at)
            if not is_moved and place < len(self._order) and self._order[place] == at:
                del self._order[place], self._blocks[place]
                first = min(first, place if place else len(self._order))
            else:
                first = min(first, place)
        spoiled = self._blocks[first:]
        self._blocks, self._order = self._blocks[:first], self._order[:first]
        self._spoiled.update([block.seal for _, block in spoiled])
        return [(path, block.path) for path, block in spoiled]

    def left_over(self) -> list[tuple[Path, str]]:
        """Reasoning that was spoiled and is there all the same: it was moved with its message."""
        return [(path, block.path) for path, block in self._blocks if block.seal in self._spoiled]
