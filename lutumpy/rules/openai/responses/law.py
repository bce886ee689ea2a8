"""What the table of APIs needs to know of Responses: the shape of its requests, its signs, and its
checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.errors import Problem
from lutumpy.rules.openai.models import takes_instructions_per_turn
from lutumpy.rules.openai.responses.items import PARAMETERS, WHERE, check_messages, check_request
from lutumpy.rules.openai.responses.parts import check_part
from lutumpy.rules.openai.responses.sequence import find_open_calls
from lutumpy.rules.openai.responses.tools import check_tools as check_openai_tools
from lutumpy.rules.openai.tool_settings import RESPONSES_TOOL_SETTINGS
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs, one_of
from lutumpy.rules.strict import OPENAI_STRICT

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
    "caches_system",
    "check_history",
    "check_part",
    "check_request",
    "check_tools",
    "find_open_calls",
    "read_tool",
    "reasoning_binding",
    "write_tool",
]


def _is_continued(body: Mapping[str, Any]) -> bool:
    return any(body.get(key) is not None for key in ("previous_response_id", "conversation"))


PREFIX = "responses"
STRICT = OPENAI_STRICT
TOOL_SETTINGS = RESPONSES_TOOL_SETTINGS
TEXT_TOOLS = True
# Fitted to the usage of recorded answers. OpenAI shows its models a shorter spelling than the JSON.
TOKENS_OF_TOOLS = (0.15, 10)
SHAPE = RequestShape(
    messages_key="input",
    system_key="instructions",
    paths=("/responses",),
    host="api.openai.com",
    position=WHERE,
    turn_form="list",
    call_id_key="call_id",
    text_is_message=True,
    is_continued=_is_continued,
)
SIGNS = Signs(
    resuming_keys=frozenset({"previous_response_id", "prompt", "conversation"}),
    item_types=one_of(
        "message reasoning item_reference compaction program program_output additional_tools",
        r"[a-z_]+_call(_output)?",
        r"[a-z_]+_(output|approval_request|approval_response)",
        r"mcp_\w+",
    ),
    part_types=one_of("input_text output_text input_image input_file summary_text"),
    # Items have types of their own, and a message may be among them as Chat spells it.
    outweighs=True,
    answers=({"object": "response", "output": object},),
    events=({"type": re.compile(r"response\.")},),
    stream_marks=('"type":"response.', "event: response."),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of input items breaks."""
    found = check_messages(
        messages,
        tools=context.tools,
        server_held_prefix=context.server_held_prefix,
        compatible=context.compatible,
    )
    if context.move is not None:
        from lutumpy.rules.openai.responses.moves import check_move  # hosts are rare

        found += check_move(messages, context.move)
    return found


def reasoning_binding() -> ReasoningBinding:
    """How reasoning is bound to what comes before it."""
    from lutumpy.rules.openai.responses.prefix import (
        reasoning_binding as make_binding,  # a test server's, and rare
    )

    return make_binding()


def caches_system(model: Any) -> bool:
    """Whether `instructions` are at the beginning of what a model reads; later ones read them
    behind the input.
    """
    return not takes_instructions_per_turn(model if isinstance(model, str) else None)


def read_tool(tool: Any) -> DeclaredTool | None:
    """The function tool that a request declares; `None` for any other."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return None
    return DeclaredTool.read(tool, "parameters")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """A function tool, not strict: the API takes one that doesn't say for a strict one."""
    return {"type": "function", **tool.fields("parameters"), "strict": False}


def check_tools(tools: list[Any]) -> list[Problem]:
    """Every rule that the `tools` of a request break."""
    return check_openai_tools({"tools": tools})
