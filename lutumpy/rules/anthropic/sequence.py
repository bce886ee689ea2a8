"""The Messages rules about the sequence of blocks: roles, pairs, thinking, and what ends it."""

# What is hard here
# -----------------
# Neighbouring messages of one role are one turn to the API, so the rules look at turns (`Turn`),
# and positions still name messages. The order of the checks is the order in which the API was seen
# to answer: a request with two faults gets the first one's words.
#
#   | a `tool_use` of an assistant turn is ...         | rule                          |
#   |--------------------------------------------------|-------------------------------|
#   | answered at the start of the next user turn      | fine                          |
#   | answered there, behind other content             | `results_first`, refused      |
#   | answered nowhere in the next turn                | `results_after_uses`, refused |
#   | answered there in another order than called      | `result_order`, discouraged   |
#   | answered twice                                   | `single_result`, refused      |
#   | a `server_tool_use` without a result, at the end | fine: the turn was paused     |
#   | the same, in front of results for other calls    | fine: the turn waits for them |
#   | the same, in front of anything else              | refused                       |

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.changes import CHANGES
from lutumpy.rules.anthropic.prefix import THINKING
from lutumpy.rules.anthropic.requests import is_compacted
from lutumpy.rules.anthropic.server_tools import SERVER_USES, check_server_tools
from lutumpy.rules.anthropic.wire import WIRE
from lutumpy.rules.block_wire import Path, Turn, join_turns, place_of
from lutumpy.rules.problem import Certainty, Problem, items, text

# Which roles blocks may have [recorded: "`tool_use` blocks can only be in `assistant` messages"].
ASSISTANT_ONLY = ("tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")
SHOWN = ("image", "document")
USER_ONLY = ("tool_result", *SHOWN)


def check_sequence(
    messages: Any,
    *,
    model: str | None = None,
    thinking: str | None = None,
    tools: Any = None,
    issued: Mapping[str, str] | None = None,
    held: bool = False,
) -> list[Problem]:
    """Problems of the order and pairing of blocks; the shapes are checked in `messages`.

    Args:
        messages: The request's `messages`.
        model: Its `model`.
        thinking: The `type` of its `thinking`.
        tools: Its tools.
        issued: Signature to thinking text, of the blocks that the server knows to have written.
        held: The conversation's start is at the server, so the first result may answer a call that
            is not here.
    """
    turns = join_turns(WIRE, messages)
    found = _check_system_positions(turns, items(messages), held)
    found += _check_roles(turns)
    found += _check_empty_users(turns, items(messages))
    found += _check_pairing(turns, held)
    found += _check_toolsets(turns)
    found += check_server_tools(turns, tools, held)
    found += _check_thinking(turns, thinking)
    found += _check_issued(turns, issued or {})
    # A summary at the end is what the next answer continues, on every model.
    listed = items(messages)
    if listed and is_compacted(listed[-1]):
        return found
    return found + _check_last(turns, model)


def _check_system_positions(
    turns: list[Turn], messages: Sequence[Any], held: bool
) -> list[Problem]:
    """A system message is never first, and comes before an assistant message or last [probed]."""
    found: list[Problem] = []
    for number, turn in enumerate(turns):
        # A message that only sets the effort may be anywhere [SDK].
        if turn.role != "system" or _only_sets_effort(turn, messages):
            continue
        where = turn.where
        if number == 0 and not held:
            message = f"{where}: use the top-level 'system' parameter for the initial system prompt"
            found.append(Problem("anthropic.system_first", where, message, "refused"))
        elif number + 1 < len(turns) and turns[number + 1].role != "assistant":
            message = (
                f"{where}: `system` messages must precede an `assistant` message or end the array"
            )
            found.append(Problem("anthropic.system_position", where, message, "refused"))
    return found


def _only_sets_effort(turn: Turn, messages: Sequence[Any]) -> bool:
    """Whether the messages of a turn say nothing, and set something of the output."""
    own_messages = [
        found for found in messages[turn.first : turn.last + 1] if isinstance(found, Mapping)
    ]
    return all(
        found.get("output_config") is not None and not found.get("content")
        for found in own_messages
    )


def _check_roles(turns: list[Turn]) -> list[Problem]:
    found: list[Problem] = []
    for turn in turns:
        if turn.role not in ("user", "assistant", "system"):
            continue  # its role is what the API refuses
        for path, block in turn.blocks:
            kind = block.get("type")
            needed = None
            if kind in ASSISTANT_ONLY:
                needed = "assistant"
            elif kind in USER_ONLY:
                needed = "user"
            elif kind in CHANGES:
                needed = "system"
            # A system message in the middle may show images and documents [probed].
            if kind in SHOWN and turn.role == "system":
                continue
            if needed is not None and turn.role != needed:
                where = place_of(path)
                message = (
                    f"{place_of(path[:1])}: `{kind}` blocks can only be in `{needed}` messages"
                )
                found.append(Problem("anthropic.block_role", where, message, "refused"))
    return found


def _check_empty_users(turns: list[Turn], messages: Sequence[Any]) -> list[Problem]:
    found: list[Problem] = []
    for turn in turns:
        if turn.role != "user" or turn.blocks:
            continue
        if all(map(_says_nothing, messages[turn.first : turn.last + 1])):
            where = turn.where
            message = f"{where}: user messages must have non-empty content"
            found.append(Problem("anthropic.empty_user", where, message, "refused"))
    return found


def _says_nothing(message: Any) -> bool:
    # Another shape than a text or a list isn't empty: another rule reports it.
    content = message.get("content") if isinstance(message, Mapping) else ""
    return isinstance(content, (str, list, tuple)) and not content


# ----------------------------------------------------------------- pairing


def _check_pairing(turns: list[Turn], held: bool) -> list[Problem]:
    found: list[Problem] = []
    earlier: set[str] = set()
    for number, turn in enumerate(turns):
        after = turns[number + 1] if number + 1 < len(turns) else None
        before = turns[number - 1] if number else None
        if turn.role == "assistant":
            found += _check_uses(turn, after, earlier)
        elif turn.role == "user" and (before is not None or not held):
            found += _check_results(turn, before)
    return found


def _check_uses(turn: Turn, after: Turn | None, earlier: set[str]) -> list[Problem]:
    """Ids unique, calls last, and each answered at the start of the next message.

    Args:
        turn: The turn with the calls.
        after: The turn behind it.
        earlier: The ids of earlier turns; those of this one are added.
    """
    uses: dict[str, Path] = {}
    names: dict[str, str] = {}
    found = _check_uses_last(turn)
    for path, block in turn.of("tool_use"):
        use_id = text(block.get("id"))
        if use_id is None:
            continue
        found += _check_use_id(use_id, path, block, uses, earlier)
        uses.setdefault(use_id, path)
        names.setdefault(use_id, text(block.get("name")) or "")
    earlier.update(uses)
    leading, anywhere = _answered_in(after)
    in_time = set(leading)
    lacking = [use_id for use_id in uses if use_id not in in_time]
    if lacking:
        lost = tuple(use_id for use_id in lacking if use_id not in anywhere)
        late = tuple(use_id for use_id in lacking if use_id in anywhere)
        rule = "anthropic.results_after_uses" if lost else "anthropic.results_first"
        at = place_of(uses[lacking[0]][:1])
        message = (
            f"{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(lacking)}. Each `tool_use` block must have a corresponding `tool_result` "
            "block in the next message."
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


def _check_use_id(
    use_id: str,
    path: Path,
    block: Mapping[str, Any],
    uses: Container[str],
    earlier: Container[str],
) -> list[Problem]:
    """The problem of an id that another call of its turn has, or one of an earlier turn."""
    if use_id not in uses and use_id not in earlier:
        return []
    where, ids, tools = place_of(path), (use_id,), _name_of(block)
    if use_id in uses:
        words = f"{where}: `tool_use` ids must be unique"
        return [Problem("anthropic.unique_ids", where, words, "refused", call_ids=ids, tools=tools)]
    words = f"{where}: the id {use_id} was used by an earlier turn"
    return [Problem("anthropic.reused_id", where, words, "discouraged", call_ids=ids, tools=tools)]


def _answered_in(after: Turn | None) -> tuple[list[str], set[str]]:
    """The ids of the results at the start of a user's turn, in order; and of all that are in it."""
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
    return leading, anywhere


def _name_of(block: Mapping[str, Any]) -> tuple[str, ...]:
    name = text(block.get("name"))
    return (name,) if name else ()


def _check_uses_last(turn: Turn) -> list[Problem]:
    """Nothing follows the calls of a turn: no recorded answer has it, and replaying it was refused
    [reported].
    """
    called: Mapping[str, Any] | None = None
    for path, block in turn.blocks:
        if block.get("type") == "tool_use":
            called = block
        elif called is not None and block.get("type") != "tool_result":
            where = place_of(path)
            message = (
                f"{where}: a `{block.get('type')}` block stands behind the `tool_use` blocks of "
                "its message"
            )
            use_id = text(called.get("id"))
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


def _check_toolsets(turns: list[Turn]) -> list[Problem]:
    """A result names the toolset that its call named [SDK]."""
    named: dict[str, str] = {}
    found: list[Problem] = []
    for turn in turns:
        for _, block in turn.of("tool_use"):
            use_id, toolset = text(block.get("id")), text(block.get("toolset_name"))
            if use_id is not None and toolset is not None:
                named[use_id] = toolset
        for path, block in turn.of("tool_result") if named else ():
            use_id = text(block.get("tool_use_id"))
            if use_id in named and block.get("toolset_name") != named[use_id]:
                where = place_of(path)
                message = f"{where}: `toolset_name` does not match the `tool_use` block {use_id}"
                found.append(
                    Problem("anthropic.toolset_name", where, message, "some", call_ids=(use_id,))
                )
    return found


def _check_results(turn: Turn, before: Turn | None) -> list[Problem]:
    """Each result belongs to one call of the message before, and no other result does."""
    found: list[Problem] = []
    known: dict[str | None, tuple[str, ...]] = {}
    if before is not None and before.role == "assistant":
        known = {text(block.get("id")): _name_of(block) for _, block in before.of("tool_use")}
    seen: set[str] = set()
    for path, block in turn.of("tool_result"):
        use_id = text(block.get("tool_use_id"))
        if use_id is None:
            continue
        if use_id not in known:
            where = place_of(path)
            message = (
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message."
            )
            found.append(
                Problem("anthropic.use_for_result", where, message, "refused", call_ids=(use_id,))
            )
        elif use_id in seen:
            where = place_of(path)
            message = (
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {use_id}"
            )
            rule = "anthropic.single_result"
            found.append(
                Problem(rule, where, message, "refused", call_ids=(use_id,), tools=known[use_id])
            )
        seen.add(use_id)
    return found


# ---------------------------------------------------------------- thinking


def _check_thinking(turns: list[Turn], thinking: str | None) -> list[Problem]:
    """Thinking of the turn that goes on is there, first, and not the end of a message."""
    found: list[Problem] = []
    for turn in turns:
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1][1].get("type") in THINKING:
            path, block = turn.blocks[-1]
            where = place_of(path)
            message = (
                f"{where}: The final block in an assistant message cannot be `{block.get('type')}`."
            )
            found.append(Problem("anthropic.thinking_last", where, message, "refused"))
    if thinking == "enabled":
        found += _check_thinking_first(turns)
    if (
        thinking == "disabled"
        and turns
        and turns[-1].role == "assistant"
        and turns[-1].of(*THINKING)
    ):
        path, block = turns[-1].of(*THINKING)[0]
        where = place_of(path)
        message = (
            f"{where}: When thinking is disabled, an `assistant` message in the final position "
            f"cannot contain `{block.get('type')}`. To use thinking blocks, enable `thinking` in "
            "your request."
        )
        found.append(Problem("anthropic.thinking_disabled", where, message, "refused"))
    return found


def _check_thinking_first(turns: list[Turn]) -> list[Problem]:
    """With a thinking budget, the turn that our results continue starts with its thinking."""
    rounds: list[Turn] = []
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
        path, block = turn.blocks[0]
        where = place_of(path)
        message = (
            f"{where}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{block.get('type')}`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks). We recommend you include thinking blocks from previous turns. "
            "To avoid this requirement, disable `thinking`."
        )
        found.append(Problem("anthropic.thinking_first", where, message, certainty))
    return found


def _check_issued(turns: list[Turn], issued: Mapping[str, str]) -> list[Problem]:
    """A signed block goes back with the text it was signed for."""
    found: list[Problem] = []
    for turn in turns:
        for path, block in turn.of("thinking"):
            signature = text(block.get("signature"))
            if (
                signature is not None
                and signature in issued
                and block.get("thinking") != issued[signature]
            ):
                where = place_of(path)
                message = (
                    f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                    "message cannot be modified. These blocks must remain as they were in the "
                    "original response."
                )
                found.append(Problem("anthropic.thinking_modified", where, message, "refused"))
    return found


# ------------------------------------------------------------ last message


def _check_last(turns: list[Turn], model: str | None) -> list[Problem]:
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
        message = (
            "This model does not support assistant message prefill. The conversation must end with "
            "a user message."
        )
        return [Problem("anthropic.prefill", where, message, "refused")]
    end = turn.blocks[-1][1] if turn.blocks else {}
    words = end.get("text") if end.get("type") == "text" else None
    if isinstance(words, str) and words != words.rstrip():
        message = "messages: final assistant content cannot end with trailing whitespace"
        return [Problem("anthropic.prefill_whitespace", where, message, "some")]
    return []
