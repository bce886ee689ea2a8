"""What the steps of a loop do where the conversation outlives the process."""

# The order of the steps, the limits and the ways out are those of `run_tools` (`lutumpy.loops`).
# What differs is that each step first looks for its record, and writes one before anything depends
# on it (rule P1):
#
#   step      record it looks for and writes             without it, after a crash
#   --------  -----------------------------------------  ---------------------------------------
#   collect   `plan`, else `turn`                        the model is asked again (P10)
#   decide    `plan`: the answer and every decision      the hooks are asked again (P11)
#   ask       `approval:<id>`                            `approve` is asked again
#   execute   `call:<id>`, with a marker for `once`      see `StoreJournal`
#   review    `review`, where a hook changed something   the hooks are asked again
#   commit    the round itself                           committed from its records
#
# `turn` is written only where it would be alone for a while: hooks that wait, or a finished answer.
# On an error nothing is written: the round stays open in the store, and the next run goes on with
# it. Only `once` calls that were running are recorded as `maybe_executed` (rule P19).

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import anyio.from_thread
import anyio.to_thread

from lutumpy import (
    ApprovalRequest,
    CallTicket,
    Finished,
    HookError,
    NeedsTools,
    RoundClosedError,
    Session,
    Signer,
    TakenOverError,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
)
from lutumpy.durable.call_limits import run_within_limits
from lutumpy.durable.changed import outcomes_of_changed
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.decisions import read_decision
from lutumpy.durable.events import EventWriter
from lutumpy.durable.journal import StoreJournal, is_unresolved
from lutumpy.durable.late_round import HeldForPerson, settle_open_calls
from lutumpy.durable.local import LocalRunner
from lutumpy.durable.polling import Polls
from lutumpy.durable.questions import leg_of, ticket_of_leg
from lutumpy.durable.results import Waiting
from lutumpy.durable.runner import CallRunner
from lutumpy.durable.types import InboxEntry
from lutumpy.execution import Around, as_execution_result
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops import (
    AsyncEffects,
    LoopCounts,
    LoopTelemetry,
    OpenRound,
    PendingCalls,
    Policy,
    SyncEffects,
    take_content,
)
from lutumpy.models import AssistantTurn, ToolTurn, load_turn
from lutumpy.models import dump_turn as dump_answer
from lutumpy.tools import may_ask

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "DurableEffects",
    "RoundSettings",
    "held_calls",
    "is_decision",
]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

# How long a process that has to stop may still write what it knows.
SECONDS_TO_SETTLE = 5.0


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How the rounds of a durable loop are written down, taken up and run.

    Attributes:
        tools: The toolset.
        runner: Who runs calls.
        sign: What plans are signed with.
        verify: The keys that plans have to be signed with.
        drift: What becomes of a plan whose tools are others now.
        hooks_wait: Whether hooks may wait while they decide.
        review: What reviews results.
        telemetry: Makes spans, where that is wanted: a process that takes the round up links its
            own to those of the one that planned it.
        late: What a round does whose calls are open: it waits for their results, or is committed
            with their promises.
        polls: Asks for the results of calls that nobody delivers.
    """

    tools: Any
    runner: CallRunner
    sign: Signer | None
    verify: Mapping[str, bytes] | None
    drift: Literal["refuse", "reject"]
    hooks_wait: bool
    review: ToolHooks[Any] | None
    telemetry: LoopTelemetry | None = None
    late: Literal["wait", "go_on"] = "wait"
    polls: Polls = field(default_factory=Polls)


class DurableEffects(AsyncEffects):
    """The effects of one run.

    Args:
        conversation: The conversation, claimed by this process.
        settings: How its rounds are written down, taken up and run.
        events: Where events go, if they are stored.
        streams: Whether the model's answers are streamed into them.
        in_thread: Whether the model is asked through its sync client, in a thread.
        on_taken_up: Is given an answer that an earlier run was given, where one is taken up.
        limit_calls: `tool_call` of the budget, for calls that a runner runs elsewhere.
    """

    def __init__(
        self,
        conversation: OpenConversation,
        settings: RoundSettings,
        events: EventWriter | None,
        *,
        streams: bool,
        in_thread: bool,
        on_taken_up: Callable[[AssistantTurn], None] | None = None,
        limit_calls: Around | None = None,
    ) -> None:
        self._streams = events is not None and streams
        super().__init__(events.add_delta if events is not None and streams else None)
        self._conversation = conversation
        self._settings = settings
        self._events = events
        self._in_thread = in_thread
        self._on_taken_up = on_taken_up
        self._limit_calls = limit_calls
        self._calls: Mapping[str, BaseToolCall] = {}
        # What came of calls that the plan in hand can't run any more.
        self._changed: list[ToolResult] = []

    # --- the answer --------------------------------------------------------------------------

    async def collect(self, turn: ToolTurn[Any, None], number: int) -> Any:
        conversation = self._conversation
        plan = conversation.recorded("plan")
        if plan is not None:
            return await self._take_up(cast("Mapping[str, JsonValue]", plan))
        answer = conversation.recorded("turn")
        if answer is not None:
            read = load_turn(cast("Mapping[str, Any]", answer))
            await self._tell_taken_up(read)
            return turn.read(read)
        outcome = await self._request(turn)
        finished = isinstance(outcome, Finished)
        if finished or self._settings.hooks_wait:
            answered = outcome.result.turn if finished else outcome.round.turn
            conversation.answer_usage = answered.usage
            try:
                await conversation.record_own("turn", dump_answer(answered))
                await self._tell_answer(answered)
            except BaseException:
                _discard(outcome)
                raise
        return outcome

    async def _request(self, turn: ToolTurn[Any, None]) -> Any:
        if self._streams and self._events is not None:
            await self._events.begin_stream()
        if not self._in_thread:
            return await super().collect(turn, 0)
        on_event: Callable[[Any], Any] | None = None
        if self._events is not None and self._streams:
            add_delta: Any = self._events.add_delta
            on_event = partial(anyio.from_thread.run, add_delta)
        collect = partial(SyncEffects(on_event).collect, turn, 0)
        # The session is this run's own, so a thread that nobody waits for does no harm.
        return await anyio.to_thread.run_sync(collect, abandon_on_cancel=True)

    async def _take_up(self, data: Mapping[str, JsonValue]) -> ToolRoundPlan[Any]:
        """The plan that was recorded, perhaps by another release, on another machine."""
        conversation, settings = self._conversation, self._settings
        plan: ToolRoundPlan[Any] = ToolRoundPlan.resume(
            data,
            conversation.session,
            tools=settings.tools,
            scope=conversation.scope,
            verify=settings.verify,
            drift=settings.drift,
            counted=False,
        )
        try:
            await self._tell_taken_up(plan.turn)
            self._changed = await outcomes_of_changed(
                plan, data, conversation, settings.tools, settings.review
            )
        except BaseException:
            _discard(plan)
            raise
        return await self._apply_decisions(plan, data)

    async def _tell_taken_up(self, turn: AssistantTurn) -> None:
        self._conversation.answer_usage = turn.usage
        if self._on_taken_up is not None:
            self._on_taken_up(turn)
        await self._tell_answer(turn)

    async def _tell_answer(self, turn: Any) -> None:
        if self._events is not None:
            await self._events.answer_recorded(turn)

    # --- the plan ----------------------------------------------------------------------------

    async def decide(
        self, round: ToolRound[Any], hooks: ToolHooks[Any] | Policy[Any], number: int
    ) -> Any:
        plan = await round.apply_hooks(hooks)
        conversation = self._conversation
        try:
            if self._settings.telemetry is not None:
                await conversation.record_trace(self._settings.telemetry.carrier())
            data = plan.dump(scope=conversation.scope, sign=self._settings.sign)
            conversation.answer_usage = plan.turn.usage
            await conversation.record_own("plan", data)
            if conversation.recorded("turn") is None:
                await self._tell_answer(plan.turn)
        except BaseException:
            _discard(plan)
            raise
        return await self._apply_decisions(plan, data)

    async def _apply_decisions(
        self, plan: ToolRoundPlan[Any], data: Mapping[str, JsonValue]
    ) -> ToolRoundPlan[Any]:
        """The plan with what people decided, in the order in which it arrived.

        Raises:
            HeldForPerson: a call is still held.
        """
        if not held_calls(plan):
            return plan
        digest = str(data["digest"])
        try:
            inbox = await self._conversation.store.inbox(self._conversation.scope)
            decided = [entry for entry in inbox if is_decision(entry, digest)]
            for entry in decided:
                plan = _apply_decision(plan, entry)
            held = held_calls(plan)
            seen = frozenset([entry.id for entry in decided])
            if held and self._events is not None:
                await self._events.wait(plan, held, digest, seen)
        except BaseException:
            _discard(plan)
            raise
        if held:
            _discard(plan)
            ids = tuple([call.metadata.id for call in held])
            raise HeldForPerson(Waiting(data, ids, digest), seen)
        return plan

    async def ask(
        self, approve: Callable[[Any], Any], request: ApprovalRequest, number: int
    ) -> Any:
        name = f"approval:{request.metadata.id}"
        answer: Any = self._conversation.recorded(name)
        if answer is None:
            answer = await super().ask(approve, request, number)
            if isinstance(answer, bool):  # anything else is the loop's to refuse
                answer = await self._conversation.record(name, answer)
        return answer

    # --- the calls ---------------------------------------------------------------------------

    async def execute(self, pending: PendingCalls) -> list[ToolResult]:
        plan = cast("ToolRoundPlan[Any]", pending.plan)
        self._calls = {call.metadata.id: call for call in pending.calls}
        tickets = self._tickets_of(plan, pending)
        journal = StoreJournal(self._conversation, tickets)
        known = [journal.result_of(ticket) for ticket in tickets]
        results = [result for result in known if result is not None]
        if len(results) == len(tickets):
            return await self._settle(tickets, await self._take_outputs(results))
        try:
            ran = await self._run(pending, tickets, journal)
            results = await self._take_outputs(await _keep_results(tickets, ran, journal))
            return await self._settle(tickets, results)
        except GeneratorExit:
            raise
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(SECONDS_TO_SETTLE):
                await _settle(journal)
            raise

    def _tickets_of(self, plan: ToolRoundPlan[Any], pending: PendingCalls) -> list[CallTicket]:
        """The tickets of the pending calls, each for the leg that its call is at."""
        tickets = [*plan.tickets(scope=self._conversation.scope)]
        for index, call in enumerate(pending.calls):
            call.key = tickets[index].key  # fixed with the plan: whoever watches the call sees it
            if may_ask(call.tool):
                call.leg = leg_of(self._conversation, call.metadata.id)
                tickets[index] = ticket_of_leg(tickets[index], call.leg)
        return tickets

    async def _settle(
        self, tickets: Sequence[CallTicket], results: list[ToolResult]
    ) -> list[ToolResult]:
        return await settle_open_calls(
            self._conversation,
            tickets,
            results,
            self._calls,
            self._events,
            self._settings.polls,
            waits=self._settings.late == "wait",
        )

    async def _take_outputs(self, results: list[ToolResult]) -> list[ToolResult]:
        """The results, with the outputs that people know of calls of unknown outcome (rule P8).

        Records stay as they are; a notice that no result tells is told as a message. Before the
        review, so that hooks see what the model will.
        """
        conversation = self._conversation
        is_reviewed = conversation.recorded("review") is not None
        if is_reviewed or not any(is_unresolved(result) for result in results):
            return results
        notices = await conversation.notices_with_outputs()
        for index, result in enumerate(results):
            notice = notices.get(result.metadata.id)
            if notice is None or not is_unresolved(result):
                continue
            completed = self._calls[result.metadata.id].complete(notice.value["output"])
            if completed.output_error is None:
                results[index] = as_execution_result(completed)
                conversation.tell_by_result(notice)
        return results

    async def _run(
        self, pending: PendingCalls, tickets: Sequence[CallTicket], journal: StoreJournal
    ) -> Sequence[ToolResult]:
        runner = self._settings.runner
        kind: type[Any] = type(runner)
        if kind is LocalRunner:  # what derives from it may do something else with tickets
            local, scope = cast("LocalRunner", runner), self._conversation.scope
            return await local.run_calls(
                pending.calls, journal, scope, pending.report, pending.around, pending.about
            )
        return await run_within_limits(self._limit_calls, runner, pending.calls, tickets, journal)

    async def review(
        self,
        hooks: ToolHooks[Any],
        results: Sequence[ToolResult],
        reviewed: list[ToolResult],
        number: int,
    ) -> None:
        recorded = self._conversation.recorded("review")
        if recorded is None:
            fresh: list[ToolResult] = []
            await super().review(hooks, results, fresh, number)
            pairs = zip(fresh, results, strict=True)
            if all(after is before for after, before in pairs):
                reviewed += fresh
                return
            value = {result.metadata.id: result.dump() for result in fresh}
            recorded = await self._conversation.record("review", value)
            if recorded == value:
                reviewed += fresh
                return
        contents = cast("Mapping[str, Mapping[str, Any]]", recorded)
        for result in results:
            call_id = result.metadata.id
            loaded = ToolResult.load(contents[call_id], self._calls[call_id])
            reviewed.append(take_content(result, loaded))

    # --- the ends of a round -----------------------------------------------------------------

    def finish(self, outcome: Finished[Any], session: Session) -> Generator[Any, Any, None]:
        paused = outcome.result.finish_reason == "paused"
        yield self._conversation.commit_answer("open" if paused else "done")

    def retry(
        self, outcome: Finished[Any], session: Session, message: str, counts: LoopCounts
    ) -> Generator[Any, Any, LoopCounts]:
        session.push_user(message)
        yield self._conversation.commit_retry(counts)
        return counts

    def commit(
        self,
        plan: OpenRound,
        session: Session,
        results: Sequence[ToolResult],
        counts: LoopCounts,
    ) -> Generator[Any, Any, LoopCounts]:
        try:
            plan.commit(session, [*results, *self._changed], rebase=True)
        except BaseException:
            _discard(plan)
            raise
        self._changed = []
        is_new_task: bool = yield self._conversation.commit_round(counts)
        if not is_new_task:
            return counts
        return self._conversation.loop_counts_of_new_task()

    def cut_off(
        self,
        plan: OpenRound,
        session: Session,
        known_results: Callable[[], Sequence[ToolResult]] | None,
    ) -> None:
        # In the store it stays open.
        _discard(plan)


def is_decision(entry: InboxEntry, digest: str) -> bool:
    """Whether an entry decides a call of this plan."""
    return entry.kind == "decision" and entry.value.get("plan") == digest


def held_calls(plan: ToolRoundPlan[Any]) -> list[BaseToolCall]:
    """The calls that a person has to decide, calls that the provider makes itself among them."""
    held: list[BaseToolCall] = [*plan.held]
    if plan.approvals:
        waiting = {each["call_id"] for each in plan.decisions() if each["decision"] == "held"}
        held += [request for request in plan.approvals if request.metadata.id in waiting]
    return held


def _apply_decision(plan: ToolRoundPlan[Any], entry: InboxEntry) -> ToolRoundPlan[Any]:
    """The plan with one decision; without it, where that doesn't fit any more."""
    call_id, by = str(entry.value.get("call_id")), str(entry.value.get("by"))
    call = next((call for call in held_calls(plan) if call.metadata.id == call_id), None)
    if call is None:
        return plan  # it was decided before
    try:
        return plan.decide({call_id: read_decision(call, entry.value.get("decision"))}, by=by)
    except HookError as error:
        # It was checked when it arrived, by another release perhaps.
        logger.error("the decision of %s can't be used, the call stays held: %s", by, error)
        return plan


def _discard(opened: OpenRound | NeedsTools[Any] | Finished[Any]) -> None:
    """Let go of a round in this process."""
    if isinstance(opened, Finished):
        return  # it is in the session, which is let go of
    with suppress(RoundClosedError):
        (opened.round if isinstance(opened, NeedsTools) else opened).discard()


async def _keep_results(
    tickets: Sequence[CallTicket], returned: Sequence[ToolResult], journal: StoreJournal
) -> list[ToolResult]:
    """The recorded result of each call; recorded now, where the runner didn't notify the journal.

    Raises:
        ValueError: the runner gave other results than one for each ticket, in order.
    """
    listed = list(returned)
    if [result.metadata.id for result in listed] != [ticket.call_id for ticket in tickets]:
        raise ValueError(
            "a runner gives one result for each ticket, in order; the round stays open in the store"
        )
    results: list[ToolResult] = []
    for ticket, result in zip(tickets, listed, strict=True):
        results.append(await journal.keep(ticket, result))
    return results


async def _settle(journal: StoreJournal) -> None:
    """Record what was running. Where that can't be written, the markers say the same."""
    try:
        await journal.settle_running()
    except TakenOverError:
        return  # then the next one finds the markers
    except Exception as error:
        logger.warning("calls that were running could not be recorded: %s", error)
