"""Tools that a model searches for: how an offer with deferred tools is spelled on Responses.

The tool that finds others is declared as `tool_search`, run by the client [OpenAI's API
description]. Its calls are items of their own kind, and so are their outputs, which bring the
definitions of the tools that were found. So deferred tools needn't be declared at all, and the
list of tools is the same in every request, however many tools there are.

What was found by other means (by a model of another API, in the same conversation) is declared
like any other tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from lutumpy.adapters.openai.parts import cut_output
from lutumpy.core.items import FoundTool, ResultBlock
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.errors import DeclarationError
from lutumpy.plain import json_values
from lutumpy.rules.openai.responses.tools import check_tools
from lutumpy.rules.schema_walk import with_items
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

__all__ = ["declared_offer", "found_definitions", "loaded_names", "search_tool"]


def declared_offer(offer: ToolOffering, loaded: Set[str]) -> ToolOffering:
    """The tools of an offer that are declared as functions.

    Args:
        offer: An offer with deferred tools.
        loaded: The names of the tools that outputs of searches in this conversation bring.
    """
    loaded = loaded & {spec.name for spec in offer.deferred}
    specs = [spec for spec in offer.specs if spec.name not in loaded]
    if search_tool(offer) is not None:
        specs = [spec for spec in specs if spec.name != offer.finder]
    return ToolOffering(tuple(specs), offer.mode, offer.forced, offer.parallel)


def search_tool(offer: ToolOffering) -> dict[str, Any] | None:
    """The declaration of the tool that finds others; `None` where it is a function."""
    # A search can't be forced by its name, so then it is a function like the others.
    if not offer.deferred or offer.forced == offer.finder:
        return None
    finder = next((spec for spec in offer.specs if spec.name == offer.finder), None)
    if finder is None:
        return None
    return {
        "type": "tool_search",
        "execution": "client",
        "description": finder.description,
        "parameters": finder.schema,
    }


def found_definitions(result: ResultBlock) -> list[dict[str, Any]] | None:
    """The definitions of the tools in the result of a search; `None` where it says something else.

    What OpenAI would refuse as a tool is left out.
    """
    content = result.content
    if isinstance(content, str) or result.status != "ok":
        return None
    found = [part for part in content if isinstance(part, FoundTool)]
    if len(found) != len(content):
        return None
    tools = [_define_tool(part) for part in found]
    return [tool for tool in tools if _is_taken(tool)] or None


def _define_tool(part: FoundTool) -> dict[str, Any]:
    schema: Mapping[str, Any] = with_items(part.schema)
    is_strict = part.strict is True
    if is_strict:
        try:
            schema = strict_schema(part.schema, OPENAI_STRICT)
        except DeclarationError:
            is_strict = False
    tool: dict[str, Any] = {
        "type": "function",
        "name": part.name,
        "parameters": schema,
        "strict": is_strict,
        "defer_loading": True,
    }
    if part.description:
        tool["description"] = cut_output(part.description)
    return tool


def _is_taken(tool: dict[str, Any]) -> bool:
    return all(problem.certainty != "refused" for problem in check_tools({"tools": [tool]}))


def loaded_names(entries: Iterable[bytes]) -> set[str]:
    """The names of the tools that outputs of searches among these items bring."""
    names: set[str] = set()
    for entry in entries:
        if b"tool_search_output" not in entry:
            continue
        item = json_values.decode(entry)
        if item.get("type") != "tool_search_output" or not isinstance(item.get("tools"), list):
            continue
        names |= {
            tool["name"]
            for tool in item["tools"]
            if isinstance(tool, dict) and isinstance(tool.get("name"), str)
        }
    return names
