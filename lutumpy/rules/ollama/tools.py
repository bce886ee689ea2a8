"""The rules about the tools of a request.

A tool is read into typed fields: `type`, and under `function` a `name`, a `description` and
`parameters` with `type`, `properties`, `required` and `$defs`. Of the schema of a property the
server keeps `type`, `description`, `enum`, `items`, `anyOf` and, in newer releases, `properties`
and `required`; what else it says never reaches the model (`rules/written_out.py` says what is
written in its place).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.rules.ollama.shapes import refusal, wrong_type
from lutumpy.rules.problem import Problem, is_array, mapping

__all__ = ["check_tools"]


def check_tools(tools: Any) -> list[Problem]:
    """Every problem of the `tools` of a request."""
    if not is_array(tools):
        return [wrong_type("ollama.tools", "tools", tools, "api.Tools")]
    found: list[Problem] = []
    seen: set[str] = set()
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        function = mapping(tool.get("function")) if isinstance(tool, Mapping) else None
        if function is None:
            found.append(wrong_type("ollama.tools", where, tool, "api.Tool"))
            continue
        name = function.get("name")
        if not isinstance(name, str):
            found.append(wrong_type("ollama.tools", f"{where}.function.name", name, "string"))
            continue
        if name in seen:
            text = f"the tool name '{name}' is used more than once"
            found.append(refusal("ollama.tools", f"{where}.function.name", text, "some"))
        seen.add(name)
        wrong = _check_parameters(f"{where}.function.parameters", function.get("parameters"))
        found += [replace(problem, tools=(name,)) for problem in wrong]
    return found


def _check_parameters(where: str, parameters: Any) -> list[Problem]:
    if parameters is None:
        return []
    if not isinstance(parameters, Mapping):
        kind = "api.ToolFunctionParameters"
        return [wrong_type("ollama.tools", where, parameters, kind)]
    properties = parameters.get("properties")
    if properties is None:
        return []
    if not isinstance(properties, Mapping):
        kind = "map[string]api.ToolProperty"
        return [wrong_type("ollama.tools", f"{where}.properties", properties, kind)]
    # JSON Schema takes `true` and `false` in the place of a schema; the server doesn't.
    return [
        wrong_type("ollama.tools", f"{where}.properties.{name}", schema, "api.ToolProperty")
        for name, schema in properties.items()
        if not isinstance(schema, Mapping)
    ]
