"""What the table of APIs needs to know of Ollama's API: the shape of its requests, its signs, and
its checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.ollama.messages import PARAMETERS, WHERE, check_messages, check_request
from lutumpy.rules.ollama.parts import check_part
from lutumpy.rules.ollama.tool_settings import TOOL_SETTINGS
from lutumpy.rules.ollama.tools import check_tools
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs, one_of
from lutumpy.rules.written_out import written_out

__all__ = [
    "PARAMETERS",
    "PREFIX",
    "SHAPE",
    "SIGNS",
    "TOOL_SETTINGS",
    "check_history",
    "check_part",
    "check_request",
    "check_tools",
    "read_tool",
    "write_tool",
]

PREFIX = "ollama"
SHAPE = RequestShape(
    messages_key="messages",
    system_key=None,
    paths=("/api/chat",),
    host="ollama.com",
    position=WHERE,
    turn_form="object",
    calls_key="tool_calls",
    # Most calls have no id, so the adapter finds them by their places.
    call_id_key="",
    other_hosts=one_of("localhost 127.0.0.1 0.0.0.0"),
)
# Its documents are laid out as those of Chat Completions. What it has alone: parameters for
# sampling under `options`, images and thinking beside the content, arguments as objects, results
# that name their tool.
SIGNS = Signs(
    shares_layout=True,
    body_keys=frozenset("options keep_alive think format logprobs top_logprobs".split()),
    message_keys=frozenset("tool_calls tool_call_id tool_name images thinking".split()),
    message_forms=({"tool_calls": [{"function": {"arguments": Mapping}}]},),
    roles=frozenset({"tool"}),
    refused_roles=frozenset({"developer", "function"}),
    nests_tools=True,
    answers=({"message": Mapping, "done": bool},),
    events=({"message": Mapping, "done": False},),
    stream_marks=('"done":false', '"done": false'),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages breaks."""
    return check_messages(messages, tools=context.tools)


def read_tool(tool: Any) -> DeclaredTool | None:
    """The function that a request declares."""
    if not isinstance(tool, Mapping) or tool.get("type", "function") != "function":
        return None
    return DeclaredTool.read(tool.get("function"), "parameters")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """The function as a request declares it, with all that the server would keep from its model."""
    shown = replace(tool, schema=written_out(tool.schema))
    return {"type": "function", "function": shown.fields("parameters")}
