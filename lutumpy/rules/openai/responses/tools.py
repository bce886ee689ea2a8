"""The rules of Responses about tools and tool choice.

Sources: OpenAI's API description, recorded exchanges, and the refusals that users report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.rules.openai.custom_tools import check_format
from lutumpy.rules.openai.limits import MAX_DESCRIPTION, MAX_NAME, MAX_TOOLS
from lutumpy.rules.openai.models import refuses_allowed_appended
from lutumpy.rules.openai.responses.limits import MAX_DECLARED_NAME
from lutumpy.rules.openai.schema import check_parameters
from lutumpy.rules.openai.shapes import (
    check_name,
    long_array,
    long_string,
    missing,
    repeated,
    unknown,
    wrong_type,
    wrong_value,
)
from lutumpy.rules.problem import Problem, is_array, items, mapping, text

TOOL_TYPES = (
    "apply_patch code_interpreter computer computer_use computer_use_preview custom file_search "
    "function image_generation local_shell mcp namespace programmatic_tool_calling shell "
    "tool_search web_search web_search_2025_08_26 web_search_preview "
    "web_search_preview_2025_03_11"
).split()
"""The types of tools [API description]; most of them OpenAI runs itself."""
CHOICES = ("none", "auto", "required")
NAMED_CHOICES = ("function", "custom")
"""Types of tools that a choice names: the user's own."""
ALLOWED_MODES = ("auto", "required")
CALLERS = ("direct", "programmatic")
FUNCTION_KEYS = frozenset(
    "type name description parameters strict allowed_callers async defer_loading "
    "output_schema".split()
)
"""The keys of a function tool [SDK]. The API may have learned others since."""


def check_tools(body: Mapping[str, Any]) -> list[Problem]:
    """The problems of a request's `tools`: each tool by itself, and names that two share."""
    tools = body.get("tools")
    if tools is None:
        return []
    if not is_array(tools):
        return [wrong_type("responses.tools", "tools", "an array of objects", tools)]
    found: list[Problem] = []
    if len(tools) > MAX_TOOLS:
        found.append(long_array("responses.tools_count", "tools", MAX_TOOLS, len(tools)))
    model = text(body.get("model"))
    names: list[tuple[str, str]] = []
    for index, tool in enumerate(tools):
        found += check_tool(f"tools[{index}]", tool, model)
        if isinstance(tool, Mapping) and tool.get("type") in NAMED_CHOICES:
            name = text(tool.get("name"))
            if name is not None:
                names.append((f"tools[{index}].name", name))
    return found + repeated("responses.tool_names", names)


def check_tool(
    where: str, tool: Any, model: str | None, *, in_namespace: bool = False
) -> list[Problem]:
    if not isinstance(tool, Mapping):
        return [wrong_type("responses.tools", where, "an object", tool)]
    kind = tool.get("type")
    if kind is None:
        return [missing("responses.tools", f"{where}.type")]
    if kind not in TOOL_TYPES:
        return [wrong_value("responses.tools", f"{where}.type", kind, TOOL_TYPES)]
    # The other types are the provider's own tools; nothing is claimed about their fields.
    if kind not in ("function", "custom", "namespace"):
        return []
    name = tool.get("name")
    found = check_name("responses.tool_name", f"{where}.name", name, MAX_DECLARED_NAME)
    if isinstance(name, str) and MAX_NAME < len(name) <= MAX_DECLARED_NAME:
        name_at = f"{where}.name"
        found.append(long_string("responses.tool_name", name_at, MAX_NAME, len(name), "some"))
    description = tool.get("description")
    if description is not None and not isinstance(description, str):
        found.append(wrong_type("responses.tools", f"{where}.description", "a string", description))
    elif isinstance(description, str) and len(description) > MAX_DESCRIPTION:
        message = (
            f"The description has {len(description)} characters; "
            f"OpenAI documented {MAX_DESCRIPTION} as the most."
        )
        rule = "responses.tool_description"
        found.append(Problem(rule, f"{where}.description", message, "discouraged"))
    # A namespace in a namespace is not looked into.
    if kind == "namespace" and not in_namespace:
        for index, member in enumerate(items(tool.get("tools"))):
            found += check_tool(f"{where}.tools[{index}]", member, model, in_namespace=True)
    if kind == "custom":
        found += check_format("responses.tools", f"{where}.format", tool.get("format"), None)
    if kind != "function":
        return found
    found += _check_function_keys(where, tool)
    strict = tool.get("strict")
    if strict is not None and not isinstance(strict, bool):
        found.append(wrong_type("responses.tools", f"{where}.strict", "a boolean", strict))
    elif strict is None:
        message = (
            "Without 'strict' the server rewrites the schema to strict where it can; "
            "send true or false."
        )
        found.append(Problem("responses.strict_unset", f"{where}.strict", message, "discouraged"))
    parameters = tool.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        where = f"{where}.parameters"
        return [*found, wrong_type("responses.tools", where, "an object", parameters)]
    return found + check_parameters(
        "responses",
        str(name),
        parameters,
        f"{where}.parameters",
        strict=strict is True,
        model=model,
    )


def _check_function_keys(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    """What a function tool says beside its schema [SDK]."""
    rule = "responses.tools"
    found = [
        unknown("responses.tool_keys", f"{where}.{key}", "some")
        for key in tool
        if key not in FUNCTION_KEYS
    ]
    deferred = tool.get("defer_loading")
    if deferred is not None and not isinstance(deferred, bool):
        found.append(wrong_type(rule, f"{where}.defer_loading", "a boolean", deferred))
    schema = tool.get("output_schema")
    if schema is not None and not isinstance(schema, Mapping):
        found.append(wrong_type(rule, f"{where}.output_schema", "an object", schema))
    callers = tool.get("allowed_callers")
    if callers is None:
        return found
    callers_at = f"{where}.allowed_callers"
    if not is_array(callers):
        return [*found, wrong_type(rule, callers_at, "an array of strings", callers)]
    return found + [
        wrong_value(rule, f"{callers_at}[{index}]", caller, CALLERS)
        for index, caller in enumerate(callers)
        if caller not in CALLERS
    ]


def check_deferred(body: Mapping[str, Any]) -> list[Problem]:
    """Deferred functions need a tool search beside them [reported: pydantic/pydantic-ai#5938].

    With a stored prompt (`prompt`), the search may be among its tools.
    """
    brought = [
        item
        for item in items(body.get("input"))
        if isinstance(item, Mapping) and item.get("type") == "additional_tools"
    ]
    declared = [
        tool
        for holder in (body, *brought)
        for tool in items(holder.get("tools"))
        if isinstance(tool, Mapping)
    ]
    if any(tool.get("type") == "tool_search" for tool in declared):
        return []
    members = [member for tool in declared for member in items(tool.get("tools"))]
    names = [
        str(tool.get("name"))
        for tool in (*declared, *members)
        if isinstance(tool, Mapping)
        and tool.get("type") == "function"
        and tool.get("defer_loading") is True
    ]
    if not names:
        return []
    message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
    return [
        Problem(
            "responses.deferred_search",
            "tools",
            message,
            "some" if body.get("prompt") is not None else "refused",
            param="tools.defer_loading",
            tools=tuple(names),
        )
    ]


def check_tool_choice(body: Mapping[str, Any], held: bool) -> list[Problem]:
    """The problems of a request's `tool_choice` and `parallel_tool_calls`.

    Args:
        body: The request.
        held: The server holds the start of the conversation, whose tools are not in the request.
    """
    found: list[Problem] = []
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        where = "parallel_tool_calls"
        found.append(wrong_type(f"responses.{where}", where, "a boolean", parallel))
    choice = body.get("tool_choice")
    if choice is None:
        return found
    return found + _check_choice(choice, body, held)


def _check_choice(choice: Any, body: Mapping[str, Any], held: bool) -> list[Problem]:
    rule = "responses.tool_choice"
    known, any_tool = _known_tools(body)
    if isinstance(choice, str):
        if choice not in CHOICES:
            return [wrong_value(rule, "tool_choice", choice, CHOICES)]
        if choice == "required" and not any_tool and not held:
            message = "Tool choice 'required' must be specified with 'tools' parameter."
            rule = "responses.tool_choice_needs_tools"
            return [Problem(rule, "tool_choice", message, "refused", param="tool_choice")]
        return []
    if not isinstance(choice, Mapping):
        return [wrong_type(rule, "tool_choice", "one of a string or object", choice)]
    kind = choice.get("type")
    if kind is None:
        return [missing(rule, "tool_choice.type")]
    if kind == "allowed_tools":
        # An older model looks for the names in `tools` alone.
        if refuses_allowed_appended(text(body.get("model"))):
            known = _names_in([items(body.get("tools"))])
        return _check_allowed_tools(choice, known, held)
    if kind in NAMED_CHOICES:
        return _check_chosen("tool_choice.name", choice, known, held)
    if kind not in TOOL_TYPES:
        return [wrong_value(rule, "tool_choice.type", kind, ["allowed_tools", *TOOL_TYPES])]
    return []


def _check_allowed_tools(
    choice: Mapping[str, Any], known: frozenset[str], held: bool
) -> list[Problem]:
    rule = "responses.tool_choice"
    found: list[Problem] = []
    mode = choice.get("mode")
    if mode is None:
        found.append(missing(rule, "tool_choice.mode"))
    elif mode not in ALLOWED_MODES:
        found.append(wrong_value(rule, "tool_choice.mode", mode, ALLOWED_MODES))
    if not is_array(choice.get("tools")):
        found.append(missing(rule, "tool_choice.tools"))
    for index, tool in enumerate(items(choice.get("tools"))):
        if isinstance(tool, Mapping) and tool.get("type") in NAMED_CHOICES:
            found += _check_chosen(f"tool_choice.tools[{index}].name", tool, known, held)
    return found


def _check_chosen(
    where: str, choice: Mapping[str, Any], known: frozenset[str], held: bool
) -> list[Problem]:
    name = choice.get("name")
    if name is None:
        return [missing("responses.tool_choice", where)]
    if not isinstance(name, str):
        return [wrong_type("responses.tool_choice", where, "a string", name)]
    # With a conversation at the server, the tools of earlier requests are not known here.
    if held or name in known:
        return []
    message = f"Tool choice '{choice.get('type')}' not found in 'tools' parameter."
    rule = "responses.tool_choice_unknown"
    return [Problem(rule, where, message, "refused", param="tool_choice", tools=(name,))]


def _known_tools(body: Mapping[str, Any]) -> tuple[frozenset[str], bool]:
    """The names of all tools in the request, and whether there is any tool.

    Tools are in `tools`, in namespaces there, and in input items that bring more of them.
    """
    objects = [item for item in items(body.get("input")) if isinstance(item, Mapping)]
    lists = [items(holder.get("tools")) for holder in (body, *objects)]
    return _names_in(lists), any(lists)


def _names_in(lists: Iterable[Iterable[Any]]) -> frozenset[str]:
    names: set[str] = set()
    for tools in lists:
        for tool in tools:
            members = items(tool.get("tools")) if isinstance(tool, Mapping) else ()
            for each in (tool, *members):
                entry = mapping(each)
                if entry is not None and isinstance(entry.get("name"), str):
                    names.add(entry["name"])
    return frozenset(names)
