"""What forks do to open stores: gunicorn's preload, Celery's prefork, `multiprocessing`."""

# A connection must not cross a fork. Two processes on one socket of Postgres read each other's
# replies; and SQLite keeps what it has locked in memory, so a child that opens the same file would
# believe that it holds locks which are its parent's. So before a fork every store lets go of what
# it has open, and holds its lock until the fork is over: parent and child then open anew when they
# next need to.

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["close_before_forks"]


class Forkable(Protocol):
    """Something that is open, and can be closed for a moment."""

    def pause(self) -> None:
        """Let go of everything that must not cross a fork, and take the lock."""
        ...

    def go_on(self) -> None:
        """Give the lock back, in the parent and in the child."""
        ...


_stores: WeakSet[Forkable] = WeakSet()
_paused: list[Forkable] = []
# Two threads may fork at once.
_forking = threading.Lock()


def close_before_forks(store: Forkable) -> None:
    """Pause a store at every fork, as long as it exists."""
    _stores.add(store)


def _pause_all() -> None:
    _forking.acquire()
    for store in list(_stores):
        store.pause()
        _paused.append(store)


def _go_on() -> None:
    while _paused:
        _paused.pop().go_on()
    _forking.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(before=_pause_all, after_in_parent=_go_on, after_in_child=_go_on)
