"""The executor: runs the pending calls of a round, and gives one result for each."""

from __future__ import annotations

import math
import random as random_module
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from lutumpy import ApprovalRequest, OpenCall, Selector, ToolMetadata
from lutumpy.execution.around import Around, nest_around
from lutumpy.execution.dispatcher import Dispatcher, Runner
from lutumpy.execution.journal import CallJournal
from lutumpy.execution.report import CallReport, ExecutionReport
from lutumpy.execution.results import ExecutionResult, rejected, runs_once
from lutumpy.execution.run import Backoff, Run
from lutumpy.execution.slots import Slots
from lutumpy.execution.unresolved import Unresolved, UnresolvedCall
from lutumpy.hooks import BaseToolCall
from lutumpy.tools import ByTool, still_running_reason, tool_key, written_arguments, written_text

__all__ = ["ToolExecutor", "refuse_running_loop"]


class ToolExecutor:
    """Runs calls with limits, timeouts and retries; also for several runs at the same time.

    Args:
        max_concurrency: How many calls run at once, over all runs.
        limits: How many calls of single tools run at once, by selector. The limit of a tool that
            fills a `dynamic()` place holds for the tool of its name in each new set.
        deduplicate: Of equal calls of one run, only the first is executed; the others are
            rejected. Equal means the same tool and arguments that are equal as JSON values, with
            the same edits by hooks.
        scope: The namespace of idempotency keys and of unresolved calls: what tells this
            conversation from all others, such as its id in your database. In one scope, two
            conversations that begin with the same messages have the same keys.
        backoff: Seconds before the second attempt; twice as many before each further one, minus a
            random part of up to a half.
        max_backoff: Seconds before any attempt, at most.
        thread_patience: When a plain function has timed out, the seconds that a retry waits for it
            to return; after that the call has timed out.
        random: Source of the randomness of the backoff.
        journal: Told before each call starts and after it has ended; it may know what came of a
            call before. See `CallJournal`.
        unresolved: Calls of unknown outcome from an earlier process, as its `unresolved` had them:
            no equal call is run until one is resolved.
        around: Given a call and the number of the attempt from 1, before each attempt, once the
            call has its slot; returns an async context manager, in which the attempt runs, or
            `None` for none. It is
            the place for rate limits, logs and traces of single calls. Waiting there doesn't count
            for the tool's timeout. If entering it raises, the tool isn't started, and the call has
            failed. What entering it gives is called with the `ExecutionResult` of the attempt,
            where it can be called; and leaving it shows it what the tool raised. Nothing that it
            does then changes the result.

    Raises:
        ValueError: A number is out of range; `TypeError` for what isn't a number or a selector.

    Attributes:
        report: The report of the latest run; an empty one before the first.
        journal: What `journal=` was given.
        around: What `around=` was given.
    """

    def __init__(
        self,
        *,
        max_concurrency: int = 5,
        limits: ByTool[Selector[Any, Any, Any], int] | None = None,
        deduplicate: bool = False,
        scope: str = "",
        backoff: float = 0.2,
        max_backoff: float = 10.0,
        thread_patience: float = 60.0,
        random: random_module.Random | None = None,
        journal: CallJournal | None = None,
        unresolved: Iterable[UnresolvedCall] = (),
        around: Around | None = None,
    ) -> None:
        size = _check_count("max_concurrency", max_concurrency)
        self._slots = Slots(size, _limits_by_tool(limits or {}))
        self._unresolved = Unresolved(unresolved)
        self.journal: CallJournal | None = journal
        if around is not None and not callable(around):
            raise TypeError(f"around= takes a function, not {type(around).__name__}")
        self.around: Around | None = around
        self._deduplicate = deduplicate
        self._scope = _check_scope(scope)
        self._backoff = Backoff(
            _check_seconds("backoff", backoff),
            _check_seconds("max_backoff", max_backoff),
            _check_seconds("thread_patience", thread_patience),
            random_module.Random() if random is None else random,
        )
        self.report: ExecutionReport = ExecutionReport()

    async def run(
        self,
        calls: Iterable[BaseToolCall],
        dispatch: Dispatcher[Any],
        *,
        scope: str | None = None,
        resume: ExecutionReport | None = None,
        report: ExecutionReport | None = None,
        journal: CallJournal | None = None,
        around: Around | None = None,
        about: Mapping[str, Any] | None = None,
        open_calls: Iterable[OpenCall] = (),
    ) -> list[ExecutionResult]:
        """Run calls: those of a round, or the pending ones of a plan.

        A call that fails, times out or is refused has an error result, and doesn't affect the
        others. When the caller is cancelled, everything that runs is cancelled at once;
        `report.results(calls)` then has a result for each call, to be committed. A request for
        approval among them is rejected: nobody has approved it, and there is nothing to run.

        Args:
            calls: The calls.
            dispatch: What runs them; closed by this.
            scope: In place of the executor's.
            resume: The report of an earlier run of these calls: only calls that were `interrupted`
                or `not_started` there are run again.
            report: A new `ExecutionReport()` for this run, in place of one made here.
            journal: In place of the executor's.
            around: As the executor's, and outside of it.
            about: Further fields of the log records of these calls, as their round.
            open_calls: The calls of the conversation whose results are still to come
                (`session.open_calls`): of a `once` tool no equal call is run. With a journal that
                knows them they aren't needed.

        Returns:
            One result for each call, in call order.

        Raises:
            DeclarationError: The dispatcher doesn't cover its toolset, or a call is of another
                toolset. Nothing was run.
            ValueError: A call appears twice, or the report was used before; or there is a journal,
                and the input of a call doesn't survive JSON. `TypeError` for what isn't a call.
                Nothing was run.
            BaseException: A cancellation of the caller, or a tool's `KeyboardInterrupt` or
                `SystemExit`. Only plain functions may still be running, in their threads.
            Exception: What the journal raised, such as `TakenOverError`. No further call was
                begun.
        """
        listed = _check_calls(calls)
        if not isinstance(dispatch, Dispatcher):
            raise TypeError(
                f"run takes a Dispatcher, not {type(dispatch).__name__}; nothing was run"
            )
        # Everything is checked before anything runs: a run is never refused halfway.
        dispatch.close()
        runners = [_runner_of(call, dispatch) for call in listed]
        if report is None:
            report = ExecutionReport()
        elif report.used:
            raise ValueError(
                "the report is of another run; make a new ExecutionReport() for each; "
                "nothing was run"
            )
        reports = [_report_of(call, resume) for call in listed]
        if open_calls:
            _refuse_open(reports, open_calls)
        work = Run(
            reports,
            runners,
            report,
            self._slots,
            self._unresolved,
            self._scope if scope is None else _check_scope(scope),
            self._backoff,
            deduplicate=self._deduplicate,
            journal=self.journal if journal is None else journal,
            around=nest_around(around, self.around),
            about=about,
        )
        self.report = report
        return await work.execute()

    def run_sync(
        self,
        calls: Iterable[BaseToolCall],
        dispatch: Dispatcher[Any],
        *,
        scope: str | None = None,
        resume: ExecutionReport | None = None,
        report: ExecutionReport | None = None,
        journal: CallJournal | None = None,
        around: Around | None = None,
        about: Mapping[str, Any] | None = None,
        open_calls: Iterable[OpenCall] = (),
    ) -> list[ExecutionResult]:
        """As `run`, in an event loop of its own (asyncio), in this thread; async tools run too.

        Raises:
            RuntimeError: It was called inside a running event loop; nothing was run.
        """
        refuse_running_loop(
            "run_sync was called inside a running event loop: await run() there; nothing was run"
        )
        return anyio.run(
            partial(
                self.run,
                calls,
                dispatch,
                scope=scope,
                resume=resume,
                report=report,
                journal=journal,
                around=around,
                about=about,
                open_calls=open_calls,
            )
        )

    @property
    def unresolved(self) -> tuple[UnresolvedCall, ...]:
        """The calls that are `maybe_executed`, oldest first.

        No equal call is run before `resolve` has been called.
        """
        return self._unresolved.all()

    def resolve(
        self, decided: BaseToolCall | ToolMetadata | UnresolvedCall, *, scope: str | None = None
    ) -> tuple[UnresolvedCall, ...]:
        """Decide that equal calls may be run again.

        That is for when it is known what became of this one, or it doesn't matter.

        Args:
            decided: An entry of `unresolved`; or a call or its metadata, in which case the
                arguments are compared and not the id.
            scope: Of a call or metadata, in place of the executor's.

        Returns:
            What was decided.

        Raises:
            LookupError: Nothing equal is unresolved.
        """
        found = self._unresolved.remove(
            decided, self._scope if scope is None else _check_scope(scope)
        )
        if not found:
            metadata = decided if isinstance(decided, ToolMetadata) else decided.metadata
            raise LookupError(f"no call of {metadata.name!r} with these arguments is unresolved")
        return tuple(found)

    def resolve_scope(self, scope: str) -> tuple[UnresolvedCall, ...]:
        """Forget every unresolved call of a scope whose conversation is over; gives them."""
        return tuple(self._unresolved.remove_scope(_check_scope(scope)))

    def __repr__(self) -> str:
        return f"<ToolExecutor, {len(self.unresolved)} unresolved calls>"


def refuse_running_loop(message: str) -> None:
    """Raise `RuntimeError` with this message inside a running event loop of any library.

    For sync functions that run an event loop of their own, as `ToolExecutor.run_sync` does.
    """
    try:
        anyio.lowlevel.current_token()
    except RuntimeError:
        return
    raise RuntimeError(message)


def _check_calls(calls: Iterable[BaseToolCall]) -> Sequence[BaseToolCall]:
    if not isinstance(calls, Iterable):
        raise TypeError(
            "run takes calls, as round.calls or plan.pending, "
            f"not {type(calls).__name__}; nothing was run"
        )
    listed = list(calls)
    seen: set[str] = set()
    for call in listed:
        if not isinstance(call, BaseToolCall):
            raise TypeError(
                f"run takes calls, not {type(call).__name__}; "
                "issues are answered by the commit; nothing was run"
            )
        if call.metadata.id in seen:
            raise ValueError(
                f"two calls have the id {call.metadata.id!r}; "
                "a run takes each call once; nothing was run"
            )
        seen.add(call.metadata.id)
    return listed


def _runner_of(call: BaseToolCall, dispatch: Dispatcher[Any]) -> Runner | None:
    return None if isinstance(call, ApprovalRequest) else dispatch.runner(call)


def _report_of(call: BaseToolCall, resume: ExecutionReport | None) -> CallReport:
    # A report of an earlier run is used again where it has the call's final result.
    known = resume.find(call) if resume is not None else None
    report = known if known is not None and known.settled else CallReport(call)
    if isinstance(call, ApprovalRequest) and report.result is None:
        report.result = rejected(call, call.complete(False).rejection_reason or "")
    return report


def _refuse_open(reports: Sequence[CallReport], open_calls: Iterable[OpenCall]) -> None:
    """Reject what equals an open call of a `once` tool (rule LR13)."""
    by_text: dict[tuple[str, str], str] = {}
    for each in open_calls:
        by_text.setdefault((each.tool, written_text(each.promised.metadata)), each.call_id)
    for report in reports:
        call = report.call
        if report.result is None and runs_once(call):
            open_id = by_text.get((call.metadata.name, written_arguments(call)))
            if open_id is not None:
                report.result = rejected(call, still_running_reason(open_id))


def _limits_by_tool(limits: ByTool[Selector[Any, Any, Any], int]) -> dict[Hashable, int]:
    found: dict[Hashable, int] = {}
    for selector, limit in limits.items():
        if not isinstance(selector, Selector):
            raise TypeError(f"limits are by selector, as AppTools.search; not by {selector!r}")
        found[tool_key(selector)] = _check_count(f"the limit of {selector.name!r}", limit)
    return found


def _check_count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be 1 or more, not {value}")
    return value


def _check_seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name} must be 0 seconds or more, not {value}")
    return float(value)


def _check_scope(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"scope must be text, not {value!r}")
    return value
