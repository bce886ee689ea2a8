"""What the table of APIs needs to know of Converse: the shape of its requests, its signs, and its
checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.errors import Problem
from lutumpy.rules.bedrock.blocks import BLOB_KEYS
from lutumpy.rules.bedrock.messages import PARAMETERS, WHERE, check_messages, check_request
from lutumpy.rules.bedrock.parts import check_part
from lutumpy.rules.bedrock.tool_settings import TOOL_SETTINGS
from lutumpy.rules.bedrock.tools import check_tools
from lutumpy.rules.bedrock.wire import WIRE
from lutumpy.rules.problem import is_array, items, mapping
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs
from lutumpy.rules.strict import ANTHROPIC_STRICT

if TYPE_CHECKING:
    from lutumpy.rules.bound_blocks import ReasoningBinding

__all__ = [
    "PARAMETERS",
    "PREFIX",
    "SHAPE",
    "SIGNS",
    "STRICT",
    "TOKENS_OF_TOOLS",
    "TOOL_SETTINGS",
    "WIRE",
    "check_history",
    "check_part",
    "check_request",
    "check_tools",
    "read_tool",
    "reasoning_binding",
    "tools_of",
    "write_tool",
    "write_tools",
]

PREFIX = "converse"
# Only Claude takes strict tools here, so they have Claude's form.
STRICT = ANTHROPIC_STRICT
# Fitted to the usage of recorded answers of Claude, which adds instructions of its own as soon as
# there are tools.
TOKENS_OF_TOOLS = (0.25, 450)
SHAPE = RequestShape(
    messages_key="messages",
    system_key="system",
    paths=("/converse", "/converse-stream"),
    host="amazonaws.com",
    position=WHERE,
    turn_form="list",
    call_id_key="toolUse.toolUseId",
    model_path=re.compile(r"/model/([^/]+)/converse(?:-stream)?(?:\?|\Z)"),
    blob_keys=BLOB_KEYS,
)
# What other APIs with `messages` don't have: their contents are texts, or parts with a `type`.
SIGNS = Signs(
    body_keys=frozenset(
        "modelId inferenceConfig toolConfig guardrailConfig additionalModelRequestFields "
        "additionalModelResponseFieldPaths promptVariables performanceConfig outputConfig "
        "projectIdentifier requestMetadata serviceTier".split()
    ),
    refused_roles=frozenset({"developer", "tool"}),
    refused_first_roles=frozenset({"system"}),
    part_keys=frozenset(
        "toolUse toolResult cachePoint reasoningContent guardContent citationsContent searchResult "
        "toolAddition toolRemoval".split()
    ),
    types_parts=False,
    tool_keys=frozenset({"toolSpec", "systemTool"}),
    answers=({"output": Mapping, "stopReason": str},),
    events=tuple(
        [
            {name: Mapping}
            for name in (
                "messageStart contentBlockStart contentBlockDelta contentBlockStop messageStop"
            ).split()
        ]
    ),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages, and a system text beside it, breaks."""
    found = check_messages(
        messages,
        context.system,
        tools=context.tools,
        model=context.model,
        thinking=context.thinking,
        compatible=context.compatible,
    )
    if context.move is not None:
        from lutumpy.rules.bedrock.moves import check_move  # hosts are rare

        found += check_move(messages, context.move)
    return found


def tools_of(body: Mapping[str, Any]) -> list[Any] | None:
    """The tools of a request; `None` where it says nothing of them."""
    config = mapping(body.get("toolConfig"))
    tools = config.get("tools") if config is not None else None
    return [*items(tools)] if is_array(tools) else None


def write_tools(tools: list[Any]) -> dict[str, Any]:
    """The fields of a request with these tools."""
    return {"toolConfig": {"tools": tools}}


def reasoning_binding() -> ReasoningBinding:
    """How reasoning is bound to what comes before it."""
    # A test server's, and rare.
    from lutumpy.rules.bedrock.prefix import reasoning_binding as make_binding

    return make_binding()


def read_tool(tool: Any) -> DeclaredTool | None:
    """The tool with a schema that a request declares; `None` for the provider's own."""
    spec = mapping(tool.get("toolSpec")) if isinstance(tool, Mapping) else None
    if spec is None:
        return None
    holder = mapping(spec.get("inputSchema"))
    schema = holder.get("json") if holder is not None else None
    return DeclaredTool.read({**spec, "inputSchema": schema}, "inputSchema")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """A tool with a schema, not strict."""
    # A description that is empty is refused.
    spec = {"name": tool.name, "inputSchema": {"json": tool.schema}}
    if tool.description:
        spec["description"] = tool.description
    return {"toolSpec": spec}
