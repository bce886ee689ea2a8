"""How another thread wakes a task, on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel

__all__ = ["Waker"]


class Waker:
    """Lets one task wait until another thread wakes it. The task creates it."""

    __slots__ = ("_event", "_native")

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._native: Any = anyio.lowlevel.current_token().native_token

    async def wait(self) -> None:
        """Wait until `wake` was called."""
        await self._event.wait()

    def wake(self) -> None:
        """Wake the task, from any thread. If its event loop is gone, there is nobody to wake."""
        soon = getattr(self._native, "call_soon_threadsafe", None) or self._native.run_sync_soon
        try:
            soon(self._event.set)
        except RuntimeError:
            return
