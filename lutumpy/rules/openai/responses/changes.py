"""The rules of Responses about items that change tools and settings in the middle of an input.

Sources: the types and doc strings of OpenAI's SDK (3.54); its pages "Keep the prefix unchanged" and
"Using GPT-6.2"; 19 recorded requests with `additional_tools`. The API's own words for the refusals
of a model are not recorded; they are made up after its manner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.models import refuses_configuration_update
from lutumpy.rules.openai.responses.tools import check_tool
from lutumpy.rules.openai.shapes import missing, unknown, wrong_type, wrong_value
from lutumpy.rules.problem import Problem, is_array, items, text

__all__ = ["check_change", "check_changes"]

ADDITIONAL_KEYS = frozenset({"type", "id", "role", "tools"})
FORMATS = ("text", "json_schema")


def check_change(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """The problems of one `additional_tools` or `configuration_update` item by itself."""
    return (
        _check_additional(where, item) if kind == "additional_tools" else _check_update(where, item)
    )


def _check_additional(where: str, item: Mapping[str, Any]) -> list[Problem]:
    rule = "responses.additional_tools"
    found = [unknown(rule, f"{where}.{key}", "some") for key in item if key not in ADDITIONAL_KEYS]
    role = item.get("role")
    if role is None:
        found.append(missing(rule, f"{where}.role"))
    elif role != "developer":
        found.append(wrong_value(rule, f"{where}.role", role, ("developer",)))
    tools = item.get("tools")
    if tools is None:
        return [*found, missing(rule, f"{where}.tools")]
    if not is_array(tools):
        return [*found, wrong_type(rule, f"{where}.tools", "an array of objects", tools)]
    for index, tool in enumerate(tools):
        # Whether the server rewrites the schemas of these isn't known, so nothing is advised.
        problems = check_tool(f"{where}.tools[{index}]", tool, None)
        found += [problem for problem in problems if problem.certainty != "discouraged"]
    return found


def _check_update(where: str, item: Mapping[str, Any]) -> list[Problem]:
    rule = "responses.configuration_update"
    reasoning, output = item.get("reasoning"), item.get("text")
    if reasoning is None and output is None:
        return [missing(rule, f"{where}.reasoning")]
    found: list[Problem] = []
    if reasoning is not None and not isinstance(reasoning, Mapping):
        found.append(wrong_type(rule, f"{where}.reasoning", "an object", reasoning))
    elif reasoning is not None:
        found += [unknown(rule, f"{where}.reasoning.{key}") for key in reasoning if key != "effort"]
    if output is None:
        return found
    if not isinstance(output, Mapping):
        return [*found, wrong_type(rule, f"{where}.text", "an object", output)]
    found += [unknown(rule, f"{where}.text.{key}") for key in output if key != "format"]
    form, at = output.get("format"), f"{where}.text.format"
    if form is None:
        found.append(missing(rule, at))
    elif not isinstance(form, Mapping):
        found.append(wrong_type(rule, at, "an object", form))
    elif form.get("type") not in FORMATS:
        found.append(wrong_value(rule, f"{at}.type", form.get("type"), FORMATS))
    return found


def check_changes(body: Mapping[str, Any]) -> list[Problem]:
    """The problems of the changes of a whole request: what its model takes, and what may not are
    beside an update of the configuration. From GPT-6 on, and neither with truncation nor with
    compaction [documentation]. A tool of a name that there is already was taken [recorded twice].
    """
    rule = "responses.configuration_update"
    place = _find_update(body)
    if place is None:
        return []
    where = f"input[{place}]"
    model = text(body.get("model"))
    if refuses_configuration_update(model):
        message = f"Invalid '{where}': 'configuration_update' is not supported with this model."
        code = "unsupported_value"
        return [Problem(rule, where, message, "refused", param=where, code=code)]
    clashing: list[str] = []
    if body.get("truncation") not in (None, "disabled"):
        clashing.append("truncation")
    for entry in items(body.get("context_management")):
        if isinstance(entry, Mapping) and entry.get("type") == "compaction":
            clashing.append("context_management")
            break
    return [
        Problem(
            rule,
            key,
            f"'{key}' can't be used with 'configuration_update' items.",
            "refused",
            param=key,
            code="invalid_value",
        )
        for key in clashing
    ]


def _find_update(body: Mapping[str, Any]) -> int | None:
    for index, item in enumerate(items(body.get("input"))):
        if isinstance(item, Mapping) and item.get("type") == "configuration_update":
            return index
    return None
