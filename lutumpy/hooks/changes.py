"""Which of several hooks changed the input of one call.

A hook may assign to the object in its hands and pass on that very object, so identity doesn't tell. One hook alone needs no
watching: whatever is different afterwards is its work, which is found out when somebody asks (`rounds/audit.py`). Where several
are asked, the fields are compared after each: as they are, not deeply, so that it costs next to nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["InputWatch"]


class InputWatch:
    """Looks at an input after each hook that let it pass.

    Args:
        fields: A copy of the input's `__dict__` before the first hook.

    Attributes:
        changed_by: The positions of the hooks that changed it, in their order.
    """

    __slots__ = ("_fields", "changed_by")

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self.changed_by: list[int] = []

    def look(self, value: Any, position: int) -> None:
        """`value` is what the hook at `position` passed on."""
        fields = value.__dict__
        try:
            if fields == self._fields:
                return
        except (
            Exception
        ):  # other people's `__eq__`; fields that are the same objects are never asked
            pass
        self.changed_by.append(position)
        self._fields = fields.copy()
