"""Tools that a history calls and a request doesn't declare: unwise, and refused by some hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lutumpy.rules.problem import Certainty, Problem, items, text


def declared_names(tools: Iterable[Any]) -> frozenset[str]:
    """The names of a request's tools, however its API nests them; MCP servers and built-in tools
    have none or their own.
    """
    return frozenset(_find_names(tools))


def _find_names(tools: Iterable[Any]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, str):
            yield tool
        elif isinstance(tool, Mapping):
            body = next(
                (tool[key] for key in ("function", "custom") if isinstance(tool.get(key), Mapping)),
                tool,
            )
            name = text(body.get("name"))
            if name is not None:
                yield name
            if tool.get("type") == "namespace":
                yield from _find_names(items(tool.get("tools")))


def undeclared(
    rule: str,
    calls: Iterable[tuple[str, str, str]],
    tools: Iterable[Any],
    *,
    none_is_some: bool = False,
) -> list[Problem]:
    """One problem for each tool that calls name and the request doesn't declare, at its first call.

    Args:
        rule: Id of the rule.
        calls: Position, name and id of each call.
        tools: The tools of the request, or their names.
        none_is_some: Some hosts want tools declared at all where the history has calls.
    """
    # One problem for each tool is enough: a history may call the same one a hundred times.
    known = declared_names(tools)
    found: dict[str, Problem] = {}
    for where, name, call_id in calls:
        if name not in known and name not in found:
            message = f"The history calls the tool '{name}', which this request doesn't declare."
            certainty: Certainty = "some" if none_is_some and not known else "discouraged"
            found[name] = Problem(
                rule, where, message, certainty, call_ids=(call_id,), tools=(name,)
            )
    return list(found.values())
