"""The loop itself, without I/O: a generator that yields what has to be awaited."""

# What is hard here is not the order of the steps but the ways out. Each step may raise, be
# cancelled or be interrupted, and whatever happens the session must be sendable afterwards and
# nothing that a tool did may be lost. So each part of a round has one rule for its way out:
#
#     step                      what has run    on an error, the round is
#     ------------------------  --------------  -------------------------------------------------
#     collect the answer        nothing         not there yet; the turn cleans up after itself
#     decoded, hooks, planned   nothing         discarded
#     execute                   some calls      committed: finished calls with their results as
#                                               plain result hooks leave them, others interrupted
#     review, executed          every call      committed: reviewed results, others withheld
#     commit                    every call      discarded, its results in UncommittedRoundError;
#                                               after an interrupt committed
#     committed                 every call      in the session already
#
# A commit on the way out of an error never replaces that error (`InSession.cut_off`).
#
# The steps are written once, as a generator, and `effects` has the ways to carry them out: with
# this many ways out, an async loop and a copied sync twin would not stay the same. What is in the
# right column is an effect as well: a loop whose rounds outlive the process leaves such a round
# open in its store, where the next process goes on with it.

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

from lutumpy import (
    ApprovalRequest,
    Finished,
    HookError,
    Model,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolRequirement,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    TurnResult,
    Usage,
)
from lutumpy.errors import BudgetExceeded
from lutumpy.execution import ExecutionReport, ToolExecutor
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.counts import LoopCounts, failed_calls, failure_key
from lutumpy.loops.effects import Effects, OpenRound, PendingCalls
from lutumpy.loops.endings import last_text
from lutumpy.loops.progress import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.loops.result import LoopResult, StoppedBy, stop_reason
from lutumpy.loops.reviews import has_words_of_the_tool, take_content, withhold
from lutumpy.loops.settings import LoopSettings
from lutumpy.models import ToolTurn

__all__ = ["Loop"]

logger: logging.Logger = logging.getLogger("lutumpy.loops")

Descriptions: TypeAlias = Mapping[Any, str]


class Loop:
    """One run of the loop: `steps` to be driven once.

    For who builds a loop of another kind: the order of the steps and the limits are here, and the
    effects say what each step does. `AsyncEffects` are those of `run_tools`.

    Args:
        session: The conversation.
        llm: The model.
        effects: How the steps are carried out.
        settings: What the loop is asked to do.
        on_progress: Is given each step, by `Effects.notify`.
        counts: What was counted before, where this loop goes on with what another one began.
    """

    def __init__(
        self,
        session: Session,
        llm: Model,
        effects: Effects,
        settings: LoopSettings,
        on_progress: Callable[[LoopEvent[Any]], Any] | None,
        counts: LoopCounts | None = None,
    ) -> None:
        self.counts: LoopCounts = LoopCounts() if counts is None else counts
        """What limits are held against, after the last commit."""
        self._session = session
        self._cost_before = session.usage
        self._llm = llm
        self._effects = effects
        self._settings = settings
        described = settings.describe
        self._descriptions: Descriptions = dict(described.items() if described else ())
        executor = settings.executor
        self._executor = ToolExecutor() if executor is None else executor
        self._registry = settings.hooks if isinstance(settings.hooks, ToolHooks) else None
        self._on_progress = on_progress
        # The last turn, and what it was made of.
        self._turn: ToolTurn[Any, Any] | None = None
        self._turn_parts: tuple[Any, ...] | None = None
        # Whether calls may be open: then there may be nothing to answer.
        self._may_wait: bool = bool(session.transcript.open_calls)

    @property
    def rounds(self) -> int:
        """How many rounds were committed."""
        return self.counts.rounds

    @property
    def usage(self) -> Usage:
        """Tokens so far: all that the session has cost since this loop began."""
        return self._session.usage - self._cost_before

    def steps(self, *, is_open: bool = False) -> Generator[Any, Any, LoopResult[Any]]:
        """Make turns until one is finished or a limit is reached; yields what has to be awaited.

        Args:
            is_open: A round that another loop began is open, and the effects have its answer: it is
                finished before a limit is looked at.
        """
        if (self.rounds or self.counts.tokens > 0) and not is_open:
            # Another loop began this: it may have ended at the limit without having said so, or
            # have paid for requests that failed.
            limit = self._limit_reached()
            if limit is not None:
                text = last_text(self._session) if self.rounds else ""
                return (yield from self._end_at_limit(text, limit))
        while True:
            if self._may_wait and not is_open and self._session.transcript.waits:
                return (yield from self._end_at_limit(last_text(self._session), "open"))
            turn = yield from self._next_turn()
            number = self.rounds + 1
            if not is_open:
                yield from self._report_progress(RequestStarted(number, self.usage))
            outcome: NeedsTools[Any] | ToolRoundPlan[Any] | Finished[Any]
            try:
                outcome = yield self._effects.collect(turn, number)
            except BudgetExceeded:
                text = last_text(self._session) if self.rounds else ""
                return (yield from self._end_at_limit(text, "budget"))
            is_open = False
            if isinstance(outcome, Finished):
                if self._asks_again(outcome.result):
                    yield from self._ask_again(outcome)
                    continue
                yield from self._effects.finish(outcome, self._session)
                asked = self._settings.output is not None
                return (
                    yield from self._end_loop(
                        LoopResult.of_answer(
                            outcome.result, self.rounds, self.usage, asked_for_value=asked
                        )
                    )
                )
            opened = outcome.round if isinstance(outcome, NeedsTools) else outcome
            yield from self._carry_out_round(opened)
            if self._settings.telemetry is not None:
                self._settings.telemetry.committed(number, len(self._session.transcript))
            # Not `self.rounds`: with a message of the user, the commit may have begun a new task.
            yield from self._report_progress(RoundCommitted(number, self.usage))
            limit = self._limit_reached()
            if limit is not None:
                return (yield from self._end_at_limit(opened.text, limit))

    def _next_turn(self) -> Generator[Any, Any, ToolTurn[Any, Any]]:
        """The turn of the next request, not sent yet; raises `InvalidToolConstraints`."""
        descriptions = self._descriptions
        if self._registry is not None:
            from_hooks = yield self._effects.describe(self._registry)
            descriptions = {**from_hooks, **descriptions}
        require = None if self.rounds else self._settings.require
        available = self._settings.available
        if callable(available):
            available = available(self._session)
        if self._settings.budget is not None:
            toolset = self._settings.tools.__view__().toolset
            available = self._settings.budget.available(toolset, available)
        # The same turn again has the same offer, whose tool list is rendered already.
        parts = (descriptions, require, available)
        if self._turn is None or self._turn_parts != parts:
            self._turn = self._make_turn(descriptions, require, available)
            self._turn_parts = parts
        return self._turn

    def _make_turn(
        self,
        descriptions: Descriptions,
        require: ToolRequirement[Any] | None,
        available: ToolAvailability[Any] | None,
    ) -> ToolTurn[Any, Any]:
        settings = self._settings
        if settings.output is None:
            make: Callable[..., Any] = self._session.text_turn
        else:
            make = partial(self._session.structured_turn, value=settings.output)
        turn: ToolTurn[Any, Any] = make(
            self._llm,
            tools=settings.tools,
            available=available,
            require=require,
            describe=descriptions,
            parallel=settings.parallel,
            provider=settings.provider,
            prefix_stable=settings.prefix_stable,
            temperature=settings.temperature,
            max_output_tokens=settings.max_output_tokens,
            extra=settings.extra,
            effort=settings.effort,
            on_prefix_change=settings.on_prefix_change,
        )
        return turn if settings.late == "go_on" else turn.waiting()

    def _asks_again(self, result: TurnResult[Any]) -> bool:
        """Whether the model gets another try to write a value."""
        settings = self._settings
        return (
            settings.output is not None
            and stop_reason(result, asked_for_value=True) == "no_value"
            and self.counts.value_retries < settings.value_retries
            and self._limit_reached() is None
        )

    def _ask_again(self, outcome: Finished[Any]) -> Generator[Any, Any, None]:
        """Keep an answer without a value, and say what is wrong with it as the user's message."""
        message = (
            f"The answer could not be used: {outcome.result.value_error}. Answer again, in the "
            "form that was asked for."
        )
        counts = replace(self.counts, value_retries=self.counts.value_retries + 1)
        self.counts = yield from self._effects.retry(outcome, self._session, message, counts)

    def _limit_reached(self) -> StoppedBy | None:
        settings = self._settings
        most_failures = max(self.counts.failures.values(), default=0)
        if settings.max_repeats is not None and most_failures >= settings.max_repeats:
            return "repeat"
        budget = settings.token_budget
        if settings.budget is not None and settings.budget.used_up:
            return "budget"
        if budget is not None and self.counts.tokens + self.usage.total_tokens >= budget:
            return "budget"
        return "round_limit" if self.rounds >= settings.max_rounds else None

    def _end_at_limit(self, text: str, limit: StoppedBy) -> Generator[Any, Any, LoopResult[Any]]:
        asked = self._settings.output is not None
        ended = LoopResult.without_answer(
            text, self.rounds, self.usage, limit, asked_for_value=asked
        )
        return (yield from self._end_loop(ended))

    def _end_loop(self, ended: LoopResult[Any]) -> Generator[Any, Any, LoopResult[Any]]:
        if self._may_wait:
            ended = ended.with_open_calls(self._session.open_calls)
        yield from self._report_progress(LoopEnded(ended.rounds, ended.usage, ended))
        return ended

    def _report_progress(self, event: LoopEvent[Any]) -> Generator[Any, Any, None]:
        if self._on_progress is not None:
            yield self._effects.notify(self._on_progress, event)

    # --- one round ---------------------------------------------------------------------------

    def _carry_out_round(self, opened: OpenRound) -> Generator[Any, Any, None]:
        """Plan, execute, review, commit; whatever happens, the round is not open afterwards."""
        plan, planned, answers = yield from self._plan_round(opened)
        report, reviewed = ExecutionReport(), list[ToolResult]()
        results: Sequence[ToolResult] | None = None
        # One block for all that follows once a tool may have run: an interrupt comes between any
        # two lines, also in the commit, and what ran isn't lost then either.
        try:
            results = yield from self._execute_calls(plan, planned.pending, report)
            yield from self._review_results(results, reviewed)
            yield from self._report_progress(
                RoundExecuted(self.rounds + 1, self.usage, tuple(reviewed))
            )
            for result in results:
                if result.status == "promised":
                    self._may_wait = True
            counts = self._count_round(plan, planned, [*answers, *results])
            committed = [*answers, *reviewed]
            self.counts = yield from self._effects.commit(plan, self._session, committed, counts)
        except BaseException:
            self._effects.cut_off(
                plan,
                self._session,
                lambda: [
                    *answers,
                    *self._known_results(results, reviewed, report, planned.pending),
                ],
            )
            raise

    def _plan_round(
        self, opened: OpenRound
    ) -> Generator[Any, Any, tuple[OpenRound, RoundPlanned[Any], Sequence[ToolResult]]]:
        """Have the hooks decide, if that isn't done; without hooks, the round is its own plan.

        Returns:
            The plan; what it says, as the event that was reported; and the answers to the requests
            for approval that no hook has decided.
        """
        plan = opened
        try:
            if isinstance(opened, ToolRound):
                plan = yield from self._decide_calls(opened)
            plan = yield from self._decide_held(plan)
            if self._settings.telemetry is not None:
                self._settings.telemetry.decisions(plan)
            _refuse_held(plan)
            if isinstance(plan, ToolRoundPlan):
                calls = (plan.pending, plan.handled, plan.rejected)
            else:
                calls = (plan.calls, (), ())
            planned = RoundPlanned(
                self.rounds + 1, self.usage, *calls, plan.approvals, issues=plan.issues
            )
            yield from self._report_progress(planned)
            answers = yield from self._answer_requests(plan.approvals)
        except BaseException as error:
            # Nothing has run, so nothing is lost.
            self._effects.cut_off(plan, self._session, None)
            if isinstance(error, HookError):
                message = str(error).replace(
                    "the round is still open", "the loop has discarded the round"
                )
                raise HookError(message) from error.__cause__
            raise
        return plan, planned, answers

    def _decide_calls(self, decoded: ToolRound[Any]) -> Generator[Any, Any, OpenRound]:
        number, hooks, turn = self.rounds + 1, self._settings.hooks, decoded.turn
        yield from self._report_progress(
            RoundDecoded(
                number,
                self.usage,
                decoded.calls,
                decoded.issues,
                turn.text,
                decoded.approvals,
                turn,
            )
        )
        if hooks is None:
            return decoded
        plan: OpenRound = yield self._effects.decide(decoded, hooks, number)
        return plan

    def _decide_held(self, plan: OpenRound) -> Generator[Any, Any, OpenRound]:
        """Have somebody decide the calls that hooks hold, if there is anybody to ask."""
        decide_held = self._settings.decide_held
        held: Sequence[BaseToolCall] = getattr(plan, "held", ())
        if decide_held is None or not held:
            return plan
        decisions: dict[str, Any] = {}
        for call in held:
            decisions[call.metadata.id] = yield self._effects.ask(
                decide_held, cast("Any", call), self.rounds + 1
            )
        decided: OpenRound = cast("ToolRoundPlan[Any]", plan).decide(
            decisions, by=_name_of(decide_held)
        )
        return decided

    def _answer_requests(
        self, requests: Sequence[ApprovalRequest]
    ) -> Generator[Any, Any, list[ToolResult]]:
        """Approve or reject what no hook has decided; without anybody to ask, reject it."""
        approve = self._settings.approve
        answers: list[ToolResult] = []
        for request in requests:
            answer: Any = False
            if approve is not None:
                answer = yield self._effects.ask(approve, request, self.rounds + 1)
            # A value that only counts as true approves nothing: it may be a mistake.
            if not isinstance(answer, bool):
                kind = type(answer).__name__
                raise TypeError(f"approve= gives True or False, not {kind}; nothing was approved")
            answers.append(request.complete(answer))
        return answers

    def _execute_calls(
        self, plan: OpenRound, pending: Sequence[BaseToolCall], report: ExecutionReport
    ) -> Generator[Any, Any, Sequence[ToolResult]]:
        if not pending:
            return ()
        settings = self._settings
        to_run = PendingCalls(
            self.rounds + 1,
            plan,
            pending,
            self._executor,
            settings.dispatcher,
            settings.scope,
            report,
            settings.around,
            {"round": self.rounds + 1, "model": plan.model},
            self._session.open_calls if self._may_wait else (),
        )
        results: Sequence[ToolResult] = yield self._effects.execute(to_run)
        return results

    def _known_results(
        self,
        results: Sequence[ToolResult] | None,
        reviewed: Sequence[ToolResult],
        report: ExecutionReport,
        pending: Sequence[BaseToolCall],
    ) -> list[ToolResult]:
        """What is known of the calls of a round that is cut off, one result for each.

        Args:
            results: The results; `None` where the calls were cut off. What the report has of those
                is reviewed by plain result hooks.
            reviewed: The first of them, as the result hooks left them; others are withheld.
            report: What the executor noted.
            pending: The calls.
        """
        if results is None:
            # A run that could not even be waited for is still active: after a second interrupt, or
            # when a coroutine is closed.
            known = report.results_so_far(pending) if report.active else report.results(pending)
            return [self._review_now(result) for result in known]
        rest = results[len(reviewed) :]
        if self._registry is not None:
            rest = [withhold(result) for result in rest]
        return [*reviewed, *rest]

    def _review_results(
        self, results: Sequence[ToolResult], reviewed: list[ToolResult]
    ) -> Generator[Any, Any, None]:
        """Add every result to `reviewed`, as the result hooks leave it."""
        if self._registry is None:
            reviewed += results
        elif results:
            yield self._effects.review(self._registry, results, reviewed, self.rounds + 1)

    def _review_now(self, result: ToolResult) -> ToolResult:
        """The result as plain result hooks leave it.

        Withheld where a hook is async or fails: a loop that is being cancelled can't await.
        """
        if self._registry is None or not has_words_of_the_tool(result):
            return result
        try:
            return take_content(result, self._registry.review_sync([result])[0])
        except BaseException as error:
            metadata = result.metadata
            logger.warning("%s of %s: withheld: %s", metadata.id, metadata.name, error)
            return withhold(result)

    def _count_round(
        self, plan: OpenRound, planned: RoundPlanned[Any], results: Sequence[ToolResult]
    ) -> LoopCounts:
        """What is counted once this round is committed; its equal calls count once."""
        counts = self.counts
        failed = [
            *failed_calls(results),
            *[rejected.metadata for rejected in planned.rejected],
            *[issue.metadata for issue in plan.issues],
        ]
        failures = counts.failures
        if failed:
            failures = {**failures}
            # Each once, and in the order of the answer, which counts keep where they are stored.
            for key in dict.fromkeys([failure_key(metadata) for metadata in failed]):
                failures[key] = failures.get(key, 0) + 1
        return LoopCounts(counts.rounds + 1, counts.tokens, failures, counts.value_retries)


def _name_of(function: Any) -> str:
    """How the audit of a plan names who decided."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _refuse_held(plan: OpenRound) -> None:
    """Raise `HookError` for a plan that waits for a person, which a loop in memory can't do."""
    held: Sequence[BaseToolCall] = getattr(plan, "held", ())
    if held:
        names = ", ".join([f"{call.metadata.name} ({call.metadata.id})" for call in held])
        raise HookError(
            f"a hook holds {names} for a person, and this loop can't wait for one: give it "
            "decide_held=, or take a DurableLoop of lutumpy.durable, which can; nothing was run, "
            "the round is still open"
        )
