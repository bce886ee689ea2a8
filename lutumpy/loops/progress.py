"""The steps of a running loop, as values: for progress displays, logs and tests."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Generic, TypeAlias, Union

from typing_extensions import TypeVar

from lutumpy import (
    ApprovalRequest,
    AssistantTurn,
    HandledTool,
    RejectedToolCall,
    ToolCallIssue,
    ToolResult,
    Usage,
)
from lutumpy.hooks import BaseToolCall
from lutumpy.loops.result import LoopResult
from lutumpy.plain.values import dataclass

__all__ = [
    "LoopEnded",
    "LoopEvent",
    "RequestStarted",
    "RoundCommitted",
    "RoundDecoded",
    "RoundExecuted",
    "RoundPlanned",
]

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request is about to be sent.

    Attributes:
        round: The number that its round will have if it calls tools, from 1.
        usage: Tokens of this loop so far.
    """

    round: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class RoundDecoded(Generic[C_co]):
    """The model called tools; hooks have not decided yet.

    Attributes:
        round: The number of the round, from 1.
        usage: Tokens of this loop so far.
        calls: The calls that can be executed.
        issues: Those that can't; the library answers them.
        text: What the model wrote beside them.
        approvals: Calls that the provider makes itself, if they are approved.
        turn: The whole answer, with all of that in the model's order.
    """

    round: int
    usage: Usage
    calls: tuple[C_co, ...]
    issues: tuple[ToolCallIssue, ...]
    text: str
    approvals: tuple[ApprovalRequest, ...] = ()
    turn: AssistantTurn | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RoundPlanned(Generic[C_co]):
    """The hooks have decided; the pending calls are about to run.

    Attributes:
        round: The number of the round, from 1.
        usage: Tokens of this loop so far.
        pending: The calls that will run, edits applied.
        handled: Those that a hook answered.
        rejected: Those that a hook rejected.
        approvals: The requests for approval that no hook has decided; the loop's `approve` is
            asked about them next.
        held: Those that wait for a person: nothing runs before that. Only the log of a durable loop
            has them.
        issues: Those that can't be executed; the library answers them.
    """

    round: int
    usage: Usage
    pending: tuple[C_co, ...]
    handled: tuple[HandledTool[Any, Any], ...]
    rejected: tuple[RejectedToolCall, ...]
    approvals: tuple[ApprovalRequest, ...] = ()
    held: tuple[BaseToolCall, ...] = ()
    issues: tuple[ToolCallIssue, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundExecuted:
    """The pending calls have run; their results are about to be committed.

    Attributes:
        round: The number of the round, from 1.
        usage: Tokens of this loop so far.
        results: One for each pending call, in call order, as the result hooks left them.
    """

    round: int
    usage: Usage
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class RoundCommitted:
    """The turn and the results of all its calls are in the session.

    Attributes:
        round: The number of the round, from 1.
        usage: Tokens of this loop so far.
    """

    round: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """The last event: the loop returns `result` now. A loop that ends in an error has none.

    Attributes:
        rounds: How many rounds were committed.
        usage: Tokens of this loop.
        result: What the loop returns.
    """

    rounds: int
    usage: Usage
    result: LoopResult[Any]


LoopEvent: TypeAlias = Union[
    RequestStarted, RoundDecoded[C], RoundPlanned[C], RoundExecuted, RoundCommitted, LoopEnded
]
"""What `on_progress` is called with, step by step."""
