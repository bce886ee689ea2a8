"""A conversation that took place, looked at again: judged with other tools and policies, or
continued from an earlier round with another model or prompt.

Nothing that it did is done again: what tools gave is taken from the record.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lutumpy import (
    Finished,
    Model,
    NeedsTools,
    RunNormally,
    Session,
    ToolAvailability,
    ToolRoundPlan,
    Toolset,
)
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.hooks import ToolHooks
from lutumpy.models import AssistantTurn, Item, Message, ResultBlock, ToolResults, Transcript
from lutumpy.plain import json_values, values
from lutumpy.testing.past_calls import CallDifference, PastRound, compare
from lutumpy.testing.past_results import PastResults

if TYPE_CHECKING:
    from lutumpy.durable import SessionStore

__all__ = ["CallDifference", "ForkedConversation", "PastConversation", "PastRound"]

Hooks: TypeAlias = "ToolHooks[Any] | Callable[[Any], Any] | None"


@values.dataclass(frozen=True, slots=True)
class ForkedConversation:
    """What came of a conversation that went on from an earlier round.

    Attributes:
        session: It, up to where it went. A round whose calls have no recorded results isn't in it.
        finished: Whether the model has given its last answer.
        missing: The calls that would have had to be run, as text; the fork ends before them.
        removed: The calls of the record that were not made again, as text, in order.
        added: The calls that were made in their place, in order; those of `missing` are the last.
    """

    session: Session
    finished: bool
    missing: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether other calls were made than in the record."""
        return bool(self.removed or self.added)

    def __str__(self) -> str:
        lines = [f"- {call}" for call in self.removed] + [f"+ {call}" for call in self.added]
        if self.missing:
            lines.append(f"ends before {', '.join(self.missing)}: no result of it is recorded")
        return "\n".join(lines) or "the same calls"


@dataclass(frozen=True)
class PastConversation:
    """A conversation that took place.

    Args:
        session: The conversation, as a `Session.load` of its dump gives it. It isn't changed.
    """

    session: Session
    _items: tuple[Item, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_items", tuple(self.session.transcript))

    def __repr__(self) -> str:
        return f"<PastConversation {len(self._items)} items, {len(self.rounds)} rounds>"

    @staticmethod
    def from_cassette(path: str | os.PathLike[str]) -> list[PastConversation]:
        """The conversations of a cassette: a request that goes on from an earlier one, with its
        answer, belongs to the same.

        Raises:
            CassetteError: the file can't be read.
            TranscriptError: a request isn't a valid history.
        """
        from lutumpy.testing.past_files import sessions_of_cassette

        return [PastConversation(session) for session in sessions_of_cassette(path)]

    @staticmethod
    async def from_store(store: SessionStore, scope: str) -> PastConversation:
        """A conversation of a store, as it was last committed. It isn't claimed, and goes on
        meanwhile.

        Raises:
            StoreError: the store doesn't have it.
        """
        return PastConversation(await store.session(scope))

    @property
    def rounds(self) -> tuple[PastRound, ...]:
        """The answers of the model, in order."""
        found: list[PastRound] = []
        for place, item in enumerate(self._items):
            if isinstance(item, AssistantTurn):
                behind = self._items[place + 1] if place + 1 < len(self._items) else None
                results = behind if isinstance(behind, ToolResults) else None
                found.append(PastRound(len(found) + 1, item, results))
        return tuple(found)

    def session_before(self, round: int, *, system: str | None = None) -> Session:
        """A new session as it was when the request of a round was made.

        Args:
            round: Its number, from 1; one more than there are, for the conversation as it ended.
            system: A system message in place of those that it began with.

        Raises:
            ValueError: there is no such round.
        """
        total = len(self.rounds)
        if not 1 <= round <= total + 1:
            raise ValueError(f"round is from 1 to {total + 1}, not {round}")
        transcript = Transcript()
        items = list(self._items)
        if system is not None:
            transcript.push_system(system)
            while items and isinstance(items[0], Message) and items[0].role != "user":
                del items[0]
        number = 0
        for place, item in enumerate(items):
            if isinstance(item, AssistantTurn):
                number += 1
                if number == round:
                    break
                behind = items[place + 1] if place + 1 < len(items) else None
                transcript.append_turn(item, behind if isinstance(behind, ToolResults) else None)
            elif isinstance(item, Message):
                transcript.append(item)
        return Session(transcript)

    # --- with other tools and policies, without a model ------------------------------------------

    async def judge(
        self, tools: type[Toolset[Any]], hooks: Hooks = None, *, at: int = 1
    ) -> list[CallDifference]:
        """Which of the recorded calls would fare otherwise with these tools and hooks.

        Hooks are asked; no tool is run and no model is asked.

        Args:
            tools: The toolset; tools that are off can be called, if they were.
            hooks: Its registry, or a policy; sync or async.
            at: The first round that is looked at, from 1.

        Raises:
            HookError: a hook failed.
        """
        return await _drive(self._judge(tools, hooks, at))

    def judge_sync(
        self, tools: type[Toolset[Any]], hooks: Hooks = None, *, at: int = 1
    ) -> list[CallDifference]:
        """The same without an event loop, with sync hooks."""
        return _drive_sync(self._judge(tools, hooks, at))

    def _judge(
        self, tools: type[Toolset[Any]], hooks: Hooks, at: int
    ) -> Generator[Step, Any, list[CallDifference]]:
        offer = tools.offer(available=ToolAvailability.all())
        found: list[CallDifference] = []
        for past in self.rounds[at - 1 :]:
            if past.results is None:
                continue
            session = self.session_before(past.number)
            outcome = offer.read(past.turn, session.transcript)
            if isinstance(outcome, NeedsTools):
                plan = yield from _planned(outcome, hooks)
                found += compare(past, outcome, plan)
                plan.discard()
        return found

    # --- from an earlier round, with a model -----------------------------------------------------

    async def fork(
        self,
        llm: Model,
        tools: type[Toolset[Any]],
        *,
        at: int = 1,
        system: str | None = None,
        hooks: Hooks = None,
        reads: Dispatcher[Any] | None = None,
        max_rounds: int = 15,
    ) -> ForkedConversation:
        """Go on from a round, with another model, prompt, toolset or policy.

        Calls get the results that equal calls (the same tool, equal arguments) have in the record:
        those of tools that only read (`effect="read"`) each time, any other one once. The fork ends
        before a call that has none, so nothing that has an effect is done again, or at all.

        Args:
            llm: Whom to ask.
            tools: The toolset.
            at: The first request that is made anew: that of this round, from 1.
            system: A system message in place of those that the conversation began with.
            hooks: The toolset's registry, or a policy.
            reads: Runs calls of tools that only read, where the record has no result for them.
            max_rounds: After this many new rounds it ends.

        Raises:
            AdapterError: a request failed. Otherwise as `Session.text_turn` and `apply_hooks`.
        """
        return await _drive(self._fork(llm, tools, at, system, hooks, reads, max_rounds))

    def fork_sync(
        self,
        llm: Model,
        tools: type[Toolset[Any]],
        *,
        at: int = 1,
        system: str | None = None,
        hooks: Hooks = None,
        reads: Dispatcher[Any] | None = None,
        max_rounds: int = 15,
    ) -> ForkedConversation:
        """The same without an event loop."""
        return _drive_sync(self._fork(llm, tools, at, system, hooks, reads, max_rounds))

    def _late_results(self) -> dict[str, ResultBlock]:
        messages = [item for item in self._items if isinstance(item, Message)]
        results = [message.late.result for message in messages if message.late is not None]
        return {result.call_id: result for result in results}

    def _fork(
        self,
        llm: Model,
        tools: type[Toolset[Any]],
        at: int,
        system: str | None,
        hooks: Hooks,
        reads: Dispatcher[Any] | None,
        max_rounds: int,
    ) -> Generator[Step, Any, ForkedConversation]:
        session = self.session_before(at, system=system)
        known = PastResults(self.rounds, self._late_results())
        now: list[str] = []
        missing: list[str] = []
        finished = False
        for _ in range(max_rounds):
            turn = session.text_turn(llm, tools=tools)
            outcome = yield turn.collect, turn.collect_sync
            if isinstance(outcome, Finished):
                finished = True
                break
            plan = yield from _planned(outcome, hooks)
            now += [_call_text(call["tool"], call["arguments"]) for call in plan.decisions()]
            try:
                results, unknown = known.take(plan.pending)
                if unknown and reads is not None and all(map(_reads_only, unknown)):
                    executor = ToolExecutor()
                    run = partial(executor.run, unknown, reads)
                    results += yield run, partial(executor.run_sync, unknown, reads)
                    unknown = []
                unknown += [*plan.held, *plan.approvals]
                if not unknown:
                    plan.commit(session, results)
            except BaseException:
                plan.discard()
                raise
            if not unknown:
                if session.transcript.waits and not known.deliver_late(session):
                    break
                continue
            plan.discard()
            missing = [_call_text(c.metadata.name, c.metadata.arguments) for c in unknown]
            break
        before = [
            _call_text(call.name, call.arguments)
            for past in self.rounds[at - 1 :]
            for call in past.turn.calls
        ]
        removed, added = _changes(before, now)
        return ForkedConversation(session, finished, tuple(missing), removed, added)


# --- the steps, with an event loop and without ----------------------------------------------------

Step: TypeAlias = "tuple[Callable[[], Awaitable[Any]], Callable[[], Any]]"

T = TypeVar("T")


async def _drive(steps: Generator[Step, Any, T]) -> T:
    try:
        step, _ = next(steps)
        while True:
            try:
                value = await step()
            except BaseException as error:
                step, _ = steps.throw(error)
            else:
                step, _ = steps.send(value)
    except StopIteration as ended:
        found: T = ended.value
        return found


def _drive_sync(steps: Generator[Step, Any, T]) -> T:
    try:
        _, step = next(steps)
        while True:
            try:
                value = step()
            except BaseException as error:
                _, step = steps.throw(error)
            else:
                _, step = steps.send(value)
    except StopIteration as ended:
        found: T = ended.value
        return found


def _planned(outcome: NeedsTools[Any], hooks: Hooks) -> Generator[Step, Any, ToolRoundPlan[Any]]:
    chosen: Any = _let_pass if hooks is None else hooks
    round = outcome.round
    try:
        plan: ToolRoundPlan[Any] = yield (
            partial(round.apply_hooks, chosen),
            partial(round.apply_hooks_sync, chosen),
        )
    except BaseException:
        round.discard()
        raise
    return plan


def _let_pass(call: Any) -> RunNormally[Any]:
    return RunNormally()


def _reads_only(call: Any) -> bool:
    return bool(call.selector.definition.options.effect == "read")


def _call_text(name: str, arguments: str) -> str:
    return f"{name}({json_values.canonical_arguments(arguments)})"


def _changes(before: list[str], after: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    removed: list[str] = []
    added: list[str] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            removed += before[i:j]
            added += after[k:m]
    return tuple(removed), tuple(added)
