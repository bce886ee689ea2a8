"""The position of a conversation, in two values."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Head"]


class Head(NamedTuple):
    """The position of a conversation. Equal heads mean equal committed content.

    Attributes:
        items: How many items are committed; ephemeral messages don't count.
        digest: A digest of all of them, as hexadecimal text.
    """

    items: int
    digest: str
