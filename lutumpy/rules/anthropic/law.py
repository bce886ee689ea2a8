"""What the table of APIs needs to know of Messages: the shape of its requests, its signs, and its
checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.errors import Problem
from lutumpy.rules.anthropic.messages import PARAMETERS, WHERE, check_messages, check_request
from lutumpy.rules.anthropic.parts import check_part
from lutumpy.rules.anthropic.requests import continues_thread
from lutumpy.rules.anthropic.tool_settings import TOOL_SETTINGS
from lutumpy.rules.anthropic.tools import check_tools
from lutumpy.rules.anthropic.wire import WIRE
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs, one_of
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
    "write_tool",
]

PREFIX = "anthropic"
STRICT = ANTHROPIC_STRICT
# Fitted to the usage of recorded answers. Anthropic adds instructions of its own as soon as there
# are tools.
TOKENS_OF_TOOLS = (0.25, 450)
SHAPE = RequestShape(
    messages_key="messages",
    system_key="system",
    paths=("/messages",),
    host="api.anthropic.com",
    position=WHERE,
    turn_form="list",
    is_continued=continues_thread,
)
# What Chat Completions refuses, or has under another name: both have their conversation under
# `messages`.
SIGNS = Signs(
    body_keys=frozenset(
        "system stop_sequences top_k thinking output_config anthropic_version anthropic_beta betas "
        "mcp_servers container context_management inference_geo".split()
    ),
    # Counting tokens needs no limit, but an answer does.
    required_keys=frozenset({"max_tokens"}),
    refused_roles=frozenset({"developer"}),
    refused_first_roles=frozenset({"system"}),
    part_types=one_of(
        "tool_use tool_result thinking redacted_thinking image document server_tool_use "
        "mcp_tool_use mcp_tool_result search_result container_upload compaction",
        "[a-z_]+_tool_result",
    ),
    tool_keys=frozenset({"input_schema"}),
    tool_types=one_of("", r".*_20\d{6}"),
    choice_types=frozenset({"auto", "any", "tool", "none"}),
    models=re.compile("claude-"),
    answers=({"type": "error", "error": Mapping}, {"type": "message", "stop_reason": object}),
    events=({"type": one_of("ping", "(message|content_block)_(start|delta|stop)")},),
    stream_marks=("event: message_start", '"type":"message_start"'),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages, and a system text beside it, breaks."""
    found = check_messages(
        messages,
        context.system,
        tools=context.tools,
        model=context.model,
        thinking=context.thinking,
        server_held_prefix=context.server_held_prefix,
        compatible=context.compatible,
    )
    if context.move is not None:
        from lutumpy.rules.anthropic.moves import check_move  # hosts are rare

        found += check_move(messages, context.move)
    return found


def reasoning_binding() -> ReasoningBinding:
    """How reasoning is bound to what comes before it."""
    from lutumpy.rules.anthropic.prefix import (
        reasoning_binding as make_binding,  # a test server's, and rare
    )

    return make_binding()


def read_tool(tool: Any) -> DeclaredTool | None:
    """The tool with an input schema that a request declares; `None` for the API's own."""
    if not isinstance(tool, Mapping) or tool.get("type", "custom") != "custom":
        return None
    return DeclaredTool.read(tool, "input_schema")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """A tool with an input schema, not strict."""
    return tool.fields("input_schema")
