"""What a turn came to: tools are needed, or it is finished."""

from __future__ import annotations

from dataclasses import field
from typing import Generic

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn, FinishReason, Usage
from lutumpy.core.prefix import PrefixReport, report_of
from lutumpy.errors import RoundClosedError, StaleRoundError
from lutumpy.plain.values import dataclass
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.round import ToolRound
from lutumpy.rounds.target import Target
from lutumpy.tools.calls import BaseToolCall

__all__ = ["Finished", "NeedsTools", "TurnResult"]

# What was asked for            the answer calls tools      it doesn't
# ----------------------------  --------------------------  ------------------------------------
# `collect`, tools offered      `NeedsTools`, open round    `Finished`, in the session
# `collect`, no tools           the `TurnResult`; calls     the `TurnResult`, in the session
#                               are answered as issues
# `collect_staged`              as above                    `Finished`, open until `commit`

V_co = TypeVar("V_co", default=None, covariant=True)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


@dataclass(frozen=True, slots=True)
class TurnResult(Generic[V_co]):
    """A finished answer.

    Attributes:
        turn: The answer, as it was decoded.
        value: The typed value of a structured turn, else `None`.
        value_error: Why a structured turn has no value, else `None`.
    """

    turn: AssistantTurn
    value: V_co | None = None
    value_error: str | None = None

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line

        turn, value = self.turn, ""
        if self.value is not None:
            value = f"value={brief(self.value, 40)}"
        elif self.value_error is not None:
            value = f"no value: {brief(self.value_error, 40)}"
        tokens = f"{turn.usage.total_tokens} tokens"
        return brief_line("TurnResult", turn.finish_reason, brief(turn.text, 40), tokens, value)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.turn.text

    @property
    def reasoning(self) -> str | None:
        """The readable reasoning, or `None`."""
        return self.turn.reasoning

    @property
    def refusal(self) -> str | None:
        """The model's refusal in its words, or `None`."""
        return self.turn.refusal

    @property
    def finish_reason(self) -> FinishReason:
        """Why the model stopped."""
        return self.turn.finish_reason

    @property
    def provider_finish_reason(self) -> str | None:
        """The same in the provider's own word."""
        return self.turn.provider_finish_reason

    @property
    def usage(self) -> Usage:
        """Tokens of this request."""
        return self.turn.usage

    @property
    def model(self) -> str | None:
        """The model's name as the provider reports it."""
        return self.turn.model

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, where known."""
        return self.turn.request_id

    @property
    def prefix(self) -> PrefixReport:
        """What the request changed of what was sent before, and what that cost."""
        return report_of(self.turn)


@dataclass(frozen=True, slots=True)
class Finished(Generic[V_co]):
    """The model answered without calling a tool.

    Attributes:
        result: The answer. It is in the session already, unless the turn was collected with
            `collect_staged`.
    """

    result: TurnResult[V_co]
    # The answer while it is staged: finished, and not in the transcript yet.
    _staged: OpenAnswer | None = field(default=None, repr=False, compare=False)

    def commit(self, target: Target) -> None:
        """Write a staged answer into its session.

        Raises:
            RoundClosedError: it is there already, or was discarded.
            StaleRoundError: the session moved on since the request; the answer is in `.result`.
        """
        answer = self._open_answer()
        try:
            answer.write(target, ())
        except StaleRoundError as error:
            raise StaleRoundError(str(error), self.result) from None

    def discard(self) -> None:
        """Drop a staged answer; the session stays as it is.

        Raises:
            RoundClosedError: it is in the session already, or was discarded.
        """
        self._open_answer().discard()

    def _open_answer(self) -> OpenAnswer:
        if self._staged is None:
            raise RoundClosedError(
                "the answer is in the session already; only collect_staged() leaves that to you"
            )
        closed = self._staged.how_closed()
        if closed is not None:
            raise RoundClosedError(f"the answer was {closed} before")
        return self._staged


@dataclass(frozen=True, slots=True)
class NeedsTools(Generic[C_co]):
    """The model called tools. Nothing is in the session until the round is committed.

    Attributes:
        round: The calls, typed, and what the model got wrong.
    """

    round: ToolRound[C_co]
