"""How a transcript keeps its encoded form: one encoder for each API, which gets every item once.

An encoder is append-only: it never touches again what it has encoded. A request therefore only
joins bytes, however long the conversation is, and an unchanged beginning has the same bytes in
every request (providers cache by them).
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
        """An independent copy, for items that may leave again."""
        ...


class Renamer:
    """Replaces ids or names that an API refuses: always by the same one, never by one that is taken
    (rule R2).

    The replacement is made of a hash of the text, not counted: it must be the same in every process
    that loads the conversation, or the provider's prompt cache would miss.
    """

    __slots__ = ("_limit", "_pattern", "_prefix", "_renamed", "_taken")

    def __init__(self, pattern: re.Pattern[str], limit: int, prefix: str) -> None:
        self._pattern = pattern
        self._limit = limit
        self._prefix = prefix
        self._renamed: dict[str, str] = {}
        self._taken: set[str] = set()

    def copy(self) -> Renamer:
        twin = Renamer(self._pattern, self._limit, self._prefix)
        twin._renamed = self._renamed.copy()
        twin._taken = self._taken.copy()
        return twin

    def fits(self, text: str) -> bool:
        """Whether the API accepts it as it is."""
        return len(text) <= self._limit and self._pattern.fullmatch(text) is not None

    def __call__(self, text: str) -> str:
        name = self._renamed.get(text)
        if name is None:
            # A text that fits may be the replacement of another one, met before.
            is_free = self.fits(text) and text not in self._taken
            name = text if is_free else self._make_name(text)
            self._renamed[text] = name
            self._taken.add(name)
        return name

    def _make_name(self, text: str) -> str:
        import hashlib  # rare, and slow to import

        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        length = min(24, self._limit - len(self._prefix))
        candidates = (
            self._prefix + digest[start : start + length] for start in range(len(digest) - length)
        )
        return next(candidate for candidate in candidates if candidate not in self._taken)
