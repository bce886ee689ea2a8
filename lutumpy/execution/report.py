"""What a run is doing and has done: readable while it runs, and after it was cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lutumpy import ToolMetadata
from lutumpy.execution.results import ExecutionResult, Outcome, interrupted, not_started
from lutumpy.hooks import BaseToolCall

__all__ = ["CallReport", "ExecutionReport"]

_REPEATABLE = ("interrupted", "not_started")


class CallReport:
    """One call of a run. Changes while the run goes on.

    Attributes:
        call: The call.
        attempts: How often the tool was started so far.
        started: Seconds from the beginning of the run to the first start; `None` before that.
        finished: Seconds from the beginning of the run to the end; `None` before that.
        result: Its result; `None` while it waits or runs.
        error: The last exception that the tool raised, also in an attempt that timed out.
        thread_running: A plain function that timed out or was cancelled is still running in its
            thread. It keeps its concurrency slot until it returns; what it returns is dropped.
    """

    __slots__ = ("attempts", "call", "error", "finished", "result", "started", "thread_running")

    def __init__(self, call: BaseToolCall) -> None:
        self.call: BaseToolCall = call
        self.attempts: int = 0
        self.started: float | None = None
        self.finished: float | None = None
        self.result: ExecutionResult | None = None
        self.error: BaseException | None = None
        self.thread_running: bool = False

    @property
    def metadata(self) -> ToolMetadata:
        """Call id, tool name and raw arguments."""
        return self.call.metadata

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.call.metadata.id

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.call.metadata.name

    @property
    def outcome(self) -> Outcome | None:
        """What came of it; `None` while it waits or runs."""
        return None if self.result is None else self.result.outcome

    @property
    def latency(self) -> float | None:
        """Seconds from the first start to the end; `None` before that."""
        return None if self.result is None else self.result.latency

    @property
    def settled(self) -> bool:
        """Whether it has a final result: not one that says it may be run again, or never began."""
        return self.result is not None and self.result.outcome not in _REPEATABLE

    def __repr__(self) -> str:
        state = self.outcome or ("waiting" if self.started is None else "running")
        thread = ", thread still running" if self.thread_running else ""
        return f"<CallReport {self.tool} {self.call_id}: {state}, {self.attempts} attempts{thread}>"


class ExecutionReport:
    """What became of the calls of one run; `ToolExecutor.report` is that of the latest run.

    Make one yourself, and pass it to `run(..., report=...)`, where several runs go on at once.

    Attributes:
        active: Whether the run is still going on.
    """

    __slots__ = ("_by_id", "_calls", "active")

    def __init__(self) -> None:
        self._calls: tuple[CallReport, ...] = ()
        self._by_id: dict[str, CallReport] | None = None
        self.active: bool = False

    @property
    def calls(self) -> tuple[CallReport, ...]:
        """Every call of the run, in call order; none before it has begun."""
        return self._calls

    @property
    def used(self) -> bool:
        """Whether a run has used this report."""
        return self._by_id is not None

    def __getitem__(self, call_id: str) -> CallReport:
        """The call with this id; raises `KeyError`."""
        return (self._by_id or {})[call_id]

    def still_running(self) -> tuple[CallReport, ...]:
        """The calls whose plain function still runs in its thread, with nobody waiting for it."""
        return tuple([report for report in self._calls if report.thread_running])

    def results(self, calls: Iterable[BaseToolCall]) -> list[ExecutionResult]:
        """One result for each of `calls`, in their order, for a commit after the run was cancelled.

        Calls that had finished have their result. The others have an error result that tells the
        model whether they may have run: `interrupted` (`maybe_executed` for a tool with the effect
        `once`) or `not_started`, also for calls that were not part of the run.

        Raises:
            RuntimeError: The run is still going on.
        """
        if self.active:
            raise RuntimeError(
                "the run is still going on; its results are there once it has ended "
                "or was cancelled"
            )
        results: list[ExecutionResult] = []
        for call in calls:
            known = self.find(call)
            result = None if known is None else known.result
            results.append(not_started(call) if result is None else result)
        return results

    def results_so_far(self, calls: Iterable[BaseToolCall]) -> list[ExecutionResult]:
        """As `results`, for a run that nobody can wait for; it may still be going on.

        Calls without a result count as interrupted: they may be running.
        """
        results: list[ExecutionResult] = []
        for call in calls:
            known = self.find(call)
            result = None if known is None else known.result
            results.append(interrupted(call, 1, 0.0, None) if result is None else result)
        return results

    def find(self, call: BaseToolCall) -> CallReport | None:
        """The report of this very call, with the same arguments; `None` where there is none."""
        known = (self._by_id or {}).get(call.metadata.id)
        return known if known is not None and known.metadata == call.metadata else None

    def begin(self, calls: Sequence[CallReport]) -> None:
        """For the executor: the run begins."""
        self._calls = tuple(calls)
        self._by_id = {report.call_id: report for report in calls}
        self.active = True

    def end(self, now: float) -> list[CallReport]:
        """For the executor: the run has ended, perhaps early; gives the calls that were cut off.

        Args:
            now: Seconds since the beginning of the run.
        """
        cut: list[CallReport] = []
        for report in self._calls:
            if report.result is not None:
                continue
            if report.started is None:
                report.result = not_started(report.call)
                continue
            report.finished = now
            report.result = interrupted(
                report.call, report.attempts, now - report.started, report.error
            )
            cut.append(report)
        self.active = False
        return cut

    def __repr__(self) -> str:
        done = sum([1 for report in self._calls if report.result is not None])
        if self.active:
            state = "active"
        else:
            state = "ended" if self.used else "unused"
        return f"<ExecutionReport {state}: {done} of {len(self._calls)} done>"
