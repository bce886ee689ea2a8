"""The Messages rules about calls that the provider runs itself: server tools and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.block_wire import Path, Turn, place_of
from lutumpy.rules.problem import Problem, is_array, text

__all__ = ["SERVER_USES", "check_server_tools"]

SERVER_USES = ("server_tool_use", "mcp_tool_use")
SERVER_TOOL_OF: Mapping[str, str] = {
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search_tool",
    "tool_search_tool_bm25": "tool_search_tool",
}
"""Name in a `server_tool_use` to the name of the result block and the tool type, where they differ.
"""


def check_server_tools(turns: list[Turn], tools: Any, held: bool) -> list[Problem]:
    """Calls that the server runs: results after their calls, and nothing of ours said while one is
    under way.
    """
    found: list[Problem] = []
    uses: dict[str, tuple[int, Path, str]] = {}  # id: (turn, path, name of its result)
    answered: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        for path, block in turn.blocks:
            kind = text(block.get("type")) or ""
            use_id = text(block.get("id"))
            if kind in SERVER_USES and use_id is not None:
                name = text(block.get("name")) or ""
                uses[use_id] = (number, path, "mcp" if kind == "mcp_tool_use" else name)
            elif kind.endswith("_tool_result"):
                result_of = text(block.get("tool_use_id"))
                if result_of is None:
                    continue
                if result_of not in uses and not held:
                    found.append(_orphan_problem(place_of(path), kind, result_of))
                answered.add(result_of)
    for use_id, (number, path, name) in uses.items():
        if use_id not in answered:
            found += _check_pending(turns, number, use_id, place_of(path), name, tools)
    return found


def _orphan_problem(where: str, kind: str, use_id: str) -> Problem:
    needed = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
    message = (
        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {use_id}. "
        f"Each `{kind}` block must have a corresponding `{needed}` block before it."
    )
    return Problem("anthropic.use_for_server_result", where, message, "refused", call_ids=(use_id,))


def _check_pending(
    turns: list[Turn], number: int, use_id: str, where: str, name: str, tools: Any
) -> list[Problem]:
    """A server call without its result: the turn paused, or waits for our results alone."""
    ids = (use_id,)
    base = (
        f"`{name}` tool use with id `{use_id}` was found without a corresponding "
        f"`{name}_tool_result` block"
    )
    if number < len(turns) - 1:
        after = turns[number + 1]
        only_results = after.role == "user" and all(
            block.get("type") == "tool_result" for _, block in after.blocks
        )
        if not only_results or not turns[number].of("tool_use"):
            return [
                Problem("anthropic.mixed_turn_results_only", where, base, "refused", call_ids=ids)
            ]
        if number + 2 < len(turns):
            return [Problem("anthropic.server_result_missing", where, base, "some", call_ids=ids)]
    family = SERVER_TOOL_OF.get(name, name)
    if is_array(tools) and name != "mcp" and not any(_declares(tool, family) for tool in tools):
        message = f"{base} but no `{family}` tool was provided"
        message = message.replace("block but", "block, but")
        return [Problem("anthropic.server_tool_declared", where, message, "some", call_ids=ids)]
    return []


def _declares(tool: Any, family: str) -> bool:
    if not isinstance(tool, Mapping):
        return False
    return (text(tool.get("type")) or "").startswith(family) or tool.get("name") == family
