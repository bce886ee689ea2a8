"""Tools and their choice as Chat Completions spells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.offer import (
    ToolKind,
    offer_key,
    text_description,
    tool_list,
    tools_beside,
)
from lutumpy.adapters.tool_lists import copy_nested_tools, listed_tools, refuse_tools
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import InvalidToolConstraints, Problem
from lutumpy.plain import json_values
from lutumpy.rules.openai.chat.tools import (
    NO_TOOLS_MODELS,
    TOOLS_WITHOUT_REASONING_MODELS,
    check_tools,
)
from lutumpy.rules.openai.custom_tools import takes_custom_tools
from lutumpy.rules.openai.tool_settings import CHAT_TOOL_SETTINGS

__all__ = [
    "API",
    "chat_tools",
    "check_model",
    "check_spelled",
    "choices_of",
    "spell_allowed",
    "spell_choice",
    "spell_text_tool",
    "spell_tool",
]

API = "openai_chat"


def chat_tools(
    offer: ToolOffering, strict: bool | None, custom_tools: bool | None
) -> list[dict[str, Any]]:
    """The `tools` of a request alone."""
    text_shape = spell_text_tool if takes_custom_tools(custom_tools, None) else None

    def make() -> list[dict[str, Any]]:
        return tool_list(
            offer, API, spell_tool, check_spelled, strict, text_shape, CHAT_TOOL_SETTINGS
        )

    return listed_tools(offer, offer_key(API, strict, text_shape), make, copy_nested_tools)


def spell_tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": spec.name, "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def spell_text_tool(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": spec.name, "format": {"type": "text"}}
    if description := text_description(spec):
        tool["description"] = description
    wanted = None if spec.text is None else spec.text.format
    if wanted is not None:
        grammar = {"syntax": wanted.syntax, "definition": wanted.definition}
        tool["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": "custom", "custom": tool}


def spell_choice(name: str, kind: ToolKind) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def choices_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of `extra` as a choice names them: by type and name [API description]."""
    found: list[dict[str, Any]] = []
    for tool in tools_beside(extra):
        kind = str(tool.get("type"))
        body = tool.get(kind)
        if isinstance(body, Mapping) and "name" in body:
            found.append({"type": kind, kind: {"name": body["name"]}})
    return found


def spell_allowed(mode: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    # Nested here, and flat in Responses [API description].
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def check_spelled(body: Mapping[str, Any]) -> list[Problem]:
    return check_tools(body, None)


def check_model(model: str, extra: Mapping[str, Any], fields: Mapping[str, bytes]) -> None:
    """Raise for tools that the model is known to refuse, before anything is sent (rule C9)."""
    if model.startswith(NO_TOOLS_MODELS):
        raise InvalidToolConstraints(
            f"{model} takes no tools on Chat Completions; use OpenAIResponses"
        )
    if model.startswith(TOOLS_WITHOUT_REASONING_MODELS) and extra.get("reasoning_effort") != "none":
        raise InvalidToolConstraints(
            f"{model} takes tools on Chat Completions only with "
            "extra={'reasoning_effort': 'none'}; use that, or OpenAIResponses"
        )
    if model.startswith("ft:"):
        refuse_tools(check_tools({"tools": json_values.decode(fields["tools"])}, model), "OpenAI")
