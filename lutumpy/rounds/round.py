"""The round: what one answer asks for, and the way to answer it."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

from lutumpy.errors import ToolRoundArityError
from lutumpy.rounds.commit import OpenAnswer
from lutumpy.rounds.plan import Open
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue

C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


class ToolRound(Open[C_co]):
    """The calls of one answer. Execute them, then `commit` the results; or let hooks decide first; or `discard` the round.

    It is open until then; a round that is dropped open gives a `ResourceWarning`.

    Attributes:
        calls: The calls that can be executed, in the order of the answer.
        issues: Those that can't, in the order of the answer; the library answers them at commit.
    """

    __slots__ = ("calls",)

    calls: tuple[C_co, ...]

    def __init__(self, answer: OpenAnswer) -> None:
        entries = answer.entries
        calls: Any = tuple([e for e in entries if isinstance(e, BaseToolCall)])
        whole = len(calls) == len(entries)
        super().__init__(
            answer, () if whole else tuple([e for e in entries if isinstance(e, ToolCallIssue)])
        )
        self.calls = calls

    def expect_one(self) -> C_co:
        """The one call; raises `ToolRoundArityError` for any other number. Issues don't count: the library answers them."""
        if len(self.calls) != 1:
            raise self._arity("exactly one call")
        return self.calls[0]

    def expect_at_most_one(self) -> C_co | None:
        """The one call, or `None`; raises `ToolRoundArityError` when there are more."""
        if len(self.calls) > 1:
            raise self._arity("at most one call")
        return self.calls[0] if self.calls else None

    def _arity(self, expected: str) -> ToolRoundArityError:
        return ToolRoundArityError(
            expected, [c.metadata.name for c in self.calls], len(self.issues)
        )

    def __repr__(self) -> str:
        names = ", ".join([c.metadata.name for c in self.calls])
        return f"<ToolRound {self._closed or 'open'}: calls [{names}], {len(self.issues)} issues>"
