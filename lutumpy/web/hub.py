"""Many watchers of a conversation in one process, with one reader of its log."""

# There is no task that reads: whoever waits does it for all, inside its own call, and whoever is
# cancelled leaves that to the next one. What was read is put into the queue of every follower, and
# nobody waits for one that doesn't take it: a full queue cuts its follower off (rule W20).
#
#   a follower                           does
#   -----------------------------------  -----------------------------------------------------
#   is behind what was read              reads the store by itself, up to there
#   has something in its queue           takes it
#   has nothing, nobody is reading       reads the next event, for everybody
#   has nothing, somebody is reading     waits for it

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from lutumpy.durable import OperatorStore, StoredEvent
from lutumpy.web.inbound import WebError

__all__ = ["EventHub"]


@dataclass(eq=False)
class _Follower:
    """What waits for a follower.

    Attributes:
        events: Its queue.
        woken: Set when somebody has read, or stops reading.
        is_cut_off: Whether its queue was full.
        waiting: What it waits in, while it does.
    """

    events: deque[StoredEvent] = field(default_factory=deque)
    woken: anyio.Event = field(default_factory=anyio.Event)
    is_cut_off: bool = False
    waiting: anyio.CancelScope | None = None


@dataclass(eq=False)
class _Channel:
    """A conversation that somebody follows.

    Attributes:
        seen: The number of the last event that was read.
        followers: Who follows.
        source: The log from there on; `None` where nobody has begun to read it.
        is_read: Whether somebody reads at this moment.
    """

    seen: int
    followers: list[_Follower] = field(default_factory=list)
    source: AsyncIterator[StoredEvent] | None = None
    is_read: bool = False


class EventHub:
    """Follows logs for any number of watchers of this process, in one event loop.

    Args:
        store: The store with the logs.
        queue: How many events may wait for one watcher before it is cut off.

    Raises:
        ValueError: `queue` is not positive.
    """

    def __init__(self, store: OperatorStore, *, queue: int = 256) -> None:
        if queue < 1:
            raise ValueError(f"queue={queue} is not positive")
        self._store = store
        self._queue = queue
        self._channels: dict[str, _Channel] = {}

    async def follow(self, scope: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """The events behind number `after`, and those that come.

        It ends only where the follower was cut off, since more than `queue` events waited for it:
        it may follow again behind the last one that it has.

        Args:
            scope: The conversation's id.
            after: The number of the last event that the follower has seen.

        Raises:
            WebError: 409: there is no event with the number `after` yet.
            StoreError: the store has no such conversation.
        """
        async with aclosing(self.follow_or_wait(scope, after=after)) as events:
            async for stored in events:
                if stored is not None:
                    yield stored

    async def follow_or_wait(
        self,
        scope: str,
        *,
        after: int = 0,
        patience: float | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> AsyncGenerator[StoredEvent | None, None]:
        """As `follow`; `None` where nothing came for `patience` seconds.

        It ends too behind the last event that there is, where `is_over` says so: whoever makes it
        say something else calls `wake`.
        """
        last = await self._store.last_event(scope)
        if after > last:
            raise WebError(409, "There is no such event yet.")
        channel = self._channels.setdefault(scope, _Channel(last))
        follower = _Follower()
        channel.followers.append(follower)
        try:
            if after < channel.seen:
                async with aclosing(self._read_until(scope, after, channel.seen)) as past:
                    async for stored in past:
                        yield stored
                        after = stored.seq
            while True:
                while follower.events:
                    stored = follower.events.popleft()
                    if stored.seq > after:
                        yield stored
                        after = stored.seq
                if follower.is_cut_off:
                    return
                if is_over() and await self._store.last_event(scope) <= after:
                    return
                with anyio.move_on_after(patience) as waiting:
                    follower.waiting = waiting
                    await self._wait(scope, channel, follower)
                if waiting.cancelled_caught:
                    yield None
        finally:
            channel.followers.remove(follower)
            if not channel.followers and self._channels.get(scope) is channel:
                del self._channels[scope]
                if channel.source is not None:
                    await _close(channel.source)

    def wake(self, scope: str) -> None:
        """Let the followers of a conversation look at once whether it is over."""
        channel = self._channels.get(scope)
        for follower in () if channel is None else channel.followers:
            if follower.waiting is not None:
                follower.waiting.cancel()

    async def _read_until(
        self, scope: str, after: int, last: int
    ) -> AsyncGenerator[StoredEvent, None]:
        """The events that were there when a follower came."""
        log = self._store.events(scope, after=after)
        try:
            # A piece of an answer that was the last one may be gone: the next event says so.
            while after < last:
                stored = await anext(log)
                if stored.seq > last:
                    return
                yield stored
                after = stored.seq
        finally:
            await _close(log)

    async def _wait(self, scope: str, channel: _Channel, follower: _Follower) -> None:
        """Wait until somebody has read something, or read it."""
        if channel.is_read:
            await follower.woken.wait()
            follower.woken = anyio.Event()
            return
        channel.is_read = True
        source, channel.source = channel.source, None
        try:
            if source is None:
                source = self._store.events(scope, after=channel.seen)
            stored = await anext(source)
            channel.seen, channel.source = stored.seq, source
            for each in channel.followers:
                self._give(each, stored)
        finally:
            # Where this was cancelled, the generator has ended, and the next one begins another.
            channel.is_read = False
            for each in channel.followers:
                each.woken.set()

    def _give(self, follower: _Follower, stored: StoredEvent) -> None:
        if follower.is_cut_off:
            return
        if len(follower.events) >= self._queue:
            follower.is_cut_off = True
            return
        follower.events.append(stored)


async def _close(log: AsyncIterator[StoredEvent]) -> None:
    close = getattr(log, "aclose", None)
    if close is not None:
        with anyio.CancelScope(shield=True):
            await close()
