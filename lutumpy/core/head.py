"""Where a conversation stands, in two values."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Head"]


class Head(NamedTuple):
    """Where a conversation stands. Equal heads mean equal committed content.

    Attributes:
        items: How many items are committed; ephemeral messages don't count.
        digest: A digest of all of them, as hexadecimal text.
    """

    items: int
    digest: str
