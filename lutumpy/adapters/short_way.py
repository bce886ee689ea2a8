"""What stream decoders share that take most events without looking at all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from lutumpy.core.streaming import Delta

__all__ = ["ShortWayDecoder"]


class ShortWayDecoder(ABC):
    """A decoder with a short way for the events that most of a long stream consists of."""

    __slots__ = ()

    @abstractmethod
    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event, and give what arrived with it."""

    @abstractmethod
    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take the next event if it is nothing but a delta of a call's arguments."""

    def feed_all(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, without saying what arrived. Raises as `feed` does."""
        feed_arguments, feed = self.feed_arguments, self.feed
        for chunk in chunks:
            if feed_arguments(chunk) is None:
                feed(chunk)
