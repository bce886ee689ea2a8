"""The rules of Chat Completions about tools and tool choice, and about models that take no tools.

Sources: OpenAI's API description, and the refusals that users report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.custom_tools import check_format
from lutumpy.rules.openai.limits import MAX_DESCRIPTION, MAX_NAME, MAX_TOOLS
from lutumpy.rules.openai.schema import check_parameters
from lutumpy.rules.openai.shapes import (
    check_name,
    empty_array,
    is_official,
    long_array,
    missing,
    repeated,
    unknown,
    wrong_type,
    wrong_value,
)
from lutumpy.rules.problem import Problem, is_array, items, mapping, text

TOOL_TYPES = ("function", "custom")
CHOICES = ("none", "auto", "required")
ALLOWED_MODES = ("auto", "required")
CHOICE_TYPES = ("function", "allowed_tools", "custom")
NO_TOOLS_MODELS = ("gpt-6-astra",)
"""How the names of models begin that take no tools on this API."""
TOOLS_WITHOUT_REASONING_MODELS = ("gpt-5.6",)
"""How the names of models begin that take tools on this API only when they don't reason."""


def check_tools(body: Mapping[str, Any], model: str | None) -> list[Problem]:
    """The problems of a request's `tools`: each tool by itself, and names that two share.

    Args:
        body: The request, or just its `tools`.
        model: The request's model; a fine-tuned one takes less in a strict schema.
    """
    tools = body.get("tools")
    if tools is None:
        return []
    if not is_array(tools):
        return [wrong_type("chat.tools", "tools", "an array of objects", tools)]
    if not tools:
        return [empty_array("chat.tools_empty", "tools", "some")]
    found: list[Problem] = []
    # The tools are checked as well, so that one request shows everything that is wrong.
    if len(tools) > MAX_TOOLS:
        found.append(long_array("chat.tools_count", "tools", MAX_TOOLS, len(tools)))
    for index, tool in enumerate(tools):
        found += _check_tool(f"tools[{index}]", tool, model)
    return found + repeated("chat.tool_names", _declared_names(tools))


def _check_tool(where: str, tool: Any, model: str | None) -> list[Problem]:
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
    # Other hosts take more, as a mark for their prompt cache.
    outer = where.rpartition(".")[0]
    found += [
        unknown("chat.tool_keys", f"{outer}.{key}", "some")
        for key in tool
        if key not in ("type", kind)
    ]
    description = body.get("description")
    if description is not None and not isinstance(description, str):
        found.append(wrong_type("chat.tools", f"{where}.description", "a string", description))
    elif isinstance(description, str) and len(description) > MAX_DESCRIPTION:
        text = (
            f"The description has {len(description)} characters; "
            f"OpenAI documented {MAX_DESCRIPTION} as the most."
        )
        found.append(Problem("chat.tool_description", f"{where}.description", text, "discouraged"))
    # A custom tool takes free text or a grammar, and has no schema.
    if kind == "custom":
        return found + check_format("chat.tools", f"{where}.format", body.get("format"), "grammar")
    strict = body.get("strict")
    if strict is not None and not isinstance(strict, bool):
        found.append(wrong_type("chat.tools", f"{where}.strict", "a boolean", strict))
    parameters = body.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        return [*found, wrong_type("chat.tools", f"{where}.parameters", "an object", parameters)]
    return found + check_parameters(
        "chat",
        str(body.get("name")),
        parameters,
        f"{where}.parameters",
        strict=strict is True,
        model=model,
    )


def _declared_names(tools: Any) -> list[tuple[str, str]]:
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
    """The problems of a request's `tool_choice` and `parallel_tool_calls`."""
    found: list[Problem] = []
    has_tools = bool(items(body.get("tools")))
    # Without tools, both are refused in the same words.
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
    return found + _check_choice(choice, body)


def _check_choice(choice: Any, body: Mapping[str, Any]) -> list[Problem]:
    rule = "chat.tool_choice"
    if isinstance(choice, str):
        if choice in CHOICES:
            return []
        return [wrong_value(rule, "tool_choice", choice, CHOICES)]
    if not isinstance(choice, Mapping):
        return [wrong_type(rule, "tool_choice", "one of a string or object", choice)]
    kind = choice.get("type")
    if kind is None:
        return [missing(rule, "tool_choice.type")]
    if kind not in CHOICE_TYPES:
        return [wrong_value(rule, "tool_choice.type", kind, CHOICE_TYPES)]
    target = mapping(choice.get(kind))
    if target is None:
        return [missing(rule, f"tool_choice.{kind}")]
    if kind == "allowed_tools":
        return _check_allowed_tools(target, body)
    known = frozenset(name for _, name in _declared_names(body.get("tools")))
    return _check_chosen(f"tool_choice.{kind}.name", target.get("name"), known)


def _check_allowed_tools(target: Mapping[str, Any], body: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    mode = target.get("mode")
    where = "tool_choice.allowed_tools.mode"
    if mode is None:
        found.append(missing("chat.tool_choice", where))
    elif mode not in ALLOWED_MODES:
        found.append(wrong_value("chat.tool_choice", where, mode, ALLOWED_MODES))
    if not is_array(target.get("tools")):
        found.append(missing("chat.tool_choice", "tool_choice.allowed_tools.tools"))
    known = frozenset(name for _, name in _declared_names(body.get("tools")))
    for index, tool in enumerate(items(target.get("tools"))):
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        inner = mapping(tool.get(kind)) if isinstance(kind, str) else None
        name = None if inner is None else inner.get("name")
        where = f"tool_choice.allowed_tools.tools[{index}].{kind or 'function'}.name"
        found += _check_chosen(where, name, known)
    return found


def _check_chosen(where: str, name: Any, known: frozenset[str]) -> list[Problem]:
    """A chosen tool is declared; OpenAI's text still speaks of `functions` [probed]."""
    if name is None:
        return [missing("chat.tool_choice", where)]
    if not isinstance(name, str):
        return [wrong_type("chat.tool_choice", where, "a string", name)]
    if not known or name in known:  # without tools the choice itself is the problem
        return []
    message = (
        f"Invalid value for 'function_call': no function named '{name}' was specified in the "
        "'functions' parameter."
    )
    rule, param = "chat.tool_choice_unknown", "function_call"
    return [Problem(rule, where, message, "refused", param=param, tools=(name,))]


# ------------------------------------------------------------ what a model doesn't take


def check_model_limits(body: Mapping[str, Any], model: str | None) -> list[Problem]:
    """The problems of tools and of web search with a model that takes none [reported]."""
    if model is None:
        return []
    found: list[Problem] = []
    if body.get("web_search_options") is not None and is_official(model) and "search" not in model:
        message = "Web search options not supported with this model."
        rule, where = "chat.web_search_for_model", "web_search_options"
        found.append(Problem(rule, where, message, "refused", param=where))
    reasons = body.get("reasoning_effort") != "none"
    families = NO_TOOLS_MODELS + (TOOLS_WITHOUT_REASONING_MODELS if reasons else ())
    family = next((name for name in families if model.startswith(name)), None)
    if family is not None and items(body.get("tools")):
        message = (
            f"Function tools with reasoning_effort are not supported for {family} in "
            "/v1/chat/completions. To use function tools, use /v1/responses or set "
            "reasoning_effort to 'none'."
        )
        rule, param = "chat.tools_for_model", "reasoning_effort"
        found.append(Problem(rule, "tools", message, "refused", param=param))
    return found
