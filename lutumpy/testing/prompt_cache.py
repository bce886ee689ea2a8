"""The prompt cache of a host: how much of a request it has read before."""

# A request is a list of pieces: its tools, its system text, its messages. What was read before is
# the longest common beginning with an earlier request to the same model, so one piece that changes
# makes all behind it new. A host caches every beginning by itself, or only those at which a request
# has a mark.
#
# Beginnings are known by a chain of digests: the digest at a piece holds all pieces before it.

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Piece", "PromptCache", "PromptTokens", "count_tokens"]

CHARACTERS_OF_TOKEN = 4


def count_tokens(value: Any) -> int:
    """A count by length: no tokenizer is at hand, and equal requests have equal counts."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return max(1, len(text) // CHARACTERS_OF_TOKEN)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a request.

    Attributes:
        value: What it says, without marks.
        is_end: Whether what ends with it is kept, once it was read.
    """

    value: Any
    is_end: bool = True


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of a request, counted by length.

    Attributes:
        total: All of them.
        cached: Those that were read before.
        kept: Those up to the last place that is kept from now on.
    """

    total: int
    cached: int
    kept: int


@dataclass(slots=True)
class PromptCache:
    """What one host has read."""

    _seen: set[tuple[str, bytes]] = field(default_factory=set[tuple[str, bytes]])

    def count(self, model: str, pieces: Sequence[Piece]) -> PromptTokens:
        """The tokens of a request."""
        total = cached = kept = 0
        for piece, digest in _chain(pieces):
            total += count_tokens(piece.value)
            if (model, digest) in self._seen:
                cached = total
            if piece.is_end:
                kept = total
        return PromptTokens(total, cached, kept)

    def note(self, model: str, pieces: Sequence[Piece]) -> None:
        """The request was answered: its beginnings are kept."""
        self._seen |= {(model, digest) for piece, digest in _chain(pieces) if piece.is_end}


def _chain(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, bytes]]:
    running = hashlib.sha256()
    for piece in pieces:
        running.update(
            json.dumps(piece.value, sort_keys=True, default=str).encode("utf-8", "replace")
        )
        running.update(b"\n")
        yield piece, running.digest()
