"""Concurrency slots: how many calls run at once in an executor, and which is next."""

# Slots are counted here and not by a limiter of the event loop, because a thread may keep its slot
# when the task that waited for it, or the whole loop, is long gone. So everything here may be used
# from any thread, under one lock, and a run in another loop is woken there.
#
# A call that may use a slot is a `WaitingCall`. Its states:
#
#              request                     a slot is free
#     idle ---------------> waiting ---------------------------> held
#      ^                       |                                 |  ^
#      |   leave: the run is   |      leave_to_thread: nobody    |  | take_back: the thread
#      +----- over ------------+      waits for the function     v  | was done after all
#      |                                                        lent
#      +------------ release: from held, or from lent when the thread returns
#
# Who gets the next free slot:
#
# - Runs take turns, so that a long run doesn't keep a short one waiting.
# - Within a run, the call that comes first in call order among those whose tool is below its own
#   limit. That is why a run has one heap for the calls without a limit and one for each tool that
#   has one: only the first entries of the heaps have to be compared. In a single queue, each
#   free slot would have to look again at every waiting call of a tool that is at its limit.

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal

import anyio
import anyio.lowlevel

__all__ = ["Loop", "RunQueue", "Slots", "WaitingCall"]


class Loop:
    """An event loop that other threads and loops can post functions to, even after it has ended."""

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


class WaitingCall:
    """One call's place among those that run or wait.

    Attributes:
        index: The place of the call in its run; of two waiting calls, the lower one is first.
        tool: What it calls, as `tool_key` says; calls of one tool share its limit.
        state: `idle`; `waiting` for a slot; `held`: it has one; or `lent`: a thread has it that
            nobody waits for any more.
        granted: Set when a call that was started before gets a slot again; `None` for a call that
            is still to be started.
    """

    __slots__ = ("granted", "index", "queue", "state", "tool")

    def __init__(self, queue: RunQueue, index: int, tool: Hashable) -> None:
        self.queue: RunQueue = queue
        self.index: int = index
        self.tool: Hashable = tool
        self.state: Literal["idle", "waiting", "held", "lent"] = "idle"
        self.granted: anyio.Event | None = None

    def __lt__(self, other: WaitingCall) -> bool:
        return self.index < other.index


class RunQueue:
    """The calls of one run that wait for a slot, in call order.

    Args:
        loop: The loop of the run.
        start: Called in that loop with each call that has got its slot and is to be started.

    Attributes:
        unlimited: A heap of the waiting calls whose tools have no limit of their own.
        limited: The same for each tool that has a limit.
        granted: Calls that have got a slot and wait for `deliver`.
        in_turn: Whether the run is among those that take turns.
    """

    __slots__ = ("granted", "in_turn", "limited", "loop", "start", "unlimited")

    def __init__(self, loop: Loop, start: Callable[[WaitingCall], None]) -> None:
        self.loop: Loop = loop
        self.start: Callable[[WaitingCall], None] = start
        self.unlimited: list[WaitingCall] = []
        self.limited: dict[Hashable, list[WaitingCall]] = {}
        self.granted: deque[WaitingCall] = deque()
        self.in_turn: bool = False

    def deliver(self) -> None:
        """Start or resume every call that has got a slot; in the loop of the run."""
        while self.granted:
            call = self.granted.popleft()
            if call.granted is not None:
                call.granted.set()
            else:
                self.start(call)


class Slots:
    """The slots of one executor.

    Args:
        size: How many calls run at once.
        limits: How many calls of these tools run at once.
    """

    __slots__ = ("_free", "_limits", "_lock", "_queues", "_running")

    def __init__(self, size: int, limits: Mapping[Hashable, int]) -> None:
        self._lock = threading.Lock()
        self._free = size
        self._limits = dict(limits)
        self._running = dict.fromkeys(limits, 0)
        # The runs that have waiting calls, in the order of their turns.
        self._queues: deque[RunQueue] = deque()

    def request(self, queue: RunQueue, calls: Iterable[WaitingCall]) -> None:
        """Have the calls of a run wait for slots; called in the loop of the run.

        Calls that get a slot at once are delivered before this returns.
        """
        with self._lock:
            for call in calls:
                call.state = "waiting"
                if call.tool in self._limits:
                    heap = queue.limited.setdefault(call.tool, [])
                else:
                    heap = queue.unlimited
                heapq.heappush(heap, call)
            if not queue.in_turn:
                queue.in_turn = True
                self._queues.append(queue)
            woken = self._grant_free_slots()
        _wake_runs(woken, queue.loop)

    def release(self, call: WaitingCall, loop: Loop | None = None) -> None:
        """Give a slot back, for the next call that waits; does nothing when the call has none.

        Args:
            call: Whose slot.
            loop: The loop that runs here, if any.
        """
        with self._lock:
            woken = self._grant_free_slots() if self._free_slot(call) else ()
        _wake_runs(woken, loop)

    def leave_to_thread(self, call: WaitingCall) -> None:
        """Leave a slot to a thread, which releases it when it returns."""
        with self._lock:
            call.state = "lent"

    def take_back(self, call: WaitingCall) -> None:
        """Take back a slot that was left to a thread, when the thread was done after all."""
        with self._lock:
            call.state = "held"

    def leave(self, queue: RunQueue, calls: Iterable[WaitingCall]) -> None:
        """A run is over: none of its calls waits any more, and only threads keep their slots."""
        with self._lock:
            for call in calls:
                if call.state == "held":
                    self._free_slot(call)
                elif call.state == "waiting":
                    call.state = "idle"
            queue.unlimited.clear()
            queue.limited.clear()
            queue.granted.clear()
            if queue.in_turn:
                queue.in_turn = False
                self._queues.remove(queue)
            woken = self._grant_free_slots()
        _wake_runs(woken, queue.loop)

    # --- with the lock held ------------------------------------------------------------------

    def _free_slot(self, call: WaitingCall) -> bool:
        """Count the slot of a call as free; says whether it had one."""
        if call.state not in ("held", "lent"):
            return False
        call.state = "idle"
        self._free += 1
        if call.tool in self._limits:
            self._running[call.tool] -= 1
        return True

    def _grant_free_slots(self) -> list[RunQueue]:
        """Give free slots to waiting calls; returns the runs that have to be woken."""
        woken: list[RunQueue] = []
        passed = 0  # runs in a row whose waiting calls are all of tools at their limit
        while self._free and passed < len(self._queues):
            queue = self._queues.popleft()
            call = self._take_first_call(queue)
            if call is None:
                passed += 1
            else:
                passed = 0
                call.state = "held"
                self._free -= 1
                if call.tool in self._limits:
                    self._running[call.tool] += 1
                queue.granted.append(call)
                # Also when the run is delivering just now: it may have looked for the last time.
                if queue not in woken:
                    woken.append(queue)
            queue.in_turn = bool(queue.unlimited) or any(queue.limited.values())
            if queue.in_turn:
                self._queues.append(queue)
        return woken

    def _take_first_call(self, queue: RunQueue) -> WaitingCall | None:
        """Take the first call of a run that may start now."""
        best = queue.unlimited
        for tool, heap in queue.limited.items():
            if not heap or self._running[tool] >= self._limits[tool]:
                continue
            if not best or heap[0] < best[0]:
                best = heap
        return heapq.heappop(best) if best else None


def _wake_runs(queues: Iterable[RunQueue], here: Loop | None) -> None:
    for queue in queues:
        if queue.loop.same(here):
            queue.deliver()
        else:
            queue.loop.post(queue.deliver)
