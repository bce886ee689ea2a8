"""The loop whose rounds outlive the process: `DurableLoop`."""

# One run, from the claim to the release:
#
#   claim --taken--> Taken
#     |
#     v
#   messages of the inbox, if no round is open
#     |
#     v                                             answered before, no message since
#   the steps of `lutumpy.loops.Loop`, with `DurableEffects` <-----+------> Answered
#     |              |             |                               |
#     | a call       | finished,   | an error, a cancellation,     |
#     | is held      | a limit     | taken over: raised            |
#     v              v             v                               |
#   Waiting       Answered      the round stays open               |
#     |              |                                             |
#     v              v                                             |
#   release, and a last look at the inbox: what came in between is taken up by a new claim
#
# That last look closes a gap: whoever decides or sends a message just before the release calls
# `run`, and gets `Taken`. Nobody would go on then.

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Literal, cast

import anyio
from typing_extensions import TypeVar, Unpack

from lutumpy import (
    Model,
    RunNormally,
    Signer,
    TakenOverError,
    ToolDecision,
    Toolset,
    TurnResult,
    Usage,
)
from lutumpy.durable.attempts import check_max_attempts, find_stuck
from lutumpy.durable.conversation import OpenConversation, is_message
from lutumpy.durable.delivery_spans import DeliverySpans
from lutumpy.durable.effects import (
    DurableEffects,
    RoundSettings,
    is_decision,
)
from lutumpy.durable.events import RUN_BY, EventWriter, RunBy
from lutumpy.durable.late import (
    LateReader,
    is_late,
    poller_by_name,
)
from lutumpy.durable.late_round import HeldForPerson
from lutumpy.durable.lease import give_up, hold_while
from lutumpy.durable.local import LocalRunner
from lutumpy.durable.loop_arguments import UNSENT, check_arguments, check_parts
from lutumpy.durable.loop_inbox import LoopInbox
from lutumpy.durable.polling import PolledCall
from lutumpy.durable.results import Answered, RunResult, Waiting
from lutumpy.durable.runner import CallRunner
from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim, InboxEntry, Status, Taken, is_answer
from lutumpy.execution import Dispatcher, refuse_running_loop
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops import (
    AskApproval,
    Loop,
    LoopBudget,
    LoopEnded,
    LoopEvent,
    LoopOptions,
    LoopResult,
    LoopSettings,
    Policy,
    has_async_hooks,
)
from lutumpy.models import AssistantTurn, read_value
from lutumpy.plain.driving import drive_async
from lutumpy.tools import HasView, View

__all__ = ["DurableLoop"]

TS = TypeVar("TS", bound=Toolset[Any])
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
V = TypeVar("V", default=None)

OnProgress = Callable[[LoopEvent[C]], "Awaitable[None] | None"]


class DurableLoop(LoopInbox, Generic[TS, C, V]):
    """`run_tools` for conversations in a store: any process goes on with them, at any time.

    What was recorded is used, and never asked for or run again: the model's answer, the decisions
    of hooks and people, the results of calls. A tool with the effect `once` is begun at most once;
    where its process died, its outcome is `maybe_executed`, until somebody calls
    `store.resolve(...)`. Other tools are run again.

    Args:
        store: Where conversations are kept.
        llm: An adapter with its model.
        tools: The toolset.
        dispatch: What runs its calls; by default `Dispatcher(tools)`, as for `run_tools`.
        hooks: As for `run_tools`. A hook that gives `Hold` makes the run end with `Waiting`. Hooks
            are asked again where a process died before their decisions were recorded, so a hook
            that decides has no effects which it can't repeat.
        runner: Who runs calls; by default a `LocalRunner`, in this process.
        sign: Makes plans tamper-evident to holders of the key.
        verify: Keys by id. With it, a plan that is unsigned or signed with another key is refused.
        drift: What becomes of a recorded plan whose tools have changed since: `refuse` raises
            `PlanError`, `reject` tells the model that the tool changed. Where the call was begun
            before, the model is told what came of it.
        events: Whether steps and streamed answers are stored, for `store.events`.
        approve: As for `run_tools`; what it says is recorded before it is used.
        on_progress: As for `run_tools`.
        max_rounds: As for `run_tools`. Limits count from one message of the user to its answer, in
            whichever processes that is.
        output: As for `run_tools`. Retries are counted as rounds are; an answer that was given
            before is read again when it is taken up.
        lease: Seconds after which another process may go on, where this one is gone. It is renewed
            while a run goes on. An hour at most.
        max_attempts: How often one round is taken up without coming to an end: its process died, or
            the run raised. Then the conversation is `stuck`, and `run` gives `Stuck`. `None` for no
            limit.
        budget_for: Gives the budget of one conversation, by its id: a new one, to which is counted
            what the conversation in the store has cost and called. In place of `budget`, which all
            conversations of this process share.
        late: What becomes of a round whose calls have promised their results (`late=True`). `wait`:
            it is not committed before they came; `run` gives `Waiting`, with the open calls.
            `go_on`: it is committed with the promises, the model goes on, and each result is told
            when it comes; where nothing is left to answer, the loop is stopped by `open`.
        **options: As for `run_tools`. Not `scope`: that is an argument of `run`.

    Attributes:
        has_events: Whether runs write a log.

    Raises:
        ValueError: a limit or the lease is not positive. `TypeError`: another type is needed.
        DeclarationError: `dispatch` doesn't cover the toolset, or is for another one.
        HookError: `hooks` belongs to another toolset, or can't decide calls.
    """

    def __init__(
        self,
        store: SessionStore,
        llm: Model,
        *,
        tools: HasView[View[TS, C]],
        dispatch: Dispatcher[TS] | None = None,
        hooks: ToolHooks[TS] | Policy[C] | None = None,
        runner: CallRunner | None = None,
        sign: Signer | None = None,
        verify: Mapping[str, bytes] | None = None,
        drift: Literal["refuse", "reject"] = "refuse",
        events: bool = False,
        approve: AskApproval | None = None,
        on_progress: OnProgress[C] | None = None,
        max_rounds: int = 15,
        output: type[V] | None = None,
        lease: float = 30.0,
        max_attempts: int | None = 10,
        budget_for: Callable[[str], LoopBudget] | None = None,
        late: Literal["wait", "go_on"] = "wait",
        **options: Unpack[LoopOptions[TS]],
    ) -> None:
        if "scope" in options:
            raise TypeError(f"scope= belongs to run(), for each conversation; {UNSENT}")
        decider: Any = _run_all if hooks is None else hooks
        self._loop_settings = LoopSettings(
            tools, dispatch, decider, approve, max_rounds, output=output, late=late, **options
        )
        check_arguments(sign=sign, verify=verify, drift=drift, on_progress=on_progress, lease=lease)
        check_parts(store, runner)
        if runner is None:
            runner = LocalRunner(self._loop_settings.dispatcher, options.get("executor"))
        review = hooks if isinstance(hooks, ToolHooks) else None
        telemetry = self._loop_settings.telemetry
        hooks_wait = has_async_hooks(decider)
        settings = RoundSettings(
            tools, runner, sign, verify, drift, hooks_wait, review, telemetry, late
        )
        super().__init__(store, settings)
        self._late = LateReader(tools, drift, review)
        self._llm = llm
        self._budget_for = budget_for
        self.has_events: bool = events
        self._on_progress = on_progress
        self._lease = lease
        check_max_attempts(max_attempts)
        self._max_attempts = max_attempts

    async def run(self, scope: str) -> RunResult[V]:
        """Go on with a conversation until the model has answered, a limit is reached, or a person
        has to decide; it returns then, and never sleeps.

        It may be called by any process, at any time, any number of times, and by several at once:
        one of them goes on. A conversation that is answered is asked nothing.

        Args:
            scope: The conversation's id in the store.

        Returns:
            `Answered`; `Waiting`, where calls are held for a person; `Taken`, where another process
            goes on with the conversation at this moment; `Stuck`, where its open round was taken up
            `max_attempts` times already.

        Raises:
            TakenOverError: another process took the conversation over while this one was going on.
                Nothing was lost: what was recorded is the other's.
            StoreError: the store has no such conversation.
            PlanError: a recorded plan can't be taken up (`drift`, `verify`); it stays as it is.
            BaseException: as `run_tools`, and what the store raises. The round stays open in the
                store, and the next run goes on with it. A cancelled run records what was running.
        """
        return await self._run(scope, in_thread=False)

    def run_sync(self, scope: str) -> RunResult[V]:
        """As `run`, in an event loop of its own (asyncio); requests go through the sync client, in
        a thread.

        Raises:
            RuntimeError: it was called inside a running event loop; nothing was sent.
        """
        refuse_running_loop(
            f"run_sync was called inside a running event loop: await run() there; {UNSENT}"
        )
        return anyio.run(partial(self._run, scope, in_thread=True))

    # --- one run -----------------------------------------------------------------------------

    async def _run(self, scope: str, *, in_thread: bool) -> RunResult[V]:
        outcome: RunResult[V] | None = None
        while True:
            claim = await self._store.claim(scope, lease=self._lease)
            if isinstance(claim, Taken):
                # In the second turn, whoever took it goes on with what came in.
                return claim if outcome is None else outcome
            stuck = await find_stuck(self._store, claim, self._max_attempts)
            if stuck is not None:
                if self.has_events:
                    await EventWriter(OpenConversation(self._store, claim)).give_up()
                return stuck
            outcome, seen = await self._go_on(claim, in_thread=in_thread)
            if not _has_more(await self._store.inbox(scope), outcome, seen):
                return outcome

    async def _go_on(
        self, claim: Claim, *, in_thread: bool
    ) -> tuple[Answered[V] | Waiting, frozenset[str]]:
        """Go on with a claimed conversation, and give it up on every way out."""
        conversation = OpenConversation(self._store, claim)
        conversation.late = self._late
        conversation.delivery_spans = DeliverySpans(self._settings.telemetry, claim.scope)
        writer = EventWriter(conversation) if self.has_events else None
        work = partial(self._work, conversation, claim.inbox, writer, in_thread=in_thread)
        status: Status | None = None
        failed: BaseException | None = None
        is_closing = is_stopped = False
        try:
            answered = await hold_while(conversation, work)
            status = "open" if answered.result.stopped_by == "paused" else "done"
            return answered, frozenset()
        except HeldForPerson as held:
            # Its log doesn't say that it waits where something has come: nor does its status.
            inbox = await self._store.inbox(claim.scope)
            status = "open" if _has_more(inbox, held.waiting, held.seen) else "waiting"
            conversation.claim = replace(conversation.claim, inbox=tuple(inbox))
            return held.waiting, held.seen
        except GeneratorExit:
            # Nothing can be awaited any more; the lease ends by itself.
            is_closing = True
            raise
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt) as error:
            is_stopped = RUN_BY.get(RunBy()).stops
            if writer is not None:
                await writer.fail(error)
            raise  # that is nobody's failure
        except BaseException as error:
            failed = error
            if writer is not None and not isinstance(error, TakenOverError):
                await writer.fail(error)
            raise
        finally:
            if not is_closing:
                await give_up(
                    conversation, status, failed, self._max_attempts, is_stopped=is_stopped
                )

    async def _work(
        self,
        conversation: OpenConversation,
        inbox: Sequence[InboxEntry],
        writer: EventWriter | None,
        *,
        in_thread: bool,
    ) -> Answered[V]:
        if not conversation.has_open_round:
            if conversation.open_calls:
                inbox = await self._poll(conversation, inbox)
            await conversation.take_messages(inbox)
        if not conversation.has_open_round and conversation.session.answered:
            last = _last_answer(conversation, self._loop_settings.output)
            if writer is not None:  # the process that committed it may have said nothing more
                await writer.add(LoopEnded(last.rounds, last.usage, last))
            return Answered(last)
        settings = self._loop_settings
        count_taken_up: Callable[[AssistantTurn], None] | None = None
        if self._budget_for is not None:
            budget = self._budget_for(conversation.scope)
            budget.count_session(conversation.session)
            # The answer of the open round isn't part of the session yet. A budget that all
            # conversations share has paid for what this process has asked, and for nothing else.
            count_taken_up = budget.count_turn
            settings = replace(settings, budget=budget)
        effects = DurableEffects(
            conversation,
            self._settings,
            writer,
            streams=hasattr(self._llm, "open_stream"),
            in_thread=in_thread,
            on_taken_up=count_taken_up,
            limit_calls=None if settings.budget is None else settings.budget.tool_call,
        )
        loop = Loop(
            conversation.session,
            settings.watched(self._llm),
            effects,
            settings,
            self._make_progress(writer),
            conversation.loop_counts(),
        )
        steps = loop.steps(is_open=conversation.has_open_round)
        telemetry = self._loop_settings.telemetry
        if telemetry is None:
            return Answered(await drive_async(steps))
        with telemetry.run(
            self._loop_settings.name,
            conversation=conversation.scope,
            earlier=conversation.recorded_trace(),
        ) as running:
            try:
                result = await drive_async(steps)
            except HeldForPerson as error:
                # A conversation that waits has not failed.
                held = error
                running.ended(loop.rounds, "waiting")
            else:
                running.ended(result.rounds, result.stopped_by)
                return Answered(result)
        raise held

    async def _poll(
        self, conversation: OpenConversation, inbox: Sequence[InboxEntry]
    ) -> Sequence[InboxEntry]:
        """Poll the open calls of committed rounds; gives the inbox, with what came."""
        toolset = self._settings.tools.__view__().toolset
        polled = [
            PolledCall(call, poller)
            for call in conversation.open_calls
            for poller in [poller_by_name(toolset, call.name)]
            if poller is not None
        ]
        if not polled:
            return inbox
        report = await self._settings.polls.poll(conversation, polled, holds=False)
        conversation.lost = frozenset(report.lost)
        return await self._store.inbox(conversation.scope)

    def _make_progress(
        self, writer: EventWriter | None
    ) -> Callable[[LoopEvent[Any]], Awaitable[None] | None] | None:
        """The callback for each step: notifies the store, and whoever asked for it."""
        own = cast("OnProgress[Any] | None", self._on_progress)
        if writer is None:
            return own

        async def tell(event: LoopEvent[Any]) -> None:
            await writer.add(event)
            returned = own(event) if own is not None else None
            if returned is not None:
                await returned

        return tell

    def __repr__(self) -> str:
        return f"<DurableLoop of {self._loop_settings.tools!r} on {self._store!r}>"


def _has_more(
    inbox: Sequence[InboxEntry], outcome: Answered[Any] | Waiting, seen: frozenset[str]
) -> bool:
    """Whether something came in that a run hasn't looked at, in its last moment."""
    if isinstance(outcome, Answered):
        return any(is_message(entry) or is_late(entry) for entry in inbox)
    if outcome.held:
        came = [entry for entry in inbox if is_decision(entry, outcome.digest)]
    else:
        came = [entry for entry in inbox if is_late(entry) or is_answer(entry)]
    return any(entry.id not in seen for entry in came)


def _run_all(call: BaseToolCall) -> ToolDecision[Any, Any]:
    """Decides nothing: where there are no hooks, there is a plan all the same."""
    return RunNormally()


def _last_answer(conversation: OpenConversation, output: Any) -> LoopResult[Any]:
    """How a conversation ended whose answer was committed before."""
    session, rounds = conversation.session, conversation.claim.counts.rounds
    asked = output is not None
    result = read_value(session.transcript, output) if asked else TurnResult(session.turns()[-1])
    ended: LoopResult[Any] = LoopResult.of_answer(result, rounds, Usage(), asked_for_value=asked)
    return ended.with_open_calls(session.open_calls)
