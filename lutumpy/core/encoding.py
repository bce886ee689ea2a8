"""How a transcript keeps its encoded form: one encoder for each wire, fed once with each item.

An encoder is append-only. What it has encoded it never touches again, so a request costs joining bytes, whatever the
length of the conversation, and the bytes of an unchanged prefix are the same in every request.
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

from lutumpy.core.items import Item

E = TypeVar("E", bound="ItemEncoder")


class ItemEncoder(Protocol):
    """What the transcript asks of an adapter's encoder."""

    def add(self, item: Item) -> None:
        """Encode the next item."""
        ...

    def copy(self: E) -> E:
        """An independent copy, for items that are not there to stay."""
        ...


class Renamer:
    """Gives each id or name that a wire refuses another one: the same each time, and never one that is taken (rule R2)."""

    __slots__ = ("_given", "_limit", "_pattern", "_prefix", "_taken")

    def __init__(self, pattern: re.Pattern[str], limit: int, prefix: str) -> None:
        self._pattern = pattern
        self._limit = limit
        self._prefix = prefix
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def copy(self) -> Renamer:
        twin = Renamer(self._pattern, self._limit, self._prefix)
        twin._given = self._given.copy()
        twin._taken = self._taken.copy()
        return twin

    def fits(self, text: str) -> bool:
        """Whether the wire takes it as it is."""
        return len(text) <= self._limit and self._pattern.fullmatch(text) is not None

    def __call__(self, text: str) -> str:
        given = self._given.get(text)
        if given is None:
            given = text if self.fits(text) and text not in self._taken else self._fresh(text)
            self._given[text] = given
            self._taken.add(given)
        return given

    def _fresh(self, text: str) -> str:
        import hashlib  # rare, and slow to import

        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        length = min(24, self._limit - len(self._prefix))
        candidates = (
            self._prefix + digest[start : start + length] for start in range(len(digest) - length)
        )
        return next(candidate for candidate in candidates if candidate not in self._taken)
