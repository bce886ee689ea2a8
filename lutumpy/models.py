"""For who writes a model or an adapter, or walks over what a transcript is made of.

A model is any object with the methods of `Model`: it is given a `Transcript`, a `ToolOffering` and
`TurnOptions`, and returns an `AssistantTurn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of

if TYPE_CHECKING:
    from lutumpy.core.dump_items import dump_item, dump_turn, load_item, load_turn
    from lutumpy.core.head import Head
    from lutumpy.core.items import (
        Api,
        AssistantTurn,
        Block,
        CallBlock,
        FilePart,
        FinishReason,
        FoundTool,
        ImagePart,
        Item,
        Message,
        OpaqueBlock,
        Part,
        RawPart,
        ReasoningBlock,
        RefusalBlock,
        ResultBlock,
        ResultStatus,
        Role,
        TextBlock,
        TextPart,
        ToolMetadata,
        ToolResults,
        Usage,
        Verbatim,
    )
    from lutumpy.core.model import (
        Model,
        StreamingModel,
        StructuredMode,
        TurnOptions,
        check_model,
        checked_structured,
    )
    from lutumpy.core.model_wrapper import ModelRequest, ModelWrapper, RequestWatch
    from lutumpy.core.output_spec import OutputSpec
    from lutumpy.core.prefix import DroppedReasoning, LeftOut, OnPrefixChange, PrefixReport
    from lutumpy.core.promises import LateReason, LateResult, Promise, PromisedCall
    from lutumpy.core.sdk_retries import collect_retries
    from lutumpy.core.text_inputs import TextFormat, TextInput
    from lutumpy.core.tool_specs import ToolOffering, ToolSpec
    from lutumpy.core.transcript import Transcript
    from lutumpy.core.turn_origin import TurnOrigin
    from lutumpy.core.turn_settings import KEPT, Kept, TurnSettings
    from lutumpy.core.windows import TranscriptRound
    from lutumpy.costs import Unsettled, costs_nothing, estimate_of, is_settled
    from lutumpy.rounds.committed_values import read_value
    from lutumpy.rounds.deliver import late_items
    from lutumpy.rounds.target import Target
    from lutumpy.rounds.turns import TextTurn, ToolTurn

__all__ = [
    "KEPT",
    "Api",
    "AssistantTurn",
    "Block",
    "CallBlock",
    "DroppedReasoning",
    "FilePart",
    "FinishReason",
    "FoundTool",
    "Head",
    "ImagePart",
    "Item",
    "Kept",
    "LateReason",
    "LateResult",
    "LeftOut",
    "Message",
    "Model",
    "ModelRequest",
    "ModelWrapper",
    "OnPrefixChange",
    "OpaqueBlock",
    "OutputSpec",
    "Part",
    "PrefixReport",
    "Promise",
    "PromisedCall",
    "RawPart",
    "ReasoningBlock",
    "RefusalBlock",
    "RequestWatch",
    "ResultBlock",
    "ResultStatus",
    "Role",
    "StreamingModel",
    "StructuredMode",
    "Target",
    "TextBlock",
    "TextFormat",
    "TextInput",
    "TextPart",
    "TextTurn",
    "ToolMetadata",
    "ToolOffering",
    "ToolResults",
    "ToolSpec",
    "ToolTurn",
    "Transcript",
    "TranscriptRound",
    "TurnOptions",
    "TurnOrigin",
    "TurnSettings",
    "Unsettled",
    "Usage",
    "Verbatim",
    "check_model",
    "checked_structured",
    "collect_retries",
    "costs_nothing",
    "dump_item",
    "dump_turn",
    "estimate_of",
    "is_settled",
    "late_items",
    "load_item",
    "load_turn",
    "read_value",
]

_HOMES = homes_of(
    {
        "lutumpy.costs": ["Unsettled", "costs_nothing", "estimate_of", "is_settled"],
        "lutumpy.core.dump_items": ["dump_item", "dump_turn", "load_item", "load_turn"],
        "lutumpy.core.head": ["Head"],
        "lutumpy.core.items": [
            "Api",
            "AssistantTurn",
            "Block",
            "CallBlock",
            "FilePart",
            "FinishReason",
            "FoundTool",
            "ImagePart",
            "Item",
            "Message",
            "OpaqueBlock",
            "Part",
            "RawPart",
            "ReasoningBlock",
            "RefusalBlock",
            "ResultBlock",
            "ResultStatus",
            "Role",
            "TextBlock",
            "TextPart",
            "ToolMetadata",
            "ToolResults",
            "Usage",
            "Verbatim",
        ],
        "lutumpy.core.model": [
            "Model",
            "StreamingModel",
            "StructuredMode",
            "TurnOptions",
            "check_model",
            "checked_structured",
        ],
        "lutumpy.core.model_wrapper": ["ModelRequest", "ModelWrapper", "RequestWatch"],
        "lutumpy.core.output_spec": ["OutputSpec"],
        "lutumpy.core.sdk_retries": ["collect_retries"],
        "lutumpy.core.prefix": [
            "DroppedReasoning",
            "LeftOut",
            "OnPrefixChange",
            "PrefixReport",
        ],
        "lutumpy.core.promises": ["LateReason", "LateResult", "Promise", "PromisedCall"],
        "lutumpy.core.text_inputs": ["TextFormat", "TextInput"],
        "lutumpy.core.tool_specs": ["ToolOffering", "ToolSpec"],
        "lutumpy.core.transcript": ["Transcript"],
        "lutumpy.core.turn_origin": ["TurnOrigin"],
        "lutumpy.core.turn_settings": ["KEPT", "Kept", "TurnSettings"],
        "lutumpy.core.windows": ["TranscriptRound"],
        "lutumpy.rounds.committed_values": ["read_value"],
        "lutumpy.rounds.deliver": ["late_items"],
        "lutumpy.rounds.target": ["Target"],
        "lutumpy.rounds.turns": ["TextTurn", "ToolTurn"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
