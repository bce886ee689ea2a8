"""The Chat Completions rules about tools and tool choice, and what a model does not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai import schema as openai_schema
from lutumpy.rules.openai.shapes import (
    MAX_DESCRIPTION,
    MAX_TOOLS,
    check_name,
    empty_array,
    is_official,
    long_array,
    missing,
    repeated,
    wrong_type,
    wrong_value,
)
from lutumpy.rules.problem import Problem, is_array, items, mapping, text

MAX_NAME = 64
TOOL_TYPES = ("function", "custom")
CHOICES = ("none", "auto", "required")
ALLOWED_MODES = ("auto", "required")
CHOICE_TYPES = ("function", "allowed_tools", "custom")
NO_TOOLS_MODELS = ("gpt-6-astra",)
TOOLS_WITHOUT_REASONING_MODELS = ("gpt-5.6",)
"""Model families, by the start of their names, that take no tools, or take them only without reasoning."""


def check_tools(body: Mapping[str, Any], model: str | None) -> list[Problem]:
    tools = body.get("tools")
    if tools is None:
        return []
    if not is_array(tools):
        return [wrong_type("chat.tools", "tools", "an array of objects", tools)]
    if not tools:
        return [empty_array("chat.tools_empty", "tools", "some")]
    found = (
        [long_array("chat.tools_count", "tools", MAX_TOOLS, len(tools))]
        if len(tools) > MAX_TOOLS
        else []
    )
    for index, tool in enumerate(tools):
        found += _tool(f"tools[{index}]", tool, model)
    return found + repeated("chat.tool_names", _declared(tools))


def _tool(where: str, tool: Any, model: str | None) -> list[Problem]:
    if not isinstance(tool, Mapping):
        return [wrong_type("chat.tools", where, "an object", tool)]
    kind = tool.get("type")
    if kind is None:
        return [missing("chat.tools", f"{where}.type")]
    if kind not in TOOL_TYPES:
        return [wrong_value("chat.tools", f"{where}.type", kind, TOOL_TYPES)]
    where = f"{where}.{kind}"
    body = tool.get(kind)
    if body is None:
        return [missing("chat.tools", where)]
    if not isinstance(body, Mapping):
        return [wrong_type("chat.tools", where, "an object", body)]
    found = check_name("chat.tool_name", f"{where}.name", body.get("name"), MAX_NAME)
    description = body.get("description")
    if description is not None and not isinstance(description, str):
        found.append(wrong_type("chat.tools", f"{where}.description", "a string", description))
    elif isinstance(description, str) and len(description) > MAX_DESCRIPTION:
        text = f"The description has {len(description)} characters; OpenAI documented {MAX_DESCRIPTION} as the most."
        found.append(Problem("chat.tool_description", f"{where}.description", text, "discouraged"))
    if kind == "custom":
        return found
    strict = body.get("strict")
    if strict is not None and not isinstance(strict, bool):
        found.append(wrong_type("chat.tools", f"{where}.strict", "a boolean", strict))
    parameters = body.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        return [*found, wrong_type("chat.tools", f"{where}.parameters", "an object", parameters)]
    return found + openai_schema.check_parameters(
        "chat",
        str(body.get("name")),
        parameters,
        f"{where}.parameters",
        strict=strict is True,
        model=model,
    )


def _declared(tools: Any) -> list[tuple[str, str]]:
    """Position and name of each tool that has one."""
    found: list[tuple[str, str]] = []
    for index, tool in enumerate(items(tools)):
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        body = mapping(tool[kind]) if kind in TOOL_TYPES and kind in tool else None
        name = text(body.get("name")) if body is not None else None
        if name is not None:
            found.append((f"tools[{index}].{kind}.name", name))
    return found


def check_tool_choice(body: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    has_tools = bool(items(body.get("tools")))
    for key in ("tool_choice", "parallel_tool_calls"):
        if body.get(key) is not None and not has_tools:
            message = (
                f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified."
            )
            found.append(Problem(f"chat.{key}_needs_tools", key, message, "refused", param=key))
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        found.append(
            wrong_type("chat.parallel_tool_calls", "parallel_tool_calls", "a boolean", parallel)
        )
    choice = body.get("tool_choice")
    if choice is None:
        return found
    if isinstance(choice, str):
        return (
            found
            if choice in CHOICES
            else [*found, wrong_value("chat.tool_choice", "tool_choice", choice, CHOICES)]
        )
    if not isinstance(choice, Mapping):
        return [
            *found,
            wrong_type("chat.tool_choice", "tool_choice", "one of a string or object", choice),
        ]
    kind = choice.get("type")
    if kind is None:
        return [*found, missing("chat.tool_choice", "tool_choice.type")]
    if kind not in CHOICE_TYPES:
        return [*found, wrong_value("chat.tool_choice", "tool_choice.type", kind, CHOICE_TYPES)]
    target = mapping(choice.get(kind))
    if target is None:
        return [*found, missing("chat.tool_choice", f"tool_choice.{kind}")]
    if kind == "allowed_tools":
        return found + _allowed(target, body)
    known = frozenset(name for _, name in _declared(body.get("tools")))
    return found + _chosen(f"tool_choice.{kind}.name", target.get("name"), known)


def _allowed(target: Mapping[str, Any], body: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    mode = target.get("mode")
    if mode not in ALLOWED_MODES:
        where = "tool_choice.allowed_tools.mode"
        found.append(
            missing("chat.tool_choice", where)
            if mode is None
            else wrong_value("chat.tool_choice", where, mode, ALLOWED_MODES)
        )
    if not is_array(target.get("tools")):
        found.append(missing("chat.tool_choice", "tool_choice.allowed_tools.tools"))
    known = frozenset(name for _, name in _declared(body.get("tools")))
    for index, tool in enumerate(items(target.get("tools"))):
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        inner = mapping(tool.get(kind)) if isinstance(kind, str) else None
        name = None if inner is None else inner.get("name")
        where = f"tool_choice.allowed_tools.tools[{index}].{kind or 'function'}.name"
        found += _chosen(where, name, known)
    return found


def _chosen(where: str, name: Any, known: frozenset[str]) -> list[Problem]:
    """A chosen tool is declared; the message still speaks of `functions` [probed]."""
    if name is None:
        return [missing("chat.tool_choice", where)]
    if not isinstance(name, str):
        return [wrong_type("chat.tool_choice", where, "a string", name)]
    if not known or name in known:  # without tools the choice itself is the problem
        return []
    message = f"Invalid value for 'function_call': no function named '{name}' was specified in the 'functions' parameter."
    return [
        Problem(
            "chat.tool_choice_unknown",
            where,
            message,
            "refused",
            param="function_call",
            tools=(name,),
        )
    ]


# ------------------------------------------------------------ model limits


def check_model_limits(body: Mapping[str, Any], model: str | None) -> list[Problem]:
    if model is None:
        return []
    found: list[Problem] = []
    if body.get("web_search_options") is not None and is_official(model) and "search" not in model:
        message = "Web search options not supported with this model."
        found.append(
            Problem(
                "chat.web_search_for_model",
                "web_search_options",
                message,
                "refused",
                param="web_search_options",
            )
        )
    never = model.startswith(NO_TOOLS_MODELS)
    unless_none = (
        model.startswith(TOOLS_WITHOUT_REASONING_MODELS) and body.get("reasoning_effort") != "none"
    )
    if items(body.get("tools")) and (never or unless_none):
        family = next(
            name
            for name in NO_TOOLS_MODELS + TOOLS_WITHOUT_REASONING_MODELS
            if model.startswith(name)
        )
        message = (
            f"Function tools with reasoning_effort are not supported for {family} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
        found.append(
            Problem("chat.tools_for_model", "tools", message, "refused", param="reasoning_effort")
        )
    return found
