"""The loop itself, without I/O: what is done in which order, and what becomes of an open round on every way out.

It is written once, as a generator that yields what has to be awaited; `effects` has the two ways to do that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lutumpy.core.item_store import FailureKey, failure_key
from lutumpy.core.items import ToolMetadata, Usage
from lutumpy.core.model import Model
from lutumpy.errors import HookError
from lutumpy.execution import Dispatcher, ExecutionReport, ExecutionResult, ToolExecutor
from lutumpy.execution.results import interrupted
from lutumpy.hooks.run import Decider
from lutumpy.hooks.tool_hooks import ToolHooks, has_result_hooks
from lutumpy.loops.effects import Effects
from lutumpy.loops.progress import (
    LoopEvent,
    LoopStopped,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.loops.result import LoopResult, StoppedBy, UncommittedRoundError
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.round import OpenRound, ToolRound, ToolRoundPlan
from lutumpy.rounds.turns import ToolTurn
from lutumpy.session import Session
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import Selector

logger: logging.Logger = logging.getLogger("lutumpy.loops")

WITHHELD = (
    "The tool ran, and what it did stands, but what it said is withheld: it could not be reviewed."
)

# `stop` and `tool_calls` of an answer without calls are an answer; for `unknown` see `_end_of`.
_ENDS: Mapping[str, StoppedBy] = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "length": "length",
    "paused": "paused",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What every request of a loop asks for; `require` holds for the first one alone."""

    tools: Any
    available: ToolAvailability[Any] | None
    require: ToolRequirement[Any] | None
    describe: Mapping[Selector[Any, Any, Any], str]
    parallel: bool
    temperature: float | None
    max_output_tokens: int | None
    extra: Mapping[str, Any] | None

    def turn(
        self,
        session: Session,
        llm: Model,
        require: ToolRequirement[Any] | None,
        describe: Mapping[Any, str],
    ) -> ToolTurn[Any, None]:
        """The turn with these descriptions, not sent yet; raises `InvalidToolConstraints`."""
        return session.text_turn(
            llm,
            tools=self.tools,
            available=self.available,
            require=require,
            describe=describe,
            parallel=self.parallel,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
            extra=self.extra,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """When a loop stops by itself; `None` is no limit."""

    max_rounds: int
    max_repeats: int | None
    token_budget: int | None


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
        request: Request,
        limits: Limits,
        dispatch: Dispatcher[Any],
        executor: ToolExecutor,
        scope: str | None,
        hooks: Decider | None,
        on_progress: Callable[[LoopEvent[Any]], Any] | None,
    ) -> None:
        self.rounds: int = 0
        self._session = session
        self._cost_before = session.usage
        self._llm = llm
        self._effects = effects
        self._request = request
        self._limits = limits
        self._dispatch = dispatch
        self._executor = executor
        self._scope = scope
        self._hooks = hooks
        self._registry = hooks if isinstance(hooks, ToolHooks) else None
        self._on_progress = on_progress
        self._failures: dict[FailureKey, int] = {}
        self._turn: (
            tuple[Mapping[Any, str], ToolRequirement[Any] | None, ToolTurn[Any, None]] | None
        ) = None

    @property
    def usage(self) -> Usage:
        return self._session.usage - self._cost_before

    def steps(self) -> Generator[Any, Any, LoopResult]:
        """Turn after turn until one is finished or a limit is reached; yields what has to be awaited."""
        while True:
            turn = yield from self._next_turn()
            yield from self._tell(RequestStarted(self.rounds + 1, self.usage))
            outcome: NeedsTools[Any] | Finished[None] = yield self._effects.collect(turn)
            if isinstance(outcome, Finished):
                result = outcome.result
                return (yield from self._stop(result.text, _end_of(result), result))
            text = outcome.round.text
            yield from self._round(outcome.round)
            yield from self._tell(RoundCommitted(self.rounds, self.usage))
            limit = self._limit_reached()
            if limit is not None:
                return (yield from self._stop(text, limit, None))

    def _next_turn(self) -> Generator[Any, Any, ToolTurn[Any, None]]:
        describe = self._request.describe
        if self._registry is not None:
            describe = {**(yield self._effects.describe(self._registry)), **describe}
        require = None if self.rounds else self._request.require
        kept = self._turn
        # The same turn again has the same offer, whose tool list is rendered already.
        if kept is None or kept[0] != describe or kept[1] is not require:
            kept = self._turn = (
                describe,
                require,
                self._request.turn(self._session, self._llm, require, describe),
            )
        return kept[2]

    def _limit_reached(self) -> StoppedBy | None:
        limits = self._limits
        if (
            limits.max_repeats is not None
            and max(self._failures.values(), default=0) >= limits.max_repeats
        ):
            return "repeat"
        if limits.token_budget is not None and self.usage.total_tokens >= limits.token_budget:
            return "budget"
        return "round_limit" if self.rounds >= limits.max_rounds else None

    def _stop(
        self, text: str, stopped_by: StoppedBy, result: TurnResult | None
    ) -> Generator[Any, Any, LoopResult]:
        ended = LoopResult(text, self.rounds, self.usage, stopped_by, result)
        yield from self._tell(LoopStopped(self.rounds, self.usage, ended))
        return ended

    def _tell(self, event: LoopEvent[Any]) -> Generator[Any, Any, None]:
        if self._on_progress is not None:
            yield self._effects.tell(self._on_progress, event)

    # --- one round -------------------------------------------------------------------------------------------------

    def _round(self, decoded: ToolRound[Any]) -> Generator[Any, Any, None]:
        """Plan, execute, review, commit; whatever happens, the round is not open afterwards."""
        plan: OpenRound[Any] = decoded
        number = self.rounds + 1
        try:
            yield from self._tell(
                RoundDecoded(number, self.usage, decoded.calls, decoded.issues, decoded.text)
            )
            if self._hooks is not None:
                plan = yield self._effects.decide(decoded, self._hooks)
            if isinstance(plan, ToolRoundPlan):
                planned = RoundPlanned(
                    number, self.usage, plan.pending, plan.handled, plan.rejected
                )
            else:
                planned = RoundPlanned(number, self.usage, decoded.calls, (), ())
            yield from self._tell(planned)
        except BaseException as error:
            # Nothing has run, so nothing is lost.
            plan.discard()
            if isinstance(error, HookError):
                said = str(error).replace(
                    "the round is still open", "the loop has discarded the round"
                )
                raise HookError(said) from error.__cause__
            raise
        results = yield from self._execute(plan, planned.pending)
        answers: list[ToolResult] = []
        try:
            yield from self._review(results, answers)
            yield from self._tell(RoundExecuted(number, self.usage, tuple(answers)))
        except BaseException:
            self._rescue(
                plan, [*answers, *[_withheld(result) for result in results[len(answers) :]]]
            )
            raise
        self._commit(plan, answers)
        failed = [
            *_failed(results),
            *[r.metadata for r in planned.rejected],
            *[i.metadata for i in decoded.issues],
        ]
        for key in {_key(metadata) for metadata in failed}:
            self._failures[key] = self._failures.get(key, 0) + 1

    def _execute(
        self, plan: OpenRound[Any], pending: Sequence[BaseToolCall]
    ) -> Generator[Any, Any, Sequence[ToolResult]]:
        if not pending:
            return ()
        report = ExecutionReport()
        try:
            results: Sequence[ToolResult] = yield self._effects.execute(
                self._executor, pending, self._dispatch, scope=self._scope, report=report
            )
        except BaseException:
            self._rescue(
                plan, [self._reviewed_now(result) for result in _outcomes(report, pending)]
            )
            raise
        return results

    def _review(
        self, results: Sequence[ToolResult], answers: list[ToolResult]
    ) -> Generator[Any, Any, None]:
        """Add every result to `answers`, as the result hooks leave it."""
        registry = self._registry
        if registry is None or not has_result_hooks(registry, results):
            answers += results
            return
        for result in results:
            # One by one: when a hook fails, those before it are reviewed.
            reviewed: list[ToolResult] = yield self._effects.review(registry, result)
            answers.append(_with_content(result, reviewed[0]))

    def _reviewed_now(self, result: ToolResult) -> ToolResult:
        """The result as plain result hooks leave it; withheld where one of them is async, or fails: nothing can wait here."""
        if self._registry is None or not _says_what_the_tool_said(result):
            return result
        try:
            return _with_content(result, self._registry.review_sync([result])[0])
        except BaseException as error:
            logger.warning(
                "%s of %s: withheld: %s", result.metadata.id, result.metadata.name, error
            )
            return _withheld(result)

    # --- ends of a round -------------------------------------------------------------------------------------------

    def _commit(self, plan: OpenRound[Any], answers: Sequence[ToolResult]) -> None:
        """Write the round; where it finds no place any more, give it up with the results in the error."""
        try:
            plan.commit(self._session, answers, rebase=True)
        except BaseException as error:
            plan.discard()
            if not isinstance(error, Exception):
                raise
            raise UncommittedRoundError(plan.turn, answers, str(error)) from error
        self.rounds += 1

    def _rescue(self, plan: OpenRound[Any], answers: Sequence[ToolResult]) -> None:
        """Write the round while an error is on its way out; that error matters more than one from here."""
        try:
            self._commit(plan, answers)
        except UncommittedRoundError as error:
            logger.error("%s", error)


def _end_of(result: TurnResult[Any]) -> StoppedBy:
    """What an answer that needs no tool stopped the loop by.

    For a reason that nobody knows, only a text that did not break off shows that the model has answered.
    """
    if result.finish_reason == "unknown" and (result.turn.cut or not result.text.strip()):
        return "unknown"
    return _ENDS.get(result.finish_reason, "answer")


def _failed(results: Iterable[ToolResult]) -> Iterator[ToolMetadata]:
    """The calls that went wrong, without those that were skipped as the duplicate of another one of the round."""
    seen: set[FailureKey] = set()
    for result in results:
        key = _key(result.metadata)
        skipped = key in seen and result.status == "rejected"
        seen.add(key)
        if result.status != "ok" and not skipped:
            yield result.metadata


def _key(metadata: ToolMetadata) -> FailureKey:
    return failure_key(metadata.name, metadata.arguments)


def _says_what_the_tool_said(result: ToolResult) -> bool:
    """Whether the content is the tool's own; of other outcomes it is the executor's."""
    return not isinstance(result, ExecutionResult) or result.outcome in ("ok", "failed")


def _outcomes(report: ExecutionReport, calls: Sequence[BaseToolCall]) -> list[ExecutionResult]:
    """What is known of the calls of a run that was cut off."""
    if not report.active:
        return report.results(calls)
    # It could not even be waited for: a second interrupt, or a coroutine that is closed.
    known = [report.find(call) for call in calls]
    return [
        one.result
        if one is not None and one.result is not None
        else interrupted(call, 1, 0.0, None)
        for call, one in zip(calls, known, strict=True)
    ]


def _with_content(result: ToolResult, reviewed: ToolResult) -> ToolResult:
    """The result with the reviewed content, and all that the executor says of it."""
    if reviewed is result:
        return result
    return replace(result, content=reviewed.content, output_error=reviewed.output_error)


def _withheld(result: ToolResult) -> ToolResult:
    if not _says_what_the_tool_said(result):
        return result
    return replace(result, content=WITHHELD, status="error", output_error=None)
