"""Event loops whose clock jumps to the next timer whenever nothing else is left to do."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import trio.testing

T = TypeVar("T")

BACKENDS = ["asyncio", "trio"]
DAY = 86_400.0  # what asyncio makes of "forever"


# The class of the selector differs with the platform.
class _Jumping(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Waits for real only without a timer to jump to: then for a thread or a socket."""

    loop: JumpingLoop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0 or timeout > DAY / 2:
            return super().select(timeout)
        ready = super().select(0.0 if self.loop.jumping else 0.001)
        if not ready and self.loop.jumping:
            self.loop.now += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 0.0
        self.jumping = True
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


class StoppedClock:
    """Time stands still in the block, except for `jump`.

    For tests of threads, which a clock that jumps by itself would leave behind.
    """

    def __enter__(self) -> StoppedClock:
        self._jump(False, 0.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._jump(True, 0.0)

    async def jump(self, seconds: float) -> None:
        """Let time pass, and what is due then happen."""
        self._jump(False, seconds)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()

    def _jump(self, jumping: bool, seconds: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock)
            clock.autojump_threshold = 0.0 if jumping else math.inf
            clock.jump(seconds)
        else:
            assert isinstance(loop, JumpingLoop)
            loop.jumping = jumping
            loop.now += seconds


def run(backend: str, function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run an async function to its end, in virtual time."""
    if backend == "asyncio":
        return anyio.run(
            function, *args, backend="asyncio", backend_options={"loop_factory": JumpingLoop}
        )
    return trio.run(function, *args, clock=trio.testing.MockClock(autojump_threshold=0))


async def tasks() -> int:
    """How many tasks live; one that has just ended may take a moment to be gone."""
    await anyio.sleep(1.0)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return trio.lowlevel.current_statistics().tasks_living
    return len([task for task in asyncio.all_tasks() if not task.done()])
