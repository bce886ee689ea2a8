"""A plan: a round whose calls hooks and people have decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar

from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.open_round import OpenRound
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import (
    ONLY_CALLS,
    BaseToolCall,
    HandledTool,
    RejectedToolCall,
    ToolCallIssue,
)
from lutumpy.tools.results import ToolResult
from lutumpy.tools.views import HasView, View

if TYPE_CHECKING:
    from lutumpy.hooks.audit import Run
    from lutumpy.hooks.decisions import ToolDecision
    from lutumpy.hooks.pipeline import CallState
    from lutumpy.rounds.resumed import Drift
    from lutumpy.tools.tickets import CallTicket

__all__ = ["ToolRoundPlan"]

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


class ToolRoundPlan(OpenRound[C_co]):
    """A round whose calls are decided: execute `pending` and `commit` their results, or `discard`.

    Plans come from `apply_hooks`, from `decide` of another plan, and from `resume` of a dump.

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
        pending: Any = states
        approvals: tuple[ApprovalRequest, ...] = ()
        held: Any = ()
        self.handled = self.rejected = ()
        # Most plans hold nothing but calls to execute, which is seen without a step for each.
        if not ONLY_CALLS.issuperset(map(type, states)):
            from lutumpy.hooks.pipeline import Decision, Held

            pending = [
                s for s in states if isinstance(s, BaseToolCall) and type(s) is not ApprovalRequest
            ]
            waiting = [s.call if isinstance(s, Held) else s for s in states]
            approvals = tuple([s for s in waiting if isinstance(s, ApprovalRequest)])
            held = [s.call for s in states if isinstance(s, Held)]
            decided = [s.decided for s in states if isinstance(s, Decision)]
            self.handled = tuple([d for d in decided if isinstance(d, HandledTool)])
            self.rejected = tuple([d for d in decided if isinstance(d, RejectedToolCall)])
        super().__init__(answer, issues, states, runs, approvals)
        self.pending = tuple(pending)
        self.held = ()
        if held:  # before Python 3.12, a comprehension is a function that is entered
            self.held = tuple([call for call in held if type(call) is not ApprovalRequest])

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
                `reject` makes them issues, so that the model sees that the tool changed.
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
            by: Who decided; it is in `decisions()` and in dumps, with the source `person`.

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
