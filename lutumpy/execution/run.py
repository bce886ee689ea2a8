"""One run: every call gets a slot in its turn, is tried, and leaves exactly one result in the report."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from lutumpy.core import json_values
from lutumpy.execution import results
from lutumpy.execution.attempts import (
    Attempt,
    Borrowing,
    absorb_own_cancellation,
    cancelled_from_outside,
)
from lutumpy.execution.dispatcher import Runner
from lutumpy.execution.identity import IdempotencyKey, call_arguments, idempotency_key
from lutumpy.execution.logs import log_result, log_retry, log_return
from lutumpy.execution.report import CallReport, ExecutionReport
from lutumpy.execution.results import ExecutionResult
from lutumpy.execution.slots import Line, Loop, Slots, Ticket
from lutumpy.execution.unresolved import Unresolved, UnresolvedCall

__all__ = ["Backoff", "Run"]

DUPLICATE = "Duplicate tool call skipped."


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a retry waits: twice as long each time, half of it left to chance.

    Attributes:
        first: Seconds before the second attempt, at most.
        most: Seconds before any attempt, at most.
        thread: Seconds that a retry waits for the thread of the attempt before it to return.
        chance: Where the chance comes from.
    """

    first: float
    most: float
    thread: float
    chance: random.Random

    def delay(self, attempts: int) -> float:
        """Seconds to wait after so many attempts."""
        longest = min(self.most, self.first * 2.0 ** min(attempts - 1, 64))
        return longest * self.chance.uniform(0.5, 1.0)


class Run:
    """One call of `ToolExecutor.run`, from its beginning to its end.

    Args:
        reports: One for each call, those with a result are not run.
        runners: What runs each call.
        report: Where results go.
        slots: The executor's slots.
        unresolved: The executor's calls of unknown outcome.
        scope: The namespace of keys and of unresolved calls.
        backoff: How long retries wait.
        deduplicate: Whether equal calls are skipped.
    """

    def __init__(
        self,
        reports: Sequence[CallReport],
        runners: Sequence[Runner],
        report: ExecutionReport,
        slots: Slots,
        unresolved: Unresolved,
        scope: str,
        backoff: Backoff,
        *,
        deduplicate: bool,
    ) -> None:
        self._reports = reports
        self._runners = runners
        self._report = report
        self._slots = slots
        self._unresolved = unresolved
        self._scope = scope
        self._backoff = backoff
        self._deduplicate = deduplicate
        self._began = anyio.current_time()
        self._cancelled = anyio.get_cancelled_exc_class()
        self._loop = Loop.running()
        self._line = Line(self._loop, self._start)
        self._ready: deque[Ticket] = deque()
        self._wake: anyio.Event | None = None
        self._group: TaskGroup | None = None
        self._limiter: anyio.CapacityLimiter | None = None
        self._fatal: BaseException | None = None
        self._before: dict[str, int] | None = None

    async def execute(self) -> list[ExecutionResult]:
        """Run every call that has no result yet; gives all results, in call order."""
        reports = self._reports
        self._report.begin(reports)
        tickets: list[Ticket] = []
        try:
            if self._deduplicate:
                self._skip_duplicates()
            tickets += [
                Ticket(self._line, k, r.call.tool)
                for k, r in enumerate(reports)
                if r.result is None
            ]
            if tickets:
                await self._all(tickets)
        finally:
            self._slots.leave(self._line, tickets)
            cut = any(report.result is None for report in reports)
            for report in self._report.end(self._now()):
                self._settled(report)
        if self._fatal is not None:
            raise self._fatal
        if cut:
            # Tools that pay no heed to a cancellation don't take it from the caller.
            await anyio.lowlevel.checkpoint_if_cancelled()
        return [r.result for r in reports if r.result is not None]

    async def _all(self, tickets: list[Ticket]) -> None:
        left = len(tickets)
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                self._slots.request(self._line, tickets)
                # Calls are started from here, so that each has the context variables of the caller, and not those of the call
                # whose slot it gets.
                while True:
                    while self._ready:
                        group.start_soon(self._call, self._ready.popleft())
                        left -= 1
                    if not left:
                        return
                    self._wake = anyio.Event()
                    await self._wake.wait()
            except (self._cancelled, GeneratorExit):
                raise
            except BaseException as error:
                self._stop(error)

    def _start(self, ticket: Ticket) -> None:
        self._ready.append(ticket)
        if self._wake is not None:
            self._wake.set()

    def _stop(self, error: BaseException) -> None:
        """End the run with what must not be kept to one call: `KeyboardInterrupt`, `SystemExit`, a mistake in here."""
        self._fatal = self._fatal or error
        if self._group is not None:
            self._group.cancel_scope.cancel()

    def _now(self) -> float:
        """Seconds since the run began."""
        try:
            return anyio.current_time() - self._began
        except RuntimeError:  # the event loop is gone, and this run is being closed
            return math.nan

    # --- before the first call -------------------------------------------------------------------------------------

    def _skip_duplicates(self) -> None:
        written = [
            (r.tool, json_values.canonical_arguments(r.metadata.arguments)) for r in self._reports
        ]
        counts = Counter(written)
        seen: set[tuple[str, str]] = set()
        for report, same in zip(self._reports, written, strict=True):
            if counts[same] == 1:  # most are; what hooks have made of them makes no difference then
                continue
            whole = (report.tool, call_arguments(report.call))
            if whole in seen and report.result is None:
                self._settle(report, results.rejected(report.call, DUPLICATE))
            seen.add(whole)

    def _key(self, report: CallReport) -> IdempotencyKey:
        call = report.call
        before = 0 if call.origin is not None else self._equal_before(report)
        return idempotency_key(call, self._scope, call_arguments(call), before)

    def _equal_before(self, report: CallReport) -> int:
        """How many equal calls were given to this run before one that has no origin. Counted once for all of them."""
        if self._before is None:
            self._before = {}
            seen: Counter[tuple[str, str]] = Counter()
            for each in self._reports:
                same = each.tool, call_arguments(each.call)
                self._before[each.call_id] = seen[same]
                seen[same] += 1
        return self._before[report.call_id]

    # --- one call --------------------------------------------------------------------------------------------------

    async def _call(self, ticket: Ticket) -> None:
        report = self._reports[ticket.index]
        try:
            # A task that was made just before a cancellation runs on to its first await.
            if cancelled_from_outside():
                return
            known = self._unresolved.find(report.call, self._scope)
            if known is not None:
                self._settle(report, results.rejected(report.call, _undecided(known)))
                return
            report.started = self._now()
            runner = self._runners[ticket.index]
            code = partial(runner.run, report.call, self._key(report) if runner.keyed else None)
            attempt = await self._attempts(ticket, report, code, is_async=runner.is_async)
            await absorb_own_cancellation()
            self._conclude(report, attempt)
        except GeneratorExit:
            raise
        except BaseException as error:
            if isinstance(error, self._cancelled) and cancelled_from_outside():
                raise
            self._stop(error)
        finally:
            if ticket.state == "held":
                self._slots.release(ticket, self._loop)

    async def _attempts(
        self, ticket: Ticket, report: CallReport, code: Callable[[], Any], *, is_async: bool
    ) -> Attempt:
        """Try a call, and after a timeout again, as often as its tool allows."""
        call = report.call
        options = call.selector.definition.options
        most = 1 if results.runs_once(call) else 1 + options.max_retries
        while True:
            report.attempts += 1
            attempt = Attempt()
            try:
                if is_async:
                    await attempt.run(code, options.timeout)
                else:
                    await attempt.run_in_thread(
                        code, options.timeout, self._threads(), self._borrowing(ticket, report)
                    )
            except BaseException:
                report.error = attempt.error
                if not attempt.began and report.attempts == 1:
                    report.started, report.attempts = None, 0
                raise
            report.error = attempt.error
            if not attempt.timed_out or report.attempts >= most:
                return attempt
            delay = self._backoff.delay(report.attempts)
            log_retry(report, attempt.error, self._now() - (report.started or 0.0), delay)
            if attempt.late is not None:
                # Two of them at once would be what the slot is there to prevent.
                with anyio.move_on_after(self._backoff.thread):
                    await attempt.late.wait()
                if report.thread_running:
                    return attempt
            self._slots.release(ticket, self._loop)
            await anyio.sleep(delay)
            ticket.granted = anyio.Event()
            self._slots.request(self._line, [ticket])
            await ticket.granted.wait()

    def _borrowing(self, ticket: Ticket, report: CallReport) -> Borrowing:
        slots, loop = self._slots, self._loop

        def lend() -> None:
            slots.lend(ticket)
            report.thread_running = True

        def keep() -> None:
            slots.keep(ticket)
            report.thread_running = False

        def returned(event: anyio.Event) -> None:
            report.thread_running = False
            slots.release(ticket)
            log_return(report)
            loop.post(event.set)

        return Borrowing(lend, keep, returned)

    def _threads(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(math.inf)
        return self._limiter

    # --- its end ---------------------------------------------------------------------------------------------------

    def _conclude(self, report: CallReport, attempt: Attempt) -> None:
        """Give a call the result of its last attempt."""
        if attempt.interrupted:
            return  # closed with the report, as everything that a cancellation cuts off
        call, attempts = report.call, report.attempts
        latency = self._now() - (report.started or 0.0)
        misfit: str | None = None
        if attempt.returned:
            result, misfit = results.returned(call, attempt.value, attempts, latency)
        elif attempt.timed_out or attempt.error is None:
            result = results.timed_out(call, attempts, latency, attempt.error, began=attempt.began)
        else:
            result = results.raised(call, attempt.error, attempts, latency, began=attempt.began)
        self._settle(report, result, misfit)

    def _settle(
        self, report: CallReport, result: ExecutionResult, misfit: str | None = None
    ) -> None:
        report.result = result
        if report.started is not None:
            report.finished = report.started + result.latency
        self._settled(report, misfit)

    def _settled(self, report: CallReport, misfit: str | None = None) -> None:
        if report.outcome == "maybe_executed":
            self._unresolved.add(report.call, self._scope)
        log_result(report, misfit)


def _undecided(known: UnresolvedCall) -> str:
    return (
        f"An equal call ({known.metadata.id}) may have taken effect already; its outcome is unknown. "
        "It is not run again until that is decided."
    )
