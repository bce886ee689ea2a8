"""Which of several hooks changed the input of one call."""

# A hook may assign to the input it was given and pass on that very object, so identity doesn't tell
# whether it changed something. A single hook needs no watching: whatever is different afterwards is
# its work, and that is found out when somebody asks (`hooks/audit.py`). Where several hooks are
# asked, the fields are compared after each of them: shallowly, so that it costs next to nothing.

from __future__ import annotations

from typing import Any

__all__ = ["InputWatch"]


class InputWatch:
    """Looks at an input after each hook that let the call pass.

    Args:
        value: The input before the first hook.

    Attributes:
        changed_by: The positions of the hooks that changed the input, in their order.
    """

    __slots__ = ("_fields", "changed_by")

    def __init__(self, value: Any) -> None:
        self._fields = _copy_fields(value)
        self.changed_by: list[int] = []

    def look(self, value: Any, position: int) -> None:
        """Compare `value`, which the hook at `position` passed on, with what was there before."""
        fields = _copy_fields(value)
        # Fields that are still the same objects are never compared. For one that was replaced,
        # somebody else's `__eq__` may raise; then the field counts as changed.
        try:
            unchanged = fields == self._fields
        except Exception:
            unchanged = False
        if not unchanged:
            self.changed_by.append(position)
            self._fields = fields


def _copy_fields(value: Any) -> dict[str, Any]:
    """The fields of an input by name, and those of other names where its class takes any.

    A text is one field.
    """
    if isinstance(value, str):
        return {"input": value}
    extra = value.__pydantic_extra__
    return {**value.__dict__, **extra} if extra else value.__dict__.copy()
