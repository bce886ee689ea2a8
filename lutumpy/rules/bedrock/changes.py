"""The Converse rules about tools that system messages withdraw and offer again.

Sources: `toolAddition` and `toolRemoval` in the service model of botocore 1.44.5, where a tool is
known by the name under which `toolConfig` declares it; the order is that of the maker of the only
models known to take them. No refusal is recorded, so nothing is refused for sure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lutumpy.rules.bedrock.limits import CHANGES
from lutumpy.rules.problem import Problem, items, mapping, text

__all__ = ["check_changes"]


def check_changes(messages: Any, declared: Collection[str] | None) -> list[Problem]:
    """The problems of changes of tools: their place, what they name, and calls of tools that they
    have withdrawn.

    Args:
        messages: The messages.
        declared: The names of the tools that the request declares; `None` where they aren't known.
    """
    found: list[Problem] = []
    withdrawn: set[str] = set()
    before: Any = None
    for where, role, kind, block in _blocks_of(messages):
        named = mapping(block.get("tool")) or {} if kind in CHANGES else block
        name = text(named.get("name"))
        if kind == "toolUse":
            if name in withdrawn:
                words = f"{where}: the tool {name} was withdrawn before this call"
                ids = (text(block.get("toolUseId")) or "",)
                found.append(_problem("converse.withdrawn_tool", where, words, name, ids))
        elif kind in CHANGES and role == "system" and name is not None:
            if before == "assistant":
                words = f"{where}: {kind} follows a message of the user's"
                found.append(_problem("converse.tool_change_position", where, words, name))
            if declared is not None and name not in declared:
                words = f"{where}: the tool {name} is not in toolConfig"
                found.append(_problem("converse.tool_reference", where, words, name))
            if kind == "toolRemoval":
                withdrawn.add(name)
            else:
                withdrawn.discard(name)
        if role != "system":
            before = role
    return found


def _problem(
    rule: str, where: str, words: str, tool: str | None, call_ids: tuple[str, ...] = ()
) -> Problem:
    tools = () if tool is None else (tool,)
    return Problem(rule, where, words, "some", call_ids=call_ids, tools=tools)


def _blocks_of(messages: Any) -> Iterator[tuple[str, Any, str, Mapping[str, Any]]]:
    """Place, role, kind and content of each block."""
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        for number, block in enumerate(items(message.get("content"))):
            where = f"messages.{index}.content.{number}"
            for kind, inner in block.items() if isinstance(block, Mapping) else ():
                if isinstance(kind, str):
                    yield where, message.get("role"), kind, mapping(inner) or {}
