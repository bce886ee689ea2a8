"""The ids of the calls of one answer (rule C6)."""

from __future__ import annotations

from collections.abc import Callable

from lutumpy.core import json_values

__all__ = ["TakenIds"]


class TakenIds(set[str]):
    """The ids of the calls of one answer so far, and how far fresh ones were counted.

    Attributes:
        counted: The number of the last fresh id. Every one before it is taken, so nobody tries them again: the work is linear,
            whatever ids were used before.
    """

    counted: int = 0

    def fresh(self, wanted: str, is_used: Callable[[str], bool], used: int) -> str:
        """`wanted`, or a new id when that is empty, or was used before or by an earlier call of the answer.

        Lone surrogates, which no provider takes, are replaced; two ids that differ in nothing else are two ids all the
        same.

        Args:
            wanted: The provider's id.
            is_used: Whether an id was used before this answer.
            used: How many ids were.
        """
        wanted = json_values.clean_text(wanted)
        if wanted and wanted not in self and not is_used(wanted):
            return wanted
        number = max(used + len(self), self.counted)
        while True:
            number += 1
            candidate = f"call{number:05d}"
            if candidate not in self and not is_used(candidate):
                self.counted = number
                return candidate
