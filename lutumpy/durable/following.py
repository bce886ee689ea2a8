"""Many followers of one log: one of them reads, and all are given what it found."""

# A follower that polls costs a transaction every time it looks; 200 of them would take the database
# away from the run that they watch. So those of one conversation in one event loop share a tail:
#
#   a follower                    does
#   ----------------------------  ---------------------------------------------------------
#   is behind what the tail has   reads for itself, until it has caught up
#   misses what the tail has      takes it from there
#   has all, nobody is reading    looks into the store, for everybody; finds nothing: pauses
#   has all, somebody is reading  waits for what that one finds
#
# Who reads does so inside its own call, so there is no task that somebody would have to end. If it
# is cancelled, those who wait are woken, and the next one reads.

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from weakref import WeakValueDictionary

import anyio

from lutumpy.durable.types import StoredEvent

__all__ = ["Tail", "Tails"]

_SECONDS_BETWEEN_LOOKS = 0.1
"""How long is waited where nothing was found."""
_SECONDS_OF_A_LOOK = 0.05
"""How far two looks are apart at least: to wake everybody for each write would slow the writer."""
_MOST_KEPT = 2_000
"""How many events a tail keeps for followers that are a little behind."""

ReadEvents = Callable[[str, int], Awaitable[Sequence[StoredEvent]]]


class Tail:
    """The end of one log.

    Args:
        scope: The conversation.
        read: Reads the next events behind a number.
    """

    def __init__(self, scope: str, read: ReadEvents) -> None:
        self._scope = scope
        self._read = read
        self._kept: deque[StoredEvent] = deque(maxlen=_MOST_KEPT)
        # Whatever came behind `_start`, up to `_seen`, is kept.
        self._start = -1
        self._seen = -1
        self._reading = False
        self._next_look = 0.0
        self._found = anyio.Event()
        # What was taken last, and behind which number: most followers are at the same place.
        self._taken: tuple[int, Sequence[StoredEvent]] = (-1, ())

    async def read_after(self, after: int) -> Sequence[StoredEvent]:
        """The events behind a number; none where there were none for a moment.

        The caller looks elsewhere then, if it must, and calls again.
        """
        if self._start < 0:
            self._start = self._seen = after
        if after < self._start:
            return await self._read(self._scope, after)
        if after < self._seen:
            return self._take(after)
        if self._reading:
            await self._found.wait()
            return self._take(after)
        return await self._look(after)

    def _take(self, after: int) -> Sequence[StoredEvent]:
        if self._taken[0] == after:
            return self._taken[1]
        newer: list[StoredEvent] = []
        for event in reversed(self._kept):
            if event.seq <= after:
                break
            newer.append(event)
        newer.reverse()
        self._taken = after, newer
        return newer

    async def _look(self, after: int) -> Sequence[StoredEvent]:
        """Look into the store for everybody, and pause where there is nothing."""
        self._reading = True
        try:
            await anyio.sleep(max(0.0, self._next_look - anyio.current_time()))
            self._next_look = anyio.current_time() + _SECONDS_OF_A_LOOK
            found = await self._read(self._scope, max(after, self._seen))
            for event in found:
                if len(self._kept) == _MOST_KEPT:
                    self._start = self._kept[0].seq
                self._kept.append(event)
                self._seen = event.seq
                self._taken = (-1, ())
            if not found:
                await anyio.sleep(_SECONDS_BETWEEN_LOOKS)
            return self._take(after)
        finally:
            self._reading = False
            self._found.set()
            self._found = anyio.Event()


class Tails:
    """The tails that somebody follows in one event loop, by conversation."""

    def __init__(self) -> None:
        self._tails: WeakValueDictionary[str, Tail] = WeakValueDictionary()

    def find(self, scope: str, read: ReadEvents) -> Tail:
        """The tail of a conversation."""
        found = self._tails.get(scope)
        if found is None:
            found = self._tails[scope] = Tail(scope, read)
        return found
