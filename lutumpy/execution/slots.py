"""Concurrency slots: how many calls run at once, over all runs of an executor, and which is next.

They are counted here and not by a limiter of the event loop, because a thread may keep its slot when the task that waited for
it, or the whole loop, is long gone. So everything here may be used from any thread, and a run in another loop is woken there.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import anyio
import anyio.lowlevel

from lutumpy.tools.compiled import CompiledTool

__all__ = ["Line", "Loop", "Slots", "Ticket"]


class Loop:
    """An event loop that can be told something from other threads and loops, also when it has ended."""

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    @classmethod
    def running(cls) -> Loop:
        """The loop that runs here."""
        return cls(anyio.lowlevel.current_token().native_token)

    def post(self, function: Callable[[], object]) -> None:
        """Have `function` called in the loop soon; nothing happens when the loop has ended."""
        soon = getattr(self._native, "call_soon_threadsafe", None) or self._native.run_sync_soon
        try:
            soon(function)
        except RuntimeError:
            return

    def same(self, other: Loop | None) -> bool:
        """Whether both are the same loop."""
        return other is not None and self._native is other._native


class Ticket:
    """One call's place among those that run or wait.

    Attributes:
        index: The place of the call in its run.
        tool: What it calls.
        state: `idle`; `waiting` for a slot; `held`, it has one; or `lent`, a thread has it that nobody waits for any more.
        granted: Set when a call that had started before gets a slot again; `None` for a call that is to be started.
    """

    __slots__ = ("granted", "index", "line", "state", "tool")

    def __init__(self, line: Line, index: int, tool: CompiledTool) -> None:
        self.line: Line = line
        self.index: int = index
        self.tool: CompiledTool = tool
        self.state: Literal["idle", "waiting", "held", "lent"] = "idle"
        self.granted: anyio.Event | None = None

    def __lt__(self, other: Ticket) -> bool:
        return self.index < other.index


class Line:
    """The calls of one run that wait for a slot, in call order.

    Args:
        loop: The loop of the run.
        start: Is called there with a ticket that has got its slot, if its call is to be started.
    """

    __slots__ = ("free", "granted", "limited", "loop", "queued", "start")

    def __init__(self, loop: Loop, start: Callable[[Ticket], None]) -> None:
        self.loop: Loop = loop
        self.start: Callable[[Ticket], None] = start
        self.free: list[Ticket] = []
        self.limited: dict[CompiledTool, list[Ticket]] = {}
        self.granted: deque[Ticket] = deque()
        self.queued: bool = False

    def deliver(self) -> None:
        """Tell every ticket that has got a slot; in the loop of the run."""
        while self.granted:
            ticket = self.granted.popleft()
            if ticket.granted is not None:
                ticket.granted.set()
            else:
                self.start(ticket)


class Slots:
    """The slots of one executor.

    Args:
        size: How many calls run at once.
        limits: How many calls of these tools run at once.
    """

    __slots__ = ("_free", "_limits", "_lines", "_lock", "_running")

    def __init__(self, size: int, limits: Mapping[CompiledTool, int]) -> None:
        self._lock = threading.Lock()
        self._free = size
        self._limits = dict(limits)
        self._running = dict.fromkeys(limits, 0)
        # Runs with waiting calls. Each gets a slot in turn, so that a long run doesn't keep a short one waiting.
        self._lines: deque[Line] = deque()

    def request(self, line: Line, tickets: Iterable[Ticket]) -> None:
        """Have the calls of a run wait; those that get a slot now are told before this returns. In the loop of the run."""
        with self._lock:
            for ticket in tickets:
                ticket.state = "waiting"
                queue = (
                    line.limited.setdefault(ticket.tool, [])
                    if ticket.tool in self._limits
                    else line.free
                )
                heapq.heappush(queue, ticket)
            if not line.queued:
                line.queued = True
                self._lines.append(line)
            woken = self._grant()
        _wake(woken, line.loop)

    def release(self, ticket: Ticket, loop: Loop | None = None) -> None:
        """Give a slot back, for the next call that waits; nothing when the ticket has none.

        Args:
            ticket: Whose slot.
            loop: The loop that runs here, if any.
        """
        with self._lock:
            woken = self._grant() if self._take_back(ticket) else ()
        _wake(woken, loop)

    def lend(self, ticket: Ticket) -> None:
        """Leave a slot to a thread, which releases it when it returns."""
        with self._lock:
            ticket.state = "lent"

    def keep(self, ticket: Ticket) -> None:
        """Take back what was lent, when the thread was done after all."""
        with self._lock:
            ticket.state = "held"

    def leave(self, line: Line, tickets: Iterable[Ticket]) -> None:
        """A run is over: nothing of it waits any more, and it holds no slot but those that threads keep."""
        with self._lock:
            for ticket in tickets:
                if ticket.state == "held":
                    self._take_back(ticket)
                elif ticket.state == "waiting":
                    ticket.state = "idle"
            line.free.clear()
            line.limited.clear()
            line.granted.clear()
            if line.queued:
                line.queued = False
                self._lines.remove(line)
            woken = self._grant()
        _wake(woken, line.loop)

    # --- with the lock held ----------------------------------------------------------------------------------------

    def _take_back(self, ticket: Ticket) -> bool:
        if ticket.state not in ("held", "lent"):
            return False
        ticket.state = "idle"
        self._free += 1
        if ticket.tool in self._limits:
            self._running[ticket.tool] -= 1
        return True

    def _grant(self) -> list[Line]:
        """Give free slots away; the runs that have to be told."""
        woken: list[Line] = []
        passed = 0  # runs in a row that wait for nothing but tools at their limit
        while self._free and passed < len(self._lines):
            line = self._lines.popleft()
            ticket = self._next(line)
            if ticket is not None:
                passed = 0
                ticket.state = "held"
                self._free -= 1
                if ticket.tool in self._limits:
                    self._running[ticket.tool] += 1
                line.granted.append(ticket)
                # Told again even when it is being told: it may just have looked for the last time.
                if line not in woken:
                    woken.append(line)
            else:
                passed += 1
            line.queued = bool(line.free) or any(line.limited.values())
            if line.queued:
                self._lines.append(line)
        return woken

    def _next(self, line: Line) -> Ticket | None:
        """Take the first call of a run that may start now."""
        best = line.free
        for tool, queue in line.limited.items():
            if (
                queue
                and self._running[tool] < self._limits[tool]
                and (not best or queue[0] < best[0])
            ):
                best = queue
        return heapq.heappop(best) if best else None


def _wake(lines: Iterable[Line], here: Loop | None) -> None:
    for line in lines:
        if line.loop.same(here):
            line.deliver()
        else:
            line.loop.post(line.deliver)
