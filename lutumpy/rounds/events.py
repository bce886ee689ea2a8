"""What a stream of a turn yields, typed by the toolset."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, Union

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.prefix import PrefixReport, report_of
from lutumpy.core.streaming import ReasoningDelta, RefusalDelta, Started, TextDelta
from lutumpy.plain.values import dataclass
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue

# The order of events:
#
#   Started                                      at most once, first
#   TextDelta, ReasoningDelta, RefusalDelta      in any order, as often as they arrive
#   for each call:
#     ToolCallDelta, or InvalidToolCallDelta     one for each piece of its arguments
#     ToolCallReady, or ToolCallIssueFound       once, when the call is complete
#   ApprovalRequested                            for a call of the provider's own; it comes whole
#   Completed                                    once, last; missing if the stream breaks off

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the arguments of a call.

    Attributes:
        id: The id of the call.
        name: The tool's name.
        arguments: The piece; the first one of a call may be empty.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class InvalidToolCallDelta:
    """A piece of the arguments of a call that will be an issue whatever follows.

    Its tool is unknown, or was not offered. The attributes are those of `ToolCallDelta`.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallReady(Generic[C_co]):
    """A call is complete and valid; the round has the same object at the end."""

    call: C_co


@dataclass(frozen=True, slots=True)
class ToolCallIssueFound:
    """A call is complete and can't be executed; the round has the same object at the end."""

    issue: ToolCallIssue


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The provider asks whether it may make a call; the round has the same object at the end."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class Completed:
    """The last event: the answer is whole, and `stream.outcome` is there."""

    turn: AssistantTurn

    @property
    def prefix(self) -> PrefixReport:
        """What the request changed of what was sent before, and what that cost."""
        return report_of(self.turn)


StreamEvent: TypeAlias = Union[
    Started,
    TextDelta,
    ReasoningDelta,
    RefusalDelta,
    ToolCallDelta,
    InvalidToolCallDelta,
    ToolCallReady[C],
    ToolCallIssueFound,
    ApprovalRequested,
    Completed,
]
"""What a stream yields, in the order in which it arrives."""

Event: TypeAlias = StreamEvent[Any]
