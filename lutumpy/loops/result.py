"""How a loop ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from lutumpy import AssistantTurn, LutumpyError, ToolResult, TurnResult, Usage
from lutumpy.plain.brief_repr import brief, brief_line
from lutumpy.plain.notebooks import html_of
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy import OpenCall

__all__ = ["LoopResult", "StoppedBy", "UncommittedRoundError", "stop_reason"]

V_co = TypeVar("V_co", default=None, covariant=True)
V = TypeVar("V")

StoppedBy = Literal[
    "answer",
    "no_value",
    "round_limit",
    "refusal",
    "length",
    "repeat",
    "budget",
    "paused",
    "open",
    "unknown",
]
"""Why a loop ended; see `LoopResult.stopped_by`."""


# What an answer without calls stops the loop by. Every other finish reason is an answer, but for
# those of `_DOUBTFUL`, which `stop_reason` looks at.
_STOPPED_BY_FINISH: Mapping[str, StoppedBy] = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "length": "length",
    "paused": "paused",
}
_DOUBTFUL = frozenset({"unknown", "tool_calls"})


@dataclass(frozen=True, slots=True)
class LoopResult(Generic[V_co]):
    """How a loop ended. The whole conversation is in the session.

    Attributes:
        text: What the model wrote in its last turn; may be empty where that turn called tools.
        rounds: How many rounds were committed.
        usage: Tokens of this loop alone: what the session has cost since the loop began.
        stopped_by: `answer`: the model answered. `no_value`: its answer has no value of the type
            that `output` asks for, and the loop has no retry left. `refusal`: it refused
            (`result.refusal`), or the provider filtered the answer. `length`: a limit cut the
            answer, mostly that of the output. `paused`: the provider paused its turn; another loop
            continues it. `open`: there is nothing more to answer until a result comes that a call
            has promised (`open_calls`): deliver it, and begin another loop.
            `unknown`: the provider gave no known reason, or announced a call that
            never came, and the answer has no text or broke off
            (`result.turn.provider_finish_reason` is its own word). `round_limit`, `repeat`,
            `budget`: a limit of the loop, with the last round committed and no answer yet.
        result: The finished answer, or `None` where one of the loop's own limits stopped it.
        value: The value of the answer, where `output` asked for one; `None` where there is none.
        value_error: Why there is none; else, and without `output`, `None`.
        open_calls: The calls whose results are still to come.
    """

    text: str
    rounds: int
    usage: Usage
    stopped_by: StoppedBy
    result: TurnResult[V_co] | None = field(default=None, repr=False)
    value: V_co | None = None
    value_error: str | None = None
    open_calls: tuple[OpenCall, ...] = field(default=(), repr=False)

    def with_open_calls(self, open_calls: tuple[OpenCall, ...]) -> LoopResult[V_co]:
        """The same with the calls that are open; an answer is stopped by them."""
        if not open_calls:
            return self
        stopped_by = "open" if self.stopped_by == "answer" else self.stopped_by
        return replace(self, stopped_by=stopped_by, open_calls=open_calls)

    @staticmethod
    def of_answer(
        result: TurnResult[V], rounds: int, usage: Usage, *, asked_for_value: bool = False
    ) -> LoopResult[V]:
        """How a loop ended whose model answered without calling a tool.

        Args:
            result: The answer.
            rounds: How many rounds were committed before it.
            usage: The tokens of the loop.
            asked_for_value: Whether the answer should have a value; see `stop_reason`.
        """
        stopped_by = stop_reason(result, asked_for_value=asked_for_value)
        value, error = result.value, result.value_error
        return LoopResult(result.text, rounds, usage, stopped_by, result, value, error)

    @staticmethod
    def without_answer(
        text: str, rounds: int, usage: Usage, limit: StoppedBy, *, asked_for_value: bool
    ) -> LoopResult[Any]:
        """How a loop ended whose model was not asked any more.

        Args:
            text: What the model wrote in its last turn.
            rounds: How many rounds were committed.
            usage: The tokens of the loop.
            limit: What stopped it.
            asked_for_value: Whether the answer should have a value.
        """
        error = f"the loop was stopped by its {limit} before the model had answered"
        return LoopResult(
            text, rounds, usage, limit, value_error=error if asked_for_value else None
        )

    def __repr__(self) -> str:
        value = "" if self.value is None else f"value={brief(self.value, 40)}"
        if self.value_error is not None:
            value = f"no value: {brief(self.value_error, 40)}"
        counts = f"{self.rounds} rounds {self.usage.total_tokens} tokens"
        return brief_line("LoopResult", self.stopped_by, brief(self.text, 30), counts, value)

    def _repr_html_(self) -> str | None:
        return html_of(self)


class UncommittedRoundError(LutumpyError, RuntimeError):
    """Tools ran, and their round could not be committed: meanwhile the session was changed.

    The session is as the others left it and can be used. The round is discarded, so this error
    alone has the results of what ran. Its `__cause__` says why the commit was refused.

    Attributes:
        turn: The model's answer that made the calls.
        results: One for each call that was to be run, in call order.
    """

    def __init__(self, turn: AssistantTurn, results: Sequence[ToolResult], reason: str) -> None:
        self.turn: AssistantTurn = turn
        self.results: tuple[ToolResult, ...] = tuple(results)
        self.reason: str = reason
        names = ", ".join([result.metadata.name for result in self.results]) or "no tool"
        super().__init__(
            f"a round that ran {names} could not be committed and was discarded, the session is "
            f"as it was; the results are in this error's `results`. The reason: {reason}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.turn, self.results, self.reason)


def stop_reason(result: TurnResult[Any], *, asked_for_value: bool = False) -> StoppedBy:
    """What an answer that needs no tool stopped the loop by.

    For an unknown finish reason, and for a call that was announced and never came, only a text that
    did not break off shows that the model has answered.

    Args:
        result: The answer.
        asked_for_value: Whether it should have a value. One that has a value is an answer, whatever
            its finish reason says.
    """
    if asked_for_value:
        if result.value_error is None:
            return "answer"
        known = _STOPPED_BY_FINISH.get(result.finish_reason)
        if result.refusal is not None:
            return "refusal"
        return known if known in ("refusal", "paused") else "no_value"
    is_whole = bool(result.text.strip()) and not result.turn.cut
    if result.finish_reason in _DOUBTFUL and not is_whole:
        return "unknown"
    return _STOPPED_BY_FINISH.get(result.finish_reason, "answer")
