"""A typed toolset framework for LLM tool calling: the layer under a loop that you write.

Declare tools with `tool_fn` and `tool_input`, group them in a `Toolset`, offer them for a turn of a
`Session`; the answer is `Finished`, or a `ToolRound` of typed calls that your code executes and
commits. Adapters are in `lutumpy.adapters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.core.items import (
    AssistantTurn,
    FilePart,
    FoundTool,
    ImagePart,
    RawPart,
    TextPart,
    ToolMetadata,
    Usage,
)
from lutumpy.core.model import Model
from lutumpy.core.transcript import Transcript
from lutumpy.doors import find_name, homes_of
from lutumpy.errors import (
    AdapterError,
    CommitError,
    DeclarationError,
    DroppedRoundError,
    HookError,
    HookRegistrationError,
    InvalidArgumentsError,
    InvalidToolConstraints,
    LutumpyError,
    MalformedArgumentsError,
    PlanError,
    PrefixChangedError,
    RoundClosedError,
    StaleRoundError,
    TakenOverError,
    ToolError,
    ToolRoundArityError,
    TranscriptError,
    UnknownToolError,
)
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.offer import Offer
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.plan import ToolRoundPlan
from lutumpy.rounds.round import ToolRound
from lutumpy.session import Session
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import HandledTool, RejectedToolCall, ToolCall, ToolCallIssue
from lutumpy.tools.declare import ToolFn, tool_fn, tool_input
from lutumpy.tools.definition import ToolDef, ToolOptions
from lutumpy.tools.dynamic_group import DynamicGroup, dynamic
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import FunctionSelector, Selector
from lutumpy.tools.signature import Skip
from lutumpy.tools.tool import nested, tool
from lutumpy.toolset import NoTools, Toolset

if TYPE_CHECKING:
    from lutumpy.core.prefix import PrefixReport
    from lutumpy.core.streaming import (
        ReasoningDelta,
        RefusalDelta,
        Started,
        StreamDecoder,
        TextDelta,
    )
    from lutumpy.core.text_inputs import Lark, Regex
    from lutumpy.core.unset import UNSET
    from lutumpy.errors.later import Later
    from lutumpy.finder import FindTools, FoundTools, ToolFinder
    from lutumpy.hooks.decisions import Complete, Hold, Reject, RunNormally, ToolDecision
    from lutumpy.hooks.hook_set import HookSet, hook_slot
    from lutumpy.hooks.registry import hook_impl
    from lutumpy.rounds.events import (
        ApprovalRequested,
        Completed,
        InvalidToolCallDelta,
        ToolCallDelta,
        ToolCallIssueFound,
        ToolCallReady,
    )
    from lutumpy.rounds.output_schema import OutputSchema
    from lutumpy.tools.declare_text import TextToolFn, text_tool
    from lutumpy.tools.dynamic import DynamicTool
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput
    from lutumpy.tools.promised import OpenCall
    from lutumpy.tools.search import search_tools
    from lutumpy.tools.signing import Signer
    from lutumpy.tools.tickets import CallTicket
    from lutumpy.tools.tool_input import ToolInput

__version__ = "0.1.0"
"""The version of this library."""

__all__ = [
    "UNSET",
    "AdapterError",
    "ApprovalRequest",
    "ApprovalRequested",
    "AssistantTurn",
    "CallTicket",
    "CommitError",
    "Complete",
    "Completed",
    "DeclarationError",
    "DroppedRoundError",
    "DynamicGroup",
    "DynamicInput",
    "DynamicOutput",
    "DynamicTool",
    "FilePart",
    "FindTools",
    "Finished",
    "FoundTool",
    "FoundTools",
    "FunctionSelector",
    "HandledTool",
    "Hold",
    "HookError",
    "HookRegistrationError",
    "HookSet",
    "ImagePart",
    "InvalidArgumentsError",
    "InvalidToolCallDelta",
    "InvalidToolConstraints",
    "Lark",
    "Later",
    "LutumpyError",
    "MalformedArgumentsError",
    "Model",
    "NeedsTools",
    "NoTools",
    "Offer",
    "OpenCall",
    "OutputSchema",
    "PlanError",
    "PrefixChangedError",
    "PrefixReport",
    "RawPart",
    "ReasoningDelta",
    "RefusalDelta",
    "Regex",
    "Reject",
    "RejectedToolCall",
    "RoundClosedError",
    "RunNormally",
    "Selector",
    "Session",
    "Signer",
    "Skip",
    "StaleRoundError",
    "Started",
    "StreamDecoder",
    "TakenOverError",
    "TextDelta",
    "TextPart",
    "TextToolFn",
    "ToolAvailability",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallIssue",
    "ToolCallIssueFound",
    "ToolCallReady",
    "ToolDecision",
    "ToolDef",
    "ToolError",
    "ToolFinder",
    "ToolFn",
    "ToolInput",
    "ToolMetadata",
    "ToolOptions",
    "ToolRequirement",
    "ToolResult",
    "ToolRound",
    "ToolRoundArityError",
    "ToolRoundPlan",
    "Toolset",
    "Transcript",
    "TranscriptError",
    "TurnResult",
    "UnknownToolError",
    "Usage",
    "__version__",
    "dynamic",
    "hook_impl",
    "hook_slot",
    "nested",
    "search_tools",
    "text_tool",
    "tool",
    "tool_fn",
    "tool_input",
]

# What not every program needs is imported when somebody asks for it: streams, and what makes
# pydantic build a model.
_HOMES = homes_of(
    {
        "lutumpy.core.streaming": [
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
            "ToolCallDelta",
            "ToolCallIssueFound",
            "ToolCallReady",
        ],
        "lutumpy.core.prefix": ["PrefixReport"],
        "lutumpy.core.text_inputs": ["Lark", "Regex"],
        "lutumpy.core.unset": ["UNSET"],
        "lutumpy.errors.later": ["Later"],
        "lutumpy.rounds.output_schema": ["OutputSchema"],
        "lutumpy.tools.signing": ["Signer"],
        "lutumpy.hooks.decisions": ["Complete", "Hold", "Reject", "RunNormally", "ToolDecision"],
        "lutumpy.hooks.hook_set": ["HookSet", "hook_slot"],
        "lutumpy.hooks.registry": ["hook_impl"],
        "lutumpy.tools.declare_text": ["TextToolFn", "text_tool"],
        "lutumpy.finder": ["FindTools", "FoundTools", "ToolFinder"],
        "lutumpy.tools.dynamic": ["DynamicTool"],
        "lutumpy.tools.dynamic_values": ["DynamicInput", "DynamicOutput"],
        "lutumpy.tools.promised": ["OpenCall"],
        "lutumpy.tools.search": ["search_tools"],
        "lutumpy.tools.tickets": ["CallTicket"],
        "lutumpy.tools.tool_input": ["ToolInput"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
