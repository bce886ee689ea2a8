"""The Messages rules about the sequence of blocks: roles, calls and results, thinking, server
tools, the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.requests import is_compacted
from lutumpy.rules.problem import Certainty, Problem, is_array, items, text

ASSISTANT_ONLY = ("tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")
SHOWN = ("image", "document")
USER_ONLY = ("tool_result", *SHOWN)
THINKING = ("thinking", "redacted_thinking")
SERVER_USES = ("server_tool_use", "mcp_tool_use")
SERVER_TOOL_OF: Mapping[str, str] = {
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search_tool",
    "tool_search_tool_bm25": "tool_search_tool",
}
"""Name in a `server_tool_use` to the name of the result block and the tool type, where they differ.
"""


@dataclass(slots=True)
class _Turn:
    """Neighbouring messages of one role: the API merges them before it looks."""

    role: str
    first: int
    last: int
    blocks: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    has_text: bool = False

    def of(self, *kinds: str) -> list[tuple[str, Mapping[str, Any]]]:
        return [(where, block) for where, block in self.blocks if block.get("type") in kinds]


def check_sequence(
    messages: Any,
    *,
    model: str | None = None,
    thinking: str | None = None,
    tools: Any = None,
    issued: Mapping[str, str] | None = None,
    held: bool = False,
) -> list[Problem]:
    """Problems of the order and pairing of blocks; shapes are somebody else's.

    Args:
        messages: The request's `messages`.
        model: Its `model`.
        thinking: The `type` of its `thinking`.
        tools: Its tools.
        issued: Signature to thinking text, of the blocks that the server knows to have written.
        held: The conversation's start is at the server, so the first result may answer a call that
            is not here.
    """
    turns = _turns(messages)
    found = _system_positions(turns, held)
    found += _roles(turns)
    found += _empty_users(turns)
    found += _pairing(turns, held)
    found += _toolsets(turns)
    found += _server_tools(turns, tools, held)
    found += _thinking(turns, thinking)
    found += _issued(turns, issued or {})
    listed = items(messages)
    return found if listed and is_compacted(listed[-1]) else found + _last(turns, model)


def _turns(messages: Any) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        role = text(message.get("role")) or ""
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role, index, index))
        turn = turns[-1]
        turn.last = index
        content = message.get("content")
        if isinstance(content, str):
            turn.has_text = turn.has_text or bool(content)
            if content:
                turn.blocks.append((f"messages.{index}.content", {"type": "text", "text": content}))
        elif not is_array(content):
            turn.has_text = True  # a wrong shape, told already; not an empty message
        for number, block in enumerate(items(content)):
            turn.has_text = True
            if isinstance(block, Mapping):
                turn.blocks.append((f"messages.{index}.content.{number}", block))
    return turns


def _system_positions(turns: list[_Turn], held: bool) -> list[Problem]:
    """A system message stands not first, and before an assistant message or at the end [probed]."""
    found: list[Problem] = []
    for number, turn in enumerate(turns):
        if turn.role != "system":
            continue
        where = f"messages.{turn.first}"
        if number == 0 and not held:
            message = f"{where}: use the top-level 'system' parameter for the initial system prompt"
            found.append(Problem("anthropic.system_first", where, message, "refused"))
        elif number + 1 < len(turns) and turns[number + 1].role != "assistant":
            message = (
                f"{where}: `system` messages must precede an `assistant` message or end the array"
            )
            found.append(Problem("anthropic.system_position", where, message, "refused"))
    return found


def _roles(turns: list[_Turn]) -> list[Problem]:
    found: list[Problem] = []
    for turn in turns:
        for where, block in turn.blocks:
            kind = block.get("type")
            needed = (
                "assistant" if kind in ASSISTANT_ONLY else "user" if kind in USER_ONLY else None
            )
            if kind in SHOWN and turn.role == "system":
                continue
            if needed is not None and turn.role != needed and turn.role:
                at = ".".join(where.split(".")[:2])
                message = f"{at}: `{kind}` blocks can only be in `{needed}` messages"
                found.append(Problem("anthropic.block_role", where, message, "refused"))
    return found


def _empty_users(turns: list[_Turn]) -> list[Problem]:
    found: list[Problem] = []
    for turn in turns:
        if turn.role == "user" and not turn.has_text:
            where = f"messages.{turn.first}"
            message = f"{where}: user messages must have non-empty content"
            found.append(Problem("anthropic.empty_user", where, message, "refused"))
    return found


# ----------------------------------------------------------------- pairing


def _pairing(turns: list[_Turn], held: bool) -> list[Problem]:
    found: list[Problem] = []
    earlier: set[str] = set()
    for number, turn in enumerate(turns):
        after = turns[number + 1] if number + 1 < len(turns) else None
        before = turns[number - 1] if number else None
        if turn.role == "assistant":
            found += _uses(turn, after, earlier)
        elif turn.role == "user" and (before is not None or not held):
            found += _results(turn, before)
    return found


def _uses(turn: _Turn, after: _Turn | None, earlier: set[str]) -> list[Problem]:
    """Ids unique, calls last, and each answered at the start of the next message."""
    found = _uses_last(turn)
    uses: dict[str, str] = {}
    names: dict[str, str] = {}
    for where, block in turn.of("tool_use"):
        use_id = text(block.get("id"))
        if use_id is None:
            continue
        names.setdefault(use_id, text(block.get("name")) or "")
        if use_id in uses:
            message = f"{where}: `tool_use` ids must be unique"
            tools = _name(block)
            found.append(
                Problem(
                    "anthropic.unique_ids",
                    where,
                    message,
                    "refused",
                    call_ids=(use_id,),
                    tools=tools,
                )
            )
        elif use_id in earlier:
            message = f"{where}: the id {use_id} was used by an earlier turn"
            tools = _name(block)
            found.append(
                Problem(
                    "anthropic.reused_id",
                    where,
                    message,
                    "discouraged",
                    call_ids=(use_id,),
                    tools=tools,
                )
            )
        uses.setdefault(use_id, where)
    earlier.update(uses)
    leading: list[str] = []
    anywhere: set[str] = set()
    blocked = False
    for _, block in after.blocks if after is not None and after.role == "user" else ():
        if block.get("type") != "tool_result":
            blocked = True
            continue
        use_id = text(block.get("tool_use_id"))
        if use_id is None:
            continue
        anywhere.add(use_id)
        if not blocked:
            leading.append(use_id)
    in_time = set(leading)
    lacking = [use_id for use_id in uses if use_id not in in_time]
    lost = tuple(use_id for use_id in lacking if use_id not in anywhere)
    late = tuple(use_id for use_id in lacking if use_id in anywhere)
    if lacking:
        rule = "anthropic.results_after_uses" if lost else "anthropic.results_first"
        at = ".".join(uses[lacking[0]].split(".")[:2])
        message = (
            f"{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(lacking)}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
        tools = tuple(dict.fromkeys([names[use_id] for use_id in lost or late if names[use_id]]))
        found.append(Problem(rule, at, message, "refused", call_ids=lost or late, tools=tools))
    elif uses and [use_id for use_id in dict.fromkeys(leading) if use_id in uses] != list(uses):
        message = "The results stand in another order than their calls."
        where = f"messages.{turn.last}"
        found.append(
            Problem(
                "anthropic.result_order", where, message, "discouraged", call_ids=tuple(leading)
            )
        )
    return found


def _name(block: Mapping[str, Any]) -> tuple[str, ...]:
    name = text(block.get("name"))
    return (name,) if name else ()


def _uses_last(turn: _Turn) -> list[Problem]:
    """Nothing follows the calls of a turn: no recorded answer has it, and replaying it was refused
    [reported].
    """
    called: tuple[str, Mapping[str, Any]] | None = None
    for where, block in turn.blocks:
        if block.get("type") == "tool_use":
            called = (where, block)
        elif called is not None and block.get("type") != "tool_result":
            message = f"{where}: a `{block.get('type')}` block stands behind the `tool_use` blocks of its message"
            use_id = text(called[1].get("id"))
            return [
                Problem(
                    "anthropic.uses_last",
                    where,
                    message,
                    "some",
                    call_ids=(use_id,) if use_id is not None else (),
                )
            ]
    return []


def _toolsets(turns: list[_Turn]) -> list[Problem]:
    """A result names the toolset that its call named [SDK]."""
    named: dict[str, str] = {}
    found: list[Problem] = []
    for turn in turns:
        for _, block in turn.of("tool_use"):
            use_id, toolset = text(block.get("id")), text(block.get("toolset_name"))
            if use_id is not None and toolset is not None:
                named[use_id] = toolset
        for where, block in turn.of("tool_result") if named else ():
            use_id = text(block.get("tool_use_id"))
            if use_id in named and block.get("toolset_name") != named[use_id]:
                message = f"{where}: `toolset_name` does not match the `tool_use` block {use_id}"
                found.append(
                    Problem("anthropic.toolset_name", where, message, "some", call_ids=(use_id,))
                )
    return found


def _results(turn: _Turn, before: _Turn | None) -> list[Problem]:
    """Each result belongs to one call of the message before, and no other result does."""
    found: list[Problem] = []
    known: dict[str | None, tuple[str, ...]] = {}
    if before is not None and before.role == "assistant":
        known = {text(block.get("id")): _name(block) for _, block in before.of("tool_use")}
    seen: set[str] = set()
    for where, block in turn.of("tool_result"):
        use_id = text(block.get("tool_use_id"))
        if use_id is None:
            continue
        if use_id not in known:
            message = (
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
            found.append(
                Problem("anthropic.use_for_result", where, message, "refused", call_ids=(use_id,))
            )
        elif use_id in seen:
            message = (
                f"{where}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {use_id}"
            )
            rule = "anthropic.single_result"
            found.append(
                Problem(rule, where, message, "refused", call_ids=(use_id,), tools=known[use_id])
            )
        seen.add(use_id)
    return found


# ------------------------------------------------------------ server tools


def _server_tools(turns: list[_Turn], tools: Any, held: bool) -> list[Problem]:
    """Calls that the server runs: results after their calls, and nothing of ours said while one is
    under way.
    """
    found: list[Problem] = []
    uses: dict[str, tuple[int, str, str]] = {}  # id: (turn, position, name of its result)
    answered: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        for where, block in turn.blocks:
            kind = text(block.get("type")) or ""
            use_id = text(block.get("id"))
            if kind in SERVER_USES and use_id is not None:
                name = text(block.get("name")) or ""
                uses[use_id] = (number, where, "mcp" if kind == "mcp_tool_use" else name)
            elif kind.endswith("_tool_result"):
                result_of = text(block.get("tool_use_id"))
                if result_of is None:
                    continue
                if result_of not in uses and not held:
                    found.append(_orphan(where, kind, result_of))
                answered.add(result_of)
    for use_id, (number, where, name) in uses.items():
        if use_id not in answered:
            found += _pending(turns, number, use_id, where, name, tools)
    return found


def _orphan(where: str, kind: str, use_id: str) -> Problem:
    needed = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
    message = (
        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {use_id}. "
        f"Each `{kind}` block must have a corresponding `{needed}` block before it."
    )
    return Problem("anthropic.use_for_server_result", where, message, "refused", call_ids=(use_id,))


def _pending(
    turns: list[_Turn], number: int, use_id: str, where: str, name: str, tools: Any
) -> list[Problem]:
    """A server call without its result: the turn paused, or waits for our results and nothing else."""
    ids = (use_id,)
    base = f"`{name}` tool use with id `{use_id}` was found without a corresponding `{name}_tool_result` block"
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


# ---------------------------------------------------------------- thinking


def _thinking(turns: list[_Turn], thinking: str | None) -> list[Problem]:
    """Thinking of the turn that goes on is there, first, and not the end of a message."""
    found: list[Problem] = []
    for turn in turns:
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1][1].get("type") in THINKING:
            where, block = turn.blocks[-1]
            message = (
                f"{where}: The final block in an assistant message cannot be `{block.get('type')}`."
            )
            found.append(Problem("anthropic.thinking_last", where, message, "refused"))
    if thinking == "enabled":
        found += _thinking_first(turns)
    if (
        thinking == "disabled"
        and turns
        and turns[-1].role == "assistant"
        and turns[-1].of(*THINKING)
    ):
        where, block = turns[-1].of(*THINKING)[0]
        message = (
            f"{where}: When thinking is disabled, an `assistant` message in the final position cannot contain "
            f"`{block.get('type')}`. To use thinking blocks, enable `thinking` in your request."
        )
        found.append(Problem("anthropic.thinking_disabled", where, message, "refused"))
    return found


def _thinking_first(turns: list[_Turn]) -> list[Problem]:
    """With a thinking budget, the turn that our results continue starts with its thinking."""
    rounds: list[_Turn] = []
    for turn in reversed(turns):
        if turn.role == "user" and any(
            block.get("type") != "tool_result" for _, block in turn.blocks
        ):
            if rounds or turn is not turns[-1] or not turn.of("tool_result"):
                break
        elif turn.role == "assistant":
            rounds.append(turn)
    found: list[Problem] = []
    for turn in reversed(rounds):
        if not turn.of("tool_use") or not turn.blocks or turn.blocks[0][1].get("type") in THINKING:
            continue
        # Without interleaving a model thinks once, so only the first round of a turn is sure to
        # need it.
        certainty: Certainty = "refused" if turn is rounds[-1] else "some"
        where, block = turn.blocks[0]
        message = (
            f"{where}.type: Expected `thinking` or `redacted_thinking`, but found `{block.get('type')}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from "
            "previous turns. To avoid this requirement, disable `thinking`."
        )
        found.append(Problem("anthropic.thinking_first", where, message, certainty))
    return found


def _issued(turns: list[_Turn], issued: Mapping[str, str]) -> list[Problem]:
    """A signed block goes back with the text it was signed for."""
    found: list[Problem] = []
    for turn in turns:
        for where, block in turn.of("thinking"):
            signature = text(block.get("signature"))
            if (
                signature is not None
                and signature in issued
                and block.get("thinking") != issued[signature]
            ):
                message = (
                    f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                    "modified. These blocks must remain as they were in the original response."
                )
                found.append(Problem("anthropic.thinking_modified", where, message, "refused"))
    return found


# ------------------------------------------------------------ last message


def _last(turns: list[_Turn], model: str | None) -> list[Problem]:
    """Newer models continue no assistant message, but for a turn that was paused: by a server tool,
    or after a compaction.
    """
    if not turns or turns[-1].role != "assistant" or turns[-1].of(*SERVER_USES):
        return []
    turn = turns[-1]
    if turn.blocks and turn.blocks[-1][1].get("type") == "compaction":
        return []
    where = f"messages.{turn.last}"
    if anthropic_models.refuses_prefill(model):
        message = "This model does not support assistant message prefill. The conversation must end with a user message."
        return [Problem("anthropic.prefill", where, message, "refused")]
    end = turn.blocks[-1][1] if turn.blocks else {}
    words = end.get("text") if end.get("type") == "text" else None
    if isinstance(words, str) and words != words.rstrip():
        message = "messages: final assistant content cannot end with trailing whitespace"
        return [Problem("anthropic.prefill_whitespace", where, message, "some")]
    return []
