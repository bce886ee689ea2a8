"""The sequence of messages in Converse: who speaks, calls and their results, reasoning.

Sources: recorded exchanges (99 of 99 turns with results answer exactly the calls before), and
errors that users report.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from lutumpy.rules.bedrock.limits import SERVER_TOOL
from lutumpy.rules.bedrock.models import (
    family,
    is_claude,
    keeps_results_alone,
    takes_neighbours,
    takes_system_messages,
)
from lutumpy.rules.bedrock.shapes import MODEL_SAYS, refusal
from lutumpy.rules.bedrock.wire import WIRE
from lutumpy.rules.block_wire import Path, Turn, join_turns, place_of
from lutumpy.rules.problem import Certainty, Problem, text

__all__ = ["ASSISTANT_ONLY", "USER_FIRST", "USER_ONLY", "check_sequence", "holds_calls"]

ASSISTANT_ONLY = ("toolUse", "reasoningContent", "citationsContent")
USER_ONLY = ("image", "document", "video", "audio", "searchResult", "guardContent")
"""Which messages hold what [documentation]; results of the provider's own tools are in the
model's."""

_RETRY = "and try again."
_ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation "
    f"alternates between user and assistant roles {_RETRY}"
)
USER_FIRST = (
    "A conversation must start with a user message. Try again with a conversation that starts with "
    "a user message."
)
_END = (
    "This model does not support assistant message prefill. The conversation must end with a user "
    "message."
)


def holds_calls(messages: Any) -> bool:
    """Whether a history has calls or results."""
    return any(turn.of("toolUse", "toolResult") for turn in join_turns(WIRE, messages))


def check_sequence(
    messages: Any, *, model: str | None = None, thinking: str | None = None
) -> list[Problem]:
    """Problems of what follows what.

    Args:
        messages: The request's `messages`.
        model: Its model, for what only some models refuse.
        thinking: The `type` of Claude's `thinking`.
    """
    turns = join_turns(WIRE, messages)
    found = _check_speakers(turns, model)
    found += _check_block_roles(turns)
    found += _check_pairing(turns, model)
    found += _check_results_alone(turns, model)
    return found + _check_reasoning(turns, model, thinking)


# --------------------------------------------------------------- speakers


def _check_speakers(turns: list[Turn], model: str | None) -> list[Problem]:
    found: list[Problem] = []
    takes_system = takes_system_messages(model)
    for message in turns:
        if message.role == "system" and not takes_system:
            what = f"{message.where}: this model may take no system messages"
            found.append(refusal("converse.system_role", f"{message.where}.role", what, "some"))
    speaking = [message for message in turns if message.role in ("user", "assistant")]
    if speaking and speaking[0].role == "assistant":
        # Claude has taken it once [recorded], and others are reported to refuse it.
        certainty: Certainty = "some" if is_claude(model) in (True, None) else "refused"
        found.append(refusal("converse.first_user", speaking[0].where, USER_FIRST, certainty))
    for before, after in pairwise(speaking):
        if before.role == after.role:
            sure = before.role == "assistant" or takes_neighbours(model) is False
            found.append(
                refusal(
                    "converse.alternation", after.where, _ALTERNATE, "refused" if sure else "some"
                )
            )
    if speaking and speaking[-1].role == "assistant" and not speaking[-1].calls:
        found.append(refusal("converse.last_user", speaking[-1].where, _END, "some"))
    return found


def _check_block_roles(turns: list[Turn]) -> list[Problem]:
    found: list[Problem] = []
    for message in turns:
        for path, block in message.blocks:
            key = next(iter(block), "")
            where = place_of(path)
            ids = _ids_in(block.get(key))
            if message.role == "user" and key in ASSISTANT_ONLY:
                words = f"{where}: user messages cannot contain `{key}` blocks"
                found.append(refusal("converse.block_role", where, words, call_ids=ids))
            elif message.role == "assistant" and key == "toolResult":
                if not ids or ids[0] not in _provider_calls(message):
                    words = f"{where}: assistant messages cannot contain `{key}` blocks"
                    found.append(refusal("converse.block_role", where, words, call_ids=ids))
            elif message.role == "assistant" and key in USER_ONLY:
                words = f"{where}: assistant messages cannot contain `{key}` blocks"
                found.append(refusal("converse.block_role", where, words, "some"))
    return found


def _ids_in(inner: Any) -> tuple[str, ...]:
    call_id = text(inner.get("toolUseId")) if isinstance(inner, Mapping) else None
    return (call_id,) if call_id is not None else ()


# ---------------------------------------------------------------- pairing


def _check_pairing(turns: list[Turn], model: str | None) -> list[Problem]:
    found: list[Problem] = []
    earlier: set[str] = set()
    for number, message in enumerate(turns):
        if message.role == "assistant":
            after = turns[number + 1] if number + 1 < len(turns) else None
            found += _check_calls(message, after, earlier, model)
        elif message.role == "user":
            before = turns[number - 1] if number else None
            found += _check_results(message, before)
    return found


def _check_calls(
    message: Turn, after: Turn | None, earlier: set[str], model: str | None
) -> list[Problem]:
    """Ids unique, calls last, and each answered at the start of the next message."""
    found = _check_calls_last(message)
    names: dict[str, str] = {}
    for path, call in message.of("toolUse"):
        call_id = text(call.get("toolUseId"))
        if call_id is None:
            continue
        more: dict[str, Any] = {"call_ids": (call_id,), "tools": _name_of(call)}
        where = place_of(path[:3])
        if call_id in names:
            words = f"{where}: `tool_use` ids must be unique"
            found.append(refusal("converse.unique_ids", where, words, **more))
        elif call_id in earlier:
            words = f"{where}: the id {call_id} was used by an earlier turn"
            found.append(refusal("converse.reused_id", where, words, "discouraged", **more))
        names.setdefault(call_id, text(call.get("name")) or "")
    earlier.update(names)
    own = _provider_calls(message)
    waiting = {call_id: name for call_id, name in names.items() if call_id not in own}
    return found + _check_answers(message, after, waiting, model)


def _check_answers(
    message: Turn, after: Turn | None, waiting: Mapping[str, str], model: str | None
) -> list[Problem]:
    if not waiting:
        return []
    results: list[tuple[Path, str]] = []
    if after is not None and after.role == "user":
        for path, result in after.results:
            call_id = text(result.get("toolUseId"))
            if call_id is not None:
                results.append((path, call_id))
    answered = [call_id for _, call_id in results]
    lacking = tuple([call_id for call_id in waiting if call_id not in answered])
    if lacking:
        words = (
            f"Expected toolResult blocks at messages.{message.first + 1}.content for the following "
            f"Ids: {', '.join(lacking)}"
        )
        tools = tuple(dict.fromkeys([waiting[one] for one in lacking if waiting[one]]))
        return [
            refusal(
                "converse.results_after_calls", message.where, words, call_ids=lacking, tools=tools
            )
        ]
    assert after is not None, "what is answered is answered somewhere"
    others = [path for path, block in after.blocks if "toolResult" not in block]
    late = tuple([one for path, one in results if others and path > others[0]])
    if late:
        words = (
            f"{message.where}: `toolUse` ids were found without `toolResult` blocks at the start "
            f"of the next message: {', '.join(late)}"
        )
        certainty: Certainty = "refused" if is_claude(model) else "some"
        return [refusal("converse.results_first", after.where, words, certainty, call_ids=late)]
    if [one for one in dict.fromkeys(answered) if one in waiting] != list(waiting):
        words = "The results stand in another order than their calls."
        ids = tuple(answered)
        return [refusal("converse.result_order", after.where, words, "discouraged", call_ids=ids)]
    return []


def _provider_calls(turn: Turn) -> frozenset[str]:
    """The ids of the calls that the provider runs itself."""
    calls = [call for _, call in turn.of("toolUse") if call.get("type") == SERVER_TOOL]
    return frozenset([str(call.get("toolUseId")) for call in calls])


def _name_of(call: Mapping[str, Any]) -> tuple[str, ...]:
    name = text(call.get("name"))
    return (name,) if name else ()


def _check_calls_last(message: Turn) -> list[Problem]:
    """Nothing follows the calls of a turn: no recorded answer has it."""
    own = _provider_calls(message)
    called: str | None = None
    for path, block in message.blocks:
        call, result = block.get("toolUse"), block.get("toolResult")
        inner = call if isinstance(call, Mapping) else result
        if isinstance(inner, Mapping):
            call_id = str(inner.get("toolUseId"))
            if isinstance(call, Mapping) and call_id not in own:
                called = call_id
            continue
        if called is not None and "cachePoint" not in block:
            where = place_of(path)
            words = f"{where}: a block stands behind the `toolUse` blocks of its message"
            return [refusal("converse.calls_last", where, words, "some", call_ids=(called,))]
    return []


def _check_results(message: Turn, before: Turn | None) -> list[Problem]:
    """Each result belongs to one call of the message before, and no other result does."""
    known: dict[str, tuple[str, ...]] = {}
    if before is not None and before.role == "assistant":
        for _, call in before.calls:
            known.setdefault(str(call.get("toolUseId")), _name_of(call))
    words = (
        f"The number of toolResult blocks at {message.where}.content exceeds the number of toolUse "
        "blocks of previous turn."
    )
    seen: set[str] = set()
    found: list[Problem] = []
    for path, result in message.results:
        call_id = text(result.get("toolUseId"))
        if call_id is None:
            continue
        rule = ""
        if call_id not in known:
            rule = "converse.call_for_result"
        elif call_id in seen:
            rule = "converse.single_result"
        if rule:
            tools = known.get(call_id, ())
            where = place_of(path[:3])
            found.append(refusal(rule, where, words, call_ids=(call_id,), tools=tools))
        seen.add(call_id)
    return found


def _check_results_alone(turns: list[Turn], model: str | None) -> list[Problem]:
    """Beside results some models take nothing else."""
    alone = keeps_results_alone(model)
    if alone is False:
        return []
    found: list[Problem] = []
    for message in turns:
        others = [
            path
            for path, block in message.blocks
            if not {"toolResult", "cachePoint"} & block.keys()
        ]
        if message.role == "user" and others and message.results:
            words = (
                f"{message.where}.content: Conversation blocks and tool result blocks cannot be "
                "provided in the same turn"
            )
            sure: Certainty = "refused" if alone else "discouraged"
            found.append(refusal("converse.results_alone", place_of(others[0]), words, sure))
    return found


# -------------------------------------------------------------- reasoning


def _check_reasoning(turns: list[Turn], model: str | None, thinking: str | None) -> list[Problem]:
    """Reasoning is signed where its model signs, and comes before the calls that it led to."""
    found: list[Problem] = []
    claude = is_claude(model)
    for message in turns:
        if message.role != "assistant":
            continue
        for path, reasoning in message.of("reasoningContent"):
            words = reasoning.get("reasoningText")
            if not isinstance(words, Mapping):
                continue
            found += _check_signature(place_of(path[:3]), words, claude)
            if family(model) == "deepseek" and message.calls:
                place = place_of(path[:3])
                sentence = f"{place}: this model takes no reasoning back beside tools"
                found.append(refusal("converse.reasoning_for_model", place, sentence, "some"))
    if thinking == "enabled" and claude is not False:
        found += _check_reasoning_first(turns)
    return found


def _check_signature(where: str, words: Mapping[str, Any], claude: bool | None) -> list[Problem]:
    signature = words.get("signature")
    place = f"{where}.reasoningContent.reasoningText.signature"
    if signature == "":
        message = f"{MODEL_SAYS}{where}: Invalid `signature` in `thinking` block"
        return [refusal("converse.signature", place, message)]
    if signature is None and claude is not False:
        message = f"{MODEL_SAYS}{where}.thinking.signature: Field required"
        return [refusal("converse.signature", place, message, "refused" if claude else "some")]
    return []


def _check_reasoning_first(turns: list[Turn]) -> list[Problem]:
    """With a thinking budget, the turn that results continue starts with its reasoning."""
    rounds: list[Turn] = []
    for message in reversed(turns):
        if message.role == "user" and not message.results:
            break
        if message.role == "assistant":
            rounds.append(message)
    found: list[Problem] = []
    for message in reversed(rounds):
        if not message.calls or "reasoningContent" in message.blocks[0][1]:
            continue
        # Without interleaving Claude thinks once, so only the first round is sure to need it.
        certainty: Certainty = "refused" if message is rounds[-1] else "some"
        path, block = message.blocks[0]
        kind = "tool_use" if "toolUse" in block else "text"
        where = place_of(path)
        words = (
            f"{MODEL_SAYS}{where}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{kind}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). "
            "We recommend you include thinking blocks from previous turns. To avoid this "
            "requirement, disable `thinking`."
        )
        found.append(refusal("converse.reasoning_first", where, words, certainty))
    return found
