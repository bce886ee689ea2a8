"""The plan: a round after its hooks have decided."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Generator, Iterable
from inspect import GEN_CLOSED, getgeneratorstate
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Union

from typing_extensions import TypeVar

from lutumpy.core.driving import is_async
from lutumpy.core.items import AssistantTurn, FinishReason, Usage
from lutumpy.errors import HookError, RoundClosedError
from lutumpy.hooks.changes import InputWatch
from lutumpy.hooks.decisions import UNCHANGED, RunNormally, ToolDecision
from lutumpy.hooks.implementations import label
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import (
    NOT_MET,
    UNDECIDED,
    Decision,
    Source,
    Step,
    chain_of,
    decide,
    drive_async,
    drive_sync,
    failed,
    refuse_async,
    snapshot,
    where,
)
from lutumpy.hooks.tool_hooks import ToolHooks
from lutumpy.rounds.audit import HookPass, Standing, as_data
from lutumpy.rounds.commit import Answer, OpenAnswer
from lutumpy.tools.arguments import Decoded, decode_arguments
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCallIssue
from lutumpy.tools.results import ToolResult

if TYPE_CHECKING:
    from lutumpy.rounds.target import Target

C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)

Policy: TypeAlias = Callable[
    [Any], Union[ToolDecision[Any, Any], Awaitable[ToolDecision[Any, Any]]]
]
Decider: TypeAlias = Union[ToolHooks[Any], Policy]


class Open(Generic[C_co]):
    """What a round and a plan have in common: an answer that is open until it is committed, discarded or handed over.

    open --apply_hooks()--> deciding --> handed over to a plan, which is open now
     |                         +--------> open again, when a hook raised
     +--commit()---> committed
     +--discard()--> discarded           (while hooks are deciding, too)
    """

    __slots__ = ("__weakref__", "_answer", "_deciding", "_token", "issues")

    issues: tuple[ToolCallIssue, ...]
    _what = "round"

    def __init__(self, answer: OpenAnswer, issues: tuple[ToolCallIssue, ...]) -> None:
        # Whether it holds its answer, and whether that was committed or discarded, only the answer knows: then a plan
        # takes the place of its round in one step (rule K3a).
        self._token = object()
        self._answer = answer
        # The run of hooks that is looking at its calls.
        self._deciding: Generator[Any, Any, Any] | None = None
        self.issues = issues
        if answer.holder is None:
            answer.holder = self._token

    @property
    def continue_suggestion(self) -> str | None:
        """Why another request is needed after the commit, when the library will answer issues; else `None`."""
        if not self.issues:
            return None
        listed = ", ".join([f"{i.metadata.name or 'unnamed'} ({i.reason})" for i in self.issues])
        return f"the model has to be told what was wrong with {len(self.issues)} of its calls: {listed}"

    @property
    def turn(self) -> AssistantTurn:
        """The decoded answer."""
        return self._answer.turn

    @property
    def text(self) -> str:
        """The text that the model wrote beside its calls."""
        return self._answer.turn.text

    @property
    def usage(self) -> Usage:
        """Tokens of this request."""
        return self._answer.turn.usage

    @property
    def finish_reason(self) -> FinishReason:
        """Why the model stopped."""
        return self._answer.turn.finish_reason

    @property
    def model(self) -> str | None:
        """The model's name as answered."""
        return self._answer.turn.model

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, where known."""
        return self._answer.turn.request_id

    async def apply_hooks(self, hooks: Decider) -> ToolRoundPlan[C_co]:
        """Let hooks decide every pending call, one after another in call order.

        Args:
            hooks: The toolset's registry, or a plain callable `call -> RunNormally | Complete | Reject`, sync or async.

        Returns:
            The plan that takes this one's place; this one is closed then.

        Raises:
            HookError: a hook raised, or decided something that doesn't fit; or hooks are being applied already. This one
                stays open, its inputs as they were: of a round, as decoded.
            RoundClosedError: it was committed, discarded or handed over before.
        """
        work, run = self._planned(hooks, sync=False)
        try:
            self._deciding = run
            return self._hand_over(await drive_async(run))
        except BaseException:
            work.restore()
            raise
        finally:
            self._deciding = None  # a run that never began would keep this object alive
            run.close()

    def apply_hooks_sync(self, hooks: Decider) -> ToolRoundPlan[C_co]:
        """As `apply_hooks`, without an event loop; an async hook is a `HookError` that names it."""
        work, run = self._planned(hooks, sync=True)
        try:
            self._deciding = run
            return self._hand_over(drive_sync(run))
        except BaseException:
            work.restore()
            raise
        finally:
            self._deciding = None  # a run that never began would keep this object alive
            run.close()

    def _planned(
        self, hooks: Decider, *, sync: bool
    ) -> tuple[Planning, Generator[Any, Any, ToolRoundPlan[C_co]]]:
        # Two runs at once would give their hooks the same inputs, and one would take back what the other has decided.
        self._check_decided("hooks can't be applied to it")
        work = Planning(self, hooks, sync=sync)
        return work, work.run()

    def _hand_over(self, plan: ToolRoundPlan[C_co]) -> ToolRoundPlan[C_co]:
        # Another task may have closed it while an async hook was waiting; then the new plan must not be a second way.
        if self._answer.attempt is not None:
            self._check_open()
        self._answer.holder = plan._token
        return plan

    def commit(self, target: Target, results: Iterable[Answer], *, rebase: bool = False) -> None:
        """Write the turn and one result for each call into the transcript, all or nothing.

        Args:
            target: The session or transcript that the answer was read against.
            results: One for each pending call, in any order; `HandledTool` and `RejectedToolCall` are taken as they are.
            rebase: Write at the end of a target that moved on since, if everything up to where the round began is there
                unchanged; reasoning signed over what came before is then left out.

        Raises:
            CommitError: the results don't answer the calls. It stays open.
            StaleRoundError: the target moved on, or is another one. It stays open.
            RoundClosedError: it was committed, discarded or handed over before.
            HookError: hooks are still deciding about its calls. It stays open.
        """
        self._check_decided("it can't be committed")
        self._answer.write(target, results, decided=self._decided(), rebase=rebase)

    def discard(self) -> None:
        """Drop the answer; the transcript stays as it is. Raises `RoundClosedError` when it was closed before."""
        self._check_open()
        self._answer.discard()

    def standing(self) -> list[Standing]:
        """Every call in the order of the answer, as it stands: the call while it is pending, its decision, or its issue."""
        return list(self._answer.entries)

    def _decided(self) -> dict[str, ToolResult] | None:
        return None

    @property
    def _closed(self) -> str | None:
        if self._answer.holder is not self._token:
            return "handed over to a plan"
        return self._answer.how_closed()

    def _check_open(self) -> None:
        if self._answer.holder is self._token and self._answer.attempt is None:
            return
        closed = self._closed
        if closed is not None:
            raise RoundClosedError(f"the {self._what} was {closed} before")

    def _check_decided(self, refused: str) -> None:
        """Raise unless it is open, and no hook is still looking at its calls."""
        if self._answer.holder is not self._token or self._answer.attempt is not None:
            self._check_open()
        # Asked of the run itself: a flag would stay behind where an exception cuts the run off.
        if self._deciding is not None and getgeneratorstate(self._deciding) != GEN_CLOSED:
            raise HookError(
                f"hooks are already deciding about the calls of this {self._what}, so {refused} now; "
                "wait for them; it is still open"
            )

    def __del__(self, _warn: Any = warnings.warn) -> None:
        # An exception in __init__ leaves the object without its fields.
        answer = getattr(self, "_answer", None)
        if answer is None or answer.holder is not self._token:
            return
        if answer.closed is not None or answer.how_closed() is not None:
            return
        calls = tuple([entry.metadata for entry in answer.entries])
        answer.origin.round_dropped(calls)
        names = ", ".join([call.name or "unnamed" for call in calls])
        _warn(
            f"a tool {self._what} was dropped without commit or discard, with the calls {names}",
            ResourceWarning,
            source=self,
        )


class ToolRoundPlan(Open[C_co]):
    """A round whose calls are decided: execute `pending`, then `commit` their results, or `discard` the plan.

    Attributes:
        pending: The calls to execute, edits applied, in the order of the answer.
        handled: Those that a hook answered.
        rejected: Those that a hook rejected, with reason and source.
        issues: Those that can't be executed; the library answers them at commit.
    """

    __slots__ = ("_passes", "_standing", "handled", "pending", "rejected")

    pending: tuple[C_co, ...]
    handled: tuple[HandledTool[Any, Any], ...]
    rejected: tuple[RejectedToolCall, ...]
    _what = "round plan"

    def __init__(
        self,
        answer: OpenAnswer,
        issues: tuple[ToolCallIssue, ...],
        standing: list[Standing],
        passes: tuple[HookPass, ...] = (),
    ) -> None:
        super().__init__(answer, issues)
        self._standing = standing
        self._passes = passes
        pending: Any = tuple([s for s in standing if isinstance(s, BaseToolCall)])
        self.pending = pending
        self.handled = self.rejected = ()
        if len(pending) + len(issues) < len(standing):
            decided = [s.decided for s in standing if isinstance(s, Decision)]
            self.handled = tuple([d for d in decided if isinstance(d, HandledTool)])
            self.rejected = tuple([d for d in decided if isinstance(d, RejectedToolCall)])

    def standing(self) -> list[Standing]:
        """Every call in the order of the answer, as it stands: the call while it is pending, its decision, or its issue."""
        return list(self._standing)

    def decisions(self) -> list[dict[str, Any]]:
        """Every call of the answer as data, in order, for logs and audits.

        Each has `call_id`, `tool`, `arguments` (as the model wrote them) and `decision`: `pending` (it will run as asked),
        `edited` (with another input), `handled`, `rejected` or `issue`. Where it fits there are

        - `input`: what will run, or what would have run when the decision fell, as JSON values;
        - `by`, `source`: the name of the hook that decided, `hook` or `policy`. For an edited call those that changed it,
          for a pending one those that let it pass; neither where no hook was asked;
        - `reason`: why it was rejected, or why it is an issue, which has a `detail` too;
        - `hooks`: where more than one was asked, each in order with `by`, `source` and `did`: `passed`, `edited`, `handled`
          or `rejected`. A change deep inside a value is put down to all that may have made it.

        Ask before the tools run: the input of a pending call is shown as it is when you ask.
        """
        entries = self._answer.entries
        return [as_data(*pair, self._passes) for pair in zip(entries, self._standing, strict=True)]

    def _decided(self) -> dict[str, ToolResult] | None:
        if not self.handled and not self.rejected:
            return None
        return {s.result.metadata.id: s.result for s in self._standing if isinstance(s, Decision)}

    def __repr__(self) -> str:
        counts = f"{len(self.pending)} pending, {len(self.handled)} handled, {len(self.rejected)} rejected"
        return f"<ToolRoundPlan {self._closed or 'open'}: {counts}, {len(self.issues)} issues>"


class Planning:
    """One run of hooks over an open round or plan."""

    __slots__ = ("_begun", "_hooks", "_source", "_sync")

    def __init__(self, source: Open[Any], hooks: Decider, *, sync: bool) -> None:
        self._source = source
        self._hooks = hooks
        self._sync = sync
        # The calls that hooks have been given, each with a copy of its input; `None` where that is as decoded.
        self._begun: list[tuple[BaseToolCall, Any]] = []

    def run(self) -> Generator[Any, Any, ToolRoundPlan[Any]]:
        """Decide every pending call; yields what has to be awaited."""
        hooks = self._hooks
        # A round's inputs can be decoded again; those of a plan carry what earlier hooks made of them.
        keep = isinstance(self._source, ToolRoundPlan)
        source: Source
        if isinstance(hooks, ToolHooks):
            self._check_toolset(hooks)
            chains, alone, source = hooks._chains_now(), None, "hook"
        elif callable(hooks):
            chains, alone, source = (
                {},
                chain_of([Step(hooks, label(hooks), is_async(hooks), "alone")]),
                "policy",
            )
        else:
            raise HookError(
                f"apply_hooks takes a registry or a callable, not {type(hooks).__name__}; the round is still open"
            )
        record = HookPass()
        record.source, record.chains, record.alone = source, chains, alone
        begun = record.begun = self._begun
        record.changed_by = {}
        loud = logger().isEnabledFor(INFO)
        standing = self._source.standing()
        if self._sync:
            for call in standing:
                if (
                    isinstance(call, BaseToolCall)
                    and (chain := alone or chains.get(call.metadata.name)) is not None
                ):
                    refuse_async(chain.steps, call.metadata)
        for index, call in enumerate(standing):
            if (
                not isinstance(call, BaseToolCall)
                or (chain := alone or chains.get(call.metadata.name)) is None
            ):
                continue
            begun.append((call, snapshot(call.input) if keep else None))
            # The common case, kept short: hooks look at every call, and change few.
            metadata, value = call.metadata, call.input
            passed, met = 0, NOT_MET
            # Of one hook alone it is found out later whether it changed the object in its hands (`rounds/audit.py`).
            watch = fields = None
            if len(chain.steps) > 1:
                fields = value.__dict__.copy()
            try:
                for function in () if loud else chain.quick:
                    decision = function(metadata, value)
                    if type(decision) is CoroutineType:
                        decision = yield decision
                    if type(decision) is not RunNormally or (
                        decision.input is not value and decision.input is not UNCHANGED
                    ):
                        met = decision
                        break
                    if fields is not None:
                        try:
                            same = value.__dict__ == fields
                        except Exception:  # other people's `__eq__`, of a field that was replaced
                            same = False
                        if not same:
                            watch = watch or InputWatch(fields)
                            watch.look(value, passed)
                            fields = value.__dict__.copy()
                    passed += 1
            except Exception as error:
                raise failed(where(chain.steps[passed], metadata), error, UNDECIDED) from error
            if passed < len(chain.steps):
                if fields is not None:
                    watch = watch or InputWatch(fields)
                standing[index] = yield from decide(
                    call, chain.steps, source, loud=loud, start=passed, met=met, watch=watch
                )
            if watch is not None and watch.changed_by:
                record.changed_by[metadata.id] = watch.changed_by
        earlier = self._source._passes if isinstance(self._source, ToolRoundPlan) else ()
        return ToolRoundPlan(
            self._source._answer, self._source.issues, standing, (*earlier, record)
        )

    def _check_toolset(self, hooks: ToolHooks[Any]) -> None:
        toolset = hooks._toolset
        for entry in self._source._answer.entries:
            if isinstance(entry, BaseToolCall) and entry.selector.toolset is not toolset:
                raise HookError(
                    f"{hooks!r} is no registry of {entry.selector.toolset.__name__}; the round is still open"
                )

    def restore(self) -> None:
        """Give every call that a hook has seen the input that it had before, whatever was done to the object."""
        for call, kept in self._begun:
            if kept is None:
                decoded = decode_arguments(call.tool, call.metadata.arguments)
                kept = decoded.input if isinstance(decoded, Decoded) else call.input
            call.input = kept
