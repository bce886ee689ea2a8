"""The runs that a process has begun for its front ends."""

# A run is a task of the event loop, not of a request: a browser that leaves stops nothing. One
# conversation has one run here; who asks for another one while it goes on is served by it, since
# `DurableLoop.run` looks for new messages before it ends, and this looks once more behind it.
#
# Where another process runs it, the task waits, as long as somebody watches the conversation here:
# if that process is killed, nobody but its watchers would notice. `_elsewhere` has the
# conversations that wait so: stopping one of them isn't a matter of its task.
#
# An event loop that ends cancels the tasks that it has then, and waits for these. A task that was
# begun only then would be left in the middle, perhaps of a call. So a run that was cancelled by
# anything but `stop` is followed by no other one, and what has to be done later is a timer, which
# ends with the loop.
#
# A run that is stopped in another process loses its claim here, and its log says why. What was
# wanted before that is wanted no more: a message that waits then waits for whoever comes later. So
# whoever wants a run says how much of the log it has seen.
#
# A run may end without a word in the log for those who wait for their message: it failed before it
# took that, or the conversation is stuck, which its log says only once. So watchers are told here
# how the last run ended, where no other one follows it.

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime, timezone
from typing import Any, cast

from lutumpy import TakenOverError
from lutumpy.durable import DurableLoop, OperatorStore, StoredEvent, Stuck, Taken
from lutumpy.durable.events import RUN_BY, RunBy
from lutumpy.durable.log import ENDINGS, RunFailed, RunStopped

__all__ = ["Runs"]

logger: logging.Logger = logging.getLogger("lutumpy.web")

_SECONDS_BETWEEN_TRIES = 0.5
_MOST_SECONDS_BETWEEN_TRIES = 10.0
SECONDS_ALONE = 10.0
"""How long a run that is stopped when nobody watches it goes on without a watcher."""


class Runs:
    """Begins and stops runs.

    Args:
        loop: What runs them.
        store: Its store.
        stop_when_left: Whether a run ends when nobody has watched it for `SECONDS_ALONE`.
        tell: Called with a conversation that has come to have a `failure`.
    """

    def __init__(
        self,
        loop: DurableLoop[Any, Any],
        store: OperatorStore,
        *,
        stop_when_left: bool,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._loop = loop
        self._store = store
        self._stop_when_left = stop_when_left
        self._tell = tell
        self._tasks: dict[str, tuple[asyncio.Task[None], RunBy]] = {}
        self._again: set[str] = set()
        # How much of its log who wants a conversation to go on has seen, while it has a task.
        self._seen: dict[str, float] = {}
        self._stopping: set[str] = set()
        self._failures: dict[str, RunFailed | RunStopped] = {}
        # What wakes those that wait for another process.
        self._elsewhere: dict[str, asyncio.Event] = {}
        self._watchers: dict[str, int] = {}
        self._leaving: set[asyncio.Task[bool]] = set()

    def begin(self, scope: str, *, seen: float = math.inf) -> None:
        """Let a conversation go on, in the background.

        Args:
            scope: The conversation's id.
            seen: The number of the last event that whoever wants it has seen. If somebody stops the
                conversation after that, in another process, it is wanted no more.
        """
        self._seen[scope] = max(seen, self._seen.get(scope, 0))
        if scope in self._elsewhere:
            self._elsewhere[scope].set()
            return
        if scope in self._tasks:
            self._again.add(scope)
            return
        self._failures.pop(scope, None)
        by = RunBy()
        task = asyncio.get_running_loop().create_task(self._run(scope, by))
        self._tasks[scope] = task, by
        task.add_done_callback(lambda ended: self._ended(scope, ended, by))

    def is_running(self, scope: str) -> bool:
        """Whether this process has begun a run that hasn't ended."""
        return scope in self._tasks

    def failure(self, scope: str) -> RunFailed | RunStopped | None:
        """How the last run of this process ended, where it failed or was stopped.

        `None` where it didn't, or another one goes on or follows it.
        """
        return None if scope in self._tasks else self._failures.get(scope)

    def _ended(self, scope: str, task: asyncio.Task[None], by: RunBy) -> None:
        self._tasks.pop(scope, None)
        seen = self._seen.pop(scope, 0)
        is_wanted = scope in self._again
        is_stopped = task.cancelled() and scope in self._stopping
        is_loop_ending = task.cancelled() and not is_stopped
        self._again.discard(scope)
        self._stopping.discard(scope)
        if is_stopped:
            self._failures[scope] = RunStopped(by.by)
        if is_wanted and not is_loop_ending:
            self.begin(scope, seen=seen)
        elif scope in self._failures and self._tell is not None:
            self._tell(scope)

    async def _run(self, scope: str, by: RunBy) -> None:
        RUN_BY.set(by)
        try:
            await self._go_on(scope)
        except Exception as error:
            # Its log says so to those who watch; why is for who operates it.
            logger.error("the run of %r failed: %s: %s", scope, type(error).__name__, error)
            if not isinstance(error, TakenOverError):  # whoever has it writes how it ends
                self._failures[scope] = RunFailed(type(error).__name__)

    async def _go_on(self, scope: str) -> None:
        """Run a conversation, or wait for the process that does; then look again."""
        try:
            while isinstance(outcome := await self._loop.run(scope), Taken):
                if not await self._wait_for_another(scope, outcome.until):
                    return
        except TakenOverError:
            if not await self._was_stopped(scope):
                raise
            return
        if isinstance(outcome, Stuck):
            self._failures[scope] = RunFailed("Stuck")

    async def _was_stopped(self, scope: str) -> bool:
        """Whether another process has stopped a conversation since its run was wanted here."""
        last = await _find_last(self._store, scope)
        event = None if last is None else last.load()
        if last is None or not isinstance(event, RunStopped) or last.seq <= self._seen[scope]:
            return False
        self._again.discard(scope)
        self._failures[scope] = event
        return True

    async def _wait_for_another(self, scope: str, until: datetime) -> bool:
        """Wait while another process goes on with a conversation; gives whether to try then.

        Args:
            scope: The conversation's id.
            until: When its lease ends, if it doesn't renew it.
        """
        woken = self._elsewhere[scope] = asyncio.Event()
        seconds = (until - datetime.now(timezone.utc)).total_seconds()
        is_wanted = scope in self._again
        self._again.discard(scope)
        if is_wanted or any(not entry.taken for entry in await self._store.inbox(scope)):
            is_wanted, seconds = True, 0.0  # it takes what waits, unless it was about to end
        seconds = min(max(seconds, _SECONDS_BETWEEN_TRIES), _MOST_SECONDS_BETWEEN_TRIES)
        try:
            await asyncio.wait_for(woken.wait(), seconds)
            is_wanted = True
        except asyncio.TimeoutError:
            pass  # time to look again
        finally:
            del self._elsewhere[scope]
        if await self._was_stopped(scope):
            return False
        return is_wanted or (scope in self._watchers and not await has_ended(self._store, scope))

    async def stop(self, scope: str, by: str) -> bool:
        """Stop the run of a conversation, wherever it is (rule W19).

        Args:
            scope: The conversation's id.
            by: Who stops it.

        Returns:
            Whether there was one.
        """
        self._again.discard(scope)
        found = self._tasks.get(scope)
        if found is not None:
            is_elsewhere = scope in self._elsewhere
            task, run = found
            run.by, run.stops = by, True
            self._stopping.add(scope)
            task.cancel()
            await asyncio.wait([task])
            if not is_elsewhere:
                return True
        # That process can write nothing any more, and notices it when it renews its lease: after a
        # third of it at the latest. So the store says in its log that the run has ended.
        return await self._store.break_lease(scope, by=by, stop=True)

    # --- watchers ----------------------------------------------------------------------------

    def watch(self, scope: str) -> None:
        """Somebody watches."""
        self._watchers[scope] = self._watchers.get(scope, 0) + 1

    def leave(self, scope: str) -> None:
        """Somebody watches no more."""
        self._watchers[scope] -= 1
        if self._watchers[scope]:
            return
        del self._watchers[scope]
        if self._stop_when_left and self._is_alone(scope):
            asyncio.get_running_loop().call_later(SECONDS_ALONE, self._stop_alone, scope)

    def _is_alone(self, scope: str) -> bool:
        is_here = scope in self._tasks and scope not in self._elsewhere
        return is_here and scope not in self._watchers

    def _stop_alone(self, scope: str) -> None:
        if self._is_alone(scope):
            task = asyncio.get_running_loop().create_task(self.stop(scope, "nobody watched"))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


async def has_ended(store: OperatorStore, scope: str) -> bool:
    """Whether the last run of a conversation has ended by itself, as its log says.

    One that hasn't goes on in some process, or its process was killed.
    """
    last = await _find_last(store, scope)
    return last is None or last.event.get("event") in ENDINGS


async def _find_last(store: OperatorStore, scope: str) -> StoredEvent | None:
    """The last event of a conversation; one behind it, where that is gone."""
    last = await store.last_event(scope)
    if not last:
        return None
    async with aclosing(cast("Any", store.events(scope, after=last - 1))) as log:
        async for stored in log:
            found: StoredEvent = stored
            return found
    return None
