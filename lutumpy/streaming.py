"""Answers as they arrive: events, readers, and what a model's stream is made of.

For programs that read streams of their own (`Offer.reader`) or write a model that streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of

if TYPE_CHECKING:
    from lutumpy.core.model import StreamingModel
    from lutumpy.core.streaming import (
        CallDelta,
        CallDone,
        ChunkStream,
        ChunkStreamSync,
        Delta,
        ReasoningDelta,
        RefusalDelta,
        Started,
        StreamDecoder,
        TextDelta,
    )
    from lutumpy.rounds.events import (
        ApprovalRequested,
        Completed,
        InvalidToolCallDelta,
        StreamEvent,
        ToolCallDelta,
        ToolCallIssueFound,
        ToolCallReady,
    )
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.stream import TurnStream, TurnStreamSync

__all__ = [
    "ApprovalRequested",
    "CallDelta",
    "CallDone",
    "ChunkStream",
    "ChunkStreamSync",
    "Completed",
    "Delta",
    "InvalidToolCallDelta",
    "Reader",
    "ReasoningDelta",
    "RefusalDelta",
    "Started",
    "StreamDecoder",
    "StreamEvent",
    "StreamingModel",
    "TextDelta",
    "ToolCallDelta",
    "ToolCallIssueFound",
    "ToolCallReady",
    "TurnStream",
    "TurnStreamSync",
]

_HOMES = homes_of(
    {
        "lutumpy.core.model": ["StreamingModel"],
        "lutumpy.core.streaming": [
            "CallDelta",
            "CallDone",
            "ChunkStream",
            "ChunkStreamSync",
            "Delta",
            "ReasoningDelta",
            "RefusalDelta",
            "Started",
            "StreamDecoder",
            "TextDelta",
        ],
        "lutumpy.rounds.events": [
            "ApprovalRequested",
            "Completed",
            "InvalidToolCallDelta",
            "StreamEvent",
            "ToolCallDelta",
            "ToolCallIssueFound",
            "ToolCallReady",
        ],
        "lutumpy.rounds.reader": ["Reader"],
        "lutumpy.rounds.stream": ["TurnStream", "TurnStreamSync"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
