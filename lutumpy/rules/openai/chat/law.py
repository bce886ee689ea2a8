"""What the table of APIs needs to know of Chat Completions: the shape of its requests, its signs,
and its checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.messages import PARAMETERS, WHERE, check_messages, check_request
from lutumpy.rules.openai.chat.parts import check_part
from lutumpy.rules.openai.chat.tools import check_tools as check_openai_tools
from lutumpy.rules.openai.tool_settings import CHAT_TOOL_SETTINGS
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs, one_of
from lutumpy.rules.strict import OPENAI_STRICT

__all__ = [
    "PARAMETERS",
    "PREFIX",
    "SHAPE",
    "SIGNS",
    "STRICT",
    "TOKENS_OF_TOOLS",
    "TOOL_SETTINGS",
    "check_history",
    "check_part",
    "check_request",
    "check_tools",
    "read_tool",
    "write_tool",
]

PREFIX = "chat"
STRICT = OPENAI_STRICT
TOOL_SETTINGS = CHAT_TOOL_SETTINGS
TEXT_TOOLS = True
# Fitted to the usage of recorded answers. OpenAI shows its models a shorter spelling than the JSON.
TOKENS_OF_TOOLS = (0.15, 10)
SHAPE = RequestShape(
    messages_key="messages",
    system_key=None,
    paths=("/chat/completions",),
    host="api.openai.com",
    position=WHERE,
    turn_form="object",
    calls_key="tool_calls",
)
# What Messages refuses, or has under another name: both have their conversation under `messages`.
SIGNS = Signs(
    body_keys=frozenset(
        "frequency_penalty presence_penalty response_format n logprobs top_logprobs logit_bias "
        "stream_options parallel_tool_calls max_completion_tokens reasoning_effort seed stop "
        "modalities audio functions function_call prediction web_search_options verbosity store "
        "prompt_cache_key reasoning".split()
    ),
    message_keys=frozenset(
        "tool_calls tool_call_id function_call refusal audio reasoning reasoning_content "
        "reasoning_details annotations".split()
    ),
    roles=frozenset({"tool", "function"}),
    part_types=one_of("image_url input_audio file refusal video_url"),
    nests_tools=True,
    choice_types=frozenset({"function", "custom", "allowed_tools"}),
    choice_is_word=True,
    models=re.compile(r"gpt-|chatgpt-|o\d"),
    answers=({"choices": list},),
    events=({"object": "chat.completion.chunk"}, {"choices": [{"delta": object}]}),
    stream_marks=('"chat.completion.chunk"', '"choices"'),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages breaks."""
    found = check_messages(
        messages, tools=context.tools, model=context.model, compatible=context.compatible
    )
    if context.move is None:
        return found
    from lutumpy.rules.openai.chat.host_fields import check_move  # the table of hosts is rare

    return check_move(messages, context.move, found)


def read_tool(tool: Any) -> DeclaredTool | None:
    """The function tool that a request declares; `None` for any other."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return None
    return DeclaredTool.read(tool.get("function"), "parameters")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """A function tool, not strict."""
    return {"type": "function", "function": tool.fields("parameters")}


def check_tools(tools: list[Any]) -> list[Problem]:
    """Every rule that the `tools` of a request break."""
    return check_openai_tools({"tools": tools}, None)
