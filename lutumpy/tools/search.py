"""Which tools of a toolset fit some words, the best first."""

# The ranking is BM25F (Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted
# fields", 2004) over the words of names, descriptions and parameters. Four things are particular:
#
# - A word counts by where it is. How often it is there is set against the usual length of
#   that field, then the fields are added, and only the sum is saturated: a word of the name and of
#   the description is one word that fits well, not two that fit.
# - Two words that are beside each other say more than each of them (Metzler, Croft: "A Markov
#   random field model for term dependencies", 2005), so pairs are counted as well.
# - There are few documents, and they are short. So the rare words decide, and a long description
#   is a small disadvantage.
# - A model may know better what words mean (`embed=`). Its order and ours are joined by reciprocal
#   ranks (Cormack, Clarke, Buettcher 2009), which need no scores that can be compared.
#
# The index is made once for a toolset, and so are the vectors of a model.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from typing_extensions import TypeVar

from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.search_words import FILLERS, ToolWords, find_words, read_tool, stem
from lutumpy.tools.selectors import BaseToolset, Selector, ToolsetTable

__all__ = ["Embed", "search_tools"]

TS = TypeVar("TS", bound=BaseToolset)

Embed: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]
"""What makes vectors of texts, one for each, all of one length; their cosine says how alike two
are."""

# How much a word says in each field, found by trying on questions and functions of the Berkeley
# leaderboard (tests/benchmarks/bench_search.py). A name is short, so its words weigh more than the
# number says.
_WEIGHTS = {
    "name": 2.0,
    "description": 2.0,
    "parameters": 1.0,
    "explanations": 0.5,
    "values": 1.6,
}
# The usual parameters of BM25.
_SATURATION = 1.2
_LENGTH = 0.4
_PAIR = 0.6
"""What a pair of words says, wherever it is."""
_PAIRED = ("name", "description", "parameters")
# What a query may have beyond that is not looked at.
_MOST_CHARACTERS = 10_000
_RANK_CONSTANT = 60
"""Of reciprocal ranks, as in the paper."""

_FILLERS = frozenset(map(stem, FILLERS))


def search_tools(
    toolset: type[TS], query: str, limit: int = 10, *, embed: Embed | None = None
) -> list[Selector[TS, Any, Any]]:
    """The tools whose names, descriptions and parameters fit a query best, the best first.

    Every tool of the toolset is looked at, also those that are off. The same query always gives
    the same tools, in the same order: of tools that fit equally, the one declared first.

    Args:
        toolset: The toolset.
        query: Words, or names of tools. Any text is a query.
        limit: The most tools to give.
        embed: Makes vectors of texts, for who has a model that does. It is called with the texts of
            all tools once for a toolset, and with the query each time; what it raises is raised.

    Returns:
        Tools that have at least one word in common with the query; there may be none. With `embed`,
        all tools, in the order in which both rankings together put them.

    Raises:
        TypeError: `query` isn't a text, or `toolset` isn't a toolset.
        ValueError: `limit` is not a whole number from 1; or `embed` gave something other than one
            vector for each text, all of one length.
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
        index = table.cache["search"] = _Index(_read_tools(table))
    places = index.rank(query)
    if embed is not None and table.selectors:
        places = _join_ranks(places, _vectors_of(table, embed).rank(query))
    return [table.selectors[place] for place in places[:limit]]


def _read_tools(table: ToolsetTable) -> list[ToolWords]:
    definitions = [(s.name, s.tool.definition) for s in table.selectors]
    return [read_tool(name, one.description, one.input_schema) for name, one in definitions]


class _Index:
    """The words of some tools."""

    __slots__ = ("_by_word", "_count")

    def __init__(self, tools: Sequence[ToolWords]) -> None:
        self._count = len(tools)
        # For each word, the tools that have it, with what it says for them.
        self._by_word: dict[str, list[tuple[int, float]]] = {}
        sums: list[dict[str, float]] = [{} for _ in tools]
        paired: list[list[str]] = [[] for _ in tools]
        for field, weight in _WEIGHTS.items():
            found = [list(find_words(getattr(tool, field))) for tool in tools]
            mean = sum(map(len, found)) / (len(found) or 1) or 1.0
            for own, words in zip(sums, found, strict=True):
                share = weight / (1 - _LENGTH + _LENGTH * len(words) / mean)
                for word in words:
                    own[word] = own.get(word, 0.0) + share
            for pairs, words in zip(paired, found, strict=True):
                pairs += _pair_words(words) if field in _PAIRED else ()
        for place, own in enumerate(sums):
            for word, count in own.items():
                weight = count * (_SATURATION + 1) / (count + _SATURATION)
                self._by_word.setdefault(word, []).append((place, weight))
            for pair in dict.fromkeys(paired[place]):
                self._by_word.setdefault(pair, []).append((place, _PAIR))

    def rank(self, query: str) -> list[int]:
        """The places of the tools that have a word of the query, the best first."""
        scores: dict[int, float] = {}
        # Each word once, in their order: sums of floats depend on it.
        words = list(find_words(query[:_MOST_CHARACTERS]))
        known = [word for word in words if word not in _FILLERS] or words
        for word in dict.fromkeys([*known, *_pair_words(words)]):
            having = self._by_word.get(word, ())
            rarity = math.log(1 + (self._count - len(having) + 0.5) / (len(having) + 0.5))
            for place, weight in having:
                scores[place] = scores.get(place, 0.0) + rarity * weight
        return sorted(scores, key=lambda place: (-scores[place], place))


def _pair_words(words: list[str]) -> list[str]:
    """Each word with the next one; a blank is in no word. Fillers between them don't count."""
    kept = [word for word in words if word not in _FILLERS]
    return [f"{word} {following}" for word, following in pairwise(kept)]


# --- a model that knows what words mean -----------------------------------------------------------


class _Vectors:
    """The vectors that a model made of some tools."""

    __slots__ = ("_embed", "_vectors")

    def __init__(self, tools: Sequence[ToolWords], embed: Embed) -> None:
        self._embed = embed
        self._vectors = _embed_texts(embed, [" ".join(filter(None, tool)) for tool in tools], None)

    def rank(self, query: str) -> list[int]:
        """The places of all tools, the most alike first."""
        length = len(self._vectors[0])
        (asked,) = _embed_texts(self._embed, [query[:_MOST_CHARACTERS]], length)
        alike = [sum(a * b for a, b in zip(asked, own, strict=True)) for own in self._vectors]
        return sorted(range(len(alike)), key=lambda place: (-alike[place], place))


def _vectors_of(table: ToolsetTable, embed: Embed) -> _Vectors:
    """The vectors of a toolset; those of the function that was asked last are kept."""
    known: tuple[Embed, _Vectors] | None = table.cache.get("search_vectors")
    if known is None or known[0] != embed:
        known = table.cache["search_vectors"] = embed, _Vectors(_read_tools(table), embed)
    return known[1]


def _embed_texts(embed: Embed, texts: list[str], length: int | None) -> list[list[float]]:
    """A vector of the length 1 for each text.

    Raises:
        ValueError: They aren't vectors, one for each text and all of one length.
    """
    try:
        vectors = [[float(number) for number in vector] for vector in embed(list(texts))]
    except TypeError as error:
        raise ValueError(f"embed= gave something that is no list of vectors: {error}") from error
    lengths = {len(vector) for vector in vectors} | ({length} if length is not None else set())
    if len(vectors) != len(texts) or len(lengths) > 1 or 0 in lengths:
        raise ValueError(
            f"embed= gave {len(vectors)} vectors of the lengths {sorted(lengths)[:5]} for "
            f"{len(texts)} texts; one is needed for each, all of one length"
        )
    norms = [math.hypot(*vector) or 1.0 for vector in vectors]
    return [[x / norm for x in vector] for vector, norm in zip(vectors, norms, strict=True)]


def _join_ranks(*rankings: list[int]) -> list[int]:
    """The places of several rankings in one order."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking):
            scores[place] = scores.get(place, 0.0) + 1 / (_RANK_CONSTANT + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))
