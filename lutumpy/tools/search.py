"""Which tools of a toolset fit some words, the best first."""

# The ranking is BM25 over the words of names and descriptions. Three things are particular here:
#
# - Names are code: `listPullRequests`, `gh-list_issues`. They are split where a new word begins,
#   and the whole name counts as a word too, so that whoever knows it finds it.
# - A word of the name says more than one of the description, so it counts several times.
# - There are few documents, and they are short. So the rare words decide, and a long description
#   is a small disadvantage.
#
# Words are compared without case and without a plural's ending, which is all the grammar that
# helps without a language being known. The index is made once for a toolset.

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from typing_extensions import TypeVar

from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.selectors import BaseToolset, Selector, ToolsetTable

__all__ = ["search_tools"]

TS = TypeVar("TS", bound=BaseToolset)

# How often a word of the name counts, and the usual parameters of BM25.
_NAME_WEIGHT = 4
_SATURATION = 1.2
_LENGTH = 0.4
# What a query may have beyond that is not looked at.
_MOST_CHARACTERS = 10_000

# Words of nearly every sentence, which say nothing of a tool.
_FILLERS = frozenset(
    "a an and any are as at be by can do for from i in is it its me my of on or that the this to "
    "tool want which with you your".split()
)
_WORD = re.compile(r"[^\W_]+")
# Where a word begins inside one that is written `listPullRequests`, or `HTTPServer`.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def search_tools(toolset: type[TS], query: str, limit: int = 10) -> list[Selector[TS, Any, Any]]:
    """The tools whose names and descriptions fit a query best, the best first.

    Every tool of the toolset is looked at, also those that are off. The same query always gives
    the same tools, in the same order: of tools that fit equally, the one declared first.

    Args:
        toolset: The toolset.
        query: Words, or names of tools. Any text is a query.
        limit: The most tools to give.

    Returns:
        Tools that have at least one word in common with the query; there may be none.

    Raises:
        TypeError: `query` isn't a text, or `toolset` isn't a toolset.
        ValueError: `limit` is not a whole number from 1.
    """
    table: ToolsetTable | None = getattr(toolset, "__lutumpy_table__", None)
    if table is None:
        raise TypeError(f"search_tools takes a Toolset class, not {safe_repr(toolset)}")
    if not isinstance(query, str):
        raise TypeError(f"search_tools takes a text to search for, not {type(query).__name__}")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"limit={safe_repr(limit)} is not a whole number from 1")
    index: _Index | None = table.cache.get("search")
    if index is None:
        index = table.cache["search"] = _Index(table.selectors)
    return [table.selectors[place] for place in index.rank(query)[:limit]]


class _Index:
    """The words of some tools."""

    __slots__ = ("_by_word", "_count")

    def __init__(self, selectors: tuple[Selector[Any, Any, Any], ...]) -> None:
        documents = [_count_words(s.name, s.tool.definition.description) for s in selectors]
        lengths = [sum(document.values()) for document in documents]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._count = len(documents)
        # For each word, the tools that have it, with what it says for them.
        self._by_word: dict[str, list[tuple[int, float]]] = {}
        for place, document in enumerate(documents):
            norm = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[place] / mean)
            for word, count in document.items():
                weight = count * (_SATURATION + 1) / (count + norm)
                self._by_word.setdefault(word, []).append((place, weight))

    def rank(self, query: str) -> list[int]:
        """The places of the tools that have a word of the query, the best first."""
        scores: dict[int, float] = {}
        # Each word once, in their order: sums of floats depend on it.
        words = dict.fromkeys(_split_words(query[:_MOST_CHARACTERS]))
        for word in [word for word in words if word not in _FILLERS] or words:
            having = self._by_word.get(word, ())
            rarity = math.log(1 + (self._count - len(having) + 0.5) / (len(having) + 0.5))
            for place, weight in having:
                scores[place] = scores.get(place, 0.0) + rarity * weight
        return sorted(scores, key=lambda place: (-scores[place], place))


def _count_words(name: str, description: str) -> Counter[str]:
    counts = Counter(_split_words(description))
    for word in _split_words(name):
        counts[word] += _NAME_WEIGHT
    return counts


def _split_words(text: str) -> Iterable[str]:
    """The words of a text, in their plain form; a word made of several, and then each of them."""
    for found in re.finditer(r"[\w-]+", text):
        compound = found.group()
        parts = [part for word in _WORD.findall(compound) for part in _HUMP.split(word)]
        if len(parts) > 1:
            yield _drop_plural(compound.casefold())
        for part in parts:
            yield _drop_plural(part.casefold())


def _drop_plural(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
