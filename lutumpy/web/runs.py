"""The runs that a process has begun for its front ends."""

# A run is a task of the event loop, not of a request: a browser that leaves stops nothing. One
# conversation has one run here; who asks for another one while it goes on is served by it, since
# `DurableLoop.run` looks for new messages before it ends, and this looks once more behind it.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from lutumpy.durable import Claim, DurableLoop, OperatorStore, Taken
from lutumpy.durable.events import RUN_BY, RunBy
from lutumpy.durable.log import RunStopped
from lutumpy.durable.shown import dump_event

__all__ = ["Runs"]

logger: logging.Logger = logging.getLogger("lutumpy.web")

_SECONDS_BETWEEN_TRIES = 0.5
SECONDS_ALONE = 10.0
"""How long a run that is stopped when nobody watches it goes on without a watcher."""


class Runs:
    """Begins and stops runs.

    Args:
        loop: What runs them.
        store: Its store.
        stop_when_left: Whether a run ends when nobody has watched it for `SECONDS_ALONE`.
    """

    def __init__(
        self, loop: DurableLoop[Any, Any], store: OperatorStore, *, stop_when_left: bool
    ) -> None:
        self._loop = loop
        self._store = store
        self._stop_when_left = stop_when_left
        self._tasks: dict[str, tuple[asyncio.Task[None], RunBy]] = {}
        self._again: set[str] = set()
        self._watchers: dict[str, int] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def begin(self, scope: str) -> None:
        """Let a conversation go on, in the background."""
        if scope in self._tasks:
            self._again.add(scope)
            return
        by = RunBy()
        task = asyncio.get_running_loop().create_task(self._run(scope, by))
        self._tasks[scope] = task, by
        task.add_done_callback(lambda _: self._ended(scope))

    def _ended(self, scope: str) -> None:
        self._tasks.pop(scope, None)
        if scope in self._again:
            self._again.discard(scope)
            self.begin(scope)

    async def _run(self, scope: str, by: RunBy) -> None:
        RUN_BY.set(by)
        try:
            while isinstance(await self._loop.run(scope), Taken):
                # Another process goes on with it. It takes what waits, unless it was about to end.
                if not any(not entry.taken for entry in await self._store.inbox(scope)):
                    return
                await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
        except Exception as error:
            # Its log says so to those who watch; why is for who operates it.
            logger.error("the run of %r failed: %s: %s", scope, type(error).__name__, error)

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
            task, run = found
            run.by = by
            task.cancel()
            await asyncio.wait([task])
            return True
        if not await self._store.break_lease(scope, by=by):
            return False
        # That process can write nothing any more, and notices it when it renews its lease: after a
        # third of it at the latest. So the end of the run is said here.
        claim = await self._store.claim(scope)
        if isinstance(claim, Claim):
            event = dump_event(RunStopped(by))
            await self._store.add_events(claim, [event])
            await self._store.release(claim)
        return True

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
        if self._stop_when_left and scope in self._tasks:
            self._later(lambda: self._stop_alone(scope))

    def _later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _stop_alone(self, scope: str) -> None:
        await asyncio.sleep(SECONDS_ALONE)
        if scope not in self._watchers and scope in self._tasks:
            await self.stop(scope, "nobody watched")
