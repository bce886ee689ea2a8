"""The Messages rules about tools, tool choice and strict schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.limits import (
    MAX_NAME,
    MAX_OPTIONAL,
    MAX_STRICT_TOOLS,
    MAX_UNIONS,
    NAME,
    NAME_PATTERN,
    TOO_MANY_OPTIONAL_IN_ONE,
    TOO_MANY_UNIONS_IN_ONE,
)
from lutumpy.rules.anthropic.tool_features import check_choice_of_callers, check_features
from lutumpy.rules.anthropic.wording import shape
from lutumpy.rules.problem import Certainty, Problem, is_array, is_number, items, mapping, text
from lutumpy.rules.schema_walk import resolve, type_names, walk
from lutumpy.rules.strict import ANTHROPIC_STRICT, strict_counts

# Types of the provider's own tools end in a date. New ones appear without notice, so any name with
# a date is taken; the list below is what the API names when it refuses a type.
_SERVER_TYPE = re.compile(r"[a-z_0-9]+_20\d{6}\Z")
UNDATED_TYPES = ("custom", "mcp_toolset", "tool_search_tool_bm25", "tool_search_tool_regex")
TOOL_TYPES = (
    "advisor_20260301 bash_20241022 bash_20250124 browser_toolset_20260801 "
    "code_execution_20250522 code_execution_20250825 code_execution_20260120 "
    "code_execution_20260521 computer_20241022 computer_20250124 computer_20251124 "
    "computer_toolset_20260801 custom mcp_toolset memory_20250818 text_editor_20241022 "
    "text_editor_20250124 text_editor_20250429 text_editor_20250728 tool_search_tool_bm25 "
    "tool_search_tool_bm25_20251119 tool_search_tool_regex tool_search_tool_regex_20251119 "
    "web_fetch_20250910 web_fetch_20260209 web_fetch_20260309 web_fetch_20260318 "
    "web_search_20250305 web_search_20260209 web_search_20260318"
).split()
KEYS = frozenset(
    "type name description input_schema cache_control strict eager_input_streaming allowed_callers "
    "defer_loading "
    "input_examples".split()
)
CHOICES = ("auto", "any", "tool", "none")
CHOICE_KEYS: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "none": frozenset({"type"}),
}
FORCED = ("any", "tool")

# "For 'integer' type, properties maximum, minimum are not supported" [recorded].
STRICT_REFUSED: Mapping[str, tuple[str, ...]] = {
    "integer": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "number": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("maxItems", "uniqueItems"),
    "object": ("maxProperties", "minProperties"),
}
"""Type to the keywords that a strict schema may not limit it with [vendor documentation]."""


def check_tools(tools: Any) -> list[Problem]:
    """Problems of the request's `tools`."""
    if tools is None:
        return []
    if not is_array(tools):
        return [shape("anthropic.tools", "tools", "Input should be a valid array")]
    found: list[Problem] = []
    for index, tool in enumerate(tools):
        found += check_tool(f"tools.{index}", tool)
    objects = [tool for tool in tools if isinstance(tool, Mapping)]
    names = [tool["name"] for tool in objects if isinstance(tool.get("name"), str)]
    repeated = tuple(dict.fromkeys(name for name, count in _count_names(names) if count > 1))
    if repeated:
        message = "tools: Tool names must be unique."
        found.append(Problem("anthropic.tool_names", "tools", message, "refused", tools=repeated))
    return found + _check_strict_limits(objects)


def check_deferred(tools: Any) -> list[Problem]:
    """Problems of deferred loading, which only the tools of a whole request show [recorded]."""
    entries = items(tools)
    if not entries or not all(
        isinstance(tool, Mapping) and tool.get("defer_loading") is True for tool in entries
    ):
        return []
    message = "All tools have defer_loading: true"
    return [Problem("anthropic.all_deferred", "tools", message, "refused")]


def _count_names(names: list[str]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return list(counts.items())


def check_tool(where: str, tool: Any) -> list[Problem]:
    if not isinstance(tool, Mapping):
        return [shape("anthropic.tools", where, "Input should be an object")]
    kind = tool.get("type")
    if kind is not None and kind != "custom":
        if isinstance(kind, str) and (kind in UNDATED_TYPES or _SERVER_TYPE.match(kind)):
            # Of the provider's own tools nothing is claimed but what the user's tools have, too.
            return check_features(f"{where}.{kind}", tool)
        tags = ", ".join(f"'{tag}'" for tag in TOOL_TYPES)
        message = (
            f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
        return [shape("anthropic.tool_type", where, message)]
    where = f"{where}.custom"
    found = _check_name(f"{where}.name", tool.get("name"))
    description = tool.get("description")
    if "description" in tool and not isinstance(description, str):
        found.append(
            shape("anthropic.tools", f"{where}.description", "Input should be a valid string")
        )
    found += _check_input_schema(f"{where}.input_schema", tool)
    if "strict" in tool and not isinstance(tool["strict"], bool):
        found.append(shape("anthropic.tools", f"{where}.strict", "Input should be a valid boolean"))
    found += [
        shape("anthropic.tool_keys", f"{where}.{key}", "Extra inputs are not permitted")
        for key in tool
        if key not in KEYS
    ]
    found += check_features(where, tool)
    schema = mapping(tool.get("input_schema"))
    if tool.get("strict") is True and schema is not None and not found:
        found += _check_strict(where, str(tool.get("name")), schema)
    return found


def _check_name(where: str, value: Any) -> list[Problem]:
    rule = "anthropic.tool_name"
    if value is None:
        return [shape(rule, where, "Field required")]
    if not isinstance(value, str):
        return [shape(rule, where, "Input should be a valid string")]
    if not value:
        return [shape(rule, where, "String should have at least 1 character")]
    if len(value) > MAX_NAME:
        return [
            shape(rule, where, f"String should have at most {MAX_NAME} characters", tools=(value,))
        ]
    if not NAME.match(value):
        return [shape(rule, where, f"String should match pattern '{NAME_PATTERN}'", tools=(value,))]
    return []


def _check_input_schema(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    """The root is an object schema without combinators, strict or not."""
    rule = "anthropic.schema_root"
    schema = tool.get("input_schema")
    if schema is None:
        return [shape(rule, where, "Field required")]
    if isinstance(schema, bool):
        return [shape(rule, where, "Input does not match the expected shape.")]
    if not isinstance(schema, Mapping):
        return [shape(rule, where, "Input should be an object")]
    if schema.get("type") is None:
        return [shape(rule, f"{where}.type", "Field required")]
    if schema.get("type") != "object":
        return [shape(rule, f"{where}.type", "Input should be 'object'")]
    if any(key in schema for key in ("oneOf", "allOf", "anyOf")):
        return [
            shape(
                rule, where, "input_schema does not support oneOf, allOf, or anyOf at the top level"
            )
        ]
    return []


# ------------------------------------------------------------------ strict


def _check_strict(where: str, name: str, schema: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []

    def add(rule: str, message: str, certainty: Certainty = "refused") -> None:
        found.append(
            Problem(f"anthropic.{rule}", where, f"{where}: {message}", certainty, tools=(name,))
        )

    for _, _, node in walk(schema):
        if node is True:
            add("strict_object", "For 'object' type, property 'properties' is not supported")
        if not isinstance(node, Mapping):
            continue
        kinds = type_names(node)
        if ("object" in kinds or isinstance(node.get("properties"), Mapping)) and node.get(
            "additionalProperties"
        ) is not False:
            add(
                "strict_object",
                "For 'object' type, 'additionalProperties' must be explicitly set to false",
            )
        for kind, keys in STRICT_REFUSED.items():
            used = sorted(key for key in keys if key in node) if kind in kinds else []
            if used:
                words = (
                    f"property '{used[0]}' is"
                    if len(used) == 1
                    else f"properties {', '.join(used)} are"
                )
                add("strict_keywords", f"For '{kind}' type, {words} not supported")
        least = node.get("minItems")
        if least is not None and is_number(least) and least > 1:
            add(
                "strict_keywords",
                "For 'array' type, 'minItems' values other than 0 or 1 are not supported",
            )
        if any(isinstance(value, (Mapping, list, tuple)) for value in items(node.get("enum"))):
            add("strict_keywords", "Enum values must be scalars", "some")
        if "pattern" in node:
            add(
                "strict_pattern",
                "Input schema is not compatible with strict mode: string patterns are not "
                "supported",
                "some",
            )
        if "oneOf" in node:
            add("strict_keywords", "Schema type 'oneOf' is not supported", "some")
        form = node.get("format")
        if isinstance(form, str) and form not in ANTHROPIC_STRICT.formats:
            add("strict_keywords", f"For 'string' type, format '{form}' is not supported", "some")
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            add("strict_ref", f"External $ref '{reference}' is not supported")
    cycle = _find_cycle(schema)
    if cycle is not None:
        message = (
            "Invalid schema: Circular reference detected in schema definitions: "
            f"{' -> '.join(cycle)}."
        )
        found.append(
            Problem("anthropic.strict_recursion", where, message, "refused", tools=(name,))
        )
    return found


# Recursion is refused with the circle spelled out ("Node -> Node"), so the circle itself is needed
# and not only whether there is one. Both walks below have stacks of their own.
def _find_cycle(schema: Mapping[str, Any]) -> list[str] | None:
    """The definitions on a circle of references, its first again at the end, or None."""
    targets: dict[str, list[str]] = {}
    waiting = ["#"]
    while waiting:
        start = waiting.pop()
        if start in targets:
            continue
        node = resolve(schema, start)
        inside = [sub for _, _, sub in _own_subschemas(node)] if isinstance(node, Mapping) else []
        targets[start] = [
            sub["$ref"]
            for sub in inside
            if isinstance(sub, Mapping) and isinstance(sub.get("$ref"), str)
        ]
        waiting += targets[start]
    done: set[str] = set()
    for start in targets:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(name)
                done.add(name)
            elif name in on_path:
                circle = [*path[path.index(name) :], name]
                return [each.rpartition("/")[2] or each for each in circle]
            elif name not in done:
                path.append(name)
                on_path.add(name)
                stack.append((name, True))
                stack += [(target, False) for target in reversed(targets.get(name, []))]
    return None


def _own_subschemas(node: Mapping[str, Any]) -> list[tuple[Any, int, Any]]:
    """Subschemas of a definition, those of the definitions beside it left out."""
    bare = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
    return list(walk(bare))


def _check_strict_limits(tools: list[Mapping[str, Any]]) -> list[Problem]:
    """Limits per request, and what one schema alone may have of them [recorded: 5 refused, 3
    accepted].
    """
    strict = [tool for tool in tools if tool.get("strict") is True]
    found: list[Problem] = []
    if len(strict) > MAX_STRICT_TOOLS:
        message = (
            f"Too many strict tools ({len(strict)}). The maximum number of strict tools supported "
            f"is {MAX_STRICT_TOOLS}. Try reducing the number of tools marked as strict."
        )
        found.append(Problem("anthropic.strict_tools", "tools", message, "refused"))
    counts = [strict_counts(tool.get("input_schema")) for tool in strict]
    optional, unions = sum(count[0] for count in counts), sum(count[1] for count in counts)
    if optional > MAX_OPTIONAL:
        message = (
            f"Schemas contains too many optional parameters ({optional}), which would make grammar "
            "compilation inefficient. Reduce the number of optional parameters in your tool "
            f"schemas (limit: {MAX_OPTIONAL})."
        )
        found.append(Problem("anthropic.strict_optional", "tools", message, "refused"))
    if unions > MAX_UNIONS:
        message = (
            f"Schemas contains too many parameters with union types ({unions} parameters with type "
            "arrays or anyOf). This causes exponential compilation cost. Reduce the number of "
            f"nullable or union-typed parameters (limit: {MAX_UNIONS} parameters with unions)."
        )
        found.append(Problem("anthropic.strict_unions", "tools", message, "refused"))
    for tool, (alone, united) in zip(strict, counts, strict=True):
        # Reported only within the limits of a request: beyond them the API says just that
        # [recorded].
        if not found and (alone >= TOO_MANY_OPTIONAL_IN_ONE or united >= TOO_MANY_UNIONS_IN_ONE):
            message = (
                "Schema is too complex for compilation. Try reducing the number of tools or "
                "simplifying tool schemas."
            )
            names = (tool["name"],) if isinstance(tool.get("name"), str) else ()
            found.append(
                Problem("anthropic.strict_complexity", "tools", message, "refused", tools=names)
            )
    return found


# ------------------------------------------------------------- tool choice


def check_tool_choice(
    body: Mapping[str, Any], model: str | None, thinking: str | None, *, held: bool = False
) -> list[Problem]:
    """Problems of `tool_choice`, with what model and thinking allow; `held` if the server has the
    tools.
    """
    choice = body.get("tool_choice")
    if choice is None:
        return []
    rule = "anthropic.tool_choice"
    if not isinstance(choice, Mapping):
        return [shape(rule, "tool_choice", "Input should be an object")]
    kind = choice.get("type")
    if kind is None:
        return [shape(rule, "tool_choice", "Unable to extract tag using discriminator 'type'")]
    if kind not in CHOICES:
        tags = ", ".join(f"'{tag}'" for tag in CHOICES)
        message = (
            f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
        return [shape(rule, "tool_choice", message)]
    found = [
        shape(rule, f"tool_choice.{kind}.{key}", "Extra inputs are not permitted")
        for key in choice
        if key not in CHOICE_KEYS[kind]
    ]
    parallel = choice.get("disable_parallel_tool_use")
    if parallel is not None and not isinstance(parallel, bool):
        where = f"tool_choice.{kind}.disable_parallel_tool_use"
        found.append(shape(rule, where, "Input should be a valid boolean"))
    has_tools = bool(items(body.get("tools"))) or bool(items(body.get("mcp_servers")))
    if not has_tools and not held:
        certainty: Certainty = "some" if kind == "none" else "refused"
        message = f"tool_choice.{kind} may only be specified while providing tools"
        found.append(
            Problem("anthropic.tool_choice_needs_tools", "tool_choice", message, certainty)
        )
    name = choice.get("name")
    if kind == "tool" and name is None:
        found.append(shape(rule, "tool_choice.tool.name", "Field required"))
    elif kind == "tool" and has_tools and not _is_provided(body, name):
        shown = (name,) if isinstance(name, str) else ()
        message = f"Tool '{name}' not found in provided tools"
        found.append(
            Problem(
                "anthropic.tool_choice_unknown",
                "tool_choice.tool.name",
                message,
                "refused",
                tools=shown,
            )
        )
    found += check_choice_of_callers(choice, items(body.get("tools")))
    if kind in FORCED and thinking == "enabled":
        message = "Thinking may not be enabled when tool_choice forces tool use."
        found.append(Problem("anthropic.tool_choice_thinking", "tool_choice", message, "refused"))
    refusal = anthropic_models.forced_choice_refusal(model) if kind in FORCED else None
    if refusal is not None:
        found.append(Problem("anthropic.tool_choice_for_model", "tool_choice", refusal, "refused"))
    return found


def _is_provided(body: Mapping[str, Any], name: Any) -> bool:
    tools = [tool for tool in items(body.get("tools")) if isinstance(tool, Mapping)]
    brings_more = bool(items(body.get("mcp_servers"))) or any(
        "toolset" in str(tool.get("type")) for tool in tools
    )
    return brings_more or any(text(tool.get("name")) == name for tool in tools)
