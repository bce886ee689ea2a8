"""What is open until it is committed: a round or a plan; and the plan, a round after hooks."""

#   open --apply_hooks()--> deciding --> handed over to a plan, which is open now
#    |                         +-------> open again: a hook raised
#    +--suspend()---> handed over to a dump, of which `resume` makes an open plan
#    +--commit()----> committed
#    +--discard()---> discarded        (while hooks are deciding, too)
#    +--(garbage)---> dropped          (a warning, and the next request is refused: rule C7a)
#
# Whether a round holds its answer, and whether that was committed or discarded, only the answer
# knows (`rounds/open_answer.py`): so a plan takes the place of its round in one step (rule K3a).

from __future__ import annotations

import warnings
from collections.abc import Coroutine, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn, FinishReason, Usage
from lutumpy.errors import HookError, RoundClosedError
from lutumpy.plain.driving import drive_async, is_at_work
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCallIssue
from lutumpy.tools.results import ToolResult
from lutumpy.tools.views import HasView, View

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.hooks.audit import Run
    from lutumpy.hooks.decisions import ToolDecision
    from lutumpy.hooks.pipeline import CallState
    from lutumpy.hooks.results import CallResult
    from lutumpy.hooks.run import Decider, HookRun
    from lutumpy.rounds.resumed import Drift
    from lutumpy.rounds.signing import Signer
    from lutumpy.tools.tickets import CallTicket

__all__ = ["OpenRound", "ToolRoundPlan"]

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)

# What runs hooks is imported where that is done: not every program has hooks.


class _Dump:
    """What holds an answer whose round was written down by `suspend`.

    Each call has its own: of two threads that suspend one round, the second finds another's.
    """

    __slots__ = ()


class OpenRound(Generic[C_co]):
    """What a round and a plan have in common: an answer that is open until it is closed.

    Attributes:
        approvals: Calls that the provider itself makes, if they are approved, in the order of the
            answer; each has to be answered by `approve()` or `reject(reason)`.
        issues: The calls that can't be executed, in the order of the answer.
    """

    __slots__ = (
        "__weakref__",
        "_answer",
        "_driver",
        "_runs",
        "_states",
        "_token",
        "approvals",
        "issues",
    )

    approvals: tuple[ApprovalRequest, ...]
    issues: tuple[ToolCallIssue, ...]
    _what = "round"

    def __init__(
        self,
        answer: OpenAnswer,
        issues: tuple[ToolCallIssue, ...],
        states: list[CallState],
        runs: tuple[Run, ...] = (),
        approvals: tuple[ApprovalRequest, ...] = (),
    ) -> None:
        # What the answer calls its holder by. It isn't the round itself: the answer would keep it
        # alive, and a dropped round couldn't be noticed.
        self._token = object()
        self._answer = answer
        # The state of every call, and the runs of hooks that brought it about.
        self._states = states
        self._runs = runs
        # What runs the hooks, or ran them last: a generator without an event loop, a coroutine in
        # one.
        self._driver: Generator[Any, Any, Any] | Coroutine[Any, Any, Any] | None = None
        self.approvals = approvals
        self.issues = issues
        answer.steps.setdefault(0, self._token)  # a plan takes the place of its round later

    @property
    def continue_suggestion(self) -> str | None:
        """Why another request is needed after the commit; `None` if there are no issues.

        The library answers issues, and the model has to be told what was wrong.
        """
        if not self.issues:
            return None
        listed = ", ".join([f"{i.metadata.name or 'unnamed'} ({i.reason})" for i in self.issues])
        count = len(self.issues)
        return f"the model has to be told what was wrong with {count} of its calls: {listed}"

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
        """The model's name as the provider reports it."""
        return self._answer.turn.model

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, where known."""
        return self._answer.turn.request_id

    async def apply_hooks(self, hooks: Decider) -> ToolRoundPlan[C_co]:
        """Let hooks decide every pending call, one after another in call order.

        Args:
            hooks: The toolset's registry; or a plain callable, sync or async, that takes the call
                and gives `RunNormally`, `Complete` or `Reject`.

        Returns:
            The plan that takes this one's place; this one is closed then.

        Raises:
            HookError: a hook raised, or decided something that doesn't fit; or hooks are being
                applied already. This one stays open, and its inputs are as they were before,
                whatever hooks did to the copies that they were shown.
            RoundClosedError: it was committed, discarded or handed over before.
        """
        run, steps = self._begin_run(hooks, sync=False)
        driver = self._driver = drive_async(steps)
        try:
            states = await driver
        finally:
            driver.close()  # an interrupt may have come before it was awaited
        runs = *self._runs, run
        plan: ToolRoundPlan[C_co] = ToolRoundPlan(self._answer, self.issues, states, runs)
        self._answer.hand_over(self._token, plan._token)
        return plan

    def apply_hooks_sync(self, hooks: Decider) -> ToolRoundPlan[C_co]:
        """As `apply_hooks`, without an event loop; an async hook is a `HookError` that names it."""
        from lutumpy.hooks.calling import drive_sync

        run, steps = self._begin_run(hooks, sync=True)
        self._driver = steps
        states = drive_sync(steps)
        runs = *self._runs, run
        plan: ToolRoundPlan[C_co] = ToolRoundPlan(self._answer, self.issues, states, runs)
        self._answer.hand_over(self._token, plan._token)
        return plan

    def _begin_run(
        self, hooks: Decider, *, sync: bool
    ) -> tuple[HookRun, Generator[Any, Any, list[CallState]]]:
        from lutumpy.hooks.run import HookRun

        # Two runs at once would give their hooks the same inputs, and one would take back what the
        # other has decided.
        self._check_undecided("hooks can't be applied to it")
        run = HookRun(hooks, self._answer.entries, as_decoded=not self._runs, sync=sync)
        return run, run.decide_calls(self._states)

    def commit(
        self, target: Target, results: Iterable[CallResult], *, rebase: bool = False
    ) -> None:
        """Write the turn and one result for each call into the transcript, all or nothing.

        Args:
            target: The session or transcript that the answer was read against.
            results: One for each pending call, in any order; `HandledTool` and `RejectedToolCall`
                are accepted too.
            rebase: Write at the end of a target that moved on since, if everything up to where the
                round began is there unchanged; reasoning that was signed for the old history is
                left out then.

        Raises:
            CommitError: the results don't answer the calls. It stays open.
            StaleRoundError: the target moved on, or is another one. It stays open.
            RoundClosedError: it was committed, discarded or handed over before.
            HookError: hooks are still deciding about its calls. It stays open.
        """
        self._check_undecided("it can't be committed")
        decided = self._decided_results()
        self._answer.write(target, results, holder=self._token, decided=decided, rebase=rebase)

    def discard(self) -> None:
        """Drop the answer; the transcript stays as it is.

        Raises:
            RoundClosedError: it was committed, discarded or handed over before.
        """
        self._check_open()
        self._answer.discard(self._token)

    def dump(self, *, scope: str, sign: Signer | None = None) -> dict[str, JsonValue]:
        """The round or plan as JSON values, to be shown or kept; this one stays open.

        It holds the model's answer, and of each call the input that was decided on, in full. It
        hides nothing: who must not see an input must not see the dump.

        Args:
            scope: The conversation's id, as for the executor. Idempotency keys are made with it.
            sign: Makes it tamper-evident to holders of the key.

        Raises:
            PlanError: `not_portable`: an input doesn't survive JSON (a secret, a serializer that
                leaves something out). It stays open.
            RoundClosedError: it was closed before.
            HookError: hooks are still deciding about its calls. It stays open.
        """
        from lutumpy.rounds.portable import dump_plan  # few programs keep their plans

        self._check_undecided("it can't be written down")
        dumped = dump_plan(self._answer, self._states, self._runs, scope, sign)
        self._answer.has_twin = True
        return dumped

    def suspend(self, *, scope: str, sign: Signer | None = None) -> dict[str, JsonValue]:
        """As `dump`, and the end of this object: `ToolRoundPlan.resume` goes on, here or elsewhere.

        The transcript keeps what it holds for the round. Nothing has to be committed or discarded
        any more, and there is no warning.

        Raises:
            PlanError: `not_portable`. It stays open.
            RoundClosedError: it was closed before.
            HookError: hooks are still deciding about its calls. It stays open.
        """
        data = self.dump(scope=scope, sign=sign)
        self._answer.hand_over(self._token, _Dump())
        return data

    def _decided_results(self) -> dict[str, ToolResult | None] | None:
        """The results of the calls that hooks have decided, by call id; `None` for held ones."""
        return None

    @property
    def _closed(self) -> str | None:
        holder = self._answer.holder
        if isinstance(holder, _Dump):
            return "handed over to a dump"
        if holder is not self._token:
            return "handed over to a plan"
        return self._answer.how_closed()

    def _check_open(self) -> None:
        steps = self._answer.steps
        if steps[len(steps) - 1] is self._token:
            return
        closed = self._closed
        if closed is not None:
            raise RoundClosedError(f"the {self._what} was {closed} before")

    def _check_undecided(self, refused: str) -> None:
        """Raise unless it is open, and no hook is still looking at its calls.

        Args:
            refused: What can't be done otherwise, for the error.
        """
        steps = self._answer.steps
        if steps[len(steps) - 1] is not self._token:
            self._check_open()
        if self._driver is not None and is_at_work(self._driver):
            raise HookError(
                f"hooks are already deciding about the calls of this {self._what}, "
                f"so {refused} now; wait for them; it is still open"
            )

    def __del__(self, _warn: Any = warnings.warn) -> None:
        # An exception in __init__ leaves the object without its fields.
        answer = getattr(self, "_answer", None)
        if answer is None or answer.closed is not None:
            return
        if answer.holder is not self._token or answer.how_closed() is not None:
            return
        calls = tuple([entry.metadata for entry in answer.entries])
        answer.transcript.round_dropped(calls)
        names = ", ".join([call.name or "unnamed" for call in calls])
        _warn(
            f"a tool {self._what} was dropped without commit or discard, with the calls {names}",
            ResourceWarning,
            source=self,
        )


class ToolRoundPlan(OpenRound[C_co]):
    """A round whose calls are decided: execute `pending` and `commit` their results, or `discard`.

    Plans are made by `apply_hooks`, by `decide` of another plan, and by `resume` of a dump.

    Attributes:
        pending: The calls to execute, edits applied, in the order of the answer.
        held: The calls that a hook wants a person to decide (`Hold`): `decide` says what becomes of
            them. Until then the plan can't be committed.
        approvals: The requests for approval that no hook has decided, held ones among them.
        handled: Those that a hook answered, requests for approval that it approved among them.
        rejected: Those that a hook rejected, with reason and source.
        issues: Those that can't be executed; the library answers them at commit.
    """

    __slots__ = ("handled", "held", "pending", "rejected")

    pending: tuple[C_co, ...]
    held: tuple[C_co, ...]
    handled: tuple[HandledTool[Any, Any], ...]
    rejected: tuple[RejectedToolCall, ...]
    _what = "round plan"

    def __init__(
        self,
        answer: OpenAnswer,
        issues: tuple[ToolCallIssue, ...],
        states: list[CallState],
        runs: tuple[Run, ...],
    ) -> None:
        # A loop: before Python 3.12, a comprehension is a function that is entered.
        pending: list[Any] = []
        for state in states:
            if isinstance(state, BaseToolCall) and type(state) is not ApprovalRequest:
                pending.append(state)  # noqa: PERF401
        approvals: tuple[ApprovalRequest, ...] = ()
        if len(pending) + len(issues) < len(states):
            from lutumpy.hooks.pipeline import Held

            waiting = [s.call if isinstance(s, Held) else s for s in states]
            approvals = tuple([s for s in waiting if isinstance(s, ApprovalRequest)])
        super().__init__(answer, issues, states, runs, approvals)
        self.pending = tuple(pending)
        self.held = self.handled = self.rejected = ()
        if len(pending) + len(issues) + len(approvals) < len(states):
            from lutumpy.hooks.pipeline import Decision, Held

            held: Any = [s.call for s in states if isinstance(s, Held)]
            self.held = tuple([call for call in held if type(call) is not ApprovalRequest])
            decided = [s.decided for s in states if isinstance(s, Decision)]
            self.handled = tuple([d for d in decided if isinstance(d, HandledTool)])
            self.rejected = tuple([d for d in decided if isinstance(d, RejectedToolCall)])

    @staticmethod
    def resume(
        data: Mapping[str, Any] | str | bytes,
        session: Target,
        *,
        tools: HasView[View[Any, C]],
        scope: str,
        verify: Mapping[str, bytes] | None = None,
        drift: Drift = "refuse",
        counted: bool = True,
    ) -> ToolRoundPlan[C]:
        """The plan of a dump, open against `session`.

        No hook is run and no model asked. Inputs are those that were dumped: the arguments are not
        decoded again. Items that were added to the session since don't matter here; `commit` needs
        `rebase=True` then.

        Args:
            data: The dump, or its JSON text.
            session: The session or transcript that the answer was read against, or one that was
                loaded from a dump of it.
            tools: The toolset.
            scope: The conversation's id, which must be that of the dump.
            verify: Keys by id. With it, a dump that is unsigned, or signed with another key, is
                refused. Without it, only accidents are noticed.
            drift: What becomes of calls whose tools are others now: `refuse` refuses the dump;
                `reject` makes them issues, so that the model is told that the tool changed.
            counted: Whether the session knows of the answer: what it cost, and that ephemeral
                messages have served. Not so in a session that was saved before the request.

        Raises:
            PlanError: it can't be taken up; `kind` says why. Nothing was loaded or run.
            ValueError: `drift` is neither of the two.
        """
        from lutumpy.rounds.resumed import load_plan

        transcript, toolset = transcript_of(session), tools.__view__().toolset
        loaded = load_plan(data, transcript, toolset, scope, verify, drift, counted=counted)
        plan: ToolRoundPlan[C] = ToolRoundPlan(*loaded)
        loaded.answer.receive()
        return plan

    def decide(
        self, decisions: Mapping[str, ToolDecision[Any, Any]], *, by: str
    ) -> ToolRoundPlan[C_co]:
        """Decide calls that are held, in place of the hooks that held them.

        Args:
            decisions: By call id. Calls that are left out stay held. A request for approval that is
                held takes `Complete(True)` or `Reject`.
            by: Who decided; it stands in `decisions()` and in dumps, with the source `person`.

        Returns:
            The plan that takes this one's place; this one is closed then.

        Raises:
            HookError: an id is unknown, its call isn't held, or a decision is a `Hold` or doesn't
                fit the tool. Nothing was decided; this one stays open.
            RoundClosedError: it was closed before.
        """
        self._check_undecided("people can't decide about it")
        from lutumpy.hooks.people import decide_held

        states, run = decide_held(self._states, decisions, by)
        runs = *self._runs, run
        plan: ToolRoundPlan[C_co] = ToolRoundPlan(self._answer, self.issues, states, runs)
        self._answer.hand_over(self._token, plan._token)
        return plan

    def tickets(self, *, scope: str) -> tuple[CallTicket, ...]:
        """One for each pending call, in call order: what another process needs to run it.

        Args:
            scope: The conversation's id, as for `dump`.

        Raises:
            PlanError: `not_portable`: an input doesn't survive JSON.
        """
        from lutumpy.rounds.portable import make_tickets

        return make_tickets(self.pending, scope)

    def decisions(self) -> list[dict[str, Any]]:
        """Every call of the answer as data, in order, for logs and audits.

        Each has `call_id`, `tool`, `arguments` (as the model wrote them) and `decision`: `pending`
        (it will run as asked), `edited` (with another input), `held`, `handled`, `rejected` or
        `issue`. A request for approval has a `server_label`, and is `pending`, `held`, `approved`
        or `rejected`.
        Where it fits there are

        - `input`: what will run, or what would have run when the decision was made, as JSON values;
        - `by`, `source`: the name of the hook or person that decided, and `hook`, `policy` or
          `person`. For an edited call
          those that changed it, for a pending one those that let it pass; neither where no hook was
          asked;
        - `reason`: why it was rejected or held, or why it is an issue, which has a `detail` too;
        - `hooks`: where more than one was asked, each in order with `by`, `source` and `did`:
          `passed`, `edited`, `held`, `handled` or `rejected`. A change deep inside a value is put
          down to all that may have made it.

        Ask before the tools run: the input of a pending call is shown as it is when you ask.
        """
        from lutumpy.hooks.audit import describe_call

        calls = zip(self._answer.entries, self._states, strict=True)
        return [describe_call(entry, state, self._runs) for entry, state in calls]

    def _decided_results(self) -> dict[str, ToolResult | None] | None:
        if not self.handled and not self.rejected and not self.held:
            return None
        from lutumpy.hooks.pipeline import Decision

        found: dict[str, ToolResult | None] = {call.metadata.id: None for call in self.held}
        for state in self._states:
            if isinstance(state, Decision):
                found[state.result.metadata.id] = state.result
        return found

    def __repr__(self) -> str:
        state = self._closed or "open"
        decided = f"{len(self.handled)} handled, {len(self.rejected)} rejected"
        if self.held:
            decided += f", {len(self.held)} held"
        counts = f"{len(self.pending)} pending, {decided}, {len(self.issues)} issues"
        return f"<ToolRoundPlan {state}: {counts}>"

    def _repr_html_(self) -> str | None:
        from lutumpy.plain.notebooks import html_of

        return html_of(self)
