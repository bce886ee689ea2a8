"""The Messages rules about what a tool says beside its schema: callers, deferring, examples.

Sources: the API description and the SDK's types (2.12) for shapes; users' reports for deferred
tools with a cache mark (router-for-me/CLIProxyAPI#4561, Wei-Shaw/sub2api#4990) and for an empty
example (anthropics/anthropic-sdk-python#1288). That programmatic tool calling goes with no strict
tool, no forced choice of such a tool and no `disable_parallel_tool_use` is the vendor's
documentation; the API's words for these three are not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.rules.anthropic.tool_settings import client_tool_name
from lutumpy.rules.problem import Certainty, Problem, is_array, items

__all__ = ["check_choice_of_callers", "check_features", "is_programmatic"]

_PROGRAM = re.compile(r"code_execution_20\d{6}\Z")
_DISPLAY = ("display_height_px", "display_width_px")


def is_programmatic(tool: Mapping[str, Any]) -> bool:
    """Whether code that the provider runs may call a tool, given as settings or as a whole."""
    return any(
        isinstance(caller, str) and _PROGRAM.match(caller)
        for caller in items(tool.get("allowed_callers"))
    )


def check_features(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    """Problems of one of the user's own tools: an ordinary one, or one that the vendor typed."""
    found = _check_typed(where, tool)
    for key in ("defer_loading", "eager_input_streaming"):
        value = tool.get(key)
        may_be_null = key == "eager_input_streaming"
        if key in tool and not isinstance(value, bool) and not (value is None and may_be_null):
            found.append(_problem("tools", f"{where}.{key}", "Input should be a valid boolean"))
    found += _check_callers(f"{where}.allowed_callers", tool)
    found += _check_examples(f"{where}.input_examples", tool)
    name = str(tool.get("name"))
    if tool.get("defer_loading") is True and tool.get("cache_control") is not None:
        message = (
            f"Tool '{name}' cannot have both defer_loading=true and cache_control set. Tools with "
            "defer_loading cannot use prompt caching."
        )
        found.append(Problem("anthropic.deferred_cache", where, message, "refused", tools=(name,)))
    if tool.get("strict") is True and is_programmatic(tool):
        message = f"Tool '{name}': strict is not supported with programmatic tool calling."
        found.append(
            Problem("anthropic.programmatic_strict", where, message, "refused", tools=(name,))
        )
    return found


def check_choice_of_callers(choice: Mapping[str, Any], tools: Sequence[Any]) -> list[Problem]:
    """Problems of a `tool_choice` beside tools that code may call."""
    programmatic = {
        str(tool.get("name")): tool
        for tool in tools
        if isinstance(tool, Mapping) and is_programmatic(tool)
    }
    found: list[Problem] = []
    if choice.get("disable_parallel_tool_use") is True and programmatic:
        message = "disable_parallel_tool_use is not supported with programmatic tool calling."
        where = f"tool_choice.{choice.get('type')}.disable_parallel_tool_use"
        names = tuple(programmatic)
        rule = "anthropic.programmatic_parallel"
        found.append(Problem(rule, where, message, "refused", tools=names))
    chosen = programmatic.get(str(choice.get("name"))) if choice.get("type") == "tool" else None
    if chosen is not None and "direct" not in items(chosen.get("allowed_callers")):
        name = str(chosen.get("name"))
        message = (
            f"tool_choice can't force the programmatic calling of '{name}': its allowed_callers "
            "have no 'direct'."
        )
        rule = "anthropic.programmatic_choice"
        found.append(Problem(rule, "tool_choice.tool.name", message, "refused", tools=(name,)))
    return found


def _problem(rule: str, where: str, message: str, certainty: Certainty = "refused") -> Problem:
    return Problem(f"anthropic.{rule}", where, f"{where}: {message}", certainty)


def _check_typed(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    """The name that belongs to a vendor's type, and the display of a computer [SPEC-A]."""
    kind = tool.get("type")
    wanted = client_tool_name(kind) if isinstance(kind, str) else None
    if wanted is None:
        return []
    found: list[Problem] = []
    name = tool.get("name")
    if name is None:
        found.append(_problem("tool_name", f"{where}.name", "Field required"))
    elif name != wanted:
        shown = (name,) if isinstance(name, str) else ()
        at = f"{where}.name"
        message = f"{at}: Input should be '{wanted}'"
        found.append(Problem("anthropic.tool_name", at, message, "refused", tools=shown))
    if wanted == "computer":
        found += [
            _problem("tools", f"{where}.{key}", "Field required")
            for key in _DISPLAY
            if tool.get(key) is None
        ]
    return found


def _check_callers(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    if "allowed_callers" not in tool:
        return []
    callers = tool["allowed_callers"]
    if not is_array(callers):
        return [_problem("tools", where, "Input should be a valid array")]
    return [
        _problem(
            "tools",
            f"{where}.{index}",
            "Input should be 'direct' or a version of code execution, as 'code_execution_20260120'",
        )
        for index, caller in enumerate(callers)
        if caller != "direct" and not (isinstance(caller, str) and _PROGRAM.match(caller))
    ]


def _check_examples(where: str, tool: Mapping[str, Any]) -> list[Problem]:
    if "input_examples" not in tool:
        return []
    examples = tool["input_examples"]
    if not is_array(examples):
        return [_problem("tools", where, "Input should be a valid array")]
    found: list[Problem] = []
    for index, example in enumerate(examples):
        at = f"{where}.{index}"
        if not isinstance(example, Mapping):
            found.append(_problem("tools", at, "Input should be an object"))
        elif not example:
            # It was answered by "500 Internal server error" where it fitted the schema.
            message = "an empty example is answered by a server error"
            found.append(_problem("input_examples", at, message, "some"))
    return found
