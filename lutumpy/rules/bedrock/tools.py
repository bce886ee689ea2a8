"""The Converse rules about tools, and about what a request asks of them.

Sources: the service model of `bedrock-runtime`, recorded exchanges, and errors that users report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.rules.bedrock.blocks import CACHE_POINT, name_of_tool
from lutumpy.rules.bedrock.kinds import Kind, array, document, flag, structure, text, union
from lutumpy.rules.bedrock.models import family, is_claude, takes_cached_tools
from lutumpy.rules.bedrock.shapes import refusal
from lutumpy.rules.problem import Certainty, Problem, is_array, items, mapping
from lutumpy.rules.schema_walk import type_names, walk
from lutumpy.rules.strict import ANTHROPIC_STRICT

__all__ = ["check_tool_config", "check_tools", "tool_names"]

_SCHEMA = union("converse.schema", {"json": document("converse.schema")})
_SPEC = structure(
    "converse.tools",
    {"name": name_of_tool("converse.tool_name"), "inputSchema": _SCHEMA},
    {"description": text("converse.tool_description", least=1), "strict": flag("converse.tools")},
)
_TOOL = union(
    "converse.tools",
    {
        "toolSpec": _SPEC,
        "systemTool": structure("converse.tools", {"name": name_of_tool("converse.tool_name")}),
        "cachePoint": CACHE_POINT,
    },
)
_TOOLS = array("converse.tools", _TOOL, least=1)
_CHOICE = union(
    "converse.tool_choice",
    {
        "auto": structure("converse.tool_choice", {}),
        "any": structure("converse.tool_choice", {}),
        "tool": structure("converse.tool_choice", {"name": name_of_tool("converse.tool_choice")}),
    },
)
_CONFIG = structure(
    "converse.tool_config",
    {"tools": Kind("converse.tools", lambda where, value: [])},
    {"toolChoice": _CHOICE},
)
_FORCED = ("any", "tool")
_WHERE = "toolConfig.tools"


def tool_names(tools: Any) -> list[str]:
    """The names of a request's tools; a name may stand for its tool."""
    found: list[str] = []
    for tool in items(tools):
        if isinstance(tool, str):
            found.append(tool)
            continue
        for key in ("toolSpec", "systemTool"):
            spec = mapping(tool.get(key)) if isinstance(tool, Mapping) else None
            if spec is not None and isinstance(spec.get("name"), str):
                found.append(spec["name"])
    return found


def check_tools(tools: Sequence[Any] | None, *, model: str | None = None) -> list[Problem]:
    """Problems of the tools of a request.

    Args:
        tools: `toolConfig.tools`; `None` where the request has none.
        model: Its model, for what only some models refuse.
    """
    if tools is None:
        return []
    found = _TOOLS.look(_WHERE, tools)
    names = tool_names(tools)
    repeated = tuple([name for name, count in Counter(names).items() if count > 1])
    if repeated:
        words = "The model returned the following errors: tools: Tool names must be unique."
        found.append(refusal("converse.tool_names", _WHERE, words, "some", tools=repeated))
    for index, tool in enumerate(tools if is_array(tools) else ()):
        spec = tool.get("toolSpec") if isinstance(tool, Mapping) else None
        if isinstance(spec, Mapping):
            found += _check_spec(f"{_WHERE}.{index}.toolSpec", spec, model)
        elif isinstance(tool, Mapping) and tool.get("cachePoint") is not None:
            found += _check_cache_point(index, model)
    return found


def _check_cache_point(index: int, model: str | None) -> list[Problem]:
    """Nova takes cache points in `system` and messages alone; for other makers nothing is known."""
    if takes_cached_tools(model) is not False:
        return []
    words = (
        f"The model returned the following errors: Malformed input request: #/toolConfig/tools/"
        f"{index}: extraneous key [cachePoint] is not permitted, please reformat your input and "
        "try again."
    )
    certainty: Certainty = "refused" if family(model) == "amazon" else "some"
    return [refusal("converse.cache_point", f"{_WHERE}.{index}", words, certainty)]


def _check_spec(where: str, spec: Mapping[str, Any], model: str | None) -> list[Problem]:
    holder = mapping(spec.get("inputSchema"))
    schema = mapping(holder.get("json")) if holder is not None else None
    if schema is None:
        return []
    name = spec.get("name")
    tools = (name,) if isinstance(name, str) else ()
    found: list[Problem] = []
    if schema.get("type") != "object":
        place = f"{where}.inputSchema.json.type"
        words = f"The value at {place} must be one of the following: object."
        found.append(refusal("converse.schema", place, words, tools=tools))
    if spec.get("strict") is True:
        found += _check_strict(where, schema, model, tools)
    return found


def _check_strict(
    where: str, schema: Mapping[str, Any], model: str | None, tools: tuple[str, ...]
) -> list[Problem]:
    """Strict tools are Claude's [recorded: 17 accepted], and so is what their schemas may hold."""
    claude = is_claude(model)
    if claude is False:
        no = f"{where}: this model takes no strict tools"
        return [refusal("converse.strict_for_model", f"{where}.strict", no, "some", tools=tools)]
    certainty: Certainty = "refused" if claude else "some"
    found: list[Problem] = []
    for _, _, node in walk(schema):
        words = _strict_refusal(node) if isinstance(node, Mapping) else None
        if words is not None:
            message = f"The model returned the following errors: {where}: {words}"
            found.append(refusal("converse.strict_schema", where, message, certainty, tools=tools))
    return found


_REFUSED_KEYWORDS = (
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems "
    "uniqueItems minProperties maxProperties"
).split()


def _strict_refusal(node: Mapping[str, Any]) -> str | None:
    """What Claude says of a schema that strict mode doesn't take."""
    kinds = type_names(node)
    is_object = "object" in kinds or isinstance(node.get("properties"), Mapping)
    if is_object and node.get("additionalProperties") is not False:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    for key in _REFUSED_KEYWORDS:
        if key in node and key not in ANTHROPIC_STRICT.keywords:
            return f"For '{kinds[0]}' type, property '{key}' is not supported"
    least = node.get("minItems")
    if least is not None and least not in (ANTHROPIC_STRICT.min_items or ()):
        return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    return None


# ------------------------------------------------------------- tool choice


def check_tool_config(config: Any, *, model: str | None, thinking: str | None) -> list[Problem]:
    """Problems of `toolConfig`, the tools included.

    Args:
        config: It; `None` where the request has none.
        model: The model of the request.
        thinking: The `type` of Claude's `thinking`.
    """
    if config is None:
        return []
    found = _CONFIG.look("toolConfig", config)
    if not isinstance(config, Mapping):
        return found
    found += check_tools(config.get("tools"), model=model)
    choice = mapping(config.get("toolChoice"))
    return found if choice is None else found + _check_choice(config, choice, model, thinking)


def _check_choice(
    config: Mapping[str, Any], choice: Mapping[str, Any], model: str | None, thinking: str | None
) -> list[Problem]:
    found: list[Problem] = []
    forced = [key for key in _FORCED if choice.get(key) is not None]
    named = mapping(choice.get("tool"))
    name = named.get("name") if named is not None else None
    if isinstance(name, str) and name not in tool_names(config.get("tools")):
        words = (
            f"The model returned the following errors: Tool '{name}' not found in provided tools"
        )
        sure: Certainty = "refused" if is_claude(model) else "some"
        place = "toolConfig.toolChoice.tool.name"
        found.append(refusal("converse.tool_choice_unknown", place, words, sure, tools=(name,)))
    if forced and thinking == "enabled" and is_claude(model) is not False:
        words = (
            "The model returned the following errors: Thinking may not be enabled when tool_choice "
            "forces tool use."
        )
        sure = "refused" if is_claude(model) else "some"
        found.append(refusal("converse.tool_choice_thinking", "toolConfig.toolChoice", words, sure))
    if forced and family(model) in ("meta", "deepseek"):
        field = f"toolConfig.toolChoice.{forced[0]}"
        words = f"This model doesn't support the {field} field. Remove {forced[0]} and try again."
        found.append(refusal("converse.tool_choice_for_model", field, words, "some"))
    return found
