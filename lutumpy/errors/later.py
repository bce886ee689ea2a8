"""What a tool raises whose result comes later. It isn't an error: the call stays open."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lutumpy.errors.base import LutumpyError

__all__ = ["Later"]


class Later(LutumpyError):
    """Raised by a tool that was declared with `late=True`: its result comes later.

    The call stays open until somebody delivers the result. Raised by another tool, it is an
    exception as any other.

    Args:
        note: What the model is told beside the fact, such as "about an hour".
        handle: What the program needs to find the work again: JSON. The model isn't shown it.
        until: When the call is given up: a time with its zone, or how long from now. Without it
            the call stays open for as long as it takes.

    Attributes:
        note: As given.
        handle: As given.
        until: As given.
    """

    def __init__(
        self, note: str = "", *, handle: Any = None, until: datetime | timedelta | None = None
    ) -> None:
        super().__init__(note)
        self.note: str = note
        self.handle: Any = handle
        self.until: datetime | timedelta | None = until

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (self.note, self.handle, self.until)


def _remake(note: str, handle: Any, until: datetime | timedelta | None) -> Later:
    return Later(note, handle=handle, until=until)
