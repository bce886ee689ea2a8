"""A typed toolset framework for LLM tool calling: the layer under a loop that you write.

Declare tools with `tool_fn` and `tool_input`, group them in a `Toolset`, offer them for a turn of a `Session`; the answer is
`Finished`, or a `ToolRound` of typed calls that your code executes and commits. Adapters are in `lutumpy.adapters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.core.costs import Unsettled
from lutumpy.core.items import (
    AssistantTurn,
    FilePart,
    FinishReason,
    ImagePart,
    Message,
    Part,
    ResultStatus,
    TextPart,
    ToolMetadata,
    ToolResults,
    Usage,
)
from lutumpy.core.model import Model, OutputSpec, StreamingModel, TurnOptions
from lutumpy.core.transcript import Transcript
from lutumpy.errors import (
    AdapterError,
    CommitError,
    CommitProblem,
    DeclarationError,
    DroppedRoundError,
    EmptyToolsetError,
    HookError,
    HookRegistrationError,
    InvalidArgumentsError,
    InvalidToolConstraints,
    LutumpyError,
    MalformedArgumentsError,
    RoundClosedError,
    StaleRoundError,
    ToolError,
    ToolRoundArityError,
    TranscriptError,
    UnknownToolError,
)
from lutumpy.hooks.decisions import Complete, Reject, RunNormally, ToolDecision
from lutumpy.hooks.hook_set import HookSet, hook_slot
from lutumpy.hooks.registry import hook_impl
from lutumpy.hooks.tool_hooks import ToolHooks
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.offer import Offer
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.plan import ToolRoundPlan
from lutumpy.rounds.round import ToolRound
from lutumpy.session import Session
from lutumpy.tools.calls import BaseToolCall, ToolCall, ToolCallIssue
from lutumpy.tools.declare import ToolFn, tool_fn, tool_input
from lutumpy.tools.definition import ToolDef, ToolOptions
from lutumpy.tools.results import HandledTool, RejectedToolCall, ToolResult
from lutumpy.tools.selectors import FunctionSelector, Selector
from lutumpy.tools.signature import Skip
from lutumpy.tools.tool import nested, tool
from lutumpy.tools.toolset import NoTools, Toolset

if TYPE_CHECKING:
    from lutumpy.core.streaming import (
        ReasoningDelta,
        RefusalDelta,
        Started,
        StreamDecoder,
        TextDelta,
    )
    from lutumpy.core.windows import TranscriptRound
    from lutumpy.doctor import Repair, apply_repairs, propose_repairs
    from lutumpy.doctor.check import check_messages
    from lutumpy.rounds.events import (
        Completed,
        InvalidToolCallDelta,
        StreamEvent,
        ToolCallDelta,
        ToolCallIssueFound,
        ToolCallReady,
    )
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.stream import TurnStream, TurnStreamSync
    from lutumpy.rules import Problem
    from lutumpy.tools.tool_input import ToolInput

__version__ = "0.1.0"
"""The version of this library."""

__all__ = [
    "AdapterError",
    "AssistantTurn",
    "BaseToolCall",
    "CommitError",
    "CommitProblem",
    "Complete",
    "Completed",
    "DeclarationError",
    "DroppedRoundError",
    "EmptyToolsetError",
    "FilePart",
    "FinishReason",
    "Finished",
    "FunctionSelector",
    "HandledTool",
    "HookError",
    "HookRegistrationError",
    "HookSet",
    "ImagePart",
    "InvalidArgumentsError",
    "InvalidToolCallDelta",
    "InvalidToolConstraints",
    "LutumpyError",
    "MalformedArgumentsError",
    "Message",
    "Model",
    "NeedsTools",
    "NoTools",
    "Offer",
    "OutputSpec",
    "Part",
    "Problem",
    "Reader",
    "ReasoningDelta",
    "RefusalDelta",
    "Reject",
    "RejectedToolCall",
    "Repair",
    "ResultStatus",
    "RoundClosedError",
    "RunNormally",
    "Selector",
    "Session",
    "Skip",
    "StaleRoundError",
    "Started",
    "StreamDecoder",
    "StreamEvent",
    "StreamingModel",
    "TextDelta",
    "TextPart",
    "ToolAvailability",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallIssue",
    "ToolCallIssueFound",
    "ToolCallReady",
    "ToolDecision",
    "ToolDef",
    "ToolError",
    "ToolFn",
    "ToolHooks",
    "ToolInput",
    "ToolMetadata",
    "ToolOptions",
    "ToolRequirement",
    "ToolResult",
    "ToolResults",
    "ToolRound",
    "ToolRoundArityError",
    "ToolRoundPlan",
    "Toolset",
    "Transcript",
    "TranscriptError",
    "TranscriptRound",
    "TurnOptions",
    "TurnResult",
    "TurnStream",
    "TurnStreamSync",
    "UnknownToolError",
    "Unsettled",
    "Usage",
    "__version__",
    "apply_repairs",
    "check_messages",
    "hook_impl",
    "hook_slot",
    "nested",
    "propose_repairs",
    "tool",
    "tool_fn",
    "tool_input",
]

# What not every program needs is imported when somebody asks for it: streams, the rules of the
# wires, and what makes pydantic build a model.
_LATER = {
    **dict.fromkeys(
        ["ReasoningDelta", "RefusalDelta", "Started", "StreamDecoder", "TextDelta"],
        "lutumpy.core.streaming",
    ),
    **dict.fromkeys(
        [
            "Completed",
            "InvalidToolCallDelta",
            "StreamEvent",
            "ToolCallDelta",
            "ToolCallIssueFound",
            "ToolCallReady",
        ],
        "lutumpy.rounds.events",
    ),
    "Problem": "lutumpy.rules",
    "Reader": "lutumpy.rounds.reader",
    "Repair": "lutumpy.doctor",
    "ToolInput": "lutumpy.tools.tool_input",
    "TranscriptRound": "lutumpy.core.windows",
    "TurnStream": "lutumpy.rounds.stream",
    "TurnStreamSync": "lutumpy.rounds.stream",
    "apply_repairs": "lutumpy.doctor",
    "check_messages": "lutumpy.doctor.check",
    "propose_repairs": "lutumpy.doctor",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
