"""The ids of the calls of one answer (rule C6)."""

from __future__ import annotations

from collections.abc import Callable

from lutumpy.plain import json_values

__all__ = ["TakenIds"]


class TakenIds(set[str]):
    """The ids of the calls of one answer so far, and how far fresh ones were counted.

    Attributes:
        counted: The number of the last fresh id. All lower numbers are taken and are not tried
            again, so the work is linear whatever ids were used before.
    """

    counted: int = 0

    def fresh(self, wanted: str, is_used: Callable[[str], bool], used: int) -> str:
        """`wanted`, or a new id if it is empty, or was used before or by an earlier call of the
        answer.

        Lone surrogates, which no provider accepts, are replaced. Two ids that differ only in those
        stay two ids.

        Args:
            wanted: The provider's id.
            is_used: Whether an id was used before this answer.
            used: How many ids were used before this answer.
        """
        wanted = json_values.clean_text(wanted)
        if wanted and wanted not in self and not is_used(wanted):
            return wanted
        # Begin behind what earlier answers probably took: they counted up from the same place.
        number = max(used + len(self), self.counted)
        while True:
            number += 1
            candidate = f"call{number:05d}"
            if candidate not in self and not is_used(candidate):
                self.counted = number
                return candidate
