"""What a loop is watched and paid by: `lutumpy.otel.Telemetry` and `lutumpy.budget.Budget`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from lutumpy import Model, Session, ToolAvailability, ToolRound, ToolRoundPlan
from lutumpy.execution import ExecutionResult
from lutumpy.hooks import BaseToolCall
from lutumpy.models import AssistantTurn

__all__ = ["LoopBudget", "LoopTelemetry", "RunningLoop"]


class RunningLoop(Protocol):
    """The span of a loop."""

    def ended(self, rounds: int, stopped_by: str, /) -> None:
        """The loop ends after so many rounds, by this; see `LoopResult.stopped_by`.

        A durable loop that waits for a person was stopped by `waiting`.
        """


class LoopTelemetry(Protocol):
    """What a loop is watched by.

    One that has `delivery` as well, as `lutumpy.otel.Telemetry`, is told of each late result that a
    `DurableLoop` delivers or takes.
    """

    def model(self, llm: Model, /) -> Model:
        """The model, watched."""
        ...

    def tool_call(
        self, call: BaseToolCall, attempt: int, /
    ) -> AbstractAsyncContextManager[Callable[[ExecutionResult], None]] | None:
        """What is entered around each attempt of each call; `None` for nothing."""
        ...

    def run(
        self,
        name: str = "",
        *,
        conversation: str | None = None,
        earlier: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[RunningLoop]:
        """What is entered around the loop."""
        ...

    def decisions(self, opened: ToolRound[Any] | ToolRoundPlan[Any], /) -> None:
        """The hooks have decided the calls of a round."""

    def committed(self, round: int, items: int, /) -> None:
        """A round was committed, and the conversation has so many items."""

    def carrier(self) -> Mapping[str, str]:
        """The current span as text, for `run` in another process."""
        ...


class LoopBudget(Protocol):
    """What a loop is paid from."""

    @property
    def used_up(self) -> bool:
        """Whether the next request would be refused."""
        ...

    def model(self, llm: Model, /) -> Model:
        """The model, paid from this; it raises `BudgetExceeded`."""
        ...

    def tool_call(self, call: BaseToolCall, attempt: int, /) -> AbstractAsyncContextManager[None]:
        """What is entered around each attempt of each call."""
        ...

    def available(
        self, toolset: Any, available: ToolAvailability[Any] | None = None, /
    ) -> ToolAvailability[Any]:
        """What may be offered, without the tools whose limit is used up."""
        ...

    def count_turn(self, turn: AssistantTurn, /) -> None:
        """Count an answer that was given to another process."""

    def count_session(self, session: Session, *, model: str | None = None) -> None:
        """Count what a conversation has cost in other processes."""
