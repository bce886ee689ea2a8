"""What a round and a plan have in common: they are open until they are committed."""

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
from collections.abc import Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import Self, TypeVar

from lutumpy.core.items import AssistantTurn, FinishReason, Usage
from lutumpy.core.prefix import PrefixReport, report_of
from lutumpy.errors import HookError, RoundClosedError
from lutumpy.plain.driving import drive_async, is_at_work
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.target import Target
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue
from lutumpy.tools.results import ToolResult

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.hooks.audit import Run
    from lutumpy.hooks.pipeline import CallState
    from lutumpy.hooks.results import CallResult
    from lutumpy.hooks.run import Decider, HookRun
    from lutumpy.rounds.plan import ToolRoundPlan
    from lutumpy.tools.signing import Signer

__all__ = ["OpenRound"]

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

        The library answers issues, and the model has to see what was wrong.
        """
        if not self.issues:
            return None
        listed = ", ".join([f"{i.metadata.name or 'unnamed'} ({i.reason})" for i in self.issues])
        count = len(self.issues)
        return f"the model has to be told what was wrong with {count} of its calls: {listed}"

    def _repr_html_(self) -> str | None:
        from lutumpy.plain.notebooks import html_of

        return html_of(self)

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

    @property
    def prefix(self) -> PrefixReport:
        """What the request changed of what was sent before, and what that cost."""
        return report_of(self._answer.turn)

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
        from lutumpy.rounds.plan import ToolRoundPlan  # which is an open round itself

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
        from lutumpy.rounds.plan import ToolRoundPlan  # which is an open round itself

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

    def __copy__(self) -> Self:
        # One answer has one holder: a second one that is garbage-collected would count as dropped.
        return self

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
