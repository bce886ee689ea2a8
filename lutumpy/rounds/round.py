"""The round: the calls of one answer, and how they are answered."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

from lutumpy.errors import RoundClosedError, ToolRoundArityError
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.open_round import OpenRound
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import ONLY_CALLS, BaseToolCall, ToolCallIssue

__all__ = ["ToolRound"]

C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


class ToolRound(OpenRound[C_co]):
    """The calls of one answer: execute them and `commit` the results, or `discard` the round.

    Hooks may decide about the calls first (`apply_hooks`). The round is open until then. If it is
    garbage-collected while it is open, a `ResourceWarning` is emitted. Rounds come from reading
    an answer, as `ToolTurn.collect` and `Offer.read` do.

    Attributes:
        calls: The calls that can be executed, in the order of the answer.
        approvals: Those that the provider makes itself, if they are approved, in the order of the
            answer. They are not among `calls`: nothing here executes them.
        issues: Those that can't be executed, in the order of the answer; the library answers them
            at commit.
    """

    __slots__ = ("calls",)

    calls: tuple[C_co, ...]

    def __init__(self, answer: OpenAnswer) -> None:
        entries = answer.entries
        calls: Any = entries
        issues: tuple[ToolCallIssue, ...] = ()
        approvals: tuple[ApprovalRequest, ...] = ()
        # Most rounds hold nothing but calls, which is seen without a step for each.
        if not ONLY_CALLS.issuperset(map(type, entries)):
            calls = [
                e for e in entries if isinstance(e, BaseToolCall) and type(e) is not ApprovalRequest
            ]
            issues = tuple([e for e in entries if isinstance(e, ToolCallIssue)])
            approvals = tuple([e for e in entries if isinstance(e, ApprovalRequest)])
        super().__init__(answer, issues, [*entries], (), approvals)
        self.calls = tuple(calls)

    def expect_one(self) -> C_co:
        """The one call; issues don't count, since the library answers them.

        Raises:
            ToolRoundArityError: there are none, or several.
            RoundClosedError: it was handed over: a plan has the calls as hooks decided them.
        """
        self._check_held()
        if len(self.calls) != 1:
            raise self._arity_error("exactly one call")
        return self.calls[0]

    def expect_at_most_one(self) -> C_co | None:
        """The one call, or `None`.

        Raises:
            ToolRoundArityError: there are several.
            RoundClosedError: it was handed over: a plan has the calls as hooks decided them.
        """
        self._check_held()
        if len(self.calls) > 1:
            raise self._arity_error("at most one call")
        return self.calls[0] if self.calls else None

    def _check_held(self) -> None:
        if self._answer.holder is not self._token:
            raise RoundClosedError(f"the {self._what} was {self._closed} before")

    def _arity_error(self, expected: str) -> ToolRoundArityError:
        names = [call.metadata.name for call in self.calls]
        return ToolRoundArityError(expected, names, len(self.issues))

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_list

        names = brief_list([call.metadata.name for call in self.calls], 60)
        state = self._closed or "open"
        counts = f"{len(self.issues)} issues"
        if self.approvals:
            counts += f", {len(self.approvals)} to approve"
        return f"<ToolRound {state}: calls [{names}], {counts}>"
