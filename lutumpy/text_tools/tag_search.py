"""Finds tags in a text that arrives in pieces: whole tags, and beginnings of tags at its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

__all__ = ["TagSearch", "check_distinct", "end_of"]


class TagSearch:
    """Looks for some fixed texts, none of which may be the beginning of another.

    So the first one found is the one that was meant.

    Args:
        tags: The texts.
        also: A regular expression for other things to look for.
    """

    __slots__ = ("_first", "_longest", "_tags", "search")

    def __init__(self, tags: Iterable[str], also: str = "") -> None:
        self._tags = tuple(dict.fromkeys(tags))
        self._first = frozenset([tag[0] for tag in self._tags])
        self._longest = max([len(tag) for tag in self._tags], default=1)
        patterns = [re.escape(tag) for tag in self._tags] + ([also] if also else [])
        self.search: Callable[..., re.Match[str] | None] = re.compile(
            "|".join(patterns) or "(?!)"
        ).search

    def at(self, text: str, pos: int) -> str | None:
        """The tag at `pos`, if one stands there."""
        return next((tag for tag in self._tags if text.startswith(tag, pos)), None)

    def begins_at(self, text: str, pos: int) -> bool:
        """Whether the rest of the text, from `pos` on, is the beginning of a tag."""
        left = len(text) - pos
        return 0 < left < self._longest and self._is_beginning(text, pos)

    def beginning(self, text: str, pos: int) -> int:
        """Where a tag may begin that the text ends in, from `pos` on; else the text's length."""
        # Only the last characters can be a beginning, and few of them begin as a tag does: so what
        # is looked at doesn't depend on how long the text is.
        first = self._first
        for start in range(max(pos, len(text) - self._longest + 1), len(text)):
            if text[start] in first and self._is_beginning(text, start):
                return start
        return len(text)

    def _is_beginning(self, text: str, start: int) -> bool:
        rest = text[start:]
        return any(len(tag) > len(rest) and tag.startswith(rest) for tag in self._tags)


def end_of(pattern: re.Pattern[str], text: str, pos: int) -> int:
    """Where the match that begins at `pos` ends; `pos` itself where there is none."""
    found = pattern.match(text, pos)
    return pos if found is None else found.end()


def check_distinct(beginnings: Sequence[str], ends: Iterable[str]) -> None:
    """Raise `ValueError` for tags that can't be told apart.

    That is a start tag that occurs twice, or a tag that is the beginning of another.
    """
    for tag in beginnings:
        if beginnings.count(tag) > 1:
            raise ValueError(f"the tag {tag!r} begins more than one thing")
    known = list(dict.fromkeys([*beginnings, *ends]))
    for tag in known:
        longer = next((other for other in known if other != tag and other.startswith(tag)), None)
        if longer is not None:
            raise ValueError(
                f"the tag {tag!r} is the beginning of {longer!r}, so they can't be told apart"
            )
