"""The executor: runs the pending calls of a round, and gives one result for each."""

from __future__ import annotations

import math
import random as random_module
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from lutumpy.core.items import ToolMetadata
from lutumpy.execution.dispatcher import Dispatcher
from lutumpy.execution.report import CallReport, ExecutionReport
from lutumpy.execution.results import ExecutionResult
from lutumpy.execution.run import Backoff, Run
from lutumpy.execution.slots import Slots
from lutumpy.execution.unresolved import Unresolved, UnresolvedCall
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.selectors import ByTool, Selector

__all__ = ["ToolExecutor", "refuse_running_loop"]


class ToolExecutor:
    """Runs calls with limits, timeouts and retries. One may serve any number of runs, also at the same time.

    Args:
        max_concurrency: How many calls run at once, over all runs.
        limits: How many calls of single tools run at once, by selector.
        deduplicate: Of equal calls of one run, only the first is executed; the others are rejected. Equal means the same tool and
            arguments that are equal as JSON values, with the same edits by hooks.
        scope: The namespace of idempotency keys and of unresolved calls: what tells this conversation from all others, as its id
            in your database. Two conversations that begin with the same messages have the same keys in one scope.
        backoff: Seconds before the second attempt; twice as many before each further one. A random part of up to a half is
            taken off.
        max_backoff: Seconds before any attempt, at most.
        thread_patience: Seconds that a retry waits for a plain function that timed out to return; after that the call has timed out.
        random: Where the randomness of the backoff comes from.

    Raises:
        ValueError: A number is out of range; `TypeError` for what is no number, or no selector.

    Attributes:
        report: The report of the run that was started last; an empty one before the first.
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
    ) -> None:
        size = _whole("max_concurrency", max_concurrency)
        self._slots = Slots(size, _by_tool(limits or {}))
        self._unresolved = Unresolved()
        self._deduplicate = deduplicate
        self._scope = _scope(scope)
        self._backoff = Backoff(
            _seconds("backoff", backoff),
            _seconds("max_backoff", max_backoff),
            _seconds("thread_patience", thread_patience),
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
    ) -> list[ExecutionResult]:
        """Run calls: those of a round, or the pending ones of a plan.

        A call that fails, times out or is refused has an error result, and harms no other. When the caller is cancelled, everything
        that runs is cancelled at once; `report.results(calls)` then has a result for each call, to be committed.

        Args:
            calls: The calls.
            dispatch: What runs them; closed by this.
            scope: In place of the executor's.
            resume: The report of an earlier run of these calls: what that has settled isn't run again. Calls that it has as
                `interrupted` or `not_started` are.
            report: Where to report, in place of a new one; `ExecutionReport()`, for this run only.

        Returns:
            One result for each call, in call order.

        Raises:
            DeclarationError: The dispatcher doesn't cover its toolset, or a call is of another one. Nothing was run.
            ValueError: A call is given twice, or the report was used before. `TypeError` for what is no call. Nothing was run.
            BaseException: A cancellation of the caller, or a tool's `KeyboardInterrupt` or `SystemExit`. Nothing is running any
                more but plain functions in their threads.
        """
        listed = _listed(calls)
        if not isinstance(dispatch, Dispatcher):
            raise TypeError(
                f"run takes a Dispatcher, not {type(dispatch).__name__}; nothing was run"
            )
        dispatch.close()
        runners = [dispatch.runner(call) for call in listed]
        if report is None:
            report = ExecutionReport()
        elif report.used:
            raise ValueError(
                "the report is of another run; make a new ExecutionReport() for each; nothing was run"
            )
        work = Run(
            [_report(call, resume) for call in listed],
            runners,
            report,
            self._slots,
            self._unresolved,
            self._scope if scope is None else _scope(scope),
            self._backoff,
            deduplicate=self._deduplicate,
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
    ) -> list[ExecutionResult]:
        """As `run`, in an event loop of its own (asyncio). Async tools run too, all in this thread.

        Raises:
            RuntimeError: It was called inside a running event loop; nothing was run.
        """
        refuse_running_loop(
            "run_sync was called inside a running event loop: await run() there; nothing was run"
        )
        return anyio.run(
            partial(self.run, calls, dispatch, scope=scope, resume=resume, report=report)
        )

    @property
    def unresolved(self) -> tuple[UnresolvedCall, ...]:
        """The calls that are `maybe_executed`, oldest first. No equal call is run before `resolve` has been called."""
        return self._unresolved.all()

    def resolve(
        self, decided: BaseToolCall | ToolMetadata | UnresolvedCall, *, scope: str | None = None
    ) -> tuple[UnresolvedCall, ...]:
        """Decide that equal calls may be run again, since it is known what became of this one, or it doesn't matter.

        Args:
            decided: An entry of `unresolved`; or a call or its metadata, in which case the arguments count and not the id.
            scope: Of a call or metadata, in place of the executor's.

        Returns:
            What was decided.

        Raises:
            LookupError: Nothing equal is unresolved.
        """
        found = self._unresolved.remove(decided, self._scope if scope is None else _scope(scope))
        if not found:
            metadata = decided if isinstance(decided, ToolMetadata) else decided.metadata
            raise LookupError(f"no call of {metadata.name!r} with these arguments is unresolved")
        return tuple(found)

    def resolve_scope(self, scope: str) -> tuple[UnresolvedCall, ...]:
        """Forget every unresolved call of a scope, as when its conversation is over; gives them."""
        return tuple(self._unresolved.remove_scope(_scope(scope)))

    def __repr__(self) -> str:
        return f"<ToolExecutor, {len(self.unresolved)} unresolved calls>"


def refuse_running_loop(message: str) -> None:
    """Raises `RuntimeError` with this message inside a running event loop, of whichever library."""
    try:
        anyio.lowlevel.current_token()
    except RuntimeError:
        return
    raise RuntimeError(message)


def _listed(calls: Iterable[BaseToolCall]) -> Sequence[BaseToolCall]:
    if not isinstance(calls, Iterable):
        raise TypeError(
            f"run takes calls, as round.calls or plan.pending, not {type(calls).__name__}; nothing was run"
        )
    listed = list(calls)
    seen: set[str] = set()
    for call in listed:
        if not isinstance(call, BaseToolCall):
            raise TypeError(
                f"run takes calls, not {type(call).__name__}; issues are answered by the commit; nothing was run"
            )
        if call.metadata.id in seen:
            raise ValueError(
                f"two calls have the id {call.metadata.id!r}; a run takes each call once; nothing was run"
            )
        seen.add(call.metadata.id)
    return listed


def _report(call: BaseToolCall, resume: ExecutionReport | None) -> CallReport:
    known = resume.find(call) if resume is not None else None
    return known if known is not None and known.settled else CallReport(call)


def _by_tool(limits: ByTool[Selector[Any, Any, Any], int]) -> dict[CompiledTool, int]:
    found: dict[CompiledTool, int] = {}
    for selector, limit in limits.items():
        if not isinstance(selector, Selector):
            raise TypeError(f"limits are by selector, as AppTools.search; not by {selector!r}")
        found[selector.tool] = _whole(f"the limit of {selector.name!r}", limit)
    return found


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be 1 or more, not {value}")
    return value


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name} must be 0 seconds or more, not {value}")
    return float(value)


def _scope(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"scope must be text, not {value!r}")
    return value
