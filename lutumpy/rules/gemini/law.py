"""What the table of APIs needs to know of generateContent: the shape of its requests, its signs,
and its checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.gemini.fields import field, key_of
from lutumpy.rules.gemini.messages import WHERE, check_messages, check_request, is_continued
from lutumpy.rules.gemini.parts import check_part
from lutumpy.rules.gemini.requests import PARAMETERS
from lutumpy.rules.gemini.tool_settings import TOOL_SETTINGS
from lutumpy.rules.gemini.tools import check_tools, declarations, tool_entries
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs

__all__ = [
    "PARAMETERS",
    "PREFIX",
    "SHAPE",
    "SIGNS",
    "TOKENS_OF_TOOLS",
    "TOOL_SETTINGS",
    "check_history",
    "check_part",
    "check_request",
    "check_tools",
    "read_tool",
    "read_tool_for_others",
    "tools_of",
    "write_tool",
    "write_tools",
]

PREFIX = "gemini"
# Fitted to the usage of recorded answers.
TOKENS_OF_TOOLS = (0.25, 10)
SHAPE = RequestShape(
    messages_key="contents",
    system_key="systemInstruction",
    other_system_keys=("system_instruction",),
    paths=(":generateContent", ":streamGenerateContent"),
    host="generativelanguage.googleapis.com",
    other_hosts=re.compile(r"(?:[a-z0-9-]+-)?aiplatform\.googleapis\.com"),
    model_path=re.compile(r"/(?:models|endpoints)/([^/:?]+):"),
    position=WHERE,
    turn_form="object",
    calls_key="parts",
    call_id_key="",
    is_continued=is_continued,
)
# Nobody else has a conversation under `contents`, so few signs are needed.
SIGNS = Signs(
    message_keys=frozenset({"parts"}),
    roles=frozenset({"model"}),
    refused_roles=frozenset({"assistant", "system", "developer", "tool", "function"}),
    models=re.compile(r"(?:models/|publishers/google/models/)?gemini-"),
    answers=(
        {"candidates": list},
        {"usageMetadata": Mapping},
        {"promptFeedback": Mapping},
        {"error": Mapping, "candidates": list},
    ),
    stream_marks=('"candidates"', '"usageMetadata"'),
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of contents, and a system instruction beside it, breaks."""
    found = check_messages(
        messages,
        context.system,
        tools=context.tools,
        model=context.model,
        held=context.server_held_prefix,
        compatible=context.compatible,
    )
    if context.move is not None:
        from lutumpy.rules.gemini.moves import check_move  # hosts are rare

        found += check_move(messages, context.move)
    return found


def read_tool(tool: Any) -> DeclaredTool | None:
    """The function that an entry of `tools` declares; `None` for the provider's own tools, and for
    an entry with several, which `tools_of` takes apart.
    """
    declared = declarations(tool) if isinstance(tool, Mapping) else []
    if len(declared) != 1 or not isinstance(declared[0], Mapping):
        return None
    (entry,) = declared
    schema = key_of(entry, "parametersJsonSchema")
    return DeclaredTool.read(entry, schema if schema in entry else "parameters")


def read_tool_for_others(tool: Any) -> DeclaredTool | None:
    """As `read_tool`, with the schema in JSON Schema, which other APIs take."""
    declared = read_tool(tool)
    if declared is None:
        return None
    from lutumpy.rules.gemini.json_schema import as_json_schema  # few programs convert tools

    (entry,) = declarations(tool)
    if key_of(entry, "parametersJsonSchema") in entry:
        return declared
    return replace(declared, schema=as_json_schema(declared.schema))


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """An entry with a function whose parameters are in JSON Schema."""
    return {"functionDeclarations": [tool.fields("parametersJsonSchema")]}


def tools_of(body: Mapping[str, Any]) -> list[Any] | None:
    """The tools of a request, each function in an entry of its own."""
    tools = field(body, "tools")
    if tools is None:
        return None
    found: list[Any] = []
    for entry in tool_entries(tools):
        declared = declarations(entry) if isinstance(entry, Mapping) else []
        if not declared:
            found.append(entry)
            continue
        key = key_of(entry, "functionDeclarations")
        found += [{key: [function]} for function in declared]
        others = {name: value for name, value in entry.items() if name != key}
        found += [others] if others else []
    return found


def write_tools(tools: Sequence[Any]) -> dict[str, Any]:
    """The fields of a request with tools: all functions in one entry, as the API is used to."""
    functions = declarations(tools)
    others: list[Any] = []
    for entry in tools:
        names = {key_of(entry, "functionDeclarations")} if isinstance(entry, Mapping) else set()
        rest = {k: v for k, v in entry.items() if k not in names} if names else entry
        others += [rest] if rest else []
    entries = [{"functionDeclarations": functions}] if functions else []
    return {"tools": [*entries, *others]}
