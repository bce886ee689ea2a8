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
#     commit                    every call      discarded, its results in UncommittedRoundError
#     committed                 every call      in the session already
#
# A commit on the way out of an error never replaces that error (`_commit_during_error`).
#
# The steps are written once, as a generator, and `effects` has the two ways to carry them out:
# with this many ways out, an async loop and a copied sync twin would not stay the same.

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from lutumpy import (
    ApprovalRequest,
    Finished,
    HookError,
    Model,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolMetadata,
    ToolRequirement,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    TurnResult,
    Usage,
)
from lutumpy.execution import ExecutionReport, ExecutionResult, ToolExecutor
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.effects import Effects
from lutumpy.loops.progress import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.loops.result import LoopResult, StoppedBy, UncommittedRoundError
from lutumpy.loops.settings import LoopSettings
from lutumpy.models import ToolTurn
from lutumpy.plain import json_values

__all__ = ["Loop"]

logger: logging.Logger = logging.getLogger("lutumpy.loops")

OpenRound: TypeAlias = "ToolRound[Any] | ToolRoundPlan[Any]"
Descriptions: TypeAlias = Mapping[Any, str]
# The tool, and its arguments as a JSON value.
FailureKey: TypeAlias = "tuple[str, str]"

WITHHELD = (
    "The tool ran, and what it did stands, but what it said is withheld: it could not be reviewed."
)

# What an answer without calls stops the loop by. Every other finish reason is an answer, but for
# `unknown`, which `_stop_reason` looks at.
_STOPPED_BY_FINISH: Mapping[str, StoppedBy] = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "length": "length",
    "paused": "paused",
}


class Loop:
    """One run of the loop: `steps` to be driven once.

    Attributes:
        rounds: How many rounds were committed.
        usage: Tokens so far: all that the session has cost since the loop began.
    """

    def __init__(
        self,
        session: Session,
        llm: Model,
        effects: Effects,
        settings: LoopSettings,
        on_progress: Callable[[LoopEvent[Any]], Any] | None,
    ) -> None:
        self.rounds: int = 0
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
        # In how many rounds a call of this tool with these arguments went wrong.
        self._failures: dict[FailureKey, int] = {}
        # The last turn, and what it was made of.
        self._turn: ToolTurn[Any, None] | None = None
        self._turn_made_of: tuple[Any, ...] | None = None

    @property
    def usage(self) -> Usage:
        return self._session.usage - self._cost_before

    def steps(self) -> Generator[Any, Any, LoopResult]:
        """Make turns until one is finished or a limit is reached; yields what has to be awaited."""
        while True:
            turn = yield from self._next_turn()
            yield from self._report_progress(RequestStarted(self.rounds + 1, self.usage))
            outcome: NeedsTools[Any] | Finished[None] = yield self._effects.collect(turn)
            if isinstance(outcome, Finished):
                result = outcome.result
                return (yield from self._end_loop(result.text, _stop_reason(result), result))
            text = outcome.round.text
            yield from self._carry_out_round(outcome.round)
            yield from self._report_progress(RoundCommitted(self.rounds, self.usage))
            limit = self._limit_reached()
            if limit is not None:
                return (yield from self._end_loop(text, limit, None))

    def _next_turn(self) -> Generator[Any, Any, ToolTurn[Any, None]]:
        """The turn of the next request, not sent yet; raises `InvalidToolConstraints`."""
        descriptions = self._descriptions
        if self._registry is not None:
            from_hooks = yield self._effects.describe(self._registry)
            descriptions = {**from_hooks, **descriptions}
        require = None if self.rounds else self._settings.require
        available = self._settings.available
        if callable(available):
            available = available(self._session)
        # The same turn again has the same offer, whose tool list is rendered already.
        made_of = (descriptions, require, available)
        if self._turn is None or self._turn_made_of != made_of:
            self._turn = self._make_turn(descriptions, require, available)
            self._turn_made_of = made_of
        return self._turn

    def _make_turn(
        self,
        descriptions: Descriptions,
        require: ToolRequirement[Any] | None,
        available: ToolAvailability[Any] | None,
    ) -> ToolTurn[Any, None]:
        settings = self._settings
        return self._session.text_turn(
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
        )

    def _limit_reached(self) -> StoppedBy | None:
        settings = self._settings
        most_failures = max(self._failures.values(), default=0)
        if settings.max_repeats is not None and most_failures >= settings.max_repeats:
            return "repeat"
        budget = settings.token_budget
        if budget is not None and self.usage.total_tokens >= budget:
            return "budget"
        return "round_limit" if self.rounds >= settings.max_rounds else None

    def _end_loop(
        self, text: str, stopped_by: StoppedBy, result: TurnResult | None
    ) -> Generator[Any, Any, LoopResult]:
        ended = LoopResult(text, self.rounds, self.usage, stopped_by, result)
        yield from self._report_progress(LoopEnded(self.rounds, self.usage, ended))
        return ended

    def _report_progress(self, event: LoopEvent[Any]) -> Generator[Any, Any, None]:
        if self._on_progress is not None:
            yield self._effects.notify(self._on_progress, event)

    # --- one round ---------------------------------------------------------------------------

    def _carry_out_round(self, decoded: ToolRound[Any]) -> Generator[Any, Any, None]:
        """Plan, execute, review, commit; whatever happens, the round is not open afterwards."""
        plan, planned, answers = yield from self._plan_round(decoded)
        results = yield from self._execute_calls(plan, planned.pending, answers)
        reviewed: list[ToolResult] = []
        try:
            yield from self._review_results(results, reviewed)
            yield from self._report_progress(
                RoundExecuted(self.rounds + 1, self.usage, tuple(reviewed))
            )
        except BaseException:
            withheld = [_withhold(result) for result in results[len(reviewed) :]]
            self._commit_during_error(plan, [*answers, *reviewed, *withheld])
            raise
        self._commit_round(plan, [*answers, *reviewed])
        self._count_failures(decoded, planned, [*answers, *results])

    def _plan_round(
        self, decoded: ToolRound[Any]
    ) -> Generator[Any, Any, tuple[OpenRound, RoundPlanned[Any], Sequence[ToolResult]]]:
        """Have the hooks decide; without hooks, the round is its own plan.

        Returns:
            The plan; what it says, as the event that was reported; and the answers to the requests
            for approval that no hook has decided.
        """
        plan: OpenRound = decoded
        number = self.rounds + 1
        try:
            yield from self._report_progress(
                RoundDecoded(
                    number,
                    self.usage,
                    decoded.calls,
                    decoded.issues,
                    decoded.text,
                    decoded.approvals,
                )
            )
            if self._settings.hooks is not None:
                plan = yield self._effects.decide(decoded, self._settings.hooks)
            if isinstance(plan, ToolRoundPlan):
                calls = (plan.pending, plan.handled, plan.rejected)
            else:
                calls = (decoded.calls, (), ())
            planned = RoundPlanned(number, self.usage, *calls, plan.approvals)
            yield from self._report_progress(planned)
            answers = yield from self._answer_requests(plan.approvals)
        except BaseException as error:
            # Nothing has run, so nothing is lost.
            plan.discard()
            if isinstance(error, HookError):
                message = str(error).replace(
                    "the round is still open", "the loop has discarded the round"
                )
                raise HookError(message) from error.__cause__
            raise
        return plan, planned, answers

    def _answer_requests(
        self, requests: Sequence[ApprovalRequest]
    ) -> Generator[Any, Any, list[ToolResult]]:
        """Approve or reject what no hook has decided; without anybody to ask, reject it."""
        approve = self._settings.approve
        answers: list[ToolResult] = []
        for request in requests:
            answer: Any = False
            if approve is not None:
                answer = yield self._effects.ask(approve, request)
            # A value that only counts as true approves nothing: it may be a mistake.
            if not isinstance(answer, bool):
                kind = type(answer).__name__
                raise TypeError(f"approve= gives True or False, not {kind}; nothing was approved")
            answers.append(request.complete(answer))
        return answers

    def _execute_calls(
        self, plan: OpenRound, pending: Sequence[BaseToolCall], answers: Sequence[ToolResult]
    ) -> Generator[Any, Any, Sequence[ToolResult]]:
        if not pending:
            return ()
        report = ExecutionReport()
        try:
            results: Sequence[ToolResult] = yield self._effects.execute(
                self._executor,
                pending,
                self._settings.dispatch,
                scope=self._settings.scope,
                report=report,
            )
        except BaseException:
            # A run that could not even be waited for is still active: after a second interrupt,
            # or when a coroutine is closed.
            known = report.results_so_far(pending) if report.active else report.results(pending)
            reviewed = [self._review_now(result) for result in known]
            self._commit_during_error(plan, [*answers, *reviewed])
            raise
        return results

    def _review_results(
        self, results: Sequence[ToolResult], reviewed: list[ToolResult]
    ) -> Generator[Any, Any, None]:
        """Add every result to `reviewed`, as the result hooks leave it."""
        registry = self._registry
        if registry is None:
            reviewed += results
            return
        for result in results:
            # One by one: when a hook fails, those before it are reviewed.
            after: list[ToolResult] = yield self._effects.review(registry, result)
            reviewed.append(_take_content(result, after[0]))

    def _review_now(self, result: ToolResult) -> ToolResult:
        """The result as plain result hooks leave it.

        Withheld where a hook is async or fails: a loop that is being cancelled can't await.
        """
        if self._registry is None or not _has_words_of_the_tool(result):
            return result
        try:
            return _take_content(result, self._registry.review_sync([result])[0])
        except BaseException as error:
            metadata = result.metadata
            logger.warning("%s of %s: withheld: %s", metadata.id, metadata.name, error)
            return _withhold(result)

    def _count_failures(
        self,
        decoded: ToolRound[Any],
        planned: RoundPlanned[Any],
        results: Sequence[ToolResult],
    ) -> None:
        """Note which calls went wrong in this round; equal calls of one round count once."""
        failed = [
            *_failed_calls(results),
            *[rejected.metadata for rejected in planned.rejected],
            *[issue.metadata for issue in decoded.issues],
        ]
        for key in {_failure_key(metadata) for metadata in failed}:
            self._failures[key] = self._failures.get(key, 0) + 1

    # --- ends of a round ---------------------------------------------------------------------

    def _commit_round(self, plan: OpenRound, results: Sequence[ToolResult]) -> None:
        """Write the round; where it no longer fits, discard it with the results in the error."""
        try:
            plan.commit(self._session, results, rebase=True)
        except BaseException as error:
            plan.discard()
            if not isinstance(error, Exception):
                raise
            raise UncommittedRoundError(plan.turn, results, str(error)) from error
        self.rounds += 1

    def _commit_during_error(self, plan: OpenRound, results: Sequence[ToolResult]) -> None:
        """Write the round while an error propagates, which matters more than one from here."""
        try:
            self._commit_round(plan, results)
        except UncommittedRoundError as error:
            logger.error("%s", error)


def _stop_reason(result: TurnResult[Any]) -> StoppedBy:
    """What an answer that needs no tool stopped the loop by.

    For an unknown finish reason, only a text that did not break off shows that the model has
    answered.
    """
    if result.finish_reason == "unknown" and (result.turn.cut or not result.text.strip()):
        return "unknown"
    return _STOPPED_BY_FINISH.get(result.finish_reason, "answer")


def _failed_calls(results: Iterable[ToolResult]) -> Iterator[ToolMetadata]:
    """The calls that went wrong, without those skipped as duplicates of another of the round."""
    seen: set[FailureKey] = set()
    for result in results:
        key = _failure_key(result.metadata)
        skipped = key in seen and result.status == "rejected"
        seen.add(key)
        if result.status != "ok" and not skipped:
            yield result.metadata


def _failure_key(metadata: ToolMetadata) -> FailureKey:
    return metadata.name, json_values.canonical_arguments(metadata.arguments)


def _has_words_of_the_tool(result: ToolResult) -> bool:
    """Whether the content comes from the tool; for other outcomes the executor wrote it."""
    return not isinstance(result, ExecutionResult) or result.outcome in ("ok", "failed")


def _take_content(result: ToolResult, reviewed: ToolResult) -> ToolResult:
    """The result with the reviewed content; what else the executor noted in it stays."""
    if reviewed is result:
        return result
    return replace(result, content=reviewed.content, output_error=reviewed.output_error)


def _withhold(result: ToolResult) -> ToolResult:
    if not _has_words_of_the_tool(result):
        return result
    return replace(result, content=WITHHELD, status="error", output_error=None)
