"""One run: every call gets a slot, is tried, and leaves exactly one result in the report."""

# The way of one call through a run:
#
#     waiting call --slot--> task --attempt--> conclude --> result in the report
#                              ^        |
#                              |        | timed out, attempts left
#                              |        v
#                              +-- slot given back, backoff, slot requested again
#
# Beside that way are the exits:
#
# - equal to an earlier call of the run (`deduplicate`), or to one whose outcome is unknown:
#   rejected, without an attempt
# - its function is still running in a thread: the slot stays with the thread, and a retry waits
#   for it (`thread` of the backoff), else two of them would run at once
# - the run is cancelled: calls in progress and waiting calls get their results from
#   `ExecutionReport.end`, in the `finally` of `execute`
# - KeyboardInterrupt, SystemExit, what the journal raises, or a mistake in here: `_stop_run`
#   cancels the run, and `execute` raises it once every call has a result
#
# With a journal, a call is begun there before its first attempt, and ended there before its result
# counts (`journal_use.py`).

from __future__ import annotations

import math
import random
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from lutumpy import ApprovalRequest, CallTicket, Later
from lutumpy.execution import results
from lutumpy.execution.around import Around, attempt_within
from lutumpy.execution.attempts import (
    Attempt,
    SlotHandover,
    absorb_own_cancellation,
    cancelled_from_outside,
)
from lutumpy.execution.dispatcher import Runner
from lutumpy.execution.journal import CallJournal
from lutumpy.execution.journal_use import JournalUse
from lutumpy.execution.logs import log_result, log_retry, log_return
from lutumpy.execution.report import CallReport, ExecutionReport
from lutumpy.execution.results import ExecutionResult
from lutumpy.execution.slots import Loop, RunQueue, Slots, WaitingCall
from lutumpy.execution.unresolved import Unresolved, UnresolvedCall
from lutumpy.tools import (
    Asked,
    IdempotencyKey,
    call_arguments,
    idempotency_key,
    make_ticket,
    tool_key,
    written_arguments,
)

__all__ = ["Backoff", "Run"]

DUPLICATE = "Duplicate tool call skipped."


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a retry waits: twice as long each time, minus a random part of up to a half.

    Attributes:
        first: Seconds before the second attempt, at most.
        most: Seconds before any attempt, at most.
        thread: Seconds that a retry waits for the thread of the previous attempt to return.
        chance: Source of the randomness.
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
        reports: One for each call; calls whose report has a result are not run.
        runners: What runs each call; `None` for one that has a result.
        report: Where results go.
        slots: The executor's slots.
        unresolved: The executor's calls of unknown outcome.
        scope: The namespace of keys and of unresolved calls.
        backoff: How long retries wait.
        deduplicate: Whether equal calls are skipped.
        journal: Told of each call before it starts and after it has ended.
        around: Gives what is entered around each attempt.
        about: Further fields of log records.
    """

    def __init__(
        self,
        reports: Sequence[CallReport],
        runners: Sequence[Runner | None],
        report: ExecutionReport,
        slots: Slots,
        unresolved: Unresolved,
        scope: str,
        backoff: Backoff,
        *,
        deduplicate: bool,
        journal: CallJournal | None = None,
        around: Around | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self._around = around
        self._about = about
        self._reports = reports
        self._runners = runners
        self._report = report
        self._slots = slots
        self._unresolved = unresolved
        self._scope = scope
        self._backoff = backoff
        self._deduplicate = deduplicate
        self._journal = None if journal is None else JournalUse(journal, scope)
        self._began = anyio.current_time()
        self._cancelled = anyio.get_cancelled_exc_class()
        self._loop = Loop.running()
        self._queue = RunQueue(self._loop, self._note_ready)
        # Calls that have their slot, to be started as tasks; and what wakes the starter.
        self._ready: deque[WaitingCall] = deque()
        self._woken: anyio.Event | None = None
        self._group: TaskGroup | None = None
        self._limiter: anyio.CapacityLimiter | None = None
        # What ends the run and is raised at its end.
        self._fatal: BaseException | None = None
        self._equal_before: dict[str, int] | None = None

    async def execute(self) -> list[ExecutionResult]:
        """Run every call that has no result yet; gives all results, in call order."""
        reports = self._reports
        self._report.begin(reports)
        waiting: list[WaitingCall] = []
        try:
            if self._deduplicate:
                self._reject_duplicates()
            if self._journal is not None:
                self._make_tickets(self._journal)
            for index, report in enumerate(reports):
                if report.result is None:
                    waiting.append(WaitingCall(self._queue, index, tool_key(report.call.selector)))
            if waiting:
                await self._start_calls(waiting)
        finally:
            self._slots.leave(self._queue, waiting)
            cut = any(report.result is None for report in reports)
            for report in self._report.end(self._seconds_since_start()):
                self._note_outcome(report)
            # A coroutine that is being closed can't wait for anything.
            closed = isinstance(sys.exc_info()[1], GeneratorExit)
            if cut and self._journal is not None and not closed:
                await self._journal.end_cut(reports)
        if self._fatal is not None:
            raise self._fatal
        if cut:
            # Tools that ignore a cancellation must not take it away from the caller.
            await anyio.lowlevel.checkpoint_if_cancelled()
        return [report.result for report in reports if report.result is not None]

    async def _start_calls(self, waiting: list[WaitingCall]) -> None:
        """Start each call when it has its slot; returns when all have ended."""
        left = len(waiting)
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                self._slots.request(self._queue, waiting)
                # Calls are started from here, so that each has the context variables of the
                # caller, and not those of the call whose slot it gets.
                while True:
                    while self._ready:
                        group.start_soon(self._run_call, self._ready.popleft())
                        left -= 1
                    if not left:
                        return
                    self._woken = anyio.Event()
                    await self._woken.wait()
            except (self._cancelled, GeneratorExit):
                raise
            except BaseException as error:
                self._stop_run(error)

    def _note_ready(self, call: WaitingCall) -> None:
        self._ready.append(call)
        if self._woken is not None:
            self._woken.set()

    def _stop_run(self, error: BaseException) -> None:
        """End the run with what concerns more than one call.

        That is a `KeyboardInterrupt`, a `SystemExit`, or a mistake in this module.
        """
        self._fatal = self._fatal or error
        if self._group is not None:
            self._group.cancel_scope.cancel()

    def _seconds_since_start(self) -> float:
        """Seconds since the run began."""
        try:
            return anyio.current_time() - self._began
        except RuntimeError:  # the event loop is gone, and this run is being closed
            return math.nan

    # --- before the first call ---------------------------------------------------------------

    def _reject_duplicates(self) -> None:
        """Reject every call that equals an earlier one of this run."""
        written = [(report.tool, written_arguments(report.call)) for report in self._reports]
        counts = Counter(written)
        seen: set[tuple[str, str]] = set()
        for report, as_written in zip(self._reports, written, strict=True):
            # Most calls differ in what the model wrote. Then edits by hooks need not be compared,
            # which costs a validation for each call.
            if counts[as_written] == 1 or isinstance(report.call, ApprovalRequest):
                continue
            call = (report.tool, call_arguments(report.call))
            if call in seen and report.result is None:
                self._settle(report, results.rejected(report.call, DUPLICATE))
            seen.add(call)

    def _make_tickets(self, journal: JournalUse) -> None:
        """Make the ticket of every call that may be run, so that none is refused halfway."""
        for report in self._reports:
            if report.result is None:
                journal.add(report.call, self._make_key(report))

    def _make_key(self, report: CallReport) -> IdempotencyKey:
        call = report.call
        before = 0 if call.origin is not None else self._count_equal_before(report)
        return idempotency_key(call, self._scope, call_arguments(call), before)

    def _ticket_of(self, report: CallReport) -> CallTicket:
        """The ticket of a call, for code that hands it on."""
        if self._journal is not None:
            return self._journal.ticket_of(report)
        call = report.call
        key = self._make_key(report)
        return make_ticket(call, scope=self._scope, key=key, equal_to=call_arguments(call))

    def _count_equal_before(self, report: CallReport) -> int:
        """How many equal calls come before a call that has no origin; counted once for all."""
        if self._equal_before is None:
            self._equal_before = {}
            seen: Counter[tuple[str, str]] = Counter()
            for each in self._reports:
                call = each.tool, call_arguments(each.call)
                self._equal_before[each.call_id] = seen[call]
                seen[call] += 1
        return self._equal_before[report.call_id]

    # --- one call ----------------------------------------------------------------------------

    async def _run_call(self, waiting: WaitingCall) -> None:
        report = self._reports[waiting.index]
        try:
            # A task that was made just before a cancellation runs on to its first await.
            if cancelled_from_outside():
                return
            known = self._unresolved.find(report.call, self._scope)
            if known is not None:
                await self._refuse(report, known)
                return
            runner = self._runners[waiting.index]
            assert runner is not None  # only a call that has a result is without one
            report.started = self._seconds_since_start()
            key = self._make_key(report) if runner.keyed else None
            ticket = self._ticket_of(report) if runner.ticketed else None
            if self._journal is not None and not await self._begin(report, self._journal):
                return
            code = partial(runner.run, report.call, key, ticket)
            attempt = await self._attempt(waiting, report, code, is_async=runner.is_async)
            await absorb_own_cancellation()
            await self._conclude(report, attempt)
        except GeneratorExit:
            raise
        except BaseException as error:
            if isinstance(error, self._cancelled) and cancelled_from_outside():
                raise
            self._stop_run(error)
        finally:
            if waiting.state == "held":
                self._slots.release(waiting, self._loop)

    async def _refuse(self, report: CallReport, known: UnresolvedCall) -> None:
        """Reject a call that equals one of unknown outcome, unless it was begun itself before."""
        if self._journal is not None:
            if not await self._begin(report, self._journal):
                return
            report.started = None
        result = results.rejected(report.call, _undecided_reason(known))
        if self._journal is not None:
            await self._journal.end(report, result)
        self._settle(report, result)

    async def _begin(self, report: CallReport, journal: JournalUse) -> bool:
        """Ask the journal whether a call may be run; settle it with what came of it before."""
        known = await journal.begin(report)
        if known is not None:
            report.started = None
            self._settle(report, known)
            return False
        if cancelled_from_outside():
            report.started = None  # asked too late, and the journal keeps the marker
            return False
        report.started = self._seconds_since_start()
        return True

    async def _attempt(
        self,
        waiting: WaitingCall,
        report: CallReport,
        code: Callable[[], Any],
        *,
        is_async: bool,
    ) -> Attempt:
        """Try a call, and again after a timeout, as often as its tool allows; the last attempt."""
        options = report.call.selector.definition.options
        most = 1 if results.runs_once(report.call) else 1 + options.max_retries
        began = False  # in any attempt
        while True:
            report.attempts += 1
            attempt = Attempt(ran_before=began)
            try:
                if is_async:
                    run = partial(attempt.run, code, options.timeout)
                else:
                    run = partial(
                        attempt.run_in_thread,
                        code,
                        options.timeout,
                        self._thread_limiter(),
                        self._make_handover(waiting, report),
                    )
                if self._around is None:
                    await run()
                else:
                    conclude = partial(self._result_of, report, attempt)
                    await attempt_within(
                        self._around, report.call, report.attempts, attempt, run, conclude
                    )
            except BaseException:
                report.error = attempt.error
                if not (attempt.began or began):
                    report.started, report.attempts = None, 0
                raise
            report.error = attempt.error
            began = began or attempt.began
            if not attempt.timed_out or report.attempts >= most:
                return attempt
            delay = self._backoff.delay(report.attempts)
            log_retry(
                report,
                attempt.error,
                self._seconds_since_start() - (report.started or 0.0),
                delay,
                self._about,
            )
            if attempt.thread_done is not None:
                # Two runs of one call at the same time are what its slot is there to prevent.
                with anyio.move_on_after(self._backoff.thread):
                    await attempt.thread_done.wait()
                if report.thread_running:
                    return attempt
            self._slots.release(waiting, self._loop)
            await anyio.sleep(delay)
            waiting.granted = anyio.Event()
            self._slots.request(self._queue, [waiting])
            await waiting.granted.wait()

    def _make_handover(self, waiting: WaitingCall, report: CallReport) -> SlotHandover:
        slots, loop = self._slots, self._loop

        def leave_to_thread() -> None:
            slots.leave_to_thread(waiting)
            report.thread_running = True

        def take_back() -> None:
            slots.take_back(waiting)
            report.thread_running = False

        def thread_returned(event: anyio.Event) -> None:
            report.thread_running = False
            slots.release(waiting)
            log_return(report, self._about)
            loop.post(event.set)

        return SlotHandover(leave_to_thread, take_back, thread_returned)

    def _thread_limiter(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(math.inf)
        return self._limiter

    # --- the end of a call -------------------------------------------------------------------

    async def _conclude(self, report: CallReport, attempt: Attempt) -> None:
        """Give a call the result of its last attempt, once the journal has it."""
        if attempt.interrupted:
            return  # `ExecutionReport.end` gives a result to all that a cancellation cuts off
        concluded = attempt.concluded
        if concluded is None:
            concluded = self._result_of(report, attempt)
        result, output_error = concluded
        if self._journal is not None:
            await self._journal.end(report, result)
        self._settle(report, result, output_error)

    def _result_of(
        self, report: CallReport, attempt: Attempt
    ) -> tuple[ExecutionResult, str | None]:
        """The result that an attempt comes to; and why its output can't be used, where it can't."""
        call, attempts = report.call, report.attempts
        latency = self._seconds_since_start() - (report.started or 0.0)
        if attempt.returned:
            return results.returned(call, attempt.value, attempts, latency)
        if attempt.timed_out or attempt.error is None:
            error, began = attempt.error, attempt.began or attempt.ran_before
            return results.timed_out(call, attempts, latency, error, began=began), None
        if isinstance(attempt.error, Later) and results.may_promise(call):
            return results.promised(call, attempt.error, attempts, latency)
        if isinstance(attempt.error, Asked) and call.leg is not None:
            return results.asked_result(call, attempt.error, attempts, latency), None
        return results.raised(
            call,
            attempt.error,
            attempts,
            latency,
            began=attempt.began,
            ran_before=attempt.ran_before,
        )

    def _settle(
        self, report: CallReport, result: ExecutionResult, output_error: str | None = None
    ) -> None:
        report.result = result
        if report.started is not None:
            report.finished = report.started + result.latency
        self._note_outcome(report, output_error)

    def _note_outcome(self, report: CallReport, output_error: str | None = None) -> None:
        if report.outcome == "maybe_executed":
            self._unresolved.add(report.call, self._scope)
        log_result(report, output_error, self._about)


def _undecided_reason(known: UnresolvedCall) -> str:
    return (
        f"An equal call ({known.metadata.id}) may have taken effect already; its outcome is "
        "unknown. It is not run again until that is decided."
    )
